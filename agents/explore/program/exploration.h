/* SPDX-License-Identifier: MIT */
/*
 * exploration.h - an experiment with all that is known of it, for the verbs that take one
 */
#ifndef EXPLORE_EXPLORATION_H
#define EXPLORE_EXPLORATION_H

#include "trial/trial.h"
#include "policy/policy.h"
#include "policy/search.h"
#include "models/effects.h"

#include "program/program.h"

/* A configuration and its runs on one kind of machine. */
struct explore_tried {
	uint32_t *levels; /* and, after the last one, its machine */
	uint32_t machine; /* index of the kind in the store; 0: this machine's */
	uint32_t outcome; /* of its last run; measured or stopped, if any of its runs was */
	struct trial_figures figures; /* of the runs that were measured */
	double seconds;
	char reason[160], node[TRIAL_NODE_BYTES]; /* of the last run */
};

/* In how many runs a value was taken as it was given, and refused. */
struct explore_taken {
	uint32_t taken, refused;
	char reason[160]; /* of the last refusal */
};

/* The runs of a comparison with the defaults. */
struct explore_fresh {
	uint32_t runs; /* of each; 0: there was none */
	bool in_pairs; /* they ran at the same time, two and two */
};

struct exploration {
	const struct explore_request *request;
	struct trial_experiment experiment;
	struct trial_store store;
	struct pem_explore_policy policy;
	struct explore_search *search;
	struct settings_agent *settings; /* while trials are made */
	struct explore_tried *tried; /* in the order of their first runs, as the search has them */
	size_t count, capacity;
	size_t here; /* of them, on this kind of machine */
	size_t taken_runs; /* of the store's, that are in tried */
	struct trial_machines machines; /* if there are several kinds */
	struct explore_taken *taken[TRIAL_PARAMETERS_MAX]; /* by level; NULL: no run yet */
	struct trial_outcome outcome; /* of the last run that this process made */
	double beside_value; /* the first metric's of the other half, if it was a pair */
	bool validates; /* no run is ended by the policy */
	struct pem_error error;
};

/*
 * Let the act of a request have its experiment, with the runs in the database. If it changes
 * settings: be the only exploration of this user, and restore what an earlier one changed. Returns
 * the exit status that act returns, or one after a sentence.
 */
int exploration__act(void *request);
/*
 * Run a configuration once, beside another one at the same time or alone (NULL), and keep what came
 * of it. Returns 0; -EINTR: it was interrupted; -EALREADY: alone is true, and another machine is at
 * it; another -errno with error.
 */
int exploration__run(struct exploration *exploration, const uint32_t *levels,
		     const uint32_t *beside, bool alone);
/* A value of the first metric as costs are compared: above 0, the less the better. Or NAN. */
double exploration__cost(const struct exploration *exploration, double value);
/*
 * Why a configuration need not be tried: one of its values was refused again and again, and never
 * taken. NULL: it has to be tried.
 */
const char *exploration__refused(const struct exploration *exploration, const uint32_t *levels);
/*
 * Take the runs that other machines made since the last call, and leave to them what they run now.
 * Does nothing without a server. Returns 0 or -errno with error.
 */
int exploration__catch_up(struct exploration *exploration);
/* Runs that other machines of this kind make now; is_new: of configurations that none ran yet. */
size_t exploration__made_now(const struct exploration *exploration, bool is_new);
/* Give all settings their first values, before something is printed. */
void exploration__restore(struct exploration *exploration);
/* The trial of a configuration on this kind of machine, or NULL: it was not tried. */
struct explore_tried *exploration__find(const struct exploration *exploration,
					const uint32_t *levels);
/* Its number, from 1 on. */
size_t exploration__number(const struct exploration *exploration, const uint32_t *levels);
/*
 * How much better the best configuration is than the defaults, as a share, with a 95 % interval: as
 * fresh runs of both told, or as the runs that chose it do. NAN: unknown.
 */
struct explore_estimate exploration__gain(struct exploration *exploration,
					  const struct trial_winner *best,
					  struct explore_fresh *fresh);
/*
 * Run the best configuration and the defaults in pairs or in turns, and keep by how much it is
 * better. Does nothing if that is known, can't be, or takes longer than left_s seconds. Returns 0,
 * -EINTR, or -errno with error.
 */
int exploration__validate(struct exploration *exploration, double left_s);
/* The best configuration by what is known. Returns 1, or 0: nothing was measured. */
int exploration__best(const struct exploration *exploration, struct trial_winner *best);

#endif
