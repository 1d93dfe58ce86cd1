/* SPDX-License-Identifier: MIT */
/* replay.c - replay: a policy on a space that was measured before */
#include "models/models.h"
#include "policy/policy.h"
#include "policy/search.h"
#include "program/program.h"
#include "trial/table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET 100u

struct replay {
	const struct explore_request *request;
	struct trial_table table;
	struct pem_explore_policy policy;
	double optimum; /* as policies see it */
	uint32_t budget;
	uint32_t *levels; /* of the configuration that was chosen last */
	/* After each run the true value of the one called best, a row of budget for each seed. */
	double *best;
	struct called *called; /* best of each seed, in the end */
	struct cli_progress progress;
};

struct called {
	uint32_t made; /* runs of the seed */
	uint32_t runs; /* of the configuration called best */
	uint64_t number; /* its */
};

/* What a policy minimizes. */
static double given(const struct replay *replay, double value)
{
	return replay->request->maximize ? -value : value;
}

/* The value of a run: some are worse by a share of their value. */
static double disturbed(const struct replay *replay, double value, uint64_t *random)
{
	bool is_slow = model_random__share(random) < replay->request->noise_share;
	double share = model_random__share(random) * replay->request->noise_most;

	return is_slow ? value + fabs(value) * share : value;
}

/* One run, and what is called best after it. Returns 1, 0: the search is over, or -errno. */
static int try_next(struct replay *replay, struct explore_search *search, uint64_t *random,
		    uint32_t seed)
{
	struct called *called = &replay->called[seed];
	struct explore_run run = {.levels = replay->levels, .outcome = PEM_EXPLORE_MEASURED};
	struct explore_best best;
	double value;
	bool again;
	int rc = explore_search__next(search, replay->levels, &again);

	if (rc <= 0)
		return rc;
	called->number = trial_space__number(replay->table.space, replay->levels);
	value = disturbed(replay, given(replay, replay->table.values[called->number]), random);
	run.values = &value;
	rc = explore_search__add(search, &run);
	if (rc)
		return rc;
	/* Until the first configuration has all of its runs, it is the best one. */
	called->runs = called->made + 1;
	if (explore_search__best(search, &best)) {
		called->number = trial_space__number(replay->table.space, best.levels);
		called->runs = best.runs;
	}
	replay->best[(size_t)seed * replay->budget + called->made++] =
		replay->table.values[called->number];
	cli_progress__update((uint64_t)seed * replay->budget + called->made,
			     (uint64_t)replay->request->seeds * replay->budget, &replay->progress);
	return 1;
}

/* One exploration. Returns 0 or -errno. */
static int explore(struct replay *replay, uint32_t seed)
{
	const struct explore_search_options options = {.policy = {.size = sizeof(options.policy),
								  .seed = seed + 1,
								  .budget = replay->budget,
								  .objectives = 1},
						       .runs = replay->request->runs,
						       .race_runs = replay->request->race_runs};
	struct explore_search *search =
		explore_search__new(&replay->table.space->view, &replay->policy, &options);
	/* Other numbers than the policy's. */
	uint64_t random = ~(uint64_t)seed;
	int rc;

	if (!search)
		return -errno;
	do {
		rc = try_next(replay, search, &random, seed);
	} while (rc > 0);
	explore_search__free(search);
	return rc;
}

static int explore_all(struct replay *replay, struct pem_error *error)
{
	uint32_t seed;
	int rc = 0;

	cli_progress__start(&replay->progress, "exploring");
	for (seed = 0; seed < replay->request->seeds && !rc; seed++)
		rc = explore(replay, seed);
	cli_progress__end(&replay->progress);
	if (rc)
		snprintf(error->text, sizeof(error->text), "the policy %.100s failed: %s",
			 replay->policy.name, explore_policy__why(rc));
	/* A policy that answers nonsense is a wrong one, of the user's. */
	return rc == -ERANGE || rc == -EPROTO ? -EINVAL : rc;
}

/* How much worse than the optimum, as a share of it. */
static double regret(const struct replay *replay, double value)
{
	double distance = given(replay, value) - replay->optimum;

	return distance > 0 ? distance / fabs(replay->optimum) : 0;
}

