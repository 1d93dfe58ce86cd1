// SPDX-License-Identifier: MIT
/* page_size_choice.c - the choice of a mapping under a budget: known answers, and all mappings */
#include "page_size_fixture.h"

#include <errno.h>
#include <math.h>

/* A program and the machine that it runs on. */
struct scene {
	struct page_geometry geometry;
	struct page_sites sites;
	struct page_model *model;
};

static double model_ns(void *data, const struct page_mapping *mapping)
{
	const struct scene *scene = data;
	struct page_result result;
	int rc = page_model__cost(scene->model, &scene->sites, mapping, &result);

	return rc < 0 ? rc : result.time_ns;
}

static double estimated_ns(void *data, const struct page_mapping *mapping)
{
	const struct scene *scene = data;
	struct page_result result;
	int rc = page_model__estimate(scene->model, &scene->sites, mapping, &result);

	return rc < 0 ? rc : result.time_ns;
}

static struct scene read_scene(struct page_geometry geometry, uint32_t sites,
			       const struct page_reference *references, size_t count)
{
	struct scene scene = {.geometry = geometry};

	scene.model = page_model__new(&geometry, sites, 7);
	assert_non_null(scene.model);
	assert_int_equal(page_model__add(scene.model, references, count), 0);
	page_model__pages(scene.model, &scene.sites);
	return scene;
}

static struct page_mapping choose(struct scene *scene, uint64_t bytes, double noise)
{
	struct page_budget budget = {bytes, noise};
	struct page_costs costs = {.quick = estimated_ns, .exact = model_ns, .data = scene};
	struct page_mapping mapping;

	assert_int_equal(page_choose(&scene->geometry, &scene->sites, &budget, &costs, &mapping),
			 0);
	assert_true(page_mapping__bytes(&scene->geometry, &scene->sites, &mapping) <= bytes);
	return mapping;
}

static struct page_reference *new_stream(size_t count)
{
	struct page_reference *references = calloc(count, sizeof(*references));

	assert_non_null(references);
	return references;
}

static void one_hot_line_in_each_large_page_is_refused(void **state)
{
	enum { REGIONS = 4096, COUNT = 5 * REGIONS };
	struct page_geometry geometry = two_levels(2);
	struct page_reference *references = new_stream(COUNT);
	struct scene scene;
	size_t i;

	(void)state;
	/* As many large pages as small ones, and each needs more of everything. */
	for (i = 0; i < COUNT; i++)
		references[i] = at(0, i % REGIONS * (2 * MIB + 4 * KIB));
	geometry.first_touch_ns[0] = 250;
	geometry.first_touch_ns[1] = 60000;
	scene = read_scene(geometry, 1, references, COUNT);
	assert_int_equal(choose(&scene, UINT64_MAX, 0).size[0], 0);
	/* Nor if first touches are free, and every large page would have to be bought. */
	memset(scene.geometry.first_touch_ns, 0, sizeof(scene.geometry.first_touch_ns));
	assert_int_equal(choose(&scene, 64 * MIB, 0).size[0], 0);
	page_model__free(scene.model);
	free(references);
}

static void what_fits_in_the_first_level_gains_nothing(void **state)
{
	enum { COUNT = 50000 };
	struct page_geometry geometry = two_levels(2);
	struct page_reference *references = new_stream(COUNT);
	struct scene scene;
	size_t i;

	(void)state;
	/* Most references are of the 16 pages of site 0; site 1 has 64 MiB. */
	for (i = 0; i < COUNT; i++)
		references[i] = i % 10 ? at(0, dice(64 * KIB)) : at(1, dice(64 * MIB));
	scene = read_scene(geometry, 2, references, COUNT);
	assert_int_equal(choose(&scene, UINT64_MAX, 0.001 * COUNT).size[0], 0);
	assert_int_equal(choose(&scene, UINT64_MAX, 0.001 * COUNT).size[1], 1);
	page_model__free(scene.model);

	for (i = 0; i < COUNT; i++)
		references[i] = at((uint32_t)(i % 2), dice(64 * KIB));
	scene = read_scene(geometry, 2, references, COUNT);
	assert_int_equal(choose(&scene, UINT64_MAX, 0.01 * COUNT).size[0], 0);
	assert_int_equal(choose(&scene, UINT64_MAX, 0.01 * COUNT).size[1], 0);
	page_model__free(scene.model);
	free(references);
}

