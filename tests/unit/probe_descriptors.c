/* SPDX-License-Identifier: MIT */
/*
 * probe_descriptors.c - how many descriptors a probe takes: programs and links, by its places and
 * how those are attached
 */
#ifdef PEM_TEST_LIBBPF
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "libpem/sources/kernel/kernel.h"

#define LOCATIONS 6

/* A probe at so many places, whose arguments are at one of several sets of places each. */
static struct pem_probe *probe_at(enum pem_probe_kind kind, size_t locations, size_t sets)
{
	struct pem_probe *probe = pem_probe__new(kind, "x", "APP", "X", "x");
	size_t i;

	assert_non_null(probe);
	probe->sites = calloc(locations + 1, sizeof(*probe->sites));
	assert_non_null(probe->sites);
	probe->site_count = locations;
	for (i = 0; i < locations; i++) {
		probe->sites[i].offset = 16 * i;
		probe->sites[i].arguments[0].kind = PEM_LOCATION_CONTEXT;
		probe->sites[i].arguments[0].offset = (uint16_t)(8 * (i % sets));
	}
	return probe;
}

static size_t taken(enum pem_probe_kind kind, size_t locations, size_t sets, bool by_multi)
{
	struct pem_probe *probe = probe_at(kind, locations, sets);
	size_t count = pem_probe__descriptors(probe, by_multi);

	pem_probe__free(probe);
	return count;
}

static void a_location_takes_a_link(void **state)
{
	(void)state;
	assert_int_equal(taken(PEM_PROBE_TRACEPOINT, 0, 1, false), 2);
	assert_int_equal(taken(PEM_PROBE_UPROBE, 1, 1, false), 2);
	assert_int_equal(taken(PEM_PROBE_UPROBE, LOCATIONS, 1, false), 1 + LOCATIONS);
	assert_int_equal(taken(PEM_PROBE_USDT, LOCATIONS, 1, false), 1 + LOCATIONS);
	assert_int_equal(taken(PEM_PROBE_USDT, LOCATIONS, 3, false), 3 + LOCATIONS);
}

static void one_link_serves_a_programs_locations(void **state)
{
	(void)state;
	assert_int_equal(taken(PEM_PROBE_UPROBE, LOCATIONS, 1, true), 2);
	assert_int_equal(taken(PEM_PROBE_USDT, LOCATIONS, 1, true), 2);
	assert_int_equal(taken(PEM_PROBE_USDT, LOCATIONS, 3, true), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_location_takes_a_link),
		cmocka_unit_test(one_link_serves_a_programs_locations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
