// SPDX-License-Identifier: MIT
/*
 * between_trials.c - how long pem explore needs between two trials
 *
 * Use: between_trials POLICY KNOWN CHOICES. KNOWN runs of configurations by chance are known of a
 * space of 20 parameters; then the policy chooses. Prints the CPU time of each choice in seconds,
 * with that of taking the run that follows.
 */
#include "agents/explore/policy/policy.h"
#include "agents/explore/policy/search.h"
#include "agents/trial/space.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PARAMETERS 20u
#define LEVELS 8u

static void die(const char *why)
{
	fprintf(stderr, "between_trials: %s\n", why);
	exit(1);
}

static struct trial_space *make_space(void)
{
	static const char *const values[LEVELS] = {"1", "2", "3", "4", "5", "6", "7", "8"};
	struct trial_space *space = trial_space__new();
	struct pem_error error;
	char name[8];
	uint32_t i;

	if (!space)
		die("no memory");
	for (i = 0; i < PARAMETERS; i++) {
		/* A half of them is switches. */
		size_t levels = i % 2 ? LEVELS : 2;

		snprintf(name, sizeof(name), "p%u", i);
		if (trial_space__add(space, name, values, levels, false, NULL, &error))
			die(error.text);
	}
	if (trial_space__finish(space, NULL, 0, &error))
		die(error.text);
	return space;
}

/* Sums and products of a few parameters, and noise. */
static double value_of(const uint32_t *levels, uint64_t *random)
{
	double value = 1 + 0.01 * (double)model_random__below(random, 100) / 100;
	uint32_t i;

	for (i = 0; i < PARAMETERS; i++)
		value += levels[i] * (i % 5) * 0.05;
	return value * (1 + fabs(levels[1] - 3.0) * levels[2] * 0.1);
}

static void take(struct explore_search *search, const uint32_t *levels, uint64_t *random)
{
	double value = value_of(levels, random);
	const struct trial_race_run run = {.levels = levels, .values = &value, .seconds = 1};

	if (explore_search__add(search, &run))
		die("a run was not taken");
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
	const struct explore_search_options options = {
		.policy = {.size = sizeof(options.policy), .seed = 1, .objectives = 1}, .runs = 1};
	struct trial_space *space = make_space();
	struct pem_explore_policy policy;
	struct explore_search *search;
	struct pem_error error;
	uint32_t levels[PARAMETERS], i, k;
	uint64_t random = 1;
	bool again;

	if (argc != 4)
		die("use: between_trials POLICY KNOWN CHOICES");
	if (explore_policy__find(argv[1], &policy, &error))
		die(error.text);
	search = explore_search__new(&space->view, &policy, &options);
	if (!search)
		die("no memory");
	for (i = 0; i < (uint32_t)atoi(argv[2]); i++) {
		for (k = 0; k < PARAMETERS; k++)
			levels[k] = (uint32_t)model_random__below(&random,
								  space->view.parameters[k].levels);
		take(search, levels, &random);
	}
	for (i = 0; i < (uint32_t)atoi(argv[3]); i++) {
		double begin = now();

		if (explore_search__next(search, levels, &again) != 1)
			die("the policy chose nothing");
		take(search, levels, &random);
		printf("%.6f\n", now() - begin);
	}
	explore_search__free(search);
	trial_space__free(space);
	return 0;
}
