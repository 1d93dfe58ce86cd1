/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * base.h - the kernel source's state, and what its folders ask about the running kernel
 *
 *	base.c      functions on the state that all files use
 *	available.c  what this machine and user can deliver, and which alternative of an event
 *	feature.c   what this kernel allows and counts
 *	uprobe_multi.c  one link for many locations in a binary
 *	match.c     compares a kernel's tracepoints with the parameters in a spec
 *	prototype.c  parses parameters as a spec writes them
 *	progress.c  reports the progress of long work
 *	table.c     events that have programs (generated from the specs)
 *	object.c    the BPF object's bytes
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
struct pem_kernel_processes;
struct pem_probe;
struct pem_probe_site;

/* The ways to attach a program to a probe that no spec describes. */
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

/* One alternative to get an event: a tracepoint, and the program for it. */
struct pem_kernel_alternative {
	const char *program;
	const char *tracepoint; /* "system:event" */
	const char *arguments; /* its parameters as C; NULL: any */
	/* The range of kernels in the spec, such as "6.8-". NULL: the spec names none. */
	const char *kernel;
};
#define PEM_KERNEL_ALTERNATIVES_MAX 8u

/*
 * A string or list in the tail of a record. In the ring it has a fixed offset and its maximum
 * length.
 */
struct pem_kernel_tail {
	uint16_t max_count; /* bytes of a string, or elements of a list */
	uint8_t element_bytes; /* of a list; 0: it is a string */
	uint16_t length_at; /* for a list: offset of its length in the record */
};

/*
 * A row of the generated table. The index of the row is the index of its event in cells, control
 * words and filters.
 */
struct pem_kernel_event {
	uint32_t id; /* 0: a program that only tracks which thread runs on each CPU */
	const char *name;
	const struct pem_kernel_alternative *alternatives; /* best first */
	uint8_t alternative_count;
	/* The program is needed whenever a process tree is the target. */
	uint8_t context;
	uint8_t is_of_another; /* It is of a thread that need not be the one that runs. */
	uint8_t sets_thread; /* It is logged whenever another event is logged. */
	uint16_t fixed_bytes;
	uint16_t ring_bytes;
	uint16_t tail_count;
	const struct pem_kernel_tail *tail;
};

/*
 * One program for several events of a tracepoint: a further program takes as long as what it does,
 * for the kernel calls a single one directly and several by a list. It serves those of the events
 * that are in pem_kconfig.joined.
 */
struct pem_kernel_joint {
	const char *program; /* NULL: the list's end */
	const uint16_t *events; /* indexes; UINT16_MAX: the end */
};
const struct pem_kernel_joint *pem_kernel__joints(void);

/* One of the static probes that can raise an event of a spec. */
struct pem_kernel_static_source {
	const char *probe; /* "provider:name" */
	const char *binary;
	/* For each field of the event the number of the probe's argument. 255: unknown. */
	const uint8_t *arguments;
};
struct pem_kernel_static {
	uint32_t id;
	uint8_t source_count;
	const struct pem_kernel_static_source *sources; /* best first */
};
/* Find the static probes that raise an event. NULL: the event has no static probes as source. */
const struct pem_kernel_static *pem_kernel__static(uint32_t id);

unsigned pem_kernel__event_count(void);
const struct pem_kernel_event *pem_kernel__event(unsigned index);
/* Index of the event with an id, or -1. */
int pem_kernel__find(uint32_t id);
/* Index of the event that sets a CPU's thread, or -1. */
int pem_kernel__sets_thread(void);
/*
 * Read from a record of the event that sets threads, as programs write it, which process and thread
 * run next.
 */
void pem_kernel__thread_of(const uint8_t *record, uint32_t *pid, uint32_t *tid);

extern const unsigned char pem_kernel_object[], pem_kernel_object_end[];

/*
 * One program of a probe. It is attached to all places whose arguments lie where the program reads
 * them.
 */
struct pem_probe_program {
	int fd;
	/* A place with these argument locations. NULL: the probe is not a static probe. */
	const struct pem_probe_site *like;
	/* -1: closed. A link holds its perf event open, too. */
	int *link_fds;
	size_t attached;
};

/*
 * A probe of the session that is not in the table. It has several programs if arguments lie
 * differently at its places.
 */
struct pem_kernel_probe {
	struct pem_probe *probe;
	struct pem_kernel_event row;
	struct pem_probe_program *programs;
	size_t program_count;
	uint64_t misses; /* runs that the kernel refused; final after detaching */
};

struct pem_kernel_program {
	struct bpf_program *program;
	struct bpf_link *link;
	uint64_t misses; /* runs that the kernel refused; final after detaching */
	uint32_t refused; /* a bit for each alternative that did not load */
	uint8_t alternative; /* the alternative that program is for */
	bool is_joined; /* it has no program of its own: a joint program serves it */
};

