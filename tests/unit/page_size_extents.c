// SPDX-License-Identifier: MIT
/* page_size_extents.c - where data of directives have been (agents/page-size/apply/extents.c) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "apply/extents.h"

static void extents_that_touch_are_one(void **state)
{
	const struct extents *extents = extents__of(1);

	(void)state;
	extents__add(1, 100, 200);
	extents__add(1, 200, 300);
	extents__add(1, 50, 100);
	extents__add(1, 120, 130);
	assert_int_equal(extents->count, 1);
	assert_int_equal(extents->list[0].start, 50);
	assert_int_equal(extents->list[0].end, 300);
	extents__add(1, 301, 400);
	assert_int_equal(extents->count, 2);
	assert_int_equal(extents__of(2)->count, 0);
}

static void what_is_too_much_the_last_one_reaches_to(void **state)
{
	const struct extents *extents = extents__of(3);
	uintptr_t i;

	(void)state;
	for (i = 1; i <= EXTENTS_MAX + 4; i++)
		extents__add(3, 1000 * i, 1000 * i + 1);
	assert_int_equal(extents->count, EXTENTS_MAX);
	assert_int_equal(extents->list[EXTENTS_MAX - 1].start, 1000 * EXTENTS_MAX);
	assert_int_equal(extents->list[EXTENTS_MAX - 1].end, 1000 * (EXTENTS_MAX + 4) + 1);
	extents__add(3, 10, 11);
	assert_int_equal(extents->list[EXTENTS_MAX - 1].start, 10);
	assert_int_equal(extents->list[0].start, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extents_that_touch_are_one),
		cmocka_unit_test(what_is_too_much_the_last_one_reaches_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
