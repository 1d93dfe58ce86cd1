// SPDX-License-Identifier: MIT
/* page_size_overlap.c - what walks cost that overlap with others, and the window that is fitted */
#include "calibrate/fit.h"
#include "model/internal.h"
#include "util.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MIB (1024.0 * 1024.0)
#define WINDOW 256.0

/* A TLB of two levels, tables that are near, and walks: 2, 40 and 150 ns; 20 of a large page. */
static const struct page_geometry geometry = {
	.size_count = 2,
	.shifts = {12, 21},
	.level_count = 3,
	.levels = {{.pool_count = 1, .pools = {{3, 64, 64, PAGE_LRU}}},
		   {.pool_count = 1,
		    .pools = {{3, 2048, 16, PAGE_LRU}},
		    .hit_ns = 2,
		    .hidden_ns = 1.9},
		   {.pool_count = 1,
		    .pools = {{1, 1024, 16, PAGE_LRU}},
		    .hit_ns = 40,
		    .hidden_ns = 37,
		    .group_shift = 3}},
	.walk_latency_ns = {150, 20},
	.walk_throughput_ns = {5, 2},
	.window_instructions = WINDOW,
};

static const struct page_mapping small;

/* Of a million references, three instructions each: these hit level 2, level 3, and walk. */
static struct overlap overlap_of(const struct page_geometry *in, double second, double third,
				 double walks)
{
	struct page_sites sites = {.count = 1, .instructions_per_reference = 3};
	struct page_result result = {.references = 1000000,
				     .misses = {second + third + walks, third + walks, walks},
				     .site_walks = {walks}};
	struct overlap overlap;

	overlap__find(in, &sites, &small, &result, &overlap);
	return overlap;
}

static void a_walk_alone_is_waited_for(void **state)
{
	(void)state;
	assert_float_equal(overlap_of(&geometry, 0, 0, 1).walk_ns[0], 150, 1);
	/* One in a window: half of the walks begin while none is under way. */
	assert_float_equal(overlap_of(&geometry, 0, 0, 3e6 / WINDOW).walk_ns[0], 75, 1);
}

/* From its greatest sum on, x / (1 + x^1.5) with x the walks of a window, the sum stays. */
static void the_law_is_the_one_that_was_measured(void **state)
{
	static const struct {
		double in_window, share;
	} known[] = {{0.25, 1 / 1.125}, {1, 0.5}, {1.5874, 1 / 3.0}, {3.1748, 1 / 6.0}};
	size_t i;

	(void)state;
	for (i = 0; i < PEM_ARRAY_SIZE(known); i++)
		assert_float_equal(
			overlap_of(&geometry, 0, 0, known[i].in_window * 3e6 / WINDOW).walk_ns[0],
			150 * known[i].share, 0.01);
}

static void walks_of_a_loop_cost_what_was_measured(void **state)
{
	(void)state;
	assert_float_equal(overlap_of(&geometry, 0, 0, 1e6).walk_ns[0], 5, 1e-9);
	assert_float_equal(overlap_of(&geometry, 0, 1e6, 0).hit_ns[2], 3, 1e-9);
}

static void long_walks_hide_short_ones_and_not_the_other_way_round(void **state)
{
	struct overlap few = overlap_of(&geometry, 0, 100, 100);

	(void)state;
	assert_true(overlap_of(&geometry, 0, 400000, 100).walk_ns[0] > few.walk_ns[0] - 0.01);
	assert_true(overlap_of(&geometry, 0, 100, 400000).hit_ns[2] < few.hit_ns[2] / 10);
}

static void more_walks_never_cost_less_in_all(void **state)
{
	double walks, all, before = 0;

	(void)state;
	for (walks = 100; walks <= 1e6; walks *= 1.1) {
		all = walks * overlap_of(&geometry, 0, 0, walks).walk_ns[0];
		assert_true(all >= before * 0.999);
		before = all;
	}
}

static void hits_in_a_tlb_are_never_waited_for(void **state)
{
	(void)state;
	assert_float_equal(overlap_of(&geometry, 1, 0, 0).hit_ns[1], 0.1, 1e-9);
}

