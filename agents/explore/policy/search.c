/* SPDX-License-Identifier: MIT */
/* search.c - a policy, and the races that a lucky configuration has to win (contract: search.h) */
#include "policy/search.h"
#include "grow.h"
#include "policy/policy.h"
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
	uint32_t runs, told; /* all, and those that the policy knows */
	uint32_t outcome; /* of the first run that was not measured, if there is one */
	bool lost; /* a race */
	bool elsewhere; /* it ran on another kind of machine, and can't be raced here */
	double seconds;
};

struct explore_search {
	const struct pem_explore_policy *policy;
	void *state; /* the policy's */
	struct explore_search_options options;
	uint32_t objectives;
	struct model_configurations tried;
	struct contender *contenders; /* as in tried */
	size_t capacity;
	double *medians; /* of the objectives of the one that the policy is told of */
	double *paired; /* those that a pair gives to the rival */
	uint32_t made; /* runs */
	size_t best; /* the winner so far; NONE: nothing was measured */
	size_t last; /* which one ran last; NONE: none did */
	size_t rival; /* of a race with the best one; NONE: there is no race */
	/* Of the race's pairs: the rival's runs are treated. */
	struct pem_agent_trial *pairs;
	size_t pair_capacity;
	uint32_t pair_runs; /* twice as many as pairs */
};

struct explore_search *explore_search__new(const struct pem_explore_space *space,
					   const struct pem_explore_policy *policy,
					   const struct explore_search_options *options)
{
	struct explore_search *search = calloc(1, sizeof(*search));
	struct pem_explore_options given = options->policy;

	if (!search)
		return NULL;
	search->policy = policy;
	search->options = *options;
	search->tried.space = space;
	search->objectives = given.objectives ? given.objectives : 1;
	search->best = search->last = search->rival = NONE;
	if (!search->options.runs)
		search->options.runs = 1;
	given.size = sizeof(given);
	given.objectives = search->objectives;
	if (!options->counts_configurations)
		given.budget = (given.budget + search->options.runs - 1) / search->options.runs;
	search->medians = calloc(search->objectives, sizeof(double));
	search->paired = calloc(search->objectives, sizeof(double));
	search->state = search->medians && search->paired ? policy->begin(space, &given) : NULL;
	if (!search->state) {
		explore_search__free(search);
		return NULL;
	}
	return search;
}

void explore_search__free(struct explore_search *search)
{
	int error = errno;
	size_t i;

	if (!search)
		return;
	search->policy->end(search->state);
	for (i = 0; i < search->tried.count; i++)
		free(search->contenders[i].values);
	free(search->contenders);
	free(search->pairs);
	free(search->medians);
	free(search->paired);
	model_configurations__free(&search->tried);
	free(search);
	errno = error;
}

/* --- what is known --- */

static double median_of(const struct explore_search *search, const struct contender *one,
			uint32_t objective)
{
	uint32_t runs = one->count < 2 * TESTED ? one->count : 2 * TESTED, i;
	double sorted[2 * TESTED];

	for (i = 0; i < runs; i++)
		sorted[i] = one->values[(size_t)i * search->objectives + objective];
	model_sort(sorted, runs);
	return (sorted[(runs - 1) / 2] + sorted[runs / 2]) / 2;
}

/* Mean of the first objective. Returns its standard error; 0: unknown. */
static double mean_of(const struct explore_search *search, const struct contender *one,
		      double *mean)
{
	struct trial_figures figures = {0};
	uint32_t i;

	for (i = 0; i < one->count; i++)
		trial_figures__add(&figures, &one->values[(size_t)i * search->objectives], 1);
	*mean = figures.means[0];
	return figures.errors[0];
}

static int tell(struct explore_search *search, size_t which)
{
	struct contender *one = &search->contenders[which];
	struct pem_explore_trial trial = {
		.size = sizeof(trial),
		.levels = model_configurations__levels(&search->tried, which),
		.outcome = one->outcome,
		.runs = one->runs,
		.seconds = one->seconds};
	double mean;
	uint32_t i;

	if (one->told == one->runs)
		return 0;
	one->told = one->runs;
	if (trial_outcome__has_values(one->outcome)) {
		for (i = 0; i < search->objectives; i++)
			search->medians[i] = median_of(search, one, i);
		trial.values = search->medians;
		trial.error = mean_of(search, one, &mean);
	}
	return search->policy->process_trial(search->state, &trial);
}

