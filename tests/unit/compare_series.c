/* SPDX-License-Identifier: MIT */
/*
 * compare_series.c - windows of a trace: they reach as far as it does, and no amount is lost
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/compare/series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct compare_series *series;

static int set_up(void **state)
{
	(void)state;
	series = calloc(1, sizeof(*series));
	if (series == NULL)
		return -1;
	series->window_ns = 1000;
	series->instances = compare_instances__new();
	return series->instances != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < series->metric_count; i++) {
		free(series->metrics[i].sum);
		free(series->metrics[i].weight);
		pem_sketch__free(&series->metrics[i].sketch);
	}
	free(series->metrics);
	compare_instances__free(series->instances);
	free(series);
	return 0;
}

static size_t metric(enum compare_kind kind, const char *name)
{
	long at = compare_series__metric(series, name, kind, "", name);

	assert_true(at >= 0);
	return (size_t)at;
}

static void near(double value, double wanted)
{
	if (!(fabs(value - wanted) <= 1e-9 * (1 + fabs(wanted))))
		fail_msg("%.17g is not %.17g", value, wanted);
}

static double sum_of(size_t m)
{
	double values[COMPARE_WINDOWS], sum = 0;
	size_t i, n = compare_series__values(series, m, 1, values);

	for (i = 0; i < n; i++)
		sum += isnan(values[i]) ? 0 : values[i];
	return sum;
}

static void a_name_is_one_metric(void **state)
{
	(void)state;
	assert_int_equal(metric(COMPARE_COUNT, "a"), metric(COMPARE_COUNT, "a"));
	assert_int_not_equal(metric(COMPARE_COUNT, "a"), metric(COMPARE_SUM, "a"));
	assert_int_not_equal(compare_series__metric(series, "a", COMPARE_COUNT, "", "of another"),
			     (long)metric(COMPARE_COUNT, "a"));
	while (series->metric_count < COMPARE_METRICS_MAX) {
		char name[16];

		snprintf(name, sizeof(name), "m%zu", series->metric_count);
		metric(COMPARE_RATIO, name);
	}
	assert_true(compare_series__metric(series, "one more", COMPARE_RATIO, "", "") < 0);
	assert_int_equal(series->metrics_left_out, 1);
	assert_int_equal(metric(COMPARE_COUNT, "a"), 0);
}

static void windows_reach_any_time(void **state)
{
	size_t m = metric(COMPARE_COUNT, "a");
	uint64_t t;

	(void)state;
	for (t = 0; t < 100 * 1000 * COMPARE_WINDOWS; t += 10000)
		compare_series__add(series, m, t, 1);
	assert_true(series->window_ns * COMPARE_WINDOWS >= t - 10000);
	assert_true(series->window_count > COMPARE_WINDOWS / 2 &&
		    series->window_count <= COMPARE_WINDOWS);
	near(series->metrics[m].total, 100 * COMPARE_WINDOWS / 10);
	/* All but what lies in the last window, which is cut. */
	near(sum_of(m), (double)(((series->window_count - 1) * series->window_ns + 9999) / 10000));
	compare_series__add(series, m, UINT64_MAX, 1);
	assert_true(series->window_count <= COMPARE_WINDOWS);
}

static void an_amount_is_spread(void **state)
{
	size_t m = metric(COMPARE_GROWTH, "a");
	double values[COMPARE_WINDOWS];

	(void)state;
	compare_series__spread(series, m, 500, 3500, 300);
	compare_series__reach(series, 9999);
	assert_int_equal(compare_series__values(series, m, 1, values), 9);
	near(values[0], 50);
	near(values[1], 100);
	near(values[2], 100);
	near(values[3], 50);
	near(values[4], 0);
	/* Nothing is lost where the windows end, nor where time does. */
	compare_series__spread(series, m, UINT64_MAX - 10, UINT64_MAX, 7);
	near(series->metrics[m].total, 307);
}

static void lost_windows_are_unknown(void **state)
{
	size_t m = metric(COMPARE_COUNT, "a");
	double values[COMPARE_WINDOWS];

	(void)state;
	compare_series__reach(series, 9999);
	compare_series__lose(series, PEM_DOUBT_PROGRAMS, 2500, 4000);
	assert_int_equal(compare_series__values(series, m, 1, values), 9);
	assert_true(!isnan(values[1]) && isnan(values[2]) && isnan(values[3]) && isnan(values[4]) &&
		    !isnan(values[5]));
	/* Of joined windows one lost one is enough. */
	assert_int_equal(compare_series__values(series, m, 2, values), 4);
	assert_true(!isnan(values[0]) && isnan(values[1]) && isnan(values[2]) && !isnan(values[3]));
	/* They stay lost when windows become longer. */
	compare_series__reach(series, 1000 * COMPARE_WINDOWS);
	compare_series__values(series, m, 1, values);
	assert_true(!isnan(values[0]) && isnan(values[1]) && isnan(values[2]) && !isnan(values[3]));
}

