/* SPDX-License-Identifier: MIT */
/*
 * estimate.h - service rates of stages, from series of observed intervals
 *
 * A stage of a pipeline takes items from queues and gives items to queues. Its service rate is the
 * number of items that it serves in a second in which nothing blocks it.
 *
 *	service.c	the rate by blocking: items over time that was not blocked, with an interval
 *	change.c	phases of different rates
 *	copies.c	copies of one stage, which may be unequally fast
 *
 * Not here: how intervals are observed (../observe), predictions (../predict), and the heuristic of
 * the paper that pem rates comes from (bench/heuristic.h).
 *
 * Nothing here does I/O, reads a clock, prints or blocks. Memory is bounded whatever the length of
 * a series. An object belongs to one thread. Times are in nanoseconds, rates in items per second.
 * Intervals of confidence have 95 %.
 */
#ifndef AGENTS_RATES_ESTIMATE_H
#define AGENTS_RATES_ESTIMATE_H

#include "sketch.h"

#include <stdbool.h>
#include <stdint.h>

/* A rate with its interval of confidence: low <= rate <= high. high may be INFINITY. */
struct rate_range {
	double rate, low, high;
};

/* An interval, or the sums of several. */
struct rate_sums {
	double items, busy_ns;
};

/* --- service.c --- */

#define RATE_BATCHES 64u
/* An estimate rests on at least this many intervals. */
#define RATE_INTERVALS_MIN 16u

/*
 * Sums of one stage. All zero: no interval was added yet. A batch is the sum of batch_intervals
 * successive intervals; whenever there are RATE_BATCHES of them, each two become one, so that
 * batches grow with the series, and beyond the distance at which intervals correlate.
 */
struct rate_service {
	struct rate_sums batches[RATE_BATCHES];
	struct rate_sums open; /* the batch that is not complete */
	uint32_t batch_count;
	uint64_t batch_intervals, open_intervals; /* batch_intervals 0 stands for 1 */
	uint64_t items, intervals; /* without those that lost events */
	double busy_ns;
	uint64_t lost_intervals;
	double lost_ns;
	double carried_ns; /* of intervals without items, not yet part of the distribution */
	double mean_ns, squares; /* of the time of an item, and squares of deviations */
	uint64_t timed_items, timed_intervals;
	struct pem_sketch times; /* of items */
};

struct rate_estimate {
	/* false: too little was observed, or too much was lost; all members below intervals are 0.
	 */
	bool known;
	uint64_t items, intervals; /* that the estimate rests on */
	uint64_t lost_intervals; /* that it leaves out */
	double busy_ns;
	struct rate_range range;
	/*
	 * Time that an item takes. Of an interval of several items only the sum of their times is
	 * known: then deviation_ns is right for items that are independent of each other, and
	 * percentiles are of the mean times of the items of an interval. Both are exact if each
	 * interval has one item.
	 */
	double mean_ns, deviation_ns;
	double p50_ns, p90_ns, p99_ns; /* to PEM_SKETCH_ERROR */
};

/*
 * Add an interval in which the stage served items in busy_ns. Both may be 0; time of an interval
 * without items counts, and belongs to the next item. has_lost: events of this interval were lost,
 * so that its items or time may be wrong: the rate is not taken from it, and becomes less certain.
 * Returns 0, or -ENOMEM and adds nothing. The sketch takes at most 64 bins of 16 bytes for each
 * power of two that times span.
 */
int rate_service__add(struct rate_service *service, uint64_t items, uint64_t busy_ns,
		      bool has_lost);
/*
 * Write the estimate. The rate is the ratio of sums. Its interval is Fieller's for a ratio of two
 * means, of batches, with Student's distribution (Fieller, J. R. Stat. Soc. B 16, 1954), so that
 * items per interval may vary and go with time. Batches are joined, down to 8, as long as
 * successive ones correlate; the interval is widened by the correlation that is left. (Batch means:
 * Law, Simulation Modeling and Analysis, 9.5.3; the correction: Tafazzoli and Wilson, IIE Trans.
 * 43, 2011.) A kind of interval that is so rare that the series has none of it is not in the
 * interval of confidence.
 *
 * Lost events: the lost intervals' share of all is taken to have had any rate from the least to
 * the greatest batch's, and the interval is widened by that. With more than half lost the rate is
 * unknown.
 */
