// SPDX-License-Identifier: MIT
/* page_size_simulate.c - a TLB simulated exactly: hand-made streams, and beside a plain one */
#include "page_size_fixture.h"

#include <errno.h>

static struct page_result simulate(const struct page_geometry *geometry, uint32_t sites,
				   struct page_mapping mapping,
				   const struct page_reference *references, size_t count)
{
	struct page_sites all = {.count = sites};
	struct page_result result;

	assert_int_equal(page_simulate(geometry, &all, &mapping, references, count, &result), 0);
	assert_int_equal(result.references, count);
	return result;
}

static void counts_by_hand(void **state)
{
	/* Two entries: A B A C B A, where C takes the place of B, and B that of A. */
	const uint64_t pages[] = {0, 1, 0, 2, 1, 0};
	struct page_geometry geometry = one_pool(2, 2);
	struct page_reference references[6];
	struct page_mapping small = {{0}}, large = {{1}};
	size_t i;

	(void)state;
	for (i = 0; i < 6; i++)
		references[i] = at(0, pages[i] * 4 * KIB + i);
	assert_int_equal(simulate(&geometry, 1, small, references, 6).walks, 5);
	assert_int_equal(simulate(&geometry, 1, large, references, 6).walks, 1);
}

static void costs_by_hand(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct page_sites sites = {.count = 2, .latency_share = {0.25, 0}};
	struct page_mapping mapping = {{0, 1}};
	struct page_reference references[200];
	struct page_result result;
	size_t i;

	(void)state;
	geometry.first_touch_ns[0] = 100;
	geometry.first_touch_ns[1] = 1000;
	geometry.levels[0].hit_ns = 0.5;
	sites.pages[0][0] = 99;
	sites.pages[1][1] = 1;
	/* 99 small pages in order, then again: all in the second level, none in the first. */
	for (i = 0; i < 198; i++)
		references[i] = at(0, i % 99 * 4 * KIB);
	references[198] = at(1, 0);
	references[199] = at(1, MIB);
	assert_int_equal(page_simulate(&geometry, &sites, &mapping, references, 200, &result), 0);
	assert_int_equal(result.misses[0], 199);
	assert_int_equal(result.misses[1], 100);
	assert_int_equal(result.walks, 100);
	assert_int_equal(result.site_walks[0], 99);
	assert_int_equal(result.site_walks[1], 1);
	assert_float_equal(result.time_ns, 0.5 + 99 * 2 + 99 * 15 + 5 + 9900 + 1000, 1e-6);
	assert_float_equal(result.time_error_ns, 0, 0);
}

static void equals_plain(void **state)
{
	enum { SITES = 3, COUNT = 20000 };
	struct page_geometry geometries[] = {one_pool(1, 1),   one_pool(12, 4),    one_pool(64, 64),
					     one_pool(96, 12), one_pool(600, 200), two_levels(2),
					     two_levels(3),    two_levels(3)};
	struct page_reference *references = calloc(COUNT, sizeof(*references));
	struct plain *plain = malloc(sizeof(*plain));
	struct page_geometry *geometry;
	struct page_result result;
	uint32_t g, m, i;

	(void)state;
	assert_non_null(references);
	assert_non_null(plain);
	/* Lines of page tables. */
	geometries[7].levels[1].group_shift = 3;
	for (g = 0; g < sizeof(geometries) / sizeof(geometries[0]); g++) {
		geometry = &geometries[g];
		fill_stream(references, COUNT, SITES, 256 * MIB >> g);
		for (m = 0; m < mapping_count(SITES, geometry->size_count); m++) {
			struct page_mapping mapping =
				mapping_number(m, SITES, geometry->size_count);

			result = simulate(geometry, SITES, mapping, references, COUNT);
			plain_simulate(geometry, &mapping, references, COUNT, plain);
			for (i = 0; i < geometry->level_count; i++)
				assert_int_equal(result.misses[i], plain->misses[i]);
			for (i = 0; i < SITES; i++)
				assert_int_equal(result.site_walks[i], plain->site_walks[i]);
		}
	}
	free(references);
	free(plain);
}

