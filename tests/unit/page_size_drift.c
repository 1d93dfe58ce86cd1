// SPDX-License-Identifier: MIT
/* page_size_drift.c - which input is another than the observed one
 * (agents/page-size/program/drift.c) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "program/program.h"

#include <math.h>

#define MIB (1024.0 * 1024.0)

static void three_times_the_memory_is_another_input(void **state)
{
	(void)state;
	assert_true(page_drift__is_larger(100 * MIB, 300 * MIB));
	assert_false(page_drift__is_larger(100 * MIB, 299 * MIB));
}

static void little_more_memory_is_not(void **state)
{
	(void)state;
	assert_true(page_drift__is_larger(1 * MIB, 65 * MIB));
	assert_false(page_drift__is_larger(1 * MIB, 64 * MIB));
}

static void five_times_the_work_is_another_input(void **state)
{
	(void)state;
	assert_true(page_drift__is_longer(1, 5));
	assert_false(page_drift__is_longer(1, 4.99));
}

static void half_a_second_more_is_the_least(void **state)
{
	(void)state;
	assert_true(page_drift__is_longer(0.0625, 0.5625));
	assert_false(page_drift__is_longer(0.0625, 0.5624));
}

static void what_nobody_knows_is_no_reason(void **state)
{
	(void)state;
	assert_false(page_drift__is_larger(0, 1e12));
	assert_false(page_drift__is_longer(0, 1e6));
}

static bool is_elsewhere(double share, size_t hits, size_t samples)
{
	const struct page_hits all = {.samples = samples, .hits = hits};

	return page_drift__is_elsewhere(share, &all);
}

static void few_samples_at_the_data_are_another_input(void **state)
{
	(void)state;
	/* A quarter of 80 % is a fifth: 0.8^42 is less than one in 10,000, 0.8^41 is not. */
	assert_true(is_elsewhere(0.8, 0, 42));
	assert_false(is_elsewhere(0.8, 0, 41));
	/* The chance of at most one in 54 is 0.8^54 + 54 * 0.2 * 0.8^53: 8.5e-5. */
	assert_true(is_elsewhere(0.8, 1, 54));
	assert_false(is_elsewhere(0.8, 1, 53));
	assert_true(is_elsewhere(0.8, 200, 2000));
}

static void a_quarter_of_the_share_is_not(void **state)
{
	(void)state;
	assert_false(is_elsewhere(0.8, 400, 2000));
	assert_false(is_elsewhere(0.8, 2000, 2000));
	assert_false(is_elsewhere(1, 500, 2000));
}

static void data_that_few_references_were_to_need_more_samples(void **state)
{
	(void)state;
	assert_false(is_elsewhere(0.02, 0, 1000));
	assert_true(is_elsewhere(0.02, 0, 2000));
}

static void without_a_share_or_samples_nothing_is_known(void **state)
{
	(void)state;
	assert_false(is_elsewhere(0, 0, 2000));
	assert_false(is_elsewhere(-1, 0, 2000));
	assert_false(is_elsewhere(NAN, 0, 2000));
	assert_false(is_elsewhere(3.9, 0, 2000));
	assert_false(is_elsewhere(1.01, 0, 2000));
	assert_false(is_elsewhere(0.8, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_times_the_memory_is_another_input),
		cmocka_unit_test(little_more_memory_is_not),
		cmocka_unit_test(five_times_the_work_is_another_input),
		cmocka_unit_test(half_a_second_more_is_the_least),
		cmocka_unit_test(what_nobody_knows_is_no_reason),
		cmocka_unit_test(few_samples_at_the_data_are_another_input),
		cmocka_unit_test(a_quarter_of_the_share_is_not),
		cmocka_unit_test(data_that_few_references_were_to_need_more_samples),
		cmocka_unit_test(without_a_share_or_samples_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
