// SPDX-License-Identifier: MIT
/* cli_status.c - the exit status for what a function of libpem returns (cli/text.c) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cli/cli.h"

#include <errno.h>

static void what_is_wrong_with_the_input(void **state)
{
	(void)state;
	assert_int_equal(cli_status_of_errno(-EINVAL), CLI_WRONG_INPUT);
	assert_int_equal(cli_status_of_errno(-ENOENT), CLI_WRONG_INPUT);
	assert_int_equal(cli_status_of_errno(-EBADMSG), CLI_WRONG_INPUT);
	assert_int_equal(cli_status_of_errno(-ENODATA), CLI_WRONG_INPUT);
}

static void what_this_machine_does_not_have(void **state)
{
	(void)state;
	assert_int_equal(cli_status_of_errno(-EACCES), CLI_NOT_HERE);
	assert_int_equal(cli_status_of_errno(-EOPNOTSUPP), CLI_NOT_HERE);
	assert_int_equal(cli_status_of_errno(-EPROTONOSUPPORT), CLI_NOT_HERE);
	assert_int_equal(cli_status_of_errno(-ECONNREFUSED), CLI_NOT_HERE);
}

static void what_failed_while_it_was_done(void **state)
{
	(void)state;
	assert_int_equal(cli_status_of_errno(-EIO), CLI_FAILED);
	assert_int_equal(cli_status_of_errno(-ENOMEM), CLI_FAILED);
	assert_int_equal(cli_status_of_errno(-EPROTO), CLI_FAILED);
}

static void the_sign_does_not_matter(void **state)
{
	const struct pem_error error = {.text = "a sentence of the test"};

	(void)state;
	assert_int_equal(cli_status_of_errno(EBADMSG), CLI_WRONG_INPUT);
	assert_int_equal(cli_fail(-EBADMSG, &error), CLI_WRONG_INPUT);
	assert_int_equal(cli_fail(-EIO, &error), CLI_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_with_the_input),
		cmocka_unit_test(what_this_machine_does_not_have),
		cmocka_unit_test(what_failed_while_it_was_done),
		cmocka_unit_test(the_sign_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
