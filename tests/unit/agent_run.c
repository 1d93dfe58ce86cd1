// SPDX-License-Identifier: MIT
/*
 * agent_run.c - runs of an agent (pem/agent.h) whose directive is known: what each is for
 *
 * Not here: which runs are evidence (agent_evidence.c).
 */
#include "agent_fixture.h"

static void a_directive_with_which_the_command_fails_is_withdrawn(void **state)
{
	unsigned counts[4];
	const struct pem_db_directive d = settle(0, "exit ${STATUS-0}", counts);

	(void)state;
	assert_int_equal(d.state, PEM_DB_WITHDRAWN);
	assert_non_null(strstr(d.reason, "another status"));
	assert_true(counts[PEM_DB_TREATED] >= 5 && counts[PEM_DB_CONTROL] >= 5);
	assert_true(counts[PEM_DB_TREATED] + counts[PEM_DB_CONTROL] < 40);
}

static void a_trial_ends_with_its_last_run(void **state)
{
	unsigned counts[4];
	/* Each run has a status of its own (of no signal), so none can be compared. */
	const struct pem_db_directive d = settle(4, "exit $(($$ % 120))", counts);

	(void)state;
	assert_int_equal(d.state, PEM_DB_WITHDRAWN);
	assert_string_equal(d.reason, "no gain is shown after 4 runs");
	assert_int_equal(counts[PEM_DB_TREATED] + counts[PEM_DB_CONTROL], 4);
}

static void a_status_is_kept_where_children_are_ignored(void **state)
{
	struct pem_agent_report report;
	struct sigaction after;

	(void)state;
	strcpy(text, "STATUS=7");
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(run_agent(0, "exit 7", &report), 7);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
	assert_int_equal(run_agent(0, "exit 7", &report), 7);
	sigaction(SIGCHLD, NULL, &after);
	assert_ptr_equal(after.sa_handler, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

static void an_observed_command_goes_through_another_program(void **state)
{
	char *words[] = {"/usr/bin/env", "STATUS=7", NULL};
	struct pem_agent_report report;

	(void)state;
	wrap = words;
	strcpy(text, "STATUS=0");
	assert_int_equal(run_agent(0, "exit ${STATUS-0}", &report), 7);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
	/* Runs that are not observed don't. */
	assert_int_equal(run_agent(0, "exit ${STATUS-0}", &report), 0);
	assert_int_not_equal(report.purpose, PEM_AGENT_OBSERVED);
}

static void ask_again(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg)
{
	struct pem_agent_usage usage = {.size = sizeof(usage)};

	(void)arg;
	assert_int_equal(pem_agent__usage(agent, &usage), 0);
	assert_int_equal(usage.status, 3);
	assert_true(usage.peak_bytes > 0 && usage.seconds > 0);
	if (purpose != PEM_AGENT_OBSERVED)
		assert_int_equal(pem_agent__observe_again(agent, "for a test"), 1);
}

static void an_application_is_observed_again(void **state)
{
	struct pem_db_directive d = {.size = sizeof(d)};
	struct pem_agent_report report;
	struct pem_database *db;

	(void)state;
	state_given = PEM_DB_WITHDRAWN;
	run_agent(0, "exit 3", &report);
	ended = ask_again;
	run_agent(0, "exit 3", &report);
	assert_int_equal(report.purpose, PEM_AGENT_ALONE);
	state_given = PEM_DB_PROPOSED;
	run_agent(0, "exit 3", &report);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
	/* What was proposed now is all there is. */
	db = pem_database__open(url, NULL, &error);
	assert_non_null(db);
	d.state = PEM_DB_WITHDRAWN;
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &d, &d, &error), 0);
	d = (struct pem_db_directive){.size = sizeof(d), .subject = "all"};
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &d, &d, &error), 1);
	assert_int_equal(d.state, PEM_DB_ON_TRIAL);
	d = (struct pem_db_directive){.size = sizeof(d), .subject = "(again)"};
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &d, &d, &error), 0);
	pem_database__close(db);
}

/* What ended found: what it asked for, and what was noted of the observed run. */
static int asked;
static double noted, asked_s, asked_bytes;

static void ask_and_look(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg)
{
	(void)arg;
	if (purpose == PEM_AGENT_OBSERVED) {
		assert_int_equal(pem_agent__note(agent, "noted", "", 42, PEM_DB_MEASURED), 0);
		return;
	}
	noted = asked_s = asked_bytes = -1;
	assert_int_equal(pem_agent__observed(agent, "unknown", &noted), 0);
	assert_int_equal(pem_agent__observed(agent, "noted", &noted), 1);
	pem_agent__observed(agent, "asked time", &asked_s);
	pem_agent__observed(agent, "asked memory", &asked_bytes);
	asked = pem_agent__observe_again(agent, "for a test");
}

