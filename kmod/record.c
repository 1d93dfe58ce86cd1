// SPDX-License-Identifier: GPL-2.0-only
/*
 * record.c - the steps that a probe does rarely: test the target, begin a chunk, write a switch,
 * count a loss
 *
 * This code runs in probes (pem_kmod.h describes their concurrency): in any context, including
 * NMIs. A unit test compiles it in user space, too.
 */
#include "pem_kmod.h"
#include "targets.h"

#ifdef __KERNEL__
#include <linux/sched/signal.h>
#endif

#include <pem/event.h>
#include <pem/distribution.h>

/*
 * Find whether the process is a target, and keep the answer for this CPU. The answer is kept in two
 * words. A probe that interrupts may change both to its own answer between any two instructions
 * here. So the generation is stored while context is 0 (no answer). And this answer is stored only
 * if no other answer came meanwhile: that answer belongs to the generation stored with it, which
 * may be later.
 */
static bool context_put(struct pem_kmod_targets *targets, struct pem_kmod_cpu *cpu,
			unsigned long key)
{
	/* md */
	uint32_t generation = (uint32_t)atomic_read_acquire(&targets->generation);
	bool in = pem_targets_have(targets, key);

	WRITE_ONCE(cpu->context, 0);
	barrier();
	WRITE_ONCE(cpu->context_generation, generation);
	barrier();
	cmpxchg_local(&cpu->context, 0, key | in);
	return in;
}

static bool context_in(struct pem_kmod_targets *targets, struct pem_kmod_cpu *cpu,
		       const struct task_struct *task)
{
	unsigned long key = (unsigned long)task->signal, context;

	if (READ_ONCE(cpu->context_generation) == (uint32_t)atomic_read(&targets->generation)) {
		barrier();
		context = READ_ONCE(cpu->context);
		if ((context & ~1ul) == key)
			return context & 1;
	}
	return context_put(targets, cpu, key);
}

static bool filter_task(const struct pem_kmod_rule *rule, const struct task_struct *task)
{
	return (!rule->pid || rule->pid == (uint32_t)task->tgid) &&
	       (!rule->tid || rule->tid == (uint32_t)task->pid);
}

static bool filter_cpu(const struct pem_kmod_rule *rule, const struct pem_kmod_cpu *cpu)
{
	return rule->cpu == PEM_NO_CPU || rule->cpu == cpu->number;
}

bool pem_kmod_here(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu,
		   const struct pem_kmod_rule *rule, uint64_t action)
{
	if ((action & PEM_KACTION_TREE) && !context_in(data->targets, cpu, current))
		return false;
	return !(action & PEM_ACTION_FILTER) ||
	       (filter_cpu(rule, cpu) && filter_task(rule, current));
}

bool pem_kmod_here_of(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu,
		      const struct pem_kmod_rule *rule, uint64_t action,
		      const struct task_struct *task)
{
	if ((action & PEM_KACTION_TREE) &&
	    !pem_targets_have(data->targets, (unsigned long)task->signal))
		return false;
	return !(action & PEM_ACTION_FILTER) || (filter_cpu(rule, cpu) && filter_task(rule, task));
}

bool pem_kmod_here_switch(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu,
			  const struct pem_kmod_rule *rule, const struct task_struct *prev,
			  const struct task_struct *next)
{
	bool prev_in, next_in;

	if (rule->action & PEM_KACTION_TREE) {
		prev_in = context_in(data->targets, cpu, prev);
		next_in = context_put(data->targets, cpu, (unsigned long)next->signal);
		if (!prev_in && !next_in)
			return false;
	}
	return !(rule->action & PEM_ACTION_FILTER) ||
	       (filter_cpu(rule, cpu) && (filter_task(rule, prev) || filter_task(rule, next)));
}

/*
 * Lane 0 has several writers: all depths of this CPU, and CPUs without a pool. So its counts are
 * atomic.
 */
