/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * steps.c - what a step of a program takes, with warm caches and with colder ones
 *
 * Warm: the step is repeated in a loop. Cooler: before each step the thread walks through as much
 * memory as the first-level cache has. Cold: the walk is through twice as much as the second-level
 * cache has, since pages of memory share parts of that unevenly.
 *
 * Steps that are compared take turns in rounds of some microseconds. Other load changes the machine
 * for longer than that, so that it slows all steps of a round. The differences within each round
 * are sorted, and the mean of their middle half counts. It agrees with the mean of long loops,
 * alone and beside busy loops. The least difference does not: what disturbs the first step alone
 * makes a difference less. Colder steps are measured alone: a processor that runs the step while it
 * still walks hides more or less of it, by how the compiler laid out the loop.
 *
 * Not here: which steps (event_cost.c, exercise/main.c).
 */
#include "cost/cost.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 11
#define COOLER_STEPS 100
#define FIRST_LEVEL_BYTES (32u << 10)
#define LINE_BYTES 64u
#define WALK_BYTES_LEAST (512u << 10)
#define WALK_BYTES_MOST (4u << 20)
#define COOLER_STEPS_OF_TURN 8 /* for each cold one */

int pem_step__by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double pem_step__typical(double *values, size_t count)
{
	double sum = 0;
	size_t i;

	qsort(values, count, sizeof(*values), pem_step__by_value);
	for (i = count / 4; i < count - count / 4; i++)
		sum += values[i];
	return sum / (double)(count - 2 * (count / 4));
}

double pem_step__clock_ns(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Twice the size of the second-level cache, within bounds: some machines do not tell it. */
static size_t walk_bytes(void)
{
	long known = sysconf(_SC_LEVEL2_CACHE_SIZE);
	size_t bytes = known > 0 ? 2 * (size_t)known : 0;

	if (bytes < WALK_BYTES_LEAST)
		return WALK_BYTES_LEAST;
	return bytes < WALK_BYTES_MOST ? bytes : WALK_BYTES_MOST;
}

volatile uint8_t *pem_step__memory(void)
{
	return calloc(1, walk_bytes());
}

static void walk(volatile uint8_t *memory, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i += LINE_BYTES)
		memory[i]++;
}

/* The CPU time of a step, and of a walk through these bytes before it. */
static double looped_ns(const struct pem_stepper *s, unsigned count, size_t bytes)
{
	double start = pem_step__clock_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned i;

	for (i = 0; i < count; i++) {
		walk(s->memory, bytes);
		s->step(s->arg);
	}
	return (pem_step__clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / count;
}

/* The time, when all that was written before is in the cache. */
static double time_after_all(void)
{
	/* none: no other thread is meant, but the clock is read after the stores */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return pem_step__clock_ns(CLOCK_MONOTONIC);
}

/* The time of each of some steps alone, after a walk through these bytes. */
static double alone_ns(const struct pem_stepper *s, unsigned count, size_t bytes)
{
	double start, sum = 0;
	unsigned i;

	for (i = 0; i < s->before + count; i++) {
		walk(s->memory, bytes);
		start = time_after_all();
		s->step(s->arg);
		if (i >= s->before)
			sum += time_after_all() - start;
	}
	return sum / count;
}

static double repeated_ns(const struct pem_stepper *s, unsigned count, size_t bytes)
{
	double rounds[ROUNDS];
	unsigned r;

	for (r = 0; r < ROUNDS; r++)
		rounds[r] = looped_ns(s, count, bytes);
	/* The lower quartile: other load adds time. */
	qsort(rounds, ROUNDS, sizeof(*rounds), pem_step__by_value);
	return rounds[ROUNDS / 4];
}

struct pem_step pem_step__measure(const struct pem_stepper *s)
{
	double warm = repeated_ns(s, s->warm, 0);
	double cooler = repeated_ns(s, COOLER_STEPS, FIRST_LEVEL_BYTES);

	return (struct pem_step){warm, cooler, cooler};
}

double pem_step__turn_ns(const struct pem_stepper *s, enum pem_caches caches)
{
	if (caches == PEM_WARM)
		return looped_ns(s, s->warm, 0);
	if (caches == PEM_COOLER)
		return alone_ns(s, s->cold * COOLER_STEPS_OF_TURN, FIRST_LEVEL_BYTES);
	return alone_ns(s, s->cold, walk_bytes());
}

/* How much longer a step took than the first one. turns: what each took in each turn. */
static double difference_ns(double (*turns)[PEM_TURNS], unsigned step)
{
	unsigned t;

	for (t = 0; t < PEM_TURNS; t++)
		turns[step][t] -= turns[0][t];
	return pem_step__typical(turns[step], PEM_TURNS);
}

bool pem_step__compare(pem_step_turn *turn, void *arg, unsigned step_count, struct pem_step *taken)
{
	double turns[PEM_STEPS_MOST][PEM_TURNS], ns[PEM_STEPS_MOST][PEM_CACHES];
	enum pem_caches caches;
	unsigned s, t;

	for (caches = PEM_WARM; caches < PEM_CACHES; caches++) {
		for (t = 0; t < PEM_TURNS; t++) {
			for (s = 0; s < step_count; s++) {
				if (!turn(arg, s, caches, &turns[s][t]))
					return false;
			}
		}
		for (s = 1; s < step_count; s++)
			ns[s][caches] = difference_ns(turns, s);
	}
	for (s = 1; s < step_count; s++)
		taken[s] = (struct pem_step){taken[0].warm + ns[s][PEM_WARM],
					     taken[0].cooler + ns[s][PEM_COOLER],
					     taken[0].cold + ns[s][PEM_COLD]};
	return true;
}
