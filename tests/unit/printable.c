// SPDX-License-Identifier: MIT
/*
 * printable.c - what of a text a terminal is shown, and what becomes '?'
 */
#include "util.h"

#include <pem/trace.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *text, *shown;
} texts[] = {
	{"", ""},
	{"plain ~", "plain ~"},
	/* C0 and DEL */
	{"\033[31mred\a\t\r\n\x1f\x7f", "?[31mred??????"},
	/* C1 as single bytes, which begin no UTF-8, and as UTF-8 */
	{"\x9b"
	 "31m\x80\x9f",
	 "?31m??"},
	{"\xc2\x9b"
	 "31m\xc2\x80\xc2\x9f",
	 "??31m????"},
	/* Neighbours of these, and UTF-8 whose bytes would be C1 by themselves */
	{"\xc2\xa0\xc5\x9b\xe2\x82\xac\xe2\x9b\x80\xf0\x9f\x98\x80",
	 "\xc2\xa0\xc5\x9b\xe2\x82\xac\xe2\x9b\x80\xf0\x9f\x98\x80"},
	/* Ends of lines and directions: U+2028 to U+202E, U+2066 to U+2069, and their neighbours */
	{"\xe2\x80\xa8\xe2\x80\xae", "??????"},
	{"\xe2\x81\xa6\xe2\x81\xa9", "??????"},
	{"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
	 "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"},
	/* No UTF-8: Latin-1, cut off, overlong, surrogates, beyond Unicode */
	{"caf\xe9 \xe9t\xe9", "caf? ?t?"},
	{"x\xc5", "x?"},
	{"x\xe2\x9b", "x??"},
	{"\xc0\x9b\xe0\x82\x9b", "?????"},
	{"\xed\xa0\x80\xf4\x90\x80\x80\xf5", "????????"},
};

static void what_terminals_obey_is_replaced(void **state)
{
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < PEM_ARRAY_SIZE(texts); i++) {
		assert_true(strlen(texts[i].text) < sizeof(text));
		strcpy(text, texts[i].text);
		assert_ptr_equal(pem_printable(text), text);
		assert_string_equal(text, texts[i].shown);
	}
}

static void errors_can_be_shown(void **state)
{
	struct pem_error error;

	(void)state;
	pem_error__set(&error, -1, "no file '%s'",
		       "\x9b"
		       "2J");
	assert_string_equal(error.text, "no file '?2J'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_terminals_obey_is_replaced),
		cmocka_unit_test(errors_can_be_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
