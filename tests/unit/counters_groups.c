// SPDX-License-Identifier: MIT
/*
 * counters_groups.c - which hardware counters are counted together, with a processor made up here
 */
#include "sources/counters/counters.h"
#include "sources/counters/groups.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define NONE UINT32_MAX

/* --- the processor: a counter's config says which kind of PMU counts it --- */

static struct {
	unsigned counters; /* the kernel refuses larger groups */
	unsigned usable; /* and larger ones than this get no time */
	unsigned open, opened;
	int leader;
	uint64_t kind;
} cpu;

int counter__open(struct perf_event_attr *attr, pid_t pid, int at, int group)
{
	struct reading reading = {.enabled_ns = 100};
	int ends[2];

	assert_int_equal(pid, 0);
	assert_int_equal(at, -1);
	if (group < 0) {
		cpu.open = 0;
		cpu.kind = attr->config;
	} else {
		assert_int_equal(group, cpu.leader);
	}
	if (++cpu.open > cpu.counters || attr->config != cpu.kind)
		return -EINVAL;
	cpu.opened++;
	reading.running_ns = cpu.open <= cpu.usable ? 100 : 0;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], &reading, sizeof(reading)), sizeof(reading));
	close(ends[1]);
	if (group < 0)
		cpu.leader = ends[0];
	return ends[0];
}

static void have(unsigned counters, unsigned usable)
{
	cpu.counters = counters;
	cpu.usable = usable;
	cpu.opened = 0;
}

static uint32_t plan(struct group_item *items, size_t count)
{
	return groups__plan(items, count, groups__fit, NULL);
}

/* --- */

static void as_many_as_the_processor_has_are_together(void **state)
{
	struct group_item items[7] = {{0}};
	size_t i;

	(void)state;
	have(3, 3);
	groups__part(items, 7);
	assert_int_equal(plan(items, 7), 3);
	for (i = 0; i < 7; i++)
		assert_int_equal(items[i].group, i / 3);
}

static void counters_of_a_metric_are_together(void **state)
{
	struct group_item items[6] = {{0}};

	(void)state;
	have(3, 3);
	groups__part(items, 6);
	groups__join(items, 6, 2, 5);
	groups__join(items, 6, 0, 4);
	assert_int_equal(plan(items, 6), 2);
	assert_int_equal(items[0].group, items[4].group);
	assert_int_equal(items[2].group, items[5].group);
	/* In order: 0 with 4, and 1 beside them; 2 with 5, and 3 beside them. */
	assert_int_equal(items[1].group, 0);
	assert_int_equal(items[3].group, 1);
}

static void metrics_that_share_a_counter_are_together(void **state)
{
	struct group_item items[5] = {{0}};

	(void)state;
	have(3, 3);
	groups__part(items, 5);
	groups__join(items, 5, 4, 1);
	groups__join(items, 5, 3, 4);
	assert_int_equal(plan(items, 5), 2);
	assert_int_equal(items[1].group, items[4].group);
	assert_int_equal(items[1].group, items[3].group);
	assert_int_not_equal(items[0].group, items[1].group);
	/* What is left of the first group is used. */
	assert_int_equal(items[2].group, items[0].group);
}

static void a_metric_of_too_many_counters_is_parted(void **state)
{
	struct group_item items[5] = {{0}};
	size_t i;

	(void)state;
	have(2, 2);
	groups__part(items, 5);
	for (i = 1; i < 5; i++)
		groups__join(items, 5, 0, i);
	assert_int_equal(plan(items, 5), 3);
	for (i = 0; i < 5; i++)
		assert_int_equal(items[i].group, i / 2);
}

/* What was asked for together is counted together where it fits, though another group has room. */
static void neighbours_stay_together(void **state)
{
	struct group_item items[7] = {{0}};

	(void)state;
	have(4, 4);
	groups__part(items, 7);
	groups__join(items, 7, 0, 1);
	groups__join(items, 7, 0, 2);
	groups__join(items, 7, 3, 4);
	assert_int_equal(plan(items, 7), 2);
	assert_int_equal(items[2].group, 0);
	assert_int_equal(items[5].group, items[3].group);
	assert_int_equal(items[6].group, items[3].group);
}

