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

/* An exploration. */
struct replayed {
	uint64_t *called; /* number of the configuration that was called best after each run */
	uint32_t made; /* runs */
	uint32_t runs; /* of the one that is called best in the end */
};

struct replay {
	const struct explore_request *request;
	struct trial_table table;
	struct pem_explore_policy policy;
	double optimum; /* as policies see it */
	uint32_t budget;
	struct replayed *seeds;
	uint64_t *called; /* of all seeds */
	struct cli_progress progress;
};

/* What a policy minimizes. */
static double given(const struct replay *replay, uint64_t number)
{
	double value = replay->table.values[number];

	return replay->request->maximize ? -value : value;
}

/* How much worse than the optimum a configuration is, as a share of it. */
static double regret(const struct replay *replay, uint64_t number)
{
	double distance = given(replay, number) - replay->optimum;

	return distance > 0 ? distance / fabs(replay->optimum) : 0;
}

/* The value of a run: some are worse by a share of their value. */
static double disturbed(const struct replay *replay, double value, uint64_t *random)
{
	bool is_slow = model_random__share(random) < replay->request->noise_share;
	double share = model_random__share(random) * replay->request->noise_most;

	return is_slow ? value + fabs(value) * share : value;
}

/* One run, and what is called best after it. Returns 1, 0: the search is over, or -errno. */
static int try_next(const struct replay *replay, struct explore_search *search, uint64_t *random,
		    struct replayed *seed)
{
	const struct trial_space *space = replay->table.space;
	uint32_t levels[TRIAL_PARAMETERS_MAX];
	double value;
	struct trial_race_run run = {
		.levels = levels, .outcome = PEM_EXPLORE_MEASURED, .values = &value};
	struct trial_winner best;
	bool again;
	int rc = explore_search__next(search, levels, &again);

	if (rc <= 0)
		return rc;
	value = disturbed(replay, given(replay, trial_space__number(space, levels)), random);
	rc = explore_search__add(search, &run);
	if (rc)
		return rc;
	/* Until the first configuration has all of its runs, it is the best one. */
	if (!trial_races__best(explore_search__races(search), &best))
		best = (struct trial_winner){.levels = levels, .runs = seed->made + 1};
	seed->runs = best.runs;
	seed->called[seed->made++] = trial_space__number(space, best.levels);
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
	int rc = search ? 1 : -errno;

	while (rc > 0) {
		rc = try_next(replay, search, &random, &replay->seeds[seed]);
		cli_progress__update((uint64_t)seed * replay->budget + replay->seeds[seed].made,
				     (uint64_t)replay->request->seeds * replay->budget,
				     &replay->progress);
	}
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

/* --- results --- */

/* What is called best in the end: its settings, its true value, and how far from the optimum. */
static struct json_object *called_json(const struct replay *replay, const struct replayed *seed)
{
	const struct pem_explore_space *space = &replay->table.space->view;
	uint64_t number = seed->called[seed->made - 1];
	struct json_object *json = json_object_new_object();
	uint32_t levels[TRIAL_PARAMETERS_MAX], i;
	const char *settings[TRIAL_PARAMETERS_MAX];

	space->at(space, number, levels);
	for (i = 0; i < space->parameter_count; i++)
		settings[i] = space->parameters[i].values[levels[i]];
	json_object_object_add(json, "settings", explore_configuration(space, settings));
	cli_json__count(json, "runs", seed->runs);
	cli_json__real(json, "value", replay->table.values[number]);
	cli_json__real(json, "regret", regret(replay, number));
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
		const struct replayed *made = &replay->seeds[seed];
		struct json_object *one = json_object_new_object();
		struct json_object *best = json_object_new_array();

		for (i = 0; i < made->made; i++)
			json_object_array_add(best, json_object_new_double(
							    replay->table.values[made->called[i]]));
		cli_json__count(one, "seed", seed + 1);
		json_object_object_add(one, "best", best);
		json_object_object_add(one, "called",
				       made->made ? called_json(replay, made) : NULL);
		cli_json_stream__add(&json, NULL, one);
	}
	cli_json_stream__close(&json, ']');
	cli_json_stream__close(&json, '}');
	return cli_finish_output(CLI_DONE);
}

/* The first trial of a seed that is within a share of the optimum; INFINITY: none is. */
static double trials_until(const struct replay *replay, const struct replayed *seed, double share)
{
	uint32_t i;

	for (i = 0; i < seed->made; i++) {
		if (regret(replay, seed->called[i]) <= share)
			return i + 1;
	}
	return INFINITY;
}

static int print_table(const struct replay *replay)
{
	static const double shares[] = {0.1, 0.05, 0.01, 0};
	uint32_t count = replay->request->seeds, seed;
	double *trials = calloc(count, sizeof(*trials));
	struct cli_table *table;
	size_t i, k;

	if (!trials)
		return cli_error(CLI_FAILED, "out of memory");
	printf("%s of %s configurations, best %g; policy %s, %s, %u trials\n\n",
	       replay->table.metric, cli_count(replay->table.space->view.count),
	       replay->request->maximize ? -replay->optimum : replay->optimum, replay->policy.name,
	       count == 1 ? "1 seed" : cli_format("%u seeds", count), replay->budget);
	table = cli_table__new(stdout);
	cli_table__column(table, "WITHIN", CLI_RIGHT);
	cli_table__column(table, "TRIALS", CLI_RIGHT);
	cli_table__column(table, "QUARTER BY", CLI_RIGHT);
	cli_table__column(table, "THREE QUARTERS BY", CLI_RIGHT);
	for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		for (seed = 0; seed < count; seed++)
			trials[seed] = trials_until(replay, &replay->seeds[seed], shares[i]);
		model_sort(trials, count);
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_percent(shares[i]));
		for (k = 0; k < 3; k++) {
			double by =
				trials[(const uint32_t[]){count / 2, count / 4, count * 3 / 4}[k]];

			cli_table__cell(table, isinf(by) ? "not reached" : cli_format("%.0f", by));
		}
	}
	cli_table__print(table);
	free(trials);
	return cli_finish_output(CLI_DONE);
}

static int prepare(struct replay *replay, struct pem_error *error)
{
	const struct explore_request *request = replay->request;
	uint64_t count, i;
	int rc = explore_policy__find(request->policy ? request->policy : "portfolio",
				      &replay->policy, error);

	if (!rc)
		rc = trial_table__read(&replay->table, request->words[0], error);
	if (rc)
		return rc;
	count = replay->table.space->view.count;
	replay->budget = request->budget ? request->budget : BUDGET;
	if (replay->budget > count && request->runs == 1 && !request->race_runs)
		replay->budget = (uint32_t)count;
	for (replay->optimum = INFINITY, i = 0; i < count; i++)
		replay->optimum = fmin(replay->optimum, given(replay, i));
	replay->seeds = calloc(request->seeds, sizeof(*replay->seeds));
	replay->called = calloc((size_t)request->seeds * replay->budget, sizeof(*replay->called));
	for (i = 0; replay->seeds && i < request->seeds; i++)
		replay->seeds[i].called = replay->called + i * replay->budget;
	if (replay->seeds && replay->called)
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
	rc = prepare(&replay, &error);
	if (!rc)
		rc = explore_all(&replay, &error);
	if (!rc)
		rc = request->json ? print_json(&replay) : print_table(&replay);
	else
		rc = cli_fail(-rc, &error);
	free(replay.seeds);
	free(replay.called);
	trial_table__free(&replay.table);
	return rc;
}
