// SPDX-License-Identifier: MIT
/*
 * counters_estimate.c - totals of counters that shared the hardware, and their errors
 */
#include "sources/counters/estimate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS 1000000ull

static struct tally tally_of(uint64_t value, uint64_t enabled_ns, uint64_t running_ns)
{
	struct reading reading = {value, enabled_ns, running_ns};
	struct tally tally = {0};

	tally__add(&tally, &reading);
	return tally;
}

static void what_was_counted_all_the_time_is_no_estimate(void **state)
{
	struct tally tally = tally_of(1234567, 10 * MS, 10 * MS);

	(void)state;
	assert_int_equal(tally__total(&tally), 1234567);
	assert_false(tally__is_estimate(&tally));
	assert_true(estimate__error(&tally, 1) == 0);
	assert_true(estimate__error(&tally, NAN) == 0);
}

static void each_descriptor_is_scaled_by_its_own_times(void **state)
{
	struct reading idle = {10, 100 * MS, 100 * MS}, busy = {1000, 100 * MS, 10 * MS};
	struct tally tally = {0};

	(void)state;
	tally__add(&tally, &idle);
	tally__add(&tally, &busy);
	assert_int_equal(tally__total(&tally), 10 + 10000);
	assert_int_equal(tally.counted, 1010);
	assert_int_equal(tally.enabled_ns, 200 * MS);
	assert_int_equal(tally.running_ns, 110 * MS);
	assert_true(tally__is_estimate(&tally));
}

/* Two counters of one group have the same times, so that scaling does not change their ratio. */
static void a_ratio_within_a_group_is_that_of_what_was_counted(void **state)
{
	struct tally cycles = tally_of(3 * 7654321, 97 * MS, 31 * MS);
	struct tally instructions = tally_of(7654321, 97 * MS, 31 * MS);
	double ratio = (double)tally__total(&cycles) / (double)tally__total(&instructions);

	(void)state;
	assert_true(fabs(ratio - 3) < 1e-6);
}

static void a_descriptor_that_never_ran_counts_like_the_others(void **state)
{
	struct reading ran = {500, 10 * MS, 5 * MS}, never = {0, 20 * MS, 0};
	struct tally tally = {0};

	(void)state;
	tally__add(&tally, &never);
	assert_true(tally__never_ran(&tally));
	assert_int_equal(tally__total(&tally), 0);
	tally__add(&tally, &ran);
	assert_false(tally__never_ran(&tally));
	/* 500 in 5 ms, for 30 ms */
	assert_int_equal(tally__total(&tally), 3000);
}

static void few_windows_have_a_wider_interval(void **state)
{
	struct windows windows = {.count = WINDOWS_LEAST - 1};

	(void)state;
	assert_true(isnan(windows__t(&windows)));
	windows.count = WINDOWS_LEAST;
	assert_true(fabs(windows__t(&windows) - 2.776) < 1e-9);
	windows.count = 1000;
	assert_true(fabs(windows__t(&windows) - 2.1) < 1e-9);
}

static void what_was_not_enabled_is_a_true_zero(void **state)
{
	struct tally tally = tally_of(0, 0, 0);

	(void)state;
	assert_false(tally__never_ran(&tally));
	assert_false(tally__is_estimate(&tally));
	assert_int_equal(tally__total(&tally), 0);
}

static void nothing_wraps(void **state)
{
	struct tally all = tally_of(UINT64_MAX, UINT64_MAX, 1), most = all;
	struct reading more = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

	(void)state;
	assert_int_equal(tally__total(&all), UINT64_MAX);
	tally__add(&most, &more);
	tally__add(&most, &more);
	tally__join(&most, &all);
	assert_int_equal(most.counted, UINT64_MAX);
	assert_int_equal(most.scaled, UINT64_MAX);
	assert_int_equal(most.enabled_ns, UINT64_MAX);
	assert_int_equal(most.running_ns, UINT64_MAX);
	tally__subtract(&all, &most);
	assert_int_equal(all.counted, 0);
	assert_int_equal(all.running_ns, 0);
	all = tally_of(100, 100, 50);
	most = tally_of(30, 40, 20);
	tally__subtract(&all, &most);
	assert_int_equal(all.counted, 70);
	assert_int_equal(all.enabled_ns, 60);
	assert_int_equal(all.running_ns, 30);
	assert_int_equal(tally__total(&all), 200 - 60);
	/* A kernel that is wrong: it ran longer than it was enabled. */
	all = tally_of(5, 10, 20);
	assert_int_equal(tally__total(&all), 5);
	assert_false(tally__is_estimate(&all));
}

/* End a window after so many further events in so many further ns. */
static void add_window(struct windows *windows, struct tally *now, uint64_t events, uint64_t ns)
{
	struct reading more = {events, 2 * ns, ns};

	tally__add(now, &more);
	windows__add(windows, now);
}

static void too_few_windows_are_no_error(void **state)
{
	struct windows windows = {.count = 0};
	struct tally now = {0};
	unsigned i;

	(void)state;
	for (i = 0; i < WINDOWS_LEAST; i++) {
		assert_true(isnan(windows__rate_error(&windows)));
		assert_true(isnan(estimate__error(&(struct tally){10, 20, 10, 20, 0},
						  windows__rate_error(&windows))));
		add_window(&windows, &now, 100 + i % 2, 10);
	}
	assert_false(isnan(windows__rate_error(&windows)));
}

