/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pem_kmod.h - what the module's probes call: is the event wanted, room for a record, its commit,
 * its statistic
 *
 * The probes are generated from the specs, one for each tracepoint event (pem_kmod_events.h, by
 * codegen/backends/kmod.c). Records are laid out as pem/abi.h says, and the ring as pem/ring.h
 * says, as in programs. This file holds the steps of every event. record.c holds the steps of some
 * events only, such as beginning a chunk. Not here: making a session and its pools (session.c,
 * pool.c), registering probes with tracepoints (attach.c).
 *
 * Concurrency: a probe runs with preemption off. It writes only memory of its CPU. A probe may
 * interrupt another probe on the same CPU (interrupt, NMI, a fault while a probe reads memory).
 * Each depth of nesting has its own writer, and so its own lane and chunk. So nothing here needs a
 * lock. A session is set up before its first probe is registered. It is taken down after
 * tracepoint_synchronize_unregister() has waited for the last probe. Only rules change between. A
 * rule does not change once probes can see it (rule.c).
 */
#ifndef PEM_KMOD_H
#define PEM_KMOD_H

/* A unit test compiles this file in user space, with stand-ins for the kernel's functions. */
#ifdef __KERNEL__
#include "compat.h"

#include <linux/atomic.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>
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

/* thread, soft interrupt, interrupt, NMI. A fault in one of them takes the next depth. */
#define PEM_KMOD_DEPTH 4

struct pem_counters;
struct pem_kmod_pool;
struct pem_kmod_targets;

/* The demand of one event, as probes see it through one pointer. It does not change then. */
struct pem_kmod_rule {
	/*
	 * PEM_ACTION(...), not 0. With PEM_ACTION_FILTER a probe tests the members below. With
	 * PEM_KACTION_TREE it also asks whether the process is a target.
	 */
	uint64_t action;
	/* Process and thread, as the kernel numbers them globally. 0: any. */
	uint32_t pid, tid;
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t distribution;
	uint32_t test_count;
	/* Not the user's rule but a copy with more flags (rule.c). */
	bool is_copy;
	/* Next in the list of retired rules (rule.c). */
	struct pem_kmod_rule *next;
	/* The predicate. It was checked when the rule was made. */
	struct pem_test tests[];
};

/* State of one CPU's probes. */
struct pem_kmod_cpu {
	/*
	 * Number of probes that run now. A CPU without a pool has PEM_KMOD_DEPTH here, so no probe
	 * enters.
	 */
	uint32_t depth;
	uint32_t number;
	/* process id << 32 | thread id that the next record of this CPU belongs to */
	uint64_t logged_thread;
	/*
	 * The last answer to "is this process a target?": the process, with bit 0 set if it is one.
	 * 0 while the answer changes.
	 */
	unsigned long context;
	uint32_t context_generation; /* targets->generation when the answer was found */
	/* Number of chunks retired in an overwrite pool. They may be reclaimed. */
	uint32_t retired;
	/* offered() of record.c << 32 | number of chunks searched in vain since that offer */
	uint64_t searched;
	struct pem_kmod_pool *pool;
	struct pem_ring ring;
	struct pem_writer writers[PEM_KMOD_DEPTH];
};

/* What a probe is registered with. */
struct pem_kmod_probe_data {
	struct pem_kmod_cpu __percpu *cpus;
	struct pem_kmod_targets *targets; /* NULL: no rule says PEM_KACTION_TREE */
	struct pem_counters *counters; /* NULL: no rule says PEM_KACTION_COUNTERS */
	const struct pem_ring *spare; /* Its lane 0 counts events of CPUs without a pool. */
	atomic64_t statistics_lost;
	/* Indexed by the event's index; NULL: not wanted. */
	const struct pem_kmod_rule __rcu *rule[];
};

/*
 * A generated probe and its tracepoint. Its index in pem_kmod_probes is the index of its event in
 * rules and cells.
 */
struct pem_kmod_probe {
	uint32_t event_id;
	uint32_t fixed_bytes; /* bytes of the record that a predicate may test */
	/* "system:name". NULL: this kernel has no such tracepoint, or its headers declare none. */
	const char *tracepoint;
	/* void (*)(void *data, ...), with the tracepoint's parameters. NULL as for tracepoint. */
	void *probe;
	/* The module raises the event itself (sampling.h). It has no tracepoint. */
	bool is_emitted;
};

