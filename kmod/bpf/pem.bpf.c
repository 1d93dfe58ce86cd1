// SPDX-License-Identifier: GPL-2.0-only
/*
 * pem.bpf.c - the kernel layer without a module: target, filters, statistics and the ring
 *
 * The programs, one for each tracepoint event, are generated from the specs (pem_events.bpf.h, by
 * codegen/backends/bpf.c). They call the inlines here. pem/kring.h describes the ring and its
 * ordering.
 *
 * An event without a demand costs its program one load. If it is demanded for a target, other
 * processes pay for a call that gets the process's id and for two more loads. Each CPU keeps the
 * answer of the last look-up, and sched_switch makes it before the process runs.
 */
/* Makes bpf_tracing.h use the kernel's names of registers, as kernel_types.h does. */
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

/* Process ids of the target. The value is not used. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, 32768);
} pem_targets SEC(".maps");

/* For each event, the processes that raised it. max_entries is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(key_size, 8);
	__uint(value_size, sizeof(struct pem_kprocess));
	__uint(max_entries, PEM_KPROCESSES_MAX);
} pem_processes SEC(".maps");

/* An event while its program runs. flags 0: not wanted. */
struct pem_kevent {
	struct pem_kring *ring;
	struct pem_cell *cell;
	uint64_t action;
	uint64_t now;
	uint64_t thread; /* process id << 32 | thread id that the records after it belong to */
	uint32_t flags;
	uint32_t index;
	uint32_t of; /* the process that the event is of; 0: the one that runs */
	uint64_t shared; /* The program may be preempted on its CPU by another run of itself. */
	/* Of an event of a file: files.bpf.h. */
	struct vfsmount *mount; /* With 'dentry' its path; NULL: the descriptor is no file. */
	struct dentry *dentry;
	struct inode *inode;
	uint64_t *told;
	uint64_t told_mark, path; /* path: address in the program's memory */
	uint32_t descriptor;
	uint32_t kind; /* of the file: st_mode >> 12 */
	uint32_t address_bytes;
	struct sock *sock; /* of a socket; otherwise NULL */
	uint64_t address; /* in the program's memory, of whom the call sends or connects to; or 0 */
};

#define PEM_TASK_DEAD 0x80 /* TASK_DEAD in the kernel's sched.h */

#define __force /* A word of sparse, which checks only the module. */
/*
 * Since 6.14 the verifier takes each argument of a module's tracepoint for one that may be NULL,
 * which a program has to ask before it follows it.
 */
#define PEM_HAS(argument) (argument)
#include "distribution.bpf.h"
#include "inner.bpf.h"

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

/* Is the process pid, which runs on this CPU, a target? The look-up is done once per switch. */
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

/* Is the event of this index, whose demand is action, wanted here and now? */
PEM_INLINE bool pem_begin_action(struct pem_kevent *e, uint32_t index, uint64_t action)
{
	e->action = action;
	if (e->action == 0)
		return false;
	e->ring = pem_ring_here();
	if (!e->ring)
		return false;
	/*
	 * Statistics of the whole machine need no thread. The call takes as long as they do, so it
	 * is left out for them.
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
	e->of = 0;
	e->shared = 0;
	return true;
}

PEM_INLINE bool pem_begin(struct pem_kevent *e, uint32_t index)
{
	return pem_begin_action(e, index, PEM_LOAD(pem_control.action[index]));
}

/* --- predicates --- */

/*
 * Load test i of an event's predicate. Its values are constants to the verifier. So it follows only
 * the jumps that are taken, and finds their end.
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

/* Makes a value a number to the verifier, as pem_number() does. */
__attribute__((unused)) PEM_INLINE uint64_t pem_number_of(struct pem_kevent *e, uint32_t index,
							  uint64_t word)
{
	PEM_STORE(e->ring->scratch[index], word);
	return PEM_LOAD(e->ring->scratch[index]);
}

/* End a switch that is not logged after all. The next record must then be preceded by a switch. */
__attribute__((unused)) PEM_INLINE void pem_reject_sched_switch(struct pem_kevent *e)
{
	if (e->flags & PEM_ACTION_LOG)
		PEM_STORE(e->ring->logged_thread, PEM_KRING_NO_THREAD);
}

/*
 * Does the last thread of a process leave its CPU for good? Its process is then no target any more.
 * sched_process_exit would be too early, because after it a process still frees what it had. All
 * threads but the first free their descriptions before. The first thread's description stays until
 * its parent waits for it. So this thread counts as gone once it has an exit state.
 */
PEM_INLINE bool pem_is_last(struct task_struct *prev)
{
	return prev->signal->live.counter == 0 && prev->signal->nr_threads <= 1 &&
	       prev->group_leader->exit_state;
}

/*
 * As pem_is_last(), with helpers. For each pointer that a program itself loads from a task, newer
 * kernels search all names of its types, which is slow.
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
 * For sched_switch(preempt, prev, next): keep the CPU's context. The switch is wanted if prev or
 * next is. While any kernel event is logged, switches are logged, too, because they give the other
 * records their process and thread.
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
	e->of = 0;
	e->shared = 0;
	e->thread = (uint64_t)(uint32_t)next->tgid << 32 | (uint32_t)next->pid;
	/*
	 * Without PEM_HIDE the compiler keeps the answer until its next use, and the verifier walks
	 * all code between once for each answer.
	 */
	flags = e->flags;
	PEM_HIDE(flags);
	if (flags & PEM_ACTION_LOG)
		PEM_STORE(e->ring->logged_thread, e->thread);
	return true;
}

