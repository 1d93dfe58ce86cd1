/* SPDX-License-Identifier: MIT */
/* exploration.c - an experiment with all that is known of it */
#include "program/exploration.h"

#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t parameters(const struct exploration *exploration)
{
	return exploration->experiment.space->view.parameter_count;
}

struct explore_tried *exploration__find(const struct exploration *exploration,
					const uint32_t *levels)
{
	size_t index = trial_races__find(explore_search__races(exploration->search), levels);

	return index == SIZE_MAX ? NULL : &exploration->tried[index];
}

size_t exploration__number(const struct exploration *exploration, const uint32_t *levels)
{
	return trial_races__find(explore_search__races(exploration->search), levels) + 1;
}

/* The search sees values as policies do: the smaller, the better. */
static int tell_search(struct exploration *exploration, const struct trial_stored *stored)
{
	const struct trial_experiment *e = &exploration->experiment;
	double given[TRIAL_METRICS_MAX];
	const struct trial_race_run run = {.levels = stored->levels,
					   .outcome = stored->outcome,
					   .values = given,
					   .seconds = stored->seconds,
					   .elsewhere = stored->machine};
	size_t i;

	for (i = 0; i < e->objectives; i++)
		given[i] = e->metrics[i].greater_is_better ? -stored->values[i] : stored->values[i];
	return explore_search__add(exploration->search, &run);
}

double exploration__cost(const struct exploration *exploration, double value)
{
	if (!(value > 0))
		return NAN;
	return exploration->experiment.metrics[0].greater_is_better ? 1 / value : value;
}

/* A pair tells which one is better, and nothing of how either fares alone. */
static int take_pair(struct exploration *exploration, const struct trial_stored *stored)
{
	const uint32_t *const levels[] = {stored->levels, stored->beside};
	bool is_void = stored->outcome != PEM_EXPLORE_MEASURED;
	const double costs[] = {is_void ? NAN : exploration__cost(exploration, stored->values[0]),
				is_void ? NAN
					: exploration__cost(exploration, stored->beside_value)};

	return stored->machine ? 0
			       : trial_races__add_pair(explore_search__races(exploration->search),
						       levels, costs);
}

/* The search numbers configurations by their first runs, and tried has them in that order. */
static int take(struct exploration *exploration, const struct trial_stored *stored)
{
	bool has_values = trial_outcome__has_values(stored->outcome);
	struct explore_tried *tried;

	if (stored->beside)
		return take_pair(exploration, stored);
	tried = exploration__find(exploration, stored->levels);
	if (!tried) {
		if (pem_grow(&exploration->tried, sizeof(*tried), exploration->count + 1,
			     &exploration->capacity))
			return -ENOMEM;
		tried = &exploration->tried[exploration->count++];
		*tried = (struct explore_tried){.levels = stored->levels,
						.machine = stored->machine};
		exploration->here += !stored->machine;
	}
	tried->seconds += stored->seconds;
	if (has_values)
		trial_figures__add(&tried->figures, stored->values,
				   exploration->experiment.metric_count);
	if (has_values || !tried->figures.runs)
		tried->outcome = stored->outcome;
	memcpy(tried->reason, stored->reason, sizeof(tried->reason));
	memcpy(tried->node, stored->node, sizeof(tried->node));
	return tell_search(exploration, stored);
}

size_t exploration__made_now(const struct exploration *exploration, bool is_new)
{
	const struct trial_runs *unfinished = &exploration->store.unfinished;
	size_t count = 0, i;

	for (i = 0; i < unfinished->count; i++)
		count += trial_store__goes_on(&exploration->store, &unfinished->at[i]) &&
			 (!is_new || !exploration__find(exploration, unfinished->at[i].levels));
	return count;
}

static int make_search(struct exploration *exploration)
{
	const struct trial_experiment *e = &exploration->experiment;
	const struct explore_request *request = exploration->request;
	struct explore_search_options options = {
		.policy = {.size = sizeof(options.policy),
			   .seed = e->seed,
			   .budget = request->budget ? request->budget : e->trials,
			   .objectives = e->objectives},
		.counts_configurations = true,
		.runs = e->runs,
		.race_runs = e->race_runs,
		.pairs = e->pairs};
	char node[TRIAL_NODE_BYTES];
	int rc;

	/* Two machines that know the same would make the same choices. */
	if (trial_store__is_shared(&exploration->store)) {
		trial_guard__node(node);
		options.policy.seed = pem_hash__text(e->seed ? e->seed : PEM_HASH_START, node);
	}
	exploration->search = explore_search__new(
		exploration->machines.count ? &exploration->machines.here : &e->space->view,
		&exploration->policy, &options);
	if (exploration->search)
		return 0;
	rc = -errno;
	snprintf(exploration->error.text, sizeof(exploration->error.text),
		 "the policy %.60s can't begin: %s", exploration->policy.name,
		 explore_policy__why(rc));
	return rc;
}

