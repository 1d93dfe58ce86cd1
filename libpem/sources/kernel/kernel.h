/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel.h - the kernel source inside: what its files share
 *
 *	source.c   the plugin: demands, statistics, balance
 *	available.c  what this machine and user can deliver, and which alternative of an event
 *	feature.c  what this kernel allows and counts
 *	btf.c      a kernel's tracepoints and their parameters
 *	prototype.c  parameters as a spec writes them
 *	load.c     BPF object: opened, sized, loaded, attached, stopped
 *	progress.c  how far long work is
 *	drain.c    rings -> packets
 *	table.c    events that programs exist for (generated from the specs)
 *	object.c   the BPF object's bytes
 *	probes.h   events that no program was made of before: found, programmed and attached to
 */
#ifndef PEM_SOURCES_KERNEL_H
#define PEM_SOURCES_KERNEL_H

#include "btf.h"
#include "probes.h"
#include "source.h"
#include "sources/demands.h"

#include <pem/kring.h>

#include <stdbool.h>

struct bpf_link;
struct bpf_object;
struct bpf_program;

#define PEM_KERNEL_PACKET_BYTES (64u << 10)
#define PEM_KERNEL_PROBES_BY_ID (2 * PEM_KRING_EVENTS_MAX)

/* One of the ways to get an event: a tracepoint, and the program for it. */
struct pem_kernel_alternative {
	const char *program;
	const char *tracepoint; /* "system:event" */
	const char *arguments; /* its parameters as C; NULL: whatever they are */
	const char *
		kernel; /* range of kernels that the spec says it is for, such as "6.8-"; NULL: none said */
};
#define PEM_KERNEL_ALTERNATIVES_MAX 8u

/* A string or list in the tail of a record: in the ring it has a fixed place, as long as it may become. */
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
	const uint8_t *
		arguments; /* of each field of the event: which one of the probe's it is; 255: not known */
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

/* A probe of the session's: a row that the table has not, and its programs, several if its places differ. */
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
	uint16_t probe_by_id
		[PEM_KERNEL_PROBES_BY_ID]; /* open addressing: place in probes + 1; 0: free */
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

/* Write an error's sentence; error may be NULL. Returns code. */
int pem_kernel__fail(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

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
/* May programs load arguments that are 'const void *'? Tried with the first call, which takes some 20 ms. */
bool pem_kernel__loads_void(void);
/* Do helpers read no memory of the kernel's for programs, since it is locked down for confidentiality? Tried with the first call. */
bool pem_kernel__no_reading(void);
/* The number of one of the kernel's kinds of perf events, "kprobe". -ENOENT: it has none such. */
int pem_kernel__perf_type(const char *name);
/* Does this kernel have what probes of a kind are attached by? 1, or 0 with reason. Asked behind pem_kernel__can_load. */
int pem_kernel__can_attach(enum pem_probe_kind kind, struct pem_error *reason);
/* The attach type of programs that one link puts to many places of a binary: installed headers may be older. */
#define PEM_UPROBE_MULTI 48u /* BPF_TRACE_UPROBE_MULTI */
/* Has this kernel such links, and may this user make them? Tried with the first call. */
bool pem_kernel__has_uprobe_multi(void);
/* Put a program, loaded for that, to places of a probe's binary, in this process alone or in all. The link, or -errno. */
int pem_kernel__link_uprobes(const struct pem_probe *probe, int program,
			     const struct pem_probe_site *const *sites, size_t count,
			     bool only_here);
/* Does it count the events that it passes over, of programs on perf events and of kprobes? Linux does since 6.7. */
bool pem_kernel__counts_misses(void);
/*
 * The alternative of an event that the running kernel has, by its types: the first whose parameters are the same,
 * else the first whose parameters fit. refused: a bit for each that is out of the question. -ENOENT with reason.
 */
int pem_kernel__choose(unsigned index, uint32_t refused, struct pem_error *reason);
/* The same, in any kernel. */
int pem_kernel__choose_in(const struct pem_kernel_btf *kernel, const struct pem_kernel_event *event,
			  uint32_t refused, struct pem_error *reason);

/* Load the programs that demands and target need and map the rings. 0, or -errno with error. */
int pem_source__load(struct pem_source *source, struct pem_error *error);
/* Observe one more process and its children to come. 0, or -errno. */
int pem_source__add_target(const struct pem_source *source, pid_t pid);
/* Attach them. An event whose program can't be attached is marked and logged. 0, or -errno with error. */
int pem_source__attach(struct pem_source *source, struct pem_error *error);
/* Detach; on return no program runs any more and misses are final. */
void pem_source__detach(struct pem_source *source);
/* Undo load. */
void pem_source__unload(struct pem_source *source);

/* --- descriptors.c --- */

/* What this process may still open, less what its recording needs for itself. */
size_t pem_kernel__spare_descriptors(void);
/* What a probe takes: its programs, and a link for each of its places, or for each program if by_multi (probe_multi.c). */
size_t pem_probe__descriptors(const struct pem_probe *probe, bool by_multi);

/* --- probe_attach.c: events outside of the table --- */

/* Take an event's probe into the session. Its index, or -errno with error. */
int pem_source__take_probe(struct pem_source *source, const struct pem_event *event,
			   struct pem_error *error);
/* Make and load the programs of all probes that are demanded, from the template in the loaded object. */
void pem_source__load_probes(struct pem_source *source);
void pem_source__attach_probes(struct pem_source *source);
/* Detach; misses are not final yet. Returns whether any was attached. */
bool pem_source__detach_probes(struct pem_source *source);
void pem_source__unload_probes(struct pem_source *source);
void pem_source__free_probes(struct pem_source *source);

/* --- probe_misses.c --- */

/* Say of which probes losses can't be counted, if there are any. */
void pem_source__say_uncounted(const struct pem_source *source);
/* Add up what the kernel did not run, before the links are closed. */
void pem_source__count_probe_misses(struct pem_source *source);

/* --- leave_behind.c, and what is for all --- */

/*
 * Hand what links programs to probes to processes of their own, which end it by ending: whoever closes it need not wait.
 * leave_behind.c says why. They wait until what is returned is closed, -1: nothing is, which is to be done when everything
 * handed over has been: the last to close it is who waits.
 */
int pem_leave_behind(int *fds, size_t count);
/* The demand for an index that has not failed; NULL. */
struct pem_source_demand *pem_source__demand_of(const struct pem_source *source, unsigned index);
/* Keep the last lines of what the verifier says. */
void pem_kernel__keep_last(char *last, size_t bytes, const char *text, const char *end);
/* The running kernel's types, read once. NULL with reason. */
const struct pem_kernel_btf *pem_kernel__running(struct pem_error *reason);

/* Hand what the rings hold to the sink. 0, or the sink's first -errno. */
int pem_source__drain_rings(struct pem_source *source, const struct pem_source_sink *sink);
/* Are all rings read to their end? */
bool pem_source__is_drained(const struct pem_source *source);
/* Count what is still in the rings as discarded. */
void pem_source__give_up_rest(struct pem_source *source);

#endif
