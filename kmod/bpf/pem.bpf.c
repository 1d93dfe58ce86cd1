// SPDX-License-Identifier: GPL-2.0
/*
 * pem.bpf.c - the kernel layer where no module can be loaded: target, filters, statistics and the
 * ring
 *
 * The programs themselves, one per tracepoint event, are generated from the specs
 * (pem_events.bpf.h, by codegen/backends/bpf.c) and call the inlines here. The ring and its
 * ordering are described in pem/kring.h.
 *
 * An event that nobody wants costs its program one load. One that is wanted of a target costs,
 * outside the target, a call for the current process's id and two loads more: the answer of the
 * last look-up is kept per CPU, and sched_switch makes it before the process runs.
 */
/* bpf_tracing.h then calls registers by the kernel's names, as kernel_types.h does. */
#define __VMLINUX_H__

#include <linux/bpf.h>
#include <stdbool.h>

typedef int pid_t;

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <pem/kring.h>
#include <pem/predicate.h>

#include "kernel_types.h"

const volatile struct pem_kconfig pem_config = {.ring_mask = 0xffff};
struct pem_kcontrol pem_control;

/* value_size and max_entries are set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, PEM_KRING_DATA_OFFSET + 0x10000 + PEM_KRING_SLACK_BYTES);
	__uint(max_entries, 1);
} pem_rings SEC(".maps");

/* Process ids of the target; the value says nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, 32768);
} pem_targets SEC(".maps");

/* An event on its way. flags 0: not wanted. */
struct pem_kevent {
	struct pem_kring *ring;
	struct pem_cell *cell;
	uint64_t action;
	uint64_t now;
	uint64_t thread; /* process id << 32 | thread id that the records after it belong to */
	uint32_t flags;
	uint32_t index;
	uint64_t shared; /* its program may be preempted on its CPU by another run of it */
};

#define PEM_TASK_DEAD 0x80 /* TASK_DEAD in the kernel's sched.h */

#define __force /* of sparse, which looks at the module alone */
#include "distribution.bpf.h"

PEM_INLINE struct pem_kring *pem_ring_here(void)
{
	uint32_t cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&pem_rings, &cpu);
}

PEM_INLINE bool pem_is_target(uint32_t pid)
{
	return pid != 0 && bpf_map_lookup_elem(&pem_targets, &pid) != NULL;
}

PEM_INLINE bool pem_set_context(struct pem_kring *ring, uint32_t pid)
{
	bool in = pem_is_target(pid);

	PEM_STORE(ring->context_pid, pid);
	PEM_STORE(ring->context, in ? PEM_KRING_CONTEXT_IN : PEM_KRING_CONTEXT_OUT);
	return in;
}

/* Is the process pid, which runs on this CPU, of the target? Looked up once per switch. */
PEM_INLINE bool pem_context_in(struct pem_kring *ring, uint32_t pid)
{
	uint32_t context = PEM_LOAD(ring->context);

	if (context == PEM_KRING_CONTEXT_UNKNOWN || PEM_LOAD(ring->context_pid) != pid)
		return pem_set_context(ring, pid);
	return context == PEM_KRING_CONTEXT_IN;
}

PEM_INLINE bool pem_filter_task(const struct pem_kfilter *filter, uint32_t pid, uint32_t tid)
{
	uint32_t want_pid = PEM_LOAD(filter->pid), want_tid = PEM_LOAD(filter->tid);

	return (want_pid == 0 || want_pid == pid) && (want_tid == 0 || want_tid == tid);
}

PEM_INLINE bool pem_filter_cpu(const struct pem_kfilter *filter)
{
	uint32_t cpu = PEM_LOAD(filter->cpu);

	return cpu == PEM_NO_CPU || cpu == bpf_get_smp_processor_id();
}

PEM_INLINE bool pem_filter(uint32_t index, uint64_t thread)
{
	const struct pem_kfilter *filter = &pem_control.filter[index];

	return pem_filter_cpu(filter) && pem_filter_task(filter, thread >> 32, (uint32_t)thread);
}

