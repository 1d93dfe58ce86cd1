// SPDX-License-Identifier: MIT
/*
 * explore_model.c - policies choose what is allowed, and by what they know; a model of the whole
 * space is better by trials of the policy model than by chance
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "policy/policy.h"
#include "trial/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS 4u
#define LEVELS 5u
#define CONFIGURATIONS 625u
#define TRIALS 40u
#define SEEDS 5u

static struct trial_space *space;

static double value_of(const uint32_t *levels)
{
	double x[PARAMETERS];
	uint32_t i;

	for (i = 0; i < PARAMETERS; i++)
		x[i] = levels[i] / (LEVELS - 1.0);
	return exp(x[0] + 2 * (x[1] - 0.4) * (x[1] - 0.4) + x[2] * x[3]);
}

static int make_space(void **state)
{
	static const char *const values[LEVELS] = {"1", "2", "3", "4", "5"},
				 *const names[PARAMETERS] = {"a", "b", "c", "d"};
	struct pem_error error;
	uint32_t i;

	(void)state;
	space = trial_space__new();
	for (i = 0; i < PARAMETERS; i++)
		assert_int_equal(
			trial_space__add(space, names[i], values, LEVELS, false, NULL, &error), 0);
	return trial_space__finish(space, NULL, 0, &error);
}

/* Let a policy make trials. */
static void explore(const char *name, uint64_t seed, struct explore_history *history)
{
	const struct pem_explore_options options = {
		.size = sizeof(options), .seed = seed, .budget = TRIALS, .objectives = 1};
	struct pem_explore_policy policy;
	struct pem_error error;
	uint32_t levels[PARAMETERS], i;
	void *state;

	assert_int_equal(explore_policy__find(name, &policy, &error), 0);
	state = policy.begin(&space->view, &options);
	explore_history__begin(history, &space->view, &options);
	for (i = 0; i < TRIALS; i++) {
		double value;
		const struct pem_explore_trial trial = {
			.size = sizeof(trial), .levels = levels, .values = &value, .runs = 1};

		assert_int_equal(policy.next_config(state, levels), 1);
		value = value_of(levels);
		assert_int_equal(policy.process_trial(state, &trial), 0);
		assert_int_equal(explore_history__add(history, &trial), 0);
	}
	policy.end(state);
}

/* The mean absolute error of what these trials predict of all configurations, in logarithms. */
static double error_of(struct explore_history *history)
{
	static const struct model_process_options options = {.points = TRIALS};
	static uint32_t levels[CONFIGURATIONS][PARAMETERS];
	static double means[CONFIGURATIONS], variances[CONFIGURATIONS], scores[2 * TRIALS];
	struct model_process *process = model_process__new(&space->view, &options);
	double deviation, mean = 0, sum = 0;
	size_t i;

	assert_true(explore_history__weigh(history));
	deviation = model_scores(history->values, TRIALS, false, scores);
	for (i = 0; i < TRIALS; i++)
		mean += log(history->values[i]) / TRIALS;
	for (i = 0; i < CONFIGURATIONS; i++)
		space->view.at(&space->view, i, levels[i]);
	assert_int_equal(model_process__fit(process, history->tried.levels, scores, TRIALS,
					    &history->random),
			 0);
	model_process__predict(process, levels[0], CONFIGURATIONS, means, variances);
	for (i = 0; i < CONFIGURATIONS; i++)
		sum += fabs(mean + deviation * means[i] - log(value_of(levels[i])));
	model_process__free(process);
	return sum / CONFIGURATIONS;
}

static double errors_of(const char *policy)
{
	struct explore_history history;
	double sum = 0;
	uint64_t seed;

	for (seed = 1; seed <= SEEDS; seed++) {
		explore(policy, seed, &history);
		sum += error_of(&history) / SEEDS;
		explore_history__end(&history);
	}
	return sum;
}

static void trials_of_model_tell_more_than_chance(void **state)
{
	double chance = errors_of("random"), model = errors_of("model");

	(void)state;
	print_message("mean absolute error by chance %.4f, by model %.4f\n", chance, model);
	assert_true(model < chance);
}