void rate_service__estimate(const struct rate_service *service, struct rate_estimate *estimate);
void rate_service__free(struct rate_service *service);

/* --- change.c --- */

/*
 * A change is reported if the logarithm of its likelihood ratio exceeds this: with that, at most 1
 * in 100 series of 100,000 intervals has a false alarm (docs/benchmarks.md has the measurements). A
 * change of an item's time by the factor r is found after some
 *
 *	1.5 * RATE_CHANGE_THRESHOLD * CV^2 / (r - 1 - log r) items,
 *
 * where CV is the coefficient of variation of an item's time, but not before RATE_CHANGE_LEAST
 * intervals, and in the first 320 of a series not at all. It is located within 100 items in 99 of
 * 100 series if |log r| is at least RATE_CHANGE_SURE * CV.
 */
#define RATE_CHANGE_THRESHOLD 22.0
#define RATE_CHANGE_SURE 0.75
/* Intervals that a phase has at least. */
#define RATE_CHANGE_LEAST 32u
/* A change of log r below this is not reported: clocks of CPUs drift by as much. */
#define RATE_CHANGE_SMALLEST 0.05

#define RATE_RECENT 512u /* intervals that are kept one by one */
#define RATE_SPLITS 96u /* points of each hull at most */
#define RATE_SCALES 10u
#define RATE_PHASES 64u

/* A possible change. */
struct rate_split {
	struct rate_sums at; /* sums of the phase before it */
	uint64_t interval; /* the first one after it */
	double unlikelihood; /* of the part before it, see change.c */
	/* The two intervals of most excess over the mean on each side. */
	struct rate_sums before[2], after[2];
};

struct rate_hull {
	struct rate_split splits[RATE_SPLITS];
	uint32_t count;
};

/* Relative variance of an item's time by sums of 2^scale intervals, by successive differences. */
struct rate_scale {
	struct rate_sums sum, last;
	uint32_t summed, pairs;
	double variance, weight; /* sums that forget */
};

struct rate_phase {
	uint64_t first_interval, first_item; /* from 0, of the whole series */
	uint64_t intervals, items;
	double busy_ns;
	struct rate_range range;
};

/* Finds phases of a series. Begin with rate_change__begin(); needs no freeing. */
struct rate_change {
	struct rate_phase phases[RATE_PHASES]; /* the last ones; the last one is open */
	uint64_t phase_count; /* of the whole series, with the open one */
	struct rate_sums recent[RATE_RECENT]; /* interval i of the series at i % RATE_RECENT */
	uint64_t intervals; /* of the series, with items */
	double carried_ns; /* of intervals without items */
	struct rate_sums sum; /* of the open phase */
	struct rate_split newest; /* RATE_CHANGE_LEAST intervals ago; with before and at */
	struct rate_hull slower, faster; /* candidates, by the direction of change */
	struct rate_scale scales[RATE_SCALES];
	uint64_t settled; /* intervals below this are in scales */
};

void rate_change__begin(struct rate_change *change);
/*
 * Add an interval; intervals without items become part of the next one. Returns whether a change
 * was found with it: then the last two of rate_change__phases() tell between what, and where.
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
bool rate_change__add(struct rate_change *change, uint64_t items, uint64_t busy_ns);
/*
 * Write the phases that are known, at most RATE_PHASES last ones, oldest first, and return their
 * number; *before: how many older ones there were. A phase's range has an interval by the variance
 * that the test goes by.
 */
uint32_t rate_change__phases(const struct rate_change *change, struct rate_phase *phases,
			     uint64_t *before);

/* --- copies.c --- */

struct rate_copies {
	bool known; /* of all copies the rate is known */
	uint32_t slowest;
	struct rate_range least; /* the slowest one's */
	double sum; /* items per second if each copy takes items when it can */
	double even; /* if each copy gets as many items: copies times the slowest one's rate */
	/* Probability of rates at least as different if all copies were equally fast. */
	double p;
};

/*
 * Compare count copies of one stage, at least 1. Whether they differ: Cochran's test, of the
 * logarithms of rates, with the intervals of confidence as their errors (Biometrics 10, 1954).
 */
void rate_copies__compare(const struct rate_estimate *copies, uint32_t count,
			  struct rate_copies *result);

#endif