static void strides_by_powers_of_two_get_large_pages(void **state)
{
	enum { COUNT = 32000 };
	struct page_reference *references = new_stream(COUNT);
	struct scene scene;
	size_t i;

	(void)state;
	/*
	 * Site 0 has 32 pages in one set. Site 1 has 900 that are spread over all sets and fit,
	 * although it has more pages and as many references.
	 */
	for (i = 0; i < COUNT; i++)
		references[i] = i % 2 ? at(0, i / 2 % 32 * MIB) : at(1, i / 2 % 900 * 4 * KIB);
	scene = read_scene(two_levels(2), 2, references, COUNT);
	assert_int_equal(choose(&scene, 32 * MIB, 0).size[0], 1);
	assert_int_equal(choose(&scene, 32 * MIB, 0).size[1], 0);
	page_model__free(scene.model);
	free(references);
}

static void two_phases_with_room_for_one(void **state)
{
	enum { COUNT = 100000 };
	struct page_reference *references = new_stream(COUNT);
	struct scene scene;
	size_t i;

	(void)state;
	/* Phases of equal sites; the second is longer, so its site is worth more. */
	for (i = 0; i < COUNT; i++)
		references[i] = at(i >= COUNT * 2 / 5, dice(32 * MIB));
	scene = read_scene(two_levels(2), 2, references, COUNT);
	assert_int_equal(choose(&scene, 32 * MIB, 0).size[0], 0);
	assert_int_equal(choose(&scene, 32 * MIB, 0).size[1], 1);
	assert_int_equal(choose(&scene, 64 * MIB, 0).size[0], 1);
	assert_int_equal(choose(&scene, 64 * MIB, 0).size[1], 1);
	assert_int_equal(choose(&scene, 32 * MIB - 1, 0).size[1], 0);
	page_model__free(scene.model);
	free(references);
}

/*
 * Bursts of two threads: each has an array of its own that fits in the TLB, and both read a large
 * one. Only the shared one gains.
 */
static void threads_with_private_and_shared_arrays(void **state)
{
	enum { BURST = 40000, BURSTS = 8, PAGES = 48 };
	struct page_geometry geometry = two_levels(2);
	struct page_reference *references = new_stream(BURST);
	struct scene scene = {.geometry = geometry};
	struct page_mapping mapping;
	uint32_t burst;
	size_t i;

	(void)state;
	scene.model = page_model__new(&geometry, 3, 7);
	for (burst = 0; burst < BURSTS; burst++) {
		for (i = 0; i < BURST; i++)
			references[i] =
				i % 8 ? at(burst & 1, i % PAGES * 4 * KIB) : at(2, dice(64 * MIB));
		if (burst)
			page_model__gap(scene.model);
		assert_int_equal(page_model__add(scene.model, references, BURST), 0);
	}
	page_model__pages(scene.model, &scene.sites);
	/* A tenth of a nanosecond for each reference is noise. */
	mapping = choose(&scene, 64 * MIB, 0.1 * BURSTS * BURST);
	assert_int_equal(mapping.size[2], 1);
	assert_int_equal(page_mapping__bytes(&geometry, &scene.sites, &mapping), 64 * MIB);
	page_model__free(scene.model);
	free(references);
}

