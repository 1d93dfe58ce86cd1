// SPDX-License-Identifier: MIT
/*
 * models_heuristic.c - the paper's heuristic beside its equations, worked out apart
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "models_series.h"
#include "bench/heuristic.h"

/* Sum of equation 2 from -2 to 2. */
#define KERNEL_SUM 0.9908657

static void constant_counts_converge_to_the_sum_of_the_kernel(void **state)
{
	struct rate_heuristic h;
	double converged = 0;
	uint32_t i;

	(void)state;
	rate_heuristic__begin(&h, 0);
	for (i = 0; i < 1000 && !rate_heuristic__add(&h, 40, false, &converged); i++)
		;
	/* 32 samples are a window; 2 values of q have a deviation, 3 of these are filtered, 16
	 * times. */
	assert_int_equal(i + 1, 32 + 1 + 2 + 15);
	assert_true(fabs(converged / 40 - KERNEL_SUM) < 1e-6);
}

static void q_is_the_quantile_of_the_filtered_window(void **state)
{
	/* One count of 1 among zeroes, in a window of 9: equation 2's five values remain. */
	static const double filtered[] = {0.0539910, 0.2419707, 0.3989423, 0.2419707, 0.0539910};
	double mean = KERNEL_SUM / 5, squares = 0, converged;
	struct rate_heuristic h;
	uint32_t i;

	(void)state;
	rate_heuristic__begin(&h, 9);
	for (i = 0; i < 9; i++)
		rate_heuristic__add(&h, i == 4, false, &converged);
	for (i = 0; i < 5; i++)
		squares += (filtered[i] - mean) * (filtered[i] - mean);
	assert_true(fabs(rate_heuristic__mean(&h) - (mean + 1.64485 * sqrt(squares / 4))) < 1e-5);
}

static void blocked_periods_are_left_out(void **state)
{
	struct rate_heuristic h;
	double converged = 0;
	uint32_t i;

	(void)state;
	rate_heuristic__begin(&h, 0);
	for (i = 0; i < 1000; i++)
		assert_false(rate_heuristic__add(&h, 40, true, &converged));
	assert_true(isnan(rate_heuristic__mean(&h)));
	for (i = 0; i < 2000 && converged == 0; i++)
		rate_heuristic__add(&h, i % 2 ? 40 : 3, !(i % 2), &converged);
	assert_true(fabs(converged / 40 - KERNEL_SUM) < 1e-6);
}

static void noisy_counts_converge_and_begin_again(void **state)
{
	struct rate_heuristic h;
	uint64_t random = 4;
	double converged, last = 0;
	uint32_t i, times = 0;

	(void)state;
	rate_heuristic__begin(&h, 0);
	for (i = 0; i < 200000; i++)
		if (rate_heuristic__add(&h, 100 + 10 * series_normal(&random), false, &converged)) {
			times++;
			last = converged;
		}
	print_message("%u times, the last one %.1f\n", times, last);
	assert_true(times >= 2);
	/* The mean is 100, the 95th percentile of the smoothed counts some 108. */
	assert_true(last > 100 && last < 115);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constant_counts_converge_to_the_sum_of_the_kernel),
		cmocka_unit_test(q_is_the_quantile_of_the_filtered_window),
		cmocka_unit_test(blocked_periods_are_left_out),
		cmocka_unit_test(noisy_counts_converge_and_begin_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
