/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * steps.c - what a step of a program takes, with warm caches and with cold ones
 *
 * Warm: the step is repeated in a loop. The lower quartile of several rounds counts, because other
 * load on the machine adds time. Cold: between two steps the thread walks through as much memory as
 * the second-level cache has, as a program does that works between two events. The mean of the
 * second quarter counts: other load adds time, and some clocks go on in steps of 10 ns.
 *
 * Not here: which steps (calibrate.c, exercise/main.c).
 */
#include "cost/cost.h"

#include <pem/clock.h>

#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 25
#define COLD_STEPS 400
#define COLD_ROUNDS 4
#define LINE_BYTES 64u
#define WALK_BYTES_LEAST (256u << 10)
#define WALK_BYTES_MOST (2u << 20)

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

static double warm_cycles(void (*step)(void *arg), unsigned count, void (*between)(void *arg),
			  void *arg)
{
	double rounds[ROUNDS];
	uint64_t start;
	unsigned r, i;

	for (r = 0; r < ROUNDS; r++) {
		start = pem_clock();
		for (i = 0; i < count; i++)
			step(arg);
		rounds[r] = (double)(pem_clock() - start) / count;
		if (between)
			between(arg);
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_value);
	return rounds[ROUNDS / 4];
}

/* The clock, when all that was written before is in the cache. */
static uint64_t clock_after_all(void)
{
	/* none: no other thread is meant, but the clock is read after the stores */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return pem_clock();
}

static double cold_cycles(void (*step)(void *arg), void (*between)(void *arg), void *arg)
{
	size_t bytes = walk_bytes(), i;
	volatile uint8_t *memory = calloc(1, bytes);
	double cycles[COLD_STEPS], sum = 0;
	uint64_t start;
	unsigned s;

	if (!memory)
		return 0;
	for (s = 0; s < COLD_STEPS; s++) {
		for (i = 0; i < bytes; i += LINE_BYTES)
			memory[i]++;
		start = clock_after_all();
		step(arg);
		cycles[s] = (double)(clock_after_all() - start);
		if (between && s % (COLD_STEPS / COLD_ROUNDS) == 0)
			between(arg);
	}
	free((void *)memory);
	qsort(cycles, COLD_STEPS, sizeof(*cycles), by_value);
	for (s = COLD_STEPS / 4; s < COLD_STEPS / 2; s++)
		sum += cycles[s];
	return sum / (COLD_STEPS / 4);
}

struct pem_step pem_step__measure(void (*step)(void *arg), unsigned count,
				  void (*between)(void *arg), void *arg)
{
	return (struct pem_step){warm_cycles(step, count, between, arg),
				 cold_cycles(step, between, arg)};
}
