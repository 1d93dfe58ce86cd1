// SPDX-License-Identifier: MIT
/*
 * page_size_model.c - the model that reads references once, beside counting all distances anew and
 * beside exact simulation
 */
#include "page_size_fixture.h"

#include "agents/page-size/model/replay.h"
#include "agents/page-size/model/stacks.h"

#include <errno.h>
#include <math.h>

static struct page_reference *new_stream(size_t count)
{
	struct page_reference *references = calloc(count + 1, sizeof(*references));

	assert_non_null(references);
	return references;
}

static struct page_model *read_stream(const struct page_geometry *geometry, uint32_t sites,
				      const struct page_reference *references, size_t count)
{
	struct page_model *model = page_model__new(geometry, sites, 1);

	assert_non_null(model);
	assert_int_equal(page_model__add(model, references, count), 0);
	return model;
}

static struct page_result cost(const struct page_model *model, uint32_t sites,
			       struct page_mapping mapping)
{
	struct page_sites all = {.count = sites};
	struct page_result result;

	assert_int_equal(page_model__cost(model, &all, &mapping, &result), 0);
	return result;
}

static bool same_page(const struct page_reference *a, const struct page_reference *b,
		      uint32_t shift)
{
	return a->site == b->site && a->address >> shift == b->address >> shift;
}

/*
 * Does reference i miss a pool that holds all sizes? By the definition of a stack distance: the
 * number of different pages of its set since the last use of its own.
 */
static bool misses(const struct page_geometry *geometry, const struct page_mapping *mapping,
		   const struct page_reference *r, size_t i)
{
	const struct page_pool *pool = &geometry->levels[0].pools[0];
	uint32_t sets = pool->entries / pool->ways, distance = 0, shift, own;
	size_t j, k;

	own = geometry->shifts[mapping->size[r[i].site]];
	for (j = i; j-- > 0;) {
		shift = geometry->shifts[mapping->size[r[j].site]];
		if (same_page(&r[j], &r[i], own))
			return distance >= pool->ways;
		if ((r[j].address >> shift) % sets != (r[i].address >> own) % sets)
			continue;
		for (k = j + 1; k < i && !same_page(&r[k], &r[j], shift); k++)
			;
		distance += k == i;
	}
	return true;
}

static void equals_all_distances(void **state)
{
	enum { SITES = 4, COUNT = 600 };
	struct page_geometry geometries[] = {one_pool(1, 1), one_pool(8, 8), one_pool(24, 4),
					     one_pool(48, 24)};
	struct page_reference *references = new_stream(COUNT);
	struct page_geometry *geometry;
	struct page_model *model;
	uint32_t g, m, expected;
	size_t i;

	(void)state;
	for (g = 0; g < sizeof(geometries) / sizeof(geometries[0]); g++) {
		geometry = &geometries[g];
		fill_stream(references, COUNT, SITES, 64 * MIB);
		model = read_stream(geometry, SITES, references, COUNT);
		for (m = 0; m < mapping_count(SITES, 2); m++) {
			struct page_mapping mapping = mapping_number(m, SITES, 2);

			expected = 0;
			for (i = 0; i < COUNT; i++)
				expected += misses(geometry, &mapping, references, i);
			assert_int_equal(cost(model, SITES, mapping).walks, expected);
			assert_float_equal(cost(model, SITES, mapping).walks_error, 0, 0);
		}
		page_model__free(model);
	}
	free(references);
}

/* One level with two pools; all levels; trees; three levels. */
static struct page_geometry geometry_number(uint32_t i)
{
	struct page_geometry geometry = two_levels(3);

	geometry.levels[0].hit_ns = 1;
	geometry.first_touch_ns[2] = 5;
	geometry.levels[1].hidden_ns = 0.5;
	if (!i) {
		geometry.level_count = 1;
		geometry.entry_shifts[2] = 21;
		geometry.levels[0].group_shift = 2;
	}
	if (i == 2)
		geometry.levels[0].pools[0].replacement = PAGE_TREE_PLRU;
	if (i == 3)
		geometry.levels[1].pools[0] = (struct page_pool){7, 256, 8, PAGE_TREE_PLRU};
	if (i == 4) {
		geometry.level_count = 1;
		geometry.levels[0].pools[0] = (struct page_pool){1, 64, 8, PAGE_TREE_PLRU};
	}
	if (i == 5) {
		geometry.level_count = 3;
		geometry.levels[2] = geometry.levels[1];
		geometry.levels[2].hit_ns = 7;
		geometry.levels[2].group_shift = 3;
		geometry.levels[1].pools[0] = (struct page_pool){3, 128, 32, PAGE_LRU};
	}
	return geometry;
}