static void equal_windows_have_the_error_of_a_mean(void **state)
{
	static const uint64_t events[] = {90, 110, 100, 120, 80, 100, 95, 105};
	const unsigned n = sizeof(events) / sizeof(events[0]);
	struct windows windows = {.count = 0};
	double mean = 0, squares = 0, wanted;
	struct tally now = {0};
	unsigned i;

	(void)state;
	for (i = 0; i < n; i++)
		add_window(&windows, &now, events[i], 10);
	for (i = 0; i < n; i++)
		mean += (double)events[i] / 10 / n;
	for (i = 0; i < n; i++)
		squares += ((double)events[i] / 10 - mean) * ((double)events[i] / 10 - mean);
	wanted = sqrt(squares / (n - 1) / n);
	assert_true(fabs(windows__rate_error(&windows) - wanted) < 1e-9 * wanted);
	/* 160 ns enabled, 80 of them not counted */
	assert_true(fabs(estimate__error(&now, wanted) - 2 * wanted * sqrt(160.0 * 80)) < 1e-9);
}

static void equal_rates_have_no_error_however_long_the_windows(void **state)
{
	struct windows windows = {.count = 0};
	struct tally now = {0};
	uint64_t i;

	(void)state;
	for (i = 1; i < 1000; i++)
		add_window(&windows, &now, 3000000 * i, 1000000 * i);
	/* of 1.5e15 events */
	assert_true(windows__rate_error(&windows) * (double)now.running_ns < 1e9);
	assert_true(windows__rate_error(&windows) >= 0);
}

static void a_window_ends_only_where_the_counter_ran(void **state)
{
	struct windows windows = {.count = 0};
	struct tally now = tally_of(10, 20, 10), back = tally_of(5, 40, 20);

	(void)state;
	windows__add(&windows, &now);
	windows__add(&windows, &now);
	windows__add(&windows, &back); /* damaged: it counted backwards */
	assert_int_equal(windows.count, 1);
	assert_int_equal(windows.last.counted, 10);
}

static void hostile_readings_give_no_number_below_zero(void **state)
{
	struct windows windows = {.count = 0};
	struct tally now = {0};
	unsigned i;
	double error;

	(void)state;
	for (i = 0; i < 20; i++)
		add_window(&windows, &now, i % 3 ? UINT64_MAX / 2 : 0, i % 2 ? 1 : UINT64_MAX / 4);
	error = estimate__error(&(struct tally){1, UINT64_MAX, 1, UINT64_MAX, 0},
				windows__rate_error(&windows));
	assert_true(isnan(error) || error >= 0);
}

static void none_seen_is_no_proof_of_none(void **state)
{
	struct tally tally = tally_of(0, 100 * MS, 25 * MS);

	(void)state;
	assert_int_equal(tally__total(&tally), 0);
	assert_true(estimate__error(&tally, 0) == 9);
	assert_true(isnan(estimate__error(&tally, NAN)));
}

/*
 * A simulation: phases of several rates, of which a counter sees every third window or so. The true
 * total is in the interval of about 95 % of the runs.
 */
static void the_true_total_is_within_the_error(void **state)
{
	unsigned run, inside = 0;

	(void)state;
	srand48(1);
	for (run = 0; run < 1000; run++) {
		struct windows windows = {.count = 0};
		struct tally now = {0};
		uint64_t truth = 0, events, i;
		double error;

		for (i = 0; i < 600; i++) {
			struct reading more = {.enabled_ns = 1000};

			events = (uint64_t)(drand48() * 1000) + (drand48() < 0.2 ? 3000 : 0);
			truth += events;
			if (drand48() < 0.33) {
				more.value = events;
				more.running_ns = 1000;
			}
			now.enabled_ns += more.enabled_ns;
			now.running_ns += more.running_ns;
			now.counted += more.value;
			windows__add(&windows, &now);
		}
		error = estimate__error(&now, windows__rate_error(&windows));
		events = counter__scale(now.counted, now.enabled_ns, now.running_ns);
		inside += fabs((double)events - (double)truth) <= error;
	}
	assert_in_range(inside, 930, 970);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_counted_all_the_time_is_no_estimate),
		cmocka_unit_test(each_descriptor_is_scaled_by_its_own_times),
		cmocka_unit_test(a_ratio_within_a_group_is_that_of_what_was_counted),
		cmocka_unit_test(a_descriptor_that_never_ran_counts_like_the_others),
		cmocka_unit_test(few_windows_have_a_wider_interval),
		cmocka_unit_test(what_was_not_enabled_is_a_true_zero),
		cmocka_unit_test(nothing_wraps),
		cmocka_unit_test(too_few_windows_are_no_error),
		cmocka_unit_test(equal_windows_have_the_error_of_a_mean),
		cmocka_unit_test(equal_rates_have_no_error_however_long_the_windows),
		cmocka_unit_test(a_window_ends_only_where_the_counter_ran),
		cmocka_unit_test(hostile_readings_give_no_number_below_zero),
		cmocka_unit_test(none_seen_is_no_proof_of_none),
		cmocka_unit_test(the_true_total_is_within_the_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
