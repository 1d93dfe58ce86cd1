/* SPDX-License-Identifier: MIT */
/* races.c - which configuration is the best, where runs of one differ (contract: races.h) */
#include "trial/races.h"
#include "grow.h"
#include "models/models.h"
#include "rank_test.h"
#include "student.h"
#include "trial/trial.h"

#include <pem/agent.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX
#define TESTED PEM_RANK_TEST_VALUES
#define CHANCE 0.05 /* of a decision that luck made */

/* A configuration that ran. */
struct contender {
	double *values; /* of its runs: objectives of the first one, of the second one, ... */
	size_t capacity;
	double median; /* of the first objective; INFINITY: it has none */
	uint32_t count; /* runs with values */
	uint32_t runs, told; /* all, and those that known was called for */
	uint32_t outcome; /* of the first run that was not measured, if there is one */
	bool lost; /* a race */
	bool elsewhere; /* it ran on another kind of machine, and can't be raced here */
	double seconds;
};

struct trial_races {
	struct trial_races_options options;
	struct model_configurations tried;
	struct contender *contenders; /* as in tried */
	size_t capacity;
	double *medians; /* of the objectives of the one that known is called for */
	double *paired; /* those that a pair gives to the rival */
	size_t best; /* the winner so far; NONE: nothing was measured */
	size_t last; /* which one ran last; NONE: none did */
	size_t rival; /* of a race with the best one; NONE: there is no race */
	/* Of the race's pairs: the rival's runs are treated. */
	struct pem_agent_trial *pairs;
	size_t pair_capacity;
	uint32_t pair_runs; /* twice as many as pairs */
};

struct trial_races *trial_races__new(const struct pem_explore_space *space,
				     const struct trial_races_options *options)
{
	struct trial_races *races = calloc(1, sizeof(*races));

	if (!races)
		return NULL;
	races->options = *options;
	races->tried.space = space;
	races->best = races->last = races->rival = NONE;
	races->medians = calloc(options->objectives, sizeof(double));
	races->paired = calloc(options->objectives, sizeof(double));
	if (races->medians && races->paired)
		return races;
	trial_races__free(races);
	return NULL;
}

void trial_races__free(struct trial_races *races)
{
	size_t i;

	if (!races)
		return;
	for (i = 0; i < races->tried.count; i++)
		free(races->contenders[i].values);
	free(races->contenders);
	free(races->pairs);
	free(races->medians);
	free(races->paired);
	model_configurations__free(&races->tried);
	free(races);
}

/* --- what is known --- */

static double median_of(const struct trial_races *races, const struct contender *one,
			uint32_t objective)
{
	uint32_t runs = one->count < 2 * TESTED ? one->count : 2 * TESTED, i;
	double sorted[2 * TESTED];

	for (i = 0; i < runs; i++)
		sorted[i] = one->values[(size_t)i * races->options.objectives + objective];
	model_sort(sorted, runs);
	return (sorted[(runs - 1) / 2] + sorted[runs / 2]) / 2;
}

/* Mean of the first objective. Returns its standard error; 0: unknown. */
static double mean_of(const struct trial_races *races, const struct contender *one, double *mean)
{
	struct trial_figures figures = {0};
	uint32_t i;

	for (i = 0; i < one->count; i++)
		trial_figures__add(&figures, &one->values[(size_t)i * races->options.objectives],
				   1);
	*mean = figures.means[0];
	return figures.errors[0];
}

static int tell(struct trial_races *races, size_t which)
{
	struct contender *one = &races->contenders[which];
	struct pem_explore_trial trial = {
		.size = sizeof(trial),
		.levels = model_configurations__levels(&races->tried, which),
		.outcome = one->outcome,
		.runs = one->runs,
		.seconds = one->seconds};
	double mean;
	uint32_t i;

	if (one->told == one->runs)
		return 0;
	one->told = one->runs;
	if (trial_outcome__has_values(one->outcome)) {
		for (i = 0; i < races->options.objectives; i++)
			races->medians[i] = median_of(races, one, i);
		trial.values = races->medians;
		trial.error = mean_of(races, one, &mean);
	}
	return races->options.known(&trial, races->options.arg);
}

static bool is_measured(const struct trial_races *races, size_t which)
{
	return which != NONE && races->contenders[which].outcome == PEM_EXPLORE_MEASURED &&
	       !races->contenders[which].elsewhere;
}

/* The one of the least median among those that lost no race; if there are none, among all. */
static size_t least(const struct trial_races *races)
{
	size_t found = NONE, i;

	for (i = 0; i < races->tried.count; i++) {
		const struct contender *one = &races->contenders[i];

		if (!is_measured(races, i) || one->count < races->options.runs)
			continue;
		if (found == NONE || one->lost < races->contenders[found].lost ||
		    (one->lost == races->contenders[found].lost &&
		     one->median < races->contenders[found].median))
			found = i;
	}
	return found;
}

/* --- races --- */

/* Runs of one configuration in races, with those before. */
static uint32_t runs_most(const struct trial_races *races)
{
	return races->options.runs + races->options.race_runs;
}