/* --- what policies choose --- */

#define CHOICES 40u

static const char *const names[] = {"portfolio", "gaussian", "forest", "model",
				    "sobol",     "latin",    "random", "halving"};

struct choices {
	uint32_t levels[CHOICES][PARAMETERS];
	uint32_t count, failed; /* failed: of the second half */
};

/* Let a policy choose, until it has enough. The first levels of those that fail are 3 and 4. */
static void choose(const struct trial_space *of, const char *name, uint64_t seed, bool fail,
		   struct choices *choices)
{
	const struct pem_explore_options options = {
		.size = sizeof(options), .seed = seed, .budget = CHOICES, .objectives = 1};
	struct pem_explore_policy policy;
	struct pem_error error;
	void *state;

	assert_int_equal(explore_policy__find(name, &policy, &error), 0);
	state = policy.begin(&of->view, &options);
	memset(choices, 0, sizeof(*choices));
	while (choices->count < CHOICES) {
		uint32_t *levels = choices->levels[choices->count];
		struct pem_explore_trial trial = {
			.size = sizeof(trial), .levels = levels, .runs = 1};
		double value;

		if (!policy.next_config(state, levels))
			break;
		value = value_of(levels);
		trial.values = &value;
		if (fail && levels[0] >= 3) {
			trial.outcome = PEM_EXPLORE_FAILED;
			trial.values = NULL;
			choices->failed += choices->count >= CHOICES / 2;
		}
		assert_int_equal(policy.process_trial(state, &trial), 0);
		choices->count++;
	}
	policy.end(state);
}

static bool is_allowed(void *arg, uint32_t *levels)
{
	(void)arg;
	return (levels[0] + levels[1]) % 3 != 0;
}

static void choices_are_allowed_and_none_comes_again(void **state)
{
	static const char *values[40], *const of[PARAMETERS] = {"a", "b", "c", "d"};
	struct trial_space *large = trial_space__new();
	static char texts[40][4];
	struct choices choices;
	struct pem_error error;
	uint32_t policy, i, k;

	(void)state;
	for (i = 0; i < 40; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%u", i);
		values[i] = texts[i];
	}
	/* Models choose among a part of 2.56 million configurations, with neighbours of the best.
	 */
	for (i = 0; i < PARAMETERS; i++)
		assert_int_equal(trial_space__add(large, of[i], values, 40, false, NULL, &error),
				 0);
	trial_space__allow(large, is_allowed, NULL);
	assert_int_equal(trial_space__finish(large, NULL, 0, &error), 0);
	for (policy = 0; policy < 7; policy++) {
		choose(large, names[policy], 1, false, &choices);
		assert_int_equal(choices.count, CHOICES);
		for (i = 0; i < CHOICES; i++) {
			for (k = 0; k < PARAMETERS; k++)
				assert_true(choices.levels[i][k] < 40);
			assert_true(is_allowed(NULL, choices.levels[i]));
			for (k = 0; k < i; k++)
				assert_memory_not_equal(choices.levels[i], choices.levels[k],
							sizeof(choices.levels[i]));
		}
	}
	trial_space__free(large);
}

static void all_of_a_small_space_is_chosen_once(void **state)
{
	static const char *const values[] = {"1", "2", "3"}, *const of[] = {"a", "b", "c", "d"};
	static const size_t levels[PARAMETERS] = {2, 2, 3, 3};
	struct trial_space *small = trial_space__new();
	struct choices choices;
	struct pem_error error;
	uint32_t policy, i, k;

	(void)state;
	for (i = 0; i < PARAMETERS; i++)
		assert_int_equal(
			trial_space__add(small, of[i], values, levels[i], false, NULL, &error), 0);
	assert_int_equal(trial_space__finish(small, NULL, 0, &error), 0);
	for (policy = 0; policy < 7; policy++) {
		choose(small, names[policy], 1, false, &choices);
		assert_int_equal(choices.count, 2 * 2 * 3 * 3);
		for (i = 0; i < choices.count; i++) {
			for (k = 0; k < i; k++)
				assert_memory_not_equal(choices.levels[i], choices.levels[k],
							sizeof(choices.levels[i]));
		}
	}
	trial_space__free(small);
}

