// SPDX-License-Identifier: MIT
/* page_size_drift.c - which input is another than the observed one
 * (agents/page-size/program/drift.c) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "program/program.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_times_the_memory_is_another_input),
		cmocka_unit_test(little_more_memory_is_not),
		cmocka_unit_test(five_times_the_work_is_another_input),
		cmocka_unit_test(half_a_second_more_is_the_least),
		cmocka_unit_test(what_nobody_knows_is_no_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
