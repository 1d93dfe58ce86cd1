// SPDX-License-Identifier: MIT
/*
 * budget_judge.c - the overhead budget's judge on counts made up here: what steps down and up,
 * when, and when not
 */

#include "core/demand.h"
#include "cost/budget.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define CPU_NS 100e6 /* of an interval */
#define STEPS 32

static struct pem_budget_step steps[STEPS];

static struct pem_budget_event logged(uint64_t count)
{
	return (struct pem_budget_event){.wanted = PEM_DETAIL_LOG,
					 .detail = PEM_DETAIL_LOG,
					 .ns = {0, 2, 10},
					 .count = count};
}

static size_t judge(struct pem_budget_event *events, size_t count, double budget)
{
	return pem_budget__judge(events, count, budget, CPU_NS, steps, STEPS);
}

static double share(const struct pem_budget_event *events, size_t count)
{
	double ns = 0;
	size_t i;

	for (i = 0; i < count; i++)
		ns += (double)events[i].count * events[i].ns[events[i].detail];
	return ns / CPU_NS;
}

/* The cost of an event at each detail, of what was counted of it. */
static void price(struct pem_budget_event *e, uint8_t wanted, uint8_t detail,
		  struct pem_budget_counts counts, double stat_cost, double log_cost)
{
	e->wanted = wanted;
	e->detail = detail;
	pem_budget__price(e, &counts, 10, 2);
	assert_true((double)e->count * e->ns[PEM_DETAIL_OFF] == 0);
	assert_true((double)e->count * e->ns[PEM_DETAIL_STATISTICS] > stat_cost - 0.01);
	assert_true((double)e->count * e->ns[PEM_DETAIL_STATISTICS] < stat_cost + 0.01);
	assert_true((double)e->count * e->ns[PEM_DETAIL_LOG] > log_cost - 0.01);
	assert_true((double)e->count * e->ns[PEM_DETAIL_LOG] < log_cost + 0.01);
}

static void each_statistic_of_an_event_has_its_price(void **state)
{
	const uint8_t off = PEM_DETAIL_OFF, stat = PEM_DETAIL_STATISTICS, log = PEM_DETAIL_LOG;
	struct pem_budget_event e = {0};

	(void)state;
	/* A log alone, as it is and reduced. */
	price(&e, log, log, (struct pem_budget_counts){.logged = 70}, 140, 700);
	assert_int_equal(e.count, 70);
	price(&e, log, stat, (struct pem_budget_counts){.reduced = 70, .added = 70}, 140, 700);
	/* With a statistic that shares its demand. */
	price(&e, log, log,
	      (struct pem_budget_counts){.logged = 70, .reduced = 70, .added = 70, .is_kept = true},
	      140, 840);
	price(&e, log, stat,
	      (struct pem_budget_counts){.reduced = 70, .added = 70, .is_kept = true}, 140, 840);
	/* Three statistics, without a log. */
	price(&e, stat, stat, (struct pem_budget_counts){.reduced = 70, .added = 210}, 420, 420);
	/* A log where few pass, beside statistics of more. */
	price(&e, log, log, (struct pem_budget_counts){.logged = 7, .added = 140}, 294, 350);
	price(&e, log, stat, (struct pem_budget_counts){.reduced = 7, .added = 147}, 294, 350);
	/* Statistics that the first demand has none of. */
	price(&e, stat, stat, (struct pem_budget_counts){.added = 50}, 100, 100);
	price(&e, log, off, (struct pem_budget_counts){0}, 0, 0);
}

static void within_the_budget_nothing_changes(void **state)
{
	struct pem_budget_event e[] = {logged(50000), logged(40000)};

	(void)state;
	assert_int_equal(judge(e, 2, 0.01), 0);
	assert_int_equal(e[0].detail, PEM_DETAIL_LOG);
	assert_int_equal(e[1].detail, PEM_DETAIL_LOG);
}

static void the_costliest_steps_down_first(void **state)
{
	struct pem_budget_event e[] = {logged(10000), logged(200000), logged(1000)};

	(void)state;
	assert_int_equal(judge(e, 3, 0.01), 1);
	assert_int_equal(steps[0].event, 1);
	assert_int_equal(steps[0].from, PEM_DETAIL_LOG);
	assert_int_equal(steps[0].to, PEM_DETAIL_STATISTICS);
	assert_true(steps[0].share > 0.021 && steps[0].share < 0.0212);
	assert_int_equal(e[0].detail, PEM_DETAIL_LOG);
	assert_int_equal(e[2].detail, PEM_DETAIL_LOG);
	assert_true(share(e, 3) <= 0.01);
}

