/* SPDX-License-Identifier: MIT */
/*
 * ring_fixture.h - a pool in private memory, and a lane's writer in it
 *
 * Included by the programs ring_*.c and session_drain.c.
 */
#ifndef RING_FIXTURE_H
#define RING_FIXTURE_H

#include "pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define LANES 16u
#define EVENTS 512u
#define CHUNK 4096u

struct pool {
	struct pem_pool_header *header;
	uint64_t bytes;
	struct pem_ring ring;
};

/* Fill in the header at memory; memory NULL: only learn how many bytes it takes. */
static inline uint64_t pool_format(void *memory, uint32_t flags, uint32_t chunks)
{
	struct pem_pool_header header = {.abi_version = PEM_ABI_VERSION,
					 .flags = flags | PEM_POOL_FURTHER,
					 .chunk_bytes = CHUNK,
					 .chunk_count = chunks,
					 .lane_count = LANES,
					 .event_capacity = EVENTS};

	pem_pool__layout(&header);
	header.magic = PEM_POOL_MAGIC;
	if (memory)
		memcpy(memory, &header, sizeof(header));
	return header.total_bytes;
}

static inline struct pool pool_make(uint32_t flags, uint32_t chunks)
{
	struct pool pool = {.bytes = pool_format(NULL, flags, chunks)};

	pool.header =
		mmap(NULL, pool.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pool.header, MAP_FAILED);
	pool_format(pool.header, flags, chunks);
	assert_int_equal(pem_pool__open_ring(pool.header, pool.bytes, &pool.ring), 0);
	return pool;
}

static inline void pool_free(struct pool *pool)
{
	munmap(pool->header, pool->bytes);
}

static inline struct pem_writer writer_make(const struct pem_ring *ring, uint32_t lane)
{
	struct pem_writer w = {.cells = &ring->cells[(uint64_t)lane * ring->event_capacity],
			       .lane_index = lane};

	ring->lanes[lane].tid = 1000 + lane;
	ring->lanes[lane].state = PEM_LANE_OWNED;
	return w;
}

static inline struct pem_packet *chunk_at(const struct pem_ring *ring, uint32_t index)
{
	return (struct pem_packet *)(ring->chunks + (uint64_t)index * ring->chunk_bytes);
}

/* A chunk for the lane, begun at clock now. Its index, or -1. */
static inline int64_t writer_claim(const struct pem_ring *ring, struct pem_writer *w, uint64_t now)
{
	int64_t index = pem_ring_find(ring);

	if (index >= 0)
		pem_ring_start(ring, w, (uint32_t)index, now, 77, 1000 + w->lane_index);
	return index;
}

/* One record of bytes, its body filled with value. 1, or 0: no room. */
static inline int writer_put(struct pem_writer *w, uint64_t now, uint32_t id, uint32_t cell,
			     const void *body, uint32_t bytes)
{
	uint8_t *record = pem_ring_reserve(w, now, bytes);

	if (!record)
		return 0;
	memcpy(record + sizeof(struct pem_record_header), body,
	       bytes - sizeof(struct pem_record_header));
	pem_ring_commit(w, &w->cells[cell], now, id, bytes);
	return 1;
}

#endif
