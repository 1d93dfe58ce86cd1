/* SPDX-License-Identifier: MIT */
/* replay.c - replay: a policy on a space that was measured before */
#include "policy/policy.h"
#include "program/program.h"
#include "space/space.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET 100u

struct replay {
	const struct explore_request *request;
	struct explore_table table;
	struct pem_explore_policy policy;
	uint32_t budget;
	uint32_t *levels; /* of the configuration that was chosen last */
	double *best; /* after each trial, a row of budget for each seed */
	uint32_t *made; /* trials of each seed */
	struct cli_progress progress;
};

/* What a policy minimizes. */
static double given(const struct replay *replay, double value)
{
	return replay->request->maximize ? -value : value;
}

/* One exploration. Returns 0, or -errno with error. */
static int explore(struct replay *replay, void *state, uint32_t seed, struct pem_error *error)
{
	double *best = replay->best + (size_t)seed * replay->budget;
	double least = INFINITY;
	uint32_t i;

	for (i = 0; i < replay->budget && !replay->policy.is_done(state); i++) {
		int rc = replay->policy.next_config(state, replay->levels);
		struct pem_explore_trial trial = {.size = sizeof(trial),
						  .levels = replay->levels,
						  .runs = 1,
						  .outcome = PEM_EXPLORE_MEASURED};
		uint64_t number;
		double value;

		if (rc == 0)
			break;
		number = rc > 0 ? explore_space__number(replay->table.space, replay->levels) : 0;
		if (number == UINT64_MAX) {
			rc = -EINVAL;
			snprintf(error->text, sizeof(error->text),
				 "the policy %.100s chose a configuration that the space does not "
				 "have",
				 replay->policy.name);
		} else if (rc > 0) {
			value = given(replay, replay->table.values[number]);
			trial.values = &value;
			least = fmin(least, value);
			best[i] = given(replay, least);
			replay->made[seed] = i + 1;
			rc = replay->policy.process_trial(state, &trial);
		}
		if (rc < 0)
			return rc;
		cli_progress__update((uint64_t)seed * replay->budget + i,
				     (uint64_t)replay->request->seeds * replay->budget,
				     &replay->progress);
	}
	return 0;
}

static int explore_all(struct replay *replay, struct pem_error *error)
{
	struct pem_explore_options options = {
		.size = sizeof(options), .budget = replay->budget, .objectives = 1};
	uint32_t seed;

	cli_progress__start(&replay->progress, "exploring");
	for (seed = 0; seed < replay->request->seeds; seed++) {
		void *state;
		int rc;

		options.seed = seed + 1;
		state = replay->policy.begin(&replay->table.space->view, &options);
		rc = state ? explore(replay, state, seed, error) : -errno;
		replay->policy.end(state);
		if (rc) {
			cli_progress__end(&replay->progress);
			if (!error->text[0])
				snprintf(error->text, sizeof(error->text),
					 "the policy %.100s failed: %s", replay->policy.name,
					 strerror(-rc));
			return rc;
		}
	}
	cli_progress__end(&replay->progress);
	return 0;
}

