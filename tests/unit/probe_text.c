/* SPDX-License-Identifier: MIT */
/*
 * probe_text.c - what texts say of probes: format files of tracepoints, notes of static probes,
 * patterns
 */
#ifdef PEM_TEST_LIBBPF
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "libpem/sources/kernel/probes/probes.h"

#define HEAD "name: x\nID: 362\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define TAIL "\nprint fmt: \"field:%%d\", REC->a\n"

/* A probe with the fields of a format. */
static struct pem_probe *parse(const char *fields, int wanted)
{
	struct pem_probe *probe = pem_probe__new(PEM_PROBE_TRACEPOINT, "s:x", "OS", "s", "x");
	char text[2048];

	snprintf(text, sizeof(text), HEAD "%s" TAIL, fields);
	assert_int_equal(pem_format__parse(probe, text), wanted);
	return probe;
}

static void numbers_have_their_size_and_sign(void **state)
{
	struct pem_probe *probe =
		parse("\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n"
		      "\tfield:unsigned long flags;\toffset:16;\tsize:8;\tsigned:0;\n"
		      "\tfield:const void * at;\toffset:24;\tsize:8;\tsigned:0;\n"
		      "\tfield:bool on;\toffset:32;\tsize:1;\tsigned:0;\n",
		      0);

	(void)state;
	assert_int_equal(probe->type_id, 362);
	assert_int_equal(probe->field_count, 4); /* none is common_pid */
	assert_int_equal(probe->fields[0].type, PEM_TYPE_INT32);
	assert_int_equal(probe->fields[0].location.offset, 8);
	assert_int_equal(probe->fields[1].type, PEM_TYPE_UINT64);
	assert_int_equal(probe->fields[1].base, 16);
	assert_int_equal(probe->fields[2].type, PEM_TYPE_ADDRESS);
	assert_string_equal(probe->fields[2].name, "at");
	assert_int_equal(probe->fields[3].type, PEM_TYPE_UINT8);
	pem_probe__free(probe);
}

static void strings_arrays_and_lists(void **state)
{
	struct pem_probe *probe =
		parse("\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		      "\tfield:__data_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;\n"
		      "\tfield:unsigned long args[6];\toffset:32;\tsize:48;\tsigned:0;\n"
		      "\tfield:__rel_loc u16[] words;\toffset:80;\tsize:4;\tsigned:0;\n"
		      "\tfield:struct thing it;\toffset:84;\tsize:12;\tsigned:0;\n",
		      0);
	const struct pem_probe_field *f = probe->fields;

	(void)state;
	assert_int_equal(probe->field_count, 5);
	assert_int_equal(f[0].type, PEM_TYPE_STRING);
	assert_int_equal(f[0].max_count, 16);
	assert_int_equal(f[0].location.kind, PEM_LOCATION_BYTES);
	assert_int_equal(f[1].type, PEM_TYPE_STRING);
	assert_int_equal(f[1].location.kind, PEM_LOCATION_DATA_LOC);
	assert_int_equal(f[2].type, PEM_TYPE_ARRAY);
	assert_int_equal(f[2].element_type, PEM_TYPE_UINT64);
	assert_int_equal(f[2].max_count, 6);
	assert_int_equal(f[3].type, PEM_TYPE_LIST);
	assert_int_equal(f[3].element_type, PEM_TYPE_UINT16);
	assert_int_equal(f[3].location.kind, PEM_LOCATION_REL_LOC);
	assert_int_equal(f[4].type, PEM_TYPE_ARRAY); /* raw bytes */
	assert_int_equal(f[4].max_count, 12);
	pem_probe__free(probe);
}

static void names_that_are_alike_are_told_apart(void **state)
{
	struct pem_probe *probe = parse("\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
					"\tfield:int a;\toffset:12;\tsize:4;\tsigned:1;\n",
					0);

	(void)state;
	assert_string_equal(probe->fields[0].name, "a");
	assert_string_equal(probe->fields[1].name, "a_2");
	pem_probe__free(probe);
}

