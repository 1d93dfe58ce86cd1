/* SPDX-License-Identifier: MIT */
/* history.c - what was tried, and configurations that were not */
#include "grow.h"
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS 10000u
#define OBJECTIVES_MAX 16u
#define SUM_WEIGHT 0.05
/* A larger space is not searched for the configurations that are left. */
#define SEARCHED_MAX (UINT64_C(1) << 22)

void explore_history__begin(struct explore_history *history, const struct pem_explore_space *space,
			    const struct pem_explore_options *options)
{
	*history = (struct explore_history){.space = space,
					    .random = options->seed,
					    .objectives =
						    options->objectives ? options->objectives : 1,
					    .best = INFINITY,
					    .worst = -INFINITY};
	/* Seeds that are small numbers begin alike otherwise. */
	history->random = explore_random(&history->random);
}

void explore_history__end(struct explore_history *history)
{
	free(history->levels);
	free(history->values);
	free(history->given);
	free(history->measured);
	pem_number_map__free(&history->tried);
}

/* Different for different configurations, but for one pair in 2^64. */
static uint64_t key_of(const struct pem_explore_space *space, const uint32_t *levels)
{
	uint64_t key = 0;
	uint32_t i;

	for (i = 0; i < space->parameter_count; i++) {
		key ^= levels[i];
		key = explore_random(&key);
	}
	return key;
}

size_t explore_history__find(const struct explore_history *history, const uint32_t *levels)
{
	uint32_t trial = pem_number_map__value(&history->tried, key_of(history->space, levels));

	return trial == UINT32_MAX ? SIZE_MAX : trial;
}

/* Take values into account, from a trial on. Trials without values count as the worst one. */
static void reckon(struct explore_history *history, size_t from)
{
	double worst = from ? history->worst : INFINITY;
	size_t i;

	if (!from) {
		history->best = INFINITY;
		history->worst = -INFINITY;
		history->unmeasured = 0;
	}
	for (i = from; i < history->count; i++) {
		history->unmeasured += !history->measured[i];
		if (!history->measured[i])
			continue;
		history->best = fmin(history->best, history->values[i]);
		history->worst = fmax(history->worst, history->values[i]);
	}
	for (i = history->worst == worst || !history->unmeasured ? from : 0; i < history->count;
	     i++) {
		if (!history->measured[i])
			history->values[i] = isfinite(history->worst) ? history->worst : 0;
	}
}

int explore_history__add(struct explore_history *history, const struct pem_explore_trial *trial)
{
	uint32_t parameters = history->space->parameter_count;
	size_t index = explore_history__find(history, trial->levels);
	bool is_new = index == SIZE_MAX;
	uint32_t *known, i;

	if (is_new) {
		index = history->count;
		if (pem_grow(&history->levels, sizeof(*history->levels) * parameters, index + 1,
			     &history->level_capacity) ||
		    pem_grow(&history->values, sizeof(*history->values), index + 1,
			     &history->value_capacity) ||
		    pem_grow(&history->given, sizeof(*history->given) * history->objectives,
			     index + 1, &history->given_capacity) ||
		    pem_grow(&history->measured, sizeof(*history->measured), index + 1,
			     &history->measured_capacity))
			return -ENOMEM;
		known = pem_number_map__at(&history->tried, key_of(history->space, trial->levels));
		if (!known)
			return -ENOMEM;
		*known = (uint32_t)index;
		memcpy(history->levels + index * parameters, trial->levels,
		       parameters * sizeof(*trial->levels));
		history->count++;
	}
	history->measured[index] =
		trial->outcome == PEM_EXPLORE_MEASURED || trial->outcome == PEM_EXPLORE_STOPPED;
	if (history->measured[index]) {
		history->values[index] = trial->values[0];
		for (i = 0; i < history->objectives; i++)
			history->given[index * history->objectives + i] = trial->values[i];
	}
	reckon(history, is_new ? index : 0);
	return 0;
}

/* Add a share of one objective, from 0 for its best value to 1 for its worst. */
static void add_share(struct explore_history *history, uint32_t objective, double weight)
{
	const double *given = history->given + objective;
	double least = INFINITY, most = -INFINITY;
	size_t i;

	for (i = 0; i < history->count; i++) {
		if (!history->measured[i])
			continue;
		least = fmin(least, given[i * history->objectives]);
		most = fmax(most, given[i * history->objectives]);
	}
	for (i = 0; i < history->count && most > least; i++) {
		double share = weight * (given[i * history->objectives] - least) / (most - least);

		if (history->measured[i])
			history->values[i] = fmax(history->values[i], share) + SUM_WEIGHT * share;
	}
}

void explore_history__weigh(struct explore_history *history)
{
	double sum = 0, weights[OBJECTIVES_MAX];
	uint32_t count =
		history->objectives < OBJECTIVES_MAX ? history->objectives : OBJECTIVES_MAX;
	uint32_t i;

	if (count < 2)
		return;
	/* Evenly over all weights whose sum is 1. */
	for (i = 0; i < count; i++) {
		weights[i] = -log((double)((explore_random(&history->random) >> 11) + 1) * 0x1p-53);
		sum += weights[i];
	}
	memset(history->values, 0, history->count * sizeof(*history->values));
	for (i = 0; i < count; i++)
		add_share(history, i, weights[i] / sum);
	reckon(history, 0);
}

int explore_history__any(struct explore_history *history, uint32_t *levels)
{
	const struct pem_explore_space *space = history->space;
	uint32_t attempt, i;

	if (!space->count)
		return 0;
	if (space->count != UINT64_MAX) {
		space->at(space, explore_random__below(&history->random, space->count), levels);
		return 1;
	}
	for (attempt = 0; attempt < ATTEMPTS; attempt++) {
		for (i = 0; i < space->parameter_count; i++)
			levels[i] = (uint32_t)explore_random__below(&history->random,
								    space->parameters[i].levels);
		if (space->allows(space, levels))
			return 1;
	}
	return 0;
}

/* The first configuration that was not tried, after a random one. */
static int search(struct explore_history *history, uint32_t *levels)
{
	const struct pem_explore_space *space = history->space;
	uint64_t start, i;

	if (space->count > SEARCHED_MAX)
		return 0;
	start = explore_random__below(&history->random, space->count);
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

	for (attempt = 0; attempt < 64; attempt++) {
		if (!explore_history__any(history, levels))
			return 0;
		if (!explore_history__has(history, levels))
			return 1;
	}
	return search(history, levels);
}
