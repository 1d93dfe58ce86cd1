/* SPDX-License-Identifier: MIT */
/* names_apart.c - work on other users' files in a process of its own, which may not end */
#include "names/apart.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * Tells all, and never returns: as a process that closes a file of a system that does not answer.
 */
static _Noreturn int tell_and_stay(void *arg, FILE *out)
{
	(void)arg;
	fputs("name\n", out);
	fputc('\0', out);
	fclose(out);
	for (;;)
		pause();
}

static void a_child_that_stays_is_left(void **state)
{
	struct apart apart = {0};
	char why[APART_WHY_BYTES], *text = NULL;
	int status = 0;

	(void)state;
	assert_int_equal(apart__run(&apart, (uint32_t)geteuid(), tell_and_stay, NULL, &text, why),
			 0);
	assert_string_equal(text, "name\n");
	/* It was ended by then. */
	assert_true(waitpid(-1, &status, 0) > 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	free(text);
	free(apart.users);
}

static int stop_short(void *arg, FILE *out)
{
	(void)arg;
	fputs("half of a na", out);
	return -EIO;
}

static void what_is_incomplete_is_not_used(void **state)
{
	struct apart apart = {0};
	char why[APART_WHY_BYTES] = "", *text = NULL;

	(void)state;
	assert_int_equal(apart__run(&apart, (uint32_t)geteuid(), stop_short, NULL, &text, why),
			 -ECANCELED);
	assert_null(text);
	assert_non_null(strstr(why, "failed"));
	free(apart.users);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_that_stays_is_left),
		cmocka_unit_test(what_is_incomplete_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