/* As long as every reference is a sample and all are kept, the answer is exact. */
static void equals_simulation(void **state)
{
	enum { SITES = 4, COUNT = 8000 };
	struct page_reference *references = new_stream(COUNT);
	struct page_sites sites = {.count = SITES, .latency_share = {0, 1, 0.5}};
	struct page_result expected, result;
	struct page_geometry geometry;
	struct page_model *model;
	uint32_t g, m, i;

	(void)state;
	for (g = 0; g < 6; g++) {
		geometry = geometry_number(g);
		fill_stream(references, COUNT, SITES, 8 * GIB >> 2 * g);
		model = read_stream(&geometry, SITES, references, COUNT);
		page_model__pages(model, &sites);
		for (m = 0; m < mapping_count(SITES, 3); m++) {
			struct page_mapping mapping = mapping_number(m, SITES, 3);

			assert_int_equal(page_simulate(&geometry, &sites, &mapping, references,
						       COUNT, &expected),
					 0);
			assert_int_equal(page_model__cost(model, &sites, &mapping, &result), 0);
			assert_int_equal(result.references, COUNT);
			for (i = 0; i < geometry.level_count; i++)
				assert_float_equal(result.misses[i], expected.misses[i], 1e-3);
			assert_float_equal(result.walks, expected.walks, 1e-3);
			for (i = 0; i < SITES; i++)
				assert_float_equal(result.site_walks[i], expected.site_walks[i],
						   1e-3);
			assert_float_equal(result.time_ns, expected.time_ns, 1e-2);
			assert_float_equal(result.time_error_ns, 0, 1e-3);
		}
		page_model__free(model);
	}
	free(references);
}

static void samples_come_near_simulation(void **state)
{
	enum { SITES = 16, COUNT = 1500000, MAPPINGS = 12 };
	struct page_geometry geometries[] = {two_levels(2), one_pool(96, 96)};
	struct page_reference *references = new_stream(COUNT);
	struct page_sites sites = {.count = SITES};
	struct page_result expected, result;
	struct page_model *model;
	uint32_t g, m;

	(void)state;
	fill_stream(references, COUNT, SITES, 256 * MIB);
	for (g = 0; g < 2; g++) {
		model = read_stream(&geometries[g], SITES, references, COUNT);
		for (m = 0; m < MAPPINGS; m++) {
			struct page_mapping mapping =
				mapping_number(m < 2 ? -m : (uint32_t)dice(1 << SITES), SITES, 2);

			assert_int_equal(page_simulate(&geometries[g], &sites, &mapping, references,
						       COUNT, &expected),
					 0);
			result = cost(model, SITES, mapping);
			assert_float_equal(result.walks / COUNT, expected.walks / COUNT, 0.01);
			assert_true(result.walks_error > 0 || !result.walks);
			assert_true(result.walks_error < 0.006 * COUNT);
			assert_true(fabs(result.walks - expected.walks) <=
				    5 * result.walks_error + 0.002 * COUNT);
		}
		page_model__free(model);
	}
	free(references);
}

static void pages_are_counted_once(void **state)
{
	enum { COUNT = 60000 };
	struct page_geometry geometry = two_levels(2);
	struct page_reference *references = new_stream(COUNT);
	struct page_sites sites;
	struct page_model *model;
	uint32_t shift;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT; i++)
		references[i] = i % 3 ? at(0, i / 3 % 8000 * 4 * KIB) : at(1, i % 1000 * 2 * MIB);
	/* Also where a TLB entry maps less than a page, or a level has neighbours together. */
	for (shift = 12; shift <= 21; shift += 9) {
		geometry.entry_shifts[1] = shift;
		geometry.levels[1].group_shift = 21 - shift;
		model = read_stream(&geometry, 2, references, COUNT);
		page_model__pages(model, &sites);
		assert_int_equal(sites.count, 2);
		assert_int_equal(sites.pages[0][0], 8000);
		assert_int_equal(sites.pages[0][1], 16);
		assert_int_equal(sites.pages[1][0], 1000);
		assert_int_equal(sites.pages[1][1], 1000);
		page_model__free(model);
	}
	free(references);
}

static void pages_take_bounded_memory(void **state)
{
	enum { PAGES = 400000 };
	struct page_geometry geometry = two_levels(2);
	struct page_reference *references = new_stream(PAGES);
	struct page_model *model;
	size_t i;

	(void)state;
	for (i = 0; i < PAGES; i++)
		references[i] = at((uint32_t)(i % 16), i / 16 * 4 * KIB);
	model = read_stream(&geometry, 16, references, PAGES);
	assert_true(page_model__bytes(model) <= 100ull * PAGES);
	page_model__free(model);
	free(references);
}

