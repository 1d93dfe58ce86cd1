/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * log_record.c - store a record in the chunk of a thread's lane, or in a new chunk
 *
 * A record that finds no room is counted in the lane's cell.
 */
#include "producer/producer.h"

#include <pthread.h>

/*
 * With so many lanes each one uses only half of its chunks, while its records are small. Otherwise
 * a thousand threads that raise an event now and then would hold 8 MiB of chunks.
 */
#define CROWD_LANES 256u

static uint32_t chunk_part(struct pem_joined *joined, const struct pem_ring *ring,
			   const struct pem_writer *w, uint32_t bytes)
{
	uint32_t half = ring->chunk_bytes / 2;

	if (w->lane_index >= CROWD_LANES)
		__atomic_store_n(&joined->crowded, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&joined->crowded, __ATOMIC_RELAXED) &&
			       bytes <= half - PEM_PACKET_HEADER_BYTES
		       ? half
		       : ring->chunk_bytes;
}

/*
 * Allocate the first bytes of a chunk. Whole chunks are populated eight at a time: one system call
 * for 64 KiB the first time through a pool. The first chunk is populated alone, since many
 * processes need no second one. Returns false where there is no memory.
 */
static bool populate_chunk(const struct pem_ring *ring, uint32_t index, uint32_t bytes)
{
	uint32_t halves = bytes < ring->chunk_bytes ? 1 : 3, bits = halves << (index % 16 * 2);
	uint32_t *populated = pem_pool__populated(ring);
	uint32_t first = index, last = index + 1, i;

	if ((__atomic_load_n(&populated[index / 16], __ATOMIC_RELAXED) & bits) == bits)
		return true;
	if (halves == 3 && index) {
		first = index & ~7u;
		last = first + 8 < ring->chunk_count ? first + 8 : ring->chunk_count;
		bytes = (last - first) * ring->chunk_bytes;
	}
	if (!pem_populate(ring->chunks + (uint64_t)first * ring->chunk_bytes, bytes))
		return false;
	for (i = first; i < last; i++)
		__atomic_fetch_or(&populated[i / 16], halves << (i % 16 * 2), __ATOMIC_RELAXED);
	return true;
}

/* Claim a whole chunk that has memory already, for a thread that may not allocate. */
static bool claim_ready(struct pem_joined *joined, const struct pem_ring *ring,
			struct pem_writer *w, uint64_t now, uint32_t tid, uint32_t freed)
{
	const uint32_t *populated = pem_pool__populated(ring);
	uint32_t first =
		ring->overwrite ? __atomic_load_n(&ring->header->chunk_hint, __ATOMIC_RELAXED) : 0;
	uint32_t tries, i, bits;

	if (!ring->overwrite && __atomic_load_n(&joined->ready_full, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&joined->ready_full_at, __ATOMIC_RELAXED) == freed)
		return false;
	__atomic_store_n(&joined->ready_full, false, __ATOMIC_RELAXED);
	for (tries = 0; tries < ring->chunk_count; tries++) {
		i = (first + tries) % ring->chunk_count;
		bits = __atomic_load_n(&populated[i / 16], __ATOMIC_RELAXED) >> (i % 16 * 2);
		if ((bits & 3) != 3 || !pem_ring_try(ring, i))
			continue;
		if (ring->overwrite) /* the next chunk is the oldest */
			__atomic_store_n(&ring->header->chunk_hint, i + 1, __ATOMIC_RELAXED);
		pem_ring_start(ring, w, i, now, pem_process.pid, tid);
		return true;
	}
	__atomic_store_n(&joined->ready_full_at, freed, __ATOMIC_RELAXED);
	__atomic_store_n(&joined->ready_full, true, __ATOMIC_RELAXED);
	return false;
}

/*
 * When a chunk of a lane with a coarse clock begins: behind its last record, though the clock may
 * stand still. A chunk's begin tells whether it was written already (recover.c), and is another
 * when the chunk has become a later one (pool_copy.c).
 */
static uint64_t coarse_begin(const struct pem_ring *ring, const struct pem_writer *w, uint64_t now)
{
	struct pem_lane *lane = &ring->lanes[w->lane_index];

	if (w->last_clock > lane->coarse_end)
		lane->coarse_end = w->last_clock;
	return now > lane->coarse_end ? now : lane->coarse_end + 1;
}

/*
 * Find a chunk that the process has access to; -1: there is none. If it can't get access to more,
 * it goes on with those that it has.
 */
