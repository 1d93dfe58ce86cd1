/* SPDX-License-Identifier: MIT */
/*
 * portfolio.c - portfolio, gaussian, forest: choices by models
 *
 * The next configuration is the one of the greatest expected improvement by a model. No model fits
 * every program. portfolio takes turns between models that err differently: one whose parameters
 * work together, one in which they mostly add up, one that sees ranks alone and looks far; and each
 * fourth trial is a configuration by chance, which bounds how long a wrong model can hold the
 * exploration. gaussian and forest have one model each.
 */
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 2u /* trials by chance before a model is made */
#define CANDIDATES_MAX 20000u
/* These bound the time of a choice: candidates, times points squared; of a forest, times trials. */
#define PROCESS_WORK_MAX 4e8
#define FOREST_WORK_MAX 2e6
#define MODELS 4u

/* The models that take turns, and when chance does. */
struct turns {
	const struct explore_view *views[MODELS]; /* NULL: the forest */
	uint32_t count;
	uint32_t chance; /* each so many-th trial is left to it; 0: none */
};

static const struct explore_view together = {.margin = 0.03};
static const struct explore_view additive = {.additive = true, .margin = 0.1};
static const struct explore_view by_ranks = {.ranks = true, .margin = 0.3};

static const struct explore_view uncertain = {.uncertain = true};

struct portfolio {
	struct explore_history history;
	struct explore_candidates candidates;
	struct turns turns;
	struct explore_process *processes[MODELS];
	struct explore_forest *forest;
};

static void end(void *policy)
{
	struct portfolio *portfolio = policy;
	uint32_t i;

	if (!portfolio)
		return;
	for (i = 0; i < MODELS; i++)
		explore_process__free(portfolio->processes[i]);
	explore_forest__free(portfolio->forest);
	explore_candidates__free(&portfolio->candidates);
	explore_history__end(&portfolio->history);
	free(portfolio);
}

static void *begin_with(const struct pem_explore_space *space,
			const struct pem_explore_options *options, struct turns turns)
{
	struct portfolio *portfolio = calloc(1, sizeof(*portfolio));
	bool has_all;
	uint32_t i;

	if (!portfolio)
		return NULL;
	explore_history__begin(&portfolio->history, space, options);
	portfolio->turns = turns;
	portfolio->forest = explore_forest__new(space, options->seed);
	has_all = portfolio->forest;
	for (i = 0; i < turns.count && has_all; i++) {
		if (!turns.views[i])
			continue;
		portfolio->processes[i] = explore_process__new(space, turns.views[i]);
		has_all = portfolio->processes[i];
	}
	if (has_all)
		return portfolio;
	end(portfolio);
	return NULL;
}

static void *begin(const struct pem_explore_space *space, const struct pem_explore_options *options)
{
	return begin_with(space, options,
			  (struct turns){.views = {&together, &additive, &by_ranks},
					 .count = 3,
					 .chance = 4});
}

static void *begin_model(const struct pem_explore_space *space,
			 const struct pem_explore_options *options)
{
	return begin_with(space, options,
			  (struct turns){.views = {&uncertain}, .count = 1, .chance = 4});
}

static void *begin_gaussian(const struct pem_explore_space *space,
			    const struct pem_explore_options *options)
{
	return begin_with(space, options, (struct turns){.views = {&together}, .count = 1});
}

static void *begin_forest(const struct pem_explore_space *space,
			  const struct pem_explore_options *options)
{
	return begin_with(space, options, (struct turns){.count = 1, .chance = 5});
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

/* The improvements of all candidates by the model whose turn it is. */
static int improvements_of(struct portfolio *portfolio, struct explore_process *process,
			   double *improvements)
{
	const struct explore_candidates *candidates = &portfolio->candidates;
	int rc;

	if (!process)
		return explore_forest__improvements(portfolio->forest, &portfolio->history,
						    candidates->levels, candidates->count,
						    improvements);
	rc = explore_process__fit(process, &portfolio->history);
	if (!rc)
		explore_process__improvements(process, candidates->levels, candidates->count,
					      improvements);
	return rc;
}

static int choose(struct portfolio *portfolio, uint32_t *levels)
{
	struct explore_history *history = &portfolio->history;
	const struct turns *turns = &portfolio->turns;
	size_t by_chance = turns->chance ? history->count / turns->chance : 0;
	struct explore_process *process =
		portfolio->processes[(history->count - by_chance) % turns->count];
	double points = fmin((double)history->count, EXPLORE_PROCESS_POINTS), *improvements;
	double limit = process ? PROCESS_WORK_MAX / (points * points)
			       : FOREST_WORK_MAX / (double)history->count;
	int rc;

	explore_history__weigh(history);
	rc = explore_candidates__collect(&portfolio->candidates, history,
					 (size_t)fmin(limit, CANDIDATES_MAX));

	if (rc)
		return rc;
	improvements = calloc(portfolio->candidates.count + 1, sizeof(*improvements));
	if (!improvements)
		return -ENOMEM;
	rc = improvements_of(portfolio, process, improvements);
	if (!rc)
		rc = best_of(portfolio, improvements, levels);
	free(improvements);
	return rc;
}

static int next_config(void *policy, uint32_t *levels)
{
	struct portfolio *portfolio = policy;
	struct explore_history *history = &portfolio->history;
	const struct turns *turns = &portfolio->turns;
	int rc;

	if (history->count < FIRST || !isfinite(history->best) ||
	    (turns->chance && history->count % turns->chance == 0))
		return explore_history__draw(history, levels);
	rc = choose(portfolio, levels);
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

const struct pem_explore_policy explore_forest_policy = {
	.size = sizeof(explore_forest_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "forest",
	.summary = "Bayesian optimisation by a random forest",
	.begin = begin_forest,
	.next_config = next_config,
	.process_trial = process_trial,
	.end = end,
};

const struct pem_explore_policy explore_model_policy = {
	.size = sizeof(explore_model_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "model",
	.summary = "where values are least certain, for a model of the whole space",
	.begin = begin_model,
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