static void parts_are_as_the_whole(void **state)
{
	enum { COUNT = 3000, SITES = 3 };
	struct page_geometry geometry = two_levels(2);
	struct page_reference *references = new_stream(COUNT);
	struct page_model *whole, *parts;
	struct page_mapping mapping = {{0, 1, 0}};
	size_t i;

	(void)state;
	fill_stream(references, COUNT, SITES, 64 * MIB);
	whole = read_stream(&geometry, SITES, references, COUNT);
	parts = page_model__new(&geometry, SITES, 1);
	for (i = 0; i < COUNT; i += 100)
		assert_int_equal(page_model__add(parts, references + i, 100), 0);
	assert_int_equal(cost(whole, SITES, mapping).walks, cost(parts, SITES, mapping).walks);
	page_model__free(whole);
	page_model__free(parts);
	free(references);
}

static void repeats_pass_levels_without_the_size(void **state)
{
	struct page_geometry geometry = two_levels(3);
	struct page_reference references[10];
	struct page_mapping mapping = {{2}};
	struct page_model *model;
	size_t i;

	(void)state;
	for (i = 0; i < 10; i++)
		references[i] = at(0, 0);
	geometry.levels[0].pool_count = 0;
	geometry.levels[1].pools[0].sizes = 4;
	geometry.levels[1].hidden_ns = 0.5;
	model = read_stream(&geometry, 1, references, 10);
	assert_int_equal(cost(model, 1, mapping).misses[0], 10);
	assert_int_equal(cost(model, 1, mapping).walks, 1);
	/* Accesses that overlap hide 0.5 ns of each hit. */
	assert_float_equal(cost(model, 1, mapping).time_ns, 9 * 1.5 + 4, 1e-9);
	mapping.size[0] = 0;
	assert_int_equal(cost(model, 1, mapping).walks, 10);
	assert_int_equal(cost(model, 1, mapping).site_walks[0], 10);
	assert_float_equal(cost(model, 1, mapping).time_ns, 100, 1e-9);
	page_model__free(model);
}

static void hits_hide_where_accesses_overlap(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct page_sites sites = {.count = 1, .latency_share = {0.25}};
	struct page_mapping mapping = {{0}};
	struct page_reference references[200];
	struct page_result expected, result;
	struct page_model *model;
	size_t i;

	(void)state;
	for (i = 0; i < 200; i++)
		references[i] = at(0, i % 100 * 4 * KIB);
	geometry.levels[1].hidden_ns = 1;
	model = read_stream(&geometry, 1, references, 200);
	assert_int_equal(page_simulate(&geometry, &sites, &mapping, references, 200, &expected), 0);
	assert_int_equal(page_model__cost(model, &sites, &mapping, &result), 0);
	assert_float_equal(result.time_ns, expected.time_ns, 1e-6);
	page_model__free(model);
}

/* Bursts of two threads, each with an array of its own that fits, where both would not. */
static void a_gap_counts_no_cold_misses(void **state)
{
	enum { BURST = 40000, BURSTS = 10, PAGES = 1200 };
	struct page_geometry geometry = two_levels(2);
	struct page_reference *references = new_stream(BURST);
	struct page_model *model = page_model__new(&geometry, 2, 1),
			  *glued = page_model__new(&geometry, 2, 1);
	struct page_mapping small = {{0}};
	struct page_sites sites;
	uint32_t burst;
	size_t i;

	(void)state;
	for (burst = 0; burst < BURSTS; burst++) {
		for (i = 0; i < BURST; i++)
			references[i] = at(burst & 1, i % PAGES * 4 * KIB);
		page_model__gap(model);
		assert_int_equal(page_model__add(model, references, BURST), 0);
		assert_int_equal(page_model__add(glued, references, BURST), 0);
	}
	assert_true(cost(glued, 2, small).walks >= 0.7 * BURSTS * PAGES);
	assert_int_equal(cost(model, 2, small).references, BURSTS * BURST);
	assert_float_equal(cost(model, 2, small).walks, 0, 0);
	/* Each burst is read, and counts for more: all miss the first level. */
	assert_float_equal(cost(model, 2, small).misses[0], BURSTS * BURST, 1);
	page_model__pages(model, &sites);
	assert_int_equal(sites.pages[0][0] + sites.pages[1][0], 2 * PAGES);
	page_model__free(model);
	page_model__free(glued);
	free(references);
}