/* Take the runs that the store has, and this has not. */
static int take_new(struct exploration *exploration)
{
	const struct trial_runs *ended = &exploration->store.ended;
	int rc = 0;

	/* A new kind of machine makes another space of all of them. */
	if (exploration->store.machine_count > 1 &&
	    exploration->store.machine_count != exploration->machines.count) {
		exploration->count = exploration->here = exploration->taken_runs = 0;
		explore_search__free(exploration->search);
		exploration->search = NULL;
		rc = trial_machines__take(&exploration->machines, &exploration->store);
		if (!rc)
			rc = make_search(exploration);
		if (rc)
			return rc;
	}
	while (!rc && exploration->taken_runs < ended->count)
		rc = take(exploration, &ended->at[exploration->taken_runs++]);
	if (rc)
		snprintf(exploration->error.text, sizeof(exploration->error.text),
			 "trials can't be taken: %s", explore_policy__why(rc));
	return rc;
}

int exploration__catch_up(struct exploration *exploration)
{
	const struct trial_runs *unfinished = &exploration->store.unfinished;
	size_t i;
	int rc;

	if (!trial_store__is_shared(&exploration->store))
		return 0;
	rc = trial_store__update(&exploration->store, &exploration->error);
	if (!rc)
		rc = take_new(exploration);
	for (i = 0; !rc && i < unfinished->count; i++) {
		if (trial_store__goes_on(&exploration->store, &unfinished->at[i]))
			rc = explore_search__reserve(exploration->search, unfinished->at[i].levels,
						     PEM_EXPLORE_FAILED);
	}
	return rc;
}

/* Are races made in pairs? Returns 0 or -EINVAL with error. */
static int allow_pairs(struct exploration *exploration, bool changes)
{
	struct trial_experiment *e = &exploration->experiment;
	struct pem_error why = {.text = ""};
	int rc = exploration->request->pairs ? trial_experiment__pairs(e, &exploration->error) : 0;

	e->pairs |= exploration->request->pairs;
	if (rc || !changes || !e->pairs || !trial_pair__check(&why))
		return rc;
	cli_say("%s: races and comparisons are made in turns", why.text);
	e->pairs = false;
	return 0;
}

/* Returns 0 or -errno with error. Close it in any case. */
static int open_all(struct exploration *exploration, const struct explore_request *request)
{
	bool changes = request->changes;
	struct pem_error *error = &exploration->error;
	char path[PATH_MAX];
	bool is_new;
	int rc;

	memset(exploration, 0, sizeof(*exploration));
	exploration->request = request;
	if (!realpath(request->words[0], path)) {
		snprintf(error->text, sizeof(error->text), "%.300s can't be read: %s",
			 request->words[0], strerror(errno));
		return -errno;
	}
	rc = trial_experiment__read(&exploration->experiment, path, error);
	if (!rc)
		rc = allow_pairs(exploration, changes);
	if (!rc)
		rc = explore_policy__find(request->policy ? request->policy
							  : exploration->experiment.policy,
					  &exploration->policy, error);
	if (rc)
		return rc;
	rc = trial_store__open(&exploration->store, &exploration->experiment, !changes, error);
	/* Nothing is known yet. */
	is_new = rc == -ENOENT && !changes;
	if (!rc || is_new)
		rc = make_search(exploration);
	if (rc)
		return rc;
	/* A relative PEM_DB was of the folder before. */
	if (chdir(exploration->experiment.folder)) {
		snprintf(error->text, sizeof(error->text), "%.300s: %s",
			 exploration->experiment.folder, strerror(errno));
		return -errno;
	}
	rc = trial_store__identify(&exploration->store, error);
	if (is_new)
		return rc;
	/* What others note while they explore is read once they have ended. */
	if (!rc && changes) {
		exploration->settings = trial_guard__settings(error);
		rc = exploration->settings ? 0 : -errno;
	}
	if (!rc)
		rc = trial_store__update(&exploration->store, error);
	if (!rc && exploration->store.unreadable)
		cli_say("%zu runs are left out: the database has their machine in a form that "
			"can't be read",
			exploration->store.unreadable);
	return rc ? rc : take_new(exploration);
}

