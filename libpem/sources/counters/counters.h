/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * counters.h - the counters source: what its files share
 *
 *	counters.c	the plugin's operations (open.h: what its own files share)
 *	estimate.c	totals of counters that shared the hardware, and their errors
 *	groups.c	which counters are counted together
 *	encode.c	libpfm4 names to perf_event_open, and sentences for the errors of it
 *	sampler.c	periodic samples of the program counter: opens and drains one ring per CPU
 *	ring.c		parses perf's ring. It makes no system call, so tests give it hostile bytes.
 *	unwind/		callers of sampled instructions (unwind/unwind.h)
 *	data.h		where the data of samples lie
 *
 * Not here: anything of libpem. The plugin uses only structures of public headers, and no symbol of
 * libpem.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include "source.h"

#include "sources/counters/estimate.h"
#include "sources/counters/unwind/mapping.h"
#include "sources/readings/reading_builder.h"

#include <pem/counted.h>
#include <pem/clock.h>

#include <linux/perf_event.h>

/* --- encode.c --- */

#define COUNTER_NAME_BYTES 160u /* more than the longest source name in a spec */

/*
 * Fill attr for a libpfm4 event name. It sets no other attributes. names may hold alternatives
 * separated by '|'. The function takes the first one that libpfm4 knows for this processor and that
 * the kernel opens. If the kernel opens none, it takes the first one that libpfm4 knows, so that
 * opening it tells the reason. Returns 0, or -ENOENT if libpfm4 knows none of them; attr->size is
 * then 0.
 */
int counter__encode(const char *names, struct perf_event_attr *attr);
/* As counter__encode. Copies the name that was taken to name. */
int counter__encode_first(const char *names, struct perf_event_attr *attr, char *name,
			  size_t name_bytes);
/* As pem_source_ops.find (find.c). It leaves error alone: other sources search, too. */
int counter__find(const char *pattern, int (*found)(void *arg, const struct pem_event *event),
		  void *arg, struct pem_error *error);
/* As pem_source_ops.counted_as and counter_turns (counted_as.c). */
int counter__counted_as(const struct pem_event *event, struct pem_counted_as *counted_as);
int counter__turns(const struct pem_event *const *events, size_t count, uint32_t *turns);
/*
 * Does libpfm4 know an event of this name, for this or another processor? Returns 1, or -ENOENT
 * with error.
 */
int counter__knows(const char *name, struct pem_error *error);
/*
 * Call perf_event_open with close-on-exec. If the kernel may not be observed, try again without the
 * kernel. Returns the descriptor or -errno. attr->exclude_kernel tells afterwards whether the
 * kernel is left out.
 */
int counter__open(struct perf_event_attr *attr, pid_t pid, int cpu, int group);
/* With pid -1 and a folder of a control group: on that CPU, for the processes in the group alone.
 */
int counter__open_on(int cgroup_fd, struct perf_event_attr *attr, pid_t pid, int cpu, int group);
/*
 * Explain why counter__encode or counter__open failed with err. The sentence has no subject, such
 * as "can't be counted: ...".
 */
void counter__explain(const char *names, const struct perf_event_attr *attr, int err,
		      struct pem_error *reason);
/*
 * Explain why a counter that was opened never ran. The sentence is as that of counter__explain, and
 * names the NMI watchdog if that has a counter.
 */
void counter__explain_busy(struct pem_error *reason);
/*
 * Fill attr with the clock of a SAMPLE event: the event's own counter, or the CPU clock if no PMU
 * counts it. Returns 0 or -errno.
 */
int counter__encode_clock(const char *names, struct perf_event_attr *attr);
/* Open a counter on the calling thread and close it again. Returns 0, or the -errno of opening. */
int counter__try(struct perf_event_attr *attr);
/* As pem_source_ops.can_deliver. */
int counter__can_deliver(const struct pem_event *event, struct pem_error *reason);

/* As pem_source_ops.encode_counter (threads.c). */
int counter__encode_for_threads(const char *names, struct pem_counter *counter,
				struct pem_error *error);

/* --- ring.c --- */

#ifndef PERF_RECORD_MISC_MMAP_BUILD_ID /* since Linux 5.12 */
#define PERF_RECORD_MISC_MMAP_BUILD_ID (1 << 14)
#endif

