/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pool.c - layout of a pool file, and the checks before anyone believes one
 */
#include "pool.h"

#include <errno.h>

#define PAGE 4096ull

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

bool pem_pool_geometry__valid(const struct pem_pool_geometry *g)
{
	if (g->flags & ~PEM_POOL_OVERWRITE)
		return false;
	if (g->chunk_bytes < 4096 || g->chunk_bytes > 16u << 20 ||
	    (g->chunk_bytes & (g->chunk_bytes - 1)))
		return false;
	if (g->chunk_count < 2 || g->chunk_count > 1u << 20)
		return false;
	if (g->lane_count < 2 || g->lane_count > 1u << 16)
		return false;
	return g->event_capacity >= 64 && g->event_capacity <= 1u << 16 &&
	       !(g->event_capacity % 64);
}

void pem_pool__layout(struct pem_pool_header *h)
{
	uint64_t at = sizeof(*h);

	h->chunk_state_offset = at;
	at += (uint64_t)h->chunk_count * sizeof(uint32_t);
	h->event_id_offset = at;
	at += 2 * (uint64_t)h->event_capacity * sizeof(uint32_t);
	at = page_up(at + ((uint64_t)h->chunk_count + 15) / 16 * sizeof(uint32_t));
	h->lanes_offset = at;
	at = page_up(at + (uint64_t)h->lane_count * sizeof(struct pem_lane));
	h->slots_offset = at;
	at += (uint64_t)h->lane_count * h->event_capacity * sizeof(struct pem_slot);
	h->wides_offset = at;
	at = page_up(at + (uint64_t)PEM_WIDE_COUNT * h->lane_count * sizeof(struct pem_wide));
	h->chunks_offset = at;
	h->total_bytes = at + (uint64_t)h->chunk_count * h->chunk_bytes;
}

void pem_pool__point(void *mapping, const struct pem_pool_header *h, struct pem_ring *ring)
{
	uint8_t *base = mapping;

	*ring = (struct pem_ring){
		.header = mapping,
		.chunk_state = (uint32_t *)(base + h->chunk_state_offset),
		.lanes = (struct pem_lane *)(base + h->lanes_offset),
		.slots = (struct pem_slot *)(base + h->slots_offset),
		.wides = (struct pem_wide *)(base + h->wides_offset),
		.chunks = base + h->chunks_offset,
		.chunk_bytes = h->chunk_bytes,
		.chunk_count = h->chunk_count,
		.lane_count = h->lane_count,
		.event_capacity = h->event_capacity,
		.overwrite = h->flags & PEM_POOL_OVERWRITE,
	};
}

int pem_pool__open_ring(void *mapping, uint64_t bytes, struct pem_ring *ring)
{
	struct pem_pool_header *shared = mapping, h;
	struct pem_pool_geometry geometry;

	if (bytes < sizeof(h) ||
	    __atomic_load_n(&shared->magic, __ATOMIC_ACQUIRE) != PEM_POOL_MAGIC)
		return -EINVAL;
	h = (struct pem_pool_header){
		.abi_version = shared->abi_version,
		.flags = shared->flags,
		.chunk_bytes = shared->chunk_bytes,
		.chunk_count = shared->chunk_count,
		.lane_count = shared->lane_count,
		.event_capacity = shared->event_capacity,
	};
	geometry = (struct pem_pool_geometry){h.flags, h.chunk_bytes, h.chunk_count, h.lane_count,
					      h.event_capacity};
	if (h.abi_version != PEM_ABI_VERSION || !pem_pool_geometry__valid(&geometry))
		return -EINVAL;
	/* Where things lie follows from the geometry: the offsets in the file are for people who look at it. */
	pem_pool__layout(&h);
	if (h.total_bytes > bytes)
		return -EINVAL;
	pem_pool__point(mapping, &h, ring);
	return 0;
}

struct pem_wide *pem_pool__wide(const struct pem_ring *ring, uint32_t index, uint32_t lane)
{
	return &ring->wides[(uint64_t)index * ring->lane_count + lane];
}

uint32_t *pem_pool__event_ids(const struct pem_ring *ring)
{
	return ring->chunk_state + ring->chunk_count;
}

uint32_t *pem_pool__event_models(const struct pem_ring *ring)
{
	return pem_pool__event_ids(ring) + ring->event_capacity;
}

uint32_t *pem_pool__populated(const struct pem_ring *ring)
{
	return pem_pool__event_models(ring) + ring->event_capacity;
}

const struct pem_rule *pem_rule__find(const struct pem_session_page *page, uint32_t count,
				      uint64_t contexts, uint32_t event_id)
{
	const struct pem_rule *rule, *any = NULL;
	uint32_t i;

	for (i = 0; i < count && i < PEM_RULES_MAX; i++) {
		rule = &page->rules[i];
		if (rule->context >= PEM_CONTEXTS_MAX || !(contexts >> rule->context & 1))
			continue;
		if (rule->event_id == event_id)
			return rule;
		if (rule->event_id == PEM_RULE_ANY_EVENT)
			any = rule;
	}
	return any;
}

static bool leads_on(uint32_t from, uint32_t to, uint32_t count)
{
	return (to > from && to < count) || to == PEM_TEST_PASS || to == PEM_TEST_FAIL;
}

bool pem_tests__valid(const struct pem_test *tests, uint32_t count, uint32_t fixed_bytes)
{
	uint32_t i;

	if (count > PEM_TESTS_MAX)
		return false;
	for (i = 0; i < count; i++) {
		if (tests[i].end <= sizeof(struct pem_record_header) ||
		    tests[i].end > fixed_bytes || !leads_on(i, tests[i].on_true, count) ||
		    !leads_on(i, tests[i].on_false, count))
			return false;
	}
	return true;
}