/* A list of the trace has a member of its own for its length. */
static void lengths_of_lists_are_told_apart_from_fields(void **state)
{
	struct pem_probe *probe =
		parse("\tfield:__data_loc u16[] words;\toffset:8;\tsize:4;\tsigned:0;\n"
		      "\tfield:int words_length;\toffset:12;\tsize:4;\tsigned:1;\n"
		      "\tfield:int words_2_length;\toffset:16;\tsize:4;\tsigned:1;\n"
		      "\tfield:int number;\toffset:20;\tsize:4;\tsigned:1;\n"
		      "\tfield:int number_length;\toffset:24;\tsize:4;\tsigned:1;\n",
		      0);

	(void)state;
	assert_string_equal(probe->fields[0].name, "words_3");
	assert_string_equal(probe->fields[1].name, "words_length");
	assert_string_equal(probe->fields[3].name, "number");
	pem_probe__free(probe);
}

static void what_is_no_format_is_refused(void **state)
{
	struct pem_probe *probe = pem_probe__new(PEM_PROBE_TRACEPOINT, "s:x", "OS", "s", "x");

	(void)state;
	assert_int_equal(pem_format__parse(probe, ""), -EINVAL);
	assert_int_equal(pem_format__parse(probe, "ID: 0\n"), -EINVAL);
	pem_probe__free(probe);
	pem_probe__free(parse("\tfield:int a;\toffset:8;\n", -EINVAL));
	pem_probe__free(parse("\tfield:int;\toffset:8;\tsize:4;\tsigned:1;\n", -EINVAL));
	pem_probe__free(parse("\tfield:int a[;\toffset:8;\tsize:4;\tsigned:1;\n", -EINVAL));
	pem_probe__free(parse("\tfield:int a;\toffset:9000;\tsize:4;\tsigned:1;\n", -EINVAL));
	pem_probe__free(parse("\tfield:int a;\toffset:8190;\tsize:4;\tsigned:1;\n", -EINVAL));
	pem_probe__free(
		parse("\tfield:__data_loc char[] a;\toffset:8;\tsize:8;\tsigned:0;\n", -EINVAL));
}

#if defined(__x86_64__)
#define COUNTED 1
#define REGISTER "%rdi"
#define TEXT "-4@%edi 8@-16(%rbp) 1@(%rax,%rbx,8) 2@$-3 8f@%xmm0 4@count(%rip) 8@%r9"
#else
#define COUNTED -EINVAL
#define REGISTER "x0"
#define TEXT "-4@w0 8@[sp, -16] 1@[x1, x2] 2@-3 8f@q0 4@count 8@x5"
#endif

static void arguments_of_static_probes(void **state)
{
	static const int wanted[] = {1, 1, 1, 1, -EINVAL, COUNTED, 1, 0};
	struct pem_usdt_argument a[8];
	const char *text = TEXT;
	unsigned i;

	(void)state;
	for (i = 0; i < 8; i++)
		assert_int_equal(pem_usdt_argument__next(&text, &a[i]), wanted[i]);
	assert_int_equal(a[0].location.kind, PEM_LOCATION_CONTEXT);
	assert_int_equal(a[0].location.offset,
			 pem_register__offset(&REGISTER[REGISTER[0] == '%'],
					      strlen(REGISTER) - (REGISTER[0] == '%')));
	assert_int_equal(a[0].location.offset, pem_register__argument(0));
	assert_int_equal(a[0].bytes, 4);
	assert_true(a[0].is_signed);
	assert_int_equal(a[1].location.kind, PEM_LOCATION_USER);
	assert_int_equal(a[1].location.constant, -16);
	assert_int_equal(a[1].location.load_bytes, 8);
	assert_int_equal(a[2].location.kind, PEM_LOCATION_USER);
	assert_int_not_equal(a[2].location.index_offset, PEM_LOCATION_NO_REGISTER);
	assert_int_equal(a[3].location.kind, PEM_LOCATION_CONSTANT);
	assert_int_equal(a[3].location.constant, -3);
	assert_int_equal(a[6].location.offset, pem_register__argument(5));
}

