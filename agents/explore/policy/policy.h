/* SPDX-License-Identifier: MIT */
/*
 * policy.h - the policies of pem explore itself
 *
 *	history.c	what was tried, and configurations that were not
 *	plain.c		grid, random, latin, sobol, halving: choices without a model
 *	candidates.c	configurations among which a model chooses; expected improvement
 *	scores.c	values on the scale on which models see them
 *	process.c	a Gaussian process: values of configurations that were not tried
 *	forest.c	a random forest: the same
 *	portfolio.c	portfolio, gaussian, forest, model: choices by such models
 *	python.c	policies in Python: a child process
 *	find.c		a policy by its name, or of a file
 *	search.h	a policy, and the races that a lucky configuration has to win
 *
 * A state belongs to one thread. Nothing here prints.
 */
#ifndef EXPLORE_POLICY_H
#define EXPLORE_POLICY_H

#include <pem/explore.h>
#include <pem/pem.h>

#include "number_map.h"

#include <stdbool.h>

/* --- random numbers: splitmix64, by Steele, Lea and Flood (OOPSLA 2014) --- */

static inline uint64_t explore_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A number below limit, which is not 0. */
static inline uint64_t explore_random__below(uint64_t *state, uint64_t limit)
{
	return (uint64_t)(((unsigned __int128)explore_random(state) * limit) >> 64);
}

/* --- history.c --- */

struct explore_history {
	const struct pem_explore_space *space;
	uint64_t random;
	uint32_t *levels; /* of each trial, one after the other */
	/*
	 * The first objective of each trial, or a weighing of all. Of one without values: the worst
	 * that was measured.
	 */
	double *values;
	double *given; /* objectives of each trial */
	uint32_t objectives;
	bool *measured;
	size_t unmeasured; /* trials without values */
	size_t count, level_capacity, value_capacity, given_capacity, measured_capacity;
	double best, worst; /* measured; INFINITY, -INFINITY: nothing was */
	struct pem_number_map tried; /* hashes of configurations */
};

void explore_history__begin(struct explore_history *history, const struct pem_explore_space *space,
			    const struct pem_explore_options *options);
void explore_history__end(struct explore_history *history);
/* Add a trial; one of a configuration that was tried replaces it. Returns 0 or -ENOMEM. */
int explore_history__add(struct explore_history *history, const struct pem_explore_trial *trial);
/* The index of a configuration's trial. SIZE_MAX: it was not tried. */
size_t explore_history__find(const struct explore_history *history, const uint32_t *levels);
static inline bool explore_history__has(const struct explore_history *history,
					const uint32_t *levels)
{
	return explore_history__find(history, levels) != SIZE_MAX;
}
static inline const uint32_t *explore_history__levels(const struct explore_history *history,
						      size_t trial)
{
	return history->levels + trial * history->space->parameter_count;
}
/*
 * If there are several objectives, make values of them that weigh them by chance: the greatest
 * weighed share, and a little of the others (ParEGO: Knowles, IEEE Trans. Evolutionary Computation
 * 10, 2006).
 */
void explore_history__weigh(struct explore_history *history);
/* Write any allowed configuration. Returns 1, or 0: none was found. */
int explore_history__any(struct explore_history *history, uint32_t *levels);
/* Write an allowed configuration that was not tried. Returns 1, or 0: none was found. */
int explore_history__draw(struct explore_history *history, uint32_t *levels);
/*
 * How far two levels of a parameter are from each other, from 0 to 1: 1 for any two without an
 * order.
 */
static inline double explore_distance(const struct pem_explore_parameter *parameter, uint32_t a,
				      uint32_t b)
{
	double distance;

	if (a == b)
		return 0;
	if (!parameter->is_ordered)
		return 1;
	distance = parameter->positions[a] - parameter->positions[b];
	return distance < 0 ? -distance : distance;
}

/* --- candidates.c --- */

struct explore_candidates {
	uint32_t *levels;
	size_t count, capacity;
	bool complete; /* they are the whole space, and stay so */
};

/*
 * Collect at most limit configurations among which to choose: all, or random ones and neighbours of
 * the best trials. Some of them may have been tried. Returns 0 or -ENOMEM.
 */
int explore_candidates__collect(struct explore_candidates *candidates,
				struct explore_history *history, size_t limit);
