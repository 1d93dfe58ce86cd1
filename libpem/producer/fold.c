/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fold.c - what happens to a thread's statistics when another thread gets its lane: they move to lane 0
 *
 * So that who asks what each thread did gets true answers, and threads that come and go cost no memory. Nobody but the
 * threads that take lanes over, one at a time, writes statistics of lane 0.
 */
#include "producer/producer.h"

#include <string.h>

/* Tags of one pool differ in their epoch, which wraps at 24 bits. */
static bool is_later(uint64_t tag, uint64_t than)
{
	return (int32_t)((uint32_t)tag - (uint32_t)than) > 0;
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

static void fold_slot(struct pem_slot *to, struct pem_slot *from)
{
	uint64_t n;

	if (!from->tag)
		return;
	if (to->tag != from->tag && (!to->tag || is_later(from->tag, to->tag)))
		pem_slot_reset(to, from->tag);
	if (to->tag == from->tag && from->stat_end) {
		n = to->stat_end + from->stat_end;
		__atomic_store_n(&to->stat_begin, n, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_RELEASE); /* begin before the values */
		__atomic_store_n(&to->sum,
				 to->tag & PEM_SLOT_FLOAT ? add_doubles(to->sum, from->sum)
							  : to->sum + from->sum,
				 __ATOMIC_RELAXED);
		if (from->min < to->min)
			__atomic_store_n(&to->min, from->min, __ATOMIC_RELAXED);
		if (from->max > to->max)
			__atomic_store_n(&to->max, from->max, __ATOMIC_RELAXED);
		__atomic_store_n(&to->stat_end, n, __ATOMIC_RELEASE);
	}
	pem_slot_reset(from, 0);
}

bool pem_lane__take_over(const struct pem_ring *ring, uint32_t lane, uint32_t tid)
{
	uint32_t before = __atomic_load_n(&ring->lanes[lane].tid, __ATOMIC_RELAXED), i;
	struct pem_slot *slots = &ring->slots[(uint64_t)lane * ring->event_capacity];
	uint32_t *fold = &ring->header->fold;

	if (!before || before == tid || before == PEM_LANE_NO_MEMORY) {
		/* Consumers read the slots of lanes that have a thread. */
		__atomic_store_n(&ring->lanes[lane].tid, tid, __ATOMIC_RELEASE);
		return true;
	}
	if (!pem_process__lock())
		return false;
	__atomic_store_n(fold, *fold | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* before anything moves */
	for (i = 0; i < pem_process.event_count; i++)
		fold_slot(&ring->slots[i], &slots[i]);
	__atomic_store_n(&ring->lanes[lane].tid, tid, __ATOMIC_RELAXED);
	__atomic_store_n(fold, (*fold | 1) + 1, __ATOMIC_RELEASE);
	pem_process__unlock();
	return true;
}
