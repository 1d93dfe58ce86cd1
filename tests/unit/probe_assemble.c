/* SPDX-License-Identifier: MIT */
/*
 * probe_assemble.c - gaps of a template filled: constants, blocks, jumps across them, what does not
 * fit
 *
 * The template here is a small one of the test's own. That the real one's programs do what they
 * should is for the kernel to show (tests/e2e/probe_kernel.py and probe_binary.py).
 */
#ifdef PEM_TEST_LIBBPF
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "libpem/sources/kernel/attach/assemble.h"

#include <pem/kprobe.h>

#define COUNT_MAX 4096

static struct bpf_insn insns[COUNT_MAX];
static size_t count;

static void put(uint8_t code, uint8_t to, uint8_t from, int16_t offset, int32_t number)
{
	insns[count++] = (struct bpf_insn){
		.code = code, .dst_reg = to, .src_reg = from, .off = offset, .imm = number};
}

static void put_gap(int32_t magic, unsigned room)
{
	unsigned i;

	put(BPF_ALU64 | BPF_MOV | BPF_K, 8, 0, 0, magic);
	for (i = 0; i < 3; i++)
		put(BPF_ALU64 | BPF_MOV | BPF_X, 8, 6, 0, 0);
	for (i = 0; i < room; i++)
		put(BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

/* Constants, then a jump over the three gaps to the end, then these. */
static void make_template(void)
{
	size_t jump;

	count = 0;
	put(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, PEM_KPROBE_INDEX);
	put(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, PEM_KPROBE_SHARED);
	put(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, PEM_KPROBE_BYTES);
	put(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, PEM_KPROBE_ID);
	jump = count;
	put(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0, 0);
	put_gap(PEM_KPROBE_FETCH, PEM_KPROBE_FETCH_ROOM);
	put_gap(PEM_KPROBE_TEST, PEM_KPROBE_TEST_ROOM);
	put_gap(PEM_KPROBE_FILL, PEM_KPROBE_FILL_ROOM);
	insns[jump].off = (int16_t)(count - jump - 1);
	put(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0);
	put(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* A tracepoint's probe of so many numbers, and its event, laid out by hand. */
static struct pem_probe *probe_of(unsigned numbers, struct pem_event *event,
				  struct pem_field *fields)
{
	struct pem_probe *probe = pem_probe__new(PEM_PROBE_TRACEPOINT, "s:x", "OS", "s", "x");
	struct pem_probe_field *field;
	char name[16];
	unsigned i;

	for (i = 0; i < numbers; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		field = pem_probe__add_field(probe, name);
		pem_probe_field__set_number(field, 4, true);
		field->location = (struct pem_argument_location){.kind = PEM_LOCATION_CONTEXT,
								 .load_bytes = 4,
								 .offset = (uint16_t)(8 + 4 * i)};
	}
	pem_probe__as_event(probe, event, fields);
	for (i = 0; i < numbers; i++)
		fields[i].offset = (uint16_t)(8 + 4 * i);
	event->id = 0x80000001u;
	event->fixed_bytes = (uint16_t)(8 + 4 * numbers);
	event->max_bytes = (uint16_t)((event->fixed_bytes + 7) & ~7);
	return probe;
}

static void nothing_of_the_gaps_is_left(void **state)
{
	struct pem_field fields[PEM_PROBE_FIELDS_MAX];
	struct pem_error error = {""};
	struct pem_event event;
	struct pem_probe *probe = probe_of(2, &event, fields);
	const struct pem_assembly assembly = {.probe = probe, .event = &event, .index = 700};
	ssize_t n, i;

	(void)state;
	make_template();
	n = pem_assemble(&assembly, insns, count, &error);
	assert_true(n > 0 && n < 60);
	assert_int_equal(insns[0].imm, 700);
	assert_int_equal(insns[1].imm, 0);
	assert_int_equal(insns[2].imm, 16);
	assert_int_equal((uint32_t)insns[3].imm, 0x80000001u);
	for (i = 0; i < n; i++)
		assert_false(insns[i].code == (BPF_JMP | BPF_JA) && !insns[i].off);
	/* The jump over the gaps leads to where it did. */
	assert_int_equal(insns[4].code, BPF_JMP | BPF_JEQ | BPF_K);
	assert_int_equal(4 + 1 + insns[4].off, n - 2);
	assert_int_equal(insns[n - 1].code, BPF_JMP | BPF_EXIT);
	pem_probe__free(probe);
}

static void tests_jump_within_the_program(void **state)
{
	const struct pem_test tests[] = {
		{.mask = ~0ull, .end = 12, .on_true = 1, .on_false = PEM_TEST_FAIL},
		{.mask = ~0ull, .end = 16, .on_true = PEM_TEST_PASS, .on_false = PEM_TEST_FAIL}};
	struct pem_field fields[PEM_PROBE_FIELDS_MAX];
	struct pem_error error = {""};
	struct pem_event event;
	struct pem_probe *probe = probe_of(2, &event, fields);
	struct pem_assembly assembly = {
		.probe = probe, .event = &event, .tests = tests, .test_count = 2};
	ssize_t n, i, to;

	(void)state;
	make_template();
	n = pem_assemble(&assembly, insns, count, &error);
	assert_true(n > 0);
	for (i = 0; i < n; i++) {
		if (insns[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++;
		else if ((insns[i].code & 7) == BPF_JMP && insns[i].code != (BPF_JMP | BPF_EXIT) &&
			 insns[i].code != (BPF_JMP | BPF_CALL)) {
			to = i + 1 + insns[i].off;
			assert_true(to > i && to < n);
		}
	}
	pem_probe__free(probe);
}

static void what_can_not_be_tested_is_said(void **state)
{
	const struct pem_test beyond = {
		.end = 8 + 4 * (PEM_KPROBE_WORDS + 1), .on_true = PEM_TEST_PASS, .on_false = 255};
	const struct pem_test backwards[] = {{.end = 12, .on_true = 1, .on_false = 255},
					     {.end = 12, .on_true = 0, .on_false = 255}};
	struct pem_field fields[PEM_PROBE_FIELDS_MAX];
	struct pem_error error = {""};
	struct pem_event event;
	struct pem_probe *probe = probe_of(PEM_KPROBE_WORDS + 2, &event, fields);
	struct pem_assembly assembly = {
		.probe = probe, .event = &event, .tests = &beyond, .test_count = 1};

	(void)state;
	make_template();
	assert_int_equal(pem_assemble(&assembly, insns, count, &error), -EDOM);
	assert_non_null(strstr(error.text, "predicate"));
	assembly.tests = backwards;
	assembly.test_count = 2;
	make_template();
	assert_true(pem_assemble(&assembly, insns, count, &error) < 0);
	pem_probe__free(probe);
}

static void another_template_is_refused(void **state)
{
	struct pem_field fields[PEM_PROBE_FIELDS_MAX];
	struct pem_error error = {""};
	struct pem_event event;
	struct pem_probe *probe = probe_of(1, &event, fields);
	const struct pem_assembly assembly = {.probe = probe, .event = &event};

	(void)state;
	make_template();
	assert_int_equal(pem_assemble(&assembly, insns, 5, &error), -EINVAL);
	assert_non_null(strstr(error.text, "build pem anew"));
	pem_probe__free(probe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_of_the_gaps_is_left),
		cmocka_unit_test(tests_jump_within_the_program),
		cmocka_unit_test(what_can_not_be_tested_is_said),
		cmocka_unit_test(another_template_is_refused),
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