static void walks_trees_by_hand(void **state)
{
	/*
	 * Four ways: after pages 0 to 3 and again 0, the tree points to page 2, where LRU would
	 * take page 1. So with page 4 in its place, 1 hits and 2 misses.
	 */
	const uint64_t pages[] = {0, 1, 2, 3, 0, 4, 1, 2};
	struct page_geometry geometry = one_pool(4, 4);
	struct page_reference references[8];
	struct page_mapping small = {{0}};
	size_t i;

	(void)state;
	geometry.levels[0].pools[0].replacement = PAGE_TREE_PLRU;
	for (i = 0; i < 8; i++)
		references[i] = at(0, pages[i] * 4 * KIB);
	assert_int_equal(simulate(&geometry, 1, small, references, 6).walks, 5);
	assert_int_equal(simulate(&geometry, 1, small, references, 7).walks, 5);
	assert_int_equal(simulate(&geometry, 1, small, references, 8).walks, 6);
}

static void strides_by_powers_of_two_conflict(void **state)
{
	enum { COUNT = 3200 };
	struct page_geometry geometry = two_levels(2);
	struct page_reference references[COUNT];
	struct page_mapping small = {{0}}, large = {{1}};
	size_t i;

	(void)state;
	/*
	 * 32 lines at a distance of 1 MiB: 32 pages, but all in one set of 12 small pages. As large
	 * pages they are 16, in 16 sets.
	 */
	for (i = 0; i < COUNT; i++)
		references[i] = at(0, i % 32 * MIB);
	assert_int_equal(simulate(&geometry, 1, small, references, COUNT).walks, COUNT);
	assert_int_equal(simulate(&geometry, 1, large, references, COUNT).walks, 16);
	/* With one page more between them there is no conflict. */
	for (i = 0; i < COUNT; i++)
		references[i] = at(0, i % 32 * (MIB + 4 * KIB));
	assert_int_equal(simulate(&geometry, 1, small, references, COUNT).walks, 32);
}

static void levels_may_lack_a_size(void **state)
{
	struct page_geometry geometry = two_levels(3);
	struct page_mapping mapping = {{2}};
	struct page_reference references[10];
	size_t i;

	(void)state;
	/* 1 GiB: 4 entries in the first level, none in the second. */
	for (i = 0; i < 10; i++)
		references[i] = at(0, i % 5 * GIB);
	assert_int_equal(simulate(&geometry, 1, mapping, references, 10).misses[1], 10);
	for (i = 0; i < 10; i++)
		references[i] = at(0, i % 4 * GIB);
	assert_int_equal(simulate(&geometry, 1, mapping, references, 10).misses[1], 4);
	geometry.levels[0].pool_count = 0;
	geometry.levels[1].pool_count = 0;
	assert_int_equal(simulate(&geometry, 1, mapping, references, 10).walks, 10);
}

static void limits_hold(void **state)
{
	struct page_geometry geometry = two_levels(3);
	struct page_sites sites = {.count = PAGE_SITES_MAX};
	struct page_mapping mapping = {{0}};
	struct page_reference last[] = {{UINT64_MAX, 63, 0},
					{0, 63, 0},
					{UINT64_MAX, 0, 0},
					{UINT64_MAX, 63, 0},
					{0, 0, 0}};
	struct page_result result;
	uint8_t size;

	(void)state;
	assert_int_equal(simulate(&geometry, 0, mapping, NULL, 0).walks, 0);
	for (size = 0; size < 3; size++) {
		mapping.size[63] = size;
		assert_int_equal(simulate(&geometry, 64, mapping, last, 5).walks, 4);
	}
	mapping.size[63] = 3;
	assert_int_equal(page_simulate(&geometry, &sites, &mapping, last, 5, &result), -EINVAL);
	mapping.size[63] = 0;
	sites.count = 63;
	assert_int_equal(page_simulate(&geometry, &sites, &mapping, last, 5, &result), -EINVAL);
	sites.count = 65;
	assert_int_equal(page_simulate(&geometry, &sites, &mapping, last, 5, &result), -EINVAL);
}

