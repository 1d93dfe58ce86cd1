/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * ring.h - the chunk ring: how a producer claims, fills and retires chunks
 *
 * The kernel module and user programs share this code. Not here: mapping pools (libpem/producer),
 * draining them (libpem/consumer), what a record holds, cells of statistics (statistic.h).
 *
 * A producer claims a chunk with one compare-and-swap. The chunk then belongs to the thread of one
 * lane. States of a chunk:
 *
 *	           claim (producer)            retire (producer)
 *	  FREE ---------------------> OWNED ---------------------> FULL <--------+
 *	    ^                           ^                           |  \         |
 *	    |                           +------- reclaim -----------+   \  take  | put back
 *	    |                         (producer, overwrite pools)         v      | (consumer: a
 *									 snapshot)
 *	    +----------------------------------------------------------- READING +
 *	                            free (consumer)
 *
 * A consumer also copies committed records out of an OWNED chunk, and leaves its state as it is. In
 * an overwrite pool a producer may reclaim the chunk meanwhile. The consumer then uses the copy
 * only if the chunk still belongs to that lane and has the same packet_seq_num.
 *
 * Ordering: architecture.md (share/doc/pem), Barriers. A barrier has the letters of its pair:
 * capital where a value is published, small where it is read.
 *
 * Invariants:
 * - Only the owner stores to an OWNED chunk.
 * - content_size never exceeds the chunk and never ends within a record.
 * - Within a lane packet_seq_num grows by one for each claimed chunk.
 * - Two neighbouring records of a packet lie less than 2^32 clock ticks apart, so 32 bits of clock
 *   in each record are enough.
 */
#ifndef PEM_RING_H
#define PEM_RING_H

#include <pem/abi.h>
#include <pem/statistic.h>

/*
 * A thread's position in the chunk that it owns. It is private memory of that thread. All zero: the
 * writer holds no chunk.
 */
struct pem_writer {
	uint8_t *cursor; /* next record, a multiple of 8 */
	uint8_t *end; /* End of the chunk. Equal to cursor when the writer holds no chunk. */
	struct pem_packet *packet;
	uint64_t last_clock;
	uint64_t record_count;
	/*
	 * The lane's cells. In a stub's thread without a lane: cells that belong to no lane and
	 * have no tag.
	 */
	struct pem_cell *cells;
	uint32_t incarnation; /* Incarnation of the lane's session; 0: none */
	uint32_t chunk_index;
	uint32_t lane_index; /* 0: none */
	uint32_t coarse; /* 1: its records have the session's coarse clock */
};

/*
 * The parts of a mapped pool that producers use. All pointers point into the mapping. The code that
 * mapped the pool has checked the counts.
 */
struct pem_ring {
	struct pem_pool_header *header;
	uint32_t *chunk_state;
	struct pem_lane *lanes;
	struct pem_cell *cells;
	struct pem_distribution *distributions;
	uint8_t *chunks;
	uint32_t chunk_bytes;
	uint32_t chunk_count;
	uint32_t lane_count;
	uint32_t event_capacity;
	uint32_t overwrite;
	struct pem_cell *further; /* PEM_FURTHER_CELLS for each lane; NULL: the pool has none */
};

/*
 * Is there room for a record of bytes bytes at clock now? 0: the writer has no chunk, the chunk has
 * no room, or the last record is 2^32 clock ticks old or older.
 */
PEM_INLINE int pem_ring_has_room(const struct pem_writer *w, uint64_t now, uint32_t bytes)
{
	return (uint64_t)(w->end - w->cursor) >= bytes && !((now - w->last_clock) >> 32);
}

/*
 * Reserve room for a record of bytes bytes at clock now. Returns the record's address. NULL: there
 * is none.
 */
PEM_INLINE uint8_t *pem_ring_reserve(const struct pem_writer *w, uint64_t now, uint32_t bytes)
{
	return pem_ring_has_room(w, now, bytes) ? w->cursor : (uint8_t *)0;
}

/*
 * Publish the reserved record of bytes bytes. The caller has written its fields; this function
 * writes its header.
 */
PEM_INLINE void pem_ring_commit(struct pem_writer *w, struct pem_cell *cell, uint64_t now,
				uint32_t event_id, uint32_t bytes)
{
	uint8_t *record = w->cursor;
	struct pem_record_header *header = (struct pem_record_header *)record;

	header->clock_low = (uint32_t)now;
	header->event_id = event_id;
	w->cursor = record + ((bytes + (PEM_RECORD_ALIGN - 1)) & ~(PEM_RECORD_ALIGN - 1));
	w->last_clock = now;
	w->record_count++;
	/* RA */
	__atomic_store_n(&w->packet->content_size,
			 (uint64_t)(record + bytes - (uint8_t *)w->packet) * 8, __ATOMIC_RELEASE);
	/*
	 * The count follows the commit. A thread that is killed between the two leaves a record
	 * that is not in its count.
	 */
	/* Only this lane's thread writes the cell. */
	__atomic_store_n(&cell->produced, cell->produced + 1, __ATOMIC_RELAXED);
}

/*
 * Give the writer's chunk, if it holds one, to the consumer. Afterwards the writer holds no chunk.
 */
static inline void pem_ring_retire(const struct pem_ring *ring, struct pem_writer *w)
{
	if (!w->packet)
		return;
	w->packet->timestamp_end = w->last_clock;
	w->packet->record_count = w->record_count;
	/* RB */
	__atomic_store_n(&ring->chunk_state[w->chunk_index],
			 PEM_CHUNK_WORD(PEM_CHUNK_FULL, w->lane_index), __ATOMIC_RELEASE);
	w->packet = (struct pem_packet *)0;
	w->cursor = w->end = (uint8_t *)0;
	w->record_count = 0;
}

