/* SPDX-License-Identifier: MIT */
/*
 * races.h - which configuration is the best, where runs of one differ
 *
 * One run says little then. A configuration that looks better than the best one runs again, in
 * turns with it, until a test separates the two or the runs of a race are used up. The winner of
 * all races so far is the best configuration.
 *
 * Runs are compared by ranks: a run that the machine slowed down counts as a slower one, by
 * whatever it was slowed. The value of a configuration is the median of its runs. Where two can run
 * at the same time, a race is made of such pairs, and decided by their ratios: a disturbance of
 * both has no part in them. In a pair the rival's value is the best one's median times their ratio.
 *
 * The result follows from the options and the runs that were added, in their order. Not here: which
 * configuration runs for the first time; how a run is made (run.c, pair.c).
 *
 * An object belongs to one thread. Nothing here prints or blocks.
 */
#ifndef TRIAL_RACES_H
#define TRIAL_RACES_H

#include <pem/explore.h>

#include <stdbool.h>
#include <stddef.h>

struct trial_races_options {
	uint32_t objectives; /* values of a run, at least 1; the first one decides */
	uint32_t runs; /* of each configuration, at least 1 */
	/* Further runs at most, of a configuration that looks best. 0: no races. */
	uint32_t race_runs;
	bool pairs; /* they are made in pairs */
	/*
	 * Called when a configuration has its runs, with the medians of their values; for the two
	 * of a race at its end. Returns 0, or -errno, which the caller of add then gets.
	 */
	int (*known)(const struct pem_explore_trial *trial, void *arg);
	void *arg;
};

/* One run of the program under a configuration. */
struct trial_race_run {
	const uint32_t *levels;
	uint32_t outcome; /* enum pem_explore_outcome */
	const double *values; /* one for each objective, the smaller the better; NULL: none */
	double seconds;
	bool elsewhere; /* on another kind of machine: it is known, and races with none */
};

/* The best configuration. */
struct trial_winner {
	const uint32_t *levels; /* valid until the next run is added */
	double median, mean; /* of the first objective */
	double low, high; /* 95 % interval of the mean; NAN: it ran once */
	uint32_t runs;
};

struct trial_races;

/* The space lives until free; options are copied. NULL: no memory. */
struct trial_races *trial_races__new(const struct pem_explore_space *space,
				     const struct trial_races_options *options);
/* NULL does nothing. */
void trial_races__free(struct trial_races *races);
/*
 * Take the result of a run, also of one that an earlier process made: in the order in which they
 * were made. A configuration with one run that was not measured is not measured. Returns 0 or
 * -errno.
 */
int trial_races__add(struct trial_races *races, const struct trial_race_run *run);
/*
 * Take the result of two configurations that ran at the same time: of both the value, above 0 and
 * the smaller the better. Another value, or NAN: the pair is void. Pairs of no current race do
 * nothing. Returns 0 or -errno.
 */
int trial_races__add_pair(struct trial_races *races, const uint32_t *const levels[2],
			  const double values[2]);
/* The number of a configuration, from 0, in the order of first runs. SIZE_MAX: none was added. */
size_t trial_races__find(const struct trial_races *races, const uint32_t *levels);
/* The configuration that has to run again, or NULL: none has to. Valid until the next add. */
const uint32_t *trial_races__turn(const struct trial_races *races);
/* The configuration to run beside that one; NULL: it runs alone. */
const uint32_t *trial_races__beside(const struct trial_races *races);
/* Is there a race now? */
bool trial_races__are_on(const struct trial_races *races);
/* The configuration that is best by what is known. Returns 1, or 0: nothing was measured. */
int trial_races__best(const struct trial_races *races, struct trial_winner *best);

#endif