static void bad_geometries_are_refused(void **state)
{
	struct page_geometry good = two_levels(3), bad[18];
	const char *reason;
	size_t i;

	(void)state;
	for (i = 0; i < 18; i++)
		bad[i] = good;
	bad[0].size_count = 0;
	bad[1].size_count = 4;
	bad[2].shifts[0] = 9;
	bad[3].shifts[2] = 21;
	bad[4].shifts[2] = 64;
	bad[5].level_count = 5;
	bad[6].levels[0].pools[1].sizes = 3;
	bad[7].levels[1].pools[0].sizes = 8;
	bad[8].levels[1].pools[0].ways = 0;
	bad[9].levels[1].pools[0].entries = 1537;
	bad[10].levels[1].pools[0].replacement = PAGE_TREE_PLRU;
	bad[11].levels[1].pools[0].entries = 12 * 4096;
	bad[12].entry_shifts[1] = 11;
	bad[13].entry_shifts[1] = 22;
	bad[14].levels[0].hit_ns = bad[14].levels[0].hidden_ns = 1;
	bad[15].levels[1].hidden_ns = 2.5;
	bad[16].levels[1].hidden_ns = -1;
	bad[17].levels[1].group_shift = 10;
	good.entry_shifts[1] = 12;
	good.entry_shifts[2] = 30;
	good.levels[1].hidden_ns = 2;
	assert_int_equal(page_geometry__check(&good, &reason), 0);
	for (i = 0; i < 18; i++) {
		reason = NULL;
		assert_int_equal(page_geometry__check(&bad[i], &reason), -EINVAL);
		assert_non_null(reason);
		assert_int_equal(page_geometry__check(&bad[i], NULL), -EINVAL);
	}
}

static void large_pages_in_small_entries(void **state)
{
	enum { SITES = 3, COUNT = 4000 };
	struct page_geometry split = two_levels(2), small = two_levels(2);
	struct page_reference *references = malloc(COUNT * sizeof(*references));
	struct page_mapping mapping = {{1, 1, 1}}, none = {{0}};
	size_t i;

	(void)state;
	assert_non_null(references);
	fill_stream(references, COUNT, SITES, 64 * MIB);
	split.entry_shifts[1] = 12;
	for (i = 0; i < 2; i++)
		split.levels[i].pools[0] = small.levels[i].pools[0] =
			(struct page_pool){3, 64 << i, 4, PAGE_LRU};
	split.levels[0].pool_count = small.levels[0].pool_count = 1;
	/* Then a large page misses as its small ones would. */
	assert_int_equal(simulate(&split, SITES, mapping, references, COUNT).walks,
			 simulate(&small, SITES, none, references, COUNT).walks);
	assert_true(simulate(&split, SITES, mapping, references, COUNT).walks >
		    simulate(&small, SITES, mapping, references, COUNT).walks);
	free(references);
}

static void hits_hide_where_accesses_overlap(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct page_sites sites = {.count = 1, .latency_share = {0.25}};
	struct page_mapping mapping = {{0}};
	struct page_reference references[200];
	struct page_result result;
	size_t i;

	(void)state;
	for (i = 0; i < 200; i++)
		references[i] = at(0, i % 100 * 4 * KIB);
	geometry.levels[1].hidden_ns = 1;
	assert_int_equal(page_simulate(&geometry, &sites, &mapping, references, 200, &result), 0);
	/* 100 walks, of which the first quarter waits, and 100 hits of 2 ns less 0.75. */
	assert_float_equal(result.time_ns, 100 * (30 * 0.25 + 10 * 0.75) + 100 * (2 - 0.75), 1e-6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_by_hand),
		cmocka_unit_test(costs_by_hand),
		cmocka_unit_test(equals_plain),
		cmocka_unit_test(walks_trees_by_hand),
		cmocka_unit_test(strides_by_powers_of_two_conflict),
		cmocka_unit_test(levels_may_lack_a_size),
		cmocka_unit_test(large_pages_in_small_entries),
		cmocka_unit_test(hits_hide_where_accesses_overlap),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(bad_geometries_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