/*
 * Try to take chunk i: from FREE, or in an overwrite pool from FULL. The chunk has no lane yet.
 * Returns 1 if it was taken, else 0.
 */
static inline int pem_ring_try(const struct pem_ring *ring, uint32_t i)
{
	uint32_t word = __atomic_load_n(&ring->chunk_state[i], __ATOMIC_RELAXED);
	uint32_t state = PEM_CHUNK_STATE(word), victim = PEM_CHUNK_LANE(word);
	const struct pem_packet *packet;

	if (state != PEM_CHUNK_FREE && !(state == PEM_CHUNK_FULL && ring->overwrite))
		return 0;
	/* rb, rc, rd */
	if (!__atomic_compare_exchange_n(&ring->chunk_state[i], &word,
					 PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 0), 0, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return 0;
	/* RE */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (state == PEM_CHUNK_FULL && victim < ring->lane_count) {
		packet =
			(const struct pem_packet *)(ring->chunks + (uint64_t)i * ring->chunk_bytes);
		__atomic_fetch_add(&ring->lanes[victim].overwritten, packet->record_count,
				   __ATOMIC_RELAXED);
	}
	return 1;
}

/* Return how many chunks of the pool are in use. */
static inline uint32_t pem_ring_limit(const struct pem_ring *ring)
{
	uint32_t limit = __atomic_load_n(&ring->header->chunk_limit, __ATOMIC_RELAXED);

	return limit && limit < ring->chunk_count ? limit : ring->chunk_count;
}

/*
 * Find a chunk among the next count chunks, or among all if there are fewer. An overwrite pool is
 * searched in turn, so that the chunk found is the oldest. Another pool is searched from the chunk
 * found last, so that a pool with a quick consumer stays in cache. Returns the chunk's index. -1:
 * there is none; the next call then begins behind the chunks searched.
 */
static inline int64_t pem_ring_find_among(const struct pem_ring *ring, uint32_t count)
{
	uint32_t limit = pem_ring_limit(ring), tries, i;

	if (count > limit)
		count = limit;
	if (ring->overwrite) {
		for (tries = 0; tries < count; tries++) {
			i = __atomic_fetch_add(&ring->header->chunk_hint, 1, __ATOMIC_RELAXED) %
			    ring->chunk_count;
			if (pem_ring_try(ring, i))
				return i;
		}
		return -1;
	}
	i = __atomic_load_n(&ring->header->chunk_hint, __ATOMIC_RELAXED) % limit;
	for (tries = 0; tries < count; tries++, i = i + 1 < limit ? i + 1 : 0) {
		if (pem_ring_try(ring, i)) {
			__atomic_store_n(&ring->header->chunk_hint, i, __ATOMIC_RELAXED);
			return i;
		}
	}
	if (count < limit)
		__atomic_store_n(&ring->header->chunk_hint, i, __ATOMIC_RELAXED);
	return -1;
}

/* Find a chunk among all. Returns its index, or -1: there is none. */
static inline int64_t pem_ring_find(const struct pem_ring *ring)
{
	return pem_ring_find_among(ring, ring->chunk_count);
}

/* Give back a chunk that was found but not started. */
static inline void pem_ring_give_back(const struct pem_ring *ring, uint32_t index)
{
	/* RC */
	__atomic_store_n(&ring->chunk_state[index], PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0),
			 __ATOMIC_RELEASE);
	/* RH */
	__atomic_fetch_add(&ring->header->freed, 1, __ATOMIC_RELEASE);
}

/*
 * Begin the chunk that pem_ring_find returned. Its first record will have clock now or later. The
 * writer holds no chunk, and its lane_index and cells are set.
 */
static inline void pem_ring_start(const struct pem_ring *ring, struct pem_writer *w, uint32_t index,
				  uint64_t now, uint32_t pid, uint32_t tid)
{
	struct pem_lane *lane = &ring->lanes[w->lane_index];
	struct pem_packet *packet;

	packet = (struct pem_packet *)(ring->chunks + (uint64_t)index * ring->chunk_bytes);
	packet->magic = PEM_CTF_MAGIC;
	packet->stream_id = 0;
	packet->timestamp_begin = now;
	packet->timestamp_end = now;
	packet->packet_size = (uint64_t)ring->chunk_bytes * 8;
	packet->events_discarded = lane->discarded;
	packet->packet_seq_num = lane->packet_seq;
	packet->events_overwritten = 0;
	packet->pid = pid;
	packet->tid = tid;
	packet->cpu = PEM_NO_CPU;
	packet->source = PEM_PACKET_USER;
	packet->record_count = 0;
	/* RA */
	__atomic_store_n(&packet->content_size, PEM_PACKET_HEADER_BYTES * 8, __ATOMIC_RELEASE);
	/*
	 * RF: The chunk belongs to the lane only from here on. A reader must not read what an
	 * earlier owner left in it.
	 */
	__atomic_store_n(&ring->chunk_state[index], PEM_CHUNK_WORD(PEM_CHUNK_OWNED, w->lane_index),
			 __ATOMIC_RELEASE);
	/* RG */
	__atomic_store_n(&lane->packet_seq, lane->packet_seq + 1, __ATOMIC_RELEASE);
	w->packet = packet;
	w->cursor = (uint8_t *)packet + PEM_PACKET_HEADER_BYTES;
	w->end = (uint8_t *)packet + ring->chunk_bytes;
	w->last_clock = now;
	w->record_count = 0;
	w->chunk_index = index;
}

#endif
