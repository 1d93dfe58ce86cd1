/* SPDX-License-Identifier: MIT */
/*
 * log_progress.c - how far long work is: said to who asked for it, and what else is said begins a
 * line of its own
 */
#include "core/core.h"
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/cli.h"

static unsigned said[PEM_LOG_PROGRESS + 1];

static void count(enum pem_log_level level, const char *text, void *arg)
{
	(void)text;
	(void)arg;
	said[level]++;
}

static void say_all(const struct pem_session_options *options)
{
	struct pem_session *session = pem_session__open(options, NULL);

	assert_non_null(session);
	memset(said, 0, sizeof(said));
	pem_session__say(session, PEM_LOG_WARNING, "a warning");
	pem_session__say(session, PEM_LOG_PROGRESS, "1 of 2");
	pem_session__close(session);
	assert_int_equal(said[PEM_LOG_WARNING], 1);
}

static void only_who_asked_is_told_of_progress(void **state)
{
	struct pem_session_options options = {.size = sizeof(options), .log = count};

	(void)state;
	say_all(&options);
	assert_int_equal(said[PEM_LOG_PROGRESS], 0);
	options.progress = 1;
	say_all(&options);
	assert_int_equal(said[PEM_LOG_PROGRESS], 1);
}

/* Until the line with this word is whole: a terminal hands on what it has so far. */
static void read_terminal(int fd, char *text, size_t bytes, const char *word)
{
	const char *found = NULL;
	size_t used = 0;
	ssize_t n;

	while (!found || !strchr(found, '\n')) {
		n = read(fd, text + used, bytes - 1 - used);
		assert_true(n > 0);
		used += (size_t)n;
		text[used] = '\0';
		found = strstr(text, word);
	}
}

static void a_warning_clears_the_line_of_progress(void **state)
{
	int terminal, end, before = dup(STDERR_FILENO);
	bool quiet = false;
	char text[256];

	(void)state;
	setenv("TERM", "xterm", 1);
	assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
	assert_true(dup2(end, STDERR_FILENO) >= 0);
	cli_log(PEM_LOG_PROGRESS, "1 of 2", &quiet);
	cli_log(PEM_LOG_WARNING, "look out", &quiet);
	read_terminal(terminal, text, sizeof(text), "look out");
	cli_log(PEM_LOG_WARNING, "again", &quiet);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	assert_non_null(strstr(text, "1 of 2\033[K\r\033[K"));
	assert_non_null(strstr(text, "look out"));
	read_terminal(terminal, text, sizeof(text), "again");
	assert_null(strstr(text, "\033[K"));
	close(before);
	close(end);
	close(terminal);
}

/* A cli_progress that began long ago, so that its next update is shown. */
static void errors_begin_lines_of_their_own(void **state)
{
	struct cli_progress progress = {.what = "reading"};
	int terminal, end, before = dup(STDERR_FILENO);
	bool quiet = false;
	char text[512];

	(void)state;
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
	assert_true(dup2(end, STDERR_FILENO) >= 0);
	cli_progress__update(5, 10, &progress);
	cli_error(0, "no disk");
	cli_progress__end(&progress);
	cli_log(PEM_LOG_PROGRESS, "1 of 2", &quiet);
	cli_say("no file");
	/* A terminal that can't take a line away gets none. */
	setenv("TERM", "dumb", 1);
	progress.shown_ns = 0;
	cli_progress__update(6, 10, &progress);
	cli_log(PEM_LOG_PROGRESS, "2 of 2", &quiet);
	cli_say("the end");
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	read_terminal(terminal, text, sizeof(text), "the end");
	assert_non_null(strstr(text, "\rreading: 5 of 10 (50 %)\033[K\r\033[Kpem: "));
	assert_non_null(strstr(
		text, "no disk\r\n\r1 of 2\033[K\r\033[Kpem: \033[0mno file\r\npem: the end"));
	close(before);
	close(end);
	close(terminal);
}

static void a_line_is_cut_to_the_width_of_the_terminal(void **state)
{
	const struct winsize size = {.ws_row = 24, .ws_col = 40};
	int terminal, end, before = dup(STDERR_FILENO);
	char text[512];

	(void)state;
	setenv("TERM", "xterm", 1);
	assert_int_equal(openpty(&terminal, &end, NULL, NULL, &size), 0);
	assert_true(dup2(end, STDERR_FILENO) >= 0);
	/* 38 characters, one of two bytes, and more. */
	cli_progress__show("0123456789012345678901234567890123456\xc3\xa4"
			   "8 cut");
	cli_progress__clear();
	cli_say("the end");
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	read_terminal(terminal, text, sizeof(text), "the end");
	assert_non_null(strstr(text, "\r0123456789012345678901234567890123456\xc3\xa4"
				     "8\033[K"));
	close(before);
	close(end);
	close(terminal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_who_asked_is_told_of_progress),
		cmocka_unit_test(a_warning_clears_the_line_of_progress),
		cmocka_unit_test(errors_begin_lines_of_their_own),
		cmocka_unit_test(a_line_is_cut_to_the_width_of_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