void explore_candidates__free(struct explore_candidates *candidates);

/*
 * By how much a value of that mean and standard deviation is expected to be below target (Jones,
 * Schonlau and Welch, J. Global Optimization 13, 1998).
 */
double explore_improvement(double target, double mean, double deviation);

/* --- scores.c --- */

/*
 * Write the scores of a history's trials, with a mean of 0 and a deviation of 1: of their ranks, as
 * normal scores; else of the logarithms of their values, where all have one sign. scores has space
 * for twice as many. Returns the deviation before, in logarithms, or in normal scores.
 */
double explore_scores(const struct explore_history *history, bool ranks, double *scores);

/* --- process.c --- */

#define EXPLORE_PROCESS_POINTS 300u /* more are not modelled */
#define EXPLORE_PROCESS_WHOLE 1500u /* of a model of the whole space */

/* How values are modelled. */
struct explore_view {
	bool ranks; /* by their ranks, as normal scores; else by their logarithms */
	bool additive; /* a part of the covariance is a sum over parameters, and not their product
			*/
	bool whole; /* the whole space matters, and not its best part above all */
	/* The same for choices: an improvement is how uncertain a value is. */
	bool uncertain;
	/*
	 * An improvement counts if it is larger: of logarithms, or of standard deviations with
	 * ranks.
	 */
	double margin;
};

struct explore_process;

/* Make a model of a space. NULL: no memory. */
struct explore_process *explore_process__new(const struct pem_explore_space *space,
					     const struct explore_view *view);
void explore_process__free(struct explore_process *process);
/*
 * Fit the model to a history of at least one trial. Returns 0, -ENOMEM, or -EDOM: the values can't
 * be modelled.
 */
int explore_process__fit(struct explore_process *process, struct explore_history *history);
/*
 * Write the expected improvement of each of count configurations over the best trial. levels has
 * parameter_count members for each.
 */
void explore_process__improvements(struct explore_process *process, const uint32_t *levels,
				   size_t count, double *improvements);

/*
 * Draw functions that the points allow, and write the score of each at configurations: a row of
 * draws scores for each. levels as above. Returns 0, -ENOMEM or -EDOM.
 */
int explore_process__draw(const struct explore_process *process, const uint32_t *levels,
			  size_t count, size_t draws, double *scores, uint64_t *random);
/* The variance by which the score of a trial differs from that of its configuration. */
double explore_process__noise(const struct explore_process *process);

/* --- forest.c --- */

struct explore_forest;

/* Make a model of a space. NULL: no memory. */
struct explore_forest *explore_forest__new(const struct pem_explore_space *space, uint64_t seed);
void explore_forest__free(struct explore_forest *forest);
/*
 * Fit the model to a history of at least one trial, and write the expected improvement of each of
 * count configurations over the best trial. Returns 0, -ENOMEM, or -EDOM: no forest grew.
 */
int explore_forest__improvements(struct explore_forest *forest,
				 const struct explore_history *history, const uint32_t *levels,
				 size_t count, double *improvements);

/* --- find.c --- */

extern const struct pem_explore_policy explore_grid_policy, explore_random_policy,
	explore_latin_policy, explore_sobol_policy, explore_halving_policy, explore_model_policy,
	explore_forest_policy, explore_gaussian_policy, explore_portfolio_policy;

/* All policies of this program, and how many. */
const struct pem_explore_policy *const *explore_policies(size_t *count);
/*
 * Find a policy by its name, or load the file that name, with a '/', names. The copy is complete:
 * functions that the policy does not have do nothing. Returns 0, or -errno with error: -ENOENT
 * there is none of that name, -EINVAL the file is not a policy.
 */
int explore_policy__find(const char *name, struct pem_explore_policy *policy,
			 struct pem_error *error);
/* Why a policy failed, by the -errno that it returned: what follows "the policy failed: ". */
const char *explore_policy__why(int error);

/* --- python.c --- */

/*
 * Make a policy of a file in Python, whose name has a '/'; one such policy at a time. Its process
 * starts with begin. Returns 0, or -errno: the file can't be read. The functions of the policy
 * return also -ETIME: no answer came in time; -EPIPE: the process ended; -EPROTO: its answer makes
 * no sense; -ERANGE: it chose only what is not allowed.
 */
int explore_python__load(const char *path, struct pem_explore_policy *policy);

#endif
