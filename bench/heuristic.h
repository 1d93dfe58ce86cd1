/* SPDX-License-Identifier: MIT */
/*
 * heuristic.h - the rate of a stage by the counters that a monitor samples, as a paper has it
 *
 * It is the peer of agents/models/service.h, with the same rules: no I/O, no clock, bounded memory.
 */
#ifndef BENCH_HEURISTIC_H
#define BENCH_HEURISTIC_H

#include <stdbool.h>
#include <stdint.h>

#define RATE_HEURISTIC_WINDOW 16u /* of the filtered deviation, as in the paper */
#define RATE_HEURISTIC_SAMPLES 64u /* greatest window of samples */

/*
 * The heuristic of Beard and Chamberlain, "Run Time Approximation of Non-blocking Service Rates for
 * Streaming Systems", HPCC 2015, Algorithm 1 and equations 2 to 4, as it is written. The paper is
 * silent about these, which are chosen here:
 *
 * - The number of samples in the window S: the caller chooses, 32 by default.
 * - Blocked periods are left out, and the window joins the periods around them (section IV: "the
 *   most obvious states to ignore").
 * - The kernel of equation 2 is used as it is: its sum is 0.991, so that q is 0.9 % low.
 * - sigma of q-bar: the standard error of the streaming mean, which falls as samples come.
 * - The scale of the tolerance of 5e-7: the deviation is divided by q-bar, as the unit of tc is not
 *   given. Converged: the greatest less the least of 16 filtered deviations is within it.
 * - Restart: the statistics of q begin again, and the window of samples stays.
 */
struct rate_heuristic {
	double samples[RATE_HEURISTIC_SAMPLES]; /* S, a ring */
	uint32_t window, sample_count, next;
	uint64_t q_count; /* streaming statistics of q */
	double q_mean, q_squares;
	double deviations[3]; /* the last ones of q-bar */
	uint32_t deviation_count;
	double filtered[RATE_HEURISTIC_WINDOW]; /* a ring */
	uint64_t filtered_count;
};

/* window: samples in S, from 5 to RATE_HEURISTIC_SAMPLES; 0: the default. */
void rate_heuristic__begin(struct rate_heuristic *heuristic, uint32_t window);
/*
 * Add tc, the items of a period, and whether the queue was blocked in it. Returns true if q-bar has
 * converged: then *converged is its value in items per period, and the search begins again.
 */
bool rate_heuristic__add(struct rate_heuristic *heuristic, double tc, bool is_blocked,
			 double *converged);
/* q-bar so far, converged or not. NAN: there is none. */
double rate_heuristic__mean(const struct rate_heuristic *heuristic);

#endif