/* Is the event of this index, of which action is wanted, to be raised here and now? */
PEM_INLINE bool pem_begin_action(struct pem_kevent *e, uint32_t index, uint64_t action)
{
	e->action = action;
	if (e->action == 0)
		return false;
	e->ring = pem_ring_here();
	if (!e->ring)
		return false;
	/*
	 * A call that statistics of the whole machine can do without: it takes as long as they do.
	 */
	e->thread = 0;
	if (e->action & (PEM_KACTION_TREE | PEM_ACTION_FILTER | PEM_ACTION_LOG))
		e->thread = bpf_get_current_pid_tgid();
	if (e->action & PEM_KACTION_TREE && !pem_context_in(e->ring, e->thread >> 32))
		return false;
	if (e->action & PEM_ACTION_FILTER && !pem_filter(index, e->thread))
		return false;
	e->flags = PEM_ACTION_FLAGS(e->action);
	e->index = index;
	e->cell = &e->ring->cells[index];
	e->shared = 0;
	return true;
}

PEM_INLINE bool pem_begin(struct pem_kevent *e, uint32_t index)
{
	return pem_begin_action(e, index, PEM_LOAD(pem_control.action[index]));
}

/*
 * An interval of scope 'system' begins or ends in whatever process runs: the target is not asked
 * for.
 */
__attribute__((unused)) PEM_INLINE bool pem_begin_system(struct pem_kevent *e, uint32_t index)
{
	return pem_begin_action(e, index,
				PEM_LOAD(pem_control.action[index]) & ~(uint64_t)PEM_KACTION_TREE);
}

/* --- predicates --- */

/*
 * Test i of an event's predicate. Its values are constants to the verifier, which so follows the
 * jumps and finds their end.
 */
__attribute__((unused)) PEM_INLINE void pem_test_load(struct pem_test *test, uint32_t index,
						      uint64_t i)
{
	const volatile struct pem_test *from =
		&pem_config.test[(pem_config.predicate[index].first + i) & (PEM_KTESTS_MAX - 1)];

	test->mask = from->mask;
	test->flip = from->flip;
	test->lo = from->lo;
	test->span = from->span;
	test->end = from->end;
	test->is_float = from->is_float;
	test->on_true = from->on_true;
	test->on_false = from->on_false;
}

/* What is stored and read back is a number to the verifier: see pem_number. */
__attribute__((unused)) PEM_INLINE uint64_t pem_number_of(struct pem_kevent *e, uint32_t index,
							  uint64_t word)
{
	PEM_STORE(e->ring->scratch[index], word);
	return PEM_LOAD(e->ring->scratch[index]);
}

/* A switch that is not logged after all: the next record has to be preceded by one. */
__attribute__((unused)) PEM_INLINE void pem_reject_sched_switch(struct pem_kevent *e)
{
	if (e->flags & PEM_ACTION_LOG)
		PEM_STORE(e->ring->logged_thread, PEM_KRING_NO_THREAD);
}

/*
 * A thread that leaves the CPU for good takes its process out of the target, if it was the last
 * one; not sched_process_exit does, after which a process gives back what it had. Threads but the
 * first give their descriptions up before; the first one's stays until its parent waits for it, so
 * it counts as gone once it has an exit state.
 */
PEM_INLINE bool pem_is_last(struct task_struct *prev)
{
	return prev->signal->live.counter == 0 && prev->signal->nr_threads <= 1 &&
	       prev->group_leader->exit_state;
}

/*
 * By helpers: for each pointer that a program loads from a task newer kernels look through all
 * names of their types.
 */
PEM_INLINE bool pem_is_last_read(struct task_struct *prev)
{
	return BPF_CORE_READ(prev, signal, live.counter) == 0 &&
	       BPF_CORE_READ(prev, signal, nr_threads) <= 1 &&
	       BPF_CORE_READ(prev, group_leader, exit_state);
}

PEM_INLINE void pem_forget_dead(struct task_struct *prev)
{
	uint32_t pid = prev->tgid;

	if (prev->__state & PEM_TASK_DEAD &&
	    (pem_config.no_reading ? pem_is_last(prev) : pem_is_last_read(prev)))
		bpf_map_delete_elem(&pem_targets, &pid);
}

/*
 * sched_switch(preempt, prev, next): keeps the CPU's context; wanted if prev or next is. While any
 * kernel event is logged so are switches, because they give the others their process and thread.
 */