static void means_and_quantiles(void **state)
{
	size_t m = metric(COMPARE_DURATION, "d"), level = metric(COMPARE_LEVEL, "l"), i;
	double values[COMPARE_WINDOWS];

	(void)state;
	assert_true(isnan(pem_sketch__percentile(&series->metrics[m].sketch, 500)));
	for (i = 1; i <= 1000; i++)
		compare_series__add(series, m, i, (double)(i * 1000));
	compare_series__add(series, level, 10, -4);
	compare_series__add(series, level, 20, 2);
	compare_series__add(series, level, 30, NAN);
	compare_series__add(series, level, 40, INFINITY);
	compare_series__reach(series, 5000);
	compare_series__values(series, level, 1, values);
	near(values[0], -1);
	assert_true(isnan(values[1]));
	assert_true(fabs(pem_sketch__percentile(&series->metrics[m].sketch, 500) / 500e3 - 1) <
		    0.008);
	assert_true(fabs(pem_sketch__percentile(&series->metrics[m].sketch, 990) / 990e3 - 1) <
		    0.008);
}

static void instances_take_what_is_inside(void **state)
{
	size_t phase = metric(COMPARE_DURATION, "phase"), inside = metric(COMPARE_COUNT, "a"), n;
	const struct compare_phase *phases;
	double values[COMPARE_INSTANCES_MAX];
	void *open;
	int i, k;

	(void)state;
	series->metrics[phase].is_phase = true;
	for (i = 0; i < 10; i++) {
		open = compare_instances__begin(series, phase, (uint64_t)i * 1000);
		for (k = 0; k < i; k++)
			compare_series__add(series, inside, (uint64_t)i * 1000 + 10, 1);
		assert_int_equal(compare_instances__end(series, open, (uint64_t)i * 1000 + 100), 0);
		compare_series__add(series, inside, (uint64_t)i * 1000 + 500, 1);
	}
	assert_int_equal(compare_instances__phases(series, &phases), 1);
	n = compare_phase__values(series, phases, inside, values);
	assert_int_equal(n, 10);
	for (i = 0; i < 10; i++)
		near(values[i], i);
	compare_phase__values(series, phases, SIZE_MAX, values);
	near(values[7], 100);
	compare_series__lose(series, PEM_DOUBT_PROGRAMS, 3000, 3999);
	assert_int_equal(compare_phase__values(series, phases, inside, values), 10);
	assert_true(!isnan(values[2]) && isnan(values[3]) && !isnan(values[4]));
	/* What another source lost is known of this one, and so is the phase's length. */
	compare_series__lose(series, PEM_DOUBT_KERNEL, 5000, 5999);
	compare_phase__values(series, phases, inside, values);
	assert_false(isnan(values[5]));
	/* Of many instances some are kept, evenly. */
	for (i = 10; i < 5000; i++) {
		open = compare_instances__begin(series, phase, (uint64_t)i * 1000);
		assert_int_equal(compare_instances__end(series, open, (uint64_t)i * 1000 + 100), 0);
	}
	assert_true(phases->count > COMPARE_INSTANCES_MAX / 2 &&
		    phases->count <= COMPARE_INSTANCES_MAX);
	assert_int_equal(phases->kept[2].begin_ns - phases->kept[1].begin_ns,
			 phases->kept[102].begin_ns - phases->kept[101].begin_ns);
}

static void cycles_per_instruction_are_derived(void **state)
{
	size_t cycles = metric(COMPARE_GROWTH, "HW::HWPerf::Cycles"), n, i;
	size_t instructions = metric(COMPARE_GROWTH, "HW::HWPerf::Instructions");
	struct pem_model *catalogue = pem_model__new();
	double values[COMPARE_WINDOWS];

	(void)state;
	assert_true(catalogue && pem_model__add_catalogue(catalogue, NULL) > 0);
	for (i = 0; i < 5; i++) {
		compare_series__spread(series, cycles, i * 1000, i * 1000 + 1000,
				       (double)(300 * (i + 1)));
		if (i != 3)
			compare_series__add(series, instructions, i * 1000 + 500, 200);
	}
	assert_int_equal(compare_series__derive(series, catalogue), 0);
	assert_int_equal(series->metric_count, 3);
	assert_string_equal(series->metrics[2].name, "HW::HWPerf::CyclesPerInstruction");
	pem_model__free(catalogue);
	n = compare_series__values(series, 2, 1, values);
	assert_int_equal(n, 5);
	near(values[0], 1.5);
	near(values[2], 4.5);
	/* Without an instruction there is no ratio. */
	assert_true(isnan(values[3]));
	/* Of joined windows it is that of the sums. */
	compare_series__values(series, 2, 2, values);
	near(values[0], 900.0 / 400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_name_is_one_metric, set_up, tear_down),
		cmocka_unit_test_setup_teardown(windows_reach_any_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_amount_is_spread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lost_windows_are_unknown, set_up, tear_down),
		cmocka_unit_test_setup_teardown(means_and_quantiles, set_up, tear_down),
		cmocka_unit_test_setup_teardown(cycles_per_instruction_are_derived, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(instances_take_what_is_inside, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