/* Do a configuration's runs repeat to the last digit? Then there is no noise to test. */
static bool repeats(const struct trial_races *races, const struct contender *one)
{
	uint32_t i;

	for (i = 1; i < one->count; i++) {
		if (memcmp(&one->values[(size_t)i * races->options.objectives], one->values,
			   sizeof(double)))
			return false;
	}
	return one->count > 1;
}

/* Copy values of the first objective. Returns how many. */
static size_t firsts(const struct trial_races *races, const struct contender *one, double *values)
{
	size_t count = one->count < TESTED ? one->count : TESTED, i;

	for (i = 0; i < count; i++)
		values[i] = one->values[i * races->options.objectives];
	return count;
}

/* How the rival does in pairs, see judge. Where they do not tell, the greater mean loses. */
static int judge_pairs(const struct trial_races *races)
{
	enum pem_agent_verdict verdict = pem_agent__judge(races->pairs, races->pair_runs, 0, NULL);
	double sum = 0, ratio;
	uint32_t i;

	if (verdict == PEM_AGENT_FASTER || verdict == PEM_AGENT_SLOWER)
		return verdict == PEM_AGENT_FASTER ? 1 : -1;
	if (races->pair_runs < 2 * races->options.race_runs)
		return 0;
	for (i = 0; i < races->pair_runs; i += 2) {
		ratio = log(races->pairs[i].value / races->pairs[i + 1].value);
		if (isfinite(ratio))
			sum += races->pairs[i].treated ? ratio : -ratio;
	}
	return sum < 0 ? 1 : -1;
}

/* How the rival does: -1 it loses, 1 it wins, 0 they run on. */
static int judge(const struct trial_races *races)
{
	const struct contender *rival = &races->contenders[races->rival];
	const struct contender *best = &races->contenders[races->best];
	double values[TESTED], others[TESTED], wins, loses;
	size_t count = firsts(races, rival, values), other_count = firsts(races, best, others);
	int in_pairs;

	if (!is_measured(races, races->rival) || !is_measured(races, races->best))
		return is_measured(races, races->rival) ? 1 : -1;
	if (races->options.pairs || races->pair_runs) {
		in_pairs = judge_pairs(races);
		if (in_pairs || races->options.pairs)
			return in_pairs;
	}
	wins = pem_rank_test(values, count, others, other_count);
	loses = pem_rank_test(others, other_count, values, count);
	if (fmin(wins, loses) > CHANCE && rival->runs < runs_most(races) &&
	    !(repeats(races, rival) && repeats(races, best)))
		return 0;
	return wins < loses ? 1 : -1;
}

/* The race's end: the loser does not race again, so races come to an end. */
static int end_race(struct trial_races *races, bool rival_wins)
{
	size_t winner = rival_wins ? races->rival : races->best;
	size_t loser = rival_wins ? races->best : races->rival;
	int rc;

	races->best = winner;
	races->rival = NONE;
	races->pair_runs = 0;
	races->contenders[loser].lost = true;
	rc = tell(races, loser);
	return rc ? rc : tell(races, winner);
}

/*
 * Find the best one, and who races with it, after a run. A loser is no rival, so each race leaves
 * one fewer. Returns 0 or -errno.
 */
static int settle(struct trial_races *races)
{
	const struct contender *all = races->contenders;
	int verdict, rc = 0;

	while (!rc) {
		if (races->rival == NONE) {
			size_t first = least(races);

			if (!is_measured(races, races->best) || !races->options.race_runs)
				races->best = first;
			if (first == races->best || all[first].lost ||
			    !(all[first].median < all[races->best].median))
				return 0;
			races->rival = first;
		}
		verdict = judge(races);
		if (!verdict)
			return 0;
		rc = end_race(races, verdict > 0);
	}
	return rc;
}

/* --- runs --- */

/*
 * The configuration that runs again: one that has fewer runs than it shall have, or the one of a
 * race's two that ran less, the rival first. NONE: none has to.
 */
static size_t turn_of(const struct trial_races *races)
{
	const struct contender *all = races->contenders;
	size_t last = races->last, i;

	if (is_measured(races, last) && all[last].count < races->options.runs)
		return last;
	/* Another machine, or an earlier process, may have left one. */
	for (i = 0; i < races->tried.count && races->options.runs > 1; i++) {
		if (is_measured(races, i) && all[i].count < races->options.runs)
			return i;
	}
	if (races->rival != NONE && !races->options.pairs &&
	    all[races->best].runs < all[races->rival].runs &&
	    all[races->best].runs < runs_most(races))
		return races->best;
	return races->rival;
}

const uint32_t *trial_races__turn(const struct trial_races *races)
{
	size_t turn = turn_of(races);

	return turn == NONE ? NULL : model_configurations__levels(&races->tried, turn);
}

