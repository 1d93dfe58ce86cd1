/* SPDX-License-Identifier: MIT */
/* plain.c - grid, random, latin, sobol, halving: choices without a model */
#define _GNU_SOURCE /* qsort_r */
#include "policy/policy.h"

#include <nlopt.h>

#include <stdlib.h>
#include <string.h>

/* Configurations of a Latin hypercube, or runs of a halving, without a budget. */
#define LATIN_ROWS 64u
#define SOBOL_ATTEMPTS 1000u

/* Of NLopt, after Joe and Kuo (ACM TOMS 29, 2003); its header does not have them. */
struct nlopt_soboldata_s;
struct nlopt_soboldata_s *nlopt_sobol_create(unsigned int dimensions);
void nlopt_sobol_destroy(struct nlopt_soboldata_s *sobol);
void nlopt_sobol_next01(struct nlopt_soboldata_s *sobol, double *point);

struct plain {
	struct explore_history history;
	uint64_t next; /* grid: number of the next configuration */
	/* latin: the part, of as many as rows, that each row takes of each parameter. */
	uint32_t *parts;
	uint32_t rows, row;
	struct nlopt_soboldata_s *sobol;
	double *point, *shift; /* its next point, and what the seed adds to each */
	/* halving: indexes of the trials that are in the round, rows of them. */
	uint32_t *round;
	uint32_t more, made; /* runs that each takes in the round, and that this one made */
};

static void end(void *policy)
{
	struct plain *plain = policy;

	if (!plain)
		return;
	explore_history__end(&plain->history);
	if (plain->sobol)
		nlopt_sobol_destroy(plain->sobol);
	free(plain->parts);
	free(plain->point);
	free(plain->round);
	free(plain);
}

static void *begin(const struct pem_explore_space *space, const struct pem_explore_options *options)
{
	struct plain *plain = calloc(1, sizeof(*plain));

	if (plain)
		explore_history__begin(&plain->history, space, options);
	return plain;
}

static int process_trial(void *policy, const struct pem_explore_trial *trial)
{
	struct plain *plain = policy;

	return explore_history__add(&plain->history, trial);
}

static int draw(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;

	return explore_history__draw(&plain->history, levels);
}

