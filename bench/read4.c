// SPDX-License-Identifier: MIT
/*
 * read4.c - raises events with and without counters, and reads 4 counters by the bare protocol, for
 * read4.py
 *
 *	read4 insns ROUNDS	The trace tells what each takes (below).
 *	read4 ns ROUNDS		Prints "bare N", "plain N" and "counted N": ns, median of ROUNDS
 * batches.
 *
 * It is recorded with APP::Bench::Log logged plainly, and APP::Bench::Stat with 4 counters. The
 * latter's readings tell what lies between two of them, exactly. In each round the main thread
 * raises
 *	Stat(0)
 *	Stat(1)			between: one event with counters
 *	PLAIN times Log, Stat(2)	between: the same, and PLAIN events without
 * and another thread, in which libpem has no counters open, so that 4 of its own fit, raises
 *	Log(INSTRUCTIONS, 0)	how many there were from one bare reading of 4 to the next
 * The program is not linked with libpem, which is preloaded as for any program.
 */
#include "bench/read4.h"

#include "bench_stubs/bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLAIN 8
#define BATCH 64
#define BATCHES_MAX 10000

static int rounds;
static const char *missing;

/* --- in instructions --- */

static void *read_bare(void *unused)
{
	uint64_t before[READ4_COUNT], after[READ4_COUNT];
	struct read4 counters;
	int i;

	(void)unused;
	missing = read4_open(&counters);
	for (i = 0; i < rounds && !missing; i++) {
		read4(&counters, before);
		read4(&counters, after);
		pem_notify_bench_log(
			after[READ4_USER_INSTRUCTIONS] - before[READ4_USER_INSTRUCTIONS], 0);
	}
	return NULL;
}

static void raise_events(void)
{
	int i;

	for (i = 0; i < rounds; i++) {
		pem_notify_bench_stat(0, 0);
		pem_notify_bench_stat(1, 0);
		pem_notify_bench_log(1, 0);
		pem_notify_bench_log(2, 0);
		pem_notify_bench_log(3, 0);
		pem_notify_bench_log(4, 0);
		pem_notify_bench_log(5, 0);
		pem_notify_bench_log(6, 0);
		pem_notify_bench_log(7, 0);
		pem_notify_bench_log(PLAIN, 0);
		pem_notify_bench_stat(2, 0);
	}
}

static int by_trace(void)
{
	pthread_t thread;

	raise_events();
	if (pthread_create(&thread, NULL, read_bare, NULL) || pthread_join(thread, NULL))
		return 1;
	return 0;
}

/* --- in ns --- */

static double batches[BATCHES_MAX];

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double first = *(const double *)a, second = *(const double *)b;

	return (first > second) - (first < second);
}

static void print_median(const char *what)
{
	qsort(batches, (size_t)rounds, sizeof(*batches), compare);
	printf("%s %.3f\n", what, batches[rounds / 2]);
}

/* Time a statement that uses i. */
#define TIME(what, statement)                                                                      \
	do {                                                                                       \
		int batch;                                                                         \
		uint64_t i;                                                                        \
		for (batch = 0; batch < rounds; batch++) {                                         \
			double start = now_ns();                                                   \
			for (i = 0; i < BATCH; i++)                                                \
				statement;                                                         \
			batches[batch] = (now_ns() - start) / BATCH;                               \
		}                                                                                  \
		print_median(what);                                                                \
	} while (0)

static void *time_bare(void *unused)
{
	uint64_t values[READ4_COUNT];
	struct read4 counters;

	(void)unused;
	missing = read4_open(&counters);
	if (!missing)
		TIME("bare", read4(&counters, values));
	return NULL;
}

static int by_clock(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, time_bare, NULL) || pthread_join(thread, NULL))
		return 1;
	if (missing)
		return 0;
	TIME("plain", pem_notify_bench_log(i, 0));
	TIME("counted", pem_notify_bench_stat(i, 0));
	return 0;
}

int main(int argc, char **argv)
{
	int status;

	rounds = argc == 3 ? atoi(argv[2]) : 0;
	if (rounds < 1 || rounds > BATCHES_MAX) {
		fprintf(stderr, "Usage: read4 insns|ns ROUNDS, 1 to %d\n", BATCHES_MAX);
		return 1;
	}
	status = strcmp(argv[1], "ns") == 0 ? by_clock() : by_trace();
	if (missing)
		printf("missing %s\n", missing);
	return status;
}
