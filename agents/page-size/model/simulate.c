// SPDX-License-Identifier: MIT
/*
 * simulate.c - simulates a TLB of several levels for one mapping, exactly
 *
 * Invariant: the page of the last look-up in a pool is its newest, so the same page again is a hit
 * that changes nothing, with LRU and with a tree of bits. Most references end there.
 */
#include "recency.h"
#include "simulation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* With more, a list is quicker. */
#define ARRAY_WAYS 16u

enum kind { ARRAY, LIST, TREE };

struct pool {
	uint64_t last; /* key */
	enum kind kind;
	uint32_t ways, sets, group_shift;
	uint64_t set_mask; /* sets - 1, or 0 if sets is not a power of two */
	uint64_t *keys; /* ARRAY and TREE: sets * ways */
	uint64_t *bits; /* TREE: bit i of a set's word is node i; the root is node 1 */
	struct recency_list *lists; /* LIST */
};

/* What a reference of a site passes through. */
struct route {
	struct pool *pools[PAGE_LEVELS_MAX]; /* NULL: this level does not hold the size */
	uint32_t shift, size;
};

struct simulation {
	struct pool pools[PAGE_LEVELS_MAX * PAGE_POOLS_MAX];
	struct route routes[PAGE_SITES_MAX];
	uint64_t misses[PAGE_LEVELS_MAX];
	uint64_t site_misses[PAGE_SITES_MAX]; /* of the last level */
	uint64_t hits[PAGE_LEVELS_MAX][PAGE_SITES_MAX]; /* of later levels than the first */
	uint32_t levels, sites;
	bool open; /* see simulation__new */
};

static bool use_array(uint64_t *keys, uint32_t ways, uint64_t key)
{
	uint64_t held = keys[0], before;
	uint32_t i;

	if (held == key)
		return true;
	/* One pass that searches and moves. */
	keys[0] = key;
	for (i = 1; i < ways; i++) {
		before = keys[i];
		keys[i] = held;
		if (before == key)
			return true;
		held = before;
	}
	return false;
}

/* A bit of 0 says that the victim is on the left. */
static void point_away(uint64_t *bits, uint32_t ways, uint32_t way)
{
	uint32_t node;

	for (node = ways + way; node > 1; node /= 2) {
		if (node & 1)
			*bits &= ~(1ull << node / 2);
		else
			*bits |= 1ull << node / 2;
	}
}

static bool use_tree(uint64_t *keys, uint64_t *bits, uint32_t ways, uint64_t key)
{
	uint32_t i, node = 1;
	bool hit;

	for (i = 0; i < ways && keys[i] != key && keys[i]; i++)
		;
	hit = i < ways && keys[i] == key;
	if (i == ways) {
		while (node < ways)
			node = 2 * node + (*bits >> node & 1);
		i = node - ways;
	}
	keys[i] = key;
	point_away(bits, ways, i);
	return hit;
}

static bool use_pool(struct pool *pool, const struct route *route, uint32_t site, uint64_t page)
{
	uint64_t key, set;

	page >>= pool->group_shift;
	key = page_key(page, site, route->size);
	if (pool->last == key)
		return true;
	pool->last = key;
	set = pool->set_mask ? page & pool->set_mask : pool->sets == 1 ? 0 : page % pool->sets;
	switch (pool->kind) {
	case ARRAY:
		return use_array(&pool->keys[set * pool->ways], pool->ways, key);
	case LIST:
		/* Nothing asks for times. */
		return recency_list__use(&pool->lists[set], key, 1);
	case TREE:
		break;
	}
	return use_tree(&pool->keys[set * pool->ways], &pool->bits[set], pool->ways, key);
}

static int pool_init(struct pool *pool, const struct page_pool *from, bool lru)
{
	uint32_t i;

	pool->ways = from->ways;
	pool->sets = from->entries / from->ways;
	if (!(pool->sets & (pool->sets - 1)))
		pool->set_mask = pool->sets - 1;
	pool->kind = from->replacement == PAGE_TREE_PLRU && !lru ? TREE
		     : from->ways <= ARRAY_WAYS                  ? ARRAY
								 : LIST;
	if (pool->kind != LIST) {
		pool->keys = calloc(from->entries, sizeof(*pool->keys));
		pool->bits = calloc(pool->sets, sizeof(*pool->bits));
		return pool->keys && pool->bits ? 0 : -ENOMEM;
	}
	pool->lists = calloc(pool->sets, sizeof(*pool->lists));
	if (!pool->lists)
		return -ENOMEM;
	for (i = 0; i < pool->sets; i++) {
		if (recency_list__init(&pool->lists[i], from->ways) < 0)
			return -ENOMEM;
	}
	return 0;
}

