/* SPDX-License-Identifier: MIT */
/*
 * change.h - changes of the rate in a series of intervals, found while the series goes on
 *
 * An interval is a number of items and the time that they took. The series is cut into phases, in
 * each of which the rate is one.
 *
 * Nothing here does I/O, reads a clock, prints or blocks. Memory is bounded whatever the length of
 * a series. An object belongs to one thread. Times are in nanoseconds, rates in items per second.
 * Intervals of confidence have 95 %.
 *
 * Not here: the rate of a whole series (service.h).
 */
#ifndef AGENTS_CHANGE_H
#define AGENTS_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/* A rate with its interval of confidence: low <= rate <= high. high may be INFINITY. */
struct model_range {
	double rate, low, high;
};

/* An interval, or the sums of several. */
struct model_sums {
	double items, busy_ns;
};

/*
 * A change is reported if the logarithm of its likelihood ratio exceeds this: with that, at most 1
 * in 100 series of 100,000 intervals has a false alarm (docs/benchmarks.md has the measurements). A
 * change of an item's time by the factor r is found after some
 *
 *	1.5 * MODEL_CHANGE_THRESHOLD * CV^2 / (r - 1 - log r) items,
 *
 * where CV is the coefficient of variation of an item's time, but not before MODEL_CHANGE_LEAST
 * intervals, and in the first 320 of a series not at all. It is located within 100 items in 99 of
 * 100 series if |log r| is at least MODEL_CHANGE_SURE * CV.
 */
#define MODEL_CHANGE_THRESHOLD 22.0
#define MODEL_CHANGE_SURE 0.75
/* Intervals that a phase has at least. */
#define MODEL_CHANGE_LEAST 32u
/* A change of log r below this is not reported: clocks of CPUs drift by as much. */
#define MODEL_CHANGE_SMALLEST 0.05

#define MODEL_RECENT 512u /* intervals that are kept one by one */
#define MODEL_SPLITS 96u /* points of each hull at most */
#define MODEL_SCALES 10u
#define MODEL_PHASES 64u

/* A possible change. */
struct model_split {
	struct model_sums at; /* sums of the phase before it */
	uint64_t interval; /* the first one after it */
	double unlikelihood; /* of the part before it, see change.c */
	/* The two intervals of most excess over the mean on each side. */
	struct model_sums before[2], after[2];
};

struct model_hull {
	struct model_split splits[MODEL_SPLITS];
	uint32_t count;
};

/* Relative variance of an item's time by sums of 2^scale intervals, by successive differences. */
struct model_scale {
	struct model_sums sum, last;
	uint32_t summed, pairs;
	double variance, weight; /* sums that forget */
};

struct model_phase {
	uint64_t first_interval, first_item; /* from 0, of the whole series */
	uint64_t intervals, items;
	double busy_ns;
	struct model_range range;
};

/* Finds phases of a series. Begin with model_change__begin(); needs no freeing. */
struct model_change {
	struct model_phase phases[MODEL_PHASES]; /* the last ones; the last one is open */
	uint64_t phase_count; /* of the whole series, with the open one */
	struct model_sums recent[MODEL_RECENT]; /* interval i of the series at i % MODEL_RECENT */
	uint64_t intervals; /* of the series, with items */
	double carried_ns; /* of intervals without items */
	struct model_sums sum; /* of the open phase */
	struct model_split newest; /* MODEL_CHANGE_LEAST intervals ago; with before and at */
	struct model_hull slower, faster; /* candidates, by the direction of change */
	struct model_scale scales[MODEL_SCALES];
	uint64_t settled; /* intervals below this are in scales */
};

void model_change__begin(struct model_change *change);
/*
 * Add an interval; intervals without items become part of the next one. Returns whether a change
 * was found with it: then the last two of model_change__phases() tell between what, and where.
 *
 * The test is the generalized likelihood ratio of gamma distributed times of equal shape, for all
 * intervals at which the rate may have changed (Lorden, Ann. Math. Stat. 42, 1971). The ratio is
 * convex in the sums before a change, so that only corners of the convex hulls of all points have
 * to be tried: some 2 log n of n (Ward, Romano, Eckley, Fearnhead, Stat. Comput. 34, 2024). The
 * shape is estimated by successive differences, which a change of the mean leaves alone, of sums of
 * 1, 2, 4 ... intervals: the greatest variance counts, so that correlation raises no alarm. A ratio
 * counts only if it exceeds the threshold also without the two intervals of most excess on either
 * side: single outliers are no phase.
 */
bool model_change__add(struct model_change *change, uint64_t items, uint64_t busy_ns);
/*
 * Write the phases that are known, at most MODEL_PHASES last ones, oldest first, and return their
 * number; *before: how many older ones there were. A phase's range has an interval by the variance
 * that the test goes by.
 */
uint32_t model_change__phases(const struct model_change *change, struct model_phase *phases,
			      uint64_t *before);

#endif
