/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel.h - the kernel source inside: what its files share
 *
 *	source.c   the plugin: wishes, statistics, balance
 *	probe.c    what this machine and user can deliver, and which alternative of an event
 *	btf.c      a kernel's tracepoints and their parameters
 *	prototype.c  parameters as a spec writes them
 *	load.c     BPF object: opened, sized, loaded, attached, stopped
 *	drain.c    rings -> packets
 *	table.c    events that programs exist for (generated from the specs)
 *	object.c   the BPF object's bytes
 */
#ifndef PEM_SOURCES_KERNEL_H
#define PEM_SOURCES_KERNEL_H

#include "btf.h"
#include "source.h"

#include <pem/kring.h>

#include <stdatomic.h>
#include <stdbool.h>

struct bpf_link;
struct bpf_object;
struct bpf_program;

#define PEM_KERNEL_PACKET_BYTES (64u << 10)

/* One of the ways to get an event: a tracepoint, and the program for it. */
struct pem_kernel_alternative {
	const char *program;
	const char *tracepoint; /* "system:event" */
	const char *arguments; /* its parameters as C; NULL: whatever they are */
	const char *
		kernel; /* range of kernels that the spec says it is for, such as "6.8-"; NULL: none said */
};
#define PEM_KERNEL_ALTERNATIVES_MAX 8u

/* A row of the generated table; its index is the event's in slots, control words and filters. */
struct pem_kernel_event {
	uint32_t id; /* 0: a program that only keeps track of what runs where */
	const char *name;
	const struct pem_kernel_alternative *alternatives; /* best first */
	uint8_t alternative_count;
	uint8_t context; /* its program is needed whenever a process tree is the target */
	uint8_t sets_thread; /* logged whenever another event is */
	uint16_t fixed_bytes;
	uint16_t ring_bytes;
	uint16_t string_count;
	const uint16_t *string_max; /* of each string: bytes it has in the ring */
};

unsigned pem_kernel__event_count(void);
const struct pem_kernel_event *pem_kernel__event(unsigned index);
/* Index of the event with an id, or -1. */
int pem_kernel__find(uint32_t id);
/* Index of the event that sets a CPU's thread, or -1. */
int pem_kernel__sets_thread(void);

extern const unsigned char pem_kernel_object[], pem_kernel_object_end[];

/* An event of the session's list. */
struct pem_kernel_wish {
	const struct pem_event *event;
	struct pem_context context;
	const struct pem_test *tests; /* of its predicate */
	uint32_t test_count;
	unsigned index; /* in the table */
	int error; /* 0, or -errno why it can't be delivered */
	atomic_bool logged; /* was ever */
	_Atomic uint64_t action; /* the last one with a statistic, or 0 */
	atomic_bool logging; /* is now */
};

struct pem_kernel_program {
	struct bpf_program *program;
	struct bpf_link *link;
	uint64_t misses; /* final: runs that the kernel refused */
	uint32_t refused; /* a bit for each alternative that did not load */
	uint8_t alternative; /* the one that program is of */
};

/* What draining remembers of one CPU. */
struct pem_kernel_cpu {
	uint64_t last_ns; /* CLOCK_MONOTONIC of the last record */
	uint64_t last_clock; /* the cycle counter of the last record, as handed on */
	uint64_t read[PEM_KRING_EVENTS_MAX]; /* records found in the ring */
	bool clock_known;
	bool broken; /* the ring is not read any more: what was produced and not read is lost */
};

struct pem_source {
	struct bpf_object *object;
	struct pem_kcontrol *control; /* mapped */
	size_t control_bytes;
	uint8_t *rings;
	size_t rings_bytes;
	size_t ring_stride;
	struct pem_wide *wides; /* [cpu][PEM_WIDE_COUNT], mapped */
	size_t wides_bytes;
	uint32_t ring_mask;
	uint32_t cpu_count;
	struct pem_kernel_cpu *cpus;
	struct pem_kernel_program programs[PEM_KRING_EVENTS_MAX];
	struct pem_kernel_wish *wishes;
	size_t wish_count;
	int context_index; /* the event that sets threads, or -1 */
	bool context_wished; /* it is among the wishes */
	bool started;
	bool stopped;
	pid_t root;
	bool no_follow;
	uint32_t buffer_bytes; /* asked for; 0: the default */
	uint8_t *packet;
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
};

static inline struct pem_kring *pem_source__ring(const struct pem_source *source, uint32_t cpu)
{
	return (struct pem_kring *)(source->rings + cpu * source->ring_stride);
}

void pem_source__log(const struct pem_source *source, enum pem_log_level level, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));
/* Write an error's sentence; error may be NULL. Returns code. */
int pem_kernel__fail(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Can this user load BPF programs here at all? 1, or 0 with reason. */
int pem_kernel__can_load(struct pem_error *reason);
/*
 * The alternative of an event that the running kernel has, by its types: the first whose parameters are the same,
 * else the first whose parameters fit. refused: a bit for each that is out of the question. -ENOENT with reason.
 */
int pem_kernel__choose(unsigned index, uint32_t refused, struct pem_error *reason);
/* The same, in any kernel. */
int pem_kernel__choose_in(const struct pem_kernel_btf *kernel, const struct pem_kernel_event *event,
			  uint32_t refused, struct pem_error *reason);

/* Load the programs that wishes and target need and map the rings. 0, or -errno with error. */
int pem_source__load(struct pem_source *source, struct pem_error *error);
/* Observe one more process and its children to come. 0, or -errno. */
int pem_source__add_target(const struct pem_source *source, pid_t pid);
/* Attach them. An event whose program can't be attached is marked and logged. 0, or -errno with error. */
int pem_source__attach(struct pem_source *source, struct pem_error *error);
/* Detach; on return no program runs any more and misses are final. */
void pem_source__detach(struct pem_source *source);
/* Undo load. */
void pem_source__unload(struct pem_source *source);

/* Hand what the rings hold to the sink. 0, or the sink's first -errno. */
int pem_source__drain_rings(struct pem_source *source, const struct pem_source_sink *sink);
/* Are all rings read to their end? */
bool pem_source__is_drained(const struct pem_source *source);
/* Count what is still in the rings as discarded. */
void pem_source__give_up_rest(struct pem_source *source);

#endif
