/* SPDX-License-Identifier: MIT */
/* search.c - a policy, and the races that a lucky configuration has to win (contract: search.h) */
#include "policy/search.h"
#include "grow.h"
#include "policy/policy.h"
#include "student.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE SIZE_MAX
#define TESTED 24u /* values of each side at most */
#define CHANCE 0.05 /* of a decision that luck made */

/* A configuration that ran. */
struct contender {
	double *values; /* of its runs: objectives of the first one, of the second one, ... */
	size_t capacity;
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
	struct explore_history tried; /* values are medians */
	struct contender *contenders; /* as in tried */
	size_t capacity;
	double *medians; /* of the objectives of one */
	uint32_t made; /* runs */
	size_t best; /* the winner so far; NONE: nothing was measured */
	size_t turn; /* which one runs next; NONE: the policy chooses */
	size_t rival; /* of a race with the best one; NONE: there is no race */
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
	search->objectives = given.objectives ? given.objectives : 1;
	search->best = search->turn = search->rival = NONE;
	if (!search->options.runs)
		search->options.runs = 1;
	given.size = sizeof(given);
	given.objectives = search->objectives;
	if (!options->counts_configurations)
		given.budget = (given.budget + search->options.runs - 1) / search->options.runs;
	explore_history__begin(&search->tried, space, &given);
	search->medians = calloc(search->objectives, sizeof(double));
	search->state = search->medians ? policy->begin(space, &given) : NULL;
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
	free(search->medians);
	explore_history__end(&search->tried);
	free(search);
	errno = error;
}

/* Twice the rank of a value among sorted ones, from 1: equal ones share the middle of theirs. */
static size_t doubled_rank(const double *sorted, size_t count, double value)
{
	size_t below = 0, within;

	while (below < count && sorted[below] < value)
		below++;
	for (within = below; within < count && sorted[within] <= value; within++)
		;
	return below + within + 1;
}

double explore_rank_test(const double *values, size_t count, const double *others,
			 size_t other_count)
{
	/* Of the subsets of each size, how many have each sum of doubled ranks. */
	static const size_t sums = 4 * TESTED * TESTED + 2 * TESTED + 1;
	double sorted[2 * TESTED], below = 0, all = 0, *ways;
	size_t all_count, sum = 0, i, k, s;

	count = count < TESTED ? count : TESTED;
	other_count = other_count < TESTED ? other_count : TESTED;
	all_count = count + other_count;
	ways = calloc((count + 1) * sums, sizeof(*ways));
	if (!ways)
		return 1;
	memcpy(sorted, values, count * sizeof(*sorted));
	memcpy(sorted + count, others, other_count * sizeof(*sorted));
	model_sort(sorted, all_count);
	for (i = 0; i < count; i++)
		sum += doubled_rank(sorted, all_count, values[i]);
	ways[0] = 1;
	for (i = 0; i < all_count; i++) {
		size_t rank = doubled_rank(sorted, all_count, sorted[i]);

		for (k = i + 1 < count ? i + 1 : count; k > 0; k--) {
			for (s = rank; s < sums; s++)
				ways[k * sums + s] += ways[(k - 1) * sums + s - rank];
		}
	}
	for (s = 0; s < sums; s++) {
		all += ways[count * sums + s];
		below += s <= sum ? ways[count * sums + s] : 0;
	}
	free(ways);
	return below / all;
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
	double square = 0;
	uint32_t i;

	*mean = 0;
	for (i = 0; i < one->count; i++)
		*mean += one->values[(size_t)i * search->objectives] / one->count;
	for (i = 0; i < one->count; i++)
		square += pow(one->values[(size_t)i * search->objectives] - *mean, 2);
	return one->count > 1 ? sqrt(square / (one->count - 1) / one->count) : 0;
}