PEM_INLINE bool pem_begin_sched_switch(struct pem_kevent *e, uint32_t index,
				       unsigned long long *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	const struct pem_kfilter *filter = &pem_control.filter[index];
	bool prev_in = false, next_in = false;
	uint32_t flags;

	e->ring = pem_ring_here();
	if (!e->ring)
		return false;
	if (pem_config.tree) {
		prev_in = pem_context_in(e->ring, prev->tgid);
		if (prev_in)
			pem_forget_dead(prev);
		next_in = pem_set_context(e->ring, next->tgid);
	}
	e->action = PEM_LOAD(pem_control.action[index]);
	if (PEM_LOAD(pem_control.logging))
		e->action |= PEM_LOAD(pem_control.context_flags);
	if (e->action == 0)
		return false;
	if (e->action & PEM_KACTION_TREE && !prev_in && !next_in)
		return false;
	if (e->action & PEM_ACTION_FILTER &&
	    !(pem_filter_cpu(filter) && (pem_filter_task(filter, prev->tgid, prev->pid) ||
					 pem_filter_task(filter, next->tgid, next->pid))))
		return false;
	e->flags = PEM_ACTION_FLAGS(e->action);
	e->index = index;
	e->cell = &e->ring->cells[index];
	e->shared = 0;
	e->thread = (uint64_t)(uint32_t)next->tgid << 32 | (uint32_t)next->pid;
	/*
	 * Else the answer is kept until it is asked for again, and all between is walked once for
	 * each.
	 */
	flags = e->flags;
	PEM_HIDE(flags);
	if (flags & PEM_ACTION_LOG)
		PEM_STORE(e->ring->logged_thread, e->thread);
	return true;
}

/* sched_process_fork(parent, child): a child of the target belongs to it. */
PEM_INLINE bool pem_begin_sched_process_fork(struct pem_kevent *e, uint32_t index,
					     unsigned long long *ctx)
{
	struct task_struct *parent = (struct task_struct *)ctx[0];
	struct task_struct *child = (struct task_struct *)ctx[1];
	uint32_t pid = child->tgid, parent_pid = parent->tgid, one = 1;

	if (pem_config.tree == PEM_KTREE_FOLLOW && pid != parent_pid && pem_is_target(parent_pid)) {
		if (bpf_map_update_elem(&pem_targets, &pid, &one, BPF_ANY))
			__sync_fetch_and_add(&pem_control.targets_lost, 1);
	}
	return pem_begin(e, index);
}

/*
 * What is stored and read back is a number to the verifier, which lets nobody add up or compare the
 * pointers that tracepoints pass. While a statistic changes its readers do not use the sum, so it
 * may hold anything.
 */
PEM_INLINE uint64_t pem_number(struct pem_cell *cell, uint64_t word)
{
	PEM_STORE(cell->sum, word);
	return PEM_LOAD(cell->sum);
}

/*
 * Add a value to the event's statistic on this CPU: the steps of pem_cell_add(), with what the
 * verifier needs between.
 */
PEM_INLINE void pem_stat(struct pem_kevent *e, uint64_t value, uint64_t key)
{
	uint64_t tag = PEM_ACTION_TAG(e->action), n, sum;
	struct pem_cell *cell = e->cell;

	if (cell->tag != tag)
		pem_cell_reset(cell, tag);
	n = pem_cell_begin(cell);
	if (PEM_ACTION_FIELD(e->action) == PEM_NO_FIELD) {
		PEM_STORE(cell->stat_end, n); /* no value is to be seen before it */
		return;
	}
	sum = cell->sum;
	key = pem_number(cell, key);
	value = pem_number(cell, value);
	pem_cell_put(cell, sum, value, key);
	pem_cell_end(cell, n);
	if (e->flags & PEM_ACTION_DISTRIBUTION)
		pem_add_distribution(e->index, e->action, value);
}

/* Of the event that sets a CPU's thread (generated): its index, bytes, and how to write one. */
PEM_INLINE uint32_t pem_switch_index(void);
PEM_INLINE uint32_t pem_switch_bytes(void);
PEM_INLINE void pem_switch_fill(struct pem_kevent *e, uint8_t *record, uint32_t previous_tid,
				uint32_t pid, uint32_t tid);

