/* SPDX-License-Identifier: MIT */
/*
 * explore_results.c - what is told of some trials of a larger space (agents/models/effects.h): of
 * trials that failed, of several metrics, of a sample of the space
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "models/models.h"
#include "program/program.h"
#include "models/effects.h"
#include "trial/space.h"

#include <json-c/json.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_MAX 200u
#define PARAMETERS_MAX 12u

struct fixture {
	struct trial_space *space;
	struct explore_metric metrics[2];
	uint32_t levels[TRIALS_MAX][PARAMETERS_MAX];
	double values[TRIALS_MAX][2];
	struct explore_result trials[TRIALS_MAX];
	struct explore_results results;
	uint64_t random;
};

/* Parameters p0, p1 ... with so many levels each: 1, 2, ... */
static void make_space(struct fixture *f, const uint32_t *counts, uint32_t count)
{
	char names[8], texts[16][4];
	const char *values[16];
	struct pem_error error;
	uint32_t i, k;

	memset(f, 0, sizeof(*f));
	f->random = 5;
	f->space = trial_space__new();
	for (i = 0; i < count; i++) {
		snprintf(names, sizeof(names), "p%u", i % 100);
		for (k = 0; k < counts[i]; k++) {
			snprintf(texts[k], sizeof(texts[k]), "%u", (k + 1) % 100);
			values[k] = texts[k];
		}
		assert_int_equal(
			trial_space__add(f->space, names, values, counts[i], false, NULL, &error),
			0);
	}
	assert_int_equal(trial_space__finish(f->space, NULL, 0, &error), 0);
	f->metrics[0] = (struct explore_metric){(char *)"rate", (char *)"/s", true};
	f->metrics[1] = (struct explore_metric){(char *)"size", (char *)"bytes", false};
	f->results = (struct explore_results){.name = "known",
					      .space = &f->space->view,
					      .metrics = f->metrics,
					      .metric_count = 1,
					      .trials = f->trials,
					      .best = SIZE_MAX,
					      .reference = SIZE_MAX};
}

/* About normal, with a deviation of 1. */
static double chance(struct fixture *f)
{
	double sum = -6;
	int i;

	for (i = 0; i < 12; i++)
		sum += (double)model_random__below(&f->random, 1u << 20) / (1u << 20);
	return sum;
}

/* Try any configurations, with the values that a function gives them. */
static void try_some(struct fixture *f, size_t count, double (*value)(const uint32_t *),
		     double noise)
{
	uint32_t parameters = f->space->view.parameter_count, k;
	size_t i;

	for (i = 0; i < count; i++) {
		for (k = 0; k < parameters; k++)
			f->levels[i][k] = (uint32_t)model_random__below(
				&f->random, f->space->parameters[k].levels);
		f->values[i][0] = value(f->levels[i]) + noise * chance(f);
		f->trials[i] = (struct explore_result){.number = (uint32_t)i + 1,
						       .levels = f->levels[i],
						       .runs = 1,
						       .values = f->values[i],
						       .reason = "",
						       .machine = "",
						       .left = ""};
	}
	f->results.count = count;
}

/* The share of a parameter, or of two. */
static struct explore_estimate share_of(const struct explore_effects *e, uint32_t a, uint32_t b)
{
	size_t i;

	for (i = 0; i < e->effect_count; i++) {
		if ((e->effects[i].a == a && e->effects[i].b == b) ||
		    (e->effects[i].a == b && e->effects[i].b == a))
			return e->effects[i].share;
	}
	fail_msg("there is no effect of %u and %u", a, b);
	return (struct explore_estimate){0};
}

static void assert_share(const struct explore_effects *e, uint32_t a, uint32_t b, double share)
{
	struct explore_estimate told = share_of(e, a, b);

	if (!(told.low - 0.005 <= share && share <= told.high + 0.005))
		fail_msg("%u and %u have %g, told is %g (%g to %g)", a, b, share, told.value,
			 told.low, told.high);
}

/* Variances by parameter: 4 * 4, 2 * 2, 1 * 1, and 3 * 3 of two together. */
static double with_pair(const uint32_t *levels)
{
	return 100 + 8.0 * levels[0] + 4.0 * levels[3] + 2.0 * levels[5] +
	       6.0 * (levels[1] ^ levels[2]);
}

static void some_trials_tell_shares_of_the_whole_space(void **state)
{
	static const uint32_t counts[10] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
	struct explore_effects e;
	struct fixture f;

	(void)state;
	make_space(&f, counts, 10);
	try_some(&f, 120, with_pair, 1);
	assert_int_equal(explore_effects__find(&e, &f.results), 0);
	assert_string_equal(e.unknown, "");
	assert_share(&e, 0, 0, 16 / 31.0);
	assert_share(&e, 3, 3, 4 / 31.0);
	assert_share(&e, 5, 5, 1 / 31.0);
	assert_share(&e, 1, 2, 9 / 31.0);
	assert_share(&e, 1, 1, 0);
	assert_share(&e, 9, 9, 0);
	assert_true(share_of(&e, 0, 0).high - share_of(&e, 0, 0).low < 0.25);
	explore_effects__free(&e);
	trial_space__free(f.space);
}

