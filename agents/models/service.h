/* SPDX-License-Identifier: MIT */
/*
 * service.h - service rates of stages, from series of observed intervals
 *
 * A stage of a pipeline takes items from queues and gives items to queues. Its service rate is the
 * number of items that it serves in a second in which nothing blocks it.
 *
 *	service.c	the rate by blocking: items over time that was not blocked, with an interval
 *	copies.c	copies of one stage, which may be unequally fast
 *
 * Not here: phases of different rates (change.h), how intervals are observed, predictions
 * (pipeline.h), and the heuristic of the paper that pem rates comes from (bench/heuristic.h).
 *
 * Nothing here does I/O, reads a clock, prints or blocks. Memory is bounded whatever the length of
 * a series. An object belongs to one thread. Times are in nanoseconds, rates in items per second.
 * Intervals of confidence have 95 %.
 */
#ifndef AGENTS_SERVICE_H
#define AGENTS_SERVICE_H

#include "models/change.h"
#include "sketch.h"

#include <math.h>

#define MODEL_Z_95 1.959964

/* The deviation of the logarithm of a rate, by its interval of confidence. */
static inline double model_range__error(const struct model_range *range)
{
	return log(range->high / range->low) / 2 / MODEL_Z_95;
}

/* --- service.c --- */

#define MODEL_BATCHES 64u
/* An estimate rests on at least this many intervals. */
#define MODEL_INTERVALS_MIN 16u

/*
 * Sums of one stage. All zero: no interval was added yet. A batch is the sum of batch_intervals
 * successive intervals; whenever there are MODEL_BATCHES of them, each two become one, so that
 * batches grow with the series, and beyond the distance at which intervals correlate.
 */
struct model_service {
	struct model_sums batches[MODEL_BATCHES];
	struct model_sums open; /* the batch that is not complete */
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

struct model_estimate {
	/* Is range.rate known? Its interval may be unknown all the same: then known is false. */
	bool has_rate;
	/*
	 * false: too little was observed, or too much was lost; all members below intervals but
	 * range.rate are 0.
	 */
	bool known;
	uint64_t items, intervals; /* that the estimate rests on */
	uint64_t lost_intervals; /* that it leaves out */
	double busy_ns;
	struct model_range range;
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
int model_service__add(struct model_service *service, uint64_t items, uint64_t busy_ns,
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
void model_service__estimate(const struct model_service *service, struct model_estimate *estimate);
void model_service__free(struct model_service *service);

/* --- copies.c --- */

struct model_copies {
	bool known; /* of all copies the rate is known */
	uint32_t slowest;
	struct model_range least; /* the slowest one's */
	double sum; /* items per second if each copy takes items when it can */
	double even; /* if each copy gets as many items: copies times the slowest one's rate */
	/* Probability of rates at least as different if all copies were equally fast. */
	double p;
};

/*
 * Compare count copies of one stage, at least 1. Whether they differ: Cochran's test, of the
 * logarithms of rates, with the intervals of confidence as their errors (Biometrics 10, 1954).
 */
void model_copies__compare(const struct model_estimate *copies, uint32_t count,
			   struct model_copies *result);

#endif
