/* SPDX-License-Identifier: MIT */
/* history.c - what was tried, and configurations that were not */
#include "grow.h"
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OBJECTIVES_MAX 16u
#define SUM_WEIGHT 0.05
#define DRAWS 64u
/* A larger space is not searched for the configurations that are left. */
#define SEARCHED_MAX (UINT64_C(1) << 22)

void explore_history__begin(struct explore_history *history, const struct pem_explore_space *space,
			    const struct pem_explore_options *options)
{
	*history = (struct explore_history){.space = space,
					    .random = options->seed,
					    .objectives =
						    options->objectives ? options->objectives : 1};
	/* Seeds that are small numbers begin alike otherwise. */
	history->random = model_random(&history->random);
}

void explore_history__end(struct explore_history *history)
{
	free(history->levels);
	free(history->given);
	free(history->values);
	pem_number_map__free(&history->tried);
}

/* Different for different configurations, but for one pair in 2^64. */
static uint64_t key_of(const struct pem_explore_space *space, const uint32_t *levels)
{
	uint64_t key = 0;
	uint32_t i;

	for (i = 0; i < space->parameter_count; i++) {
		key ^= levels[i];
		key = model_random(&key);
	}
	return key;
}

size_t explore_history__find(const struct explore_history *history, const uint32_t *levels)
{
	uint32_t trial = pem_number_map__value(&history->tried, key_of(history->space, levels));

	return trial == UINT32_MAX ? SIZE_MAX : trial;
}

static int grow(struct explore_history *history)
{
	size_t level_capacity = history->capacity, given_capacity = history->capacity;

	if (pem_grow(&history->levels, sizeof(*history->levels) * history->space->parameter_count,
		     history->count + 1, &level_capacity) ||
	    pem_grow(&history->given, sizeof(*history->given) * history->objectives,
		     history->count + 1, &given_capacity) ||
	    pem_grow(&history->values, sizeof(*history->values), history->count + 1,
		     &history->capacity))
		return -ENOMEM;
	return 0;
}

int explore_history__add(struct explore_history *history, const struct pem_explore_trial *trial)
{
	uint32_t parameters = history->space->parameter_count, *known, i;
	size_t index = explore_history__find(history, trial->levels);
	bool is_measured = trial_outcome__has_values(trial->outcome);

	if (index == SIZE_MAX) {
		index = history->count;
		if (grow(history))
			return -ENOMEM;
		known = pem_number_map__at(&history->tried, key_of(history->space, trial->levels));
		if (!known)
			return -ENOMEM;
		*known = (uint32_t)index;
		memcpy(history->levels + index * parameters, trial->levels,
		       parameters * sizeof(*trial->levels));
		history->count++;
	}
	for (i = 0; i < history->objectives; i++)
		history->given[index * history->objectives + i] =
			is_measured ? trial->values[i] : INFINITY;
	return 0;
}

/* Add a share of one objective, from 0 for its best value to 1 for its worst. */
static void add_share(struct explore_history *history, uint32_t objective, double weight)
{
	const double *given = history->given + objective;
	double least = INFINITY, most = -INFINITY;
	size_t i;

	for (i = 0; i < history->count; i++) {
		double value = given[i * history->objectives];

		least = fmin(least, value);
		most = isinf(value) ? most : fmax(most, value);
	}
	for (i = 0; i < history->count && most > least; i++) {
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

	for (i = 0; i < history->count; i++)
		history->values[i] = count > 1 ? 0 : history->given[i];
	/* Evenly over all weights whose sum is 1. */
	for (i = 0; i < count && count > 1; i++) {
		weights[i] = -log(1 - model_random__share(&history->random));
		sum += weights[i];
	}
	for (i = 0; i < count && count > 1; i++)
		add_share(history, (uint32_t)i, weights[i] / sum);
	for (i = 0; i < history->count; i++) {
		if (isfinite(explore_history__value(history, i)))
			worst = fmax(worst, history->values[i]);
	}
	for (i = 0; i < history->count; i++) {
		if (isinf(explore_history__value(history, i)))
			history->values[i] = worst;
	}
	return worst > -INFINITY;
}

/* The first configuration that was not tried, after a random one. */
static int search(struct explore_history *history, uint32_t *levels)
{
	const struct pem_explore_space *space = history->space;
	uint64_t start, i;

	if (space->count > SEARCHED_MAX)
		return 0;
	start = model_random__below(&history->random, space->count);
	for (i = 0; i < space->count; i++) {
		space->at(space, (start + i) % space->count, levels);
		if (!explore_history__has(history, levels))
			return 1;
	}
	return 0;
}

int explore_history__draw(struct explore_history *history, uint32_t *levels)
{
	uint32_t attempt;

	for (attempt = 0; attempt < DRAWS; attempt++) {
		if (!model_any(history->space, &history->random, levels))
			return 0;
		if (!explore_history__has(history, levels))
			return 1;
	}
	return search(history, levels);
}
