// SPDX-License-Identifier: MIT
/*
 * session_recover.c - what a trace whose recorder died may have touched: its own session, nothing beside it
 *
 * Not here: what is recovered of programs (cli_record.py).
 */
#include "session_fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char runtime[96], directory[sizeof(((struct pem_session *)0)->directory)];
static pid_t recorder;

/* A recorder that was killed: its trace, and its session in a runtime folder beside it. */
static int set_up(void **state)
{
	FILE *f;

	if (folder_make(state))
		return -1;
	snprintf(runtime, sizeof(runtime), "%s/runtime", folder);
	setenv("PEM_RUNTIME_DIR", runtime, 1);
	recorder = fork();
	if (!recorder) {
		log_to_trace(session_open(NULL), "APP", NULL);
		_exit(0);
	}
	if (waitpid(recorder, NULL, 0) != recorder)
		return -1;
	snprintf(directory, sizeof(directory), "%s/.pem/session", trace_path);
	f = fopen(directory, "re");
	if (!f || fscanf(f, "%*d %4000s", directory) != 1)
		return -1;
	return fclose(f);
}

static void point_trace_at(const char *path)
{
	char file[160];
	FILE *f;

	snprintf(file, sizeof(file), "%s/.pem/session", trace_path);
	f = fopen(file, "we");
	assert_non_null(f);
	fprintf(f, "%d %s\n", (int)recorder, path);
	fclose(f);
}

static void own_session_is_taken_in(void **state)
{
	struct pem_error error = {""};

	(void)state;
	if (pem_trace__recover(trace_path, &error))
		fail_msg("%s", error.text);
	assert_int_equal(access(directory, F_OK), -1);
}

/* The runtime folder's own parent: a prefix of its name. */
static void session_elsewhere_is_left_alone(void **state)
{
	struct pem_error error = {""};
	char elsewhere[96];

	(void)state;
	snprintf(elsewhere, sizeof(elsewhere), "%s/session-1-0", folder);
	assert_int_equal(rename(directory, elsewhere), 0);
	point_trace_at(elsewhere);
	assert_int_equal(pem_trace__recover(trace_path, &error), -EPERM);
	assert_int_equal(access(elsewhere, F_OK), 0);
}

static void anything_else_is_left_alone(void **state)
{
	static const char *const paths[] = {"/session-1-0", "session-1-0", "/", "/tmp", ""};
	struct pem_error error = {""};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		point_trace_at(paths[i]);
		assert_true(pem_trace__recover(trace_path, &error) < 0);
	}
	point_trace_at(directory); /* and it is there still */
	assert_int_equal(pem_trace__recover(trace_path, &error), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, folder_remove)
	const struct CMUnitTest tests[] = {
		TEST(own_session_is_taken_in),
		TEST(session_elsewhere_is_left_alone),
		TEST(anything_else_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
