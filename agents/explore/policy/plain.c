/* SPDX-License-Identifier: MIT */
/* plain.c - grid, random, latin: choices that no value changes */
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

/* Configurations of a Latin hypercube without a budget. */
#define LATIN_ROWS 64u

struct plain {
	struct explore_history history;
	uint64_t next; /* grid: number of the next configuration */
	/* latin: the part, of as many as rows, that each row takes of each parameter. */
	uint32_t *parts;
	uint32_t rows, row;
};

static void end(void *policy)
{
	struct plain *plain = policy;

	if (!plain)
		return;
	explore_history__end(&plain->history);
	free(plain->parts);
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
