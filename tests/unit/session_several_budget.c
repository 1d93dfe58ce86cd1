// SPDX-License-Identifier: MIT
/*
 * session_several_budget.c - the overhead budget judges an event by all statistics of it
 *
 * Not here: what the judge does with a price (budget_judge.c).
 */
#include "cost/cost.h"
#include "several_fixture.h"

static const struct pem_demand *demand_of_ticks(void)
{
	return pem_session__demand(session, pem_model__by_name(session->model, TICK));
}

/* Raise ticks, and judge by a budget that any cost is above. Costs are given, not measured. */
static void judge_ticks(void)
{
	struct timespec cpu;

	session->cost->costs.each[PEM_COST_USER] = (struct pem_cost){.log_ns = 10, .stat_ns = 2};
	assert_int_equal(pem_session__set_budget(session, 1e-9), 0);
	do {
		raise_ticks(TICKS);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	} while (!cpu.tv_sec && cpu.tv_nsec < 50000000);
	pem_session__lock(session);
	pem_session__scan_producers(session);
	pem_session__judge(session, pem_monotonic_ns());
	pem_session__unlock(session);
}

static void a_further_statistic_counts(void **state)
{
	struct pem_statistics *none = statistics(&here, NULL, "number == 99"),
			      *all = statistics(&here, "number", NULL);

	(void)state;
	judge_ticks();
	assert_int_equal(value_of(none).count, 0);
	assert_true(value_of(all).count > 0);
	assert_int_equal(demand_of_ticks()->detail, PEM_DETAIL_OFF);
}

static void one_that_is_left_counts(void **state)
{
	struct pem_statistics *gone = statistics(&here, NULL, NULL);

	(void)state;
	statistics(&here, "number", "number < 9");
	pem_statistics__unregister(gone);
	judge_ticks();
	assert_int_equal(demand_of_ticks()->detail, PEM_DETAIL_OFF);
}

static void what_counts_nothing_costs_nothing(void **state)
{
	(void)state;
	statistics(&here, NULL, "number == 99");
	statistics(&here, "number", "number == 98");
	judge_ticks();
	assert_int_equal(demand_of_ticks()->detail, PEM_DETAIL_LOG);
}

/* The report says what all statistics cost, and that of the log's events none is missing. */
static void the_trace_counts_each_statistic(void **state)
{
	struct pem_trace_info info = {0};
	struct pem_statistics *all;
	struct pem_log *log;
	uint64_t count = 0;
	uint32_t i;

	(void)state;
	log = log_where(&here, "number == 99");
	all = statistics(&here, NULL, NULL);
	statistics(&here, "number", NULL);
	statistics(&here, "who", NULL);
	judge_ticks();
	pem_session__lock(session);
	pem_session__account_detail(session, &info);
	pem_session__unlock(session);
	for (i = 0; i < info.cost_count; i++)
		count += info.costs[i].count;
	assert_int_equal(count, 3 * value_of(all).count);
	assert_int_equal(info.reduced_count, 1);
	assert_int_equal(info.reduced[0].counted, 0);
	assert_int_equal(pem_log__finish(log, NULL), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_further_statistic_counts),
		TEST(one_that_is_left_counts),
		TEST(what_counts_nothing_costs_nothing),
		TEST(the_trace_counts_each_statistic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
