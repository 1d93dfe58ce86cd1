// SPDX-License-Identifier: MIT
/* agent_models.c - models predict a known function, and know how well */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "models/models.h"
#include "trial/space.h"

#include <math.h>
#include <stdlib.h>

#define LEVELS 9u
#define CONFIGURATIONS (LEVELS * LEVELS * 2)
#define POINTS 60u
#define DRAWS 500u

static struct trial_space *space;
static uint32_t all[CONFIGURATIONS][3]; /* all configurations */
static uint32_t points[POINTS][3];
static double scores[POINTS];

static double value_of(const uint32_t *levels)
{
	double a = levels[0] / 4.0 - 1, b = levels[1] / 4.0 - 1;

	return a * a + a * b - (levels[2] ? b : 1);
}

/* Two numbers, and a word; one configuration is not allowed. */
static bool is_allowed(void *arg, uint32_t *levels)
{
	(void)arg;
	return levels[0] || levels[1] || levels[2];
}

static int make_space(void **state)
{
	static const char *const numbers[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
	static const char *const words[] = {"lock", "spin"};
	struct pem_error error;

	(void)state;
	space = trial_space__new();
	assert_int_equal(trial_space__add(space, "a", numbers, LEVELS, false, NULL, &error), 0);
	assert_int_equal(trial_space__add(space, "b", numbers, LEVELS, false, NULL, &error), 0);
	assert_int_equal(trial_space__add(space, "c", words, 2, false, NULL, &error), 0);
	trial_space__allow(space, is_allowed, NULL);
	return trial_space__finish(space, NULL, 0, &error);
}

static int free_space(void **state)
{
	(void)state;
	trial_space__free(space);
	return 0;
}

/* Choose different points, with values that differ from the function's by noise. */
static void choose_points(double noise)
{
	uint64_t random = 7;
	size_t i, k;

	for (i = 0; i < space->view.count; i++)
		space->view.at(&space->view, i, all[i]);
	for (i = 0; i < POINTS; i++) {
		/* 73 has no divisor in common with the number of configurations. */
		space->view.at(&space->view, i * 73 % space->view.count, points[i]);
		scores[i] = value_of(points[i]);
		for (k = 0; k < 12; k++)
			scores[i] += noise * (model_random__share(&random) - 0.5);
	}
}

static struct model_process *fitted(const struct model_process_options *options, uint64_t random)
{
	struct model_process *process = model_process__new(&space->view, options);

	assert_non_null(process);
	assert_int_equal(model_process__fit(process, points[0], scores, POINTS, &random), 0);
	return process;
}

static void scores_have_a_mean_of_0_and_a_deviation_of_1(void **state)
{
	static const double sets[][4] = {{1, 10, 100, 1000}, {-8, -4, -2, -1}, {-1, 0, 1, 7}};
	double of[8], sum, square;
	size_t i, k, ranks;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (ranks = 0; ranks < 2; ranks++) {
			model_scores(sets[i], 4, ranks, of);
			for (sum = square = k = 0; k < 4; k++) {
				sum += of[k];
				square += of[k] * of[k];
				assert_true(!k || of[k] > of[k - 1]);
			}
			assert_float_equal(sum, 0, 1e-6);
			assert_float_equal(square / 4, 1, 1e-6);
			/* Equal ratios, or ranks, are equal distances. */
			if (i < 2 || ranks)
				assert_float_equal(of[3] - of[2], of[1] - of[0], 1e-6);
		}
	}
	assert_float_equal(model_scores(sets[0], 4, false, of), log(10) * sqrt(1.25), 1e-6);
}

static void equal_values_have_equal_ranks(void **state)
{
	static const double values[] = {3, 1, 3, 3, 2};
	double of[10];

	(void)state;
	model_scores(values, 5, true, of);
	assert_float_equal(of[0], of[2], 1e-12);
	assert_float_equal(of[0], of[3], 1e-12);
	assert_true(of[1] < of[4] && of[4] < of[0]);
}

