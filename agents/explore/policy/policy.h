/* SPDX-License-Identifier: MIT */
/*
 * policy.h - the policies of pem explore itself
 *
 *	history.c	what was tried
 *	plain.c		grid, random, latin, sobol, halving: choices without a model
 *	portfolio.c	portfolio, gaussian, forest, model: choices by models
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

#include "models/models.h"
#include "trial/outcome.h"

#include <stdbool.h>

/* --- history.c --- */

struct explore_history {
	struct model_configurations tried;
	uint64_t random;
	uint32_t objectives;
	size_t capacity;
	double *given; /* objectives of each trial; INFINITY: it was not measured */
	double *values; /* for models: see weigh */
};

void explore_history__begin(struct explore_history *history, const struct pem_explore_space *space,
			    const struct pem_explore_options *options);
void explore_history__end(struct explore_history *history);
/* Add a trial; one of a configuration that was tried replaces it. Returns 0 or -ENOMEM. */
int explore_history__add(struct explore_history *history, const struct pem_explore_trial *trial);
static inline bool explore_history__has(const struct explore_history *history,
					const uint32_t *levels)
{
	return model_configurations__find(&history->tried, levels) != SIZE_MAX;
}
/* Write an allowed configuration that was not tried. Returns 1, or 0: none was found. */
static inline int explore_history__draw(struct explore_history *history, uint32_t *levels)
{
	return model_configurations__draw(&history->tried, &history->random, levels);
}
/*
 * Write the value of each trial: its objective, or if there are several, one that weighs them by
 * chance: the greatest weighed share, and a little of the others (ParEGO: Knowles, IEEE Trans.
 * Evolutionary Computation 10, 2006). A trial that was not measured has the worst value. Returns
 * false if none was measured.
 */
bool explore_history__weigh(struct explore_history *history);
/* --- plain.c and portfolio.c: functions of policies; states begin with their history --- */

void *explore_plain__begin(const struct pem_explore_space *space,
			   const struct pem_explore_options *options);
void explore_plain__end(void *policy);
int explore_plain__random(void *policy, uint32_t *levels);
int explore_plain__grid(void *policy, uint32_t *levels);
int explore_plain__latin(void *policy, uint32_t *levels);
int explore_plain__sobol(void *policy, uint32_t *levels);
/*
 * Successive halving (Jamieson and Talwalkar, AISTATS 2016): configurations by chance run once;
 * then the better half runs until each has twice as many runs, and so on, until one is left.
 */
int explore_plain__halving(void *policy, uint32_t *levels);

void *explore_portfolio__begin(const struct pem_explore_space *space,
			       const struct pem_explore_options *options);
void explore_portfolio__end(void *policy);
int explore_portfolio__next(void *policy, uint32_t *levels);
int explore_portfolio__gaussian(void *policy, uint32_t *levels);
int explore_portfolio__forest(void *policy, uint32_t *levels);
int explore_portfolio__model(void *policy, uint32_t *levels);

/* --- find.c --- */

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
