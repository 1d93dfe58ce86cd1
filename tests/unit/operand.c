// SPDX-License-Identifier: MIT
/* operand.c - which data an instruction touches (pem/operand.h) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pem/operand.h>

#include <stdlib.h>
#include <string.h>

/* xor %rdx,0x0(%r13,%rdi,8), which gups waits for; bytes without and with a meaning before it. */
#define RMW 0x49, 0x31, 0x54, 0xfd, 0x00
#define NOPS                                                                                       \
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90
/* and $0xfff,%eax */
#define PLAIN 0x25, 0xff, 0x0f, 0x00, 0x00

static const uint64_t registers[PEM_OPERAND_REGISTERS] = {
	[PEM_OPERAND_AX] = 0x10000000, [PEM_OPERAND_BX] = 0x20000000,
	[PEM_OPERAND_DI] = 0x30,       [PEM_OPERAND_SP] = 0x7ffe1000,
	[PEM_OPERAND_IP] = 0x401000,   [PEM_OPERAND_R13] = 0x50000000};

static struct pem_decoder *decoder;
static struct pem_operand operand; /* what was found last */

static int set_up(void **state)
{
	(void)state;
	decoder = pem_decoder__new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pem_decoder__free(decoder);
	return 0;
}

static void need_decoder(void)
{
	if (decoder)
		return;
	print_message("instructions can't be decoded here: capstone, or x86-64, is missing\n");
	skip();
}

/* The address of code with so many bytes before the sampled one; 0: none. */
static uint64_t address_of(const uint8_t *code, size_t bytes, size_t before)
{
	struct pem_code_bytes around = {.before = (uint8_t)before,
					.after = (uint8_t)(bytes - before)};
	memcpy(around.bytes + PEM_OPERAND_CODE_BEFORE - before, code, bytes);
	if (pem_decoder__operand(decoder, &around, registers, &operand))
		return operand.address;
	operand.access = UINT32_MAX;
	return 0;
}

#define ADDRESS(before, ...)                                                                       \
	address_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), before)

static void the_instruction_before_is_the_one_that_waited(void **state)
{
	(void)state;
	need_decoder();
	assert_int_equal(ADDRESS(25, PLAIN, NOPS, RMW, PLAIN), 0x50000000 + 8 * 0x30);
}

static void without_memory_before_it_is_the_one_there(void **state)
{
	(void)state;
	need_decoder();
	/* addl $1,(%rax) */
	assert_int_equal(ADDRESS(20, NOPS, PLAIN, 0x83, 0x00, 0x01), 0x10000000);
	/* The first of its page. */
	assert_int_equal(ADDRESS(0, RMW), 0x50000000 + 8 * 0x30);
}

static void bytes_that_end_like_another_instruction_don_t_mislead(void **state)
{
	(void)state;
	need_decoder();
	/* movabs $0x00030b48c3c3c3c3,%rcx ends as add (%rbx),%eax does. */
	assert_int_equal(ADDRESS(25, NOPS, 0x48, 0xb9, 0xc3, 0xc3, 0xc3, 0xc3, 0x48, 0x0b, 0x03,
				 0x00, 0x83, 0x00, 0x01),
			 0x10000000);
}

static void most_of_what_can_be_read_decides(void **state)
{
	(void)state;
	need_decoder();
	/* add $0xb948,%ecx; addl $1,(%rbx), twice; from the third byte on it is one movabs. */
	assert_int_equal(ADDRESS(12, 0x81, 0xc1, 0x48, 0xb9, 0x00, 0x00, 0x83, 0x03, 0x01, 0x83,
				 0x03, 0x01, PLAIN),
			 0x20000000);
}

static void operands_relate_to_the_next_instruction(void **state)
{
	(void)state;
	need_decoder();
	/* mov 0x100(%rip),%eax, before and at 0x401000 */
	assert_int_equal(ADDRESS(21, NOPS, 0x8b, 0x05, 0x00, 0x01, 0x00, 0x00, PLAIN), 0x401100);
	assert_int_equal(ADDRESS(15, NOPS, 0x8b, 0x05, 0x00, 0x01, 0x00, 0x00), 0x401106);
}

static void addresses_of_32_bits_are_cut(void **state)
{
	(void)state;
	need_decoder();
	/* mov 0x7fffffff(%eax,%eax,8),%ecx with an address-size prefix */
	assert_int_equal(ADDRESS(23, NOPS, 0x67, 0x8b, 0x8c, 0xc0, 0xff, 0xff, 0xff, 0x7f, PLAIN),
			 (uint32_t)(0x10000000 * UINT64_C(9) + 0x7fffffff));
}

