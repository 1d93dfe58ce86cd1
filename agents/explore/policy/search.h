/* SPDX-License-Identifier: MIT */
/*
 * search.h - a search: a policy, and the races that a lucky configuration has to win
 *
 * The policy chooses a configuration for its first run, and learns the result when the
 * configuration has its runs (trial/races.h). All of a search follows from its options and the runs
 * that it was given, in their order.
 */
#ifndef EXPLORE_SEARCH_H
#define EXPLORE_SEARCH_H

#include "trial/races.h"

struct explore_search_options {
	/* The budget counts runs, with those of races. */
	struct pem_explore_options policy;
	/* The budget counts configurations, and the caller ends the search when it is used. */
	bool counts_configurations;
	uint32_t runs, race_runs; /* see struct trial_races_options; 0 runs: 1 */
	bool pairs;
};

struct explore_search;

/* Begin a search; space and policy live until its end. NULL with errno. */
struct explore_search *explore_search__new(const struct pem_explore_space *space,
					   const struct pem_explore_policy *policy,
					   const struct explore_search_options *options);
/* NULL does nothing. */
void explore_search__free(struct explore_search *search);
/*
 * Write the configuration that runs next. *again: it ran before. Returns 1, 0: the search is over;
 * -errno of the policy, -ERANGE: the policy chose a configuration that the space does not have.
 */
int explore_search__next(struct explore_search *search, uint32_t *levels, bool *again);
/*
 * Take the result of a run, also of one that an earlier process made: then without next. The policy
 * also learns of runs elsewhere. Returns 0 or -errno.
 */
int explore_search__add(struct explore_search *search, const struct trial_race_run *run);
/* The runs of the search, for questions, and for pairs that were made. */
struct trial_races *explore_search__races(const struct explore_search *search);
/*
 * Tell the policy of a configuration that is not to run, so that it takes another one: another
 * explorer runs it now (PEM_EXPLORE_FAILED), or a value of it is refused. It is not a trial of the
 * search, and nothing is told if it ran before. Returns 0 or -errno.
 */
int explore_search__reserve(struct explore_search *search, const uint32_t *levels,
			    uint32_t outcome);
/*
 * Take a value of the run that goes on. Returns 1: the run is not worth its time, 0, or -errno. A
 * race's runs are not ended.
 */
int explore_search__record(struct explore_search *search, const struct pem_explore_record *record);

#endif
