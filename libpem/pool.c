/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pool.c - the checks before a pool file is used, and where its parts lie */
#include "pool.h"

#include <pem/counted.h>

#include <errno.h>

bool pem_pool_geometry__valid(const struct pem_pool_geometry *g)
{
	if (g->flags & ~(PEM_POOL_OVERWRITE | PEM_POOL_FURTHER | PEM_POOL_COARSE))
		return false;
	if (g->chunk_bytes < 4096 || g->chunk_bytes > 16u << 20 ||
	    (g->chunk_bytes & (g->chunk_bytes - 1)))
		return false;
	if (g->chunk_count < 2 || g->chunk_count > 1u << 20 || g->chunk_limit % 8 ||
	    g->chunk_limit > g->chunk_count)
		return false;
	if (g->lane_count < 2 || g->lane_count > PEM_LANE_COUNT_MAX)
		return false;
	return g->event_capacity >= 64 && g->event_capacity <= 1u << 16 &&
	       !(g->event_capacity % 64);
}

struct pem_pool_geometry pem_pool_geometry__of_page(const struct pem_session_page *page)
{
	struct pem_pool_geometry g = {
		.flags = __atomic_load_n(&page->pool_flags, __ATOMIC_RELAXED),
		.chunk_bytes = __atomic_load_n(&page->chunk_bytes, __ATOMIC_RELAXED),
		.chunk_count = __atomic_load_n(&page->chunk_count, __ATOMIC_RELAXED),
		.lane_count = __atomic_load_n(&page->lane_count, __ATOMIC_RELAXED),
		.event_capacity = __atomic_load_n(&page->event_capacity, __ATOMIC_RELAXED)};
	uint64_t most = __atomic_load_n(&page->chunk_most, __ATOMIC_RELAXED);

	if (most) {
		g.chunk_limit = g.chunk_count;
		g.chunk_count = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
	}
	return g;
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
	geometry = (struct pem_pool_geometry){h.flags,      h.chunk_bytes,    h.chunk_count,
					      h.lane_count, h.event_capacity, 0};
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

struct pem_cell *pem_pool__further(const struct pem_ring *ring, uint32_t lane, uint32_t cell)
{
	return &ring->further[(uint64_t)lane * PEM_FURTHER_CELLS + cell];
}

uint32_t *pem_pool__event_ids(const struct pem_ring *ring)
{
	return ring->chunk_state + ring->chunk_count;
}

uint32_t pem_pool__event_count(const struct pem_ring *ring)
{
	const uint32_t *ids = pem_pool__event_ids(ring);
	uint32_t i;

	for (i = 0; i < ring->event_capacity; i++) {
		/* pb */
		if (!__atomic_load_n(&ids[i], __ATOMIC_ACQUIRE))
			break;
	}
	return i;
}

uint32_t *pem_pool__event_models(const struct pem_ring *ring)
{
	return pem_pool__event_ids(ring) + ring->event_capacity;
}

uint32_t *pem_pool__populated(const struct pem_ring *ring)
{
	return pem_pool__event_models(ring) + ring->event_capacity;
}

/* Has one of the rules chosen so far the cell? */
static bool has_cell(const struct pem_rule *const *rules, uint32_t count, uint32_t cell)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (PEM_RULE_CELL(rules[i]->flags) == cell)
			return true;
	}
	return false;
}

/* Rules that ask for nothing do not matter beside others; one alone says that nothing is wanted. */
static uint32_t drop_idle(const struct pem_rule **rules, uint32_t count)
{
	uint32_t kept = 0, i;

	for (i = 0; i < count; i++) {
		if (PEM_ACTION_FLAGS(rules[i]->action))
			rules[kept++] = rules[i];
	}
	return kept || !count ? kept : 1;
}

uint32_t pem_rule__find(const struct pem_session_page *page, uint32_t count, uint64_t contexts,
			uint32_t event_id, const struct pem_rule *rules[PEM_EVENT_RULES_MAX])
{
	const struct pem_rule *rule, *any = NULL;
	uint32_t found = 0, i, cell;

	for (i = 0; i < count && i < PEM_RULES_MAX; i++) {
		rule = &page->rules[i];
		if (rule->context >= PEM_CONTEXTS_MAX || !(contexts >> rule->context & 1))
			continue;
		cell = PEM_RULE_CELL(rule->flags);
		if (rule->event_id == PEM_RULE_ANY_EVENT)
			any = rule;
		else if (rule->event_id == event_id && cell < PEM_RULE_CELLS_END &&
			 found < PEM_EVENT_RULES_MAX && !has_cell(rules, found, cell))
			rules[found++] = rule;
	}
	if (!found && any)
		rules[found++] = any;
	return drop_idle(rules, found);
}

uint32_t pem_rules__may_want(const struct pem_session_page *page, uint32_t count, uint32_t event_id,
			     uint32_t level)
{
	const struct pem_rule *rule;
	uint32_t flags = 0, i;

	for (i = 0; i < count && i < PEM_RULES_MAX; i++) {
		rule = &page->rules[i];
		if (rule->event_id == event_id || (rule->event_id == PEM_RULE_ANY_EVENT &&
						   (!rule->max_level || level <= rule->max_level)))
			flags |= PEM_ACTION_FLAGS(rule->action);
	}
	return flags;
}

bool pem_rules__need_parts(const struct pem_rule *const *rules, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (rules[i]->flags & PEM_RULE_COUNTERS ||
		    PEM_RULE_CELL(rules[i]->flags) >= PEM_RULE_GATED_CELLS)
			return true;
	return count > 1 || (count && PEM_RULE_CELL(rules[0]->flags) &&
			     PEM_ACTION_FLAGS(rules[0]->action) & PEM_ACTION_STAT);
}

uint64_t pem_rules__action(const struct pem_rule *const *rules, uint32_t count)
{
	uint32_t flags = PEM_ACTION_MORE, type = 0, i;

	if (!count)
		return 0;
	if (!pem_rules__need_parts(rules, count))
		return rules[0]->action;
	for (i = 0; i < count; i++)
		flags |= PEM_ACTION_FLAGS(rules[i]->action) &
			 (PEM_ACTION_LOG | PEM_ACTION_STAT | PEM_ACTION_CALLBACK | PEM_ACTION_WAKE);
	/* A rule with PEM_RULE_COUNTERS alone needs parts even if it is the only one. */
	if (count == 1 && PEM_ACTION_FLAGS(rules[0]->action) == PEM_ACTION_LOG)
		type = PEM_ACTION_COUNTED;
	return PEM_ACTION(flags, PEM_NO_FIELD, type, 0, PEM_ACTION_EPOCH(rules[0]->action));
}
