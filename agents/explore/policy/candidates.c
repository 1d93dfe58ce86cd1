/* SPDX-License-Identifier: MIT */
/* candidates.c - configurations among which a model chooses; expected improvement */
#include "grow.h"
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEST 10u /* trials whose neighbours are candidates */
#define NEIGHBOURS 8u /* of one parameter of one trial */

double explore_improvement(double target, double mean, double deviation)
{
	double z;

	if (!(deviation > 0))
		return fmax(target - mean, 0);
	z = (target - mean) / deviation;
	return deviation * (z * 0.5 * erfc(-z * M_SQRT1_2) + exp(-z * z / 2) / sqrt(2 * M_PI));
}

static int add(struct explore_candidates *candidates, uint32_t parameters, const uint32_t *levels)
{
	if (pem_grow(&candidates->levels, sizeof(*levels) * parameters, candidates->count + 1,
		     &candidates->capacity))
		return -ENOMEM;
	memcpy(candidates->levels + candidates->count++ * parameters, levels,
	       parameters * sizeof(*levels));
	return 0;
}

static int add_all(struct explore_candidates *candidates, const struct pem_explore_space *space,
		   uint32_t *levels)
{
	uint64_t i;

	for (i = 0; i < space->count; i++) {
		space->at(space, i, levels);
		if (add(candidates, space->parameter_count, levels))
			return -ENOMEM;
	}
	candidates->complete = true;
	return 0;
}

/* Configurations that differ from a trial in one parameter: the next levels, or any. */
static int add_neighbours(struct explore_candidates *candidates, struct explore_history *history,
			  size_t trial, uint32_t *levels)
{
	const struct pem_explore_space *space = history->space;
	const uint32_t *from = explore_history__levels(history, trial);
	uint32_t i, k;

	for (i = 0; i < space->parameter_count; i++) {
		uint32_t count = space->parameters[i].levels;

		for (k = 0; k < NEIGHBOURS && k < count; k++) {
			uint32_t level =
				count <= NEIGHBOURS ? k
				: k == 0            ? (from[i] + 1) % count
				: k == 1            ? (from[i] + count - 1) % count
					 : (uint32_t)explore_random__below(&history->random, count);

			memcpy(levels, from, space->parameter_count * sizeof(*levels));
			levels[i] = level;
			if (level != from[i] && space->allows(space, levels) &&
			    add(candidates, space->parameter_count, levels))
				return -ENOMEM;
		}
	}
	return 0;
}

/* The index of the rank-th best trial. */
static size_t ranked(const struct explore_history *history, size_t rank)
{
	double after = -INFINITY;
	size_t found = 0, i;

	do {
		double least = INFINITY;

		for (i = 0; i < history->count; i++) {
			if (history->values[i] > after && history->values[i] < least) {
				least = history->values[i];
				found = i;
			}
		}
		after = least;
	} while (rank--);
	return found;
}

static int collect(struct explore_candidates *candidates, struct explore_history *history,
		   size_t limit, uint32_t *levels)
{
	const struct pem_explore_space *space = history->space;
	size_t i;

	if (space->count <= limit)
		return candidates->complete ? 0 : add_all(candidates, space, levels);
	candidates->count = 0;
	for (i = 0; i < BEST && i < history->count && candidates->count < limit / 2; i++) {
		if (add_neighbours(candidates, history, ranked(history, i), levels))
			return -ENOMEM;
	}
	while (candidates->count < limit && explore_history__any(history, levels)) {
		if (add(candidates, space->parameter_count, levels))
			return -ENOMEM;
	}
	return 0;
}

int explore_candidates__collect(struct explore_candidates *candidates,
				struct explore_history *history, size_t limit)
{
	uint32_t *levels = calloc(history->space->parameter_count, sizeof(*levels));
	int rc = levels ? collect(candidates, history, limit, levels) : -ENOMEM;

	free(levels);
	return rc;
}

void explore_candidates__free(struct explore_candidates *candidates)
{
	free(candidates->levels);
	*candidates = (struct explore_candidates){0};
}