static void what_reads_nothing_is_at_no_data(void **state)
{
	(void)state;
	need_decoder();
	/* lea 8(%rax),%rdx; nopw 0(%rax,%rax) */
	assert_int_equal(ADDRESS(19, NOPS, 0x48, 0x8d, 0x50, 0x08, PLAIN), 0);
	assert_int_equal(ADDRESS(21, NOPS, 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00, PLAIN), 0);
}

static void what_registers_don_t_tell_is_at_no_data(void **state)
{
	(void)state;
	need_decoder();
	/* mov %fs:8(%rax),%rax */
	assert_int_equal(ADDRESS(20, NOPS, 0x64, 0x48, 0x8b, 0x40, 0x08, PLAIN), 0);
	/* vpgatherdd %ymm1,(%rax,%ymm2,4),%ymm0 */
	assert_int_equal(ADDRESS(21, NOPS, 0xc4, 0xe2, 0x75, 0x90, 0x04, 0x90, PLAIN), 0);
}

static void calls_and_pushes_are_at_the_stack(void **state)
{
	(void)state;
	need_decoder();
	assert_int_equal(ADDRESS(16, NOPS, 0x55, PLAIN), 0x7ffe1000);
	assert_int_equal(ADDRESS(15, NOPS, 0xe8, 0x00, 0x00, 0x00, 0x00), 0x7ffe1000);
}

static void a_decoder_remembers_no_other_code(void **state)
{
	(void)state;
	need_decoder();
	assert_int_equal(ADDRESS(20, NOPS, RMW, PLAIN), 0x50000000 + 8 * 0x30);
	/* addl $1,(%rbx), three bytes long, in its place */
	assert_int_equal(ADDRESS(20, NOPS, 0x90, 0x90, 0x83, 0x03, 0x01, PLAIN), 0x20000000);
}

static void any_bytes_are_decoded_or_not(void **state)
{
	struct pem_code_bytes code = {.before = PEM_OPERAND_CODE_BEFORE,
				      .after = PEM_OPERAND_INSTRUCTION_MAX};
	unsigned seed = 7, i, j, found = 0;

	(void)state;
	need_decoder();
	for (i = 0; i < 2000; i++) {
		for (j = 0; j < sizeof(code.bytes); j++)
			code.bytes[j] = (uint8_t)rand_r(&seed);
		found += (unsigned)pem_decoder__operand(decoder, &code, registers, &operand);
	}
	assert_in_range(found, 1, 1999);
}

static void an_instruction_that_goes_elsewhere_was_not_before(void **state)
{
	(void)state;
	need_decoder();
	/* jmp *(%rbx), and ret, before addl $1,(%rax) */
	assert_int_equal(ADDRESS(17, NOPS, 0xff, 0x23, 0x83, 0x00, 0x01), 0x10000000);
	assert_int_equal(ADDRESS(16, NOPS, 0xc3, 0x83, 0x00, 0x01), 0x10000000);
}

static void loads_are_told_from_stores(void **state)
{
	(void)state;
	need_decoder();
	/* mov (%rax),%ecx; mov %ecx,(%rax); cmp %ecx,(%rax) */
	ADDRESS(17, NOPS, 0x8b, 0x08, PLAIN);
	assert_int_equal(operand.access, PEM_ACCESS_LOAD);
	ADDRESS(17, NOPS, 0x89, 0x08, PLAIN);
	assert_int_equal(operand.access, PEM_ACCESS_STORE);
	ADDRESS(17, NOPS, 0x39, 0x08, PLAIN);
	assert_int_equal(operand.access, PEM_ACCESS_LOAD);
	/* It reads and writes. */
	ADDRESS(20, NOPS, RMW, PLAIN);
	assert_int_equal(operand.access, PEM_ACCESS_STORE);
	/* push %rbp; pop %rbp */
	ADDRESS(16, NOPS, 0x55, PLAIN);
	assert_int_equal(operand.access, PEM_ACCESS_STORE);
	ADDRESS(16, NOPS, 0x5d, PLAIN);
	assert_int_equal(operand.access, PEM_ACCESS_LOAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_instruction_before_is_the_one_that_waited),
		cmocka_unit_test(without_memory_before_it_is_the_one_there),
		cmocka_unit_test(bytes_that_end_like_another_instruction_don_t_mislead),
		cmocka_unit_test(most_of_what_can_be_read_decides),
		cmocka_unit_test(operands_relate_to_the_next_instruction),
		cmocka_unit_test(addresses_of_32_bits_are_cut),
		cmocka_unit_test(what_reads_nothing_is_at_no_data),
		cmocka_unit_test(what_registers_don_t_tell_is_at_no_data),
		cmocka_unit_test(calls_and_pushes_are_at_the_stack),
		cmocka_unit_test(a_decoder_remembers_no_other_code),
		cmocka_unit_test(any_bytes_are_decoded_or_not),
		cmocka_unit_test(an_instruction_that_goes_elsewhere_was_not_before),
		cmocka_unit_test(loads_are_told_from_stores),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
