/* SPDX-License-Identifier: MIT */
/* kernel_names.c - functions of the kernel by its list: what is one, and how far it reaches */
#include "libpem/names/symbol_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* As a kernel writes it, shortened. */
static char kernel[] = "ffffffff81000000 T _stext\n"
		       "ffffffff81000000 T _text\n"
		       "ffffffff81000100 T do_one\n"
		       "ffffffff81000180 t __pfx_do_two\n"
		       "ffffffff81000190 t do_two\n"
		       "ffffffff81000200 T __irqentry_text_start\n"
		       "ffffffff81000200 T common_interrupt\n"
		       "ffffffff81000200 T __cpuidle_text_end\n"
		       "ffffffff81000300 D a_table\n"
		       "ffffffff81000400 T last\n"
		       "ffffffff81000500 T _etext\n"
		       "ffffffffc0001000 t first_of\t[ext4]\n"
		       "ffffffffc0001100 t last_of\t[ext4]\n"
		       "ffffffffc0002000 t bpf_prog_1234_hot\t[bpf]\n"
		       "ffffffffc0003000 t other_of\t[xfs]\n"
		       "0000000000000000 T hidden\n"
		       "no line\n";

static void expect(uint64_t address, const char *name)
{
	struct symbol_list list = {0};
	FILE *f = fmemopen(kernel, strlen(kernel), "r");
	const struct symbol *symbol;
	const char *found;

	assert_non_null(f);
	assert_int_equal(kernel_names__read(f, &list), 0);
	symbol = symbol_list__at(&list, address);
	found = symbol ? list.text + symbol->name : NULL;
	if (!name != !found || (name && strcmp(name, found)))
		fail_msg("%llx: '%s'", (unsigned long long)address, found ? found : "nothing");
	symbol_list__free(&list);
	fclose(f);
}

static void a_function_reaches_up_to_the_next(void **state)
{
	(void)state;
	expect(0xffffffff81000100, "do_one");
	expect(0xffffffff8100017f, "do_one");
	expect(0xffffffff81000190, "do_two");
	expect(0xffffffff810001ff, "do_two");
}

static void labels_of_the_linker_are_no_functions(void **state)
{
	(void)state;
	expect(0xffffffff81000010, NULL);
	expect(0xffffffff81000200, "common_interrupt");
	expect(0xffffffff81000310, "common_interrupt"); /* nothing says where it ends */
}

static void behind_the_last_of_a_module_nothing_is_known(void **state)
{
	(void)state;
	expect(0xffffffffc0001050, "first_of [ext4]");
	expect(0xffffffffc0001100, "last_of [ext4]");
	expect(0xffffffffc0001101, NULL);
	expect(0xffffffff81000450, NULL);
}

static void what_bpf_programs_were_is_not_known(void **state)
{
	(void)state;
	expect(0xffffffffc0002000, NULL);
	expect(0xffffffffc0002040, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_reaches_up_to_the_next),
		cmocka_unit_test(labels_of_the_linker_are_no_functions),
		cmocka_unit_test(behind_the_last_of_a_module_nothing_is_known),
		cmocka_unit_test(what_bpf_programs_were_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