PEM_INLINE void pem_put_clock(struct pem_kevent *e, uint8_t *record, uint64_t epoch)
{
	struct pem_kring_clock *clock = (struct pem_kring_clock *)record;

	PEM_STORE(e->ring->clock_epoch, epoch);
	clock->monotonic_ns = e->now;
	clock->header.clock_low = (uint32_t)e->now;
	/* BA */
	PEM_RELEASE(clock->header.event_id, PEM_KRING_CLOCK_ID);
}

/* Not this program's cell: another may be interrupted while it counts, so this count is atomic. */
PEM_INLINE void pem_put_switch(struct pem_kevent *e, uint8_t *record, uint64_t previous_thread)
{
	uint32_t previous_tid =
		previous_thread == PEM_KRING_NO_THREAD ? 0 : (uint32_t)previous_thread;

	PEM_STORE(e->ring->logged_thread, e->thread);
	__sync_fetch_and_add(&e->ring->cells[pem_switch_index()].produced, 1);
	pem_switch_fill(e, record, previous_tid, e->thread >> 32, (uint32_t)e->thread);
}

PEM_INLINE void pem_count(const struct pem_kevent *e, uint64_t *count)
{
	if (e->shared)
		__sync_fetch_and_add(count, 1);
	else
		PEM_STORE(*count, *count + 1);
}

PEM_INLINE uint64_t pem_epoch(uint64_t now)
{
	return (now >> 31) + 1;
}

/*
 * Where position at lies. The mask ends in zeros, for atomic operations must be aligned, which the
 * verifier has to see.
 */
PEM_INLINE uint8_t *pem_at(struct pem_kring *ring, uint64_t at)
{
	return (uint8_t *)ring + PEM_KRING_DATA_OFFSET + (at & pem_config.ring_mask & ~(uint64_t)7);
}

/* bytes if a is not b, else 0, without a jump */
PEM_INLINE uint64_t pem_unless_equal(uint64_t a, uint64_t b, uint32_t bytes)
{
	uint64_t differ = a ^ b, negated = -differ;

	PEM_HIDE(negated);
	differ = (differ | negated) >> 63;
	PEM_HIDE(differ);
	return differ * bytes;
}

/*
 * Was head what the ring's head is moved on from? Clang makes two jumps of the comparison if it
 * knows what it is of.
 */
PEM_INLINE bool pem_move_head(struct pem_kring *ring, uint64_t head, uint64_t bytes)
{
	/* bb */
	uint64_t was = __sync_val_compare_and_swap(&ring->head, head, head + bytes);

	PEM_HIDE(was);
	return was == head;
}

#define PEM_NO_POSITION (~0ULL)

/*
 * Take bytes of the ring and what must precede them, which is written. Where the bytes are;
 * PEM_NO_POSITION: no room, or always interrupted by who took some. A global function, as
 * pem_add_distribution() is: the verifier takes what it returns for any number, and so walks what
 * comes after it once. Nothing is taken where there is no room: the swap then only tells whether
 * tail belongs to head.
 */
__attribute__((noinline)) uint64_t pem_take_more(uint64_t thread, uint64_t now, uint32_t bytes)
{
	struct pem_kevent e = {.ring = pem_ring_here(), .thread = thread, .now = now};
	uint64_t epoch = pem_epoch(now), head, used, previous, clock_bytes, before;
	int64_t beyond; /* what there is room for: less than 0 if there is room */
	uint32_t i;

	if (!e.ring)
		return PEM_NO_POSITION;
#pragma clang loop unroll(disable)
	for (i = 0; i < PEM_KRING_TRIES; i++) {
		head = PEM_LOAD(e.ring->head);
		used = head - PEM_LOAD(e.ring->tail); /* D */
		clock_bytes = pem_unless_equal(PEM_LOAD(e.ring->clock_epoch), epoch,
					       sizeof(struct pem_kring_clock));
		previous = PEM_LOAD(e.ring->logged_thread);
		before = clock_bytes + pem_unless_equal(previous, thread, pem_switch_bytes());
		beyond = (int64_t)(used + before + bytes - pem_config.ring_mask - 2);
		/* all ones, or 0: also where the tail is ahead */
		beyond = (beyond & ~(int64_t)used) >> 63;
		PEM_HIDE(beyond);
		if (pem_move_head(e.ring, head, (before + bytes) & (uint64_t)beyond))
			goto found;
	}
	return PEM_NO_POSITION;
found:
	if (!beyond)
		return PEM_NO_POSITION;
	if (clock_bytes)
		pem_put_clock(&e, pem_at(e.ring, head), epoch);
	if (previous != thread)
		pem_put_switch(&e, pem_at(e.ring, head + clock_bytes), previous);
	return head + before;
}