static void contexts_are_never_mixed(void **state)
{
	struct group_item items[6] = {{0}};
	size_t i;

	(void)state;
	have(8, 8);
	groups__part(items, 6);
	for (i = 0; i < 6; i++)
		items[i].context = (uint32_t)i % 2;
	groups__join(items, 6, 0, 1); /* of one metric, in two contexts */
	assert_int_equal(plan(items, 6), 2);
	for (i = 0; i < 6; i++)
		assert_int_equal(items[i].group, i % 2);
}

static void what_the_kernel_keeps_makes_groups_smaller(void **state)
{
	struct group_item items[4] = {{0}};

	(void)state;
	have(4, 3); /* the NMI watchdog has one */
	groups__part(items, 4);
	assert_int_equal(plan(items, 4), 2);
	assert_int_equal(items[2].group, 0);
	assert_int_equal(items[3].group, 1);
}

static void counters_that_others_have_just_now_prove_nothing(void **state)
{
	struct group_item items[4] = {{0}};

	(void)state;
	have(4, 0);
	groups__part(items, 4);
	assert_int_equal(plan(items, 4), 1);
}

static void counters_of_another_pmu_are_apart(void **state)
{
	struct group_item items[3] = {{0}};

	(void)state;
	have(4, 4);
	groups__part(items, 3);
	items[1].attr.config = 1;
	assert_int_equal(plan(items, 3), 2);
	assert_int_equal(items[2].group, items[0].group);
	assert_int_not_equal(items[1].group, items[0].group);
}

static void a_machine_without_counters_has_a_group_for_each(void **state)
{
	struct group_item items[3] = {{0}};

	(void)state;
	have(0, 0);
	groups__part(items, 3);
	groups__join(items, 3, 0, 2);
	assert_int_equal(plan(items, 3), 3);
}

static int all_fit(const struct group_item *items, const size_t *members, size_t count, void *arg)
{
	(void)items;
	(void)members;
	(void)arg;
	assert_in_range(count, 2, GROUP_MEMBERS_MAX);
	return 1;
}

static void no_group_is_larger_than_its_arrays(void **state)
{
	static struct group_item items[3 * GROUP_MEMBERS_MAX + 1];
	const size_t count = sizeof(items) / sizeof(items[0]);
	uint32_t members[4] = {0};
	size_t i;

	(void)state;
	groups__part(items, count);
	assert_int_equal(groups__plan(items, count, all_fit, NULL), 4);
	for (i = 1; i < count; i++)
		groups__join(items, count, 0, i);
	assert_int_equal(groups__plan(items, count, all_fit, NULL), 4);
	for (i = 0; i < count; i++)
		members[items[i].group]++;
	for (i = 0; i < 4; i++)
		assert_in_range(members[i], 1, GROUP_MEMBERS_MAX);
	assert_int_equal(groups__plan(items, 0, all_fit, NULL), 0);
}

static void trying_leaves_no_descriptor(void **state)
{
	struct group_item items[12] = {{0}};
	int before = dup(0), after;

	(void)state;
	close(before);
	have(5, 4);
	groups__part(items, 12);
	plan(items, 12);
	assert_true(cpu.opened > 12);
	after = dup(0);
	close(after);
	assert_int_equal(after, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_as_the_processor_has_are_together),
		cmocka_unit_test(counters_of_a_metric_are_together),
		cmocka_unit_test(metrics_that_share_a_counter_are_together),
		cmocka_unit_test(a_metric_of_too_many_counters_is_parted),
		cmocka_unit_test(neighbours_stay_together),
		cmocka_unit_test(contexts_are_never_mixed),
		cmocka_unit_test(what_the_kernel_keeps_makes_groups_smaller),
		cmocka_unit_test(counters_that_others_have_just_now_prove_nothing),
		cmocka_unit_test(counters_of_another_pmu_are_apart),
		cmocka_unit_test(a_machine_without_counters_has_a_group_for_each),
		cmocka_unit_test(no_group_is_larger_than_its_arrays),
		cmocka_unit_test(trying_leaves_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
