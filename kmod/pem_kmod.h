/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pem_kmod.h - what the module's probes call: is the event wanted, room for a record, its commit, its statistic
 *
 * The probes themselves, one per tracepoint event, are generated from the specs (pem_kmod_events.h, by
 * codegen/backend_kmod.c). A record is the same as everywhere (pem/abi.h), and so is the ring (pem/ring.h). Not here: who
 * makes a session, maps its pool to user space, and registers probes with tracepoints.
 *
 * A probe may interrupt another on its CPU (interrupt, NMI, a fault while it reads memory). Each depth of nesting
 * has a writer, and so a lane and a chunk, of its own; all belong to the CPU alone, so nothing here needs a lock.
 */
#ifndef PEM_KMOD_H
#define PEM_KMOD_H

/* A test compiles this in user space, with a kernel of its own. */
#ifdef __KERNEL__
#include "compat.h"

#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#endif

#include <pem/abi.h>
#include <pem/clock.h>
#include <pem/predicate.h>
#include <pem/ring.h>

#define PEM_KMOD_DEPTH                                                                             \
	4 /* thread, soft interrupt, interrupt, NMI; a fault in one of them takes the next */

/* What a CPU writes with. All zero but the lanes: holds no chunk. */
struct pem_kmod_cpu {
	unsigned int depth; /* probes under way */
	struct pem_writer writers[PEM_KMOD_DEPTH]; /* lane_index and slots are set */
};

/* What a probe is registered with. */
struct pem_kmod_session {
	struct pem_ring ring; /* a pool, as pem/abi.h lays it out; lanes never change their owner */
	struct pem_kmod_cpu __percpu *cpus;
	uint64_t *action; /* by the event's index: 0, or PEM_ACTION(...) */
	/* By the same index: tests of an event whose action says PEM_ACTION_FILTER, checked by who made the session. */
	const struct pem_filter *const *filters;
	/* Probes that found all depths taken, by the event's index, on all CPUs together: not one record is lost uncounted. */
	uint64_t *too_deep;
};

/* A generated probe, and where it belongs. Its index is the event's in action, too_deep and slots. */
struct pem_kmod_probe {
	uint32_t event_id;
	const char *tracepoint; /* NULL: this kernel has none, or its headers declare none */
	void *probe; /* void (*)(void *session, ...), with the tracepoint's parameters; NULL: the same */
};

extern const struct pem_kmod_probe pem_kmod_probes[];
extern const unsigned int pem_kmod_probe_count;

/*
 * Has a probe the tracepoint's own prototype? The kernel's headers declare a function for each tracepoint that takes
 * nothing else; it serves to choose among alternatives, and to have the compiler name both prototypes where they differ.
 */
