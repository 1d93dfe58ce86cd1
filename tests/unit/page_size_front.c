// SPDX-License-Identifier: MIT
/* page_size_front.c - choices that need more and cost more (agents/page-size/model/choice.c) */
#include "page_size_fixture.h"

#include <math.h>

/* Four sites that help each other, or are in each other's way. */
static double crossed_cost(void *data, const struct page_mapping *mapping)
{
	static const double gains[4][4] = {
		{60}, {330, 230}, {-360, -640, 460}, {710, 50, 120, 440}};
	double cost = 100000;
	uint32_t i, j;

	(void)data;
	for (i = 0; i < 4; i++) {
		for (j = 0; j <= i; j++)
			cost -= mapping->size[i] && mapping->size[j] ? gains[i][j] : 0;
	}
	return cost;
}

static double crossed_estimate(void *data, const struct page_mapping *mapping)
{
	return crossed_cost(data, mapping) + (mapping->size[0] ? 400 : 0) +
	       (mapping->size[1] ? 100 : 0) - (mapping->size[2] ? 300 : 0) -
	       (mapping->size[3] ? 200 : 0);
}

static void what_costs_more_for_more_is_behind_the_front(void **state)
{
	struct page_geometry geometry = two_levels(2);
	struct page_costs costs = {.quick = crossed_estimate, .exact = crossed_cost};
	struct page_sites sites = {.count = 4, .pages = {{0, 4}, {0, 3}, {0, 5}, {0, 1}}};
	struct page_budget budget = {UINT64_MAX, 0};
	struct page_ranked list[16];
	double least = INFINITY;
	unsigned behind = 0;
	int i, n;

	(void)state;
	n = page_rank(&geometry, &sites, &budget, &costs, list, 16);
	assert_true(n > 2);
	for (i = 0; i < n; i++) {
		assert_int_equal(list[i].front, list[i].cost < least);
		least = list[i].front ? list[i].cost : least;
		behind += !list[i].front;
	}
	/* The search was misled once: it found less with the most pages. */
	assert_int_equal(behind, 1);
	assert_false(list[n - 1].front);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_costs_more_for_more_is_behind_the_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