static bool is_measured(const struct explore_search *search, size_t which)
{
	return which != NONE && search->contenders[which].outcome == PEM_EXPLORE_MEASURED &&
	       !search->contenders[which].elsewhere;
}

/* The one of the least median among those that lost no race; if there are none, among all. */
static size_t least(const struct explore_search *search)
{
	size_t found = NONE, i;

	for (i = 0; i < search->tried.count; i++) {
		const struct contender *one = &search->contenders[i];

		if (!is_measured(search, i) || one->count < search->options.runs)
			continue;
		if (found == NONE || one->lost < search->contenders[found].lost ||
		    (one->lost == search->contenders[found].lost &&
		     one->median < search->contenders[found].median))
			found = i;
	}
	return found;
}

/* --- races --- */

/* Runs of one configuration in races, with those before. */
static uint32_t runs_most(const struct explore_search *search)
{
	return search->options.runs + search->options.race_runs;
}

/* Do a configuration's runs repeat to the last digit? Then there is no noise to test. */
static bool repeats(const struct explore_search *search, const struct contender *one)
{
	uint32_t i;

	for (i = 1; i < one->count; i++) {
		if (memcmp(&one->values[(size_t)i * search->objectives], one->values,
			   sizeof(double)))
			return false;
	}
	return one->count > 1;
}

/* Copy values of the first objective. Returns how many. */
static size_t firsts(const struct explore_search *search, const struct contender *one,
		     double *values)
{
	size_t count = one->count < TESTED ? one->count : TESTED, i;

	for (i = 0; i < count; i++)
		values[i] = one->values[i * search->objectives];
	return count;
}

/* How the rival does in pairs, see judge. Where they do not tell, the greater mean loses. */
static int judge_pairs(const struct explore_search *search)
{
	enum pem_agent_verdict verdict =
		pem_agent__judge(search->pairs, search->pair_runs, 0, NULL);
	double sum = 0, ratio;
	uint32_t i;

	if (verdict == PEM_AGENT_FASTER || verdict == PEM_AGENT_SLOWER)
		return verdict == PEM_AGENT_FASTER ? 1 : -1;
	if (search->pair_runs < 2 * search->options.race_runs)
		return 0;
	for (i = 0; i < search->pair_runs; i += 2) {
		ratio = log(search->pairs[i].value / search->pairs[i + 1].value);
		if (isfinite(ratio))
			sum += search->pairs[i].treated ? ratio : -ratio;
	}
	return sum < 0 ? 1 : -1;
}

/* How the rival does: -1 it loses, 1 it wins, 0 they run on. */
static int judge(const struct explore_search *search)
{
	const struct contender *rival = &search->contenders[search->rival];
	const struct contender *best = &search->contenders[search->best];
	double values[TESTED], others[TESTED], wins, loses;
	size_t count = firsts(search, rival, values), other_count = firsts(search, best, others);
	int in_pairs;

	if (!is_measured(search, search->rival) || !is_measured(search, search->best))
		return is_measured(search, search->rival) ? 1 : -1;
	if (search->options.pairs || search->pair_runs) {
		in_pairs = judge_pairs(search);
		if (in_pairs || search->options.pairs)
			return in_pairs;
	}
	wins = pem_rank_test(values, count, others, other_count);
	loses = pem_rank_test(others, other_count, values, count);
	if (fmin(wins, loses) > CHANCE && rival->runs < runs_most(search) &&
	    !(repeats(search, rival) && repeats(search, best)))
		return 0;
	return wins < loses ? 1 : -1;
}

/* The race's end: the loser does not race again, so races come to an end. */
static int end_race(struct explore_search *search, bool rival_wins)
{
	size_t winner = rival_wins ? search->rival : search->best;
	size_t loser = rival_wins ? search->best : search->rival;
	int rc;

	search->best = winner;
	search->rival = NONE;
	search->pair_runs = 0;
	search->contenders[loser].lost = true;
	rc = tell(search, loser);
	return rc ? rc : tell(search, winner);
}

