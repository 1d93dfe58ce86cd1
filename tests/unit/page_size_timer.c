// SPDX-License-Identifier: MIT
/*
 * page_size_timer.c - data that timer samples find, by instructions and in a program
 * (agents/page-size/timer)
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "timer/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* --- instructions --- */

/* xor %rdx,0x0(%r13,%rdi,8), which gups waits for; bytes without and with a meaning before it. */
#define RMW 0x49, 0x31, 0x54, 0xfd, 0x00
#define NOPS                                                                                       \
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90
/* and $0xfff,%eax */
#define PLAIN 0x25, 0xff, 0x0f, 0x00, 0x00

static const uint64_t registers[TIMER_REGISTERS] = {
	[TIMER_AX] = 0x10000000, [TIMER_BX] = 0x20000000, [TIMER_DI] = 0x30,
	[TIMER_SP] = 0x7ffe1000, [TIMER_IP] = 0x401000,   [TIMER_R13] = 0x50000000};

static struct timer_decoder *decoder;

static int set_up(void **state)
{
	(void)state;
	decoder = timer_decoder__new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	timer_decoder__free(decoder);
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
	struct timer_code around = {.before = (uint8_t)before, .after = (uint8_t)(bytes - before)};
	uint64_t address = 0;

	memcpy(around.bytes + TIMER_CODE_BEFORE - before, code, bytes);
	return timer_decoder__address(decoder, &around, registers, &address) ? address : 0;
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
	struct timer_code code = {.before = TIMER_CODE_BEFORE, .after = TIMER_INSTRUCTION_MAX};
	uint64_t address;
	unsigned seed = 7, i, j, found = 0;

	(void)state;
	need_decoder();
	for (i = 0; i < 2000; i++) {
		for (j = 0; j < sizeof(code.bytes); j++)
			code.bytes[j] = (uint8_t)rand_r(&seed);
		found += (unsigned)timer_decoder__address(decoder, &code, registers, &address);
	}
	assert_in_range(found, 1, 1999);
}

/* --- a program --- */

#define TABLE_BYTES (64u << 20)

