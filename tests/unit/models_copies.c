// SPDX-License-Identifier: MIT
/*
 * models_copies.c - copies that are equally fast are found so, and a slower one counts
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "models_series.h"
#include "models/service.h"

#define COPIES 4u

/* Copies of exponential service; the third one takes slowness times as long. */
static void compare(enum series_kind kind, uint64_t seed, double slowness, uint32_t intervals,
		    struct model_copies *result)
{
	struct series series = {.kind = kind, .random = seed};
	struct model_estimate copies[COPIES];
	uint64_t items;
	uint32_t i, k;

	for (k = 0; k < COPIES; k++) {
		struct model_service service = {0};

		for (i = 0; i < intervals; i++) {
			double time = series_next(&series, &items) * (k == 2 ? slowness : 1);

			model_service__add(&service, items, (uint64_t)(1e4 * time), false);
		}
		model_service__estimate(&service, &copies[k]);
		model_service__free(&service);
	}
	model_copies__compare(copies, COPIES, result);
}

static void equal_copies_differ_in_5_of_100_series(void **state)
{
	struct model_copies result;
	int differ = 0, i;

	(void)state;
	for (i = 0; i < 500; i++) {
		compare(SERIES_EXPONENTIAL, (uint64_t)i + 1, 1, 500, &result);
		assert_true(result.known);
		differ += result.p < 0.05;
	}
	print_message("%d of 500\n", differ);
	assert_true(differ >= 5 && differ <= 40);
}

static void the_slowest_copy_counts(void **state)
{
	struct model_copies result;
	int i;

	(void)state;
	for (i = 0; i < 50; i++) {
		compare(SERIES_EXPONENTIAL, (uint64_t)i + 1, 1.5, 500, &result);
		assert_true(result.known && result.p < 0.01);
		assert_int_equal(result.slowest, 2);
		assert_true(result.even == COPIES * result.least.rate && result.even < result.sum);
	}
}

static void deterministic_copies_are_compared(void **state)
{
	struct model_copies result;

	(void)state;
	compare(SERIES_DETERMINISTIC, 1, 1, 100, &result);
	assert_true(result.known && result.p > 0.99);
	compare(SERIES_DETERMINISTIC, 1, 1.01, 100, &result);
	assert_true(result.known && result.p < 1e-6);
}

static void an_unknown_copy_leaves_all_unknown(void **state)
{
	struct model_copies result;

	(void)state;
	compare(SERIES_EXPONENTIAL, 1, 1, 3, &result);
	assert_true(!result.known && result.p == 1 && result.sum == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_copies_differ_in_5_of_100_series),
		cmocka_unit_test(the_slowest_copy_counts),
		cmocka_unit_test(deterministic_copies_are_compared),
		cmocka_unit_test(an_unknown_copy_leaves_all_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
