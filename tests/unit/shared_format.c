/* SPDX-License-Identifier: MIT */
/*
 * shared_format.c - the fields that a tracepoint's format file names, and lines that name none
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/tracepoint_format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PLACE "\toffset:8;\tsize:8;\tsigned:0;\n"

static void numbers_are_read(void **state)
{
	uint32_t id = 7;

	(void)state;
	assert_int_equal(pem_format__id("name: x\nID: 362\nformat:\n", &id), 0);
	assert_int_equal(id, 362);
	assert_int_equal(pem_format__id("ID: 4294967295\n", &id), 0);
	assert_int_equal(pem_format__id("ID: 4294967296\n", &id), -EINVAL);
	assert_int_equal(pem_format__id("ID: 0\n", &id), -EINVAL);
	assert_int_equal(pem_format__id("ID: x\n", &id), -EINVAL);
	assert_int_equal(pem_format__id("", &id), -EINVAL);
}

static void fields_are_taken_apart(void **state)
{
	const char *text = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			   "\tfield:const char * at;\toffset:8;\tsize:8;\tsigned:0;\n"
			   "\tfield:__rel_loc u16[] words;\toffset:16;\tsize:4;\tsigned:1;\n"
			   "\nprint fmt: \"field:int no;\toffset:8;\tsize:4;\tsigned:1;\"\n";
	struct pem_format_field field;

	(void)state;
	assert_int_equal(pem_format__next(&text, &field), 1);
	assert_string_equal(field.type, "const char *");
	assert_string_equal(field.name, "at");
	assert_int_equal(field.offset, 8);
	assert_int_equal(field.size, 8);
	assert_true(pem_format_field__is_pointer(&field));
	assert_false(field.is_signed || field.is_array || field.is_data_loc || field.is_rel_loc);
	assert_int_equal(pem_format__next(&text, &field), 1);
	assert_string_equal(field.type, "u16");
	assert_string_equal(field.name, "words");
	assert_true(field.is_signed && field.is_array && field.is_rel_loc);
	assert_false(field.is_data_loc || pem_format_field__is_pointer(&field));
	assert_int_equal(pem_format__next(&text, &field), 0);
	assert_int_equal(pem_format__next(&text, &field), 0);
}

static void lines_that_cannot_be_read(void **state)
{
	static const char *const lines[] = {
		"\tfield:int x" PLACE, /* no ';' */
		"\tfield:;" PLACE,
		"\tfield:int ;" PLACE,
		"\tfield:x;" PLACE,
		"\tfield: x;" PLACE,
		"\tfield:int x[4;" PLACE,
		"\tfield:void (*f)(int);" PLACE,
		"\tfield:int x;\tsize:4;\tsigned:1;\n",
		"\tfield:int x;\toffset:8;\tsigned:1;\n",
		"\tfield:int x;\toffset:8;\tsize:4;\n",
		"\tfield:int x;\toffset:8;\tsize:;\tsigned:1;\n",
		"\tfield:int x;\toffset:8192;\tsize:0;\tsigned:1;\n",
		"\tfield:int x;\toffset:8188;\tsize:5;\tsigned:1;\n",
		"\tfield:int x;\toffset:8;\tsize:18446744073709551615;\tsigned:1;\n",
		"\tfield:int "
		"n234567890123456789012345678901234567890123456789012345678901234;" PLACE,
	};
	struct pem_format_field field;
	char text[256];
	const char *at;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "%s\tfield:int next;" PLACE, lines[i]);
		at = text;
		if (pem_format__next(&at, &field) != -EINVAL)
			fail_msg("line %zu is read: %s", i, lines[i]);
		assert_memory_equal(field.type, lines[i], 7);
		assert_int_equal(pem_format__next(&at, &field), 1);
		assert_string_equal(field.name, "next");
	}
}

static void longest_of_all(void **state)
{
	struct pem_format_field field;
	char text[1024], *at;
	const char *rest;

	(void)state;
	at = text + snprintf(text, sizeof(text),
			     "\tfield:int "
			     "n23456789012345678901234567890123456789012345678901234567890123;"
			     "\toffset:8187;\tsize:5;\tsigned:1;");
	rest = text;
	assert_int_equal(pem_format__next(&rest, &field), 1);
	assert_int_equal(strlen(field.name), 63);
	assert_int_equal(field.offset + field.size, PEM_FORMAT_ENTRY_BYTES_MAX);
	/* A line of 511 bytes, and one of 512 */
	memset(at, ' ', sizeof(text) - (size_t)(at - text));
	text[511] = '\0';
	rest = text;
	assert_int_equal(pem_format__next(&rest, &field), 1);
	text[511] = ' ';
	text[512] = '\0';
	rest = text;
	assert_int_equal(pem_format__next(&rest, &field), -EINVAL);
	assert_int_equal(strlen(field.type), sizeof(field.type) - 1);
	assert_int_equal(pem_format__next(&rest, &field), 0);
	/* A type of 95 bytes, and one of 96 */
	snprintf(text, sizeof(text), "\tfield:%095d x;" PLACE, 0);
	rest = text;
	assert_int_equal(pem_format__next(&rest, &field), 1);
	snprintf(text, sizeof(text), "\tfield:%096d x;" PLACE, 0);
	rest = text;
	assert_int_equal(pem_format__next(&rest, &field), -EINVAL);
}

static void elements_by_their_type(void **state)
{
	static const struct {
		const char *type;
		unsigned bytes;
		bool is_signed;
	} types[] = {{"u8", 1, false},  {"__be16", 2, false}, {"s32", 4, true},
		     {"long", 8, true}, {"char", 0, false},   {"struct x", 0, false}};
	struct pem_format_field field = {.name = "x"};
	bool is_signed;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		is_signed = false;
		strcpy(field.type, types[i].type);
		assert_int_equal(pem_format_field__element_bytes(&field, &is_signed),
				 types[i].bytes);
		assert_int_equal(is_signed, types[i].is_signed);
	}
}

static void pointers(void **state)
{
	struct pem_format_field field = {.type = "void *", .size = 8};

	(void)state;
	assert_true(pem_format_field__is_pointer(&field));
	field.size = 4;
	assert_false(pem_format_field__is_pointer(&field));
	strcpy(field.type, "u64");
	field.size = 8;
	assert_false(pem_format_field__is_pointer(&field));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read),
		cmocka_unit_test(fields_are_taken_apart),
		cmocka_unit_test(lines_that_cannot_be_read),
		cmocka_unit_test(longest_of_all),
		cmocka_unit_test(elements_by_their_type),
		cmocka_unit_test(pointers),
	};

	return cmocka_run_group_tests_name("shared_format", tests, NULL, NULL);
}