static void arrays_that_only_together_thrash(void **state)
{
	enum { COUNT = 90000, PAGES = 56 };
	struct page_reference *references = new_stream(COUNT);
	struct scene scene;
	size_t i;

	(void)state;
	/*
	 * Two arrays of 56 pages are read in turn, in a TLB of 64 entries: each fits, and both
	 * together miss always. One of them large, and no miss is left; the second gains nothing.
	 */
	for (i = 0; i < COUNT; i++)
		references[i] = at((uint32_t)(i & 1), i / 2 % PAGES * 4 * KIB);
	scene = read_scene(one_pool(64, 64), 2, references, COUNT);
	assert_int_equal(choose(&scene, 64 * MIB, 10000).size[0] +
				 choose(&scene, 64 * MIB, 10000).size[1],
			 1);
	page_model__free(scene.model);
	/* Three of them, and it takes two: either alone gains nothing. */
	for (i = 0; i < COUNT; i++)
		references[i] = at((uint32_t)(i % 3), i / 3 % PAGES * 4 * KIB);
	scene = read_scene(one_pool(64, 64), 3, references, COUNT);
	assert_int_equal(page_mapping__bytes(&scene.geometry, &scene.sites,
					     &(struct page_mapping){{1, 1, 0}}),
			 4 * MIB);
	assert_true(model_ns(&scene, &(struct page_mapping){{1, 0, 0}}) >
		    0.6 * model_ns(&scene, &(struct page_mapping){{0}}));
	assert_int_equal(choose(&scene, 4 * MIB, 10000).size[0] +
				 choose(&scene, 4 * MIB, 10000).size[1] +
				 choose(&scene, 4 * MIB, 10000).size[2],
			 2);
	page_model__free(scene.model);
	free(references);
}

/* --- beside all mappings --- */

/* A cost that is neither additive nor submodular: groups of sites that gain only together. */
struct groups {
	uint32_t sites, count;
	uint64_t members[8]; /* sets of sites */
	double gains[8];
};

static double group_cost(void *data, const struct page_mapping *mapping)
{
	struct groups *groups = data;
	double cost = 10000;
	uint64_t large = 0;
	uint32_t i;

	for (i = 0; i < groups->sites && i < PAGE_SITES_MAX; i++)
		large |= (uint64_t)(mapping->size[i] > 0) << i;
	for (i = 0; i < groups->count; i++)
		cost -= (groups->members[i] & ~large) ? 0 : groups->gains[i];
	return cost;
}

static int choose_groups(const struct page_geometry *geometry, const struct page_sites *sites,
			 const struct page_budget *budget, struct groups *groups,
			 struct page_mapping *mapping)
{
	struct page_costs costs = {.quick = group_cost, .data = groups};

	return page_choose(geometry, sites, budget, &costs, mapping);
}

/* Regret as a share of the best gain: the mean and the worst of many programs. */
static void compare_with_all(uint32_t site_count, uint32_t trials, double *mean, double *worst)
{
	struct page_geometry geometry = two_levels(2);
	struct page_mapping mapping;
	uint32_t trial, m, i;
	double best, regret;

	*mean = *worst = 0;
	for (trial = 0; trial < trials; trial++) {
		struct groups groups = {.sites = site_count, .count = 1 + (uint32_t)dice(6)};
		struct page_sites sites = {.count = site_count};
		struct page_budget budget = {(1 + dice(4 * site_count)) * 2 * MIB, 0};

		for (i = 0; i < site_count; i++)
			sites.pages[i][1] = 1 + dice(8);
		for (i = 0; i < groups.count; i++) {
			groups.members[i] = 1ull << dice(site_count) | 1ull << dice(site_count) |
					    1ull << dice(site_count);
			groups.gains[i] = (double)(1 + dice(1000));
		}
		for (best = 10000, m = 0; m < mapping_count(site_count, 2); m++) {
			mapping = mapping_number(m, site_count, 2);
			if (page_mapping__bytes(&geometry, &sites, &mapping) <= budget.bytes &&
			    group_cost(&groups, &mapping) < best)
				best = group_cost(&groups, &mapping);
		}
		assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
		assert_true(page_mapping__bytes(&geometry, &sites, &mapping) <= budget.bytes);
		regret = group_cost(&groups, &mapping) - best;
		regret = best < 10000 ? regret / (10000 - best) : 0;
		*worst = regret > *worst ? regret : *worst;
		*mean += regret / trials;
	}
}

