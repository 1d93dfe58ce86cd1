/* SPDX-License-Identifier: MIT */
/*
 * reader_names.c - .pem/names of a trace, which says what processes were called that ran before it:
 * read, refused, bounded
 */
#include "trace_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>

#include <cmocka.h>

#include "reader_fixture.h"

#define NAMES ".pem/names"

static void refuses(int code, const char *sentence)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(fixture.path, &error);

	assert_null(trace);
	assert_int_equal(errno, code);
	if (!strstr(error.text, sentence) || !strstr(error.text, NAMES))
		fail_msg("'%s' does not say '%s'", error.text, sentence);
}

static void names_are(const char *text, uint32_t pid, const char *name)
{
	struct pem_trace *trace;

	fixture_text(&fixture, NAMES, text);
	trace = open_trace();
	assert_string_equal(pem_trace__process_name(trace, pid), name);
	pem_trace__close(trace);
}

static void tells_what_processes_were_called(void **state)
{
	(void)state;
	names_are("", 7, "");
	names_are("7\tshell\n4294967295\tlast\n", 7, "shell");
	names_are("7\tshell\n4294967295\tlast\n", 4294967295u, "last");
	names_are("7\t\n", 7, "");
	names_are("7\tfirst\n7\tsecond\n", 7, "second");
	names_are("7\tshell\n7/8\tworker\n", 7, "shell"); /* a thread's name is not its process's */
	names_are("7/8\tworker\n", 8, "");
	/* written whole or not at all: a line without an end is none */
	names_are("7\tshell\n8\tcut off", 8, "");
}

static void tells_what_threads_were_called(void **state)
{
	struct pem_trace *trace;

	(void)state;
	fixture_text(&fixture, NAMES, "7\tshell\n7/7\tmain\n7/8\told\n7/8\tnew\n");
	trace = open_trace();
	assert_string_equal(pem_trace__thread_name(trace, 7), "main");
	assert_string_equal(pem_trace__thread_name(trace, 8), "new");
	assert_string_equal(pem_trace__thread_name(trace, 9), "");
	pem_trace__close(trace);
}

static void no_control_character_gets_to_a_terminal(void **state)
{
	(void)state;
	names_are("7\ta\033[2Jb\177\tc\r\n", 7, "a?[2Jb??c?");
}

static void a_name_is_as_long_as_names_may_be(void **state)
{
	char text[4096] = "7\t", name[64];

	(void)state;
	memset(text + 2, 'n', 4000);
	strcpy(text + 4002, "\n");
	memset(name, 'n', 63);
	name[63] = 0;
	names_are(text, 7, name);
}

static void says_which_line_is_wrong(void **state)
{
	static const char *const wrong[] = {
		"\n",          "shell\n",         "7 shell\n",   "\tshell\n",
		"x\tshell\n",  "4294967296\tx\n", "-1\tshell\n", "7x\tshell\n",
		" 7\tshell\n", "0x7\tshell\n",    "7/\tx\n",     "7/0\tx\n",
		"/7\tx\n",     "7/8/9\tx\n",
	};
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "1\tinit\n%s", wrong[i]);
		fixture_text(&fixture, NAMES, text);
		refuses(EINVAL, "line 2 names no process");
	}
	fixture_write(&fixture, NAMES, "7\ta\0b\n", 6, "w");
	refuses(EINVAL, "no text");
}

static void reads_no_link_no_folder_and_no_fifo(void **state)
{
	char path[160], target[160];

	(void)state;
	snprintf(path, sizeof(path), "%s/" NAMES, fixture.path);
	snprintf(target, sizeof(target), "%s/elsewhere", fixture.path);
	fixture_text(&fixture, "elsewhere", "7\tshell\n");
	assert_int_equal(symlink(target, path), 0);
	refuses(ELOOP, "can't be read");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	refuses(EINVAL, "can't be read");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	refuses(EINVAL, "can't be read");
}

static void is_no_larger_than_that(void **state)
{
	char path[160];

	(void)state;
	snprintf(path, sizeof(path), "%s/" NAMES, fixture.path);
	fixture_text(&fixture, NAMES, "7\tshell\n");
	assert_int_equal(truncate(path, (64 << 20) + 1), 0);
	refuses(EFBIG, "can't be read");
}

/*
 * There are not more numbers of processes than this, so that 64 MiB of short lines do not become
 * half a GiB.
 */
static void names_no_more_processes_than_there_can_be(void **state)
{
	size_t count = (1u << 22) + 1, i;
	char *text = malloc(count * 3);

	(void)state;
	assert_non_null(text);
	for (i = 0; i < count; i++)
		memcpy(text + 3 * i, "7\t\n", 3);
	fixture_write(&fixture, NAMES, text, count * 3, "w");
	free(text);
	refuses(EINVAL, "line 4194305 names no process");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(tells_what_processes_were_called),
		TEST(tells_what_threads_were_called),
		TEST(no_control_character_gets_to_a_terminal),
		TEST(a_name_is_as_long_as_names_may_be),
		TEST(says_which_line_is_wrong),
		TEST(reads_no_link_no_folder_and_no_fifo),
		TEST(is_no_larger_than_that),
		TEST(names_no_more_processes_than_there_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
