/* SPDX-License-Identifier: MIT */
/*
 * exploration.h - an experiment with all that is known of it, for the verbs that take one
 */
#ifndef EXPLORE_EXPLORATION_H
#define EXPLORE_EXPLORATION_H

#include "trial/work.h"
#include "policy/policy.h"
#include "policy/search.h"
#include "models/effects.h"

#include "program/program.h"

/* A configuration and its runs on one kind of machine. */
struct explore_tried {
	uint32_t *levels; /* and, after the last one, its machine */
	uint32_t machine; /* index of the kind in the store; 0: this machine's */
	uint32_t outcome; /* of its first run that was not measured, if there is one */
	struct trial_figures figures; /* of the runs that were measured */
	double seconds;
	char reason[160]; /* of the last run that failed or was refused; "": none did */
	char left[160]; /* what the last one of the others left; "" */
	char node[TRIAL_NODE_BYTES]; /* of the last run */
};

struct exploration {
	const struct explore_request *request;
	struct trial_work work;
	struct pem_explore_policy policy;
	struct explore_search *search;
	struct explore_tried *tried; /* in the order of their first runs, as the search has them */
	size_t count, capacity;
	size_t here; /* of them, on this kind of machine */
	size_t taken_runs; /* of the store's, that are in tried */
	struct trial_machines machines; /* if there are several kinds */
	struct pem_error error;
};

/*
 * Let the act of a request have its experiment, with the runs in the database. If it changes
 * settings: be the only exploration of this user, and restore what an earlier one changed. Returns
 * the exit status that act returns, or one after a sentence.
 */
int exploration__act(void *request);
/* Run a configuration as trial_work__run does, and take the run. */
int exploration__run(struct exploration *exploration, const uint32_t *levels,
		     const uint32_t *beside, bool alone);
/* Take the run that was made, if rc is 0; a pair that does not count is told. Returns 0 or rc. */
int exploration__take(struct exploration *exploration, int rc);
/*
 * Take the runs that other machines made since the last call, and leave to them what they run now.
 * Does nothing without a server. Returns 0 or -errno with error.
 */
int exploration__catch_up(struct exploration *exploration);
/* Runs that other machines of this kind make now; is_new: of configurations that none ran yet. */
size_t exploration__made_now(const struct exploration *exploration, bool is_new);
/* The trial of a configuration on this kind of machine, or NULL: it was not tried. */
struct explore_tried *exploration__find(const struct exploration *exploration,
					const uint32_t *levels);
/* Its number, from 1 on. */
size_t exploration__number(const struct exploration *exploration, const uint32_t *levels);
/*
 * How much better the best configuration is than the defaults: by fresh runs of both, or by the
 * runs that chose it. The defaults themselves have a gain of 0 without an interval.
 */
struct trial_gain exploration__gain(struct exploration *exploration,
				    const struct trial_winner *best);
/*
 * Run the best configuration and the defaults in pairs or in turns, and keep by how much it is
 * better. Does nothing if that is known, can't be, or takes longer than left_s seconds. Returns 0,
 * -EINTR, or -errno with error.
 */
int exploration__validate(struct exploration *exploration, double left_s);
/* The best configuration by what is known. Returns 1, or 0: nothing was measured. */
int exploration__best(const struct exploration *exploration, struct trial_winner *best);

#endif
