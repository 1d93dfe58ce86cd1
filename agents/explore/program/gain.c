/* SPDX-License-Identifier: MIT */
/* gain.c - how much better than the defaults the best configuration is: as told, and validated */
#include "program/exploration.h"

#include <math.h>
#include <string.h>

#define ATTEMPTS 3u /* a validation's runs may show that another configuration is the best */

static bool is_usual(const struct trial_experiment *e, const uint32_t *levels)
{
	return e->has_default &&
	       !memcmp(levels, e->defaults, e->space->view.parameter_count * sizeof(*levels));
}

static const struct explore_tried *find_usual(const struct exploration *x)
{
	const struct trial_experiment *e = &x->work.experiment;
	const struct explore_tried *usual =
		e->has_default ? exploration__find(x, e->defaults) : NULL;

	return usual && usual->figures.runs && usual->figures.means[0] > 0 ? usual : NULL;
}

struct trial_gain exploration__gain(struct exploration *x, const struct trial_winner *best)
{
	const struct trial_experiment *e = &x->work.experiment;
	const struct explore_tried *usual = find_usual(x);
	struct trial_gain gain = {.value = 0, .low = NAN, .high = NAN};
	struct pem_error error = {.text = ""};

	if (is_usual(e, best->levels))
		return gain;
	if (trial_store__gain(&x->work.store, best->levels, &gain, &error) < 0)
		cli_say("the comparison with the defaults can't be read: %s", error.text);
	return gain.runs || !usual
		       ? gain
		       : trial_figures__gain(&exploration__find(x, best->levels)->figures,
					     &usual->figures, e->metrics[0].greater_is_better);
}

/* Returns 0 or -errno with error. */
static int validate(struct exploration *x, const uint32_t *levels)
{
	struct trial_comparison comparison;
	int rc = trial_comparison__begin(&comparison, &x->work, levels, &x->error);

	while (!rc && trial_comparison__goes_on(&comparison)) {
		cli_progress__show(cli_format("the best configuration and the defaults in %s, %u "
					      "of %u",
					      x->work.experiment.pairs ? "pairs" : "turns",
					      comparison.made / 2 + 1, TRIAL_TURNS));
		rc = exploration__take(x, trial_comparison__run(&comparison, &x->error));
	}
	return rc ? rc : trial_comparison__keep(&comparison, &x->error);
}

/* Make the runs of a race that a validation's runs began. Returns 0 or -errno with error. */
static int end_race(struct exploration *x)
{
	uint32_t most = 2 * (x->work.experiment.race_runs + x->work.experiment.runs);
	uint32_t levels[TRIAL_PARAMETERS_MAX];
	bool again = false;
	int rc = 0;

	for (; !rc && most && !trial_interrupted; most--) {
		if (explore_search__next(x->search, levels, &again) != 1 || !again)
			break;
		rc = exploration__run(x, levels,
				      trial_races__beside(explore_search__races(x->search)), false);
	}
	return rc;
}

/* How long a validation takes, estimated from earlier runs. */
static double seconds_of(const struct exploration *x, const uint32_t *levels)
{
	const struct explore_tried *usual = exploration__find(x, x->work.experiment.defaults);
	const struct explore_tried *best = exploration__find(x, levels);

	return TRIAL_TURNS *
	       (usual->seconds / usual->figures.runs + best->seconds / best->figures.runs);
}

/* Can the best configuration be compared with the defaults, and was not yet? Or -errno. */
static int is_open(struct exploration *x, const struct trial_winner *best, double left_s)
{
	const struct trial_experiment *e = &x->work.experiment;
	struct trial_gain known;
	int rc;

	if (!e->race_runs || !find_usual(x) || !(best->mean > 0) || is_usual(e, best->levels) ||
	    seconds_of(x, best->levels) > left_s)
		return 0;
	rc = trial_store__gain(&x->work.store, best->levels, &known, &x->error);
	return rc < 0 ? rc : !rc || (e->pairs && !known.in_pairs);
}

int exploration__validate(struct exploration *x, double left_s)
{
	size_t bytes = x->work.experiment.space->view.parameter_count * sizeof(uint32_t);
	uint32_t levels[TRIAL_PARAMETERS_MAX] = {0}, attempt;
	struct trial_winner best;
	int rc = exploration__catch_up(x);

	for (attempt = 0; !rc && attempt < ATTEMPTS; attempt++) {
		/* The last machine does it. */
		if (exploration__made_now(x, false) || !exploration__best(x, &best))
			break;
		rc = is_open(x, &best, left_s);
		if (rc <= 0)
			break;
		memcpy(levels, best.levels, bytes);
		left_s -= seconds_of(x, levels);
		rc = validate(x, levels);
		if (!rc)
			rc = end_race(x);
		if (!rc)
			rc = exploration__catch_up(x);
	}
	cli_progress__clear();
	return rc;
}