static void any_configuration_is_one_that_is_allowed(void **state)
{
	uint32_t drawn[CONFIGURATIONS] = {0}, levels[3];
	uint64_t random = 1;
	size_t i;

	(void)state;
	assert_int_equal(space->view.count, CONFIGURATIONS - 1);
	for (i = 0; i < 5000; i++) {
		assert_int_equal(model_any(&space->view, &random, levels), 1);
		drawn[(levels[0] * LEVELS + levels[1]) * 2 + levels[2]]++;
	}
	assert_int_equal(drawn[0], 0);
	for (i = 1; i < CONFIGURATIONS; i++)
		assert_in_range(drawn[i], 5, 80);
}

static void words_are_columns_of_their_own(void **state)
{
	static const uint32_t levels[2][3] = {{4, 8, 1}, {0, 2, 0}};
	static const float expected[] = {0.5f, 1, 0, 1, 0, 0.25f, 1, 0};
	float rows[8];
	size_t i;

	(void)state;
	assert_int_equal(model_columns(&space->view), 4);
	model_rows(&space->view, levels[0], 2, rows);
	for (i = 0; i < 8; i++)
		assert_float_equal(rows[i], expected[i], 1e-6);
}

static void a_process_predicts_and_knows_how_well(void **state)
{
	static const struct model_process_options options[] = {
		{.points = POINTS}, {.points = POINTS, .additive = true}};
	static double means[CONFIGURATIONS], variances[CONFIGURATIONS];
	double error, known = 0;
	size_t i, k, surprises;

	(void)state;
	choose_points(0);
	for (k = 0; k < 2; k++) {
		struct model_process *process = fitted(&options[k], 1);

		model_process__predict(process, all[0], space->view.count, means, variances);
		for (error = surprises = i = 0; i < space->view.count; i++) {
			double own = means[i] - value_of(all[i]);

			error += fabs(own) / CONFIGURATIONS;
			surprises += own * own > 9 * (variances[i] + 1e-4);
		}
		print_message("mean absolute error %.4f, %zu surprises\n", error, surprises);
		assert_true(error < 0.05 && surprises < CONFIGURATIONS / 20);
		/* It knows the points best. */
		for (error = i = 0; i < space->view.count; i++)
			error += variances[i] / CONFIGURATIONS;
		model_process__predict(process, points[0], POINTS, means, variances);
		for (known = i = 0; i < POINTS; i++)
			known += variances[i] / POINTS;
		assert_true(known < error);
		model_process__free(process);
	}
}

static void draws_have_the_mean_and_variance_that_are_predicted(void **state)
{
	static const struct model_process_options options = {.points = POINTS};
	static double drawn[20][DRAWS];
	double means[20], variances[20];
	struct model_process *process;
	uint64_t random = 5;
	size_t i, k;

	(void)state;
	choose_points(0.3);
	for (i = 0; i < POINTS; i++)
		scores[i] *= 4;
	process = fitted(&options, 1);
	model_process__predict(process, all[0], 20, means, variances);
	assert_int_equal(model_process__draw(process, all[0], 20, DRAWS, drawn[0], &random), 0);
	for (i = 0; i < 20; i++) {
		double mean = 0, square = 0;

		for (k = 0; k < DRAWS; k++) {
			mean += drawn[i][k] / DRAWS;
			square += pow(drawn[i][k] - means[i], 2) / DRAWS;
		}
		/* Five deviations of a mean, and of a variance, of as many draws. */
		assert_float_equal(mean, means[i], 5 * sqrt(variances[i] / DRAWS));
		assert_float_equal(square / variances[i], 1, 5 * sqrt(2.0 / DRAWS));
	}
	model_process__free(process);
}

static void a_process_tells_noise_from_effects(void **state)
{
	static const struct model_process_options options = {.points = POINTS};
	struct model_process *process;

	(void)state;
	choose_points(0);
	process = fitted(&options, 1);
	assert_true(model_process__noise(process) < 0.02);
	model_process__free(process);
	choose_points(0.4); /* the sum of twelve: a variance of 0.16 */
	process = fitted(&options, 1);
	print_message("noise of a variance of 0.16: %.3f\n", model_process__noise(process));
	assert_true(model_process__noise(process) > 0.03 && model_process__noise(process) < 0.4);
	model_process__free(process);
}