static void equals_all_mappings(void **state)
{
	double mean, worst;

	(void)state;
	compare_with_all(6, 300, &mean, &worst);
	assert_float_equal(worst, 0, 1e-9);
	compare_with_all(12, 60, &mean, &worst);
	assert_true(mean < 0.02);
}

static void useless_pages_are_given_back(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct groups groups = {.sites = 3, .count = 2, .members = {1, 4}, .gains = {1000, 5}};
	struct page_sites sites = {.count = 3, .pages = {{0, 1}, {0, 1}, {0, 1}}};
	struct page_budget budget = {UINT64_MAX, 5};
	struct page_mapping mapping;

	(void)state;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
	assert_int_equal(mapping.size[0], 1);
	assert_int_equal(mapping.size[1], 0);
	assert_int_equal(mapping.size[2], 0);
	budget.noise = 4;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
	assert_int_equal(mapping.size[2], 1);
	budget.noise = 1005;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
	assert_int_equal(mapping.size[0], 0);
}

static void a_pair_below_the_noise_is_refused(void **state)
{
	struct page_geometry geometry = two_levels(2);
	/* Each alone is worse than none; both together gain 10. */
	struct groups groups = {
		.sites = 2, .count = 3, .members = {1, 2, 3}, .gains = {-100, -100, 210}};
	struct page_sites sites = {.count = 2, .pages = {{0, 1}, {0, 1}}};
	struct page_budget budget = {UINT64_MAX, 9};
	struct page_mapping mapping;

	(void)state;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
	assert_int_equal(mapping.size[0] + mapping.size[1], 2);
	budget.noise = 10;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
	assert_int_equal(mapping.size[0] + mapping.size[1], 0);
}

/* What is quick is wrong by some percent, and what is exact is counted. */
struct two_costs {
	struct groups groups;
	struct page_mapping asked[200];
	uint32_t count;
	double fails; /* what exact returns if it is not 0 */
};

static double wrong_cost(void *data, const struct page_mapping *mapping)
{
	struct two_costs *costs = data;
	double cost = group_cost(&costs->groups, mapping);

	return mapping->size[0] ? cost * 0.97 : cost;
}

static double counted_cost(void *data, const struct page_mapping *mapping)
{
	struct two_costs *costs = data;

	assert_true(costs->count < 200);
	costs->asked[costs->count++] = *mapping;
	return costs->fails != 0 ? costs->fails : group_cost(&costs->groups, mapping);
}

static double fixed_error(void *data, const struct page_mapping *mapping)
{
	(void)data;
	return mapping->size[0] ? 30 : 40;
}

static void the_exact_cost_decides(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct two_costs both = {
		.groups = {.sites = 8, .count = 2, .members = {1, 2}, .gains = {900, 1000}}};
	struct page_costs costs = {.quick = wrong_cost, .exact = counted_cost, .data = &both};
	struct page_sites sites = {.count = 8};
	struct page_budget budget = {2 * MIB, 0};
	struct page_mapping mapping;
	uint32_t i, k;

	(void)state;
	for (i = 0; i < 8; i++)
		sites.pages[i][1] = 1;
	/* Room for one, and site 0 only seems to be the best. */
	assert_int_equal(page_choose(&geometry, &sites, &budget, &costs, &mapping), 0);
	assert_int_equal(mapping.size[0], 0);
	assert_int_equal(mapping.size[1], 1);
	assert_in_range(both.count, 2, PAGE_CHECKED_MAX);
	for (i = 0; i < both.count; i++) {
		assert_true(page_mapping__bytes(&geometry, &sites, &both.asked[i]) <= 2 * MIB);
		for (k = 0; k < i; k++)
			assert_memory_not_equal(&both.asked[i], &both.asked[k], sizeof(mapping));
	}
	/* The noise is compared with the exact gain, too. */
	budget.noise = 1000;
	assert_int_equal(page_choose(&geometry, &sites, &budget, &costs, &mapping), 0);
	assert_int_equal(mapping.size[0] + mapping.size[1], 0);
	mapping.size[0] = 9;
	both.fails = -EIO;
	assert_int_equal(page_choose(&geometry, &sites, &budget, &costs, &mapping), -EIO);
	assert_int_equal(mapping.size[0], 9);
}

