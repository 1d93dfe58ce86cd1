// SPDX-License-Identifier: MIT
/* stacks.c - makes the stacks of a pool, and counts in them */
#include "stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t stack_count(const struct stacks *stacks)
{
	return (size_t)stacks->sets * stacks->slot_count * stacks->sites;
}

static int arrays_init(struct stacks *stacks)
{
	size_t i, bytes = newest__bytes(stacks->pool.ways), count = stack_count(stacks);
	uint32_t way, lanes;
	int32_t *times;

	stacks->vectors = newest__vectors(stacks->pool.ways);
	lanes = stacks->vectors * NEWEST_LANES;
	/* One that begins with a cache line takes as few of them as it can. */
	if (posix_memalign((void **)&stacks->arrays, 64, count * bytes + 1) != 0) {
		stacks->arrays = NULL;
		return -ENOMEM;
	}
	memset(stacks->arrays, 0, count * bytes);
	for (i = 0; i < count; i++) {
		times = (int32_t *)(stacks__array(stacks, i) + stacks->vectors);
		for (way = 0; way < lanes; way++)
			times[way] = way < stacks->pool.ways ? (int32_t)way : INT32_MAX;
	}
	return 0;
}

void stacks__forget_times(struct stacks *stacks, uint64_t now)
{
	size_t i;
	uint32_t way;
	int32_t *times;

	if (now - stacks->base < 2 * STACKS_TIMES)
		return;
	stacks->base += STACKS_TIMES;
	for (i = 0; stacks->lists && i < stack_count(stacks); i++)
		recency_list__forget_times(&stacks->lists[i], (int32_t)STACKS_TIMES);
	if (!stacks->arrays)
		return;
	for (i = 0; i < stack_count(stacks); i++) {
		times = (int32_t *)(stacks__array(stacks, i) + stacks->vectors);
		for (way = 0; way < stacks->pool.ways; way++) {
			times[way] -= (int32_t)(STACKS_TIMES * NEWEST_WAYS_MAX);
			if (times[way] < 0)
				times[way] = (int32_t)way;
		}
	}
}

int stacks__init(struct stacks *stacks, const struct page_pool *pool, uint32_t sites)
{
	uint32_t size;
	size_t i;

	memset(stacks, 0, sizeof(*stacks));
	stacks->pool = *pool;
	stacks->sites = sites;
	stacks->sets = pool->entries / pool->ways;
	if (!(stacks->sets & (stacks->sets - 1)))
		stacks->set_mask = stacks->sets - 1;
	for (size = 0; size < PAGE_SIZES_MAX; size++) {
		if (stacks__hold(stacks, size))
			stacks->slots[size] = stacks->slot_count++;
	}
	stacks->set_bits = stacks->set_mask ? (uint32_t)__builtin_ctz(stacks->sets) : 0;
	if (pool->ways <= NEWEST_WAYS_MAX)
		return arrays_init(stacks);
	stacks->lists = calloc(stack_count(stacks) + 1, sizeof(*stacks->lists));
	if (!stacks->lists)
		return -ENOMEM;
	for (i = 0; i < stack_count(stacks); i++) {
		if (recency_list__init(&stacks->lists[i], pool->ways) < 0)
			return -ENOMEM;
	}
	return 0;
}

void stacks__destroy(struct stacks *stacks)
{
	size_t i;

	for (i = 0; stacks->lists && i < stack_count(stacks); i++)
		recency_list__destroy(&stacks->lists[i]);
	free(stacks->lists);
	free(stacks->arrays);
}

size_t stacks__bytes(const struct stacks *stacks)
{
	size_t count = stack_count(stacks);

	if (stacks->arrays)
		return count * newest__bytes(stacks->pool.ways);
	return count * (sizeof(*stacks->lists) + recency_list__bytes(stacks->pool.ways));
}

/* Without the page, its own number is the ways, and the others are 0. */
static uint16_t *own_count(const struct stacks *stacks, uint32_t site, uint32_t size,
			   uint16_t *counts)
{
	memset(counts, 0, stacks->slot_count * stacks->sites * sizeof(*counts));
	return &counts[stacks->slots[size] * stacks->sites + site];
}

/* first: of the stacks of one set, which lie together. own: that of the page. */
static bool count_in_arrays(const struct stacks *stacks, size_t first, size_t own, uint64_t page,
			    uint16_t *counts)
{
	const newest_vector *array = stacks__array(stacks, own);
	uint32_t i, n = stacks->slot_count * stacks->sites;
	int found = newest__find(array, stacks->vectors, newest__key(page >> stacks->set_bits));
	int32_t time;

	if (found < 0)
		return false;
	time = ((const int32_t *)(array + stacks->vectors))[found];
	/* Times of one use are equal but for their last bits. */
	time |= (int32_t)NEWEST_WAYS_MAX - 1;
	for (i = 0; i < n; i++)
		counts[i] = (uint16_t)newest__count(stacks__array(stacks, first + i),
						    stacks->vectors, stacks->pool.ways, time);
	return true;
}

static bool count_in_lists(const struct stacks *stacks, size_t first, size_t own, uint64_t key,
			   uint16_t *counts)
{
	uint32_t i, node = recency_list__find(&stacks->lists[own], key);
	uint32_t n = stacks->slot_count * stacks->sites;
	int32_t time;

	if (!node)
		return false;
	time = *recency_list__time(&stacks->lists[own], node);
	for (i = 0; i < n; i++)
		counts[i] = (uint16_t)recency_list__count(&stacks->lists[first + i], time);
	return true;
}

void stacks__distance(const struct stacks *stacks, uint32_t site, uint32_t size, uint64_t page,
		      uint64_t key, uint16_t *counts)
{
	size_t own = stacks__first(stacks, size, page) + site;
	size_t first = own - site - (size_t)stacks->slots[size] * stacks->sites;

	if (stacks->arrays ? !count_in_arrays(stacks, first, own, page, counts)
			   : !count_in_lists(stacks, first, own, key, counts))
		*own_count(stacks, site, size, counts) = (uint16_t)stacks->pool.ways;
}