static struct pem_explore_trial trial_of(struct explore_search *search, size_t which,
					 const uint32_t *levels)
{
	const struct contender *one = &search->contenders[which];
	struct pem_explore_trial trial = {.size = sizeof(trial),
					  .levels = levels,
					  .outcome = one->outcome,
					  .runs = one->runs,
					  .seconds = one->seconds};
	double mean;
	uint32_t i;

	if (!explore_has_values(one->outcome))
		return trial;
	for (i = 0; i < search->objectives; i++)
		search->medians[i] = median_of(search, one, i);
	trial.values = search->medians;
	trial.error = mean_of(search, one, &mean);
	return trial;
}

static int tell(struct explore_search *search, size_t which)
{
	struct contender *one = &search->contenders[which];
	struct pem_explore_trial trial;

	if (one->told == one->runs)
		return 0;
	one->told = one->runs;
	trial = trial_of(search, which, explore_history__levels(&search->tried, which));
	return search->policy->process_trial(search->state, &trial);
}

static bool is_measured(const struct explore_search *search, size_t which)
{
	return search->contenders[which].outcome == PEM_EXPLORE_MEASURED &&
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
		     explore_history__value(&search->tried, i) <
			     explore_history__value(&search->tried, found)))
			found = i;
	}
	return found;
}

/* --- races --- */

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

/* How the rival does: -1 it loses, 1 it wins, 0 they run on. */
static int judge(const struct explore_search *search)
{
	const struct contender *rival = &search->contenders[search->rival];
	const struct contender *best = &search->contenders[search->best];
	uint32_t most = search->options.runs + search->options.race_runs, i;
	double values[2][TESTED], wins, loses;
	size_t counts[2] = {rival->count < TESTED ? rival->count : TESTED,
			    best->count < TESTED ? best->count : TESTED};

	for (i = 0; i < counts[0]; i++)
		values[0][i] = rival->values[(size_t)i * search->objectives];
	for (i = 0; i < counts[1]; i++)
		values[1][i] = best->values[(size_t)i * search->objectives];
	wins = explore_rank_test(values[0], counts[0], values[1], counts[1]);
	loses = explore_rank_test(values[1], counts[1], values[0], counts[0]);
	if (fmin(wins, loses) > CHANCE && rival->runs < most &&
	    !(repeats(search, rival) && repeats(search, best)))
		return 0;
	return wins < loses ? 1 : -1;
}

/* The one that has run less runs next: the rival, the best one, and so on. */
static void take_turns(struct explore_search *search)
{
	uint32_t most = search->options.runs + search->options.race_runs;
	bool best_is_next =
		search->contenders[search->best].runs < search->contenders[search->rival].runs &&
		search->contenders[search->best].runs < most;

	search->turn = best_is_next ? search->best : search->rival;
}

/* The one that may be the best after a run of which: which, or the best so far, in most cases. */
static size_t first_of(const struct explore_search *search, size_t which)
{
	size_t best = search->best;

	if (which == NONE || which == best || best == NONE || !is_measured(search, best))
		return least(search);
	return is_measured(search, which) && !search->contenders[which].lost &&
			       explore_history__value(&search->tried, which) <
				       explore_history__value(&search->tried, best)
		       ? which
		       : best;
}

/* The race's end. */
static int end_race(struct explore_search *search, bool rival_wins)
{
	size_t winner = rival_wins ? search->rival : search->best;
	size_t loser = rival_wins ? search->best : search->rival;
	int rc;

	search->best = winner;
	search->rival = NONE;
	search->contenders[loser].lost = loser != winner;
	rc = tell(search, loser);
	return rc ? rc : tell(search, winner);
}

/*
 * Find out who runs next, after a run of which. Each race leaves a loser, which does not race
 * again; so races come to an end.
 */
