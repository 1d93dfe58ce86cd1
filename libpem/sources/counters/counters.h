/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * counters.h - the counters source: what its files share
 *
 *	counters.c	the plugin's operations: gating, statistics, samples of counters to packets
 *	encode.c	libpfm4 names to perf_event_open, and sentences for what it refuses
 *	sampler.c	periodic samples of the program counter: opening and draining one ring per
 *			CPU
 *	reading_builder.c	packets of counter readings
 *	ring.c		parsing perf's ring; no system calls, so it is tested with hostile bytes
 *
 * Not here: anything of libpem. The plugin uses public headers' structures only and no libpem
 * symbol.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "source.h"

#include <pem/clock.h>

#include <linux/perf_event.h>

/* --- encode.c --- */

/*
 * The attributes of a libpfm4 event name, nothing else set. Of alternatives parted by '|' it is the
 * first that libpfm4 knows for this processor and that the kernel opens; where it opens none, the
 * first that libpfm4 knows, so that opening tells why. 0, -ENOENT: libpfm4 knows none, and
 * attr->size is 0.
 */
int counter__encode(const char *names, struct perf_event_attr *attr);
/* Has libpfm4 an event of that name, for this processor or another? 1; -ENOENT with error. */
int counter__knows(const char *name, struct pem_error *error);
/*
 * perf_event_open, close-on-exec; if the kernel may not be observed, again without it. Returns the
 * descriptor or -errno. attr->exclude_kernel tells afterwards which it was.
 */
int counter__open(struct perf_event_attr *attr, pid_t pid, int cpu, int group);
/*
 * Why counter__encode or counter__open failed with err: a sentence without its subject, as "can't
 * be counted: ...".
 */
void counter__explain(const char *names, const struct perf_event_attr *attr, int err,
		      struct pem_error *reason);
/* The clock of a SAMPLE event: its own, or where no PMU counts it the CPU clock. 0 or -errno. */
int counter__encode_clock(const char *names, struct perf_event_attr *attr);
/* Opens for a moment on the calling thread: 0, or -errno of what counting there would meet. */
int counter__try(struct perf_event_attr *attr);

/*
 * A counter that ran part of the time it was enabled, scaled to all of it (perf_event_open(2));
 * what would not fit is the greatest value.
 */
static inline uint64_t counter__scale(uint64_t value, uint64_t enabled, uint64_t running)
{
	unsigned __int128 scaled;

	if (!running || running >= enabled)
		return value;
	scaled = (unsigned __int128)value * enabled / running;
	return scaled > UINT64_MAX ? UINT64_MAX : (uint64_t)scaled;
}

/* --- ring.c --- */

#define RING_VALUES_MAX 8u

struct ring_sample {
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t value_count;
	uint64_t values[RING_VALUES_MAX];
};

/*
 * A mapped perf ring: data is a power of two bytes long. tail is ours, head the kernel's; both run
 * free.
 */
struct ring {
	const uint8_t *data;
	uint64_t data_bytes;
	uint64_t tail;
	uint64_t lost; /* PERF_RECORD_LOST, and what was unreadable */
	int has_read; /* samples end with PERF_SAMPLE_READ of a group */
};

/*
 * Parse what lies between ring->tail and head, one sample after the other. 1: *sample is filled; 0:
 * no more, tail equals head; -EINVAL: the ring is damaged, all up to head is skipped and counted as
 * one lost.
 */
int ring__next(struct ring *ring, uint64_t head, struct ring_sample *sample);

/* --- sampler.c --- */

struct sampler;

/* How the source finds its sample event's fields in a record; offsets 0: no such field. */
struct sample_layout {
	uint16_t pc, pid, tid, cpu;
	uint16_t list; /* of the list's length */
	uint16_t fixed_bytes;
	uint32_t list_max;
};

/* 0, or -ENOTSUP: the event's fields are not those of a sample. */
int sample__layout(const struct pem_event *event, struct sample_layout *layout);
struct sampler_request {
	const struct pem_event *event;
	pid_t pid; /* -1: the machine */
	int on_exec; /* run from its exec on, instead of from sampler__start */
	uint32_t buffer_bytes; /* per CPU; 0: 128 KiB */
	unsigned first_stream; /* CPU i writes the stream "c_<first_stream + i>" */
	const char *const *members; /* names of the counters to read with each sample */
	size_t member_count;
};

/* Open one ring per CPU. 0, or -errno with error set. The caller closes it. */
int sampler__open(struct sampler **sampler, const struct sampler_request *request,
		  struct pem_error *error);
int sampler__start(struct sampler *sampler);
/*
 * Move samples to the sink; log 0: drop them unseen; final: stop sampling first. Failures don't end
 * it; the first one's -errno is returned.
 */
int sampler__drain(struct sampler *sampler, const struct pem_source_sink *sink, int log, int final);
uint64_t sampler__produced(const struct sampler *sampler);
uint64_t sampler__discarded(const struct sampler *sampler);
/*
 * Values at each sample, the clock's included; 0: the kernel can't read counters along with
 * inherited samples.
 */
unsigned sampler__values(const struct sampler *sampler);
void sampler__close(struct sampler *sampler);

void counter__set_error(struct pem_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* --- reading_builder.c: packets of counter readings --- */

#define PACKET_RECORDS_BYTES 4096u

struct reading_builder {
	uint64_t bytes[(PEM_PACKET_HEADER_BYTES + PACKET_RECORDS_BYTES) / 8]; /* aligned */
	uint32_t at, end; /* where the next record begins, where the last one ended */
};

/* Begin a packet about a process (0: the machine). */
void reading_builder__begin(struct reading_builder *builder, uint32_t pid, uint64_t clock);
/*
 * Add a record of an event whose one value lies at value_offset; there is room for its max_bytes.
 */
void reading_builder__append(struct reading_builder *builder, const struct pem_event *event,
			     uint32_t value_offset, uint64_t value, uint64_t clock);
/*
 * Hand the packet, if it has records, to the sink; those it does not take are added to *refused. 0,
 * or -errno.
 */
int reading_builder__flush(struct reading_builder *builder, uint64_t clock,
			   const struct pem_source_sink *sink, uint64_t *refused);

#endif