/* Find the best one, and who races with it, after a run. Returns 0 or -errno of the policy. */
static int settle(struct explore_search *search)
{
	int verdict, rc = 0;

	while (!rc) {
		if (search->rival == NONE) {
			size_t first = least(search);

			if (!is_measured(search, search->best) || !search->options.race_runs)
				search->best = first;
			if (first == search->best || !(search->contenders[first].median <
						       search->contenders[search->best].median))
				return 0;
			search->rival = first;
		}
		verdict = judge(search);
		if (!verdict)
			return 0;
		rc = end_race(search, verdict > 0);
	}
	return rc;
}

/* --- runs --- */

/*
 * The configuration that runs again: one that has fewer runs than it shall have, or the one of a
 * race's two that ran less, the rival first. NONE: the policy chooses.
 */
static size_t turn_of(const struct explore_search *search)
{
	const struct contender *all = search->contenders;
	size_t last = search->last, i;

	if (is_measured(search, last) && all[last].count < search->options.runs)
		return last;
	/* Another machine, or an earlier process, may have left one. */
	for (i = 0; i < search->tried.count && search->options.runs > 1; i++) {
		if (is_measured(search, i) && all[i].count < search->options.runs)
			return i;
	}
	if (search->rival != NONE && !search->options.pairs &&
	    all[search->best].runs < all[search->rival].runs &&
	    all[search->best].runs < runs_most(search))
		return search->best;
	return search->rival;
}

int explore_search__next(struct explore_search *search, uint32_t *levels, bool *again)
{
	const struct pem_explore_space *space = search->tried.space;
	size_t turn = turn_of(search);
	uint32_t i;
	int rc;

	if (search->options.policy.budget && !search->options.counts_configurations &&
	    search->made >= search->options.policy.budget)
		return 0;
	*again = turn != NONE;
	if (turn != NONE) {
		memcpy(levels, model_configurations__levels(&search->tried, turn),
		       space->parameter_count * sizeof(*levels));
		return 1;
	}
	if (search->policy->is_done(search->state))
		return 0;
	rc = search->policy->next_config(search->state, levels);
	if (rc <= 0)
		return rc;
	for (i = 0; i < space->parameter_count; i++) {
		if (levels[i] >= space->parameters[i].levels)
			return -ERANGE;
	}
	if (!space->allows(space, levels))
		return -ERANGE;
	*again = explore_search__find(search, levels) != NONE;
	return 1;
}

/* The outcome of a run: without a finite value for each objective it failed. */
static uint32_t outcome_of(const struct explore_search *search, const struct explore_run *run)
{
	uint32_t i;

	if (!trial_outcome__has_values(run->outcome))
		return run->outcome == PEM_EXPLORE_REFUSED ? PEM_EXPLORE_REFUSED
							   : PEM_EXPLORE_FAILED;
	for (i = 0; i < search->objectives; i++) {
		if (!run->values || !isfinite(run->values[i]))
			return PEM_EXPLORE_FAILED;
	}
	return run->outcome;
}

/* Add a run to its configuration. Returns the configuration's index; NONE: no memory. */
static size_t merge(struct explore_search *search, const struct explore_run *run)
{
	uint32_t outcome = outcome_of(search, run);
	size_t count = search->tried.count, which;
	struct contender *one;

	if (pem_grow(&search->contenders, sizeof(*one), count + 1, &search->capacity))
		return NONE;
	which = model_configurations__add(&search->tried, run->levels);
	if (which == NONE)
		return NONE;
	one = &search->contenders[which];
	if (which == count)
		*one = (struct contender){0};
	if (pem_grow(&one->values, sizeof(double) * search->objectives, (size_t)one->count + 1,
		     &one->capacity))
		return NONE;
	if (trial_outcome__has_values(outcome))
		memcpy(one->values + (size_t)one->count++ * search->objectives, run->values,
		       search->objectives * sizeof(double));
	one->runs++;
	one->elsewhere = run->elsewhere;
	one->seconds += run->seconds;
	if (one->outcome == PEM_EXPLORE_MEASURED)
		one->outcome = outcome;
	one->median =
		trial_outcome__has_values(one->outcome) ? median_of(search, one, 0) : INFINITY;
	return which;
}