static void as_far_down_as_it_takes(void **state)
{
	struct pem_budget_event e[] = {logged(1000000), logged(20000000)};

	(void)state;
	assert_int_equal(judge(e, 2, 0.0001), 4);
	assert_int_equal(e[0].detail, PEM_DETAIL_OFF);
	assert_int_equal(e[1].detail, PEM_DETAIL_OFF);
	assert_int_equal(judge(e, 2, 0.0001), 0); /* there is nothing left */
}

static void without_cpu_time_there_is_no_judgement(void **state)
{
	struct pem_budget_event e = logged(1000000);

	(void)state;
	assert_int_equal(pem_budget__judge(&e, 1, 0.01, 0, steps, STEPS), 0);
	assert_int_equal(e.detail, PEM_DETAIL_LOG);
}

/* Judge n intervals with these counts by detail; returns the steps. */
static unsigned run(struct pem_budget_event *e, unsigned n, const uint64_t rate[3], double budget)
{
	unsigned count = 0, i;

	for (i = 0; i < n; i++) {
		e->count = rate[e->detail];
		count += (unsigned)judge(e, 1, budget);
	}
	return count;
}

static void back_up_when_the_rate_falls(void **state)
{
	const uint64_t busy[] = {0, 200000, 200000}, calm[] = {0, 1000, 1000};
	struct pem_budget_event e = logged(0);

	(void)state;
	run(&e, 1, busy, 0.01);
	assert_int_equal(e.detail, PEM_DETAIL_STATISTICS);
	run(&e, PEM_BUDGET_WAIT_MIN - 1, calm, 0.01);
	assert_int_equal(e.detail, PEM_DETAIL_STATISTICS); /* not yet */
	run(&e, 1, calm, 0.01);
	assert_int_equal(e.detail, PEM_DETAIL_LOG);
}

/* What is off costs nothing that is known, so only the rest decides. */
static void nothing_steps_up_above_half_of_the_budget(void **state)
{
	struct pem_budget_event e[] = {logged(55000), logged(0)};

	(void)state;
	e[1].detail = PEM_DETAIL_OFF;
	assert_int_equal(judge(e, 2, 0.01), 0);
	assert_int_equal(e[1].detail, PEM_DETAIL_OFF);
	e[0].count = 45000;
	assert_int_equal(judge(e, 2, 0.01), 1);
	assert_int_equal(e[1].detail, PEM_DETAIL_STATISTICS);
}

/* A step up may bring the cost to 80 % of the budget. */
static void a_step_up_leaves_a_fifth_of_the_budget(void **state)
{
	struct pem_budget_event e = logged(79000);

	(void)state;
	e.detail = PEM_DETAIL_STATISTICS;
	assert_int_equal(judge(&e, 1, 0.01), 1);
	assert_int_equal(e.detail, PEM_DETAIL_LOG);
	e.detail = PEM_DETAIL_STATISTICS;
	e.count = 81000;
	assert_int_equal(judge(&e, 1, 0.01), 0);
	assert_int_equal(e.detail, PEM_DETAIL_STATISTICS);
}

/* At a rate that is known it is not tried what can't fit. */
static void steady_load_does_not_flap(void **state)
{
	const uint64_t rate[] = {0, 200000, 200000};
	struct pem_budget_event e = logged(0);

	(void)state;
	assert_int_equal(run(&e, 10000, rate, 0.01), 1);
	assert_int_equal(e.detail, PEM_DETAIL_STATISTICS);
}

/* Just at the budget neither: a step up has to leave room. */
static void a_load_at_the_edge_does_not_flap(void **state)
{
	uint64_t rate[] = {0, 95000, 95000};
	struct pem_budget_event e = logged(0);
	unsigned count = 0, i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		rate[1] = rate[2] = 95000 + i % 10 * 1000; /* 0.95 to 1.04 % when logged */
		count += run(&e, 1, rate, 0.01);
	}
	assert_int_equal(count, 1);
}

