/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * layout.h - where the parts of a pool lie, computed from the pool's geometry
 *
 * A process that makes a pool and a consumer that reads one use the same functions. Not here: what
 * the parts are (abi.h), whether a geometry makes sense (the maker and the reader check it).
 */
#ifndef PEM_LAYOUT_H
#define PEM_LAYOUT_H

#include <pem/ring.h>

#define PEM_POOL_PAGE 4096ull

PEM_INLINE uint64_t pem_pool_page_up(uint64_t bytes)
{
	return (bytes + PEM_POOL_PAGE - 1) & ~(PEM_POOL_PAGE - 1);
}

/* Where the further cells lie. The caller has set the header's geometry and cells_offset. */
static inline uint64_t pem_pool__further_offset(const struct pem_pool_header *h)
{
	return h->cells_offset +
	       (uint64_t)h->lane_count * h->event_capacity * sizeof(struct pem_cell);
}

/*
 * Fill in the offsets and total_bytes of a header. The caller has set its geometry to valid values.
 */
static inline void pem_pool__layout(struct pem_pool_header *h)
{
	uint64_t at = sizeof(*h);

	h->chunk_state_offset = at;
	at += (uint64_t)h->chunk_count * sizeof(uint32_t);
	h->event_id_offset = at;
	at += 2 * (uint64_t)h->event_capacity * sizeof(uint32_t);
	at = pem_pool_page_up(at + ((uint64_t)h->chunk_count + 15) / 16 * sizeof(uint32_t));
	h->lanes_offset = at;
	at = pem_pool_page_up(at + (uint64_t)h->lane_count * sizeof(struct pem_lane));
	h->cells_offset = at;
	at = pem_pool__further_offset(h);
	if (h->flags & PEM_POOL_FURTHER)
		at += (uint64_t)h->lane_count * PEM_FURTHER_CELLS * sizeof(struct pem_cell);
	h->distributions_offset = at;
	at = pem_pool_page_up(at + (uint64_t)PEM_DISTRIBUTION_COUNT * h->lane_count *
					   sizeof(struct pem_distribution));
	h->chunks_offset = at;
	h->total_bytes = at + (uint64_t)h->chunk_count * h->chunk_bytes;
}

/*
 * Point ring's members into a mapping of a pool. h is the caller's own copy of the header, filled
 * in by pem_pool__layout.
 */
static inline void pem_pool__point(void *mapping, const struct pem_pool_header *h,
				   struct pem_ring *ring)
{
	uint8_t *base = (uint8_t *)mapping;

	ring->header = (struct pem_pool_header *)mapping;
	ring->chunk_state = (uint32_t *)(void *)(base + h->chunk_state_offset);
	ring->lanes = (struct pem_lane *)(void *)(base + h->lanes_offset);
	ring->cells = (struct pem_cell *)(void *)(base + h->cells_offset);
	ring->further = h->flags & PEM_POOL_FURTHER
				? (struct pem_cell *)(void *)(base + pem_pool__further_offset(h))
				: (struct pem_cell *)0;
	ring->distributions = (struct pem_distribution *)(void *)(base + h->distributions_offset);
	ring->chunks = base + h->chunks_offset;
	ring->chunk_bytes = h->chunk_bytes;
	ring->chunk_count = h->chunk_count;
	ring->lane_count = h->lane_count;
	ring->event_capacity = h->event_capacity;
	ring->overwrite = h->flags & PEM_POOL_OVERWRITE;
}

#endif
