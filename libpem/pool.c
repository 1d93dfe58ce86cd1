/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pool.c - the checks before a pool file is used, and where its parts lie */
#include "pool.h"

#include <errno.h>

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

int pem_pool__open_ring(void *mapping, uint64_t bytes, struct pem_ring *ring)
{
	struct pem_pool_header *shared = mapping, h;
	struct pem_pool_geometry geometry;

	/* pa */
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
	/*
	 * The offsets are computed from the geometry. The offsets in the file are only for people
	 * who look at it.
	 */
	pem_pool__layout(&h);
	if (h.total_bytes > bytes)
		return -EINVAL;
	pem_pool__point(mapping, &h, ring);
	return 0;
}

struct pem_distribution *pem_pool__distribution(const struct pem_ring *ring, uint32_t index,
						uint32_t lane)
{
	return &ring->distributions[(uint64_t)index * ring->lane_count + lane];
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
