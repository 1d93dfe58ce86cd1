/* SPDX-License-Identifier: MIT */
/*
 * cost_curve.c - what an event costs a program by how long the program works between two events,
 * and what the ledger makes of more kinds of costs than it holds
 */
#include "cost/cost.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* A step of two events: plain, logged and counted, in a loop, with a walk of 800 ns, and cold. */
static const struct pem_step plain = {200, 1000, 300};
static const struct pem_step logged = {400, 1300, 900};
static const struct pem_step counted = {300, 1150, 600};

static void who_works_as_was_measured_pays_as_was_measured(void **state)
{
	struct pem_cost cost = pem_cost__of(plain, logged, counted, 2);

	(void)state;
	assert_float_equal(pem_cost__at(&cost, false, 100), 100, 1e-6);
	assert_float_equal(pem_cost__at(&cost, false, 500), 150, 1e-6);
	assert_float_equal(pem_cost__at(&cost, false, 1e12), 300, 1e-3);
	assert_float_equal(pem_cost__at(&cost, true, 100), 50, 1e-6);
	assert_float_equal(pem_cost__at(&cost, true, 1e12), 150, 1e-3);
}

static void who_works_less_than_a_loop_pays_as_a_loop(void **state)
{
	struct pem_cost cost = pem_cost__of(plain, logged, counted, 2);

	(void)state;
	assert_float_equal(pem_cost__at(&cost, false, 0), 100, 1e-6);
	assert_float_equal(pem_cost__at(&cost, false, 99), 100, 1e-6);
}

static void a_gap_that_is_not_known_is_half_way(void **state)
{
	struct pem_cost cost = pem_cost__of(plain, logged, counted, 2);

	(void)state;
	assert_float_equal(pem_cost__at(&cost, false, -1), 200, 1e-6);
}

/* A walk between that costs more than cold caches do, and costs that fall where caches are cold. */
static void colder_caches_cost_no_less(void **state)
{
	const struct pem_step odd = {400, 2000, 350};
	struct pem_cost cost = pem_cost__of(plain, odd, odd, 2);
	double before = 0, now;
	unsigned gap;

	(void)state;
	assert_float_equal(cost.cold_log_ns, 500, 1e-6);
	for (gap = 0; gap < 5000; gap += 50) {
		now = pem_cost__at(&cost, false, gap);
		assert_true(now >= before && now >= cost.log_ns && now <= cost.cold_log_ns);
		before = now;
	}
	/* All is measured to cost less than nothing. */
	cost = pem_cost__of(logged, plain, plain, 2);
	assert_float_equal(pem_cost__at(&cost, false, 500), 0, 1e-6);
}

static void kinds_beyond_the_ledger_are_summed_up_as_others(void **state)
{
	struct pem_trace_info info = {.cost_count = 0};
	char name[24];
	unsigned i;

	(void)state;
	for (i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "kind-%u", i);
		pem_cost__add(&info, name, 10, 5, 20, i == 3 ? 0 : 100);
	}
	pem_cost__add(&info, "instead", 7, 7, 7, 1);
	assert_string_equal(info.costs[3].kind, "instead");
	pem_cost__add(&info, "none", 1000, 1000, 1000, 0);
	pem_cost__add(&info, "more", 30, 15, 30, 300);
	assert_int_equal(info.cost_count, 16);
	assert_string_equal(info.costs[14].kind, "kind-14");
	assert_string_equal(info.costs[15].kind, "others");
	assert_int_equal(info.costs[15].count, 400);
	assert_float_equal(info.costs[15].ns_each, 25, 1e-6);
	assert_float_equal(info.cost_ranges[15].least_ns, 12.5, 1e-6);
	assert_float_equal(info.cost_ranges[15].most_ns, 27.5, 1e-6);
}

static void others_of_which_one_was_not_measured_are_not_measured(void **state)
{
	struct pem_trace_info info = {.cost_count = 0};
	unsigned i;

	(void)state;
	for (i = 0; i < 17; i++)
		pem_cost__add(&info, "kind", i == 16 ? 0 : 10, 0, 0, 1);
	pem_cost__add(&info, "kind", 10, 0, 0, 1);
	assert_float_equal(info.costs[15].ns_each, 0, 1e-6);
	assert_int_equal(info.costs[15].count, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_works_as_was_measured_pays_as_was_measured),
		cmocka_unit_test(who_works_less_than_a_loop_pays_as_a_loop),
		cmocka_unit_test(a_gap_that_is_not_known_is_half_way),
		cmocka_unit_test(colder_caches_cost_no_less),
		cmocka_unit_test(kinds_beyond_the_ledger_are_summed_up_as_others),
		cmocka_unit_test(others_of_which_one_was_not_measured_are_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