static double collapse(const uint32_t *levels)
{
	static const double rates[] = {100, 170, 230, 200, 180, 165, 155, 150};

	return rates[levels[2]] * (levels[0] == 1 ? 1.05 : 1);
}

static void a_tenth_of_the_trials_names_the_collapse(void **state)
{
	static const uint32_t counts[3] = {4, 14, 8};
	struct explore_effects e;
	struct fixture f;
	char sentence[1200];

	(void)state;
	make_space(&f, counts, 3);
	try_some(&f, 45, collapse, 3);
	assert_int_equal(explore_effects__find(&e, &f.results), 0);
	assert_true(explore_curve__tell(&e, 2, sentence, sizeof(sentence)));
	assert_non_null(strstr(sentence, "rate rises up to p2 = 3 and falls beyond p2 = 3: "));
	assert_false(explore_curve__tell(&e, 1, sentence, sizeof(sentence)));
	assert_non_null(strstr(sentence, "No effect of p1 is seen"));
	explore_effects__free(&e);
	trial_space__free(f.space);
}

/* Of a space with 16,777,216 configurations: variances 5, 1.25, 1.25 and noise. */
static double of_many(const uint32_t *levels)
{
	return 50 + 2.0 * levels[0] + levels[4] - 1.0 * levels[11];
}

static void a_large_space_is_sampled(void **state)
{
	static const uint32_t counts[12] = {4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
	struct explore_effects e;
	struct fixture f;
	char sentence[1200];

	(void)state;
	make_space(&f, counts, 12);
	try_some(&f, 200, of_many, 0.2);
	assert_int_equal(explore_effects__find(&e, &f.results), 0);
	assert_share(&e, 0, 0, 5 / 7.54);
	assert_share(&e, 4, 4, 1.25 / 7.54);
	assert_share(&e, 11, 11, 1.25 / 7.54);
	assert_share(&e, 0, 4, 0);
	assert_true(explore_curve__tell(&e, 0, sentence, sizeof(sentence)));
	assert_non_null(strstr(sentence, "rate rises up to p0 = 4: "));
	explore_effects__free(&e);
	trial_space__free(f.space);
}

static void the_gain_is_over_the_reference(void **state)
{
	static const uint32_t counts[3] = {4, 14, 8};
	struct explore_effects e;
	struct fixture f;
	double gain;

	(void)state;
	make_space(&f, counts, 3);
	try_some(&f, 100, collapse, 0.5);
	f.results.reference = 7;
	assert_int_equal(explore_effects__find(&e, &f.results), 0);
	gain = collapse(f.levels[e.best]) / collapse(f.levels[7]) - 1;
	assert_true(e.gain.low - 0.01 <= gain && gain <= e.gain.high + 0.01);
	assert_true(e.gain.high - e.gain.low < 0.1);
	explore_effects__free(&e);
	trial_space__free(f.space);
}

/* The JSON of results. */
static struct json_object *told(const struct fixture *f)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	struct json_object *object;

	assert_int_equal(explore_results__report(&f->results, NULL, true, out), 0);
	fclose(out);
	object = json_tokener_parse(text);
	assert_non_null(object);
	free(text);
	return object;
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(object, key, &value));
	return value;
}

static void failed_trials_take_no_part(void **state)
{
	static const uint32_t counts[3] = {4, 14, 8};
	struct fixture f;
	struct json_object *all, *trials;
	char *text = NULL;
	size_t bytes;
	FILE *out;

	(void)state;
	make_space(&f, counts, 3);
	try_some(&f, 40, collapse, 3);
	f.trials[3] = (struct explore_result){.number = 4,
					      .levels = f.levels[3],
					      .reason = "it hung",
					      .outcome = PEM_EXPLORE_FAILED,
					      .machine = "",
					      .left = "a server"};
	f.trials[5].outcome = PEM_EXPLORE_REFUSED;
	f.trials[5].reason = "p0: 3 was given, 2 is what app.db has";
	f.values[5][0] = 1e6;
	f.trials[6].outcome = PEM_EXPLORE_STOPPED;
	f.values[6][0] = 1e6;
	all = told(&f);
	trials = member(all, "trials");
	assert_int_equal(json_object_array_length(trials), 40);
	assert_string_equal(
		json_object_get_string(member(json_object_array_get_idx(trials, 3), "outcome")),
		"failed");
	assert_true(json_object_get_double(member(member(member(all, "best"), "values"), "rate")) <
		    300);
	json_object_put(all);
	out = open_memstream(&text, &bytes);
	assert_int_equal(explore_results__report(&f.results, NULL, false, out), 0);
	fclose(out);
	assert_non_null(strstr(text, "1 failed, 1 refused, 1 stopped"));
	assert_non_null(strstr(text, "trial 4, failed: it hung\n  p0="));
	assert_non_null(strstr(text, "trial 6, refused: p0: 3 was given, 2 is what app.db has\n"));
	free(text);
	trial_space__free(f.space);
}

