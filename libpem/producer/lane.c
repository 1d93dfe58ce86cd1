/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lane.c - find a free lane for a thread
 *
 * Not here: the threads that have lanes (thread.c), what an earlier thread of the lane counted
 * (fold.c).
 */
#include "producer/producer.h"

/*
 * Has a lane memory, for a restricted thread that may allocate none? An earlier thread of the lane
 * allocated it.
 */
static bool is_ready(const struct pem_joined *joined, const struct pem_lane *lane, uint32_t i)
{
	uint32_t before = __atomic_load_n(&lane->tid, __ATOMIC_RELAXED);

	return i <= joined->ready_lanes || (before && before != PEM_LANE_NO_MEMORY);
}

bool pem_lane__claim(const struct pem_joined *joined, const struct pem_ring *ring,
		     struct pem_writer *writer, uint32_t tid)
{
	bool restricted = pem_restricted();
	struct pem_cell *cells;
	uint32_t i, state;

	for (i = 1; i < ring->lane_count; i++) {
		struct pem_lane *lane = &ring->lanes[i];

		/*
		 * Consumers read one lane further than those in use. For a lane in use the next one
		 * has memory already.
		 */
		if (restricted && !is_ready(joined, lane, i))
			return false;
		if (__atomic_load_n(&lane->state, __ATOMIC_RELAXED) != PEM_LANE_FREE)
			continue;
		if (!restricted && ((uintptr_t)(lane + 1) & 4095) == 0 &&
		    !pem_populate(lane + 1, sizeof(*lane)))
			return false;
		state = PEM_LANE_FREE;
		/* la */
		if (!__atomic_compare_exchange_n(&lane->state, &state, PEM_LANE_OWNED, 0,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		cells = &ring->cells[(uint64_t)i * ring->event_capacity];
		if (!restricted && !pem_populate(cells, pem_process.event_count * sizeof(*cells))) {
			/*
			 * A lane that had a thread keeps that thread's id: consumers read what was
			 * counted there.
			 */
			if (!__atomic_load_n(&lane->tid, __ATOMIC_RELAXED))
				__atomic_store_n(&lane->tid, PEM_LANE_NO_MEMORY, __ATOMIC_RELAXED);
			/* LA */
			__atomic_store_n(&lane->state, PEM_LANE_FREE, __ATOMIC_RELEASE);
			return false;
		}
		if (!pem_lane__take_over(ring, i, tid)) {
			/* LA */
			__atomic_store_n(&lane->state, PEM_LANE_FREE, __ATOMIC_RELEASE);
			continue;
		}
		writer->lane_index = i;
		writer->cells = cells;
		return true;
	}
	return false;
}
