/* SPDX-License-Identifier: MIT */
/* history.c - what was tried */
#include "grow.h"
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTIVES_MAX 16u
#define SUM_WEIGHT 0.05
void explore_history__begin(struct explore_history *history, const struct pem_explore_space *space,
			    const struct pem_explore_options *options)
{
	*history = (struct explore_history){.tried = {.space = space},
					    .random = options->seed,
					    .objectives =
						    options->objectives ? options->objectives : 1};
	/* Seeds that are small numbers begin alike otherwise. */
	history->random = model_random(&history->random);
}

void explore_history__end(struct explore_history *history)
{
	model_configurations__free(&history->tried);
	free(history->given);
	free(history->values);
}

int explore_history__add(struct explore_history *history, const struct pem_explore_trial *trial)
{
	size_t most = history->tried.count + 1, given_capacity = history->capacity, index;
	uint32_t i;

	if (pem_grow(&history->given, sizeof(*history->given) * history->objectives, most,
		     &given_capacity) ||
	    pem_grow(&history->values, sizeof(*history->values), most, &history->capacity))
		return -ENOMEM;
	index = model_configurations__add(&history->tried, trial->levels);
	if (index == SIZE_MAX)
		return -ENOMEM;
	for (i = 0; i < history->objectives; i++)
		history->given[index * history->objectives + i] =
			trial_outcome__has_values(trial->outcome) ? trial->values[i] : INFINITY;
	return 0;
}

/* Add a share of one objective, from 0 for its best value to 1 for its worst. */
static void add_share(struct explore_history *history, uint32_t objective, double weight)
{
	const double *given = history->given + objective;
	double least = INFINITY, most = -INFINITY;
	size_t i;

	for (i = 0; i < history->tried.count; i++) {
		double value = given[i * history->objectives];

		least = fmin(least, value);
		most = isinf(value) ? most : fmax(most, value);
	}
	for (i = 0; i < history->tried.count && most > least; i++) {
		double share = weight * (given[i * history->objectives] - least) / (most - least);

		history->values[i] = fmax(history->values[i], share) + SUM_WEIGHT * share;
	}
}

bool explore_history__weigh(struct explore_history *history)
{
	double sum = 0, worst = -INFINITY, weights[OBJECTIVES_MAX];
	uint32_t count =
		history->objectives < OBJECTIVES_MAX ? history->objectives : OBJECTIVES_MAX;
	size_t i;

	for (i = 0; i < history->tried.count; i++)
		history->values[i] = count > 1 ? 0 : history->given[i];
	/* Evenly over all weights whose sum is 1. */
	for (i = 0; i < count && count > 1; i++) {
		weights[i] = -log(1 - model_random__share(&history->random));
		sum += weights[i];
	}
	for (i = 0; i < count && count > 1; i++)
		add_share(history, (uint32_t)i, weights[i] / sum);
	for (i = 0; i < history->tried.count; i++) {
		if (isfinite(history->given[i * history->objectives]))
			worst = fmax(worst, history->values[i]);
	}
	for (i = 0; i < history->tried.count; i++) {
		if (isinf(history->given[i * history->objectives]))
			history->values[i] = worst;
	}
	return worst > -INFINITY;
}
