/* SPDX-License-Identifier: MIT */
/*
 * portfolio.c - portfolio, gaussian, forest, model: choices by models
 *
 * The next configuration is the one of the greatest expected improvement by a model. No model fits
 * every program. portfolio takes turns between models that err differently: one whose parameters
 * work together, one in which they mostly add up, one that sees ranks alone and looks far, and a
 * forest, which errs in other places than all of them. Each fifth trial is a configuration by
 * chance, which bounds how long a wrong model can hold the exploration. The other policies have one
 * model each.
 */
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 2u /* trials by chance before a model is made */
#define POINTS_MAX 300u /* of a Gaussian process */
#define CANDIDATES_MAX 20000u
/* These bound the time of a choice: candidates, times points squared; of a forest, times trials. */
#define PROCESS_WORK_MAX 4e8
#define FOREST_WORK_MAX 1e6
#define FOREST_VARIANCE_LEAST 1e-4
#define BEST 10u /* trials whose neighbours are candidates */
#define NEIGHBOURS 8u /* of one parameter of one trial */
#define MODELS 4u

/* How a model sees values, and what it looks for. */
struct view {
	bool is_forest;
	bool additive; /* see struct model_process_options */
	bool ranks; /* scores of ranks, not of logarithms */
	bool uncertain; /* improvement is how uncertain a value is */
	/* An improvement counts if it is larger: of logarithms, or of standard deviations. */
	double margin;
};

/* The models that take turns, and when chance does. */
struct turns {
	struct view views[MODELS];
	uint32_t count;
	uint32_t chance; /* of this many trials, one is left to it; 0: none */
	uint32_t chance_from; /* trials before that */
};

struct portfolio {
	struct explore_history history;
	uint64_t seed;
	struct model_process *processes[MODELS];
	/* Configurations among which a model chooses. */
	uint32_t *candidates;
	size_t count;
	bool is_whole; /* they are the whole space */
};

void *explore_portfolio__begin(const struct pem_explore_space *space,
			       const struct pem_explore_options *options)
{
	struct portfolio *portfolio = calloc(1, sizeof(*portfolio));

	if (!portfolio)
		return NULL;
	explore_history__begin(&portfolio->history, space, options);
	portfolio->seed = options->seed * 1000003;
	return portfolio;
}

void explore_portfolio__end(void *policy)
{
	struct portfolio *portfolio = policy;
	uint32_t i;

	if (!portfolio)
		return;
	for (i = 0; i < MODELS; i++)
		model_process__free(portfolio->processes[i]);
	free(portfolio->candidates);
	explore_history__end(&portfolio->history);
	free(portfolio);
}

/* --- candidates --- */

static uint32_t *candidate(const struct portfolio *portfolio, size_t index)
{
	return portfolio->candidates + index * portfolio->history.tried.space->parameter_count;
}

/* Add configurations that differ from a trial in one parameter: the next levels, or any. */
static void add_neighbours(struct portfolio *portfolio, size_t trial)
{
	struct explore_history *history = &portfolio->history;
	const struct pem_explore_space *space = history->tried.space;
	const uint32_t *from = model_configurations__levels(&history->tried, trial);
	uint32_t i, k, *levels;

	for (i = 0; i < space->parameter_count; i++) {
		uint32_t count = space->parameters[i].levels;

		for (k = 0; k < NEIGHBOURS && k < count; k++) {
			levels = candidate(portfolio, portfolio->count);
			memcpy(levels, from, space->parameter_count * sizeof(*levels));
			levels[i] =
				count <= NEIGHBOURS ? k
				: k == 0            ? (from[i] + 1) % count
				: k == 1            ? (from[i] + count - 1) % count
					 : (uint32_t)model_random__below(&history->random, count);
			if (levels[i] != from[i] && space->allows(space, levels))
				portfolio->count++;
		}
	}
}

/* Add the neighbours of the best trials, limit candidates or those of one trial more. */
static int add_near_best(struct portfolio *portfolio, size_t limit)
{
	const struct explore_history *history = &portfolio->history;
	size_t count = history->tried.count, i;
	double *sorted = calloc(count, sizeof(*sorted)), bar;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, history->values, count * sizeof(*sorted));
	model_sort(sorted, count);
	bar = sorted[(count < BEST ? count : BEST) - 1];
	free(sorted);
	for (i = 0; i < count && portfolio->count < limit; i++) {
		if (history->values[i] <= bar)
			add_neighbours(portfolio, i);
	}
	return 0;
}

/* Collect all configurations, or limit of them, which may have been tried: 0 or -ENOMEM. */
static int collect(struct portfolio *portfolio, size_t limit)
{
	const struct pem_explore_space *space = portfolio->history.tried.space;
	bool is_whole = space->count <= limit;
	size_t near = limit / 2 + (size_t)NEIGHBOURS * space->parameter_count;
	size_t most = is_whole ? space->count : near > limit ? near : limit;
	uint32_t *levels;

	if (is_whole && portfolio->is_whole)
		return 0;
	/* The last neighbour is written before it is allowed. */
	levels = reallocarray(portfolio->candidates, most + 1,
			      space->parameter_count * sizeof(*levels));
	if (!levels)
		return -ENOMEM;
	portfolio->candidates = levels;
	portfolio->is_whole = is_whole;
	portfolio->count = 0;
	if (!is_whole && add_near_best(portfolio, limit / 2))
		return -ENOMEM;
	for (; portfolio->count < (is_whole ? most : limit); portfolio->count++) {
		levels = candidate(portfolio, portfolio->count);
		if (is_whole)
			space->at(space, portfolio->count, levels);
		else if (!model_any(space, &portfolio->history.random, levels))
			break;
	}
	return 0;
}

