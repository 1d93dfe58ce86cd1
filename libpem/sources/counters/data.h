/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * data.h - where the data of samples lie
 *
 *	precise.c	events by which the processor itself tells it (PEBS, IBS)
 *	access.c	what the kernel makes of such a sample, in the numbers of spec/hw/data.xml
 *	operands.c	elsewhere: computes it from the instruction that a timer found
 *
 * Not here: opening one ring per CPU (sampler.c), what a ring holds (ring.c).
 */
#ifndef COUNTERS_DATA_H
#define COUNTERS_DATA_H

#include "counters.h"

/* --- precise.c --- */

#define PRECISE_DEVICES "/sys/bus/event_source/devices"

/* How a processor samples data. An event whose attr.size is 0 is not needed here. */
struct precise {
	struct perf_event_attr loads; /* or of loads and stores alike */
	struct perf_event_attr stores; /* their samples go to the ring of loads */
	struct perf_event_attr leader; /* of a group with both */
	/* The processor can't leave out the kernel's. ring.c drops them. */
	int samples_kernel;
};

/*
 * Find how this processor samples data, as the kernel describes it in the folder devices. Opens the
 * events to try them. Returns 0, -ENOENT: it can't, or -errno of the kernel. Blocks on files.
 */
int precise__find(const char *devices, struct precise *precise);
/* Ask for what ring.has_data has, and the stack pointer. */
void precise__prepare(struct perf_event_attr *attr);

enum { PRECISE_STORES, PRECISE_LEADER, PRECISE_BESIDE };

/*
 * Open attr, which is that of loads prepared by the caller, as counter__open_on does, and what
 * precise has beside it. Descriptors of these go to beside; -1: there is none. Returns the
 * descriptor or -errno.
 */
int precise__open(const struct precise *precise, struct perf_event_attr *attr, int cgroup_fd,
		  pid_t pid, int cpu, int beside[PRECISE_BESIDE]);

/* --- access.c --- */

/* Fill sample->data by what the processor told. */
void access__find(struct ring_sample *sample);

/* --- operands.c --- */

struct operands;

/*
 * Decode samples of all that the sampler samples. Only memory of processes of the recorder's user
 * is read, since others could make the reader wait. Returns NULL with errno: ENOMEM, or ENOTSUP
 * where the build can't decode instructions.
 */
struct operands *operands__open(void);
void operands__close(struct operands *operands);
/* Fill sample->data from its registers, and code that is read from the process. */
void operands__find(struct operands *operands, struct ring_sample *sample);
/* What was read of processes may have changed since. */
void operands__forget(struct operands *operands);

#endif
