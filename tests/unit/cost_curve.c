/* SPDX-License-Identifier: MIT */
/*
 * cost_curve.c - what an event costs a program by how long the program works between two events
 */
#include "cost/cost.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_works_as_was_measured_pays_as_was_measured),
		cmocka_unit_test(who_works_less_than_a_loop_pays_as_a_loop),
		cmocka_unit_test(a_gap_that_is_not_known_is_half_way),
		cmocka_unit_test(colder_caches_cost_no_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
