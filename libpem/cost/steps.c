/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * steps.c - what a step of a program takes, with warm caches and with colder ones
 *
 * Warm: the step is repeated in a loop. Cooler: between two steps the thread walks through as much
 * memory as the first-level cache has, and the whole is measured. The lower quartile of several
 * rounds counts, because other load on the machine adds time. Cold: the walk is through as much as
 * the second-level cache has, and the step alone is measured. The mean of the second quarter
 * counts: other load adds time, and some clocks go on in steps of 10 ns.
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
static double repeated_ns(void (*step)(void *arg), unsigned count, void (*between)(void *arg),
			  void *arg, size_t bytes)
{
	static uint8_t memory[FIRST_LEVEL_BYTES];
	double rounds[ROUNDS], start;
	unsigned r, i;

	for (r = 0; r < ROUNDS; r++) {
		start = ns_of(CLOCK_THREAD_CPUTIME_ID);
		for (i = 0; i < count; i++) {
			walk(memory, bytes);
			step(arg);
		}
		rounds[r] = (ns_of(CLOCK_THREAD_CPUTIME_ID) - start) / count;
		if (between)
			between(arg);
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_value);
	return rounds[ROUNDS / 4];
}

/* The time, when all that was written before is in the cache. */
static double time_after_all(void)
{
	/* none: no other thread is meant, but the clock is read after the stores */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return ns_of(CLOCK_MONOTONIC);
}

static double cold_ns(void (*step)(void *arg), void (*between)(void *arg), void *arg)
{
	size_t bytes = walk_bytes();
	volatile uint8_t *memory = calloc(1, bytes);
	double ns[COLD_STEPS], sum = 0, start;
	unsigned s;

	if (!memory)
		return 0;
	for (s = 0; s < COLD_STEPS; s++) {
		walk(memory, bytes);
		start = time_after_all();
		step(arg);
		ns[s] = time_after_all() - start;
		if (between && s % (COLD_STEPS / COLD_ROUNDS) == 0)
			between(arg);
	}
	free((void *)memory);
	qsort(ns, COLD_STEPS, sizeof(*ns), by_value);
	for (s = COLD_STEPS / 4; s < COLD_STEPS / 2; s++)
		sum += ns[s];
	return sum / (COLD_STEPS / 4);
}

struct pem_step pem_step__measure(void (*step)(void *arg), unsigned count,
				  void (*between)(void *arg), void *arg)
{
	return (struct pem_step){repeated_ns(step, count, between, arg, 0),
				 repeated_ns(step, COOLER_STEPS, between, arg, FIRST_LEVEL_BYTES),
				 cold_ns(step, between, arg)};
}

struct pem_step pem_step__least(struct pem_step a, struct pem_step b)
{
	return (struct pem_step){a.warm < b.warm ? a.warm : b.warm,
				 a.cooler < b.cooler ? a.cooler : b.cooler,
				 a.cold < b.cold ? a.cold : b.cold};
}