void simulation__free(struct simulation *simulation)
{
	size_t i;
	uint32_t j;

	if (!simulation)
		return;
	for (i = 0; i < PAGE_LEVELS_MAX * PAGE_POOLS_MAX; i++) {
		struct pool *pool = &simulation->pools[i];

		for (j = 0; pool->lists && j < pool->sets; j++)
			recency_list__destroy(&pool->lists[j]);
		free(pool->lists);
		free(pool->keys);
		free(pool->bits);
	}
	free(simulation);
}

struct simulation *simulation__new(const struct page_geometry *geometry,
				   const struct page_sites *sites,
				   const struct page_mapping *mapping, bool open)
{
	struct simulation *simulation = calloc(1, sizeof(*simulation));
	const struct page_pool *from;
	uint32_t level, i;

	if (!simulation)
		return NULL;
	simulation->levels = geometry->level_count;
	simulation->sites = sites->count;
	simulation->open = open;
	for (level = 0; level < geometry->level_count; level++) {
		struct pool *pools = &simulation->pools[level * PAGE_POOLS_MAX];
		const struct page_level *l = &geometry->levels[level];

		for (i = 0; i < l->pool_count; i++) {
			pools[i].group_shift = l->group_shift;
			if (pool_init(&pools[i], &l->pools[i], open) < 0) {
				simulation__free(simulation);
				return NULL;
			}
		}
		for (i = 0; i < sites->count; i++) {
			from = geometry__pool(geometry, level, mapping->size[i]);
			simulation->routes[i].pools[level] = from ? &pools[from - l->pools] : NULL;
			simulation->routes[i].size = mapping->size[i];
			simulation->routes[i].shift =
				geometry__entry_shift(geometry, mapping->size[i]);
		}
	}
	return simulation;
}

/* The first level has missed. */
static void miss(struct simulation *simulation, const struct route *route, uint32_t site,
		 uint64_t page)
{
	uint32_t level;

	simulation->misses[0]++;
	for (level = 1; level < simulation->levels; level++) {
		if (route->pools[level] && use_pool(route->pools[level], route, site, page)) {
			simulation->hits[level][site]++;
			return;
		}
		simulation->misses[level]++;
	}
	simulation->site_misses[site]++;
}

/* Each level sees the reference; a level counts it only if those before it missed, too. */
static void use_all(struct simulation *simulation, const struct route *route, uint32_t site,
		    uint64_t page)
{
	bool missed = true;
	uint32_t level;

	for (level = 0; level < simulation->levels; level++) {
		if (route->pools[level] && use_pool(route->pools[level], route, site, page)) {
			simulation->hits[level][site] += missed;
			missed = false;
		}
		simulation->misses[level] += missed;
	}
	simulation->site_misses[site] += missed;
}

int simulation__add(struct simulation *simulation, const struct page_reference *references,
		    size_t count)
{
	bool open = simulation->open;
	size_t i;

	for (i = 0; i < count; i++) {
		uint32_t site = references[i].site;
		const struct route *route;
		uint64_t page;

		if (site >= simulation->sites)
			return -EINVAL;
		route = &simulation->routes[site];
		page = references[i].address >> route->shift;
		if (open)
			use_all(simulation, route, site, page);
		else if (!route->pools[0] || !use_pool(route->pools[0], route, site, page))
			miss(simulation, route, site, page);
	}
	return 0;
}

void simulation__forget_counts(struct simulation *simulation)
{
	memset(simulation->misses, 0, sizeof(simulation->misses));
	memset(simulation->site_misses, 0, sizeof(simulation->site_misses));
	memset(simulation->hits, 0, sizeof(simulation->hits));
}

void simulation__report(const struct simulation *simulation, const struct page_geometry *geometry,
			const struct page_sites *sites, const struct page_mapping *mapping,
			uint64_t count, struct page_result *result, struct level_hits *hits)
{
	uint32_t i, level;

	memset(result, 0, sizeof(*result));
	result->references = count;
	for (i = 0; i < geometry->level_count; i++)
		result->misses[i] = (double)simulation->misses[i];
	for (i = 0; i < sites->count; i++)
		result->site_walks[i] = (double)simulation->site_misses[i];
	for (level = 0; level < geometry->level_count; level++) {
		for (i = 0; i < sites->count; i++)
			hits->of[level][i] = (double)simulation->hits[level][i];
	}
	geometry__add_up(geometry, sites, mapping, hits, result);
}

int page_simulate(const struct page_geometry *geometry, const struct page_sites *sites,
		  const struct page_mapping *mapping, const struct page_reference *references,
		  size_t count, struct page_result *result)
{
	struct simulation *simulation;
	struct level_hits hits;
	int rc = page_geometry__check(geometry, NULL);

	if (rc < 0 || !geometry__fits(geometry, sites, mapping))
		return -EINVAL;
	simulation = simulation__new(geometry, sites, mapping, false);
	if (!simulation)
		return -ENOMEM;
	rc = simulation__add(simulation, references, count);
	if (!rc)
		simulation__report(simulation, geometry, sites, mapping, count, result, &hits);
	simulation__free(simulation);
	return rc;
}
