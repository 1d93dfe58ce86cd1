/* SPDX-License-Identifier: MIT */
/* gain.c - how much better than the defaults the best configuration is: as told, and validated */
#include "program/exploration.h"

#include <pem/agent.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#define TURNS 6u /* of both, in a validation */
#define LOST_MAX 2u /* turns without a value end one */
#define ATTEMPTS 3u /* a validation's runs may show that another configuration is the best */

/* By the runs that chose it, which had luck among them. */
static struct explore_estimate gain_of_trials(const struct exploration *exploration,
					      const struct trial_winner *best)
{
	const struct trial_experiment *e = &exploration->experiment;
	const struct explore_tried *usual =
		e->has_default ? exploration__find(exploration, e->defaults) : NULL;
	const struct explore_tried *found = exploration__find(exploration, best->levels);
	double sign = e->metrics[0].greater_is_better ? 1 : -1, ratio, half = NAN;

	if (!usual || !usual->figures.runs || !(usual->figures.means[0] > 0) ||
	    !(found->figures.means[0] > 0))
		return (struct explore_estimate){NAN, NAN, NAN};
	ratio = found->figures.means[0] / usual->figures.means[0];
	if (found->figures.runs > 1 && usual->figures.runs > 1)
		half = trial_figures__half_interval(&found->figures, found->figures.means[0],
						    &usual->figures, usual->figures.means[0]);
	/*
	 * The interval is one of the ratio's logarithm, whose error is the ratio's as a share of
	 * it: no more time is saved than all of it.
	 */
	return (struct explore_estimate){.value = sign * (ratio - 1),
					 .low = sign * (ratio * exp(-sign * half) - 1),
					 .high = sign * (ratio * exp(sign * half) - 1)};
}

/* The gain of the metric, from a gain in % of the time: a rate is the inverse of a time. */
static double gain_of_time(const struct exploration *exploration, double percent)
{
	double share = percent / 100;

	return exploration->experiment.metrics[0].greater_is_better ? share / (1 - share) : share;
}

static bool is_usual(const struct exploration *exploration, const uint32_t *levels)
{
	const struct trial_experiment *e = &exploration->experiment;

	return e->has_default &&
	       !memcmp(levels, e->defaults, e->space->view.parameter_count * sizeof(*levels));
}

/* The last comparison with the defaults, in pairs if it has those. As trial_store__validation. */
static int find_validation(struct exploration *exploration, const uint32_t *levels,
			   struct explore_fresh *fresh, struct pem_db_validation *found,
			   struct pem_error *error)
{
	int rc;

	*fresh = (struct explore_fresh){.in_pairs = true};
	rc = trial_store__validation(&exploration->store, levels, true, found, error);
	if (!rc || (rc == 1 && found->treated < 2 && !exploration->experiment.pairs)) {
		fresh->in_pairs = false;
		rc = trial_store__validation(&exploration->store, levels, false, found, error);
	}
	if (rc == 1 && found->treated > 1)
		fresh->runs = (uint32_t)found->treated;
	return rc;
}

struct explore_estimate exploration__gain(struct exploration *exploration,
					  const struct trial_winner *best,
					  struct explore_fresh *fresh)
{
	struct pem_db_validation found = {.size = sizeof(found)};
	struct pem_error error = {.text = ""};
	int rc;

	*fresh = (struct explore_fresh){0};
	if (is_usual(exploration, best->levels))
		return (struct explore_estimate){0, NAN, NAN};
	rc = find_validation(exploration, best->levels, fresh, &found, &error);
	if (rc < 0)
		cli_say("the comparison with the defaults can't be read: %s", error.text);
	if (!fresh->runs)
		return gain_of_trials(exploration, best);
	return (struct explore_estimate){gain_of_time(exploration, found.gain),
					 gain_of_time(exploration, found.gain_low),
					 gain_of_time(exploration, found.gain_high)};
}

/* Of the last run, or half of a pair. NAN: it has no value above 0. */
static double cost_of(const struct exploration *exploration, double value)
{
	return exploration->outcome.outcome == PEM_EXPLORE_MEASURED
		       ? exploration__cost(exploration, value)
		       : NAN;
}

/*
 * Run the configuration, treated, and the defaults, at the same time or one after the other, and
 * write what each costs. Returns 0 or -errno with error.
 */
static int run_both(struct exploration *exploration, const uint32_t *levels, uint32_t turn,
		    struct pem_agent_trial runs[2])
{
	const uint32_t *const both[] = {exploration->experiment.defaults, levels};
	bool in_pairs = exploration->experiment.pairs;
	int rc = 0, i;