const struct pem_explore_policy explore_random_policy = {
	.size = sizeof(explore_random_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "random",
	.summary = "any configuration that was not tried",
	.begin = begin,
	.next_config = draw,
	.process_trial = process_trial,
	.end = end,
};

static int next_of_grid(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;
	const struct pem_explore_space *space = plain->history.space;

	while (plain->next < space->count) {
		space->at(space, plain->next++, levels);
		if (!explore_history__has(&plain->history, levels))
			return 1;
	}
	return 0;
}

const struct pem_explore_policy explore_grid_policy = {
	.size = sizeof(explore_grid_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "grid",
	.summary = "all configurations, in their order",
	.begin = begin,
	.next_config = next_of_grid,
	.process_trial = process_trial,
	.end = end,
};

/* Each parameter's range is cut into as many parts as there are rows; each row has one of each. */
static void *begin_latin(const struct pem_explore_space *space,
			 const struct pem_explore_options *options)
{
	struct plain *plain = begin(space, options);
	uint32_t i, row;

	if (!plain)
		return NULL;
	plain->rows = options->budget ? options->budget : LATIN_ROWS;
	plain->parts = calloc((size_t)plain->rows * space->parameter_count, sizeof(*plain->parts));
	if (!plain->parts) {
		end(plain);
		return NULL;
	}
	for (i = 0; i < space->parameter_count; i++) {
		uint32_t *part = plain->parts + (size_t)i * plain->rows;

		for (row = 0; row < plain->rows; row++) {
			uint32_t other =
				(uint32_t)explore_random__below(&plain->history.random, row + 1);

			part[row] = part[other];
			part[other] = row;
		}
	}
	return plain;
}

static int next_of_latin(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;
	const struct pem_explore_space *space = plain->history.space;
	uint32_t i;

	while (plain->row < plain->rows) {
		for (i = 0; i < space->parameter_count; i++) {
			uint64_t part = plain->parts[(size_t)i * plain->rows + plain->row];

			levels[i] = (uint32_t)(part * space->parameters[i].levels / plain->rows);
		}
		plain->row++;
		if (space->allows(space, levels) && !explore_history__has(&plain->history, levels))
			return 1;
	}
	/* Rows that are not allowed, or were tried, leave trials over. */
	return explore_history__draw(&plain->history, levels);
}

const struct pem_explore_policy explore_latin_policy = {
	.size = sizeof(explore_latin_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "latin",
	.summary = "a Latin hypercube: each parameter's values equally often",
	.begin = begin_latin,
	.next_config = next_of_latin,
	.process_trial = process_trial,
	.end = end,
};

/* A sequence that fills the space evenly, wherever it is cut off; the seed shifts it. */
static void *begin_sobol(const struct pem_explore_space *space,
			 const struct pem_explore_options *options)
{
	struct plain *plain = begin(space, options);
	uint32_t parameters = space->parameter_count, i;

	if (!plain)
		return NULL;
	plain->sobol = nlopt_sobol_create(parameters);
	plain->point = calloc((size_t)parameters * 2, sizeof(*plain->point));
	if (!plain->sobol || !plain->point) {
		end(plain);
		return NULL;
	}
	plain->shift = plain->point + parameters;
	for (i = 0; i < parameters; i++)
		plain->shift[i] = (double)(explore_random(&plain->history.random) >> 11) * 0x1p-53;
	return plain;
}

static int next_of_sobol(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;
	const struct pem_explore_space *space = plain->history.space;
	uint32_t attempt, i;

	for (attempt = 0; attempt < SOBOL_ATTEMPTS; attempt++) {
		nlopt_sobol_next01(plain->sobol, plain->point);
		for (i = 0; i < space->parameter_count; i++) {
			double at = plain->point[i] + plain->shift[i];

			levels[i] =
				(uint32_t)((at < 1 ? at : at - 1) * space->parameters[i].levels);
			if (levels[i] == space->parameters[i].levels)
				levels[i]--;
		}
		if (space->allows(space, levels) && !explore_history__has(&plain->history, levels))
			return 1;
	}
	return explore_history__draw(&plain->history, levels);
}

const struct pem_explore_policy explore_sobol_policy = {
	.size = sizeof(explore_sobol_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "sobol",
	.summary = "a Sobol sequence: evenly over the space",
	.begin = begin_sobol,
	.next_config = next_of_sobol,
	.process_trial = process_trial,
	.end = end,
};

/*
 * Successive halving (Jamieson and Talwalkar, AISTATS 2016): configurations by chance run once;
 * then the better half runs until each has twice as many runs, and so on, until one is left.
 */
static void *begin_halving(const struct pem_explore_space *space,
			   const struct pem_explore_options *options)
{
	struct plain *plain = begin(space, options);
	uint32_t budget = options->budget ? options->budget : LATIN_ROWS;

	if (!plain)
		return NULL;
	/* Rows in the first round; half as many runs in each one that follows. */
	for (plain->rows = 1; plain->rows < budget; plain->rows++) {
		uint32_t rounds = 32 - (uint32_t)__builtin_clz(plain->rows + 1);

		if ((uint64_t)(plain->rows + 1) * (rounds + 1) / 2 > budget)
			break;
	}
	plain->round = calloc(plain->rows, sizeof(*plain->round));
	if (plain->round)
		return plain;
	end(plain);
	return NULL;
}

static int by_value(const void *a, const void *b, void *history)
{
	const double *values = ((const struct explore_history *)history)->values;
	double x = values[*(const uint32_t *)a], y = values[*(const uint32_t *)b];

	return x < y ? -1 : x > y;
}

static int next_of_halving(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;
	struct explore_history *history = &plain->history;
	uint32_t i;

	if (!plain->more && history->count < plain->rows && explore_history__draw(history, levels))
		return 1;
	if (!plain->more) {
		plain->rows = history->count < plain->rows ? (uint32_t)history->count : plain->rows;
		for (i = 0; i < plain->rows; i++)
			plain->round[i] = i;
		plain->row = plain->rows;
	}
	if (plain->row == plain->rows) {
		qsort_r(plain->round, plain->rows, sizeof(*plain->round), by_value, history);
		plain->rows /= 2;
		plain->more = plain->more ? plain->more * 2 : 1;
		plain->row = 0;
	}
	if (!plain->rows)
		return 0;
	memcpy(levels, explore_history__levels(history, plain->round[plain->row]),
	       history->space->parameter_count * sizeof(*levels));
	if (++plain->made == plain->more) {
		plain->made = 0;
		plain->row++;
	}
	return 1;
}

const struct pem_explore_policy explore_halving_policy = {
	.size = sizeof(explore_halving_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "halving",
	.summary = "many configurations once, the better half again, and so on",
	.begin = begin_halving,
	.next_config = next_of_halving,
	.process_trial = process_trial,
	.end = end,
};
