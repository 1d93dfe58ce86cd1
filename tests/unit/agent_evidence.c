// SPDX-License-Identifier: MIT
/* agent_evidence.c - which runs of an agent (pem/agent.h) speak for or against its directives */
#define _GNU_SOURCE
#include "agent_fixture.h"

#include <sched.h>

static void exclude_treated(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg)
{
	(void)arg;
	if (purpose == PEM_AGENT_TREATED)
		pem_agent__exclude(agent);
}

static void a_run_that_is_excluded_is_no_evidence(void **state)
{
	struct pem_agent_report report;
	struct pem_db_directive d;
	unsigned counts[4], treated = 0, i;

	(void)state;
	ended = exclude_treated;
	/* A treated run would take ten times as long: its time would decide. */
	for (i = 0; i < 12; i++) {
		run_agent(0, "test ${STATUS-0} = 0 || sleep 0.05", &report);
		treated += report.purpose == PEM_AGENT_TREATED;
		assert_int_equal(report.excluded, report.purpose == PEM_AGENT_TREATED);
	}
	d = look(counts);
	assert_true(treated > 0);
	assert_int_equal(counts[PEM_DB_EXCLUDED], treated);
	assert_int_equal(counts[PEM_DB_TREATED], 0);
	assert_int_equal(d.state, PEM_DB_ON_TRIAL);
	/* It goes on so: the trial is over. */
	d = settle(0, "test ${STATUS-0} = 0 || sleep 0.05", counts);
	assert_int_equal(d.state, PEM_DB_WITHDRAWN);
	assert_non_null(strstr(d.reason, "could not be compared"));
	assert_int_equal(counts[PEM_DB_TREATED], 0);
	assert_true(counts[PEM_DB_EXCLUDED] >= 16);
	assert_true(counts[PEM_DB_EXCLUDED] > counts[PEM_DB_CONTROL]);
}

static void a_crash_counts_whatever_else_does(void **state)
{
	unsigned counts[4];

	(void)state;
	ended = exclude_treated;
	strcpy(text, "STATUS=SEGV");
	assert_int_equal(settle(0, "kill -${STATUS-0} $$", counts).state, PEM_DB_WITHDRAWN);
	assert_int_equal(counts[PEM_DB_EXCLUDED], 1);
}

static void where_directives_can_not_be_had_a_run_is_on_neither_side(void **state)
{
	struct pem_agent_report report;
	struct pem_db_directive d;
	struct pem_database *db;
	unsigned counts[4], i;

	(void)state;
	run_agent(0, "exit ${STATUS-0}", &report);
	is_ready = false;
	exec_alone = 1;
	/* Each comes back: the trial is not over. */
	for (i = 0; i < 8; i++) {
		assert_int_equal(run_agent(0, "exit ${STATUS-0}", &report), 0);
		assert_int_equal(report.purpose, PEM_AGENT_ALONE);
		assert_true(report.excluded && report.directives == 1);
	}
	d = look(counts);
	assert_int_equal(counts[PEM_DB_TREATED] + counts[PEM_DB_CONTROL], 0);
	assert_int_equal(d.state, PEM_DB_ON_TRIAL);
	/* What is kept is applied as far as it goes. */
	db = pem_database__open(url, NULL, &error);
	assert_non_null(db);
	d.state = PEM_DB_KEPT;
	assert_true(pem_database__put(db, PEM_DB_DIRECTIVE, &d, &error) > 0);
	pem_database__close(db);
	for (i = 0; i < 40; i++) {
		assert_int_equal(run_agent(0, "exit ${STATUS-0}", &report), 1);
		assert_int_equal(report.purpose, PEM_AGENT_TREATED);
	}
	d = look(counts);
	assert_int_equal(counts[PEM_DB_TREATED] + counts[PEM_DB_CONTROL], 0);
	assert_int_equal(counts[PEM_DB_EXCLUDED], 40);
	assert_int_equal(d.state, PEM_DB_KEPT);
}

static void what_a_person_ends_is_no_evidence(void **state)
{
	struct pem_agent_report report;
	unsigned counts[4];

	(void)state;
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.interrupted, 0);
	/* The agent passes the signal to the command. */
	assert_int_equal(run_agent(0, "kill -TERM $PPID; exec sleep 20", &report), 128 + SIGTERM);
	assert_int_equal(report.interrupted, SIGTERM);
	assert_int_equal(report.excluded, 1);
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.interrupted, 0);
	look(counts);
	assert_int_equal(counts[PEM_DB_TREATED] + counts[PEM_DB_CONTROL], 1);
	assert_int_equal(counts[PEM_DB_EXCLUDED], 1);
}

static int take_last(const void *row, void *value)
{
	*(double *)value = ((const struct pem_db_evidence *)row)->value;
	return 0;
}

static void time_without_a_cpu_is_no_evidence(void **state)
{
	struct pem_agent_report report;
	struct pem_database *db;
	cpu_set_t before, one;
	double value = 0;
	pid_t busy;
	int status;

	(void)state;
	/* The command shares one CPU with a busy loop. */
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	busy = fork();
	while (!busy)
		;
	run_agent(0, "exit 0", &report);
	run_agent(0, "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done", &report);
	kill(busy, SIGKILL);
	assert_int_equal(waitpid(busy, &status, 0), busy);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	if (access("/proc/self/schedstat", R_OK))
		skip();
	assert_true(report.waited > 0 && report.waited < report.seconds);
	db = pem_database__open(url, NULL, &error);
	assert_non_null(db);
	pem_database__each(db, PEM_DB_EVIDENCE, NULL, take_last, &value, &error);
	pem_database__close(db);
	assert_true(value > 0 && value == report.seconds - report.waited);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_run_that_is_excluded_is_no_evidence),
		TEST(a_crash_counts_whatever_else_does),
		TEST(where_directives_can_not_be_had_a_run_is_on_neither_side),
		TEST(what_a_person_ends_is_no_evidence),
		TEST(time_without_a_cpu_is_no_evidence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