static void without_a_window_all_overlap(void **state)
{
	struct page_geometry none = geometry;

	(void)state;
	none.window_instructions = 0;
	assert_float_equal(overlap_of(&none, 0, 0, 1).walk_ns[0], 5, 1e-9);
	assert_float_equal(overlap_of(&none, 0, 1, 0).hit_ns[2], 3, 1e-9);
}

/* An access that waits for the one before it pays all, however dense they are. */
static void what_waits_pays_its_latency(void **state)
{
	struct page_sites sites = {.count = 1, .latency_share = {1}};
	struct overlap overlap = overlap_of(&geometry, 0, 5e5, 5e5);

	(void)state;
	assert_float_equal(overlap__walk_ns(&overlap, &geometry, &sites, 0, 0), 150, 1e-9);
	assert_float_equal(overlap__hit_ns(&overlap, &geometry, &sites, 0, 2), 40, 1e-9);
	sites.latency_share[0] = 0.5;
	assert_float_equal(overlap__walk_ns(&overlap, &geometry, &sites, 0, 0),
			   (150 + overlap.walk_ns[0]) / 2, 1e-9);
}

/* --- the window --- */

static void savings_of(double window, struct sparse_saving *savings, size_t count)
{
	struct page_geometry truth = geometry;
	size_t i;

	truth.window_instructions = window;
	for (i = 0; i < count; i++) {
		savings[i].bytes = 512 * MIB;
		savings[i].instructions = 150 * (double)(i + 1);
		savings[i].ns = fit__sparse_ns(&truth, 0, 512 * MIB, savings[i].instructions) -
				fit__sparse_ns(&truth, 1, 512 * MIB, savings[i].instructions);
	}
}

static void windows_are_found_again(void **state)
{
	struct page_geometry found = geometry;
	struct sparse_saving savings[2];
	double window;

	(void)state;
	for (window = 60; window < 1000; window *= 1.7) {
		savings_of(window, savings, 2);
		fit__window(&found, savings, 2);
		assert_float_equal(found.window_instructions / window, 1, 0.06);
		/* As it is written into the calibration. */
		assert_float_equal(found.window_instructions, rint(found.window_instructions), 0);
	}
}

static void savings_that_say_nothing_give_no_window(void **state)
{
	struct sparse_saving savings[2] = {{512 * MIB, 150, 0}, {512 * MIB, 300, -4}};
	struct page_geometry found = geometry;

	(void)state;
	fit__window(&found, savings, 2);
	assert_float_equal(found.window_instructions, 0, 0);
	savings_of(WINDOW, savings, 2);
	found.size_count = 1;
	fit__window(&found, savings, 2);
	assert_float_equal(found.window_instructions, 0, 0);
}

static void windows_out_of_range_are_refused(void **state)
{
	struct page_geometry bad = geometry;

	(void)state;
	assert_int_equal(page_geometry__check(&bad, NULL), 0);
	bad.window_instructions = -1;
	assert_int_not_equal(page_geometry__check(&bad, NULL), 0);
	bad.window_instructions = NAN;
	assert_int_not_equal(page_geometry__check(&bad, NULL), 0);
	bad.window_instructions = 2e6;
	assert_int_not_equal(page_geometry__check(&bad, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_alone_is_waited_for),
		cmocka_unit_test(the_law_is_the_one_that_was_measured),
		cmocka_unit_test(walks_of_a_loop_cost_what_was_measured),
		cmocka_unit_test(long_walks_hide_short_ones_and_not_the_other_way_round),
		cmocka_unit_test(more_walks_never_cost_less_in_all),
		cmocka_unit_test(hits_in_a_tlb_are_never_waited_for),
		cmocka_unit_test(without_a_window_all_overlap),
		cmocka_unit_test(what_waits_pays_its_latency),
		cmocka_unit_test(windows_are_found_again),
		cmocka_unit_test(savings_that_say_nothing_give_no_window),
		cmocka_unit_test(windows_out_of_range_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