/* What is off has no rate: it is tried, each time after twice the wait. */
static void tries_become_rarer(void **state)
{
	const uint64_t rate[] = {0, 20000000, 20000000};
	struct pem_budget_event e = logged(0);
	unsigned early, late;

	(void)state;
	run(&e, 1, rate, 0.01);
	assert_int_equal(e.detail, PEM_DETAIL_OFF);
	early = run(&e, 200, rate, 0.01);
	assert_true(early >= 6);
	run(&e, 2000, rate, 0.01);
	late = run(&e, 2000, rate, 0.01);
	assert_true(late >= 2 && late <= 2 * (2000 / PEM_BUDGET_WAIT_MAX + 1));
}

/* Long after, the first failure counts as one. */
static void what_is_proven_is_tried_soon_again(void **state)
{
	const uint64_t busy[] = {0, 200000, 200000}, calm[] = {0, 1000, 1000};
	struct pem_budget_event e = logged(0);

	(void)state;
	run(&e, 1, busy, 0.01);
	run(&e, PEM_BUDGET_WAIT_MIN, calm, 0.01);
	assert_int_equal(e.detail, PEM_DETAIL_LOG);
	run(&e, 1, busy, 0.01); /* at once: it was no good idea */
	assert_int_equal(e.backoff, 2 * PEM_BUDGET_WAIT_MIN);
	run(&e, 2 * PEM_BUDGET_WAIT_MIN, calm, 0.01);
	run(&e, PEM_BUDGET_PROVEN + 1, calm, 0.01);
	assert_int_equal(e.detail, PEM_DETAIL_LOG);
	run(&e, 1, busy, 0.01);
	assert_int_equal(e.backoff, PEM_BUDGET_WAIT_MIN);
}

static void statistics_only_are_never_logged(void **state)
{
	const uint64_t busy[] = {0, 20000000, 0}, calm[] = {0, 10, 0};
	struct pem_budget_event e = {
		.wanted = PEM_DETAIL_STATISTICS, .detail = PEM_DETAIL_STATISTICS, .ns = {0, 2, 10}};

	(void)state;
	run(&e, 1, busy, 0.01);
	assert_int_equal(e.detail, PEM_DETAIL_OFF);
	run(&e, 100, calm, 0.01);
	assert_int_equal(e.detail, PEM_DETAIL_STATISTICS);
}

/*
 * Without switches nobody can tell whose the kernel's records are: they go last, and come back
 * first.
 */
static void context_outlives_what_needs_it(void **state)
{
	struct pem_budget_event e[] = {logged(300000), logged(5000), logged(10000)};
	unsigned i;

	(void)state;
	e[0].tells_context = true;
	e[1].needs_context = e[2].needs_context = true;
	assert_int_equal(judge(e, 3, 0.01), 3);
	assert_int_equal(steps[0].event, 2);
	assert_int_equal(steps[1].event, 1);
	assert_int_equal(steps[2].event, 0);
	assert_int_equal(e[0].detail, PEM_DETAIL_STATISTICS);
	for (i = 0; i < 30; i++) {
		e[0].count = e[1].count = e[2].count = 10;
		if (judge(e, 3, 0.01) == 1 && steps[0].to == PEM_DETAIL_LOG)
			break;
	}
	assert_int_equal(steps[0].event, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_statistic_of_an_event_has_its_price),
		cmocka_unit_test(within_the_budget_nothing_changes),
		cmocka_unit_test(the_costliest_steps_down_first),
		cmocka_unit_test(as_far_down_as_it_takes),
		cmocka_unit_test(without_cpu_time_there_is_no_judgement),
		cmocka_unit_test(back_up_when_the_rate_falls),
		cmocka_unit_test(nothing_steps_up_above_half_of_the_budget),
		cmocka_unit_test(a_step_up_leaves_a_fifth_of_the_budget),
		cmocka_unit_test(steady_load_does_not_flap),
		cmocka_unit_test(a_load_at_the_edge_does_not_flap),
		cmocka_unit_test(tries_become_rarer),
		cmocka_unit_test(what_is_proven_is_tried_soon_again),
		cmocka_unit_test(statistics_only_are_never_logged),
		cmocka_unit_test(context_outlives_what_needs_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
