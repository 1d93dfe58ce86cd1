// SPDX-License-Identifier: MIT
/*
 * models_change.c - phases of different rates are found where they are, and none where there is
 * none
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "models_series.h"
#include "models/service.h"

#define ITEM_NS 100000.0
#define HALF 5000u

static struct model_change change;

/* A series of 2 * HALF intervals, the second half of which takes ratio times as long. */
static uint32_t run(enum series_kind kind, uint64_t seed, double ratio, struct model_phase *phases)
{
	struct series series = {.kind = kind, .random = seed};
	uint64_t items, before;
	uint32_t i, found = 0, count;

	model_change__begin(&change);
	for (i = 0; i < 2 * HALF; i++) {
		double busy_ns = series_next(&series, &items) * ITEM_NS;

		found += model_change__add(&change, items,
					   (uint64_t)(busy_ns * (i < HALF ? 1 : ratio) + 0.5));
	}
	count = model_change__phases(&change, phases, &before);
	assert_int_equal(before, 0);
	assert_int_equal(count, found + 1);
	return count;
}

static void both_phases_are_found_within_100_intervals_of_the_change(void **state)
{
	static const struct {
		enum series_kind kind;
		double variation; /* of an item's time, at least what a change of 5 % needs */
	} cases[] = {{SERIES_EXPONENTIAL, 1},
		     {SERIES_DETERMINISTIC, 0.08},
		     {SERIES_GAMMA4, 0.5},
		     {SERIES_JITTER, 0.08},
		     {SERIES_BIMODAL, 1.42}};
	const int runs = 100;
	uint32_t k;

	(void)state;
	for (k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		int found = 0, i;

		for (i = 0; i < runs; i++) {
			double size = MODEL_CHANGE_SURE * cases[k].variation;
			struct model_phase phases[MODEL_PHASES];

			if (run(cases[k].kind, (uint64_t)i + 1, exp(i % 2 ? size : -size),
				phases) != 2)
				continue;
			found += fabs((double)phases[1].first_interval - HALF) <= 100 &&
				 fabs(phases[0].range.rate / (1e9 / ITEM_NS) - 1) < 0.1;
		}
		print_message("%s: %d of %d\n", series_names[cases[k].kind], found, runs);
		assert_true(found >= 98);
	}
}

static void a_steady_rate_has_one_phase(void **state)
{
	struct model_phase phases[MODEL_PHASES];
	int kind, i;

	(void)state;
	for (kind = 0; kind < SERIES_KINDS; kind++)
		for (i = 0; i < 20; i++)
			assert_int_equal(run((enum series_kind)kind, (uint64_t)i + 1, 1, phases),
					 1);
}

static void an_outlier_is_no_phase(void **state)
{
	uint32_t i;

	(void)state;
	model_change__begin(&change);
	for (i = 0; i < 20000; i++)
		assert_false(
			model_change__add(&change, 1, i == 10000 ? 100000000 : 100000 + i % 7));
}

static void a_phase_has_an_interval_of_its_rate(void **state)
{
	int i, holds = 0;

	(void)state;
	for (i = 0; i < 100; i++) {
		struct model_phase phases[MODEL_PHASES];

		assert_int_equal(run(SERIES_EXPONENTIAL, (uint64_t)i + 1, 4, phases), 2);
		assert_int_equal(phases[0].intervals + phases[1].intervals, 2 * HALF);
		assert_int_equal(phases[1].first_item, phases[0].items);
		holds += phases[1].range.low <= 2.5e3 && 2.5e3 <= phases[1].range.high;
	}
	assert_true(holds >= 90);
}

static void the_last_phases_are_kept(void **state)
{
	struct model_phase phases[MODEL_PHASES];
	uint64_t before;
	uint32_t i, count;

	(void)state;
	model_change__begin(&change);
	for (i = 0; i < 100 * 1000; i++)
		model_change__add(&change, 3, i / 1000 % 2 ? 30000 : 60000);
	count = model_change__phases(&change, phases, &before);
	assert_int_equal(count, MODEL_PHASES);
	assert_int_equal(before, 100 - MODEL_PHASES);
	for (i = 0; i < count; i++) {
		assert_int_equal(phases[i].first_interval, (before + i) * 1000);
		assert_int_equal(phases[i].first_item, (before + i) * 3000);
		assert_true(fabs(phases[i].range.rate / ((before + i) % 2 ? 1e5 : 5e4) - 1) < 1e-3);
	}
}

/* Ever slower: the hull has as many corners as intervals. */
static void a_drift_takes_no_more_memory(void **state)
{
	struct model_phase phases[MODEL_PHASES];
	uint64_t before;
	uint32_t i;

	(void)state;
	model_change__begin(&change);
	for (i = 0; i < 100000; i++)
		model_change__add(&change, 1, 100000 + 10 * i);
	assert_true(model_change__phases(&change, phases, &before) + before > 2);
	assert_true(change.slower.count <= MODEL_SPLITS && change.faster.count <= MODEL_SPLITS);
}

static void odd_intervals_do_no_harm(void **state)
{
	struct series series = {.random = 9};
	struct model_phase phases[MODEL_PHASES];
	uint64_t before;
	uint32_t i;

	(void)state;
	model_change__begin(&change);
	for (i = 0; i < 100000; i++) {
		uint64_t kind = model_random__below(&series.random, 5);
		uint64_t odd = model_random(&series.random);

		model_change__add(&change,
				  kind == 0   ? 0
				  : kind == 1 ? odd
					      : 1,
				  kind == 2   ? 0
				  : kind == 3 ? odd
					      : 1000);
	}
	assert_true(model_change__phases(&change, phases, &before) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_phases_are_found_within_100_intervals_of_the_change),
		cmocka_unit_test(a_steady_rate_has_one_phase),
		cmocka_unit_test(an_outlier_is_no_phase),
		cmocka_unit_test(a_phase_has_an_interval_of_its_rate),
		cmocka_unit_test(the_last_phases_are_kept),
		cmocka_unit_test(a_drift_takes_no_more_memory),
		cmocka_unit_test(odd_intervals_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
