/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * steps.c - what a step of a program takes, with warm caches and with colder ones
 *
 * Warm: the step is repeated in a loop. Cooler: between two steps the thread walks through as much
 * memory as the first-level cache has, and the whole is measured. Cold: the walk is through as much
 * as the second-level cache has, and the step alone is measured.
 *
 * Of one step, the lower quartile of several rounds counts, because other load on the machine adds
 * time; of cold ones the mean of the second quarter, because some clocks advance in steps of 10 ns.
 *
 * Steps that are compared take turns in rounds of some microseconds. Other load changes the machine
 * for longer than that, so that it slows all steps of a round. The differences within each round
 * are sorted, and the mean of their middle half counts. It agrees with the mean of long loops,
 * alone and beside busy loops. The least difference does not: what disturbs the first step alone
 * makes a difference less. Colder steps are measured alone there: a processor that runs the step
 * while it still walks hides more or less of it, by how the compiler laid out the loop. The walk is
 * through twice the second-level cache, since pages of memory share parts of that unevenly.
 *
 * Not here: which steps (calibrate.c, exercise/main.c).
 */
#include "cost/cost.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 11
#define COOLER_STEPS 100
#define FIRST_LEVEL_BYTES (32u << 10)
#define COLD_STEPS 240
#define LINE_BYTES 64u
#define WALK_BYTES_LEAST (256u << 10)
#define WALK_BYTES_MOST (2u << 20)
#define TURNS 81
#define WARM_STEPS_OF_TURN 500
#define COOLER_STEPS_OF_TURN 8

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The size of the second-level cache, within bounds: some machines do not tell it. */
static size_t walk_bytes(void)
{
	long known = sysconf(_SC_LEVEL2_CACHE_SIZE);
	size_t bytes = known > 0 ? (size_t)known : 0;

	if (bytes < WALK_BYTES_LEAST)
		return WALK_BYTES_LEAST;
	return bytes < WALK_BYTES_MOST ? bytes : WALK_BYTES_MOST;
}

static void walk(volatile uint8_t *memory, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i += LINE_BYTES)
		memory[i]++;
}

static double ns_of(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The CPU time of a step, and of a walk through these bytes before it. */
static double looped_ns(void (*step)(void *arg), void *arg, unsigned count, size_t bytes)
{
	static uint8_t memory[FIRST_LEVEL_BYTES];
	double start = ns_of(CLOCK_THREAD_CPUTIME_ID);
	unsigned i;

	for (i = 0; i < count; i++) {
		walk(memory, bytes);
		step(arg);
	}
	return (ns_of(CLOCK_THREAD_CPUTIME_ID) - start) / count;
}

/* The time, when all that was written before is in the cache. */
static double time_after_all(void)
{
	/* none: no other thread is meant, but the clock is read after the stores */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ns_of(CLOCK_MONOTONIC);
}

/* The time of a step alone after a walk through this memory. */
static double alone_ns(void (*step)(void *arg), void *arg, volatile uint8_t *memory, size_t bytes)
{
	double start;

	walk(memory, bytes);
	start = time_after_all();
	step(arg);
	return time_after_all() - start;
}

/* --- one step --- */

static double repeated_ns(void (*step)(void *arg), void *arg, unsigned count, size_t bytes)
{
	double rounds[ROUNDS];
	unsigned r;

	for (r = 0; r < ROUNDS; r++)
		rounds[r] = looped_ns(step, arg, count, bytes);
	qsort(rounds, ROUNDS, sizeof(*rounds), by_value);
	return rounds[ROUNDS / 4];
}

static double cold_ns(void (*step)(void *arg), void *arg)
{
	size_t bytes = walk_bytes();
	volatile uint8_t *memory = calloc(1, bytes);
	double ns[COLD_STEPS], sum = 0;
	unsigned s;

	if (!memory)
		return 0;
	for (s = 0; s < COLD_STEPS; s++)
		ns[s] = alone_ns(step, arg, memory, bytes);
	free((void *)memory);
	qsort(ns, COLD_STEPS, sizeof(*ns), by_value);
	for (s = COLD_STEPS / 4; s < COLD_STEPS / 2; s++)
		sum += ns[s];
	return sum / (COLD_STEPS / 4);
}

struct pem_step pem_step__measure(void (*step)(void *arg), unsigned count, void *arg)
{
	return (struct pem_step){repeated_ns(step, arg, count, 0),
				 repeated_ns(step, arg, COOLER_STEPS, FIRST_LEVEL_BYTES),
				 cold_ns(step, arg)};
}

/* --- steps beside each other --- */

enum caches { WARM, COOLER, COLD, CACHES };

/* One turn of a step. memory: twice as much as the second-level cache has. */
static double turn_ns(enum caches caches, void (*step)(void *arg), void *arg,
		      volatile uint8_t *memory)
{
	double sum = 0;
	unsigned i;

	switch (caches) {
	case WARM:
		return looped_ns(step, arg, WARM_STEPS_OF_TURN, 0);
	case COOLER:
		for (i = 0; i < COOLER_STEPS_OF_TURN; i++)
			sum += alone_ns(step, arg, memory, FIRST_LEVEL_BYTES);
		return sum / COOLER_STEPS_OF_TURN;
	default:
		return alone_ns(step, arg, memory, 2 * walk_bytes());
	}
}

/* How much longer a step took than the first one. turns: what each took in each turn. */
static double difference_ns(double (*turns)[TURNS], unsigned step)
{
	double sum = 0;
	unsigned t;

	for (t = 0; t < TURNS; t++)
		turns[step][t] -= turns[0][t];
	qsort(turns[step], TURNS, sizeof(**turns), by_value);
	for (t = TURNS / 4; t < TURNS - TURNS / 4; t++)
		sum += turns[step][t];
	return sum / (TURNS - 2 * (TURNS / 4));
}

bool pem_step__compare(void (*const steps[])(void *arg), unsigned step_count, unsigned count,
		       void *arg, struct pem_step *taken)
{
	volatile uint8_t *memory = calloc(2, walk_bytes());
	double turns[PEM_STEPS_MOST][TURNS], ns[CACHES][PEM_STEPS_MOST];
	enum caches caches;
	unsigned s, t;

	if (!memory)
		return false;
	for (caches = WARM; caches < CACHES; caches++) {
		for (t = 0; t < TURNS; t++) {
			for (s = 0; s < step_count; s++)
				turns[s][t] = turn_ns(caches, steps[s], arg, memory);
		}
		for (s = 1; s < step_count; s++)
			ns[caches][s] = difference_ns(turns, s);
	}
	free((void *)memory);
	taken[0] = pem_step__measure(steps[0], count, arg);
	for (s = 1; s < step_count; s++)
		taken[s] = (struct pem_step){taken[0].warm + ns[WARM][s],
					     taken[0].cooler + ns[COOLER][s],
					     taken[0].cold + ns[COLD][s]};
	return true;
}

struct pem_step pem_step__least(struct pem_step a, struct pem_step b)
{
	return (struct pem_step){a.warm < b.warm ? a.warm : b.warm,
				 a.cooler < b.cooler ? a.cooler : b.cooler,
				 a.cold < b.cold ? a.cold : b.cold};
}