void pem_kmod_no_lane(struct pem_kmod_probe_data *data, struct pem_kmod_cpu *cpu, uint32_t index,
		      uint32_t flags)
{
	const struct pem_ring *ring = cpu->ring.header ? &cpu->ring : data->spare;
	struct pem_cell *cell = &ring->cells[index];

	if (flags & PEM_ACTION_LOG) {
		/* produced is counted last, so that no reader sees more discarded than produced. */
		__atomic_fetch_add(&ring->lanes[0].discarded, 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&cell->discarded, 1, __ATOMIC_RELAXED);
		/* RI */
		__atomic_fetch_add(&cell->produced, 1, __ATOMIC_RELEASE);
		if (index == pem_switch_index)
			WRITE_ONCE(cpu->logged_thread, PEM_KRING_NO_THREAD);
	}
	if (flags & PEM_ACTION_STAT)
		atomic64_inc(&data->statistics_lost);
}

void pem_kmod_retire(struct pem_kmod_cpu *cpu, struct pem_writer *w)
{
	if (!w->packet)
		return;
	pem_ring_retire(&cpu->ring, w);
	barrier(); /* The chunk is full before it is offered. */
	if (cpu->ring.overwrite)
		WRITE_ONCE(cpu->retired, cpu->retired + 1);
	pem_kmod_filled(cpu);
}

/* Maximum of chunks that a probe searches at once, because it may run with interrupts off. */
#define FIND_AT_ONCE 4096u

/*
 * A number that changes when further chunks become available: freed chunks, chunks put back
 * (take.c), or full chunks to reclaim.
 */
static uint32_t offered(const struct pem_kmod_cpu *cpu)
{
	/* rh */
	return smp_load_acquire(&cpu->ring.header->freed) + READ_ONCE(cpu->retired);
}

static uint64_t searched_word(uint32_t offer, uint32_t count)
{
	return (uint64_t)offer << 32 | count;
}

static uint32_t searched_count(uint64_t word, uint32_t offer)
{
	return word >> 32 == offer ? (uint32_t)word : 0;
}

/*
 * Note that this number of chunks was searched in vain, starting from the count in before. If an
 * interrupting probe changed cpu->searched meanwhile, it may have searched the same chunks, and the
 * next search may begin at an earlier chunk. The count then starts at 0 again.
 */
static void searched_in_vain(struct pem_kmod_cpu *cpu, uint64_t before, uint32_t offer,
			     uint32_t count)
{
	uint32_t left = cpu->ring.chunk_count - searched_count(before, offer);
	uint64_t after =
		searched_word(offer, cpu->ring.chunk_count - left + (count < left ? count : left));

	if (cmpxchg_local(&cpu->searched, before, after) != before)
		WRITE_ONCE(cpu->searched, searched_word(offer, 0));
}

/*
 * Was each chunk of the pool searched in vain since the last offer? The pool is then searched again
 * only after the next offer, not for each event.
 */
static bool is_exhausted(const struct pem_kmod_cpu *cpu, uint32_t offer)
{
	return searched_count(READ_ONCE(cpu->searched), offer) == cpu->ring.chunk_count;
}

/*
 * Begin a chunk, because the writer's chunk is full, too old, or missing. False: no chunk is
 * available, or the search is not finished.
 */
static bool next_chunk(struct pem_kmod_cpu *cpu, struct pem_writer *w, uint64_t now)
{
	const struct pem_ring *ring = &cpu->ring;
	uint32_t count = ring->chunk_count < FIND_AT_ONCE ? ring->chunk_count : FIND_AT_ONCE;
	uint32_t newest = w->chunk_index, offer;
	/* The chunk that is retired here can be reclaimed. */
	bool may_reclaim = ring->overwrite && w->packet;
	bool was_exhausted = is_exhausted(cpu, offered(cpu));
	uint64_t before;
	int64_t index;

	pem_kmod_retire(cpu, w);
	if (!may_reclaim && was_exhausted)
		return false;
	offer = offered(cpu);
	before = READ_ONCE(cpu->searched);
	index = pem_ring_find_among(ring, count);
	/*
	 * The chunk that was just retired is the newest. It is reclaimed only after all others were
	 * searched.
	 */
	if (index < 0 && may_reclaim && (was_exhausted || count == ring->chunk_count) &&
	    pem_ring_try(ring, newest))
		index = newest;
	if (index < 0) {
		searched_in_vain(cpu, before, offer, count);
		return false;
	}
	pem_ring_start(ring, w, (uint32_t)index, now, 0, 0);
	w->packet->cpu = cpu->number;
	w->packet->source = PEM_PACKET_KERNEL;
	return true;
}

