// SPDX-License-Identifier: MIT
/*
 * guest_calls.c - counts the instructions of a system call, in a guest whose cycle counter counts
 * instructions
 *
 *	guest_calls CALL BATCHES CALLS	CALL: getppid, or dup2 (of no descriptor, twice: two
 *					parameters, and no work)
 *	guest_calls run COMMAND...	prints 'ran' and the ticks from the command's start to its
 *					end; exits with its status
 *
 * For calls it prints one line: ticks of one iteration of two instructions (2 if a tick is an
 * instruction), then per call the median and the mean of BATCHES batches of CALLS calls. The median
 * is that of batches without an interrupt, and is equal in every run. The mean includes what
 * happens once in many calls, such as a new chunk, and the timer's interrupts. Not here: recording
 * the calls (guest_pem.c and others), using the numbers (kernel_module.py).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define LOOPS 1000000u
#define WARM_UP 100

static double ticks_of_loop(void)
{
	uint64_t start, n = LOOPS;

	start = __rdtsc();
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
	return (double)(__rdtsc() - start) / LOOPS;
}

/* Call the kernel without a library, so that the instructions are equal for all calls. */
static uint64_t batch(long number, uint64_t calls)
{
	uint64_t start = __rdtsc(), i;
	long result;

	for (i = 0; i < calls; i++)
		__asm__ volatile("syscall"
				 : "=a"(result)
				 : "a"(number), "D"(-1L), "S"(-1L)
				 : "rcx", "r11", "memory");
	return __rdtsc() - start;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static int run(char **command)
{
	uint64_t start = __rdtsc();
	int status;
	pid_t child = fork();

	if (!child) {
		execvp(*command, command);
		perror(*command);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror(*command);
		return 1;
	}
	printf("ran %" PRIu64 "\n", (uint64_t)(__rdtsc() - start));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	uint64_t *ticks, sum = 0, batches, calls, i;
	long number;

	if (argc > 2 && !strcmp(argv[1], "run"))
		return run(argv + 2);
	if (argc != 4 || (strcmp(argv[1], "getppid") != 0 && strcmp(argv[1], "dup2") != 0)) {
		fprintf(stderr, "Use: guest_calls getppid|dup2 BATCHES CALLS, or guest_calls run "
				"COMMAND...\n");
		return 1;
	}
	number = strcmp(argv[1], "dup2") ? SYS_getppid : SYS_dup2;
	batches = strtoull(argv[2], NULL, 10);
	calls = strtoull(argv[3], NULL, 10);
	ticks = batches && calls ? calloc(batches, sizeof(*ticks)) : NULL;
	if (!ticks) {
		fprintf(stderr, "guest_calls: %s\n",
			batches && calls ? strerror(errno) : "nothing to do");
		return 1;
	}
	memset(ticks, 1, batches * sizeof(*ticks)); /* avoids page faults later */
	batch(number, WARM_UP);
	for (i = 0; i < batches; i++)
		ticks[i] = batch(number, calls);
	for (i = 0; i < batches; i++)
		sum += ticks[i];
	qsort(ticks, batches, sizeof(*ticks), by_value);
	printf("%.4f %.4f %.4f\n", ticks_of_loop(), (double)ticks[batches / 2] / (double)calls,
	       (double)sum / (double)(batches * calls));
	return 0;
}
