// SPDX-License-Identifier: MIT
/*
 * page_size_middle.c - pages of 64 KiB in a calibration: fitted, taken out, written, measured
 *
 * Not here: whether the times are right. bench/page_size_calibrate.c shows that.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "agents/page-size/calibrate/calibrate.h"
#include "agents/page-size/calibrate/chase.h"
#include "agents/page-size/calibrate/fit.h"
#include "agents/page-size/calibrate/kernel.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#define MIB 1048576.0

/* Two levels of TLB, of which the first has pools of its own, and lines of tables that are near. */
static struct page_geometry two_sizes(void)
{
	return (struct page_geometry){
		.size_count = 2,
		.shifts = {12, 21},
		.entry_shifts = {0, 12},
		.level_count = 3,
		.levels = {{.pool_count = 2,
			    .pools = {{1, 64, 64, PAGE_LRU}, {2, 32, 32, PAGE_LRU}}},
			   {.pool_count = 1,
			    .pools = {{3, 2048, 16, PAGE_LRU}},
			    .hit_ns = 2,
			    .hidden_ns = 1.5},
			   {.pool_count = 1,
			    .pools = {{1, 2048, 16, PAGE_LRU}},
			    .group_shift = 3,
			    .hit_ns = 40,
			    .hidden_ns = 36}},
		.walk_latency_ns = {120, 15},
		.walk_throughput_ns = {9, 2},
		.first_touch_ns = {500, 90000},
	};
}

/* The same with pages of 64 KiB, 16 KiB of them in an entry; of their tables twice as many are
 * near. */
static struct page_geometry three_sizes(void)
{
	struct page_geometry g = two_sizes();

	g.size_count = 3;
	g.shifts[1] = 16;
	g.shifts[2] = 21;
	g.entry_shifts[1] = 14;
	g.entry_shifts[2] = 12;
	g.levels[0].pools[0].sizes = 3;
	g.levels[0].pools[1].sizes = 4;
	g.levels[1].pools[0].sizes = 7;
	g.levels[2].pool_count = 2;
	g.levels[2].pools[1] = (struct page_pool){2, 1024, 16, PAGE_LRU};
	g.walk_latency_ns[1] = 80;
	g.walk_latency_ns[2] = 15;
	g.walk_throughput_ns[1] = 6;
	g.walk_throughput_ns[2] = 2;
	return g;
}

/* What a geometry predicts for pages of 64 KiB against small ones. */
static size_t savings_of(const struct page_geometry *geometry, struct saving *savings)
{
	size_t count = 0;
	double bytes;

	for (bytes = 32 * MIB; bytes <= 1024 * MIB; bytes *= 2) {
		savings[count].bytes = bytes;
		savings[count].latency_ns = fit__random_ns(geometry, 0, bytes, 1) -
					    fit__random_ns(geometry, 1, bytes, 1);
		savings[count++].throughput_ns = fit__random_ns(geometry, 0, bytes, 0) -
						 fit__random_ns(geometry, 1, bytes, 0);
	}
	return count;
}

static void walks_of_middle_pages_are_found_again(void **state)
{
	struct page_geometry geometry = two_sizes(), truth = three_sizes();
	struct saving savings[FIT_POINTS_MAX];
	uint32_t i;

	(void)state;
	fit__middle(&geometry, 16, 14, savings, savings_of(&truth, savings));
	assert_int_equal(page_geometry__check(&geometry, NULL), 0);
	assert_int_equal(geometry.size_count, 3);
	assert_memory_equal(geometry.shifts, truth.shifts, sizeof(truth.shifts));
	assert_memory_equal(geometry.entry_shifts, truth.entry_shifts, sizeof(truth.entry_shifts));
	for (i = 0; i < 3; i++) {
		assert_int_equal(geometry.levels[i].pool_count, truth.levels[i].pool_count);
		assert_memory_equal(geometry.levels[i].pools, truth.levels[i].pools,
				    sizeof(truth.levels[i].pools));
		assert_float_equal(geometry.walk_latency_ns[i], truth.walk_latency_ns[i], 1e-6);
		assert_float_equal(geometry.walk_throughput_ns[i], truth.walk_throughput_ns[i],
				   1e-6);
	}
}

/* Where nothing is saved, or measurements make no sense, a walk costs what that of a small page
 * does. */
