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

struct explore_tried *exploration__find(const struct exploration *x, const uint32_t *levels)
{
	size_t index = trial_races__find(explore_search__races(x->search), levels);

	return index == SIZE_MAX ? NULL : &x->tried[index];
}

size_t exploration__number(const struct exploration *x, const uint32_t *levels)
{
	return trial_races__find(explore_search__races(x->search), levels) + 1;
}

/* The search sees values as policies do: the smaller, the better. */
static int tell_search(struct exploration *x, const struct trial_stored *stored)
{
	const struct trial_experiment *e = &x->work.experiment;
	double given[TRIAL_METRICS_MAX];
	const struct trial_race_run run = {.levels = stored->levels,
					   .outcome = stored->outcome,
					   .values = given,
					   .seconds = stored->seconds,
					   .elsewhere = stored->machine};
	size_t i;

	for (i = 0; i < e->objectives; i++)
		given[i] = e->metrics[i].greater_is_better ? -stored->values[i] : stored->values[i];
	return explore_search__add(x->search, &run);
}

/* A pair tells which one is better, and nothing of how either fares alone. */
static int take_pair(struct exploration *x, const struct trial_stored *stored)
{
	const struct trial_experiment *e = &x->work.experiment;
	const uint32_t *const levels[] = {stored->levels, stored->beside};
	bool is_void = stored->outcome != PEM_EXPLORE_MEASURED;
	const double costs[] = {is_void ? NAN : trial_experiment__cost(e, stored->values[0]),
				is_void ? NAN : trial_experiment__cost(e, stored->beside_value)};

	return stored->machine
		       ? 0
		       : trial_races__add_pair(explore_search__races(x->search), levels, costs);
}

/* The search numbers configurations by their first runs, and tried has them in that order. */
static int take(struct exploration *x, const struct trial_stored *stored)
{
	bool has_values = trial_outcome__has_values(stored->outcome);
	struct explore_tried *tried;

	if (stored->beside)
		return take_pair(x, stored);
	tried = exploration__find(x, stored->levels);
	if (!tried) {
		if (pem_grow(&x->tried, sizeof(*tried), x->count + 1, &x->capacity))
			return -ENOMEM;
		tried = &x->tried[x->count++];
		*tried = (struct explore_tried){.levels = stored->levels,
						.machine = stored->machine};
		x->here += !stored->machine;
	}
	tried->seconds += stored->seconds;
	if (has_values)
		trial_figures__add(&tried->figures, stored->values,
				   x->work.experiment.metric_count);
	if (tried->outcome == PEM_EXPLORE_MEASURED)
		tried->outcome = stored->outcome;
	memcpy(has_values ? tried->left : tried->reason, stored->reason, sizeof(tried->reason));
	memcpy(tried->node, stored->node, sizeof(tried->node));
	return tell_search(x, stored);
}

size_t exploration__made_now(const struct exploration *x, bool is_new)
{
	const struct trial_runs *unfinished = &x->work.store.unfinished;
	size_t count = 0, i;

	for (i = 0; i < unfinished->count; i++)
		count += trial_store__goes_on(&x->work.store, &unfinished->at[i]) &&
			 (!is_new || !exploration__find(x, unfinished->at[i].levels));
	return count;
}

static int make_search(struct exploration *x)
{
	const struct trial_experiment *e = &x->work.experiment;
	const struct explore_request *request = x->request;
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
	if (trial_store__is_shared(&x->work.store)) {
		trial_guard__node(node);
		options.policy.seed = pem_hash__text(e->seed ? e->seed : PEM_HASH_START, node);
	}
	x->search = explore_search__new(x->machines.count ? &x->machines.here : &e->space->view,
					&x->policy, &options);
	if (x->search)
		return 0;
	rc = -errno;
	snprintf(x->error.text, sizeof(x->error.text), "the policy %.60s can't begin: %s",
		 x->policy.name, explore_policy__why(rc));
	return rc;
}