extern const struct pem_kmod_probe pem_kmod_probes[];
extern const unsigned int pem_kmod_probe_count;

/*
 * The event that sets a CPU's thread, generated: its index, the bytes of its record, its id, and a
 * function that fills its record. The index is PEM_KMOD_NO_EVENT if there is no such event.
 */
#define PEM_KMOD_NO_EVENT (~0u)
extern const unsigned int pem_switch_index;
extern const unsigned int pem_switch_bytes;
extern const uint32_t pem_switch_id;
void pem_switch_fill(uint8_t *record, uint32_t previous_tid, uint32_t pid, uint32_t tid);

/*
 * Has a probe the tracepoint's own prototype? The kernel's headers declare a function for each
 * tracepoint that accepts only this prototype. PEM_KMOD_FITS chooses among alternatives by it.
 */
#define PEM_KMOD_FITS(tracepoint, probe)                                                           \
	__builtin_types_compatible_p(typeof(&check_trace_callback_type_##tracepoint),              \
				     void (*)(typeof(&(probe))))
/* May a probe follow this argument? A spec's expression asks itself where it may be NULL. */
#define PEM_HAS(argument) 1
/* What a choice among alternatives results in. */
#define PEM_KMOD_YES(system, tracepoint, probe) 1
#define PEM_KMOD_NAME(system, tracepoint, probe) #system ":" #tracepoint
#define PEM_KMOD_PROBE(system, tracepoint, probe) probe

/*
 * An event while its probe runs. Its address is never passed to a function that is not inlined, so
 * that it stays in registers.
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
 * Read the session's counters on this CPU and record them. A probe calls it before it records an
 * event for which the session reads counters.
 */
void pem_counters_read(struct pem_kmod_probe_data *data, uint32_t event_id);

/* --- record.c --- */

/*
 * Is the event wanted here and now? Tests what its action and rule ask for: target, process,
 * thread, CPU.
 */
bool pem_kmod_here(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu,
		   const struct pem_kmod_rule *rule, uint64_t action);
/* As pem_kmod_here(), for a context switch: it is wanted if one of its two threads is. */
bool pem_kmod_here_switch(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu,
			  const struct pem_kmod_rule *rule, const struct task_struct *prev,
			  const struct task_struct *next);
/* As pem_kmod_here(), for an event of a thread that need not be the one that runs. */
bool pem_kmod_here_of(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu,
		      const struct pem_kmod_rule *rule, uint64_t action,
		      const struct task_struct *task);
/* Count an event that found no writer. */
void pem_kmod_no_lane(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu, uint32_t index,
		      uint32_t flags);
/*
 * Reserve room for a record of at most this number of bytes. Writes a switch to thread before it
 * where one is needed. NULL: there is no room. The record is then counted as discarded.
 */
uint8_t *pem_kmod_reserve(struct pem_kmod_cpu *cpu, struct pem_writer *w, struct pem_cell *cell,
			  uint64_t now, uint32_t bytes, uint64_t thread);
/* As pem_kmod_reserve(), for the record of a switch itself. */
uint8_t *pem_kmod_reserve_switch(struct pem_kmod_cpu *cpu, struct pem_writer *w,
				 struct pem_cell *cell, uint64_t now, uint32_t bytes);
/* Add a value to the distribution of the statistic. */
void pem_kmod_add_distribution(const struct pem_ring *ring, const struct pem_kmod_rule *rule,
			       uint32_t lane, uint64_t value);
/* Give the chunk of a writer to the consumer. */
void pem_kmod_retire(struct pem_kmod_cpu *cpu, struct pem_writer *w);
/* Wake the consumer if needed: a chunk of the CPU became full (pool.c). */
void pem_kmod_filled(struct pem_kmod_cpu *cpu);

/* Process and thread of the records that follow a switch to this task. */
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

/* Is the event of this index wanted at all? If true, pem_reject() or pem_enter() must follow. */
PEM_INLINE bool pem_begin(struct pem_kevent *e, void *data, uint32_t index)
{
	return pem_begin_flags(e, data, index, 0);
}

/*
 * As pem_begin(), for an interval of scope 'system'. Such an interval begins or ends in any
 * process, so the target is not tested.
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

PEM_INLINE bool pem_here_of(const struct pem_kevent *e, const struct task_struct *task)
{
	return pem_kmod_here_of(e->data, e->cpu, e->rule, e->action, task);
}

/* End an event that is not wanted after all. */
PEM_INLINE void pem_reject(const struct pem_kevent *e)
{
	(void)e;
	pem_unpin();
}

/*
 * Take the CPU's next writer for this probe until pem_end(). False: there is no writer left. The
 * event is then counted and ended.
 */
PEM_INLINE bool pem_enter(struct pem_kevent *e, uint32_t index)
{
	e->depth = READ_ONCE(e->cpu->depth);
	if (unlikely(e->depth >= PEM_KMOD_DEPTH)) {
		pem_kmod_no_lane(e->data, e->cpu, index, e->flags);
		pem_unpin();
		return false;
	}
	/*
	 * A probe that interrupts between the load and the store restores the depth before it
	 * returns.
	 */
	WRITE_ONCE(e->cpu->depth, e->depth + 1);
	/* The depth is taken before the writer is used. */
	barrier();
	e->writer = &e->cpu->writers[e->depth];
	e->cell = &e->writer->cells[index];
	return true;
}

PEM_INLINE void pem_end(const struct pem_kevent *e)
{
	/* The writer is not used after the depth is given back. */
	barrier();
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

/*
 * Reserve room for a record of at most this number of bytes. NULL: there is no room. The record is
 * then counted as discarded.
 */
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
 * As pem_reserve(), for an event of a thread that need not be the one that runs: if that one is not
 * observed, the record belongs to no thread.
 */
PEM_INLINE uint8_t *pem_reserve_of(struct pem_kevent *e, uint32_t bytes)
{
	if (pem_kmod_here(e->data, e->cpu, e->rule, e->action & PEM_KACTION_TREE))
		return pem_reserve(e, bytes);
	e->now = pem_clock();
	return pem_kmod_reserve(e->cpu, e->writer, e->cell, e->now, bytes, 0);
}

/* For fields of role 'interrupt': 1 if an interrupt raises the event in the thread's place. */
PEM_INLINE uint8_t pem_interrupt(void)
{
	return in_nmi() || in_hardirq() || in_serving_softirq();
}

/*
 * As pem_reserve(), for a switch to next. It stores logged_thread before it reads the clock. A
 * probe that interrupts after that still runs in the thread that is being left. It finds another
 * thread in logged_thread and so writes a switch of its own.
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

/* Publish the record. bytes is its final length. */
PEM_INLINE void pem_commit(struct pem_kevent *e, uint32_t event_id, uint32_t bytes)
{
	pem_ring_commit(e->writer, e->cell, e->now, event_id, bytes);
}

/*
 * Copy a kernel string of at most max bytes, including the NUL. Returns the number of bytes copied.
 * A string that can't be read becomes "". The function reads aligned words, so it never reads a
 * page that the string does not reach.
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

#ifdef __KERNEL__
/*
 * Is the call that begins or ends with these registers pem's own (pem/internal.h)? Calls of a
 * loader for pem's libraries are not recognized here.
 */
static inline bool pem_is_internal(const struct pem_kevent *e, const struct pt_regs *regs,
				   bool begins)
{
	(void)e;
	(void)begins;
#if defined(CONFIG_X86_64)
	return (regs->bx ^ regs->ip) == PEM_INTERNAL_CALL;
#elif defined(CONFIG_ARM64)
	return (regs->regs[15] ^ regs->pc) == PEM_INTERNAL_CALL;
#else
	return false;
#endif
}

static inline const char *pem_comm(const struct task_struct *task)
{
	return task->comm;
}
#endif

/* Copy bytes of the kernel's memory. If they can't be read, all are zero. */
static inline void pem_array(uint8_t *to, uint32_t bytes, const void *from)
{
	if (copy_from_kernel_nofault(to, from, bytes))
		memset(to, 0, bytes);
}

#endif