static int64_t find_open(struct pem_joined *joined, const struct pem_ring *ring)
{
	int64_t index;

	for (;;) {
		index = pem_ring_find(ring);
		if (index < 0 || pem_joined__open_chunk(joined, ring, (uint32_t)index))
			return index;
		pem_ring_give_back(ring, (uint32_t)index);
		__atomic_store_n(&ring->header->chunk_limit,
				 __atomic_load_n(&joined->open_chunks, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
	}
}

/* Claim a new chunk with room for a record of this many bytes. */
static bool claim_chunk(unsigned session, const struct pem_ring *ring, struct pem_writer *w,
			uint64_t now, uint32_t tid, uint32_t bytes)
{
	struct pem_joined *joined = &pem_process.joined[session];
	uint32_t part = chunk_part(joined, ring, w, bytes);
	/* rh */
	uint32_t freed = __atomic_load_n(&ring->header->freed, __ATOMIC_ACQUIRE);
	int64_t index;

	if (w->coarse)
		now = coarse_begin(ring, w, now);
	pem_ring_retire(ring, w);
	if (pem_restricted())
		return claim_ready(joined, ring, w, now, tid, freed);
	if (ring->overwrite || __atomic_load_n(&joined->full, __ATOMIC_RELAXED))
		pem_process__check_consumer(session, pem_clock());
	/*
	 * No retry where nothing was freed since all chunks were full. In a ring that reclaims
	 * chunks nobody frees any, and the chunk that was just retired can be claimed.
	 */
	if (!ring->overwrite && __atomic_load_n(&joined->full, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&joined->full_at, __ATOMIC_RELAXED) == freed)
		return false;
	index = find_open(joined, ring);
	if (index < 0) {
		__atomic_store_n(&joined->full_at, freed, __ATOMIC_RELAXED);
		__atomic_store_n(&joined->full, 1, __ATOMIC_RELAXED);
		return false;
	}
	__atomic_store_n(&joined->full, 0, __ATOMIC_RELAXED);
	if (!populate_chunk(ring, (uint32_t)index, part)) {
		pem_ring_give_back(ring, (uint32_t)index);
		return false;
	}
	pem_ring_start(ring, w, (uint32_t)index, now, pem_process.pid, tid);
	w->end -= ring->chunk_bytes - part;
	return true;
}

/*
 * Claim a chunk and defer cancellation meanwhile. A thread cancelled here would leave a chunk
 * without an owner and its old records uncounted. claim_chunk() has no cancellation points. The C
 * library's handler looks at the type, but it may have looked at the state before, so the type is
 * set.
 */
static bool claim_whole(unsigned session, const struct pem_ring *ring, struct pem_writer *w,
			uint64_t now, uint32_t tid, uint32_t bytes)
{
	bool claimed;
	int type;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	claimed = claim_chunk(session, ring, w, now, tid, bytes);
	pthread_setcanceltype(type, NULL);
	return claimed;
}

uint64_t pem_writer__clock(unsigned session, const struct pem_writer *w)
{
	/* jb */
	const struct pem_session_page *page =
		__atomic_load_n(&pem_process.joined[session].page, __ATOMIC_ACQUIRE);
	uint64_t now;

	if (!w->coarse || !page)
		return pem_clock();
	/* A chunk may have begun a little later: see coarse_begin. */
	now = __atomic_load_n(&page->coarse_clock, __ATOMIC_RELAXED);
	return now > w->last_clock ? now : w->last_clock;
}

bool pem_writer__ring(unsigned session, const struct pem_writer *w, struct pem_ring *ring)
{
	return pem_joined__ring(&pem_process.joined[session],
				__atomic_load_n(&w->incarnation, __ATOMIC_RELAXED), ring) &&
	       w->cells == &ring->cells[(uint64_t)w->lane_index * ring->event_capacity];
}

static void count_restricted(unsigned session)
{
	/* jb */
	struct pem_session_page *counts =
		__atomic_load_n(&pem_process.joined[session].counts, __ATOMIC_ACQUIRE);

	if (counts && pem_restricted())
		__atomic_fetch_add(&counts->lost_filtered, 1, __ATOMIC_RELAXED);
}

void pem_log_record(unsigned session, struct pem_writer *w, uint32_t event_index, uint32_t tid,
		    const uint8_t *record, uint32_t bytes)
{
	struct pem_cell *cell = &w->cells[event_index];
	uint64_t now = pem_writer__clock(session, w);
	uint8_t *to = pem_ring_reserve(w, now, bytes);
	struct pem_lane *lane;
	struct pem_ring ring;

	if (!to) {
		if (!pem_writer__ring(session, w, &ring))
			return;
		lane = &ring.lanes[w->lane_index];
		if (bytes <= ring.chunk_bytes - PEM_PACKET_HEADER_BYTES &&
		    claim_whole(session, &ring, w, now, tid, bytes)) {
			now = w->coarse ? w->last_clock : now;
			to = pem_ring_reserve(w, now, bytes);
		}
	}
	if (!to) {
		count_restricted(session);
		/*
		 * produced is counted last, as in pem_ring_commit. A thread killed in between has
		 * counted one discarded more than produced.
		 */
		__atomic_store_n(&lane->discarded, lane->discarded + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&cell->discarded, cell->discarded + 1, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(&cell->produced, cell->produced + 1, __ATOMIC_RELAXED);
		return;
	}
	pem_copy_record(to + sizeof(struct pem_record_header),
			record + sizeof(struct pem_record_header),
			bytes - sizeof(struct pem_record_header));
	pem_ring_commit(w, cell, now, pem_process.event_id[event_index], bytes);
}