#define RING_VALUES_MAX 8u

/* The kernel tells no more of a stack, unless kernel.perf_event_max_stack was raised. */
#define RING_CALLERS_MAX 127u
/* A record's size is 16 bits wide. */
#define RING_RECORD_BYTES_MAX 65536u

/* Data that the sampled instruction touched: spec/hw/data.xml has the numbers. */
struct ring_data {
	uint64_t address; /* 0: none */
	uint64_t stack_pointer; /* 0: unknown */
	uint32_t latency; /* cycles; 0: unknown */
	uint8_t origin, access, source, tlb;
};

enum { DATA_ORIGIN_NONE, DATA_ORIGIN_COMPUTED, DATA_ORIGIN_MEASURED };

struct ring_sample {
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t value_count;
	uint64_t values[RING_VALUES_MAX];
	/*
	 * Return addresses, innermost first. Of the instruction at which the program entered the
	 * kernel, its address plus 1: behind its begin, too.
	 */
	uint32_t caller_count;
	uint64_t callers[RING_CALLERS_MAX];
	/* With has_stack: registers and stack of the program, as struct unwind_sample has them. */
	uint32_t abi; /* PERF_SAMPLE_REGS_ABI_* */
	uint32_t stack_bytes;
	int stack_is_partial; /* the kernel copied as much as it was asked for: there is more */
	const uint64_t *registers;
	const uint8_t *stack;
	struct ring_data data; /* with has_data; else found by operands.c */
	uint64_t data_source; /* with has_data: for access.c */
	uint64_t record[RING_RECORD_BYTES_MAX / 8]; /* as the kernel wrote it */
};

/* A process has other memory. */
struct ring_task {
	uint32_t pid;
	uint32_t parent; /* it was forked by this one; 0: it called exec */
	uint64_t time_ns;
};

/*
 * A mapped perf ring. data is a power of two bytes long. The consumer moves tail, the kernel moves
 * head. Both count on without wrapping to 0.
 */
struct ring {
	const uint8_t *data;
	uint64_t data_bytes;
	uint64_t tail;
	uint64_t lost; /* samples of PERF_RECORD_LOST, plus 1 for each unreadable part */
	int has_read; /* samples end with PERF_SAMPLE_READ of a group */
	int has_callers; /* samples have a PERF_SAMPLE_CALLCHAIN */
	int has_data; /* samples have PERF_SAMPLE_ADDR, _WEIGHT and _DATA_SRC */
	int skips_kernel; /* samples of the kernel are passed over */
	int tells_maps; /* ring__next returns RING_MAP and RING_TASK, too */
	int tells_all_maps; /* also of memory without a file */
	unsigned register_count; /* samples have so many; 0: they have not */
	int has_stack; /* behind registers they have a stack */
	struct ring_map map; /* of the last RING_MAP */
	struct ring_task task; /* of the last RING_TASK */
};

enum { RING_SAMPLE = 1, RING_MAP = 2, RING_TASK = 3 };

/*
 * Parse the next sample, or what was mapped, between ring->tail and head. Returns RING_SAMPLE with
 * *sample filled; RING_MAP with ring->map filled; RING_TASK with ring->task filled; 0 when tail has
 * reached head; -EINVAL if the ring is damaged. On -EINVAL everything up to head is skipped and
 * counted as one lost sample.
 */
int ring__next(struct ring *ring, uint64_t head, struct ring_sample *sample);
/*
 * The time of the record that ring__next looks at first. 0: there is none, or it is damaged. Needs
 * sample_id_all with PERF_SAMPLE_TID and PERF_SAMPLE_TIME.
 */
uint64_t ring__time_ns(const struct ring *ring, uint64_t head);

/* Does the event tell what is mapped, beside samples of the CPU or of data? (counters.c) */
int counter__is_of_maps(const struct pem_event *event);

/* --- maps.c --- */

#define MAP_RECORD_BYTES_MAX 512u

/* Where the event that tells what is mapped has its fields; strings follow the fixed ones. */
struct map_layout {
	uint16_t address, length, offset;
	uint16_t fixed_bytes;
	uint32_t path_max;
};
/* Fill layout from an event. Returns 0, or -ENOTSUP if the event has other fields. */
int map__layout(const struct pem_event *event, struct map_layout *layout);
/*
 * Write a record behind its header. record has room for MAP_RECORD_BYTES_MAX. Returns its bytes,
 * header included.
 */