static void a_gap_ends(void **state)
{
	enum { COUNT = 2 * PAGE_COLD_REFERENCES };
	struct page_geometry geometry = one_pool(64, 4);
	struct page_reference *references = new_stream(COUNT);
	struct page_model *model = page_model__new(&geometry, 1, 1);
	struct page_mapping small = {{0}};
	struct page_sites sites = {.count = 1};
	struct page_result result;
	size_t i;

	(void)state;
	/* Each page twice: half of the references miss. */
	for (i = 0; i < COUNT; i++)
		references[i] = at(0, i / 2 % 1000 * 4 * KIB);
	page_model__gap(model);
	assert_int_equal(page_model__add(model, references, PAGE_COLD_REFERENCES), 0);
	assert_int_equal(page_model__cost(model, &sites, &small, &result), -ENODATA);
	assert_int_equal(page_model__estimate(model, &sites, &small, &result), -ENODATA);
	assert_int_equal(page_model__add(model, references + PAGE_COLD_REFERENCES, 1), 0);
	assert_float_equal(cost(model, 1, small).walks, PAGE_COLD_REFERENCES + 1, 1e-6);
	assert_int_equal(page_model__add(model, references + PAGE_COLD_REFERENCES + 1, 3), 0);
	assert_float_equal(cost(model, 1, small).walks, PAGE_COLD_REFERENCES / 2 + 2, 1e-6);
	assert_float_equal(cost(model, 1, small).site_walks[0], PAGE_COLD_REFERENCES / 2 + 2, 1e-6);
	assert_int_equal(cost(model, 1, small).references, PAGE_COLD_REFERENCES + 4);
	page_model__free(model);
	free(references);
}

/* What no level holds is always missed, the page of the reference before, too. */
static void repeats_after_a_gap_stand_for_all(void **state)
{
	enum { COUNT = 2 * PAGE_COLD_REFERENCES };
	struct page_geometry geometry = one_pool(64, 4);
	struct page_reference *references = new_stream(COUNT);
	struct page_mapping large = {{1}};
	struct page_model *model;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT; i++)
		references[i] = at(0, i / 2 % 1000 * 4 * KIB);
	geometry.levels[0].pools[0].sizes = 1;
	model = page_model__new(&geometry, 1, 1);
	page_model__gap(model);
	assert_int_equal(page_model__add(model, references, COUNT), 0);
	assert_float_equal(cost(model, 1, large).walks, COUNT, 1e-3);
	page_model__free(model);
	free(references);
}

/* Number i is at page i. */
static void windows_are_spread_evenly(void **state)
{
	struct replay replay;
	uint64_t i, windows, end = 0, w;

	(void)state;
	replay__init(&replay, 12);
	for (windows = 1; windows <= 200; windows += 1 + windows / 8) {
		for (i = end; i < windows * REPLAY_WINDOW; i++)
			assert_int_equal(replay__add(&replay, i << 12, 5), 0);
		end = windows * REPLAY_WINDOW;
		assert_true(replay.count <= (uint64_t)REPLAY_WINDOWS_MAX * REPLAY_WINDOW);
		assert_true(2 * replay.count * replay.period >= end * REPLAY_WINDOW);
		for (w = 0; w * REPLAY_WINDOW < replay.count; w++) {
			uint64_t *window = &replay.references[w * REPLAY_WINDOW];

			assert_int_equal(window[0], w * replay.period << 8 | 5);
			assert_int_equal(window[REPLAY_WINDOW - 1],
					 (w * replay.period + REPLAY_WINDOW - 1) << 8 | 5);
		}
	}
	assert_int_equal(replay__bytes(&replay),
			 REPLAY_WINDOWS_MAX * REPLAY_WINDOW * sizeof(uint64_t));
	replay__destroy(&replay);
}

static void costs_take_pages_from_outside(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct page_reference references[] = {at(0, 0), at(1, 0), at(0, 0)};
	struct page_sites sites = {.count = 2, .latency_share = {0.25, 1}};
	struct page_mapping mapping = {{0, 1}};
	struct page_result result, estimate;
	struct page_model *model;

	(void)state;
	geometry.first_touch_ns[0] = 100;
	geometry.first_touch_ns[1] = 1000;
	model = read_stream(&geometry, 2, references, 3);
	sites.pages[0][0] = 7;
	sites.pages[1][1] = 3;
	assert_int_equal(page_model__cost(model, &sites, &mapping, &result), 0);
	/* A walk of each: a quarter of 30 and three of 10, and all of 20. */
	assert_float_equal(result.time_ns, 15 + 20 + 700 + 3000, 1e-9);
	assert_int_equal(page_model__estimate(model, &sites, &mapping, &estimate), 0);
	assert_float_equal(estimate.time_ns, result.time_ns, 1e-9);
	page_model__free(model);
}

