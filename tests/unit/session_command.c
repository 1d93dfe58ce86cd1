// SPDX-License-Identifier: MIT
/*
 * session_command.c - a command that can't be started: its session has none
 *
 * Not here: programs that run in a session (tests/e2e).
 */
#include "session_fixture.h"

#include <errno.h>

static struct pem_session *session;
static struct pem_error error;

static int run_command(const char *name)
{
	char *const argv[] = {(char *)(uintptr_t)name, NULL};

	return pem_session__run(session, argv, NULL, &error);
}

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	return run_command("pem-no-such-command") != -ENOENT;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static void nothing_is_waited_for(void **state)
{
	int status = 5555;

	(void)state;
	assert_int_equal(pem_session__poll(session, 1000, &status), -ECHILD);
	assert_int_equal(status, 5555);
}

static void no_time_has_passed(void **state)
{
	(void)state;
	assert_int_equal(pem_session__elapsed_ns(session), 0);
}

static void the_next_one_is_told_why_not(void **state)
{
	(void)state;
	assert_int_equal(run_command("true"), -EBUSY);
	assert_non_null(strstr(error.text, "could not be started"));
	assert_non_null(strstr(error.text, "open a second session"));
}

static void others_are_observed_on(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};

	(void)state;
	assert_true(pem_session__attach(session, &self, &error) >= 0);
	assert_int_equal(pem_session__poll(session, 0, NULL), 0);
}

static void a_trace_has_no_exit_status(void **state)
{
	struct pem_error why = {""};
	struct pem_trace *trace;
	struct pem_log *log;

	pem_session__close(session);
	session = session_open(NULL);
	log = log_to_trace(session, "APP::Phase::*", NULL);
	assert_int_equal(run_command("pem-no-such-command"), -ENOENT);
	assert_int_equal(pem_log__finish(log, &why), 0);
	trace = pem_trace__open(trace_path, &why);
	assert_non_null(trace);
	assert_int_equal(pem_trace__info(trace)->exit_status, -1);
	pem_trace__close(trace);
	(void)state;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_waited_for),        TEST(no_time_has_passed),
		TEST(the_next_one_is_told_why_not), TEST(others_are_observed_on),
		TEST(a_trace_has_no_exit_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