/* The outcome of a run: without a finite value for each objective it failed. */
static uint32_t outcome_of(const struct trial_races *races, const struct trial_race_run *run)
{
	uint32_t i;

	if (!trial_outcome__has_values(run->outcome))
		return run->outcome == PEM_EXPLORE_REFUSED ? PEM_EXPLORE_REFUSED
							   : PEM_EXPLORE_FAILED;
	for (i = 0; i < races->options.objectives; i++) {
		if (!run->values || !isfinite(run->values[i]))
			return PEM_EXPLORE_FAILED;
	}
	return run->outcome;
}

/* Add a run to its configuration. Returns the configuration's index; NONE: no memory. */
static size_t merge(struct trial_races *races, const struct trial_race_run *run)
{
	uint32_t outcome = outcome_of(races, run);
	size_t count = races->tried.count, which;
	struct contender *one;

	if (pem_grow(&races->contenders, sizeof(*one), count + 1, &races->capacity))
		return NONE;
	which = model_configurations__add(&races->tried, run->levels);
	if (which == NONE)
		return NONE;
	one = &races->contenders[which];
	if (which == count)
		*one = (struct contender){0};
	if (pem_grow(&one->values, sizeof(double) * races->options.objectives,
		     (size_t)one->count + 1, &one->capacity))
		return NONE;
	if (trial_outcome__has_values(outcome))
		memcpy(one->values + (size_t)one->count++ * races->options.objectives, run->values,
		       races->options.objectives * sizeof(double));
	one->runs++;
	one->elsewhere = run->elsewhere;
	one->seconds += run->seconds;
	if (one->outcome == PEM_EXPLORE_MEASURED)
		one->outcome = outcome;
	one->median = trial_outcome__has_values(one->outcome) ? median_of(races, one, 0) : INFINITY;
	return which;
}

int trial_races__add(struct trial_races *races, const struct trial_race_run *run)
{
	size_t which = merge(races, run);
	int rc;

	if (which == NONE)
		return -ENOMEM;
	if (run->elsewhere)
		return tell(races, which);
	races->last = which;
	if (is_measured(races, which) && races->contenders[which].count < races->options.runs)
		return 0;
	rc = settle(races);
	/* A race's two are told of at its end. */
	if (!rc && (races->rival == NONE || (which != races->rival && which != races->best)))
		rc = tell(races, which);
	return rc;
}

size_t trial_races__find(const struct trial_races *races, const uint32_t *levels)
{
	return model_configurations__find(&races->tried, levels);
}

const uint32_t *trial_races__beside(const struct trial_races *races)
{
	return races->options.pairs && races->rival != NONE && turn_of(races) == races->rival
		       ? model_configurations__levels(&races->tried, races->best)
		       : NULL;
}

/* The rival's run in a pair: how it would have fared when the best one had its median. */
static int merge_pair(struct trial_races *races, const uint32_t *levels, double ratio)
{
	const struct contender *rival = &races->contenders[races->rival];
	const struct trial_race_run run = {.levels = levels, .values = races->paired};
	double best = races->contenders[races->best].median;
	uint32_t i;

	/* The less the better: a rate is below 0. */
	races->paired[0] = best < 0 ? best / ratio : best * ratio;
	for (i = 1; i < races->options.objectives; i++)
		races->paired[i] = median_of(races, rival, i);
	return merge(races, &run) == NONE ? -ENOMEM : 0;
}

int trial_races__add_pair(struct trial_races *races, const uint32_t *const levels[2],
			  const double values[2])
{
	size_t which[2], side, rival;
	int rc = 0;

	for (side = 0; side < 2; side++) {
		which[side] = trial_races__find(races, levels[side]);
		if (races->rival == NONE ||
		    (which[side] != races->rival && which[side] != races->best))
			return 0;
	}
	if (which[0] == which[1])
		return 0;
	rival = which[1] == races->rival;
	if (pem_grow(&races->pairs, sizeof(*races->pairs), races->pair_runs + 2,
		     &races->pair_capacity))
		return -ENOMEM;
	for (side = 0; side < 2; side++)
		races->pairs[races->pair_runs + side] =
			(struct pem_agent_trial){.treated = side == rival,
						 .value = values[side],
						 .group = races->pair_runs / 2};
	races->pair_runs += 2;
	if (values[0] > 0 && values[1] > 0 && isfinite(values[0]) && isfinite(values[1]))
		rc = merge_pair(races, levels[rival], values[rival] / values[!rival]);
	return rc ? rc : settle(races);
}

bool trial_races__are_on(const struct trial_races *races)
{
	return races->rival != NONE;
}

int trial_races__best(const struct trial_races *races, struct trial_winner *best)
{
	const struct contender *one;
	double error, t;

	if (races->best == NONE)
		return 0;
	one = &races->contenders[races->best];
	best->levels = model_configurations__levels(&races->tried, races->best);
	best->median = one->median;
	best->runs = one->runs;
	error = mean_of(races, one, &best->mean);
	t = one->runs > 1 ? pem_student__quantile(CHANCE, one->runs - 1) : NAN;
	best->low = best->mean - t * error;
	best->high = best->mean + t * error;
	return 1;
}