static void of_equals_the_smaller_is_taken(void **state)
{
	struct page_geometry geometry = two_levels(2);
	/* Site 0 seems better, but gains as much as site 1 with twice the pages. */
	struct two_costs both = {
		.groups = {.sites = 2, .count = 2, .members = {1, 2}, .gains = {900, 900}}};
	struct page_costs costs = {.quick = wrong_cost, .exact = counted_cost, .data = &both};
	struct page_sites sites = {.count = 2, .pages = {{0, 2}, {0, 1}}};
	struct page_budget budget = {4 * MIB, 0};
	struct page_mapping mapping;

	(void)state;
	assert_int_equal(page_choose(&geometry, &sites, &budget, &costs, &mapping), 0);
	assert_int_equal(mapping.size[0], 0);
	assert_int_equal(mapping.size[1], 1);
}

static void ranks_by_benefit(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct two_costs both = {
		.groups = {.sites = 3, .count = 3, .members = {1, 2, 6}, .gains = {200, 300, 500}}};
	struct page_costs costs = {.quick = wrong_cost, .exact = counted_cost, .data = &both};
	struct page_sites sites = {.count = 3, .pages = {{0, 1}, {0, 2}, {0, 4}}};
	struct page_budget budget = {UINT64_MAX, 0};
	struct page_ranked list[16];
	int i, n;

	(void)state;
	costs.error = fixed_error;
	n = page_rank(&geometry, &sites, &budget, &costs, list, 16);
	/* None; site 0; site 1; both; sites 1 and 2; all. */
	assert_int_equal(n, 6);
	for (i = 0; i < n; i++) {
		static const double percent[] = {0, 20, 30, 50, 80, 100};
		static const uint64_t pages[] = {0, 1, 2, 3, 6, 7};

		assert_int_equal(list[i].bytes, pages[i] * 2 * MIB);
		assert_float_equal(list[i].percent, percent[i], 1e-9);
		assert_float_equal(list[i].cost, 10000 - 10 * percent[i], 1e-9);
		assert_true(list[i].front);
	}
	/* sqrt((0.5 * 40)^2 + 30^2 + (0.5 * 30)^2) of 1000. */
	assert_float_equal(list[3].percent_error, 3.905, 0.001);
	assert_float_equal(list[3].cost_error, 30, 0);
	assert_float_equal(list[0].percent_error + list[5].percent_error, 0, 0);
	/* A budget ends the list, and few are asked for. */
	budget.bytes = 6 * MIB;
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 16), 4);
	assert_float_equal(list[3].percent, 100, 1e-9);
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 2), 2);
	assert_int_equal(list[1].bytes, 6 * MIB);
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 1), 1);
	assert_int_equal(list[0].bytes, 0);
}

/* What the quick cost takes for a gain is none. */
static double misled_cost(void *data, const struct page_mapping *mapping)
{
	(void)data;
	return 1000 - (mapping->size[0] ? 100 : 0) - (mapping->size[1] ? 300 : 0);
}