/* Only x86 has instructions that count from their own place. */
static void arguments_that_are_variables(void **state)
{
#if defined(__x86_64__)
	const char *text = "-4@40+Stats.a(%rip) 8@Count(%rip) 8@Count+8(%rip) 8@16(%rip) 8@(%rip";
	struct pem_usdt_argument a;

	(void)state;
	assert_int_equal(pem_usdt_argument__next(&text, &a), 1);
	assert_int_equal(a.location.kind, PEM_LOCATION_USER);
	assert_int_equal(a.location.offset, pem_register__offset("rip", 3));
	assert_int_equal(a.location.constant, 40);
	assert_int_equal(a.symbol_bytes, strlen("Stats.a"));
	assert_int_equal(pem_usdt_argument__next(&text, &a), 1);
	assert_int_equal(a.location.constant, 0);
	assert_int_equal(pem_usdt_argument__next(&text, &a), 1);
	assert_int_equal(a.location.constant, 8);
	assert_memory_equal(a.symbol, "Count+8", 7);
	assert_int_equal(pem_usdt_argument__next(&text, &a), -EINVAL);
	assert_int_equal(pem_usdt_argument__next(&text, &a), -EINVAL);
#else
	(void)state;
	print_message("# compilers write such arguments for x86-64\n");
	skip();
#endif
}

/* Only arm64 says with an index how it is extended and shifted. */
static void arguments_with_an_index(void **state)
{
#if defined(__aarch64__)
	static const struct {
		uint8_t index, shift;
	} wanted[] = {{PEM_INDEX_WHOLE, 0},
		      {PEM_INDEX_WHOLE, 3},
		      {PEM_INDEX_SIGNED_WORD, 2},
		      {PEM_INDEX_WORD, 0}};
	const char *text = "8@[x1, x2] 8@[x1, x2, lsl 3] 4@[x1, w2, sxtw 2] 1@[x1, w2, uxtw] "
			   "8@[x1, x2, lsl 4] 8@[x1, x2, ror 1] 8@[x1, x2, lsl 3";
	struct pem_usdt_argument a;
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(pem_usdt_argument__next(&text, &a), 1);
		assert_int_equal(a.location.kind, PEM_LOCATION_USER);
		assert_int_equal(a.location.offset, pem_register__argument(1));
		assert_int_equal(a.location.index_offset, pem_register__argument(2));
		assert_int_equal(a.location.index, wanted[i].index);
		assert_int_equal(a.location.shift, wanted[i].shift);
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(pem_usdt_argument__next(&text, &a), -EINVAL);
#else
	(void)state;
	print_message("# compilers write such arguments for arm64\n");
	skip();
#endif
}

static void patterns_of_locations(void **state)
{
	(void)state;
	assert_true(pem_probe__is_pattern("sched:*"));
	assert_true(pem_probe__is_pattern("fentry:vfs_read"));
	assert_true(pem_probe__is_pattern("usdt:/a/b:c:d"));
	assert_false(pem_probe__is_pattern("OS::Sched::Switch"));
	assert_false(pem_probe__is_pattern("Sched"));
	assert_false(pem_probe__is_pattern(":x"));
	assert_false(pem_probe__is_pattern("x:"));
	assert_false(pem_probe__is_pattern("../etc:passwd"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_their_size_and_sign),
		cmocka_unit_test(strings_arrays_and_lists),
		cmocka_unit_test(names_that_are_alike_are_told_apart),
		cmocka_unit_test(lengths_of_lists_are_told_apart_from_fields),
		cmocka_unit_test(what_is_no_format_is_refused),
		cmocka_unit_test(arguments_of_static_probes),
		cmocka_unit_test(arguments_that_are_variables),
		cmocka_unit_test(arguments_with_an_index),
		cmocka_unit_test(patterns_of_locations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
