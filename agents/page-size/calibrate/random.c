// SPDX-License-Identifier: MIT
/* random.c - times of random accesses, to small pages and to others in turn */
#include "order.h"
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Short parts, so that a disturbance spoils some and not all. */
#define RANDOM_ACCESSES 5000
#define UPDATES 40000
#define SPARSE_UPDATES 5000
#define PARTS_OF_ROUND 6
/*
 * Before them, so that caches hold what they hold in a program that has run for some time. Accesses
 * that wait are slow: others who share the last cache take more of the page tables out of it.
 */
#define UPDATES_BEFORE 500000
#define READS_BEFORE 80000

/*
 * Updates with other instructions between: those of updates near by, each of which waits for the
 * one before it, and some that do nothing. Programs are between the two.
 */
#define SPARSE_EVERY 8u
enum { SPARSE, SPACED };

double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void run__say(struct run *run, const char *format, ...)
{
	char sentence[256];
	va_list args;

	if (!run->progress)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	run->progress(sentence, run->arg);
}

/* Times of one kind of accesses, with small and with other pages. */
struct times {
	size_t count;
	double values[2][ROUNDS_MAX * PARTS_OF_ROUND];
};

struct random_times {
	struct times waits, overlaps;
};

static void measure_random(struct run *run, double bytes, struct random_times *to, size_t round)
{
	size_t i, part, other;

	/* Which comes first changes with the rounds. */
	for (i = 0; i < 2; i++) {
		const struct arena *arena = (other = (i + round) % 2) ? &run->other : &run->small;

		random__updates_ns(arena, (size_t)bytes, UPDATES_BEFORE, &run->dice);
		for (part = 0; part < PARTS_OF_ROUND; part++)
			to->overlaps.values[other][round * PARTS_OF_ROUND + part] =
				random__updates_ns(arena, (size_t)bytes, UPDATES, &run->dice);
		random__dependent_ns(arena, (size_t)bytes, READS_BEFORE, &run->dice);
		for (part = 0; part < PARTS_OF_ROUND; part++)
			to->waits.values[other][round * PARTS_OF_ROUND + part] =
				random__dependent_ns(arena, (size_t)bytes, RANDOM_ACCESSES,
						     &run->dice);
	}
	to->waits.count = to->overlaps.count = (round + 1) * PARTS_OF_ROUND;
}

static double saved(struct times *times)
{
	return order__quiet(times->values[0], times->count) -
	       order__quiet(times->values[1], times->count);
}

/* After the updates of measure_random, which leave in the caches what they leave. */
static void measure_sparse(struct run *run, double bytes, struct times *to, size_t round)
{
	size_t i, part, point, other;

	for (i = 0; i < 2; i++) {
		const struct arena *arena = (other = (i + round) % 2) ? &run->other : &run->small;

		random__updates_ns(arena, (size_t)bytes, UPDATES_BEFORE, &run->dice);
		for (part = 0; part < PARTS_OF_ROUND; part++) {
			to[SPARSE].values[other][round * PARTS_OF_ROUND + part] = random__sparse_ns(
				arena, (size_t)bytes, SPARSE_EVERY, SPARSE_UPDATES, &run->dice);
			to[SPACED].values[other][round * PARTS_OF_ROUND + part] =
				random__spaced_ns(arena, (size_t)bytes, SPARSE_UPDATES, &run->dice);
		}
	}
	for (point = 0; point < SPARSE_POINTS; point++)
		to[point].count = (round + 1) * PARTS_OF_ROUND;
}

static void keep_sparse(struct run *run, double bytes, struct times *times)
{
	static const double instructions[SPARSE_POINTS] = {
		[SPARSE] = SPARSE_EVERY * SPARSE_INSTRUCTIONS, [SPACED] = SPACED_INSTRUCTIONS};
	size_t i;

	for (i = 0; i < SPARSE_POINTS; i++) {
		run->sparse[i] = (struct sparse_saving){bytes, instructions[i], saved(&times[i])};
		run__say(run,
			 "%.0f MiB at random, %.0f instructions for each: large pages save %.2f ns",
			 bytes / MIB, instructions[i], run->sparse[i].ns);
	}
}

/* From a little more than TLBs hold to the whole arena. */
int run__measure_savings(struct run *run, double until_s)
{
	struct random_times *times, *last;
	struct times *sparse;
	size_t round, i;
	double bytes, noise;

	run->savings_count = 0;
	for (bytes = 32.0 * MIB; bytes <= (double)run->other.bytes * 1.001; bytes *= 2)
		run->savings[run->savings_count++].bytes = rint(bytes);
	times = calloc(run->savings_count, sizeof(*times));
	sparse = calloc(SPARSE_POINTS, sizeof(*sparse));
	if (!times || !sparse) {
		free(times);
		free(sparse);
		return -ENOMEM;
	}
	for (round = 0; round < ROUNDS_MIN || (round < ROUNDS_MAX && now_s() < until_s); round++) {
		for (i = 0; i < run->savings_count; i++)
			measure_random(run, run->savings[i].bytes, &times[i], round);
		if (run->other_shift == LARGE_SHIFT)
			measure_sparse(run, run->savings[i - 1].bytes, sparse, round);
	}
	if (run->other_shift == LARGE_SHIFT)
		keep_sparse(run, run->savings[run->savings_count - 1].bytes, sparse);
	for (i = 0; i < run->savings_count; i++) {
		run->savings[i].latency_ns = saved(&times[i].waits);
		run->savings[i].throughput_ns = saved(&times[i].overlaps);
		run__say(run,
			 "%.0f MiB at random: pages of %zu KiB save %.2f ns of an access that "
			 "waits, "
			 "%.2f ns of others",
			 run->savings[i].bytes / MIB, ((size_t)1 << run->other_shift) / 1024,
			 run->savings[i].latency_ns, run->savings[i].throughput_ns);
	}
	last = &times[run->savings_count - 1];
	noise = order__spread(last->waits.values[0], last->waits.count);
	run->calibration->noise = fmax(run->calibration->noise, noise);
	free(times);
	free(sparse);
	return 0;
}