static void nothing_is_told_of_refused_values(void **state)
{
	static const uint32_t counts[3] = {4, 14, 8};
	struct explore_effects e;
	struct fixture f;
	uint32_t level;
	size_t i;

	(void)state;
	make_space(&f, counts, 3);
	try_some(&f, 60, collapse, 3);
	for (i = 0; i < 60; i++) {
		if (f.levels[i][0] == 3) {
			f.trials[i].outcome = PEM_EXPLORE_REFUSED;
			f.trials[i].values = NULL;
		}
	}
	assert_int_equal(explore_effects__find(&e, &f.results), 0);
	for (i = 0; i < 2; i++) {
		for (level = 0; level < 4; level++)
			assert_int_equal(e.rows[i][level] != NULL, level != 3);
	}
	explore_effects__free(&e);
	trial_space__free(f.space);
}

static void a_curve_is_of_the_levels_that_were_not_refused(void **state)
{
	static const uint32_t counts[3] = {4, 14, 8};
	struct explore_effects e;
	char sentence[1200];
	struct fixture f;
	size_t i;

	(void)state;
	make_space(&f, counts, 3);
	try_some(&f, 80, collapse, 3);
	for (i = 0; i < 80; i++) {
		if (f.levels[i][2] == 0 || f.levels[i][2] > 5) {
			f.trials[i].outcome = PEM_EXPLORE_REFUSED;
			f.trials[i].values = NULL;
		}
	}
	assert_int_equal(explore_effects__find(&e, &f.results), 0);
	assert_true(explore_curve__tell(&e, 2, sentence, sizeof(sentence)));
	assert_non_null(strstr(sentence, "rate rises up to p2 = 3 and falls beyond p2 = 3: "));
	assert_non_null(strstr(sentence, " worse at 6 on average"));
	explore_effects__free(&e);
	trial_space__free(f.space);
}

static void the_front_is_what_no_trial_beats(void **state)
{
	static const uint32_t counts[3] = {4, 14, 8};
	struct json_object *all, *trials;
	struct fixture f;
	size_t i, k, found = 0;

	(void)state;
	make_space(&f, counts, 3);
	try_some(&f, 60, collapse, 3);
	f.results.metric_count = 2;
	for (i = 0; i < 60; i++)
		f.values[i][1] = 10.0 * f.levels[i][1] + f.levels[i][0];
	f.values[9][1] = NAN;
	/* As good in one metric, and worse in the other. */
	f.values[10][0] = f.values[11][0] = 900;
	f.values[10][1] = f.values[11][1] + 1;
	all = told(&f);
	trials = member(all, "trials");
	for (i = 0; i < 60; i++) {
		bool beaten = i == 9;

		for (k = 0; k < 60; k++)
			beaten |= f.values[k][0] >= f.values[i][0] &&
				  f.values[k][1] <= f.values[i][1] &&
				  (f.values[k][0] > f.values[i][0] ||
				   f.values[k][1] < f.values[i][1]);
		assert_int_equal(json_object_get_boolean(
					 member(json_object_array_get_idx(trials, i), "pareto")),
				 !beaten);
		found += !beaten;
	}
	assert_true(found > 1);
	json_object_put(all);
	trial_space__free(f.space);
}

static void nothing_measured_is_told(void **state)
{
	static const uint32_t counts[1] = {4};
	struct json_object *all;
	struct fixture f;

	(void)state;
	make_space(&f, counts, 1);
	all = told(&f);
	assert_string_equal(json_object_get_string(member(all, "unknown")),
			    "no trial was measured");
	json_object_put(all);
	trial_space__free(f.space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_trials_tell_shares_of_the_whole_space),
		cmocka_unit_test(a_tenth_of_the_trials_names_the_collapse),
		cmocka_unit_test(a_large_space_is_sampled),
		cmocka_unit_test(the_gain_is_over_the_reference),
		cmocka_unit_test(failed_trials_take_no_part),
		cmocka_unit_test(nothing_is_told_of_refused_values),
		cmocka_unit_test(a_curve_is_of_the_levels_that_were_not_refused),
		cmocka_unit_test(the_front_is_what_no_trial_beats),
		cmocka_unit_test(nothing_measured_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