/* The state of draining one CPU's ring. */
struct pem_kernel_cpu {
	uint64_t last_ns; /* CLOCK_MONOTONIC of the last record */
	uint64_t last_clock; /* the cycle counter of the last record, as handed on */
	uint64_t read[PEM_KRING_EVENTS_MAX]; /* records found in the ring */
	/*
	 * The process and thread of the records to come. Only a source that runs beside another one
	 * uses them.
	 */
	uint32_t pid, tid;
	/* Records lost until the end of the last packet; whether some were in it. */
	uint64_t packet_discarded;
	bool lost_in_packet;
	bool clock_known;
	/* The ring is not read any more. Records that were produced and not read are lost. */
	bool broken;
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
	/* Their indexes follow those of the table. */
	struct pem_kernel_probe *probes;
	size_t probe_count;
	/* A hash table with open addressing: index in probes + 1; 0: free. */
	uint16_t probe_by_id[PEM_KERNEL_PROBES_BY_ID];
	int context_index; /* the event that sets threads, or -1 */
	bool started;
	bool stopped;
	pid_t root;
	bool no_follow;
	bool by_process;
	uint32_t session_id;
	char library_path[PEM_LIBRARY_PATH_BYTES +
			  1]; /* as in struct pem_source_config; "": none */
	uint32_t joints_refused; /* a bit for each program of several events, see joint.c */
	bool forgets; /* the session is a flight recorder */
	uint64_t told_ns; /* when what is told once was last told again for it */
	struct pem_kernel_processes *processes; /* processes.c; NULL: none were asked for yet */
	uint32_t buffer_bytes; /* bytes that the session asked for; 0: the default */
	uint8_t *packet;
};

/* Number of indexes in use: first the table's, then those of the session's probes. */
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

/* Have the programs tell again what they tell once: which file a descriptor is. */
static inline void pem_source__tell_again(struct pem_source *source)
{
	if (source->control) /* none: programs load it in any order */
		__atomic_fetch_add(&source->control->told_epoch, 1, __ATOMIC_RELAXED);
}

/* CLOCK_MONOTONIC, in ns. */
uint64_t pem_kernel__now_ns(void);

/* The progress of long work. It is reported to a user who waits. */
struct pem_progress {
	uint64_t start_ns, said_ns; /* 0: nothing was reported yet */
};
void pem_progress__start(struct pem_progress *progress);
void pem_progress__update(struct pem_progress *progress, const struct pem_source *source,
			  size_t done, size_t total);
void pem_progress__end(const struct pem_progress *progress, const struct pem_source *source);

/* Can this user load BPF programs here? Returns 1, or 0 with reason. */
int pem_kernel__can_load(struct pem_error *reason);
/*
 * May programs load arguments that are 'const void *'? The first call tries it, which takes some 20
 * ms.
 */
bool pem_kernel__loads_void(void);
/*
 * Are helpers forbidden to read the kernel's memory, since the kernel is locked down for
 * confidentiality? The first call tries it.
 */
bool pem_kernel__no_reading(void);
/* Why a program was refused: the end of its verifier's log, or what that means. */
const char *pem_kernel__refusal(const char *log);
/*
 * The number of a kind of perf events, such as "kprobe". Returns -ENOENT if the kernel has no such
 * kind.
 */
int pem_kernel__perf_type(const char *name);
/*
 * Can this kernel attach probes of this kind? Returns 1, or 0 with reason. Call
 * pem_kernel__can_load first.
 */
int pem_kernel__can_attach(enum pem_probe_kind kind, struct pem_error *reason);
/*
 * The attach type of programs that one link attaches to many places of a binary. Installed headers
 * may lack it.
 */
#define PEM_UPROBE_MULTI 48u /* BPF_TRACE_UPROBE_MULTI */
/* Does this kernel have such links, and may this user make them? The first call tries it. */
bool pem_kernel__has_uprobe_multi(void);
/*
 * Link a program to offsets in a binary by one such link, in this process alone or in all
 * processes. The program must have been loaded for that. semaphores: file offsets of the counts of
 * users, or NULL. returns: attach where functions return. Returns the link, or -errno.
 */
int pem_kernel__create_uprobe_link(int program, const char *path, const uint64_t *offsets,
				   const uint64_t *semaphores, size_t count, bool returns,
				   bool only_here);
/*
 * Does the kernel count the events that it skips for programs on perf events and kprobes? Linux
 * does since 6.7.
 */
bool pem_kernel__counts_misses(void);
/*
 * Choose the alternative of an event that fits the running kernel's types: the first with the same
 * parameters, else the first whose parameters fit. refused has a bit for each alternative that must
 * not be chosen. Returns its index, or -ENOENT with reason.
 */
int pem_kernel__choose(unsigned index, uint32_t refused, struct pem_error *reason);
/* As pem_kernel__choose(), for any kernel. */
int pem_kernel__choose_in(const struct pem_kernel_btf *kernel, const struct pem_kernel_event *event,
			  uint32_t refused, struct pem_error *reason);

/* Find the demand for an index. NULL: there is none, or it has failed. */
struct pem_source_demand *pem_source__demand_of(const struct pem_source *source, unsigned index);
/* Keep the last lines of the verifier's text. */
void pem_kernel__keep_last(char *last, size_t bytes, const char *text, const char *end);
/* The running kernel's types. They are read once. NULL with reason on failure. */
const struct pem_kernel_btf *pem_kernel__running(struct pem_error *reason);

#endif
