/* SPDX-License-Identifier: MIT */
/*
 * page_size_fixture.h - geometries and reference streams for the tests of the page-size model, and
 * a TLB that is simulated in the plainest way
 *
 * All numbers come from a fixed generator, so that each run is the same.
 */
#ifndef PAGE_SIZE_FIXTURE_H
#define PAGE_SIZE_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "agents/page-size/model/model.h"

#include <stdlib.h>
#include <string.h>

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
/* Where the memory of a site begins. */
#define SITE_BYTES (1ull << 36)
#define ENTRIES_MAX 4096

static uint64_t dice_state = 42;

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t dice(uint64_t below)
{
	uint64_t x = dice_state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

static inline struct page_reference at(uint32_t site, uint64_t offset)
{
	return (struct page_reference){(site + 1) * SITE_BYTES + offset, site, 0};
}

/* One level of one pool for 4 KiB and 2 MiB. */
static inline struct page_geometry one_pool(uint32_t entries, uint32_t ways)
{
	return (struct page_geometry){
		.size_count = 2,
		.shifts = {12, 21},
		.level_count = 1,
		.levels = {{.pool_count = 1, .pools = {{3, entries, ways, PAGE_LRU}}}},
		.walk_latency_ns = {30, 20},
		.walk_throughput_ns = {10, 5},
	};
}

/* A processor of the usual kind: own pools in the first level, one for both in the second. */
static inline struct page_geometry two_levels(uint32_t size_count)
{
	struct page_geometry geometry = {
		.size_count = size_count,
		.shifts = {12, 21, 30},
		.level_count = 2,
		.levels = {{.pool_count = 2, .pools = {{1, 64, 4, PAGE_LRU}, {2, 32, 4, PAGE_LRU}}},
			   {.pool_count = 1, .pools = {{3, 1536, 12, PAGE_LRU}}, .hit_ns = 2}},
		.walk_latency_ns = {30, 20, 15},
		.walk_throughput_ns = {10, 5, 4},
	};

	if (size_count == 3)
		geometry.levels[0].pools[geometry.levels[0].pool_count++] =
			(struct page_pool){4, 4, 4, PAGE_LRU};
	return geometry;
}

/* --- the plainest TLB --- */

struct plain_entry {
	uint64_t page;
	uint32_t site, size;
	uint64_t used; /* 0: empty */
};

struct plain {
	struct plain_entry entries[PAGE_LEVELS_MAX][PAGE_POOLS_MAX][ENTRIES_MAX];
	double misses[PAGE_LEVELS_MAX];
	double site_walks[PAGE_SITES_MAX];
};

static inline bool plain_use(const struct page_pool *pool, struct plain_entry *entries,
			     struct plain_entry page)
{
	uint32_t i, sets = pool->entries / pool->ways;
	struct plain_entry *set = &entries[page.page % sets * pool->ways], *oldest = set;

	for (i = 0; i < pool->ways; i++) {
		if (set[i].used && set[i].page == page.page && set[i].site == page.site &&
		    set[i].size == page.size) {
			set[i].used = page.used;
			return true;
		}
		if (set[i].used < oldest->used)
			oldest = &set[i];
	}
	*oldest = page;
	return false;
}

static inline void plain_simulate(const struct page_geometry *geometry,
				  const struct page_mapping *mapping,
				  const struct page_reference *references, size_t count,
				  struct plain *plain)
{
	uint32_t level, pool;
	size_t i;
	bool hit;

	memset(plain, 0, sizeof(*plain));
	for (i = 0; i < count; i++) {
		uint32_t site = references[i].site, size = mapping->size[site];
		struct plain_entry page = {references[i].address >> geometry->shifts[size], site,
					   size, i + 1};

		hit = false;
		for (level = 0; level < geometry->level_count && !hit; level++) {
			const struct page_level *l = &geometry->levels[level];

			for (pool = 0; pool < l->pool_count && !hit; pool++) {
				struct plain_entry entry = page;

				entry.page >>= l->group_shift;
				if (l->pools[pool].sizes >> size & 1)
					hit = plain_use(&l->pools[pool],
							plain->entries[level][pool], entry);
			}
			plain->misses[level] += !hit;
		}
		plain->site_walks[site] += !hit;
	}
}

/* The number of mappings, and mapping number i of them. */
static inline uint32_t mapping_count(uint32_t sites, uint32_t sizes)
{
	uint32_t n = 1;

	while (sites--)
		n *= sizes;
	return n;
}

static inline struct page_mapping mapping_number(uint32_t i, uint32_t sites, uint32_t sizes)
{
	struct page_mapping mapping = {{0}};
	uint32_t site;

	for (site = 0; site < sites; site++, i /= sizes)
		mapping.size[site] = (uint8_t)(i % sizes);
	return mapping;
}

/*
 * Streams that mix what programs do: each site has its own size, and is read in order, by strides,
 * at random or in a small hot part; phases change which sites are in use.
 */
static inline void fill_stream(struct page_reference *references, size_t count, uint32_t sites,
			       uint64_t bytes)
{
	uint64_t next[PAGE_SITES_MAX] = {0}, offset;
	uint32_t site, first = 0, in_use = sites;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!(i % (count / 4 + 1))) {
			first = (uint32_t)dice(sites);
			in_use = 1 + (uint32_t)dice(sites);
		}
		site = (first + (uint32_t)dice(in_use)) % sites;
		offset = bytes >> site % 4;
		switch (site % 5) {
		case 0:
			next[site] = (next[site] + 64 * dice(128)) % offset;
			break;
		case 1:
			next[site] = dice(offset);
			break;
		case 2:
			next[site] = (next[site] + 64 * KIB) % offset;
			break;
		case 3:
			next[site] = dice(10) ? dice(16 * KIB) : dice(offset);
			break;
		default:
			next[site] = dice(offset / (4 * KIB)) * dice(2) * 4 * KIB;
		}
		references[i] = at(site, next[site]);
	}
}

#endif