/* What is called best: its settings, its true value, and how far that is from the optimum. */
static struct json_object *called_json(const struct replay *replay, const struct called *called)
{
	const struct pem_explore_space *space = &replay->table.space->view;
	struct json_object *json = json_object_new_object();
	double value = replay->table.values[called->number];
	const char *settings[TRIAL_PARAMETERS_MAX];
	uint32_t i;

	space->at(space, called->number, replay->levels);
	for (i = 0; i < space->parameter_count; i++)
		settings[i] = space->parameters[i].values[replay->levels[i]];
	json_object_object_add(json, "settings", explore_configuration(space, settings));
	cli_json__count(json, "runs", called->runs);
	cli_json__real(json, "value", value);
	cli_json__real(json, "regret", regret(replay, value));
	return json;
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

		for (i = 0; i < replay->called[seed].made; i++)
			json_object_array_add(
				best, json_object_new_double(
					      replay->best[(size_t)seed * replay->budget + i]));
		cli_json__count(one, "seed", seed + 1);
		json_object_object_add(one, "best", best);
		json_object_object_add(one, "called", called_json(replay, &replay->called[seed]));
		cli_json_stream__add(&json, NULL, one);
	}
	cli_json_stream__close(&json, ']');
	cli_json_stream__close(&json, '}');
	return cli_finish_output(CLI_DONE);
}

static double optimum_of(const struct replay *replay)
{
	double least = INFINITY;
	uint64_t i;

	for (i = 0; i < replay->table.space->view.count; i++)
		least = fmin(least, given(replay, replay->table.values[i]));
	return least;
}

/* The first trial of a seed that is within a share of the optimum; INFINITY: none is. */
static double trials_until(const struct replay *replay, uint32_t seed, double share)
{
	uint32_t i;

	for (i = 0; i < replay->called[seed].made; i++) {
		double best = given(replay, replay->best[(size_t)seed * replay->budget + i]);

		if (best - replay->optimum <= share * fabs(replay->optimum))
			return i + 1;
	}
	return INFINITY;
}

static const char *trials_text(double trials)
{
	return isinf(trials) ? "not reached" : cli_format("%.0f", trials);
}

static void add_row(const struct replay *replay, struct cli_table *table, double share,
		    double *trials)
{
	uint32_t count = replay->request->seeds, seed;

	for (seed = 0; seed < count; seed++)
		trials[seed] = trials_until(replay, seed, share);
	model_sort(trials, count);
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
	size_t i;

	if (!trials)
		return cli_error(CLI_FAILED, "out of memory");
	printf("%s of %s configurations, best %g; policy %s, %s, %u trials\n\n",
	       replay->table.metric, cli_count(replay->table.space->view.count),
	       given(replay, replay->optimum), replay->policy.name,
	       replay->request->seeds == 1 ? "1 seed"
					   : cli_format("%u seeds", replay->request->seeds),
	       replay->budget);
	table = cli_table__new(stdout);
	cli_table__column(table, "WITHIN", CLI_RIGHT);
	cli_table__column(table, "TRIALS", CLI_RIGHT);
	cli_table__column(table, "QUARTER BY", CLI_RIGHT);
	cli_table__column(table, "THREE QUARTERS BY", CLI_RIGHT);
	for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		add_row(replay, table, shares[i], trials);
	cli_table__print(table);
	free(trials);
	return cli_finish_output(CLI_DONE);
}

static int prepare(struct replay *replay, const char *path, struct pem_error *error)
{
	const struct explore_request *request = replay->request;
	uint64_t count;
	int rc = explore_policy__find(request->policy ? request->policy : "portfolio",
				      &replay->policy, error);

	if (!rc)
		rc = trial_table__read(&replay->table, path, error);
	if (rc)
		return rc;
	count = replay->table.space->view.count;
	replay->budget = request->budget ? request->budget : BUDGET;
	if (replay->budget > count && request->runs == 1 && !request->race_runs)
		replay->budget = (uint32_t)count;
	replay->optimum = optimum_of(replay);
	replay->levels = calloc(replay->table.space->view.parameter_count, sizeof(uint32_t));
	replay->best = calloc((size_t)request->seeds * replay->budget, sizeof(double));
	replay->called = calloc(request->seeds, sizeof(*replay->called));
	if (replay->levels && replay->best && replay->called)
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
		return cli_usage_error(&explore_help,
				       request->words[0]
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
	free(replay.called);
	trial_table__free(&replay.table);
	return rc;
}
