/* SPDX-License-Identifier: MIT */
/*
 * cost_cache.c - what sessions measured of costs is remembered together, and nonsense among it spoils nothing
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "consumer/costs.h"

static int new_folder(void **state)
{
	static char folder[64];

	(void)state;
	strcpy(folder, "/tmp/pem-cost-cache-XXXXXX");
	return !mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1);
}

static void what_another_stored_is_kept(void **state)
{
	struct pem_costs one = {.kernel_source = "BPF"}, other = {.kernel_source = "-"}, found;

	(void)state;
	one.each[PEM_COST_USER].log_ns = 10;
	one.each[PEM_COST_KERNEL].log_ns = 200;
	one.each[PEM_COST_UPROBE].log_ns = 900;
	other.each[PEM_COST_USER].log_ns = 12;
	other.each[PEM_COST_SAMPLE].log_ns = 5000;
	other.start_ns[1] = 7e6;
	pem_costs__store(&one);
	pem_costs__store(&other);
	assert_true(pem_costs__load(&found));
	assert_int_equal(found.each[PEM_COST_USER].log_ns, 12);
	assert_int_equal(found.each[PEM_COST_KERNEL].log_ns, 200);
	assert_string_equal(found.kernel_source, "BPF");
	assert_int_equal(found.each[PEM_COST_UPROBE].log_ns, 900);
	assert_int_equal(found.each[PEM_COST_SAMPLE].log_ns, 5000);
	assert_int_equal(found.start_ns[1], 7000000);
}

static void a_cost_beyond_reason_is_not_stored(void **state)
{
	struct pem_costs costs = {.kernel_source = "BPF"}, found;

	(void)state;
	costs.each[PEM_COST_USER].log_ns = 10;
	costs.each[PEM_COST_UPROBE].log_ns = 2e6;
	pem_costs__store(&costs);
	assert_true(pem_costs__load(&found));
	assert_int_equal(found.each[PEM_COST_USER].log_ns, 10);
	assert_int_equal(found.each[PEM_COST_UPROBE].log_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_another_stored_is_kept, new_folder),
		cmocka_unit_test_setup(a_cost_beyond_reason_is_not_stored, new_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
