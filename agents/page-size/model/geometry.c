// SPDX-License-Identifier: MIT
/* geometry.c - checks a geometry, and what a mapping costs before the first reference */
#include "internal.h"

#include <errno.h>

#define WINDOW_MAX 1e6

static const char *pool_fault(const struct page_pool *pool, uint32_t allowed)
{
	if (!pool->sizes || (pool->sizes & ~allowed))
		return "a TLB pool holds no page size, or one that another pool of its level "
		       "holds, or one that the geometry does not have";
	if (!pool->ways || !pool->entries || pool->entries > PAGE_ENTRIES_MAX ||
	    pool->entries % pool->ways)
		return "the entries of a TLB pool are not a multiple of its ways, or too many";
	if (pool->replacement == PAGE_TREE_PLRU) {
		if (pool->ways > 64 || (pool->ways & (pool->ways - 1)))
			return "a tree of pseudo-LRU bits needs ways that are a power of two up "
			       "to 64";
	} else if (pool->replacement != PAGE_LRU) {
		return "the replacement of a TLB pool is not known";
	}
	return NULL;
}

static const char *level_fault(const struct page_level *level, uint32_t sizes)
{
	const char *fault;
	uint32_t i;

	if (level->pool_count > PAGE_POOLS_MAX)
		return "a TLB level has too many pools";
	if (level->group_shift > 9)
		return "an entry of a TLB level holds more pages than a page of a table";
	for (i = 0; i < level->pool_count; i++) {
		fault = pool_fault(&level->pools[i], sizes);
		if (fault)
			return fault;
		sizes &= ~level->pools[i].sizes;
	}
	return NULL;
}

static const char *geometry_fault(const struct page_geometry *geometry)
{
	const char *fault;
	uint32_t i;

	if (!geometry->size_count || geometry->size_count > PAGE_SIZES_MAX)
		return "the number of page sizes is not 1 to 3";
	for (i = 0; i < geometry->size_count; i++) {
		if (geometry->shifts[i] < PAGE_SHIFT_MIN || geometry->shifts[i] > 63 ||
		    (i && geometry->shifts[i] <= geometry->shifts[i - 1]))
			return "page sizes do not ascend, or one is below 1 KiB";
		if (geometry->entry_shifts[i] && (geometry->entry_shifts[i] < geometry->shifts[0] ||
						  geometry->entry_shifts[i] > geometry->shifts[i]))
			return "a TLB entry maps less than the smallest page, or more than its own";
	}
	if (!geometry->level_count || geometry->level_count > PAGE_LEVELS_MAX)
		return "the number of TLB levels is not 1 to 3";
	for (i = 0; i < geometry->level_count; i++) {
		fault = level_fault(&geometry->levels[i], (1u << geometry->size_count) - 1);
		if (fault)
			return fault;
		if (geometry->levels[i].hidden_ns &&
		    (!i || !(geometry->levels[i].hidden_ns > 0 &&
			     geometry->levels[i].hidden_ns <= geometry->levels[i].hit_ns)))
			return "a TLB level hides time that its hits do not take";
	}
	if (!(geometry->window_instructions >= 0 && geometry->window_instructions <= WINDOW_MAX))
		return "walks overlap within no number of instructions, or too many";
	return NULL;
}

int page_geometry__check(const struct page_geometry *geometry, const char **reason)
{
	const char *fault = geometry_fault(geometry);

	if (!fault)
		return 0;
	if (reason)
		*reason = fault;
	return -EINVAL;
}

const struct page_pool *geometry__pool(const struct page_geometry *geometry, uint32_t level,
				       uint32_t size)
{
	const struct page_level *l = &geometry->levels[level];
	uint32_t i;

	for (i = 0; i < l->pool_count; i++) {
		if (l->pools[i].sizes >> size & 1)
			return &l->pools[i];
	}
	return NULL;
}

bool geometry__fits(const struct page_geometry *geometry, const struct page_sites *sites,
		    const struct page_mapping *mapping)
{
	uint32_t i;

	if (sites->count > PAGE_SITES_MAX)
		return false;
	for (i = 0; i < sites->count; i++) {
		if (mapping->size[i] >= geometry->size_count)
			return false;
	}
	return true;
}

void geometry__add_up(const struct page_geometry *geometry, const struct page_sites *sites,
		      const struct page_mapping *mapping, const struct level_hits *hits,
		      struct page_result *result)
{
	struct overlap overlap;
	double reached = (double)result->references, ns;
	uint32_t i, level;

	overlap__find(geometry, sites, mapping, result, &overlap);
	result->time_ns = 0;
	for (i = 0; i < geometry->level_count; i++) {
		result->time_ns += (reached - result->misses[i]) * geometry->levels[i].hit_ns;
		reached = result->misses[i];
	}
	result->walks = reached;
	for (i = 0; i < sites->count; i++) {
		uint32_t size = mapping->size[i];

		ns = overlap__walk_ns(&overlap, geometry, sites, i, size);
		result->time_ns += result->site_walks[i] * ns +
				   (double)sites->pages[i][size] * geometry->first_touch_ns[size];
		for (level = 1; level < geometry->level_count; level++) {
			ns = overlap__hit_ns(&overlap, geometry, sites, i, level);
			result->time_ns +=
				hits->of[level][i] * (ns - geometry->levels[level].hit_ns);
		}
	}
}

uint64_t page_mapping__bytes(const struct page_geometry *geometry, const struct page_sites *sites,
			     const struct page_mapping *mapping)
{
	uint64_t sum = 0, bytes;
	uint32_t i;

	for (i = 0; i < sites->count; i++) {
		uint32_t size = mapping->size[i];

		if (!size)
			continue;
		if (__builtin_mul_overflow(sites->pages[i][size], 1ull << geometry->shifts[size],
					   &bytes) ||
		    __builtin_add_overflow(sum, bytes, &sum))
			return UINT64_MAX;
	}
	return sum;
}
