/* SPDX-License-Identifier: GPL-2.0 */
/*
 * pem_kmod.h - what the module's probes call: is the event wanted, room for a record, its commit,
 * its statistic
 *
 * The probes themselves, one per tracepoint event, are generated from the specs (pem_kmod_events.h,
 * by codegen/backends/kmod.c). A record is the same as everywhere (pem/abi.h), and so is the ring
 * (pem/ring.h). Here is what every event does; what only some do, as beginning a chunk, is in
 * record.c. Not here: who makes a session and its pools (session.c, pool.c), and registers probes
 * with tracepoints (attach.c).
 *
 * Who runs with whom. A probe runs with preemption off, and what it writes belongs to its CPU
 * alone. It may interrupt another on its CPU (interrupt, NMI, a fault while it reads memory): each
 * depth of nesting has a writer, and so a lane and a chunk, of its own. So nothing here needs a
 * lock. A session is set up before its first probe is registered, and taken down after
 * tracepoint_synchronize_unregister() found the last one gone; what changes in between is a rule,
 * which is never written to once probes can see it (rule.c).
 */
#ifndef PEM_KMOD_H
#define PEM_KMOD_H

/* A test compiles this in user space, with a kernel of its own. */
#ifdef __KERNEL__
#include "compat.h"

#include <linux/atomic.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#endif

#include <pem/abi.h>
#include <pem/clock.h>
#include <pem/kring.h>
#include <pem/predicate.h>
#include <pem/ring.h>

/* thread, soft interrupt, interrupt, NMI; a fault in one of them takes the next */
#define PEM_KMOD_DEPTH 4

struct pem_counters;
struct pem_kmod_pool;
struct pem_kmod_targets;

/* What is wanted of an event. Probes see it by one pointer; it never changes then. */
struct pem_kmod_rule {
	/*
	 * PEM_ACTION(...), not 0. FILTER: ask for what follows. PEM_KACTION_TREE: and for the
	 * target.
	 */
	uint64_t action;
	uint32_t pid, tid; /* 0: any; the kernel's own numbers */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t distribution;
	uint32_t test_count;
	bool is_copy; /* not what the user asked for, but that and more (rule.c) */
	struct pem_kmod_rule *next; /* of those that probes may still see (rule.c) */
	struct pem_test tests[]; /* checked */
};

/* What a CPU writes with. */
struct pem_kmod_cpu {
	/* Probes under way. Of a CPU without a pool PEM_KMOD_DEPTH, as if no depth was left. */
	uint32_t depth;
	uint32_t number;
	/* process id << 32 | thread id: whose the records after the last one are */
	uint64_t logged_thread;
	/*
	 * The last answer whether a process is of the target: the process, and 1 if it is; 0 while
	 * it changes.
	 */
	unsigned long context;
	uint32_t context_generation; /* of the targets when it was asked */
	uint32_t retired; /* chunks of an overwrite pool: they may be reclaimed */
	uint64_t searched; /* what was offered << 32 | chunks searched in vain since (record.c) */
	struct pem_kmod_pool *pool;
	struct pem_ring ring;
	struct pem_writer writers[PEM_KMOD_DEPTH];
};

/* What a probe is registered with. */
struct pem_kmod_probe_data {
	struct pem_kmod_cpu __percpu *cpus;
	struct pem_kmod_targets *targets; /* NULL: no rule says PEM_KACTION_TREE */
	struct pem_counters *counters; /* NULL: no rule says PEM_KACTION_COUNTERS */
	const struct pem_ring *spare; /* its lane 0 counts what CPUs without a pool raise */
	atomic64_t statistics_lost;
	const struct pem_kmod_rule __rcu *rule[]; /* by the event's index; NULL: not wanted */
};

/* A generated probe, and where it belongs. Its index is the event's in rules and cells. */
struct pem_kmod_probe {
	uint32_t event_id;
	uint32_t fixed_bytes; /* of its record: what predicates may test */
	/* "system:name"; NULL: this kernel has none, or its headers declare none */
	const char *tracepoint;
	/* void (*)(void *data, ...), with the tracepoint's parameters; NULL: the same */
	void *probe;
	bool is_emitted; /* no tracepoint's: the module raises it itself (sampling.h) */
};

extern const struct pem_kmod_probe pem_kmod_probes[];
extern const unsigned int pem_kmod_probe_count;

