/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * main.c - pem-exercise: does what programs do that are observed, and measures what that takes
 *
 * "pem-exercise allocate" measures a pair of malloc and free: cycles with warm caches, and with
 * cold ones. "pem-exercise switch" measures CPU time in ns of a switch to another process, of a
 * page fault, and of a process that is started and ends.
 *
 * libpem runs it plain and observed (cost/libc_cost.c, cost/counting_cost.c), and reads the result,
 * which are doubles, from its standard output. The C library is used as any program uses it.
 */
#define _GNU_SOURCE
#include "cost/cost.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 3000
#define ROUNDS 11
#define STEPS 50
#define STARTS 4

static void *volatile kept;

static void allocate(void *arg)
{
	unsigned *count = arg;

	kept = malloc(24 + (*count)++ % 4 * 16);
	free(kept);
}

/* --- switches, faults and starts --- */

struct exercise {
	int there[2], back[2];
	pid_t other;
	uint8_t *page;
};

static double clock_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The CPU time of this process, of the other one, and of those that have ended. */
static double cpu_ns(const struct exercise *e)
{
	struct rusage ended;
	clockid_t other;

	if (getrusage(RUSAGE_CHILDREN, &ended) || clock_getcpuclockid(e->other, &other))
		return 0;
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) + clock_ns(other) +
	       (double)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * 1e9 +
	       (double)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec) * 1e3;
}

static void answer(struct exercise *e)
{
	char byte;

	while (read(e->there[0], &byte, 1) == 1 && write(e->back[1], &byte, 1) == 1)
		;
	_exit(0);
}

static void switch_over(struct exercise *e)
{
	char byte = 0;

	if (write(e->there[1], &byte, 1) != 1 || read(e->back[0], &byte, 1) != 1)
		_exit(1);
}

static void fault(struct exercise *e)
{
	madvise(e->page, (size_t)sysconf(_SC_PAGESIZE), MADV_DONTNEED);
	*(volatile uint8_t *)e->page = 1;
}

static void start(struct exercise *e)
{
	pid_t child = fork();

	(void)e;
	if (!child)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		_exit(1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median_ns(void (*step)(struct exercise *), unsigned steps, struct exercise *e)
{
	double rounds[ROUNDS], begin;
	unsigned r, i;

	for (r = 0; r < ROUNDS; r++) {
		begin = cpu_ns(e);
		for (i = 0; i < steps; i++)
			step(e);
		rounds[r] = (cpu_ns(e) - begin) / steps;
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_value);
	return rounds[ROUNDS / 2];
}

/* Both processes are bound to one CPU. A switch to and fro is two of them. */
static int measure_counted(void)
{
	int cpu = sched_getcpu();
	struct exercise e;
	double result[3];
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu < 0 ? 0 : (unsigned)cpu, &one);
	e.page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (e.page == MAP_FAILED || sched_setaffinity(0, sizeof(one), &one) || pipe(e.there) ||
	    pipe(e.back))
		return 1;
	e.other = fork();
	if (e.other < 0)
		return 1;
	close(e.there[e.other ? 0 : 1]);
	if (!e.other)
		answer(&e);
	result[0] = median_ns(switch_over, STEPS, &e) / 2;
	result[1] = median_ns(fault, STEPS, &e);
	result[2] = median_ns(start, STARTS, &e);
	return write(STDOUT_FILENO, result, sizeof(result)) != sizeof(result);
}

int main(int argc, char **argv)
{
	unsigned count = 0;
	struct pem_step pair;

	if (argc == 2 && !strcmp(argv[1], "switch"))
		return measure_counted();
	if (argc != 2 || strcmp(argv[1], "allocate") != 0)
		return 1;
	pair = pem_step__measure(allocate, PAIRS, NULL, &count);
	return write(STDOUT_FILENO, &pair, sizeof(pair)) != sizeof(pair);
}
