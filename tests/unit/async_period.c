// SPDX-License-Identifier: MIT
/*
 * async_period.c - how often the thread of asynchronous callbacks wakes up, by the delay allowed
 */
#include "callbacks/callbacks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void every_three_quarters_of_the_delay(void **state)
{
	(void)state;
	assert_int_equal(pem_async__period_ns(PEM_ASYNC_DELAY_US_DEFAULT), 750000);
	assert_int_equal(pem_async__period_ns(200), 150000);
}

static void at_least_every_10_ms(void **state)
{
	(void)state;
	assert_int_equal(pem_async__period_ns(13333), 9999750);
	assert_int_equal(pem_async__period_ns(13334), 10000000);
	assert_int_equal(pem_async__period_ns(UINT64_MAX), 10000000);
}

static void never_more_often_than_every_10_us(void **state)
{
	(void)state;
	assert_int_equal(pem_async__period_ns(13), 10000);
	assert_int_equal(pem_async__period_ns(1), 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_three_quarters_of_the_delay),
		cmocka_unit_test(at_least_every_10_ms),
		cmocka_unit_test(never_more_often_than_every_10_us),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
