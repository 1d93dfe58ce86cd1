// SPDX-License-Identifier: MIT
/*
 * search.c - searches for mappings of low cost within a budget of large pages
 *
 * Invariant: a mapping that the search holds keeps within the budget, and its cost is known.
 *
 * It is a knapsack, but the value of a set of sites is not the sum of theirs, and not submodular:
 * of two arrays that each fit in the TLB and thrash together, each alone may gain nothing. So the
 * search changes up to three sites at once. It tries all mappings of the sites that matter most, as
 * many as is quick, and starts from the best of them and from greedy choices; each start is
 * improved by the best change until there is none (Martello and Toth, Knapsack Problems, 1990,
 * section 2.4, for greedy starts and exchanges).
 */
#include "search.h"

#include <string.h>

#define PAIR_SITES 24u
#define TRIPLE_SITES 12u
#define CHANGES_MAX 3u
#define MAPPINGS_MAX 1024u

/* What rounding makes of sums in another order is no difference. */
#define ROUNDING 1e-12

static bool same_mapping(const struct search *search, const struct page_mapping *a,
			 const struct page_mapping *b)
{
	return !memcmp(a->size, b->size, search->sites->count);
}

/*
 * Among the best, by cost. Of two of the same cost the one with fewer bytes stays: the other only
 * has large pages that gain nothing.
 */
static void keep(struct search *search, const struct state *state)
{
	struct state *best = search->kept;
	uint32_t i, n = search->kept_count;
	double same = search->none.cost * ROUNDING;

	for (i = 0; i < n && best[i].cost < state->cost - same; i++)
		;
	if (i < n && best[i].cost <= state->cost + same) {
		if (state->bytes < best[i].bytes)
			best[i] = *state;
		return;
	}
	if (n < SEARCH_KEPT_MAX)
		n = ++search->kept_count;
	if (i == n)
		return;
	memmove(&best[i + 1], &best[i], (n - i - 1) * sizeof(*best));
	best[i] = *state;
}

static double cost_of(struct search *search, const struct page_mapping *mapping)
{
	uint64_t hash = 0, word;
	struct search_answer *answer;
	uint32_t i;

	for (i = 0; i < PAGE_SITES_MAX; i += sizeof(word)) {
		memcpy(&word, &mapping->size[i], sizeof(word));
		hash = page_hash(hash ^ word);
	}
	answer = &search->answers[hash >> (64 - SEARCH_ANSWER_BITS)];
	if (!answer->known || !same_mapping(search, &answer->mapping, mapping)) {
		answer->cost = search->cost(search->data, mapping);
		answer->mapping = *mapping;
		answer->known = true;
	}
	return answer->cost;
}

/* Fill in cost and bytes. False: over the budget, or an error. */
static bool evaluate(struct search *search, struct state *state)
{
	state->bytes = page_mapping__bytes(search->geometry, search->sites, &state->mapping);
	if (state->bytes > search->budget || search->error < 0)
		return false;
	state->cost = cost_of(search, &state->mapping);
	if (state->cost < 0) {
		search->error = state->cost;
		return false;
	}
	keep(search, state);
	return true;
}

static void try_state(struct search *search, struct state *state)
{
	double gain, rate;

	if (!evaluate(search, state))
		return;
	gain = search->at.cost - state->cost;
	if (gain <= search->at.cost * ROUNDING)
		return;
	rate = gain;
	if (search->rate == BY_GAIN_PER_BYTE)
		rate /= state->bytes > search->at.bytes ? (double)(state->bytes - search->at.bytes)
							: 1;
	if (rate > search->best_rate) {
		search->best_rate = rate;
		search->best = *state;
	}
}