static double used_s(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* What is sampled is the program's own work, and none of a sanitizer. */
#define PLAIN_CODE __attribute__((no_sanitize("address", "thread", "undefined")))

/* Random updates, until so much processor time is used. */
PLAIN_CODE static void update_until(volatile uint64_t *table, double seconds)
{
	uint64_t number = 1;
	int i;

	while (used_s() < seconds) {
		for (i = 0; i < 100000; i++) {
			number = number * 6364136223846793005u + 1442695040888963407u;
			table[(number >> 33) % (TABLE_BYTES / 8)] ^= number;
		}
	}
}

/* What runs sampled: updates of a table, and of another one for as long again. */
static int update(double seconds, bool twice)
{
	uint64_t *tables = mmap(NULL, 2 * TABLE_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (tables == MAP_FAILED)
		return 1;
	printf("%" PRIuPTR "\n", (uintptr_t)tables);
	fflush(stdout);
	update_until(tables, seconds);
	if (twice)
		update_until(tables + TABLE_BYTES / 8, 2 * seconds);
	return 0;
}

/* Or the kernel works for it: what is read is not looked at. */
static int read_zeros(double seconds)
{
	static char room[1 << 20];
	int fd = open("/dev/zero", O_RDONLY);

	printf("0\n");
	fflush(stdout);
	while (used_s() < seconds)
		if (syscall(SYS_read, fd, room, sizeof(room)) <= 0)
			return 1;
	return 0;
}

/* Run a program to its end: the number that it says. */
static uint64_t run_program(const char *file, char *const words[], pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int ends[2], status;
	char line[64] = "";
	FILE *output;

	assert_int_equal(pipe(ends), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	assert_int_equal(posix_spawn(pid, file, &actions, NULL, words, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	output = fdopen(ends[0], "r");
	assert_non_null(fgets(line, sizeof(line), output));
	fclose(output);
	assert_int_equal(waitpid(*pid, &status, 0), *pid);
	assert_int_equal(status, 0);
	return strtoull(line, NULL, 10);
}

/* This program's other half: where its table was. */
static uint64_t run_self(const char *what, const char *seconds, pid_t *pid)
{
	char *words[] = {"page_size_timer", (char *)what, (char *)seconds, NULL};

	return run_program("/proc/self/exe", words, pid);
}

static struct timer *start_timer(uint32_t rate_hz)
{
	struct pem_error error;
	struct timer *timer = timer__start(rate_hz, &error);

	if (timer)
		return timer;
	assert_in_range(strlen(error.text), 1, sizeof(error.text) - 1);
	print_message("%s\n", error.text);
	skip();
	return NULL;
}

/* How many of the samples of a process have an address, and how many that of its table. */
static size_t count_samples(const struct timer_result *result, pid_t pid, uint64_t table,
			    size_t *inside)
{
	size_t i, count = 0;

	*inside = 0;
	for (i = 0; i < result->count; i++) {
		if (result->addresses[i].pid != pid || !result->addresses[i].at)
			continue;
		count++;
		*inside += result->addresses[i].at - table < TABLE_BYTES;
	}
	return count;
}

static void samples_find_the_table_of_a_program(void **state)
{
	struct timer *timer = start_timer(997);
	struct timer_result result;
	size_t count, inside;
	uint64_t table;
	pid_t pid;

	(void)state;
	table = run_self("update", "0.3", &pid);
	timer__stop(timer, &result);
	count = count_samples(&result, pid, table, &inside);
	assert_in_range(count, 20, result.count);
	assert_in_range(inside, count / 2, count);
	/* They stand for the time that it worked, as far as a busy machine takes them. */
	assert_true((double)result.count * result.seconds_each > 0.1);
	assert_true((double)result.count * result.seconds_each < 0.6);
	free(result.addresses);
}

static void children_of_the_command_are_sampled_too(void **state)
{
	struct timer *timer = start_timer(997);
	struct timer_result result;
	pid_t pid;
	size_t i, others = 0;

	(void)state;
	run_program("/bin/sh",
		    (char *[]){"sh", "-c",
			       "i=0; (while [ $i -lt 60000 ]; do "
			       "i=$((i+1)); done); echo 0",
			       NULL},
		    &pid);
	timer__stop(timer, &result);
	for (i = 0; i < result.count; i++)
		others += result.addresses[i].pid != pid;
	assert_in_range(others, 1, result.count);
	free(result.addresses);
}

/* Samples are more than a ring holds, and than are kept; but a ring holds those of two turns. */
static void samples_of_a_long_run_are_thinned_evenly(void **state)
{
	struct timer *timer = start_timer(4001);
	struct timer_result result;
	size_t count, inside;
	uint64_t table;
	double seconds;
	pid_t pid;

	(void)state;
	table = run_self("update-two", "0.7", &pid);
	timer__stop(timer, &result);
	seconds = (double)result.count * result.seconds_each;
	count = count_samples(&result, pid, table, &inside);
	free(result.addresses);
	if (result.count < TIMER_SAMPLES_MAX / 2) {
		print_message("this kernel takes too few samples to be thinned\n");
		skip();
	}
	assert_in_range(result.count, TIMER_SAMPLES_MAX / 2, TIMER_SAMPLES_MAX);
	/* Of 1.4 s, if none was lost. */
	assert_true(seconds > 0.6 && seconds < 2);
	assert_in_range(inside, count * 3 / 10, count * 7 / 10);
}

static void time_in_the_kernel_is_nobodys_data(void **state)
{
	struct timer *timer = start_timer(997);
	struct timer_result result;
	pid_t pid;

	(void)state;
	run_self("zeros", "0.3", &pid);
	timer__stop(timer, &result);
	assert_true((double)result.count * result.seconds_each < 0.1);
	free(result.addresses);
}

static void without_a_command_there_are_no_samples(void **state)
{
	struct timer *timer = start_timer(TIMER_RATE_HZ);
	struct timer_result result;

	(void)state;
	timer__stop(timer, &result);
	assert_int_equal(result.count, 0);
	free(result.addresses);
	timer__stop(NULL, &result);
	assert_int_equal(result.count, 0);
	assert_null(result.addresses);
}

int main(int argc, char **argv)
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
		cmocka_unit_test(samples_find_the_table_of_a_program),
		cmocka_unit_test(children_of_the_command_are_sampled_too),
		cmocka_unit_test(samples_of_a_long_run_are_thinned_evenly),
		cmocka_unit_test(time_in_the_kernel_is_nobodys_data),
		cmocka_unit_test(without_a_command_there_are_no_samples),
	};

	if (argc > 2 && !strncmp(argv[1], "update", 6))
		return update(strtod(argv[2], NULL), argv[1][6]);
	if (argc > 2 && !strcmp(argv[1], "zeros"))
		return read_zeros(strtod(argv[2], NULL));
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