/* --- values that are refused --- */

/* Of a value that was never taken: after so many it is not tried again. */
#define REFUSALS 3

/* Note for the values of the last run that they were taken, or for one that it was refused. */
static void note_taken(struct exploration *exploration, const uint32_t *levels)
{
	const struct trial_outcome *outcome = &exploration->outcome;
	bool is_refused = outcome->outcome == PEM_EXPLORE_REFUSED;
	const struct trial_space *space = exploration->experiment.space;
	size_t i;

	for (i = 0; i < parameters(exploration); i++) {
		struct explore_taken **all = &exploration->taken[i];

		if (is_refused && i != outcome->refused)
			continue;
		if (!*all)
			*all = calloc(space->parameters[i].levels, sizeof(**all));
		if (*all && is_refused) {
			(*all)[levels[i]].refused++;
			memcpy((*all)[levels[i]].reason, outcome->reason, sizeof(outcome->reason));
		} else if (*all) {
			(*all)[levels[i]].taken++;
		}
	}
}

const char *exploration__refused(const struct exploration *exploration, const uint32_t *levels)
{
	size_t i;

	for (i = 0; i < parameters(exploration); i++) {
		const struct explore_taken *taken = exploration->taken[i];

		if (taken && taken[levels[i]].refused >= REFUSALS && !taken[levels[i]].taken)
			return taken[levels[i]].reason;
	}
	return NULL;
}

static bool on_record(const struct pem_explore_record *record, void *arg)
{
	struct exploration *exploration = arg;

	return !exploration->validates && explore_search__record(exploration->search, record) == 1;
}

int exploration__run(struct exploration *exploration, const uint32_t *levels,
		     const uint32_t *beside, bool alone)
{
	struct trial trial = {.experiment = &exploration->experiment,
			      .settings = exploration->settings,
			      .program = exploration->store.application.path,
			      .scratch = trial_scratch,
			      .interrupted = &trial_interrupted,
			      .record = on_record,
			      .arg = exploration};
	const uint32_t *const both[] = {levels, beside};
	struct trial_outcome outcomes[2] = {0};
	struct trial_store *store = &exploration->store;
	struct pem_error *error = &exploration->error;
	int rc = trial_store__begin(store, levels, beside, alone, error);

	if (rc)
		return rc;
	rc = beside ? trial_pair__run(&trial, both, outcomes, error)
		    : trial__run(&trial, levels, outcomes, error);
	/* Nothing can be run here: that is no trial. */
	outcomes->interrupted |= rc != 0;
	exploration->outcome = outcomes[0];
	exploration->beside_value = outcomes[1].values[0];
	if (rc) {
		trial_store__end(store, levels, beside, outcomes, &(struct pem_error){.text = ""});
		return rc;
	}
	rc = trial_store__end(store, levels, beside, outcomes, error);
	if (rc || outcomes->interrupted)
		return rc ? rc : -EINTR;
	if (!beside)
		note_taken(exploration, levels);
	else if (outcomes->outcome != PEM_EXPLORE_MEASURED)
		cli_say("a pair does not count: %s", outcomes->reason);
	return take_new(exploration);
}

void exploration__restore(struct exploration *exploration)
{
	trial_guard__restore(exploration->settings);
	exploration->settings = NULL;
}

static void close_all(struct exploration *exploration)
{
	size_t i;

	exploration__restore(exploration);
	explore_search__free(exploration->search);
	trial_store__close(&exploration->store);
	trial_experiment__free(&exploration->experiment);
	free(exploration->tried);
	trial_machines__free(&exploration->machines);
	for (i = 0; i < TRIAL_PARAMETERS_MAX; i++)
		free(exploration->taken[i]);
}

int exploration__act(void *arg)
{
	const struct explore_request *request = arg;
	struct exploration exploration;
	int rc = open_all(&exploration, request);

	rc = rc ? cli_fail(-rc, &exploration.error) : request->act(&exploration);
	close_all(&exploration);
	return rc;
}

int exploration__best(const struct exploration *exploration, struct trial_winner *best)
{
	double low;

	if (trial_races__best(explore_search__races(exploration->search), best) != 1)
		return 0;
	if (exploration->experiment.metrics[0].greater_is_better) {
		low = best->low;
		best->mean = -best->mean;
		best->low = -best->high;
		best->high = -low;
	}
	return 1;
}