/* Try all changes of exactly left more sites, from this one in the order on. */
static void try_changes(struct search *search, struct state *state, uint32_t from, uint32_t count,
			uint32_t left)
{
	uint32_t i, size;

	for (i = from; i < count; i++) {
		uint32_t site = search->order[i];
		uint8_t before = state->mapping.size[site];

		for (size = 0; size < search->geometry->size_count; size++) {
			if (size == before)
				continue;
			state->mapping.size[site] = (uint8_t)size;
			if (left == 1)
				try_state(search, state);
			else
				try_changes(search, state, i + 1, count, left - 1);
		}
		state->mapping.size[site] = before;
	}
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Make the best change of up to changes sites. False: none gains. */
static bool step(struct search *search, uint32_t changes)
{
	static const uint32_t among[] = {0, PAGE_SITES_MAX, PAIR_SITES, TRIPLE_SITES};
	struct state state;
	uint32_t n;

	search->best_rate = 0;
	for (n = 1; n <= changes; n++) {
		state = search->at;
		try_changes(search, &state, 0, least(search->sites->count, among[n]), n);
	}
	if (search->best_rate <= 0 || search->error < 0)
		return false;
	search->at = search->best;
	return true;
}

/* Triples are many, so they are tried only when singles and pairs do not gain. */
static void climb(struct search *search)
{
	while (step(search, CHANGES_MAX - 1) || step(search, CHANGES_MAX))
		;
}

/* By the gain of each site alone, and by small pages, in turn. */
static void order_sites(struct search *search)
{
	uint32_t n = search->sites->count, i, k, size;
	double gain[PAGE_SITES_MAX] = {0};
	bool taken[PAGE_SITES_MAX] = {false};
	struct state state = search->at;

	for (i = 0; i < n; i++) {
		for (size = 1; size < search->geometry->size_count; size++) {
			state.mapping.size[i] = (uint8_t)size;
			if (evaluate(search, &state) && search->at.cost - state.cost > gain[i])
				gain[i] = search->at.cost - state.cost;
		}
		state.mapping.size[i] = 0;
	}
	for (k = 0; k < n; k++) {
		uint32_t best = n;

		for (i = 0; i < n; i++) {
			if (taken[i])
				continue;
			if (best == n ||
			    (k % 2 ? search->sites->pages[i][0] > search->sites->pages[best][0]
				   : gain[i] > gain[best]))
				best = i;
		}
		taken[best] = true;
		search->order[k] = best;
	}
}

/* Give up large pages as long as all that goes gains no more than the noise. */
static void drop_useless(struct search *search, double noise)
{
	double limit = search->at.cost + noise;
	struct state state, best;
	bool found;
	uint32_t i;

	do {
		found = false;
		for (i = 0; i < search->sites->count; i++) {
			state = search->at;
			if (!state.mapping.size[i])
				continue;
			state.mapping.size[i] = 0;
			if (!evaluate(search, &state) || state.cost > limit ||
			    (found && state.cost >= best.cost))
				continue;
			best = state;
			found = true;
		}
		if (found)
			search->at = best;
	} while (found);
}

static void try_all(struct search *search, struct state *state, uint32_t i, uint32_t count)
{
	uint32_t size;

	if (i == count) {
		try_state(search, state);
		return;
	}
	for (size = 0; size < search->geometry->size_count; size++) {
		state->mapping.size[search->order[i]] = (uint8_t)size;
		try_all(search, state, i + 1, count);
	}
}

/* The best mapping of the first sites, the others having size 0, which all have at first. */
static void start_with_all(struct search *search)
{
	uint32_t count = 0, n, sizes = search->geometry->size_count;
	struct state state = search->at;

	for (n = sizes; n <= MAPPINGS_MAX && count < search->sites->count && sizes > 1; n *= sizes)
		count++;
	search->best_rate = 0;
	try_all(search, &state, 0, count);
	if (search->best_rate > 0)
		search->at = search->best;
}

static void start_by_gain_per_byte(struct search *search)
{
	search->rate = BY_GAIN_PER_BYTE;
	while (step(search, 2))
		;
	search->rate = BY_GAIN;
}

/* Size 0 for all where the budget does not reach. */
static void start_with(struct search *search, uint32_t size)
{
	struct state state = search->at;

	memset(state.mapping.size, (int)size, search->sites->count);
	if (evaluate(search, &state))
		search->at = state;
}

/* From each start. The last, of size 0, climbs from none by gain. */
static struct state search_all(struct search *search)
{
	uint32_t start, sizes = search->geometry->size_count;
	struct state best = search->none;

	for (start = 0; start < 2 + sizes && search->error >= 0; start++) {
		search->at = search->none;
		if (!start)
			start_with_all(search);
		else if (start == 1)
			start_by_gain_per_byte(search);
		else
			start_with(search, 1 + sizes - start);
		climb(search);
		if (search->at.cost < best.cost)
			best = search->at;
	}
	return best;
}

int search__run(struct search *search, const struct page_budget *budget)
{
	struct state none = {0};

	search->budget = budget->bytes;
	search->error = 0;
	search->rate = BY_GAIN;
	search->kept_count = 0;
	if (!evaluate(search, &none))
		return (int)search->error;
	search->none = search->at = none;
	order_sites(search);
	search->at = search_all(search);
	drop_useless(search, budget->noise);
	return (int)search->error;
}
