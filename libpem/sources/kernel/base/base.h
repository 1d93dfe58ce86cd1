/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * base.h - the kernel source's state, and what its rooms ask about the kernel that they run on
 *
 *	base.c     what all use of the state
 *	available.c  what this machine and user can deliver, and which alternative of an event
 *	feature.c  what this kernel allows and counts
 *	uprobe_multi.c  one link for many locations in a binary
 *	match.c    a kernel's tracepoints compared with what a spec says of their parameters
 *	prototype.c  parameters as a spec writes them
 *	progress.c  how far long work is
 *	table.c    events that programs exist for (generated from the specs)
 *	object.c   the BPF object's bytes
 */
#ifndef PEM_SOURCES_KERNEL_BASE_H
#define PEM_SOURCES_KERNEL_BASE_H

#include "match.h"
#include "source.h"
#include "sources/demands.h"
#include "util.h"

#include <pem/kring.h>

#include <stdbool.h>

struct bpf_link;
struct bpf_object;
struct bpf_program;
struct pem_probe;
struct pem_probe_site;

/* The ways to attach a program to what no spec describes. */
enum pem_probe_kind {
	PEM_PROBE_TRACEPOINT,
	PEM_PROBE_FENTRY,
	PEM_PROBE_FEXIT,
	PEM_PROBE_KPROBE,
	PEM_PROBE_KRETPROBE,
	PEM_PROBE_UPROBE,
	PEM_PROBE_URETPROBE,
	PEM_PROBE_USDT,
	PEM_PROBE_KINDS
};

#define PEM_KERNEL_PACKET_BYTES (64u << 10)
#define PEM_KERNEL_PROBES_BY_ID (2 * PEM_KRING_EVENTS_MAX)

/* One of the ways to get an event: a tracepoint, and the program for it. */
struct pem_kernel_alternative {
	const char *program;
	const char *tracepoint; /* "system:event" */
	const char *arguments; /* its parameters as C; NULL: whatever they are */
	/* range of kernels that the spec says it is for, such as "6.8-"; NULL: none said */
	const char *kernel;
};
#define PEM_KERNEL_ALTERNATIVES_MAX 8u

/*
 * A string or list in the tail of a record: in the ring it has a fixed place, as long as it may
 * become.
 */
struct pem_kernel_tail {
	uint16_t max_count; /* bytes of a string, elements of a list */
	uint8_t element_bytes; /* of a list; 0: a string */
	uint16_t length_at; /* of a list: its length in the record */
};

/* A row of the generated table; its index is the event's in cells, control words and filters. */
struct pem_kernel_event {
	uint32_t id; /* 0: a program that only keeps track of what runs where */
	const char *name;
	const struct pem_kernel_alternative *alternatives; /* best first */
	uint8_t alternative_count;
	uint8_t context; /* its program is needed whenever a process tree is the target */
	uint8_t sets_thread; /* logged whenever another event is */
	uint16_t fixed_bytes;
	uint16_t ring_bytes;
	uint16_t tail_count;
	const struct pem_kernel_tail *tail;
};

/* One of the static probes that an event of a spec may come from. */
struct pem_kernel_static_source {
	const char *probe; /* "provider:name" */
	const char *binary;
	/* of each field of the event: which one of the probe's it is; 255: not known */
	const uint8_t *arguments;
};
struct pem_kernel_static {
	uint32_t id;
	uint8_t source_count;
	const struct pem_kernel_static_source *sources; /* best first */
};
/* What an event of a spec comes from, if that is static probes; NULL. */
const struct pem_kernel_static *pem_kernel__static(uint32_t id);

unsigned pem_kernel__event_count(void);
const struct pem_kernel_event *pem_kernel__event(unsigned index);
/* Index of the event with an id, or -1. */
int pem_kernel__find(uint32_t id);
/* Index of the event that sets a CPU's thread, or -1. */
int pem_kernel__sets_thread(void);
/* Whom a record of that event, as programs write it, says to run from here on. */
void pem_kernel__thread_of(const uint8_t *record, uint32_t *pid, uint32_t *tid);

extern const unsigned char pem_kernel_object[], pem_kernel_object_end[];

/* One program of a probe, attached to as many places as it fits. */
struct pem_probe_program {
	int fd;
	const struct pem_probe_site *like; /* its arguments' places; NULL: not a static probe's */
	int *link_fds; /* -1: closed. A link holds its perf event, too. */
	size_t attached;
};

/*
 * A probe of the session's: a row that the table has not, and its programs, several if its places
 * differ.
 */
struct pem_kernel_probe {
	struct pem_probe *probe;
	struct pem_kernel_event row;
	struct pem_probe_program *programs;
	size_t program_count;
	uint64_t misses; /* final: runs that the kernel refused */
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
	uint32_t pid, tid; /* whose the records to come are; of a source beside another */
	bool clock_known;
	bool broken; /* the ring is not read any more: what was produced and not read is lost */
};