static void an_application_is_observed_again_some_times_only(void **state)
{
	const char *script = "head -c 40M /dev/zero | tail -c 40M >/dev/null";
	struct pem_agent_report report;
	unsigned i;

	(void)state;
	state_given = PEM_DB_WITHDRAWN;
	ended = ask_and_look;
	run_agent(0, script, &report);
	for (i = 0; i < 5; i++) {
		run_agent(0, script, &report);
		assert_int_equal(report.purpose, PEM_AGENT_ALONE);
		assert_true(noted > 41 && noted < 43);
		assert_int_equal(asked, i < 4);
		/* Of the first observation nobody asked for. */
		assert_int_equal(asked_bytes >= 40 << 20, i > 0);
		assert_int_equal(asked_s > 0, i > 0);
		run_agent(0, script, &report);
		assert_int_equal(report.purpose, i < 4 ? PEM_AGENT_OBSERVED : PEM_AGENT_ALONE);
	}
}

static void the_run_that_asked_is_waited_for(void **state)
{
	struct pem_agent_report report;
	unsigned i;

	(void)state;
	state_given = PEM_DB_WITHDRAWN;
	ended = ask_and_look;
	run_agent(0, "exit 1", &report);
	run_agent(0, "exit 2", &report);
	assert_int_equal(asked, 1);
	/* Another's arguments. */
	run_agent(0, "exit 1", &report);
	assert_int_equal(report.purpose, PEM_AGENT_ALONE);
	assert_int_equal(asked, 0);
	run_agent(0, "exit 2", &report);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
	run_agent(0, "exit 3", &report);
	assert_int_equal(asked, 1);
	/* If they never come again, some other run will do. */
	for (i = 0; i < 7; i++) {
		run_agent(0, "exit 1", &report);
		assert_int_equal(report.purpose, PEM_AGENT_ALONE);
	}
	run_agent(0, "exit 1", &report);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
	/* What asked had other arguments: its figures say nothing of this one. */
	run_agent(0, "exit 1", &report);
	assert_true(asked_s < 0 && asked_bytes < 0);
}

static void a_directive_that_is_only_noted_is_not_tried(void **state)
{
	struct pem_agent_report report;

	(void)state;
	state_given = PEM_DB_WITHDRAWN;
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.directives, 0);
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.purpose, PEM_AGENT_ALONE);
}

static void more_directives_than_are_tried_are_only_noted(void **state)
{
	struct pem_db_directive d = {.size = sizeof(d), .subject = "one of all, 299"};
	struct pem_agent_report report;
	struct pem_database *db;

	(void)state;
	given_count = 300;
	state_given = PEM_DB_ON_TRIAL;
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.directives, 256);
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.directives, 256);
	db = pem_database__open(url, NULL, &error);
	assert_non_null(db);
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &d, &d, &error), 1);
	assert_int_equal(d.state, PEM_DB_WITHDRAWN);
	assert_non_null(strstr(d.reason, "256"));
	pem_database__close(db);
}

static int64_t peak_bytes;

static void note_peak(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg)
{
	struct pem_agent_usage usage = {.size = sizeof(usage)};

	(void)purpose;
	(void)arg;
	assert_int_equal(pem_agent__usage(agent, &usage), 0);
	peak_bytes = usage.peak_bytes;
}

/* What this process has now: much with sanitizers. */
static int64_t own_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void memory_is_the_command_s_alone(void **state)
{
	const size_t bytes = 192u << 20;
	struct pem_agent_report report;
	volatile char *own;
	size_t i;

	(void)state;
	ended = note_peak;
	state_given = PEM_DB_WITHDRAWN;
	run_agent(0, "exit 0", &report);
	/* Of a process that the command waited for. */
	run_agent(0, "head -c 100M /dev/zero | tail -c 100M >/dev/null", &report);
	assert_int_equal(report.purpose, PEM_AGENT_ALONE);
	assert_true(peak_bytes >= 100 << 20);
	/* Neither an earlier command's nor what this process had once. */
	own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(own != MAP_FAILED);
	for (i = 0; i < bytes; i += 4096)
		own[i] = 1;
	munmap((void *)(uintptr_t)own, bytes);
	run_agent(0, "exit 0", &report);
	assert_true(peak_bytes > 0 && peak_bytes < own_bytes() + (32 << 20));
}

static void what_can_not_be_modelled_is_not_observed_for_ever(void **state)
{
	struct pem_agent_report report;
	unsigned i;

	(void)state;
	given_count = 0;
	model_returns = -EIO;
	for (i = 0; i < 3; i++) {
		run_agent(0, "exit 0", &report);
		assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
	}
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.purpose, PEM_AGENT_ALONE);
}

static void a_model_that_failed_once_is_made_again(void **state)
{
	struct pem_db_directive d = {.size = sizeof(d)};
	struct pem_agent_report report;
	struct pem_database *db;

	(void)state;
	given_count = 0;
	model_returns = -EIO;
	run_agent(0, "exit 0", &report);
	given_count = 1;
	model_returns = 0;
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
	run_agent(0, "exit 0", &report);
	assert_int_equal(report.directives, 1);
	/* Of the failure there is nothing left. */
	db = pem_database__open(url, NULL, &error);
	assert_non_null(db);
	d.state = PEM_DB_WITHDRAWN;
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &d, &d, &error), 0);
	pem_database__close(db);
}