/* Pages 0 to 9, one at a time, from a time on; then how many are newer than each. */
static void count_over_times(uint32_t ways, uint64_t now)
{
	struct page_pool pool = {1, ways, ways, PAGE_LRU};
	struct stacks stacks;
	uint16_t count;
	uint64_t page;

	assert_int_equal(stacks__init(&stacks, &pool, 1), 0);
	for (page = 0; page < 10; page++, now++) {
		if (!(now % STACKS_TIMES))
			stacks__forget_times(&stacks, now);
		assert_false(stacks__use(&stacks, 0, 0, page, page_key(page, 0, 0), now));
	}
	for (page = 0; page < 10; page++) {
		stacks__distance(&stacks, 0, 0, page, page_key(page, 0, 0), &count);
		assert_int_equal(count, 9 - page < ways ? 9 - page : ways);
	}
	assert_true(stacks__use(&stacks, 0, 0, 9, page_key(9, 0, 0), now++));
	assert_true(stacks__use(&stacks, 0, 0, 9, page_key(9, 0, 0), now));
	/* Long after, all that is old is there still, and equally old. */
	for (now = 2 * STACKS_TIMES; now < 10 * STACKS_TIMES; now += STACKS_TIMES)
		stacks__forget_times(&stacks, now);
	assert_false(stacks__use(&stacks, 0, 0, 10, page_key(10, 0, 0), now - 1));
	stacks__distance(&stacks, 0, 0, 9, page_key(9, 0, 0), &count);
	assert_int_equal(count, 1);
	stacks__destroy(&stacks);
}

static void times_do_not_run_out(void **state)
{
	uint32_t before;

	(void)state;
	for (before = 0; before < 10; before++) {
		count_over_times(6, 2 * STACKS_TIMES - before);
		count_over_times(16, 2 * STACKS_TIMES - before);
		count_over_times(24, 2 * STACKS_TIMES - before);
		count_over_times(300, 2 * STACKS_TIMES - before);
	}
}

static void limits_hold(void **state)
{
	struct page_geometry geometry = two_levels(3), bad = geometry;
	const struct page_reference last[] = {{UINT64_MAX, 63, 0},
					      {0, 63, 0},
					      {UINT64_MAX, 0, 0},
					      {UINT64_MAX, 63, 0},
					      {0, 64, 0}};
	struct page_sites sites = {.count = 64};
	struct page_mapping mapping = {{0}};
	struct page_result result;
	struct page_model *model = read_stream(&geometry, 64, last, 4);

	(void)state;
	assert_int_equal(cost(model, 64, mapping).walks, 3);
	assert_int_equal(page_model__add(model, last, 5), -EINVAL);
	assert_int_equal(page_model__add(model, last, 1), -EINVAL);
	assert_int_equal(cost(model, 64, mapping).references, 8);
	sites.count = 63;
	assert_int_equal(page_model__cost(model, &sites, &mapping, &result), -EINVAL);
	sites.count = 64;
	mapping.size[63] = 3;
	assert_int_equal(page_model__cost(model, &sites, &mapping, &result), -EINVAL);
	page_model__free(model);

	model = read_stream(&geometry, 0, NULL, 0);
	assert_int_equal(cost(model, 0, mapping).references, 0);
	assert_float_equal(cost(model, 0, mapping).time_ns, 0, 0);
	page_model__free(model);
	page_model__free(NULL);

	assert_null(page_model__new(&geometry, 65, 1));
	assert_int_equal(errno, EINVAL);
	bad.level_count = 0;
	assert_null(page_model__new(&bad, 1, 1));
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equals_all_distances),
		cmocka_unit_test(equals_simulation),
		cmocka_unit_test(samples_come_near_simulation),
		cmocka_unit_test(pages_are_counted_once),
		cmocka_unit_test(pages_take_bounded_memory),
		cmocka_unit_test(parts_are_as_the_whole),
		cmocka_unit_test(repeats_pass_levels_without_the_size),
		cmocka_unit_test(hits_hide_where_accesses_overlap),
		cmocka_unit_test(a_gap_counts_no_cold_misses),
		cmocka_unit_test(a_gap_ends),
		cmocka_unit_test(repeats_after_a_gap_stand_for_all),
		cmocka_unit_test(windows_are_spread_evenly),
		cmocka_unit_test(costs_take_pages_from_outside),
		cmocka_unit_test(times_do_not_run_out),
		cmocka_unit_test(limits_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