size_t map__put(const struct map_layout *layout, const struct ring_map *map, uint8_t *record);
/*
 * Call take for the code of each file that a process has mapped, and for its vdso; with all for all
 * its memory. pid -1: that all processes of this user have. Others' are left out, since they could
 * make the reader wait. time_ns is 0, and the build id unknown. Blocks on files.
 */
void maps__each(pid_t pid, int all, void (*take)(void *arg, const struct ring_map *map), void *arg);
/*
 * Give the sink a copy of a file that a process has mapped, if it may be gone when the recording
 * ends (mapped_files.c). Blocks on files. files NULL: nothing.
 */
struct mapped_files;
struct mapped_files *mapped_files__new(void);
void mapped_files__take(struct mapped_files *files, const struct ring_map *map,
			const struct pem_source_sink *sink);
/* Do all user ids of a process equal this one's, so that reading it waits for nobody else? */
int maps__is_own(pid_t pid);
/* The same of a process that is open. The caller closes it. Returns it, or -1 with errno. */
int maps__is_own_at(int process);
int maps__open_process(pid_t pid);

/* --- sampler.c --- */

struct sampler;

/*
 * Where the source's sample event has its fields in a record. An offset of 0 means that the event
 * lacks the field.
 */
struct sample_layout {
	uint16_t pc, pid, tid, cpu;
	uint16_t values, callers; /* where these lists have their lengths */
	uint16_t fixed_bytes;
	uint32_t values_max, callers_max;
	/* A sample of data has all of these. */
	uint16_t address, stack_pointer, latency, origin, access, source, tlb;
};

/*
 * Fill layout from an event. Returns 0, or -ENOTSUP if the event's fields are not those of a
 * sample.
 */
int sample__layout(const struct pem_event *event, struct sample_layout *layout);
struct sampler_request {
	const struct pem_event *event;
	/* To tell what is mapped as well, of code, or beside samples of data of all; NULL: no */
	const struct pem_event *map_event;
	pid_t pid; /* -1: the machine, or the control group */
	int cgroup_fd; /* -1: none */
	int all_threads; /* of a process that runs already, those that it has, too */
	/* Start at the process's exec instead of at sampler__start. */
	int on_exec;
	uint32_t hz; /* samples a second; 0: 199 */
	uint32_t stacks; /* enum pem_stacks */
	uint32_t buffer_bytes; /* of each CPU's ring; 0: 128 KiB, or what that many samples need */
	unsigned first_stream; /* CPU i writes the stream "c_<first_stream + i>" */
	const char *const *members; /* names of counters that each sample reads, too */
	size_t member_count;
	/* Of samples of data: where the kernel describes this processor's; NULL: PRECISE_DEVICES */
	const char *devices;
};

/* Open one ring per CPU. Returns 0, or -errno with error set. The caller closes the sampler. */
int sampler__open(struct sampler **sampler, const struct sampler_request *request,
		  struct pem_error *error);
int sampler__start(struct sampler *sampler);
/*
 * Move samples, and what was mapped, to the sink. If log or log_maps is 0, these are dropped. If
 * final is set, sampling stops first. The function continues after a failure. It returns 0 or the
 * -errno of the first failure.
 */
int sampler__drain(struct sampler *sampler, const struct pem_source_sink *sink, int log,
		   int log_maps, int final);
/* Records of what was mapped that were made. Those that the kernel lost count as samples. */
uint64_t sampler__maps(const struct sampler *sampler);
uint64_t sampler__produced(const struct sampler *sampler);
uint64_t sampler__discarded(const struct sampler *sampler);
/*
 * Number of values in each sample, including the clock's. 0: the kernel can't read counters
 * together with inherited samples.
 */
unsigned sampler__values(const struct sampler *sampler);
/* Why a timer samples data: -errno; -ENOENT: the processor can't. 0: it does, or none is sampled.
 */
int sampler__no_precise(const struct sampler *sampler);
void sampler__close(struct sampler *sampler);

void counter__set_error(struct pem_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