static int print_json(const struct replay *replay)
{
	struct cli_json_stream json = {.out = stdout};
	uint32_t seed, i;

	cli_json_stream__open(&json, NULL, '{');
	cli_json_stream__add(&json, "policy", json_object_new_string(replay->policy.name));
	cli_json_stream__add(&json, "metric", json_object_new_string(replay->table.metric));
	cli_json_stream__add(&json, "configurations",
			     json_object_new_uint64(replay->table.space->view.count));
	cli_json_stream__open(&json, "seeds", '[');
	for (seed = 0; seed < replay->request->seeds; seed++) {
		struct json_object *one = json_object_new_object();
		struct json_object *best = json_object_new_array();

		for (i = 0; i < replay->made[seed]; i++)
			json_object_array_add(
				best, json_object_new_double(
					      replay->best[(size_t)seed * replay->budget + i]));
		cli_json__count(one, "seed", seed + 1);
		json_object_object_add(one, "best", best);
		cli_json_stream__add(&json, NULL, one);
	}
	cli_json_stream__close(&json, ']');
	cli_json_stream__close(&json, '}');
	return cli_finish_output(CLI_DONE);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The optimum, as policies see it. */
static double optimum(const struct replay *replay)
{
	double least = INFINITY;
	uint64_t i;

	for (i = 0; i < replay->table.space->view.count; i++)
		least = fmin(least, given(replay, replay->table.values[i]));
	return least;
}

/* The first trial of a seed that is within a share of the optimum; INFINITY: none is. */
static double trials_until(const struct replay *replay, uint32_t seed, double least, double share)
{
	uint32_t i;

	for (i = 0; i < replay->made[seed]; i++) {
		double best = given(replay, replay->best[(size_t)seed * replay->budget + i]);

		if (best - least <= share * fabs(least))
			return i + 1;
	}
	return INFINITY;
}

static const char *trials_text(double trials)
{
	return isinf(trials) ? "not reached" : cli_format("%.0f", trials);
}

static void add_row(const struct replay *replay, struct cli_table *table, double least,
		    double share, double *trials)
{
	uint32_t count = replay->request->seeds, seed;

	for (seed = 0; seed < count; seed++)
		trials[seed] = trials_until(replay, seed, least, share);
	qsort(trials, count, sizeof(*trials), by_value);
	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table, cli_percent(share));
	cli_table__cell(table, trials_text(trials[count / 2]));
	cli_table__cell(table, trials_text(trials[count / 4]));
	cli_table__cell(table, trials_text(trials[count * 3 / 4]));
}

static int print_table(const struct replay *replay)
{
	static const double shares[] = {0.1, 0.05, 0.01, 0};
	double *trials = calloc(replay->request->seeds, sizeof(*trials));
	struct cli_table *table;
	double least = optimum(replay);
	size_t i;

	if (!trials)
		return cli_error(CLI_FAILED, "out of memory");
	printf("%s of %s configurations, best %g; policy %s, %s, %u trials\n\n",
	       replay->table.metric, cli_count(replay->table.space->view.count),
	       given(replay, least), replay->policy.name,
	       replay->request->seeds == 1 ? "1 seed"
					   : cli_format("%u seeds", replay->request->seeds),
	       replay->budget);
	table = cli_table__new(stdout);
	cli_table__column(table, "WITHIN", CLI_RIGHT);
	cli_table__column(table, "TRIALS", CLI_RIGHT);
	cli_table__column(table, "QUARTER BY", CLI_RIGHT);
	cli_table__column(table, "THREE QUARTERS BY", CLI_RIGHT);
	for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		add_row(replay, table, least, shares[i], trials);
	cli_table__print(table);
	free(trials);
	return cli_finish_output(CLI_DONE);
}

static int prepare(struct replay *replay, const char *path, struct pem_error *error)
{
	const struct explore_request *request = replay->request;
	uint64_t count;
	int rc = explore_policy__find(request->policy, &replay->policy, error);

	if (!rc)
		rc = explore_table__read(&replay->table, path, error);
	if (rc)
		return rc;
	count = replay->table.space->view.count;
	replay->budget = request->budget ? request->budget : BUDGET;
	if (replay->budget > count)
		replay->budget = (uint32_t)count;
	replay->levels = calloc(replay->table.space->view.parameter_count, sizeof(uint32_t));
	replay->best = calloc((size_t)request->seeds * replay->budget, sizeof(double));
	replay->made = calloc(request->seeds, sizeof(uint32_t));
	if (replay->levels && replay->best && replay->made)
		return 0;
	snprintf(error->text, sizeof(error->text),
		 "no memory for the best values of %u seeds and %u trials", request->seeds,
		 replay->budget);
	return -ENOMEM;
}

int explore_replay(const struct explore_request *request)
{
	struct replay replay = {.request = request};
	struct pem_error error = {.text = ""};
	int rc;

	if (!request->words[0] || request->words[1])
		return explore_usage_error(request->words[0]
						   ? "replay takes one table at a time"
						   : "which table? pem explore replay SPACE.csv");
	rc = prepare(&replay, request->words[0], &error);
	if (!rc)
		rc = explore_all(&replay, &error);
	if (!rc)
		rc = request->json ? print_json(&replay) : print_table(&replay);
	else
		rc = cli_fail(-rc, &error);
	free(replay.levels);
	free(replay.best);
	free(replay.made);
	explore_table__free(&replay.table);
	return rc;
}
