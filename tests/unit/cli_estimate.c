// SPDX-License-Identifier: MIT
/* cli_estimate.c - how a counter that took turns was counted in an interval (cli/estimate.c) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cli/cli.h"

#include <math.h>
#include <string.h>

static const struct pem_statistic start = {
	.counted = 1000, .enabled_ns = 4000, .running_ns = 1000, .sum = 4000, .error = 100};

static void an_interval_is_scaled_by_its_own_times(void **state)
{
	/* Scaled totals went from 4000 to 3900. */
	const struct pem_statistic end = {
		.counted = 1300, .enabled_ns = 6000, .running_ns = 2000, .sum = 3900, .error = 80};
	struct cli_estimate e;
	uint64_t count = 0;

	(void)state;
	e = cli_estimate__between(&start, &end, &count);
	assert_int_equal(count, 600); /* 300 in 1000 ns of 2000 */
	assert_true(cli_estimate__is(&e));
	assert_true(cli_estimate__share(&e) == 0.5);
	/* Of 6000 * 4000 not counted these are 2000 * 1000, with half of the windows. */
	assert_true(fabs(e.error - 80 * sqrt(2000.0 * 1000 / (6000.0 * 4000) * 2)) < 1e-9);
}

static void an_interval_counted_all_the_time_is_exact(void **state)
{
	const struct pem_statistic end = {
		.counted = 1500, .enabled_ns = 5000, .running_ns = 2000, .sum = 3750, .error = 80};
	struct cli_estimate e;
	uint64_t count = 0;

	(void)state;
	e = cli_estimate__between(&start, &end, &count);
	assert_int_equal(count, 500);
	assert_false(cli_estimate__is(&e));
	assert_true(e.error == 0);
}

static void an_interval_without_a_turn_has_no_number(void **state)
{
	const struct pem_statistic end = {
		.counted = 1000, .enabled_ns = 5000, .running_ns = 1000, .sum = 5000, .error = 80};
	struct cli_estimate e;
	uint64_t count = 1;

	(void)state;
	e = cli_estimate__between(&start, &end, &count);
	assert_int_equal(e.running_ns, 0);
	assert_int_not_equal(e.enabled_ns, 0);
	assert_int_equal(count, 0);
	assert_true(isnan(e.error));
}

/* Less than 3 in a time as long as it ran, with 95 %. */
static void an_interval_in_which_nothing_was_ever_seen(void **state)
{
	struct pem_statistic before = {.enabled_ns = 1000, .running_ns = 500};
	struct pem_statistic now = {.enabled_ns = 1200, .running_ns = 550, .error = 3};
	struct cli_estimate e;
	uint64_t count;

	(void)state;
	e = cli_estimate__between(&before, &now, &count);
	assert_int_equal(count, 0);
	assert_true(fabs(e.error - 3 * 150.0 / 50) < 1e-9);
}

static void more_than_fits_is_the_greatest(void **state)
{
	const struct pem_statistic end = {
		.counted = UINT64_MAX, .enabled_ns = UINT64_MAX, .running_ns = 1001, .error = NAN};
	struct cli_estimate e;
	uint64_t count = 0;

	(void)state;
	e = cli_estimate__between(&start, &end, &count);
	assert_int_equal(count, UINT64_MAX);
	assert_true(isnan(e.error));
}

static void counters_of_two_groups_are_apart_only_as_estimates(void **state)
{
	const struct cli_estimate all = {10, 10, 0, 1}, part = {10, 5, 1, 1};
	struct cli_estimate other = {10, 10, 0, 2}, kernel = {10, 10, 0, 0};

	(void)state;
	assert_false(cli_estimate__are_apart(&all, &other));
	assert_true(cli_estimate__are_apart(&part, &other));
	assert_true(cli_estimate__are_apart(&other, &part));
	assert_false(cli_estimate__are_apart(&part, &all)); /* of one group */
	assert_false(cli_estimate__are_apart(&part, &kernel)); /* that is counted all the time */
}

static void errors_are_shares_of_the_value(void **state)
{
	const struct cli_estimate known = {10, 5, 12, 0}, unknown = {10, 5, NAN, 0};

	(void)state;
	assert_string_equal(cli_estimate__error(&known, 1000), "+-1.2 %");
	assert_string_equal(cli_estimate__error(&known, 0), "+-12.00");
	assert_string_equal(cli_estimate__error(&unknown, 1000), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_is_scaled_by_its_own_times),
		cmocka_unit_test(an_interval_counted_all_the_time_is_exact),
		cmocka_unit_test(an_interval_without_a_turn_has_no_number),
		cmocka_unit_test(an_interval_in_which_nothing_was_ever_seen),
		cmocka_unit_test(more_than_fits_is_the_greatest),
		cmocka_unit_test(counters_of_two_groups_are_apart_only_as_estimates),
		cmocka_unit_test(errors_are_shares_of_the_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