/* A child, which becomes the command if that runs alone. True: it was waited for. */
static bool is_waited_for(const char *script)
{
	struct pem_agent_report report;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		run_agent(0, script, &report);
		_exit(77);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) == 77;
}

static void a_command_that_runs_alone_is_waited_for_at_times(void **state)
{
	struct pem_agent_report report;
	unsigned waited = 0, i;

	(void)state;
	state_given = PEM_DB_WITHDRAWN;
	run_agent(0, "exit 0", &report);
	exec_alone = 1;
	/* The first with these arguments, and one in sixteen. */
	assert_true(is_waited_for("exit 5"));
	for (i = 0; i < 16; i++)
		waited += is_waited_for("exit 5");
	assert_int_equal(waited, 1);
}

static void what_was_kept_and_fails_is_observed_again(void **state)
{
	struct pem_db_directive d = {.size = sizeof(d)};
	struct pem_agent_report report;
	struct pem_database *db;
	unsigned i;

	(void)state;
	strcpy(text, "STATUS=SEGV");
	run_agent(0, "kill -${STATUS-0} $$", &report);
	db = pem_database__open(url, NULL, &error);
	assert_non_null(db);
	assert_int_equal(pem_database__find(db, PEM_DB_DIRECTIVE, &d, &d, &error), 1);
	d.state = PEM_DB_KEPT;
	assert_true(pem_database__put(db, PEM_DB_DIRECTIVE, &d, &error) > 0);
	pem_database__close(db);
	/* One run in sixteen is without it. */
	for (i = 0; i < 64; i++) {
		if (run_agent(0, "kill -${STATUS-0} $$", &report) == 128 + SIGSEGV)
			break;
	}
	assert_int_equal(report.directives, 0);
	run_agent(0, "kill -${STATUS-0} $$", &report);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
}

static void observe_again(struct pem_agent *agent, enum pem_agent_purpose purpose, void *arg)
{
	(void)purpose;
	(void)arg;
	assert_true(pem_agent__observe_again(agent, "for a test") >= 0);
}

static void directives_are_applied_where_that_is_asked_for(void **state)
{
	struct pem_agent_report report;

	(void)state;
	apply_always = 1;
	strcpy(text, "STATUS=7");
	run_agent(0, "exit ${STATUS-0}", &report);
	ended = observe_again;
	assert_int_equal(run_agent(0, "exit ${STATUS-0}", &report), 7);
	/* The next run is to be an observed one, but where directives are to be applied. */
	assert_int_equal(run_agent(0, "exit ${STATUS-0}", &report), 7);
	assert_int_equal(report.purpose, PEM_AGENT_TREATED);
	apply_always = 0;
	state_given = PEM_DB_WITHDRAWN;
	run_agent(0, "exit ${STATUS-0}", &report);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
	/* There are none to apply now, and it is to be observed still. */
	apply_always = 1;
	run_agent(0, "exit ${STATUS-0}", &report);
	assert_int_equal(report.purpose, PEM_AGENT_OBSERVED);
}

static void the_agent_acts_in_runs_that_are_observed_or_treated(void **state)
{
	struct pem_agent_report report;
	unsigned seen = 0;

	(void)state;
	strcpy(text, "STATUS=0");
	while (seen != 7) {
		run_agent(0, "exit ${STATUS-0}", &report);
		seen |= report.purpose == PEM_AGENT_OBSERVED  ? 1
			: report.purpose == PEM_AGENT_TREATED ? 2
							      : 4;
		if (report.purpose == PEM_AGENT_CONTROL)
			assert_int_equal(acts, 0);
		else
			assert_true(acts >= 1 && acts <= 2);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_directive_with_which_the_command_fails_is_withdrawn),
		TEST(a_trial_ends_with_its_last_run),
		TEST(the_agent_acts_in_runs_that_are_observed_or_treated),
		TEST(a_status_is_kept_where_children_are_ignored),
		TEST(an_observed_command_goes_through_another_program),
		TEST(a_directive_that_is_only_noted_is_not_tried),
		TEST(more_directives_than_are_tried_are_only_noted),
		TEST(memory_is_the_command_s_alone),
		TEST(what_can_not_be_modelled_is_not_observed_for_ever),
		TEST(a_model_that_failed_once_is_made_again),
		TEST(a_command_that_runs_alone_is_waited_for_at_times),
		TEST(what_was_kept_and_fails_is_observed_again),
		TEST(directives_are_applied_where_that_is_asked_for),
		TEST(an_application_is_observed_again),
		TEST(an_application_is_observed_again_some_times_only),
		TEST(the_run_that_asked_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