	for (i = 0; i < 2; i++)
		/* Who begins changes from turn to turn. */
		runs[i] = (struct pem_agent_trial){.treated = (turn + (uint32_t)i) % 2,
						   .group = turn};
	if (in_pairs) {
		rc = exploration__run(exploration, both[runs[0].treated], both[runs[1].treated],
				      false);
		runs[1].value = cost_of(exploration, exploration->beside_value);
		runs[0].value = cost_of(exploration, exploration->outcome.values[0]);
	}
	for (i = 0; i < 2 && !rc && !in_pairs; i++) {
		rc = exploration__run(exploration, both[runs[i].treated], NULL, false);
		runs[i].value = cost_of(exploration, exploration->outcome.values[0]);
	}
	return rc;
}

/* Returns 0 or -errno with error. One that can't be made is kept with no runs. */
static int validate(struct exploration *exploration, const uint32_t *levels)
{
	bool in_pairs = exploration->experiment.pairs;
	struct pem_agent_trial runs[2 * TURNS];
	struct pem_agent_comparison found;
	struct pem_db_validation validation = {.verdict = PEM_AGENT_UNCLEAR};
	uint32_t turn, lost = 0;
	int rc = 0;

	for (turn = 0; !rc && turn < TURNS && lost < LOST_MAX; turn++) {
		cli_progress__show(cli_format("the best configuration and the defaults in %s, %u "
					      "of %u",
					      in_pairs ? "pairs" : "turns", turn + 1, TURNS));
		rc = run_both(exploration, levels, turn, runs + 2 * turn);
		lost += isnan(runs[2 * turn].value) || isnan(runs[2 * turn + 1].value);
	}
	if (rc < 0)
		return rc;
	if (lost < LOST_MAX)
		validation = (struct pem_db_validation){
			.verdict = pem_agent__judge(runs, 2 * TURNS, 1, &found),
			.gain = found.gain,
			.gain_low = found.gain_low,
			.gain_high = found.gain_high,
			.treated = found.treated,
			.controls = found.controls};
	return trial_store__validate(&exploration->store, levels, in_pairs, &validation,
				     &exploration->error);
}

/* Make the runs of a race that a validation's runs began. Returns 0 or -errno with error. */
static int end_race(struct exploration *exploration)
{
	uint32_t most = 2 * (exploration->experiment.race_runs + exploration->experiment.runs);
	uint32_t levels[TRIAL_PARAMETERS_MAX];
	bool again = false;
	int rc = 0;

	for (; !rc && most && !trial_interrupted; most--) {
		if (explore_search__next(exploration->search, levels, &again) != 1 || !again)
			break;
		rc = exploration__run(
			exploration, levels,
			trial_races__beside(explore_search__races(exploration->search)), false);
	}
	return rc;
}

/* How long a validation takes, estimated from earlier runs. */
static double seconds_of(const struct exploration *exploration, const uint32_t *levels)
{
	const struct explore_tried *usual =
		exploration__find(exploration, exploration->experiment.defaults);
	const struct explore_tried *best = exploration__find(exploration, levels);

	return TURNS * (usual->seconds / usual->figures.runs + best->seconds / best->figures.runs);
}

/* Can the best configuration be compared with the defaults, and was not yet? Or -errno. */
static int is_open(struct exploration *exploration, const struct trial_winner *best, double left_s)
{
	const struct trial_experiment *e = &exploration->experiment;
	const struct explore_tried *usual =
		e->has_default ? exploration__find(exploration, e->defaults) : NULL;
	struct pem_db_validation known = {.size = sizeof(known)};
	struct explore_fresh fresh;
	int rc;

	if (!e->race_runs || !usual || !usual->figures.runs || !(usual->figures.means[0] > 0) ||
	    !(best->mean > 0) || is_usual(exploration, best->levels) ||
	    seconds_of(exploration, best->levels) > left_s)
		return 0;
	rc = find_validation(exploration, best->levels, &fresh, &known, &exploration->error);
	return rc < 0 ? rc : !rc || (e->pairs && !fresh.in_pairs);
}

int exploration__validate(struct exploration *exploration, double left_s)
{
	size_t bytes = exploration->experiment.space->view.parameter_count * sizeof(uint32_t);
	uint32_t levels[TRIAL_PARAMETERS_MAX] = {0}, attempt;
	struct trial_winner best;
	int rc = exploration__catch_up(exploration);

	exploration->validates = true;
	for (attempt = 0; !rc && attempt < ATTEMPTS; attempt++) {
		/* The last machine does it. */
		if (exploration__made_now(exploration, false) ||
		    !exploration__best(exploration, &best))
			break;
		rc = is_open(exploration, &best, left_s);
		if (rc <= 0)
			break;
		memcpy(levels, best.levels, bytes);
		left_s -= seconds_of(exploration, levels);
		rc = validate(exploration, levels);
		if (!rc)
			rc = end_race(exploration);
		if (!rc)
			rc = exploration__catch_up(exploration);
	}
	exploration->validates = false;
	cli_progress__clear();
	return rc;
}
