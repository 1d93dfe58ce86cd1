// SPDX-License-Identifier: MIT
/*
 * choice.c - chooses a mapping for a budget, and ranks those of many budgets
 *
 * The search goes by a quick cost; the best that it found are compared by an exact one.
 */
#include "search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double exact_cost(const struct page_costs *costs, const struct page_mapping *mapping)
{
	return (costs->exact ? costs->exact : costs->quick)(costs->data, mapping);
}

/* What the search found is one of the kept, or costs about as much and has fewer bytes. */
static uint32_t list_candidates(const struct search *search, struct state *candidates)
{
	uint32_t n = 0, i;

	candidates[n++] = search->none;
	if (search->at.bytes)
		candidates[n++] = search->at;
	for (i = 0; i < search->kept_count && n < PAGE_CHECKED_MAX; i++) {
		if (search->kept[i].bytes && memcmp(&search->kept[i].mapping, &search->at.mapping,
						    sizeof(search->at.mapping)) != 0)
			candidates[n++] = search->kept[i];
	}
	return n;
}

/* Of those that gain as much as any, but for the noise, the one with the fewest bytes. */
static int check_candidates(const struct search *search, const struct page_costs *costs,
			    double noise, struct state *chosen)
{
	struct state candidates[PAGE_CHECKED_MAX];
	uint32_t i, n = list_candidates(search, candidates), best = 0;
	double least = INFINITY;

	for (i = 0; i < n; i++) {
		candidates[i].cost = exact_cost(costs, &candidates[i].mapping);
		if (candidates[i].cost < 0)
			return (int)candidates[i].cost;
		if (candidates[i].cost < least)
			least = candidates[i].cost;
	}
	for (best = 0, i = 0; i < n; i++) {
		if (candidates[i].cost > least + noise)
			continue;
		if (candidates[best].cost > least + noise ||
		    candidates[i].bytes < candidates[best].bytes ||
		    (candidates[i].bytes == candidates[best].bytes &&
		     candidates[i].cost < candidates[best].cost))
			best = i;
	}
	*chosen = candidates[best];
	return 0;
}

static int start(struct search *search, const struct page_geometry *geometry,
		 const struct page_sites *sites, const struct page_costs *costs)
{
	if (page_geometry__check(geometry, NULL) < 0 || sites->count > PAGE_SITES_MAX)
		return -EINVAL;
	memset(search, 0, sizeof(*search));
	search->geometry = geometry;
	search->sites = sites;
	search->cost = costs->quick;
	search->data = costs->data;
	search->answers = calloc((size_t)1 << SEARCH_ANSWER_BITS, sizeof(*search->answers));
	return search->answers ? 0 : -ENOMEM;
}

static int choose(struct search *search, const struct page_budget *budget,
		  const struct page_costs *costs, struct state *chosen)
{
	int rc = search__run(search, budget);

	return rc < 0 ? rc : check_candidates(search, costs, budget->noise, chosen);
}

int page_choose(const struct page_geometry *geometry, const struct page_sites *sites,
		const struct page_budget *budget, const struct page_costs *costs,
		struct page_mapping *mapping)
{
	struct search search;
	struct state chosen;
	int rc = start(&search, geometry, sites, costs);

	if (rc < 0)
		return rc;
	rc = choose(&search, budget, costs, &chosen);
	if (!rc)
		*mapping = chosen.mapping;
	free(search.answers);
	return rc;
}

/* --- ranking --- */

/* From the least that buys anything to all, by equal factors. */
static uint64_t budget_number(size_t i, size_t count, uint64_t least, uint64_t most)
{
	double share = count > 1 ? (double)i / (double)(count - 1) : 1;

	if (i + 1 >= count || least >= most)
		return most;
	return (uint64_t)((double)least * pow((double)most / (double)least, share));
}

/* The bytes of the cheapest large mapping of one site, and of the largest of all. */
static void find_bounds(const struct page_geometry *geometry, const struct page_sites *sites,
			uint64_t *least, uint64_t *most)
{
	struct page_mapping one = {{0}}, all = {{0}};
	uint32_t i, size;
	uint64_t bytes;

	*least = UINT64_MAX;
	memset(all.size, (int)geometry->size_count - 1, sites->count);
	for (i = 0; i < sites->count; i++) {
		for (size = 1; size < geometry->size_count; size++) {
			one.size[i] = (uint8_t)size;
			bytes = page_mapping__bytes(geometry, sites, &one);
			if (bytes && bytes < *least)
				*least = bytes;
		}
		one.size[i] = 0;
	}
	*most = page_mapping__bytes(geometry, sites, &all);
}

static int by_bytes(const void *a, const void *b)
{
	const struct page_ranked *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return x->cost < y->cost ? -1 : x->cost > y->cost;
}

/* Percentages, their errors, and the front. The first has no large pages. */
static void compare(struct page_ranked *list, size_t count)
{
	const struct page_ranked *none = &list[0], *best = none;
	double all, share, least = INFINITY, variance;
	size_t i;

	for (i = 0; i < count; i++) {
		if (list[i].cost < best->cost)
			best = &list[i];
	}
	all = none->cost - best->cost;
	for (i = 0; i < count; i++) {
		list[i].front = list[i].cost < least;
		least = list[i].front ? list[i].cost : least;
		if (all <= 0 || &list[i] == none)
			continue;
		share = (none->cost - list[i].cost) / all;
		list[i].percent = share * 100;
		if (&list[i] == best)
			continue;
		/* Of (none - this) / (none - best), by derivatives. */
		variance = pow((1 - share) * none->cost_error, 2) + pow(list[i].cost_error, 2) +
			   pow(share * best->cost_error, 2);
		list[i].percent_error = sqrt(variance) / all * 100;
	}
}

static bool add(struct page_ranked *list, size_t n, const struct state *state)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!memcmp(&list[i].mapping, &state->mapping, sizeof(state->mapping)))
			return false;
	}
	list[n] = (struct page_ranked){
		.mapping = state->mapping, .bytes = state->bytes, .cost = state->cost};
	return true;
}

static int fill(struct search *search, const struct page_budget *budget,
		const struct page_costs *costs, struct page_ranked *list, size_t room)
{
	struct page_budget part = *budget;
	uint64_t least, most;
	struct state state = {0};
	size_t i, n = 0;
	int rc;

	find_bounds(search->geometry, search->sites, &least, &most);
	if (most > budget->bytes)
		most = budget->bytes;
	state.cost = exact_cost(costs, &state.mapping);
	if (state.cost < 0)
		return (int)state.cost;
	n += add(list, n, &state);
	for (i = 0; i + 1 < room; i++) {
		part.bytes = budget_number(i, room - 1, least, most);
		rc = choose(search, &part, costs, &state);
		if (rc < 0)
			return rc;
		n += add(list, n, &state);
	}
	return (int)n;
}

int page_rank(const struct page_geometry *geometry, const struct page_sites *sites,
	      const struct page_budget *budget, const struct page_costs *costs,
	      struct page_ranked *list, size_t room)
{
	struct search search;
	int n = start(&search, geometry, sites, costs), i;
	double error;

	if (n < 0)
		return n;
	n = room && room <= PAGE_RANKED_MAX ? fill(&search, budget, costs, list, room) : -EINVAL;
	free(search.answers);
	for (i = 0; i < n && costs->error; i++) {
		error = costs->error(costs->data, &list[i].mapping);
		if (error < 0)
			return (int)error;
		list[i].cost_error = error;
	}
	if (n > 0) {
		qsort(list, (size_t)n, sizeof(*list), by_bytes);
		compare(list, (size_t)n);
	}
	return n;
}
