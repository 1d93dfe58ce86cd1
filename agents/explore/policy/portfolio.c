/* SPDX-License-Identifier: MIT */
/*
 * portfolio.c - portfolio, gaussian: choices by Gaussian processes
 *
 * No model fits every program. portfolio takes turns between three that err differently: one whose
 * parameters work together, one in which they mostly add up, one that sees ranks alone and looks
 * far; and each fourth trial is a configuration by chance, which bounds how long a wrong model can
 * hold the exploration. gaussian is the first of the three alone.
 */
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 4u /* trials before a model is made: as far from each other as possible */
#define BY_CHANCE 4u /* each fourth later one is left to chance */
#define CANDIDATES_MAX 20000u
/* Bounds the time of a choice: candidates, times points squared. */
#define WORK_MAX 4e8

static const struct explore_view views[] = {
	{.margin = 0.03},
	{.additive = true, .margin = 0.1},
	{.ranks = true, .margin = 0.3},
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

struct portfolio {
	struct explore_history history;
	struct explore_candidates candidates;
	struct explore_process *processes[VIEWS];
	uint32_t view_count;
};

static void end(void *policy)
{
	struct portfolio *portfolio = policy;
	uint32_t i;

	if (!portfolio)
		return;
	for (i = 0; i < portfolio->view_count; i++)
		explore_process__free(portfolio->processes[i]);
	explore_candidates__free(&portfolio->candidates);
	explore_history__end(&portfolio->history);
	free(portfolio);
}

static void *begin_with(const struct pem_explore_space *space,
			const struct pem_explore_options *options, uint32_t view_count)
{
	struct portfolio *portfolio = calloc(1, sizeof(*portfolio));
	uint32_t i;

	if (!portfolio)
		return NULL;
	explore_history__begin(&portfolio->history, space, options);
	for (i = 0; i < view_count; i++) {
		portfolio->processes[i] = explore_process__new(space, &views[i]);
		portfolio->view_count++;
		if (!portfolio->processes[i]) {
			end(portfolio);
			return NULL;
		}
	}
	return portfolio;
}

static void *begin(const struct pem_explore_space *space, const struct pem_explore_options *options)
{
	return begin_with(space, options, VIEWS);
}

static void *begin_gaussian(const struct pem_explore_space *space,
			    const struct pem_explore_options *options)
{
	return begin_with(space, options, 1);
}

static int process_trial(void *policy, const struct pem_explore_trial *trial)
{
	struct portfolio *portfolio = policy;

	return explore_history__add(&portfolio->history, trial);
}

/* Write the candidate with the greatest improvement that was not tried. Returns 1 or 0. */
static int best_of(struct portfolio *portfolio, const double *improvements, uint32_t *levels)
{
	const struct explore_candidates *candidates = &portfolio->candidates;
	uint32_t parameters = portfolio->history.space->parameter_count;
	double best = -1;
	size_t i;

	for (i = 0; i < candidates->count; i++) {
		const uint32_t *candidate = candidates->levels + i * parameters;

		if (!(improvements[i] > best) ||
		    explore_history__has(&portfolio->history, candidate))
			continue;
		best = improvements[i];
		memcpy(levels, candidate, parameters * sizeof(*levels));
	}
	return best >= 0;
}

static int choose(struct portfolio *portfolio, struct explore_process *process, uint32_t *levels)
{
	size_t count = portfolio->history.count;
	double points = (double)(count < EXPLORE_PROCESS_POINTS ? count : EXPLORE_PROCESS_POINTS);
	double limit = fmin(CANDIDATES_MAX, WORK_MAX / (points * points));
	double *improvements;
	int rc;

	rc = explore_process__fit(process, &portfolio->history);
	if (!rc)
		rc = explore_candidates__collect(&portfolio->candidates, &portfolio->history,
						 (size_t)limit);
	if (rc)
		return rc;
	improvements = calloc(portfolio->candidates.count + 1, sizeof(*improvements));
	if (!improvements)
		return -ENOMEM;
	explore_process__improvements(process, portfolio->candidates.levels,
				      portfolio->candidates.count, improvements);
	rc = best_of(portfolio, improvements, levels);
	free(improvements);
	return rc;
}

static int next_config(void *policy, uint32_t *levels)
{
	struct portfolio *portfolio = policy;
	struct explore_history *history = &portfolio->history;
	bool by_chance = portfolio->view_count > 1 && history->count % BY_CHANCE == 0;
	int rc;

	if (history->count < FIRST || !isfinite(history->best))
		return explore_history__far(history, levels);
	if (by_chance)
		return explore_history__draw(history, levels);
	rc = choose(portfolio, portfolio->processes[history->count % portfolio->view_count],
		    levels);
	/* No candidate is left, or no model fits. */
	if (rc == 0 || rc == -EDOM)
		return explore_history__draw(history, levels);
	return rc;
}

const struct pem_explore_policy explore_gaussian_policy = {
	.size = sizeof(explore_gaussian_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "gaussian",
	.summary = "Bayesian optimisation by a Gaussian process",
	.begin = begin_gaussian,
	.next_config = next_config,
	.process_trial = process_trial,
	.end = end,
};

const struct pem_explore_policy explore_portfolio_policy = {
	.size = sizeof(explore_portfolio_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "portfolio",
	.summary = "three Gaussian processes by turns, and chance",
	.begin = begin,
	.next_config = next_config,
	.process_trial = process_trial,
	.end = end,
};