struct pem_source {
	struct pem_source_common common; /* first: demands.h */
	struct bpf_object *object;
	struct pem_kcontrol *control; /* mapped */
	size_t control_bytes;
	uint8_t *rings;
	size_t rings_bytes;
	size_t ring_stride;
	struct pem_distribution *distributions; /* [cpu][PEM_DISTRIBUTION_COUNT], mapped */
	size_t distributions_bytes;
	uint32_t ring_mask;
	struct pem_kernel_cpu *cpus;
	struct pem_kernel_program programs[PEM_KRING_EVENTS_MAX];
	struct pem_kernel_probe *probes; /* their indexes follow the table's */
	size_t probe_count;
	/* open addressing: place in probes + 1; 0: free */
	uint16_t probe_by_id[PEM_KERNEL_PROBES_BY_ID];
	int context_index; /* the event that sets threads, or -1 */
	bool started;
	bool stopped;
	pid_t root;
	bool no_follow;
	uint32_t buffer_bytes; /* asked for; 0: the default */
	uint8_t *packet;
};

/* Indexes in use: the table's, and after them the session's probes'. */
static inline unsigned pem_source__event_count(const struct pem_source *source)
{
	return pem_kernel__event_count() + (unsigned)source->probe_count;
}

/* The row of an index. */
static inline const struct pem_kernel_event *pem_source__event(const struct pem_source *source,
							       unsigned index)
{
	unsigned known = pem_kernel__event_count();

	return index < known ? pem_kernel__event(index) : &source->probes[index - known].row;
}

/* Index of the event with an id, among the table's and the session's probes, or -1. */
static inline int pem_source__find(const struct pem_source *source, uint32_t id)
{
	int index = pem_kernel__find(id);
	uint32_t i = id % PEM_KERNEL_PROBES_BY_ID, at;

	for (; index < 0 && (at = source->probe_by_id[i]) != 0;
	     i = (i + 1) % PEM_KERNEL_PROBES_BY_ID) {
		if (source->probes[at - 1].row.id == id)
			index = (int)(pem_kernel__event_count() + at - 1);
	}
	return index;
}

static inline struct pem_kring *pem_source__ring(const struct pem_source *source, uint32_t cpu)
{
	return (struct pem_kring *)(source->rings + cpu * source->ring_stride);
}

/* Work on many things, of which somebody waiting is told how far it is. */
struct pem_progress {
	uint64_t start_ns, said_ns; /* 0: nothing was said yet */
};
void pem_progress__start(struct pem_progress *progress);
void pem_progress__update(struct pem_progress *progress, const struct pem_source *source,
			  size_t done, size_t total);
void pem_progress__end(const struct pem_progress *progress, const struct pem_source *source);

/* Can this user load BPF programs here at all? 1, or 0 with reason. */
int pem_kernel__can_load(struct pem_error *reason);
/*
 * May programs load arguments that are 'const void *'? Tried with the first call, which takes some
 * 20 ms.
 */
bool pem_kernel__loads_void(void);
/*
 * Do helpers read no memory of the kernel's for programs, since it is locked down for
 * confidentiality? Tried with the first call.
 */
bool pem_kernel__no_reading(void);
/* The number of one of the kernel's kinds of perf events, "kprobe". -ENOENT: it has none such. */
int pem_kernel__perf_type(const char *name);
/*
 * Does this kernel have what probes of a kind are attached by? 1, or 0 with reason. Asked behind
 * pem_kernel__can_load.
 */
int pem_kernel__can_attach(enum pem_probe_kind kind, struct pem_error *reason);
/*
 * The attach type of programs that one link puts to many places of a binary: installed headers may
 * be older.
 */
#define PEM_UPROBE_MULTI 48u /* BPF_TRACE_UPROBE_MULTI */
/* Has this kernel such links, and may this user make them? Tried with the first call. */
bool pem_kernel__has_uprobe_multi(void);
/*
 * Put a program that was loaded for it to offsets in a binary by one such link, in this process
 * alone or in all. semaphores: where the counts of users are; NULL: there are none. returns: where
 * functions return. The link, or -errno.
 */
int pem_kernel__create_uprobe_link(int program, const char *path, const uint64_t *offsets,
				   const uint64_t *semaphores, size_t count, bool returns,
				   bool only_here);
/*
 * Does it count the events that it passes over, of programs on perf events and of kprobes? Linux
 * does since 6.7.
 */
bool pem_kernel__counts_misses(void);
/*
 * The alternative of an event that the running kernel has, by its types: the first whose parameters
 * are the same, else the first whose parameters fit. refused: a bit for each that is out of the
 * question. -ENOENT with reason.
 */
int pem_kernel__choose(unsigned index, uint32_t refused, struct pem_error *reason);
/* The same, in any kernel. */
int pem_kernel__choose_in(const struct pem_kernel_btf *kernel, const struct pem_kernel_event *event,
			  uint32_t refused, struct pem_error *reason);

/* The demand for an index that has not failed; NULL. */
struct pem_source_demand *pem_source__demand_of(const struct pem_source *source, unsigned index);
/* Keep the last lines of what the verifier says. */
void pem_kernel__keep_last(char *last, size_t bytes, const char *text, const char *end);
/* The running kernel's types, read once. NULL with reason. */
const struct pem_kernel_btf *pem_kernel__running(struct pem_error *reason);

#endif
