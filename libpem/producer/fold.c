/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fold.c - move a thread's statistics to lane 0 when another thread gets its lane
 *
 * So a consumer gets true answers for each thread, and threads that come and go cost no memory.
 * Only threads that take a lane over write statistics of lane 0, one at a time.
 */
#include "producer/producer.h"
#include "distribution.h"

#include <string.h>

/* Is a tag of a later epoch? Tags of one pool differ in their epoch, which wraps at 24 bits. */
static bool is_later(uint64_t tag, uint64_t than)
{
	return (int32_t)((uint32_t)tag - (uint32_t)than) > 0;
}

/*
 * Is a distribution's tag later? The generation decides, which wraps at 16 bits. Where it is equal,
 * the epoch decides.
 */
static bool is_later_distribution(uint64_t tag, uint64_t than)
{
	uint16_t generation = (uint16_t)(tag >> 32), other = (uint16_t)(than >> 32);

	return generation != other ? (int16_t)(generation - other) > 0 : is_later(tag, than);
}

static uint64_t add_doubles(uint64_t a, uint64_t b)
{
	double x, y;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&a, &x, sizeof(a));
	return a;
}

/* The events that gates left undecided, see struct pem_cell. */
static void fold_undecided(struct pem_cell *to, struct pem_cell *from)
{
	if (!from->discarded)
		return;
	if (to->discarded != from->discarded &&
	    (!to->discarded || is_later(from->discarded, to->discarded))) {
		__atomic_store_n(&to->produced, 0, __ATOMIC_RELAXED);
		/* SE */
		__atomic_store_n(&to->discarded, from->discarded, __ATOMIC_RELEASE);
	}
	if (to->discarded == from->discarded)
		__atomic_store_n(&to->produced, to->produced + from->produced, __ATOMIC_RELAXED);
	__atomic_store_n(&from->produced, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&from->discarded, 0, __ATOMIC_RELAXED);
}

static void fold_cell(struct pem_cell *to, struct pem_cell *from)
{
	uint64_t n;

	if (!from->tag)
		return;
	if (to->tag != from->tag && (!to->tag || is_later(from->tag, to->tag)))
		pem_cell_reset(to, from->tag);
	if (to->tag == from->tag && from->stat_end) {
		n = to->stat_end + from->stat_end;
		__atomic_store_n(&to->stat_begin, n, __ATOMIC_RELAXED);
		/* SA: begin before the values */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		__atomic_store_n(&to->sum,
				 to->tag & PEM_CELL_FLOAT ? add_doubles(to->sum, from->sum)
							  : to->sum + from->sum,
				 __ATOMIC_RELAXED);
		if (from->min < to->min)
			__atomic_store_n(&to->min, from->min, __ATOMIC_RELAXED);
		if (from->max > to->max)
			__atomic_store_n(&to->max, from->max, __ATOMIC_RELAXED);
		/* SB */
		__atomic_store_n(&to->stat_end, n, __ATOMIC_RELEASE);
	}
	pem_cell_reset(from, 0);
}

/* Copy a distribution from private memory to a lane, where consumers read it. */
static void publish(struct pem_distribution *to, const struct pem_distribution *sum,
		    const struct pem_distribution_top *top)
{
	uint32_t i;

	__atomic_store_n(&to->begin, sum->end, __ATOMIC_RELAXED);
	/* SA: begin before the values */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (i = 0; i < 2; i++)
		__atomic_store_n(&to->sum[i], sum->sum[i], __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		__atomic_store_n(&to->squares[i], sum->squares[i], __ATOMIC_RELAXED);
	/* SB */
	__atomic_store_n(&to->end, sum->end, __ATOMIC_RELEASE);
	for (i = 0; i < PEM_DISTRIBUTION_BUCKETS; i++)
		__atomic_store_n(&to->bucket[i], sum->bucket[i], __ATOMIC_RELAXED);
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++)
		pem_distribution_set_top(&to->top[i], top[i].value, top[i].count, top[i].error);
}

static void fold_distribution(struct pem_distribution *to, struct pem_distribution *from)
{
	static struct pem_distribution_top top[PEM_TOP_MERGED]; /* under the process lock */
	uint64_t missed = 0;
	struct pem_distribution sum;

	if (!from->tag)
		return;
	if (to->tag != from->tag && (!to->tag || is_later_distribution(from->tag, to->tag)))
		pem_distribution_reset(to, from->tag);
	if (to->tag == from->tag) {
		memset(top, 0, sizeof(top));
		sum = *to;
		pem_distribution__add(&sum, from);
		pem_distribution__add_top(top, &missed, to->top);
		pem_distribution__add_top(top, &missed, from->top);
		publish(to, &sum, top);
	}
	pem_distribution_reset(from, 0);
}

static bool has_further(const struct pem_ring *ring, uint32_t lane)
{
	return ring->further && __atomic_load_n(&ring->lanes[lane].further, __ATOMIC_RELAXED);
}

/* Has lane 0 memory for all that the lane keeps? */
static bool has_room(const struct pem_ring *ring, uint32_t lane, uint32_t distributions)
{
	uint32_t i;

	if (has_further(ring, lane) && !pem_further__exist(ring, 0))
		return false;
	for (i = 0; i < PEM_DISTRIBUTION_COUNT; i++) {
		if (distributions >> i & 1 && !pem_distribution__exists(ring, i, 0))
			return false;
	}
	return true;
}

bool pem_lane__take_over(const struct pem_ring *ring, uint32_t lane, uint32_t tid)
{
	uint32_t before = __atomic_load_n(&ring->lanes[lane].tid, __ATOMIC_RELAXED), i;
	struct pem_cell *cells = &ring->cells[(uint64_t)lane * ring->event_capacity];
	uint32_t distributions =
		__atomic_load_n(&ring->lanes[lane].distributions, __ATOMIC_RELAXED);
	uint32_t *fold = &ring->header->fold;

	if (!before || before == tid || before == PEM_LANE_NO_MEMORY) {
		/* LB: consumers read the cells of lanes that have a thread */
		__atomic_store_n(&ring->lanes[lane].tid, tid, __ATOMIC_RELEASE);
		return true;
	}
	if (!has_room(ring, lane, distributions) || !pem_process__lock())
		return false;
	__atomic_store_n(fold, *fold | 1, __ATOMIC_RELAXED);
	/* LD: before anything moves */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (i = 0; i < pem_process.event_count; i++)
		fold_cell(&ring->cells[i], &cells[i]);
	for (i = 0; has_further(ring, lane) && i < PEM_FURTHER_CELLS; i++) {
		fold_cell(pem_pool__further(ring, 0, i), pem_pool__further(ring, lane, i));
		fold_undecided(pem_pool__further(ring, 0, i), pem_pool__further(ring, lane, i));
	}
	for (i = 0; i < PEM_DISTRIBUTION_COUNT; i++) {
		if (distributions >> i & 1)
			fold_distribution(pem_pool__distribution(ring, i, 0),
					  pem_pool__distribution(ring, i, lane));
	}
	__atomic_store_n(&ring->lanes[lane].tid, tid, __ATOMIC_RELAXED);
	/* LE */
	__atomic_store_n(fold, (*fold | 1) + 1, __ATOMIC_RELEASE);
	pem_process__unlock();
	return true;
}
