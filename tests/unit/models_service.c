// SPDX-License-Identifier: MIT
/*
 * models_service.c - rates of series whose rate is known, and how often their intervals hold it
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "models_series.h"
#include "models/service.h"

#define ITEM_NS 10000.0
#define RATE 1e5

static struct model_estimate estimate_of(enum series_kind kind, uint64_t seed, uint32_t intervals)
{
	struct series series = {.kind = kind, .random = seed};
	struct model_service service = {0};
	struct model_estimate estimate;
	uint64_t items;
	uint32_t i;

	for (i = 0; i < intervals; i++) {
		double busy_ns = series_next(&series, &items) * ITEM_NS;

		assert_int_equal(
			model_service__add(&service, items, (uint64_t)(busy_ns + 0.5), false), 0);
	}
	model_service__estimate(&service, &estimate);
	model_service__free(&service);
	return estimate;
}

static void intervals_hold_the_true_rate_in_95_of_100_series(void **state)
{
	static const enum series_kind kinds[] = {SERIES_EXPONENTIAL, SERIES_BIMODAL, SERIES_AR1,
						 SERIES_BATCHES};
	const uint32_t lengths[] = {100, 1000, 5000};
	const int runs = 400;
	uint32_t k, n;

	(void)state;
	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (n = 0; n < 3; n++) {
			int holds = 0, run;

			for (run = 0; run < runs; run++) {
				struct model_estimate e =
					estimate_of(kinds[k], (uint64_t)run + 1, lengths[n]);

				assert_true(e.known);
				holds += e.range.low <= RATE && RATE <= e.range.high;
			}
			/* Three deviations of 400 runs, and what short series lack. */
			print_message("%s, %u intervals: %.1f %%\n", series_names[kinds[k]],
				      lengths[n], 100.0 * holds / runs);
			assert_true(holds >= (lengths[n] < 1000 ? 365 : 367));
		}
}

static void a_deterministic_rate_is_exact(void **state)
{
	struct model_estimate e = estimate_of(SERIES_DETERMINISTIC, 1, 1000);

	(void)state;
	assert_true(e.known);
	assert_true(fabs(e.range.low / RATE - 1) < 1e-9 && fabs(e.range.high / RATE - 1) < 1e-9);
	assert_true(fabs(e.mean_ns - ITEM_NS) < 1e-6 && e.deviation_ns < 1e-6);
}

static void the_time_of_an_item_has_its_known_distribution(void **state)
{
	struct model_estimate one = estimate_of(SERIES_EXPONENTIAL, 3, 100000);
	struct model_estimate many = estimate_of(SERIES_BATCHES, 3, 100000);

	(void)state;
	assert_int_equal(one.intervals, 100000);
	assert_true(fabs(one.mean_ns / ITEM_NS - 1) < 0.02);
	assert_true(fabs(one.deviation_ns / ITEM_NS - 1) < 0.02);
	assert_true(fabs(one.p50_ns / ITEM_NS / log(2) - 1) < 0.03);
	assert_true(fabs(one.p90_ns / ITEM_NS / log(10) - 1) < 0.03);
	assert_true(fabs(one.p99_ns / ITEM_NS / log(100) - 1) < 0.05);
	/* By sums of independent items the deviation of one is known as well. */
	assert_true(many.items > 1000000);
	assert_true(fabs(many.deviation_ns / ITEM_NS - 1) < 0.02);
}

static void too_few_intervals_are_unknown(void **state)
{
	struct model_estimate e = estimate_of(SERIES_EXPONENTIAL, 1, MODEL_INTERVALS_MIN - 1);

	(void)state;
	assert_false(e.known);
	assert_int_equal(e.intervals, MODEL_INTERVALS_MIN - 1);
	assert_true(e.range.rate == 0 && e.range.high == 0);
}

/* Of each ten intervals some are lost; in these the stage was five times as fast as it seems. */
static struct model_estimate with_losses(uint32_t lost_of_ten)
{
	struct series series = {.kind = SERIES_GAMMA4, .random = 5};
	struct model_service service = {0};
	struct model_estimate e;
	uint64_t items;
	uint32_t i;

	for (i = 0; i < 10000; i++) {
		uint64_t busy_ns = (uint64_t)(series_next(&series, &items) * ITEM_NS);
		bool is_lost = i % 10 < lost_of_ten;

		model_service__add(&service, items, is_lost ? 5 * busy_ns : busy_ns, is_lost);
	}
	model_service__estimate(&service, &e);
	model_service__free(&service);
	return e;
}

static void losses_widen_the_interval_until_nothing_is_known(void **state)
{
	struct model_estimate none = with_losses(0), some = with_losses(1), most = with_losses(6);

	(void)state;
	assert_true(none.known && some.known && !most.known);
	assert_int_equal(some.lost_intervals, 1000);
	assert_true(fabs(some.range.rate / RATE - 1) < 0.03);
	assert_true(some.range.high - some.range.low > 2 * (none.range.high - none.range.low));
}

static void counters_that_wrap_are_losses(void **state)
{
	struct model_service service = {0};
	struct model_estimate e;
	uint32_t i;

	(void)state;
	for (i = 0; i < 100; i++)
		model_service__add(&service, 1, (uint64_t)ITEM_NS, false);
	model_service__add(&service, UINT64_MAX - 5, 7, false);
	model_service__estimate(&service, &e);
	model_service__free(&service);
	assert_true(e.known && e.items == 100 && e.lost_intervals == 1);
	assert_true(fabs(e.range.rate / RATE - 1) < 1e-9);
}

static void time_without_items_counts(void **state)
{
	struct model_service service = {0};
	struct model_estimate e;
	uint32_t i;

	(void)state;
	for (i = 0; i < 1000; i++)
		model_service__add(&service, i % 2, (uint64_t)ITEM_NS / 2, false);
	model_service__estimate(&service, &e);
	assert_true(e.known && fabs(e.range.rate / RATE - 1) < 1e-9);
	assert_true(fabs(e.p50_ns / ITEM_NS - 1) < 0.01);
	model_service__free(&service);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(intervals_hold_the_true_rate_in_95_of_100_series),
		cmocka_unit_test(a_deterministic_rate_is_exact),
		cmocka_unit_test(the_time_of_an_item_has_its_known_distribution),
		cmocka_unit_test(too_few_intervals_are_unknown),
		cmocka_unit_test(losses_widen_the_interval_until_nothing_is_known),
		cmocka_unit_test(counters_that_wrap_are_losses),
		cmocka_unit_test(time_without_items_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