/* For sched_process_fork(parent, child): the child of a target becomes a target. */
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
	pem_note_inner(child);
	return pem_begin(e, index);
}

/*
 * Turn a pointer into a number. The verifier forbids adding or comparing the pointers that
 * tracepoints pass, but to it a value that was stored and read back is a number. Readers do not use
 * the sum while a statistic changes, so the sum may hold any value.
 */
PEM_INLINE uint64_t pem_number(struct pem_cell *cell, uint64_t word)
{
	PEM_STORE(cell->sum, word);
	return PEM_LOAD(cell->sum);
}

/*
 * Add a value to the part of a process; of 0: of the one that runs. Where the map has no room for
 * one more, the event is only in the cell. Each entry has one writer on a CPU, as the event's cell
 * has. A global function: pem_add_distribution() says why.
 */
__attribute__((noinline)) int pem_add_process(uint32_t index, uint64_t action, uint64_t value,
					      uint32_t of)
{
	uint64_t key = (uint64_t)index << 32 | (of ? of : bpf_get_current_pid_tgid() >> 32);
	struct pem_kprocess *part = bpf_map_lookup_elem(&pem_processes, &key), none = {0};

	if (!part) {
		bpf_map_update_elem(&pem_processes, &key, &none, BPF_NOEXIST);
		part = bpf_map_lookup_elem(&pem_processes, &key);
	}
	if (!part)
		return 0;
	if (part->tag != PEM_ACTION_TAG(action)) {
		PEM_STORE(part->count, 0);
		PEM_STORE(part->sum, 0);
		PEM_STORE(part->tag, PEM_ACTION_TAG(action));
	}
	PEM_STORE(part->sum, part->sum + value);
	PEM_STORE(part->count, part->count + 1);
	return 0;
}

/*
 * Add a value to the event's statistic on this CPU. The steps are those of pem_cell_add(), with
 * additions that the verifier needs.
 */
PEM_INLINE void pem_stat(struct pem_kevent *e, uint64_t value, uint64_t key)
{
	uint64_t tag = PEM_ACTION_TAG(e->action), n, sum;
	struct pem_cell *cell = e->cell;

	if (cell->tag != tag)
		pem_cell_reset(cell, tag);
	n = pem_cell_begin(cell);
	if (PEM_ACTION_FIELD(e->action) == PEM_NO_FIELD) {
		PEM_STORE(cell->stat_end, n); /* stat_end is stored before any value */
		if (pem_config.by_process)
			pem_add_process(e->index, e->action, 0, e->of);
		return;
	}
	sum = cell->sum;
	key = pem_number(cell, key);
	value = pem_number(cell, value);
	pem_cell_put(cell, sum, value, key);
	pem_cell_end(cell, n);
	if (pem_config.by_process)
		pem_add_process(e->index, e->action, value, e->of);
	if (e->flags & PEM_ACTION_DISTRIBUTION)
		pem_add_distribution(e->index, e->action, value);
}

