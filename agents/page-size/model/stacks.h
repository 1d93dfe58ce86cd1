/* SPDX-License-Identifier: MIT */
/*
 * stacks.h - for one pool of a TLB, the most recently used pages of each set, site and page size
 *
 * Invariant: each stack holds the newest pages, as many as a set has ways, of those that one site
 * would have in one set if it used one page size, with the times of their last uses.
 *
 * So the stack of a set under any mapping is the merge by time of its sites' stacks, each of the
 * size that the mapping says. A page that left its own stack has more newer pages of its own site
 * than the set has ways: it is missed under every mapping that gives its site this size.
 */
#ifndef PAGE_SIZE_STACKS_H
#define PAGE_SIZE_STACKS_H

#include "newest.h"
#include "recency.h"

struct stacks {
	struct page_pool pool;
	uint32_t sets, sites;
	uint64_t set_mask; /* sets - 1, or 0 if sets is not a power of two */
	uint32_t set_bits; /* of set_mask */
	uint32_t slots[PAGE_SIZES_MAX]; /* of each size that the pool holds, from 0 */
	uint32_t slot_count;
	/* The stack of set, slot and site is number (set * slot_count + slot) * sites + site. */
	newest_vector *arrays; /* each as newest.h has it; or NULL, and then lists */
	uint32_t vectors;
	uint64_t base; /* of the times in arrays and lists */
	struct recency_list *lists;
};

/* 0 or -ENOMEM. */
int stacks__init(struct stacks *stacks, const struct page_pool *pool, uint32_t sites);
void stacks__destroy(struct stacks *stacks);
size_t stacks__bytes(const struct stacks *stacks);

static inline bool stacks__hold(const struct stacks *stacks, uint32_t size)
{
	return stacks->pool.sizes >> size & 1;
}

static inline size_t stacks__first(const struct stacks *stacks, uint32_t size, uint64_t page)
{
	uint64_t set = stacks->set_mask    ? page & stacks->set_mask
		       : stacks->sets == 1 ? 0
					   : page % stacks->sets;

	return (set * stacks->slot_count + stacks->slots[size]) * stacks->sites;
}

static inline newest_vector *stacks__array(const struct stacks *stacks, size_t i)
{
	return &stacks->arrays[i * 2 * stacks->vectors];
}

/* An array may be in no cache: there are many, and a set is used now and then. */
static inline void stacks__prefetch(const struct stacks *stacks, uint32_t site, uint32_t size,
				    uint64_t page)
{
	const char *array;
	uint32_t i, bytes = stacks->vectors * 2 * sizeof(newest_vector);

	if (!stacks->arrays)
		return;
	array = (const char *)stacks__array(stacks, stacks__first(stacks, size, page) + site);
	for (i = 0; i < bytes; i += 64)
		__builtin_prefetch(array + i, 1);
}

/*
 * Make a page of a size that the pool holds the newest of its stack. Was it there? now is greater
 * than all times so far, and stacks__forget_times was called when it was a multiple of
 * STACKS_TIMES.
 */
static inline bool stacks__use(struct stacks *stacks, uint32_t site, uint32_t size, uint64_t page,
			       uint64_t key, uint64_t now)
{
	size_t i = stacks__first(stacks, size, page) + site;
	uint32_t time = (uint32_t)(now - stacks->base);

	if (stacks->arrays)
		return newest__use(stacks__array(stacks, i), stacks->vectors,
				   newest__key(page >> stacks->set_bits), time);
	return recency_list__use(&stacks->lists[i], key, (int32_t)time);
}

#define STACKS_TIMES ((uint64_t)NEWEST_TIMES / 2)

/* Keep times small: those that are STACKS_TIMES ago or more become one. */
void stacks__forget_times(struct stacks *stacks, uint64_t now);

/*
 * Count, for each size of the pool (in ascending order) and each site, the pages in the set of this
 * page that were used after it: slot_count * sites numbers, each at most the ways. If the page has
 * left its stack, the number of its own site and size is the ways, and the others are 0.
 */
void stacks__distance(const struct stacks *stacks, uint32_t site, uint32_t size, uint64_t page,
		      uint64_t key, uint16_t *counts);

#endif