static void seeds_decide(void **state)
{
	struct choices one, same, other;
	uint32_t policy;

	(void)state;
	for (policy = 0; policy < 8; policy++) {
		choose(space, names[policy], 1, false, &one);
		choose(space, names[policy], 1, false, &same);
		choose(space, names[policy], 2, false, &other);
		assert_memory_equal(&one, &same, sizeof(one));
		assert_memory_not_equal(&one, &other, sizeof(one));
	}
}

static void what_fails_is_avoided(void **state)
{
	struct choices choices;
	uint32_t policy, failed = 0, seed;

	(void)state;
	/* Two fifths of the space fail: 8 of the 20 by chance. */
	for (policy = 0; policy < 3; policy++) {
		for (failed = 0, seed = 1; seed <= SEEDS; seed++) {
			choose(space, names[policy], seed, true, &choices);
			failed += choices.failed;
		}
		print_message("%s: %u of %u fail\n", names[policy], failed, SEEDS * CHOICES / 2);
		assert_true(failed < SEEDS * CHOICES / 2 / 5);
	}
}

static void a_latin_hypercube_has_each_level_equally_often(void **state)
{
	uint32_t counts[PARAMETERS][LEVELS] = {{0}}, i, k;
	struct choices choices;

	(void)state;
	choose(space, "latin", 3, false, &choices);
	for (i = 0; i < CHOICES; i++) {
		for (k = 0; k < PARAMETERS; k++)
			counts[k][choices.levels[i][k]]++;
	}
	for (k = 0; k < PARAMETERS; k++) {
		for (i = 0; i < LEVELS; i++)
			/* A row that was tried is replaced by chance. */
			assert_in_range(counts[k][i], CHOICES / LEVELS - 2, CHOICES / LEVELS + 2);
	}
}

static void halving_doubles_the_runs_of_the_better_half(void **state)
{
	uint32_t runs[CHOICES] = {0}, first[CHOICES], of_runs[CHOICES] = {0}, i, k;
	double worst[2] = {0, 0};
	struct choices choices;

	(void)state;
	choose(space, "halving", 1, false, &choices);
	for (i = 0; i < choices.count; i++) {
		for (k = 0; memcmp(choices.levels[i], choices.levels[k], sizeof(choices.levels[i]));
		     k++)
			;
		first[i] = k;
		runs[k]++;
	}
	for (i = 0; i < choices.count; i++) {
		double value = value_of(choices.levels[i]);

		of_runs[runs[i]] += first[i] == i;
		if (runs[first[i]] > 1)
			worst[0] = fmax(worst[0], value);
		if (runs[first[i]] > 2)
			worst[1] = fmax(worst[1], value);
	}
	/* 15 once, then 7, 3 and 1 of them: 32 runs. A further row would need more than 40. */
	assert_int_equal(choices.count, 15 + 7 + 2 * 3 + 4 * 1);
	assert_int_equal(of_runs[1], 8);
	assert_int_equal(of_runs[2], 4);
	assert_int_equal(of_runs[4], 2);
	assert_int_equal(of_runs[8], 1);
	for (i = 0; i < choices.count; i++) {
		assert_true(runs[first[i]] > 1 || value_of(choices.levels[i]) >= worst[0]);
		assert_true(runs[first[i]] > 2 || value_of(choices.levels[i]) >= worst[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trials_of_model_tell_more_than_chance),
		cmocka_unit_test(choices_are_allowed_and_none_comes_again),
		cmocka_unit_test(all_of_a_small_space_is_chosen_once),
		cmocka_unit_test(seeds_decide),
		cmocka_unit_test(what_fails_is_avoided),
		cmocka_unit_test(a_latin_hypercube_has_each_level_equally_often),
		cmocka_unit_test(halving_doubles_the_runs_of_the_better_half),
	};
	int rc = cmocka_run_group_tests(tests, make_space, NULL);

	trial_space__free(space);
	return rc;
}