/* How many of the ten points of the least scores a process knows, by their variances. */
static size_t least_known(bool evenly)
{
	const struct model_process_options options = {.points = 20, .evenly = evenly};
	double sorted[POINTS], means[POINTS], variances[POINTS];
	struct model_process *process = fitted(&options, 3);
	size_t i, known = 0;

	for (i = 0; i < POINTS; i++)
		sorted[i] = scores[i];
	model_sort(sorted, POINTS);
	model_process__predict(process, points[0], POINTS, means, variances);
	for (i = 0; i < POINTS; i++)
		known += scores[i] <= sorted[9] && fabs(means[i] - scores[i]) < 0.02;
	model_process__free(process);
	return known;
}

static void of_many_points_the_least_are_known(void **state)
{
	size_t least, any;

	(void)state;
	choose_points(0.1);
	least = least_known(false);
	any = least_known(true);
	print_message("of the ten least scores %zu are known, evenly %zu\n", least, any);
	assert_true(least > any);
}

static void a_forest_predicts_and_knows_how_well(void **state)
{
	static float rows[CONFIGURATIONS][4];
	static double means[2][CONFIGURATIONS], variances[CONFIGURATIONS];
	double error = 0, square = 0, variance = 0, mean = 0, spread = 0;
	size_t i, seed, different = 0;

	(void)state;
	choose_points(0);
	for (i = 0; i < POINTS; i++)
		mean += scores[i] / POINTS;
	for (seed = 0; seed < 3; seed++) {
		struct model_forest *forest;

		model_rows(&space->view, points[0], POINTS, rows[0]);
		forest = model_forest__new(rows[0], 4, scores, POINTS, seed / 2);
		assert_non_null(forest);
		model_rows(&space->view, all[0], space->view.count, rows[0]);
		assert_int_equal(model_forest__predict(forest, rows[0], space->view.count,
						       means[seed ? 1 : 0], variances),
				 0);
		model_forest__free(forest);
		/* Seeds are 0, 0, 1. */
		for (i = 0; i < space->view.count; i++)
			different += means[0][i] < means[1][i] || means[0][i] > means[1][i];
		if (seed == 0)
			different = 0;
		if (seed == 1)
			assert_int_equal(different, 0);
	}
	assert_true(different > CONFIGURATIONS / 2);
	for (i = 0; i < space->view.count; i++) {
		double own = means[1][i] - value_of(all[i]);

		error += fabs(own) / CONFIGURATIONS;
		square += own * own / CONFIGURATIONS;
		variance += variances[i] / CONFIGURATIONS;
		spread += fabs(value_of(all[i]) - mean) / CONFIGURATIONS;
	}
	print_message("error %.3f of a spread of %.3f; square %.3f, variance %.3f\n", error, spread,
		      square, variance);
	assert_true(error < spread / 2);
	assert_true(variance > square / 4 && variance < square * 4);
}

/* Of values that are 0 or 1, the mean tells the variance: that within leaves and between trees. */
static void a_forest_tells_all_of_the_variance(void **state)
{
	static float rows[POINTS][4];
	double means[POINTS], variances[POINTS], most = 0;
	struct model_forest *forest;
	size_t i;

	(void)state;
	choose_points(0.4);
	for (i = 0; i < POINTS; i++)
		scores[i] = scores[i] > 0;
	model_rows(&space->view, points[0], POINTS, rows[0]);
	forest = model_forest__new(rows[0], 4, scores, POINTS, 1);
	assert_non_null(forest);
	assert_int_equal(model_forest__predict(forest, rows[0], POINTS, means, variances), 0);
	for (i = 0; i < POINTS; i++) {
		assert_float_equal(variances[i], means[i] * (1 - means[i]), 1e-9);
		most = fmax(most, variances[i]);
	}
	assert_true(most > 0.01);
	model_forest__free(forest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scores_have_a_mean_of_0_and_a_deviation_of_1),
		cmocka_unit_test(equal_values_have_equal_ranks),
		cmocka_unit_test(any_configuration_is_one_that_is_allowed),
		cmocka_unit_test(words_are_columns_of_their_own),
		cmocka_unit_test(a_process_predicts_and_knows_how_well),
		cmocka_unit_test(draws_have_the_mean_and_variance_that_are_predicted),
		cmocka_unit_test(a_process_tells_noise_from_effects),
		cmocka_unit_test(of_many_points_the_least_are_known),
		cmocka_unit_test(a_forest_predicts_and_knows_how_well),
		cmocka_unit_test(a_forest_tells_all_of_the_variance),
	};

	return cmocka_run_group_tests(tests, make_space, free_space);
}