/*
 * Of the event that sets a CPU's thread (generated): its index, PEM_KMOD_NO_EVENT if there is none,
 * and its record.
 */
#define PEM_KMOD_NO_EVENT (~0u)
extern const unsigned int pem_switch_index;
extern const unsigned int pem_switch_bytes;
extern const uint32_t pem_switch_id;
void pem_switch_fill(uint8_t *record, uint32_t previous_tid, uint32_t pid, uint32_t tid);

/*
 * Has a probe the tracepoint's own prototype? The kernel's headers declare a function for each
 * tracepoint that takes nothing else; it serves to choose among alternatives, and to have the
 * compiler name both prototypes where they differ.
 */
#define PEM_KMOD_FITS(tracepoint, probe)                                                           \
	__builtin_types_compatible_p(typeof(&check_trace_callback_type_##tracepoint),              \
				     void (*)(typeof(&(probe))))
#define PEM_KMOD_CHECK(tracepoint, probe) check_trace_callback_type_##tracepoint(probe)
/* What a choice is about. */
#define PEM_KMOD_YES(system, tracepoint, probe) 1
#define PEM_KMOD_NAME(system, tracepoint, probe) #system ":" #tracepoint
#define PEM_KMOD_PROBE(system, tracepoint, probe) probe

/*
 * An event on its way. Never passed by its address to what is not inlined: so it stays in
 * registers.
 */
struct pem_kevent {
	struct pem_kmod_probe_data *data;
	const struct pem_kmod_rule *rule;
	struct pem_kmod_cpu *cpu;
	struct pem_writer *writer;
	struct pem_cell *cell;
	uint64_t action;
	uint64_t now;
	uint32_t flags;
	uint32_t depth;
};

/* --- counters.c --- */

/*
 * Read the session's counters on this CPU, in front of an event that is about to be recorded, and
 * record that.
 */
void pem_counters_read(struct pem_kmod_probe_data *data, uint32_t event_id);

/* --- record.c --- */

/* Is it wanted here and now, as its action and rule say: target, process, thread, CPU? */
bool pem_kmod_here(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu,
		   const struct pem_kmod_rule *rule, uint64_t action);
/* The same of a context switch: it is wanted if one of the two threads is. */
bool pem_kmod_here_switch(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu,
			  const struct pem_kmod_rule *rule, const struct task_struct *prev,
			  const struct task_struct *next);
/* Count an event that found no writer. */
void pem_kmod_no_lane(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu, uint32_t index,
		      uint32_t flags);
/*
 * Room for a record of at most bytes, after a switch to thread where one is needed. NULL: none, and
 * it is counted.
 */
uint8_t *pem_kmod_reserve(struct pem_kmod_cpu *cpu, struct pem_writer *w, struct pem_cell *cell,
			  uint64_t now, uint32_t bytes, uint64_t thread);
/* The same for the record of a switch itself. */
uint8_t *pem_kmod_reserve_switch(struct pem_kmod_cpu *cpu, struct pem_writer *w,
				 struct pem_cell *cell, uint64_t now, uint32_t bytes);
/* Add a value to what the statistic keeps beside its cell. */
void pem_kmod_add_distribution(const struct pem_ring *ring, const struct pem_kmod_rule *rule,
			       uint32_t lane, uint64_t value);
/* Give a writer's chunk to the consumer. */
void pem_kmod_retire(struct pem_kmod_cpu *cpu, struct pem_writer *w);
/* A chunk of the CPU became full (pool.c). */
void pem_kmod_filled(struct pem_kmod_cpu *cpu);

/* Who a record is of, which follows a switch to that task. */
PEM_INLINE uint64_t pem_thread_of(const struct task_struct *task)
{
	return (uint64_t)(uint32_t)task->tgid << 32 | (uint32_t)task->pid;
}

PEM_INLINE bool pem_begin_flags(struct pem_kevent *e, void *data, uint32_t index, uint64_t drop)
{
	e->data = data;
	e->rule = rcu_dereference_raw(e->data->rule[index]);
	if (unlikely(!e->rule))
		return false;
	e->action = e->rule->action & ~drop;
	e->flags = PEM_ACTION_FLAGS(e->action);
	pem_pin();
	e->cpu = raw_cpu_ptr(e->data->cpus);
	return true;
}

/* Is event index wanted at all? If so, one of pem_reject(), pem_enter() has to follow. */
PEM_INLINE bool pem_begin(struct pem_kevent *e, void *data, uint32_t index)
{
	return pem_begin_flags(e, data, index, 0);
}

/*
 * An interval of scope 'system' begins or ends in whatever process runs: the target is not asked
 * for.
 */
PEM_INLINE bool pem_begin_system(struct pem_kevent *e, void *data, uint32_t index)
{
	return pem_begin_flags(e, data, index, PEM_KACTION_TREE);
}

#define PEM_KMOD_ASKS (PEM_ACTION_FILTER | PEM_KACTION_TREE)

PEM_INLINE bool pem_here(const struct pem_kevent *e)
{
	return pem_kmod_here(e->data, e->cpu, e->rule, e->action);
}

PEM_INLINE bool pem_here_switch(const struct pem_kevent *e, const struct task_struct *prev,
				const struct task_struct *next)
{
	return pem_kmod_here_switch(e->data, e->cpu, e->rule, prev, next);
}

/* Not wanted after all. */
PEM_INLINE void pem_reject(const struct pem_kevent *e)
{
	(void)e;
	pem_unpin();
}

/*
 * From here to pem_end() the CPU's next writer is the probe's. False: there is none; it is counted,
 * and this is its end.
 */
PEM_INLINE bool pem_enter(struct pem_kevent *e, uint32_t index)
{
	e->depth = READ_ONCE(e->cpu->depth);
	if (unlikely(e->depth >= PEM_KMOD_DEPTH)) {
		pem_kmod_no_lane(e->data, e->cpu, index, e->flags);
		pem_unpin();
		return false;
	}
	/* One that interrupts us between these puts the depth back before it returns. */
	WRITE_ONCE(e->cpu->depth, e->depth + 1);
	barrier(); /* the writer is ours before it is used */
	e->writer = &e->cpu->writers[e->depth];
	e->cell = &e->writer->cells[index];
	return true;
}

PEM_INLINE void pem_end(const struct pem_kevent *e)
{
	barrier(); /* and no more used when it is not */
	WRITE_ONCE(e->cpu->depth, e->depth);
	pem_unpin();
}

/* Add a value to the event's statistic; key orders it as an unsigned number. */
PEM_INLINE void pem_stat(const struct pem_kevent *e, uint64_t value, uint64_t key)
{
	pem_cell_add(e->cell, PEM_ACTION_TAG(e->action), value, key);
	if (unlikely(e->flags & PEM_ACTION_DISTRIBUTION))
		pem_kmod_add_distribution(&e->cpu->ring, e->rule, e->writer->lane_index, value);
}

/* Room for a record of at most bytes. NULL: none, and it is counted. */
PEM_INLINE uint8_t *pem_reserve(struct pem_kevent *e, uint32_t bytes)
{
	uint64_t thread = pem_thread_of(current);
	uint8_t *record;

	e->now = pem_clock();
	if (likely(READ_ONCE(e->cpu->logged_thread) == thread)) {
		record = pem_ring_reserve(e->writer, e->now, bytes);
		if (likely(record))
			return record;
	}
	return pem_kmod_reserve(e->cpu, e->writer, e->cell, e->now, bytes, thread);
}

/*
 * The same for a switch to next. Whose records come next is said before the clock is read: what
 * interrupts us later still runs in the thread that is left, finds another one there, and says by a
 * switch of its own that it does.
 */
PEM_INLINE uint8_t *pem_reserve_switch(struct pem_kevent *e, uint32_t bytes,
				       const struct task_struct *next)
{
	uint8_t *record;

	WRITE_ONCE(e->cpu->logged_thread, pem_thread_of(next));
	barrier();
	e->now = pem_clock();
	record = pem_ring_reserve(e->writer, e->now, bytes);
	return likely(record) ? record
			      : pem_kmod_reserve_switch(e->cpu, e->writer, e->cell, e->now, bytes);
}

/* Publish the record, which turned out to be of bytes. */
PEM_INLINE void pem_commit(struct pem_kevent *e, uint32_t event_id, uint32_t bytes)
{
	pem_ring_commit(e->writer, e->cell, e->now, event_id, bytes);
}

/*
 * Copy a kernel string of at most max bytes, NUL included; returns how many that were. One that
 * can't be read is "". Reads aligned words, which never reach into a page that the string does not.
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