static double true_cost(void *data, const struct page_mapping *mapping)
{
	(void)data;
	return 1000 - (mapping->size[0] ? 100 : 0) + (mapping->size[1] ? 50 : 0);
}

static void a_rank_may_be_refused(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct page_costs costs = {.quick = true_cost, .exact = true_cost};
	struct page_sites sites = {.count = 2, .pages = {{0, 1}, {0, 1}}};
	struct page_budget budget = {UINT64_MAX, 0};
	struct page_ranked list[8];
	struct two_costs both = {.fails = -EIO};

	(void)state;
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 8), 2);
	assert_int_equal(list[1].mapping.size[0], 1);
	costs.quick = misled_cost;
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 8), 2);
	assert_int_equal(list[1].mapping.size[1], 0);
	budget.noise = 100;
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 8), 1);
	assert_float_equal(list[0].percent, 0, 0);
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 0), -EINVAL);
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, PAGE_RANKED_MAX + 1),
			 -EINVAL);
	costs.exact = counted_cost;
	costs.data = &both;
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 8), -EIO);
	costs.exact = true_cost;
	costs.error = counted_cost;
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 8), -EIO);
	sites.count = 65;
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 8), -EINVAL);
	sites.count = 0;
	costs.error = NULL;
	assert_int_equal(page_rank(&geometry, &sites, &budget, &costs, list, 8), 1);
}

static double failing_cost(void *data, const struct page_mapping *mapping)
{
	uint32_t *left = data;

	(void)mapping;
	return (*left)-- ? 100 : -EIO;
}

static void limits_hold(void **state)
{
	struct page_geometry geometry = two_levels(3), bad = geometry;
	struct page_sites sites = {.count = 0};
	struct groups groups = {.sites = 64, .count = 1, .members = {3ull << 62}, .gains = {5}};
	struct page_budget budget = {UINT64_MAX, 0};
	struct page_mapping mapping = {{9}};
	uint32_t i, left;
	struct page_costs costs = {.quick = failing_cost, .data = &left};

	(void)state;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
	assert_int_equal(mapping.size[0], 0);
	sites.count = 64;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
	for (i = 0; i < 64; i++)
		sites.pages[i][0] = sites.pages[i][1] = sites.pages[i][2] = UINT64_MAX;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), 0);
	memset(&mapping, 1, sizeof(mapping));
	assert_true(page_mapping__bytes(&geometry, &sites, &mapping) == UINT64_MAX);
	memset(sites.pages, 0, sizeof(sites.pages));
	for (i = 0; i < 40; i++) {
		left = i;
		mapping.size[0] = 9;
		assert_int_equal(page_choose(&geometry, &sites, &budget, &costs, &mapping), -EIO);
		assert_int_equal(mapping.size[0], 9);
	}
	sites.count = 65;
	assert_int_equal(choose_groups(&geometry, &sites, &budget, &groups, &mapping), -EINVAL);
	bad.size_count = 0;
	sites.count = 1;
	assert_int_equal(choose_groups(&bad, &sites, &budget, &groups, &mapping), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_hot_line_in_each_large_page_is_refused),
		cmocka_unit_test(what_fits_in_the_first_level_gains_nothing),
		cmocka_unit_test(strides_by_powers_of_two_get_large_pages),
		cmocka_unit_test(two_phases_with_room_for_one),
		cmocka_unit_test(threads_with_private_and_shared_arrays),
		cmocka_unit_test(arrays_that_only_together_thrash),
		cmocka_unit_test(equals_all_mappings),
		cmocka_unit_test(useless_pages_are_given_back),
		cmocka_unit_test(a_pair_below_the_noise_is_refused),
		cmocka_unit_test(the_exact_cost_decides),
		cmocka_unit_test(of_equals_the_smaller_is_taken),
		cmocka_unit_test(ranks_by_benefit),
		cmocka_unit_test(a_rank_may_be_refused),
		cmocka_unit_test(limits_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
