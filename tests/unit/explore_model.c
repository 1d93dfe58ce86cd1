// SPDX-License-Identifier: MIT
/* explore_model.c - a model of the whole space is better by trials of the policy model than by
 * chance */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "policy/policy.h"
#include "trial/table.h"

#include <math.h>
#include <stdlib.h>

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
	assert_int_equal(
		model_process__fit(process, history->levels, scores, TRIALS, &history->random), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trials_of_model_tell_more_than_chance),
	};
	int rc = cmocka_run_group_tests(tests, make_space, NULL);

	trial_space__free(space);
	return rc;
}