static int settle(struct explore_search *search, size_t which)
{
	search->turn = NONE;
	for (;; which = NONE) {
		size_t first = search->rival == NONE || !is_measured(search, search->best)
				       ? first_of(search, which)
				       : search->best;
		int verdict, rc;

		if (search->best == NONE || !is_measured(search, search->best) ||
		    !search->options.race_runs)
			search->best = first;
		if (search->rival == NONE && first != search->best &&
		    explore_history__value(&search->tried, first) <
			    explore_history__value(&search->tried, search->best))
			search->rival = first;
		if (search->rival == NONE)
			return 0;
		verdict = !is_measured(search, search->rival) ? -1
			  : search->rival == search->best     ? 1
							      : judge(search);
		if (!verdict) {
			take_turns(search);
			return 0;
		}
		rc = end_race(search, verdict > 0);
		if (rc)
			return rc;
	}
}

/* --- runs --- */

static bool is_budget_used(const struct explore_search *search)
{
	uint32_t budget = search->options.policy.budget;

	return budget && !search->options.counts_configurations && search->made >= budget;
}

int explore_search__next(struct explore_search *search, uint32_t *levels, bool *again)
{
	const struct pem_explore_space *space = search->tried.space;
	uint32_t i;
	int rc;

	if (is_budget_used(search))
		return 0;
	if (search->turn != NONE) {
		memcpy(levels, explore_history__levels(&search->tried, search->turn),
		       space->parameter_count * sizeof(*levels));
		*again = true;
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
	*again = explore_history__has(&search->tried, levels);
	return 1;
}

/* The outcome of a run: without a finite value for each objective it failed. */
static uint32_t outcome_of(const struct explore_search *search, const struct explore_run *run)
{
	uint32_t i;

	if (!explore_has_values(run->outcome))
		return run->outcome == PEM_EXPLORE_REFUSED ? PEM_EXPLORE_REFUSED
							   : PEM_EXPLORE_FAILED;
	for (i = 0; i < search->objectives; i++) {
		if (!run->values || !isfinite(run->values[i]))
			return PEM_EXPLORE_FAILED;
	}
	return run->outcome;
}

/* Add a run to its configuration. Returns 0 or -ENOMEM. */
static int merge(struct explore_search *search, const struct explore_run *run, size_t which)
{
	uint32_t outcome = outcome_of(search, run);
	struct pem_explore_trial trial;
	struct contender *one;

	if (pem_grow(&search->contenders, sizeof(*one), which + 1, &search->capacity))
		return -ENOMEM;
	one = &search->contenders[which];
	if (which == search->tried.count)
		*one = (struct contender){0};
	if (pem_grow(&one->values, sizeof(double) * search->objectives, (size_t)one->count + 1,
		     &one->capacity))
		return -ENOMEM;
	if (explore_has_values(outcome))
		memcpy(one->values + (size_t)one->count++ * search->objectives, run->values,
		       search->objectives * sizeof(double));
	one->runs++;
	one->elsewhere = run->elsewhere;
	one->seconds += run->seconds;
	if (one->outcome == PEM_EXPLORE_MEASURED)
		one->outcome = outcome;
	trial = trial_of(search, which, run->levels);
	if (!explore_history__add(&search->tried, &trial))
		return 0;
	if (which == search->tried.count)
		free(one->values);
	return -ENOMEM;
}

int explore_search__add(struct explore_search *search, const struct explore_run *run)
{
	size_t which = explore_history__find(&search->tried, run->levels);
	int rc;

	if (which == NONE)
		which = search->tried.count;
	rc = merge(search, run, which);
	if (rc || run->elsewhere)
		return rc ? rc : tell(search, which);
	search->made++;
	if (is_measured(search, which) && search->contenders[which].count < search->options.runs) {
		search->turn = which;
		return 0;
	}
	rc = settle(search, which);
	/* A race's two are told of at its end. */
	if (!rc && (search->rival == NONE || (which != search->rival && which != search->best)))
		rc = tell(search, which);
	return rc;
}

int explore_search__reserve(struct explore_search *search, const uint32_t *levels)
{
	const struct pem_explore_trial trial = {
		.size = sizeof(trial), .levels = levels, .outcome = PEM_EXPLORE_FAILED};

	if (explore_history__has(&search->tried, levels))
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
	best->levels = explore_history__levels(&search->tried, search->best);
	best->median = explore_history__value(&search->tried, search->best);
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