/* Take the runs that the store has, and this has not. */
static int take_new(struct exploration *x)
{
	const struct trial_runs *ended = &x->work.store.ended;
	int rc = 0;

	/* A new kind of machine makes another space of all of them. */
	if (x->work.store.machine_count > 1 && x->work.store.machine_count != x->machines.count) {
		x->count = x->here = x->taken_runs = 0;
		explore_search__free(x->search);
		x->search = NULL;
		rc = trial_machines__take(&x->machines, &x->work.store);
		if (!rc)
			rc = make_search(x);
		if (rc)
			return rc;
	}
	while (!rc && x->taken_runs < ended->count)
		rc = take(x, &ended->at[x->taken_runs++]);
	if (rc)
		snprintf(x->error.text, sizeof(x->error.text), "trials can't be taken: %s",
			 explore_policy__why(rc));
	return rc;
}

int exploration__catch_up(struct exploration *x)
{
	const struct trial_runs *unfinished = &x->work.store.unfinished;
	size_t i;
	int rc;

	if (!trial_store__is_shared(&x->work.store))
		return 0;
	rc = trial_store__update(&x->work.store, &x->error);
	if (!rc)
		rc = take_new(x);
	for (i = 0; !rc && i < unfinished->count; i++) {
		if (trial_store__goes_on(&x->work.store, &unfinished->at[i]))
			rc = explore_search__reserve(x->search, unfinished->at[i].levels,
						     PEM_EXPLORE_FAILED);
	}
	return rc;
}

/* Are races made in pairs? Returns 0 or -EINVAL with error. */
static int allow_pairs(struct exploration *x, bool changes)
{
	struct trial_experiment *e = &x->work.experiment;
	struct pem_error why = {.text = ""};
	int rc = x->request->pairs ? trial_experiment__pairs(e, &x->error) : 0;

	e->pairs |= x->request->pairs;
	if (rc || !changes || !e->pairs || !trial_pair__check(&why))
		return rc;
	cli_say("%s: races and comparisons are made in turns", why.text);
	e->pairs = false;
	return 0;
}

static bool on_record(const struct pem_explore_record *record, void *arg)
{
	const struct exploration *x = arg;

	return explore_search__record(x->search, record) == 1;
}

/* Returns 0 or -errno with error. Close it in any case. */
static int open_all(struct exploration *x, const struct explore_request *request)
{
	bool changes = request->changes;
	struct pem_error *error = &x->error;
	char path[PATH_MAX];
	int rc;

	memset(x, 0, sizeof(*x));
	x->request = request;
	if (!realpath(request->words[0], path)) {
		snprintf(error->text, sizeof(error->text), "%.300s can't be read: %s",
			 request->words[0], strerror(errno));
		return -errno;
	}
	rc = trial_experiment__read(&x->work.experiment, path, error);
	if (!rc)
		rc = allow_pairs(x, changes);
	if (!rc)
		rc = explore_policy__find(request->policy ? request->policy
							  : x->work.experiment.policy,
					  &x->policy, error);
	if (rc)
		return rc;
	x->work.record = on_record;
	x->work.arg = x;
	rc = trial_work__open(&x->work, changes, error);
	if (!rc)
		rc = make_search(x);
	if (!rc && x->work.store.unreadable)
		cli_say("%s left out: rows of them are missing, or can't be read; 'pem db export' "
			"names the latter",
			x->work.store.unreadable == 1
				? "1 run is"
				: cli_format("%zu runs are", x->work.store.unreadable));
	return rc ? rc : take_new(x);
}

int exploration__take(struct exploration *x, int rc)
{
	const struct trial_outcome *outcome = &x->work.outcomes[0];

	if (rc)
		return rc;
	if (x->work.store.beside && outcome->outcome != PEM_EXPLORE_MEASURED)
		cli_say("a pair does not count: %s", outcome->reason);
	return take_new(x);
}

int exploration__run(struct exploration *x, const uint32_t *levels, const uint32_t *beside,
		     bool alone)
{
	return exploration__take(x, trial_work__run(&x->work, levels, beside, alone, &x->error));
}

static void close_all(struct exploration *x)
{
	explore_search__free(x->search);
	trial_work__close(&x->work);
	free(x->tried);
	trial_machines__free(&x->machines);
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

int exploration__best(const struct exploration *x, struct trial_winner *best)
{
	double low;

	if (trial_races__best(explore_search__races(x->search), best) != 1)
		return 0;
	if (x->work.experiment.metrics[0].greater_is_better) {
		low = best->low;
		best->mean = -best->mean;
		best->low = -best->high;
		best->high = -low;
	}
	return 1;
}
