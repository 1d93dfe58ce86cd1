// SPDX-License-Identifier: MIT
/* page_size_timer.c - data that timer samples find in a program (agents/page-size/timer) */
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
	return cmocka_run_group_tests(tests, NULL, NULL);
}
