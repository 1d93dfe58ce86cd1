/* SPDX-License-Identifier: MIT */
/* plain.c - grid, random, latin, sobol, halving: choices without a model */
#define _GNU_SOURCE /* qsort_r */
#include "policy/policy.h"

#include <errno.h>
#include <nlopt.h>
#include <stdlib.h>
#include <string.h>

#define UNLIMITED 64u /* budget of a Latin hypercube, or of a halving, without one */
#define SOBOL_ATTEMPTS 1000u

/* Of NLopt, after Joe and Kuo (ACM TOMS 29, 2003); its header does not have them. */
struct nlopt_soboldata_s;
struct nlopt_soboldata_s *nlopt_sobol_create(unsigned int dimensions);
void nlopt_sobol_destroy(struct nlopt_soboldata_s *sobol);
void nlopt_sobol_next01(struct nlopt_soboldata_s *sobol, double *point);

struct plain {
	struct explore_history history;
	uint32_t budget;
	uint64_t next; /* grid: number of the next configuration; latin: the next row */
	/* latin: the part, of budget parts, that each row takes of each parameter. */
	uint32_t *parts;
	struct nlopt_soboldata_s *sobol;
	double *point, *shift; /* its next point, and what the seed adds to each */
	struct halving {
		uint32_t *round; /* indexes of the trials that are in the round */
		uint32_t rows, row; /* how many, and which one runs next */
		uint32_t more, made; /* runs that each takes, and that this one made */
	} halving;
};

void *explore_plain__begin(const struct pem_explore_space *space,
			   const struct pem_explore_options *options)
{
	struct plain *plain = calloc(1, sizeof(*plain));

	if (!plain)
		return NULL;
	explore_history__begin(&plain->history, space, options);
	plain->budget = options->budget ? options->budget : UNLIMITED;
	return plain;
}

void explore_plain__end(void *policy)
{
	struct plain *plain = policy;

	if (!plain)
		return;
	explore_history__end(&plain->history);
	if (plain->sobol)
		nlopt_sobol_destroy(plain->sobol);
	free(plain->parts);
	free(plain->point);
	free(plain->halving.round);
	free(plain);
}

int explore_plain__random(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;

	return explore_history__draw(&plain->history, levels);
}

int explore_plain__grid(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;
	const struct pem_explore_space *space = plain->history.tried.space;

	while (plain->next < space->count) {
		space->at(space, plain->next++, levels);
		if (!explore_history__has(&plain->history, levels))
			return 1;
	}
	return 0;
}

/* Can the space have a trial of these levels, and had none? */
static bool is_new(struct plain *plain, uint32_t *levels)
{
	const struct pem_explore_space *space = plain->history.tried.space;

	return space->allows(space, levels) && !explore_history__has(&plain->history, levels);
}

/* Put the parts of each parameter into a random order. */
static int shuffle(struct plain *plain)
{
	uint32_t parameters = plain->history.tried.space->parameter_count, i, row;

	plain->parts = calloc((size_t)plain->budget * parameters, sizeof(*plain->parts));
	for (i = 0; plain->parts && i < parameters; i++) {
		uint32_t *part = plain->parts + (size_t)i * plain->budget;

		for (row = 0; row < plain->budget; row++) {
			uint32_t other =
				(uint32_t)model_random__below(&plain->history.random, row + 1);

			part[row] = part[other];
			part[other] = row;
		}
	}
	return plain->parts ? 0 : -ENOMEM;
}

int explore_plain__latin(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;
	const struct pem_explore_space *space = plain->history.tried.space;
	uint32_t i;

	if (!plain->parts && shuffle(plain))
		return -ENOMEM;
	for (; plain->next < plain->budget; plain->next++) {
		for (i = 0; i < space->parameter_count; i++) {
			uint64_t part = plain->parts[(size_t)i * plain->budget + plain->next];

			levels[i] = (uint32_t)(part * space->parameters[i].levels / plain->budget);
		}
		if (is_new(plain, levels))
			return 1;
	}
	/* Rows that are not allowed, or were tried, leave trials over. */
	return explore_history__draw(&plain->history, levels);
}

static int begin_sobol(struct plain *plain)
{
	uint32_t parameters = plain->history.tried.space->parameter_count, i;

	plain->point = calloc((size_t)parameters * 2, sizeof(*plain->point));
	plain->sobol = plain->point ? nlopt_sobol_create(parameters) : NULL;
	if (!plain->sobol)
		return -ENOMEM;
	plain->shift = plain->point + parameters;
	for (i = 0; i < parameters; i++)
		plain->shift[i] = model_random__share(&plain->history.random);
	return 0;
}

int explore_plain__sobol(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;
	const struct pem_explore_space *space = plain->history.tried.space;
	uint32_t attempt, i;

	if (!plain->sobol && begin_sobol(plain))
		return -ENOMEM;
	for (attempt = 0; attempt < SOBOL_ATTEMPTS; attempt++) {
		nlopt_sobol_next01(plain->sobol, plain->point);
		for (i = 0; i < space->parameter_count; i++) {
			double at = plain->point[i] + plain->shift[i];

			levels[i] =
				(uint32_t)((at < 1 ? at : at - 1) * space->parameters[i].levels);
		}
		if (is_new(plain, levels))
			return 1;
	}
	return explore_history__draw(&plain->history, levels);
}

/* Choose how many rows the first round has; half as many runs follow in each further one. */
static int begin_halving(struct plain *plain)
{
	struct halving *halving = &plain->halving;

	for (halving->rows = 1; halving->rows < plain->budget; halving->rows++) {
		uint32_t rounds = 32 - (uint32_t)__builtin_clz(halving->rows + 1);

		if ((uint64_t)(halving->rows + 1) * (rounds + 1) / 2 > plain->budget)
			break;
	}
	halving->round = calloc(halving->rows, sizeof(*halving->round));
	return halving->round ? 0 : -ENOMEM;
}

static int by_value(const void *a, const void *b, void *arg)
{
	const struct explore_history *history = arg;
	double x = history->given[*(const uint32_t *)a * history->objectives];
	double y = history->given[*(const uint32_t *)b * history->objectives];

	return x < y ? -1 : x > y;
}

/* Keep the better half for the next round, in which each runs as often as it ran before. */
static void begin_round(struct plain *plain)
{
	struct halving *halving = &plain->halving;
	uint32_t i;

	if (!halving->more) {
		if (halving->rows > plain->history.tried.count)
			halving->rows = (uint32_t)plain->history.tried.count;
		for (i = 0; i < halving->rows; i++)
			halving->round[i] = i;
	}
	qsort_r(halving->round, halving->rows, sizeof(*halving->round), by_value, &plain->history);
	halving->rows /= 2;
	halving->row = 0;
	halving->more = halving->more ? halving->more * 2 : 1;
}

int explore_plain__halving(void *policy, uint32_t *levels)
{
	struct plain *plain = policy;
	struct halving *halving = &plain->halving;
	const struct explore_history *history = &plain->history;

	if (!halving->round && begin_halving(plain))
		return -ENOMEM;
	if (!halving->more && history->tried.count < halving->rows &&
	    explore_history__draw(&plain->history, levels))
		return 1;
	if (!halving->more || halving->row == halving->rows)
		begin_round(plain);
	if (!halving->rows)
		return 0;
	memcpy(levels, model_configurations__levels(&history->tried, halving->round[halving->row]),
	       history->tried.space->parameter_count * sizeof(*levels));
	if (++halving->made == halving->more) {
		halving->made = 0;
		halving->row++;
	}
	return 1;
}