/* The same. Mostly nothing must precede them, and nobody interrupts. */
PEM_INLINE uint64_t pem_take(const struct pem_kevent *e, uint32_t bytes)
{
	uint64_t most = (uint64_t)pem_config.ring_mask + 1 - bytes;
	struct pem_kring *ring = e->ring;
	uint64_t head = PEM_LOAD(ring->head);

	if (head - PEM_LOAD(ring->tail) <= most && /* D */
	    PEM_LOAD(ring->clock_epoch) == pem_epoch(e->now) &&
	    PEM_LOAD(ring->logged_thread) == e->thread && pem_move_head(ring, head, bytes))
		return head;
	return pem_take_more(e->thread, e->now, bytes);
}

/*
 * Room for a record of bytes (a constant, a multiple of 8), zeroed; NULL: none, and the record is
 * counted as discarded. After a loss the next record comes with a switch, because the lost one may
 * have been one.
 */
PEM_INLINE uint8_t *pem_reserve(struct pem_kevent *e, uint32_t bytes)
{
	uint64_t at;

	e->now = bpf_ktime_get_ns();
	pem_count(e, &e->cell->produced);
	at = pem_take(e, bytes);
	if (at == PEM_NO_POSITION) {
		pem_count(e, &e->cell->discarded);
		PEM_STORE(e->ring->logged_thread, PEM_KRING_NO_THREAD);
		return NULL;
	}
	return pem_at(e->ring, at);
}

PEM_INLINE void pem_commit(struct pem_kevent *e, uint8_t *record, uint32_t event_id)
{
	struct pem_record_header *header = (struct pem_record_header *)record;

	header->clock_low = (uint32_t)e->now;
	/* BA */
	PEM_RELEASE(header->event_id, event_id);
}

/*
 * An argument that is 'const void *'. Before Linux 6.16 the verifier takes what it points to for a
 * type that it does not know, and refuses to load it; a helper may read it all the same. A load
 * from the context is one instruction with a constant offset, or it is refused, too: so the
 * compiler has no choice.
 */
#define pem_void_argument(context, position)                                                       \
	({                                                                                         \
		unsigned long long value_ = 0;                                                     \
                                                                                                   \
		if (pem_config.loads_void)                                                         \
			__asm__ volatile("%0 = *(u64 *)(%1 + %2)"                                  \
					 : "=r"(value_)                                            \
					 : "r"(context), "i"((position)*8));                       \
		else                                                                               \
			bpf_probe_read_kernel(&value_, sizeof(value_), (context) + (position));    \
		value_;                                                                            \
	})

/*
 * An argument that points to a function: what it points to is no structure to the verifier, which
 * refuses to load it.
 */
__attribute__((unused)) PEM_INLINE unsigned long long
pem_function_argument(const unsigned long long *context, uint32_t position)
{
	unsigned long long value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), context + position);
	return value;
}

/* Copy a kernel string of at most max bytes, NUL included; one that can't be read is "". */
__attribute__((unused)) PEM_INLINE void pem_string(uint8_t *to, uint32_t max, const void *from)
{
	bpf_probe_read_kernel_str(to, max, from);
}

/* Copy bytes of the kernel's memory; what can't be read is zero. */
__attribute__((unused)) PEM_INLINE void pem_array(uint8_t *to, uint32_t bytes, const void *from)
{
	bpf_probe_read_kernel(to, bytes, from);
}

#include "pem_events.bpf.h"

#include "probe.bpf.h"

char pem_license[] SEC("license") = "GPL";