int explore_search__add(struct explore_search *search, const struct explore_run *run)
{
	size_t which = merge(search, run);
	int rc;

	if (which == NONE)
		return -ENOMEM;
	if (run->elsewhere)
		return tell(search, which);
	search->made++;
	search->last = which;
	if (is_measured(search, which) && search->contenders[which].count < search->options.runs)
		return 0;
	rc = settle(search);
	/* A race's two are told of at its end. */
	if (!rc && (search->rival == NONE || (which != search->rival && which != search->best)))
		rc = tell(search, which);
	return rc;
}

size_t explore_search__find(const struct explore_search *search, const uint32_t *levels)
{
	return model_configurations__find(&search->tried, levels);
}

const uint32_t *explore_search__beside(const struct explore_search *search)
{
	return search->options.pairs && search->rival != NONE && turn_of(search) == search->rival
		       ? model_configurations__levels(&search->tried, search->best)
		       : NULL;
}

/* The rival's run in a pair: how it would have fared when the best one had its median. */
static int merge_pair(struct explore_search *search, const uint32_t *levels, double ratio)
{
	const struct contender *rival = &search->contenders[search->rival];
	const struct explore_run run = {.levels = levels, .values = search->paired};
	double best = search->contenders[search->best].median;
	uint32_t i;

	/* The less the better: a rate is below 0. */
	search->paired[0] = best < 0 ? best / ratio : best * ratio;
	for (i = 1; i < search->objectives; i++)
		search->paired[i] = median_of(search, rival, i);
	return merge(search, &run) == NONE ? -ENOMEM : 0;
}

int explore_search__add_pair(struct explore_search *search, const uint32_t *const levels[2],
			     const double values[2])
{
	size_t which[2], side, rival;
	int rc = 0;

	for (side = 0; side < 2; side++) {
		which[side] = explore_search__find(search, levels[side]);
		if (search->rival == NONE ||
		    (which[side] != search->rival && which[side] != search->best))
			return 0;
	}
	if (which[0] == which[1])
		return 0;
	rival = which[1] == search->rival;
	if (pem_grow(&search->pairs, sizeof(*search->pairs), search->pair_runs + 2,
		     &search->pair_capacity))
		return -ENOMEM;
	for (side = 0; side < 2; side++)
		search->pairs[search->pair_runs + side] =
			(struct pem_agent_trial){.treated = side == rival,
						 .value = values[side],
						 .group = search->pair_runs / 2};
	search->pair_runs += 2;
	if (values[0] > 0 && values[1] > 0 && isfinite(values[0]) && isfinite(values[1]))
		rc = merge_pair(search, levels[rival], values[rival] / values[!rival]);
	return rc ? rc : settle(search);
}

int explore_search__reserve(struct explore_search *search, const uint32_t *levels, uint32_t outcome)
{
	const struct pem_explore_trial trial = {
		.size = sizeof(trial), .levels = levels, .outcome = outcome};

	if (explore_search__find(search, levels) != NONE)
		return 0;
	return search->policy->process_trial(search->state, &trial);
}

int explore_search__best(const struct explore_search *search, struct explore_best *best)
{
	const struct contender *one;
	double error, t;

	if (search->best == NONE)
		return 0;
	one = &search->contenders[search->best];
	best->levels = model_configurations__levels(&search->tried, search->best);
	best->median = one->median;
	best->runs = one->runs;
	error = mean_of(search, one, &best->mean);
	t = one->runs > 1 ? pem_student__quantile(CHANCE, one->runs - 1) : NAN;
	best->low = best->mean - t * error;
	best->high = best->mean + t * error;
	return 1;
}

int explore_search__record(struct explore_search *search, const struct pem_explore_record *record)
{
	int rc = search->policy->process_record(search->state, record);

	return rc || search->rival != NONE ? rc : search->policy->stop_run(search->state);
}
