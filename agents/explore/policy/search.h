/* SPDX-License-Identifier: MIT */
/*
 * search.h - a search: a policy, and the races that a lucky configuration has to win
 *
 * One run says little where runs differ. A configuration that looks better than the best one runs
 * again, in turns with it, until a test tells the two apart or the runs of a race are used up. The
 * winner of all races so far is the best configuration.
 *
 * Runs are compared by ranks: a run that the machine slowed down counts as one that is slower, by
 * whatever it was slowed. The value of a configuration is the median of its runs. Where two can run
 * at the same time, a race is made of such pairs, and decided by their ratios: what slows both down
 * is no part of them. In a pair the rival's value is the best one's median times their ratio.
 *
 * All of a search follows from its options and the runs that it was given, in their order.
 */
#ifndef EXPLORE_SEARCH_H
#define EXPLORE_SEARCH_H

#include <pem/explore.h>

#include <stdbool.h>

struct explore_search_options {
	/* The budget counts runs, with those of races. */
	struct pem_explore_options policy;
	/* The budget counts configurations, and the caller ends the search when it is used. */
	bool counts_configurations;
	uint32_t runs; /* of each configuration, at least 1 */
	/* Further runs at most, of a configuration that looks best. 0: no races. */
	uint32_t race_runs;
	bool pairs; /* they are made in pairs */
};

/* One run of the program under a configuration. */
struct explore_run {
	const uint32_t *levels;
	uint32_t outcome; /* enum pem_explore_outcome */
	const double *values; /* one for each objective, the smaller the better; NULL: none */
	double seconds;
	bool elsewhere; /* on another kind of machine: only the policy learns of it */
};

struct explore_best {
	const uint32_t *levels; /* the search's, until the next run is added */
	double median, mean; /* of the first objective */
	double low, high; /* 95 % interval of the mean; NAN: it ran once */
	uint32_t runs;
};

struct explore_search;

/* Begin a search; space and policy live until its end. NULL with errno. */
struct explore_search *explore_search__new(const struct pem_explore_space *space,
					   const struct pem_explore_policy *policy,
					   const struct explore_search_options *options);
/* NULL does nothing. */
void explore_search__free(struct explore_search *search);
/*
 * Write what runs next. *again: it ran before. Returns 1, 0: the search is over; -errno of the
 * policy, -ERANGE: the policy chose a configuration that the space does not have.
 */
int explore_search__next(struct explore_search *search, uint32_t *levels, bool *again);
/*
 * Take what came of a run, also of one that an earlier process made: then without next, and in the
 * order in which they were made. A configuration with one run that was not measured is not
 * measured. Returns 0 or -errno.
 */
int explore_search__add(struct explore_search *search, const struct explore_run *run);
/* The number of a configuration, from 0, in the order of first runs. SIZE_MAX: none was added. */
size_t explore_search__find(const struct explore_search *search, const uint32_t *levels);
/*
 * Tell the policy of a configuration that is not to run, so that it takes another one: another
 * explorer runs it now (PEM_EXPLORE_FAILED), or a value of it is refused. It is not a trial of the
 * search, and nothing is told if it ran before. Returns 0 or -errno.
 */
int explore_search__reserve(struct explore_search *search, const uint32_t *levels,
			    uint32_t outcome);
/* The configuration to run beside the one that next chose; NULL: that runs alone. */
const uint32_t *explore_search__beside(const struct explore_search *search);
/*
 * Take what came of two configurations that ran at the same time: of both the value, above 0 and
 * the smaller the better. Another value, or NAN: the pair is void. Pairs of no race that goes on do
 * nothing. Returns 0 or -errno of the policy.
 */
int explore_search__add_pair(struct explore_search *search, const uint32_t *const levels[2],
			     const double values[2]);
/* The configuration that is best by what is known. Returns 1, or 0: nothing was measured. */
int explore_search__best(const struct explore_search *search, struct explore_best *best);
/*
 * Take a value of the run that goes on. Returns 1: the run is not worth its time, 0, or -errno. A
 * race's runs are not ended.
 */
int explore_search__record(struct explore_search *search, const struct pem_explore_record *record);

#endif