static uint8_t *discard(struct pem_kmod_cpu *cpu, const struct pem_writer *w, struct pem_cell *cell)
{
	struct pem_lane *lane = &cpu->ring.lanes[w->lane_index];

	WRITE_ONCE(lane->discarded, lane->discarded + 1);
	WRITE_ONCE(cell->discarded, cell->discarded + 1);
	/* RI */
	smp_store_release(&cell->produced, cell->produced + 1);
	/* The lost record may have been a switch, or one that needed a switch before it. */
	WRITE_ONCE(cpu->logged_thread, PEM_KRING_NO_THREAD);
	return NULL;
}

/*
 * Write a switch that the kernel did not report, or that was lost. Other switches may have been
 * before it, so it names no previous thread, unless the same one goes on in a new chunk.
 */
static void put_switch(struct pem_kmod_cpu *cpu, struct pem_writer *w, uint64_t now,
		       uint64_t thread)
{
	uint64_t previous = READ_ONCE(cpu->logged_thread);
	uint32_t previous_tid = previous == thread ? (uint32_t)thread : 0;

	WRITE_ONCE(cpu->logged_thread, thread);
	pem_switch_fill(w->cursor, previous_tid, (uint32_t)(thread >> 32), (uint32_t)thread);
	pem_ring_commit(w, &w->cells[pem_switch_index], now, pem_switch_id, pem_switch_bytes);
}

/*
 * Each chunk begins with a switch, so it can be read without earlier chunks, which may be lost or
 * overwritten.
 */
uint8_t *pem_kmod_reserve(struct pem_kmod_cpu *cpu, struct pem_writer *w, struct pem_cell *cell,
			  uint64_t now, uint32_t bytes, uint64_t thread)
{
	uint32_t room = (pem_switch_bytes + PEM_RECORD_ALIGN - 1) & ~(PEM_RECORD_ALIGN - 1);
	bool needed = READ_ONCE(cpu->logged_thread) != thread;

	if (!pem_ring_reserve(w, now, needed ? bytes + room : bytes)) {
		if (!next_chunk(cpu, w, now))
			return discard(cpu, w, cell);
		needed = true;
		if (!pem_ring_reserve(w, now, bytes + room))
			return discard(cpu, w, cell);
	}
	if (needed && pem_switch_index != PEM_KMOD_NO_EVENT)
		put_switch(cpu, w, now, thread);
	return w->cursor;
}

uint8_t *pem_kmod_reserve_switch(struct pem_kmod_cpu *cpu, struct pem_writer *w,
				 struct pem_cell *cell, uint64_t now, uint32_t bytes)
{
	if (!next_chunk(cpu, w, now) || !pem_ring_reserve(w, now, bytes))
		return discard(cpu, w, cell);
	return w->cursor;
}

void pem_kmod_add_distribution(const struct pem_ring *ring, const struct pem_kmod_rule *rule,
			       uint32_t lane, uint64_t value)
{
	uint32_t type = PEM_ACTION_TYPE(rule->action),
		 keep = PEM_DISTRIBUTION_KEEP(rule->distribution);
	uint32_t index = PEM_DISTRIBUTION_INDEX(rule->distribution) & (PEM_DISTRIBUTION_COUNT - 1);
	uint64_t tag = PEM_DISTRIBUTION_TAG(rule->distribution, rule->action);
	struct pem_distribution *distribution =
		&ring->distributions[(uint64_t)index * ring->lane_count + lane];
	int is_signed = type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64;

	if (distribution->tag != tag)
		pem_distribution_reset(distribution, tag);
	pem_distribution_add(distribution, keep, value, is_signed);
}