/*
 * The event that sets a CPU's thread, generated: its index, the bytes of its record, and a function
 * that writes one.
 */
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

/*
 * Write a switch that was not logged. Other switches may have been before it, so it names no
 * previous thread. The cell belongs to another program, which may be interrupted while it counts.
 * So this count is atomic.
 */
PEM_INLINE void pem_put_switch(struct pem_kevent *e, uint8_t *record)
{
	PEM_STORE(e->ring->logged_thread, e->thread);
	__sync_fetch_and_add(&e->ring->cells[pem_switch_index()].produced, 1);
	pem_switch_fill(e, record, 0, e->thread >> 32, (uint32_t)e->thread);
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
 * The address of position at. The mask ends in zeros, because atomic operations must be aligned and
 * the verifier must see that they are.
 */
PEM_INLINE uint8_t *pem_at(struct pem_kring *ring, uint64_t at)
{
	return (uint8_t *)ring + PEM_KRING_DATA_OFFSET + (at & pem_config.ring_mask & ~(uint64_t)7);
}

/* Returns bytes if a is not b, else 0, without a jump. */
PEM_INLINE uint64_t pem_unless_equal(uint64_t a, uint64_t b, uint32_t bytes)
{
	uint64_t differ = a ^ b, negated = -differ;

	PEM_HIDE(negated);
	differ = (differ | negated) >> 63;
	PEM_HIDE(differ);
	return differ * bytes;
}

/*
 * Move the ring's head on if it is still head. Returns whether it was. If clang knew where the
 * compared value comes from, it would make two jumps of the comparison.
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
 * Take bytes of the ring, and write the records that must precede them (clock, switch). Returns the
 * position of the bytes. PEM_NO_POSITION: there is no room, or other writers interrupted each try.
 * If there is no room, nothing is taken: the compare-and-swap then only checks that tail belongs to
 * head. This is a global function, as pem_add_distribution() is: to the verifier its result is any
 * number, so it walks the code after the call only once.
 */
__attribute__((noinline)) uint64_t pem_take_more(uint64_t thread, uint64_t now, uint32_t bytes)
{
	struct pem_kevent e = {.ring = pem_ring_here(), .thread = thread, .now = now};
	uint64_t epoch = pem_epoch(now), head, used, previous, clock_bytes, before;
	int64_t beyond; /* bytes that do not fit; less than 0 if there is room */
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
		/* all ones if there is room, else 0; also 0 if tail is ahead of head */
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
		pem_put_switch(&e, pem_at(e.ring, head + clock_bytes));
	return head + before;
}

/* As pem_take_more(). In most cases no record must precede the bytes and no writer interrupts. */
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
 * Reserve room for a record. bytes is a constant and a multiple of 8. NULL: there is no room. The
 * record is then counted as discarded. After a loss the next record is preceded by a switch,
 * because the lost record may have been one.
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
 * Read an argument of type 'const void *'. Before Linux 6.16 the verifier treats such an argument
 * as a pointer to an unknown type and refuses to load it. A helper may still read it. The verifier
 * also accepts a load from the context only as one instruction with a constant offset, so it is
 * written in assembler.
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
 * Read an argument that points to a function. The verifier refuses to load it, because it does not
 * point to a structure.
 */
__attribute__((unused)) PEM_INLINE unsigned long long
pem_function_argument(const unsigned long long *context, uint32_t position)
{
	unsigned long long value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), context + position);
	return value;
}

/* Copy bytes of the kernel's memory. If they can't be read, all are zero. */
__attribute__((unused)) PEM_INLINE void pem_array(uint8_t *to, uint32_t bytes, const void *from)
{
	bpf_probe_read_kernel(to, bytes, from);
}

#include "files.bpf.h"
#include "others.bpf.h"
#include "gates.bpf.h"
#include "internal.bpf.h"
#include "pem_events.bpf.h"
#include "probe.bpf.h"

char pem_license[] SEC("license") = "GPL";