/* --- choices --- */

static int predict(struct portfolio *portfolio, const struct turns *turns, uint32_t turn,
		   const double *scores, double *means, double *variances)
{
	const struct view *view = &turns->views[turn];
	const struct model_process_options options = {
		.points = POINTS_MAX, .evenly = view->uncertain, .additive = view->additive};
	struct explore_history *history = &portfolio->history;
	struct model_process **process = &portfolio->processes[turn];
	size_t i;
	int rc;

	if (view->is_forest) {
		rc = model_forest__of(&history->tried, scores,
				      portfolio->seed + history->tried.count, portfolio->candidates,
				      portfolio->count, means, variances);
		for (i = 0; !rc && i < portfolio->count; i++)
			variances[i] = fmax(variances[i], FOREST_VARIANCE_LEAST);
		return rc;
	}
	if (!*process)
		*process = model_process__new(history->tried.space, &options);
	if (!*process)
		return -ENOMEM;
	rc = model_process__fit(*process, history->tried.levels, scores, history->tried.count,
				&history->random);
	if (!rc)
		model_process__predict(*process, portfolio->candidates, portfolio->count, means,
				       variances);
	return rc;
}

/*
 * By how much a value of that mean and variance is expected to be below target (Jones, Schonlau
 * and Welch, J. Global Optimization 13, 1998).
 */
static double improvement(double target, double mean, double variance)
{
	double deviation = sqrt(variance), z = (target - mean) / deviation;

	return deviation * (z * 0.5 * erfc(-z * M_SQRT1_2) + exp(-z * z / 2) / sqrt(2 * M_PI));
}

/* Write the candidate with the greatest improvement that was not tried. Returns 1 or 0. */
static int best_of(const struct portfolio *portfolio, const struct view *view, double target,
		   const double *means, const double *variances, uint32_t *levels)
{
	size_t bytes = portfolio->history.tried.space->parameter_count * sizeof(*levels), i;
	double best = -1;

	for (i = 0; i < portfolio->count; i++) {
		double value = view->uncertain ? variances[i]
					       : improvement(target, means[i], variances[i]);

		if (!(value > best) ||
		    explore_history__has(&portfolio->history, candidate(portfolio, i)))
			continue;
		best = value;
		memcpy(levels, candidate(portfolio, i), bytes);
	}
	return best >= 0;
}

/* Let the model whose turn it is choose. Returns 1, 0: no candidate is left; or -errno. */
static int choose(struct portfolio *portfolio, const struct turns *turns, uint32_t *levels)
{
	const struct explore_history *history = &portfolio->history;
	size_t count = history->tried.count, by_chance = turns->chance ? count / turns->chance : 0,
	       i;
	uint32_t turn = (uint32_t)((count - by_chance) % turns->count);
	const struct view *view = &turns->views[turn];
	double points = fmin((double)count, POINTS_MAX), target = INFINITY, deviation, *scores;
	double limit = view->is_forest ? FOREST_WORK_MAX / (double)count
				       : PROCESS_WORK_MAX / (points * points);
	int rc = collect(portfolio, (size_t)fmin(limit, CANDIDATES_MAX));

	if (rc)
		return rc;
	/* Then means and variances of candidates. */
	scores = calloc(2 * count + 2 * portfolio->count, sizeof(*scores));
	if (!scores)
		return -ENOMEM;
	deviation = model_scores(history->values, count, view->ranks, scores);
	for (i = 0; i < count; i++)
		target = fmin(target, scores[i] - view->margin / deviation);
	rc = predict(portfolio, turns, turn, scores, scores + 2 * count,
		     scores + 2 * count + portfolio->count);
	if (!rc)
		rc = best_of(portfolio, view, target, scores + 2 * count,
			     scores + 2 * count + portfolio->count, levels);
	free(scores);
	return rc;
}

static int next_by(struct portfolio *portfolio, const struct turns *turns, uint32_t *levels)
{
	struct explore_history *history = &portfolio->history;
	int rc;

	if (history->tried.count < FIRST || !explore_history__weigh(history) ||
	    (turns->chance && history->tried.count >= turns->chance_from &&
	     history->tried.count % turns->chance == 0))
		return explore_history__draw(history, levels);
	rc = choose(portfolio, turns, levels);
	/* No candidate is left, or no model fits. */
	if (rc == 0 || rc == -EDOM)
		return explore_history__draw(history, levels);
	return rc;
}

int explore_portfolio__next(void *policy, uint32_t *levels)
{
	static const struct turns turns = {.views = {{.margin = 0.03},
						     {.additive = true, .margin = 0.1},
						     {.ranks = true, .margin = 0.3},
						     {.is_forest = true}},
					   .count = 4,
					   .chance = 5,
					   .chance_from = 10};

	return next_by(policy, &turns, levels);
}

int explore_portfolio__gaussian(void *policy, uint32_t *levels)
{
	static const struct turns turns = {.views = {{.margin = 0.03}}, .count = 1};

	return next_by(policy, &turns, levels);
}

int explore_portfolio__forest(void *policy, uint32_t *levels)
{
	static const struct turns turns = {.views = {{.is_forest = true}}, .count = 1, .chance = 5};

	return next_by(policy, &turns, levels);
}

int explore_portfolio__model(void *policy, uint32_t *levels)
{
	static const struct turns turns = {.views = {{.uncertain = true}}, .count = 1, .chance = 4};

	return next_by(policy, &turns, levels);
}