#define PEM_KMOD_FITS(tracepoint, probe)                                                           \
	__builtin_types_compatible_p(typeof(&check_trace_callback_type_##tracepoint),              \
				     void (*)(typeof(&(probe))))
#define PEM_KMOD_CHECK(tracepoint, probe) check_trace_callback_type_##tracepoint(probe)
/* What a choice is about. */
#define PEM_KMOD_YES(tracepoint, probe) 1
#define PEM_KMOD_NAME(tracepoint, probe) #tracepoint
#define PEM_KMOD_PROBE(tracepoint, probe) probe

/* An event on its way. */
struct pem_kevent {
	struct pem_kmod_session *session;
	struct pem_kmod_cpu *cpu;
	struct pem_writer *writer;
	struct pem_slot *slot;
	uint64_t action;
	uint64_t now;
	uint32_t flags;
};

/* Is event index wanted? If so, the probe owns its CPU's next writer until pem_end(). */
PEM_INLINE bool pem_begin(struct pem_kevent *e, void *session, uint32_t index)
{
	e->session = session;
	e->action = READ_ONCE(e->session->action[index]);
	if (!e->action)
		return false;
	preempt_disable_notrace();
	e->cpu = raw_cpu_ptr(e->session->cpus);
	/* One that interrupts us between these puts the depth back before it returns. */
	if (e->cpu->depth >= PEM_KMOD_DEPTH) {
		__atomic_fetch_add(&e->session->too_deep[index], 1, __ATOMIC_RELAXED);
		preempt_enable_notrace();
		return false;
	}
	e->writer = &e->cpu->writers[e->cpu->depth++];
	barrier(); /* the writer is ours before it is used */
	e->slot = &e->writer->slots[index];
	e->flags = PEM_ACTION_FLAGS(e->action);
	return true;
}

PEM_INLINE void pem_end(struct pem_kevent *e)
{
	barrier(); /* and no more used when it is not */
	e->cpu->depth--;
	preempt_enable_notrace();
}

/* Add a value to the event's statistic; key orders it as an unsigned number. */
PEM_INLINE void pem_stat(struct pem_kevent *e, uint64_t value, uint64_t key)
{
	pem_slot_add(e->slot, PEM_ACTION_TAG(e->action), value, key);
}

/* The chunk is full, too old, or there is none: the record's place in the next. NULL: the record was discarded. */
static noinline uint8_t *pem_kmod_next_chunk(struct pem_kevent *e, uint32_t bytes)
{
	const struct pem_ring *ring = &e->session->ring;
	struct pem_writer *w = e->writer;
	struct pem_lane *lane = &ring->lanes[w->lane_index];
	uint8_t *record = NULL;
	int64_t index;

	pem_ring_retire(ring, w);
	index = pem_ring_find(ring);
	if (index >= 0) {
		pem_ring_start(ring, w, (uint32_t)index, e->now, 0, 0);
		w->packet->cpu = smp_processor_id();
		w->packet->source = PEM_PACKET_KERNEL;
		record = pem_ring_reserve(w, e->now, bytes);
	}
	if (!record) {
		/* Produced last, so that no reader finds fewer produced than discarded. */
		WRITE_ONCE(lane->discarded, lane->discarded + 1);
		WRITE_ONCE(e->slot->discarded, e->slot->discarded + 1);
		WRITE_ONCE(e->slot->produced, e->slot->produced + 1);
	}
	return record;
}

/* Room for a record of at most bytes. NULL: none, and it is counted. */
PEM_INLINE uint8_t *pem_reserve(struct pem_kevent *e, uint32_t bytes)
{
	uint8_t *record;

	e->now = pem_clock();
	record = pem_ring_reserve(e->writer, e->now, bytes);
	return likely(record) ? record : pem_kmod_next_chunk(e, bytes);
}

/* Publish the record, which turned out to be of bytes. */
PEM_INLINE void pem_commit(struct pem_kevent *e, uint32_t event_id, uint32_t bytes)
{
	pem_ring_commit(e->writer, e->slot, e->now, event_id, bytes);
}

/*
 * Copy a kernel string of at most max bytes, NUL included; returns how many that were. One that can't be read is "".
 * Reads aligned words, which never reach into a page that the string does not.
 */
static inline uint32_t pem_string(uint8_t *to, uint32_t max, const void *from)
{
	unsigned long at = (unsigned long)from & ~7ul;
	uint32_t used = 0, i = (uint32_t)((unsigned long)from & 7);
	uint8_t word[8];

	for (;; at += sizeof(word), i = 0) {
		if (copy_from_kernel_nofault(word, (const void *)at, sizeof(word))) {
			to[0] = '\0';
			return 1;
		}
		for (; i < sizeof(word); i++) {
			to[used++] = word[i];
			if (!word[i])
				return used;
			if (used == max) {
				to[max - 1] = '\0';
				return max;
			}
		}
	}
}

/* Copy bytes of the kernel's memory; what can't be read is zero. */
static inline void pem_array(uint8_t *to, uint32_t bytes, const void *from)
{
	if (copy_from_kernel_nofault(to, from, bytes))
		memset(to, 0, bytes);
}

#endif
