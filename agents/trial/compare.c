/* SPDX-License-Identifier: MIT */
/* compare.c - a configuration and the defaults in fresh runs (contract: work.h) */
#include "trial/work.h"

#include <math.h>
#include <string.h>

#define LOST_MAX 2u /* turns without a value end a comparison */

double trial_experiment__cost(const struct trial_experiment *e, double value)
{
	if (!(value > 0))
		return NAN;
	return e->metrics[0].greater_is_better ? 1 / value : value;
}

/* Is the next run, or the first of the next pair, one of the configuration? */
static bool is_treated(uint32_t made)
{
	return (made / 2 + made) % 2;
}

/* Note a run's value; NAN: it has none. */
static void add(struct trial_comparison *c, uint32_t outcome, double value)
{
	c->runs[c->made] = (struct pem_agent_trial){
		.value = outcome == PEM_EXPLORE_MEASURED
				 ? trial_experiment__cost(&c->work->experiment, value)
				 : NAN,
		.treated = is_treated(c->made),
		.group = c->made / 2};
	c->made++;
}

/* The configuration that runs next, or the one beside it. */
static const uint32_t *next_of(const struct trial_comparison *c, bool beside)
{
	return is_treated(c->made) != beside ? c->levels : c->work->experiment.defaults;
}

/* Add an earlier run, if it is the next one of a comparison. */
static bool add_stored(struct trial_comparison *c, const struct trial_stored *stored)
{
	const struct trial_experiment *e = &c->work->experiment;
	size_t bytes = e->space->view.parameter_count * sizeof(*c->levels);

	if (c->made == 2 * TRIAL_TURNS || stored->machine || !stored->beside != !e->pairs ||
	    memcmp(stored->levels, next_of(c, false), bytes) ||
	    (stored->beside && memcmp(stored->beside, next_of(c, true), bytes)))
		return false;
	add(c, stored->outcome, stored->values[0]);
	if (stored->beside)
		add(c, stored->outcome, stored->beside_value);
	return true;
}

int trial_comparison__begin(struct trial_comparison *c, struct trial_work *work,
			    const uint32_t *levels, struct pem_error *error)
{
	const struct trial_runs *ended = &work->store.ended;
	int64_t since_ns;
	size_t i;
	int rc;

	*c = (struct trial_comparison){.work = work, .levels = levels};
	rc = trial_store__compare(&work->store, levels, work->experiment.pairs, true, &since_ns,
				  error);
	for (i = 0; !rc && i < ended->count; i++) {
		if (ended->at[i].began_ns < since_ns || add_stored(c, &ended->at[i]))
			continue;
		/* Other runs since then: those before may be of a race, and not fresh. */
		c->made = 0;
		return trial_store__compare(&work->store, levels, work->experiment.pairs, false,
					    &since_ns, error);
	}
	return rc;
}

static uint32_t lost(const struct trial_comparison *c)
{
	uint32_t count = 0, i;

	for (i = 0; i + 1 < c->made; i += 2)
		count += isnan(c->runs[i].value) || isnan(c->runs[i + 1].value);
	return count;
}

bool trial_comparison__goes_on(const struct trial_comparison *c)
{
	return c->made < 2 * TRIAL_TURNS && lost(c) < LOST_MAX;
}

int trial_comparison__run(struct trial_comparison *c, struct pem_error *error)
{
	struct trial_work *work = c->work;
	const struct trial_outcome *outcomes = work->outcomes;
	const bool in_pairs = work->experiment.pairs;
	bool (*record)(const struct pem_explore_record *, void *) = work->record;
	int rc;

	/* A run that is ended early tells nothing of the whole. */
	work->record = NULL;
	rc = trial_work__run(work, next_of(c, false), in_pairs ? next_of(c, true) : NULL, false,
			     error);
	work->record = record;
	if (rc)
		return rc;
	add(c, outcomes[0].outcome, outcomes[0].values[0]);
	if (in_pairs)
		add(c, outcomes[1].outcome, outcomes[1].values[0]);
	return 0;
}

int trial_comparison__keep(struct trial_comparison *c, struct pem_error *error)
{
	struct pem_db_validation validation = {.verdict = PEM_AGENT_UNCLEAR};
	struct pem_agent_comparison found;

	if (lost(c) < LOST_MAX)
		validation = (struct pem_db_validation){
			.verdict = pem_agent__judge(c->runs, c->made, 1, &found),
			.gain = found.gain,
			.gain_low = found.gain_low,
			.gain_high = found.gain_high,
			.treated = found.treated,
			.controls = found.controls};
	return trial_store__validate(&c->work->store, c->levels, c->work->experiment.pairs,
				     &validation, error);
}