static void bad_savings_give_a_geometry(void **state)
{
	static const double wrong[] = {0, -20, 1e6};
	struct page_geometry geometry, start = two_sizes();
	struct saving savings[FIT_POINTS_MAX];
	size_t i, j, count;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		geometry = three_sizes();
		count = savings_of(&geometry, savings);
		for (j = 0; j < count; j++)
			savings[j].latency_ns = savings[j].throughput_ns = wrong[i];
		geometry = start;
		fit__middle(&geometry, 16, 12, savings, count);
		assert_int_equal(page_geometry__check(&geometry, NULL), 0);
		if (wrong[i] <= 0)
			assert_float_equal(geometry.walk_latency_ns[1], start.walk_latency_ns[0],
					   1e-9);
		assert_true(geometry.walk_latency_ns[1] >= start.levels[2].hit_ns);
	}
	geometry = start;
	fit__middle(&geometry, 16, 12, savings, 0);
	assert_int_equal(page_geometry__check(&geometry, NULL), 0);
}

static void what_is_taken_out_leaves_the_rest(void **state)
{
	struct page_calibration c = {.geometry = three_sizes(),
				     .collapse_ns = {0, 0, 3},
				     .copy_ns = {1, 2, 3},
				     .supply_bytes = {1, 2, 3}};
	struct page_geometry rest = two_sizes();

	(void)state;
	c.geometry.first_touch_ns[2] = rest.first_touch_ns[1];
	assert_true(page_calibration__middle(&c));
	page_calibration__drop_middle(&c);
	assert_false(page_calibration__middle(&c));
	assert_int_equal(page_geometry__check(&c.geometry, NULL), 0);
	c.geometry.levels[2].pools[1] = (struct page_pool){0};
	assert_memory_equal(&c.geometry, &rest, sizeof(rest));
	assert_true(c.copy_ns[1] == 3 && c.collapse_ns[1] == 3 && c.supply_bytes[1] == 3);
	/* Without them nothing changes. */
	page_calibration__drop_middle(&c);
	assert_int_equal(c.geometry.size_count, 2);
}

static void texts_say_that_there_were_too_few(void **state)
{
	struct page_calibration c = {.geometry = two_sizes()}, back;
	char text[2048];

	(void)state;
	assert_true(page_calibration__write(&c, text, sizeof(text)) > 0);
	assert_null(strstr(text, "lacks"));
	assert_int_equal(page_calibration__read(&back, text), 0);
	assert_false(back.lacks_middle);
	c.lacks_middle = true;
	assert_true(page_calibration__write(&c, text, sizeof(text)) > 0);
	assert_int_equal(page_calibration__read(&back, text), 0);
	assert_true(back.lacks_middle);
	*strstr(text, "lacks") = 'b';
	assert_int_equal(page_calibration__read(&back, text), -EBADMSG);
}

/* Whoever says no says why; whoever says yes keeps it. */
static void this_machine_gives_what_it_offers(void **state)
{
	struct page_work work;
	struct arena arena;
	char why[256] = "";
	int rc;

	(void)state;
	if (!page_middle__offered(why, sizeof(why))) {
		assert_true(strlen(why) > 10);
		assert_false(page_middle__offered(NULL, 0));
		print_message("pages of 64 KiB: %s\n", why);
		skip();
	}
	rc = arena__init(&arena, 8u << 20, MIDDLE_SHIFT);
	if (rc == -ENOTSUP) {
		print_message("the kernel has too few pages of 64 KiB\n");
		skip();
	}
	assert_int_equal(rc, 0);
	assert_int_equal(arena__large_bytes(&arena), 0);
	madvise(arena.memory + (1u << 20), 65536, MADV_DONTNEED);
	assert_false(arena__is_resident(&arena));
	arena.memory[(1u << 20) + 100] = 1;
	assert_true(arena__is_resident(&arena));
	arena__free(&arena);
	/* Another test may switch them off meanwhile. */
	rc = page_work__measure(&work, MIDDLE_SHIFT);
	if (rc == -ENOTSUP)
		skip();
	assert_int_equal(rc, 0);
	assert_true(work.first_touch_ns > 0 && work.copy_ns > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_of_middle_pages_are_found_again),
		cmocka_unit_test(bad_savings_give_a_geometry),
		cmocka_unit_test(what_is_taken_out_leaves_the_rest),
		cmocka_unit_test(texts_say_that_there_were_too_few),
		cmocka_unit_test(this_machine_gives_what_it_offers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
