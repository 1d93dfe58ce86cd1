/* SPDX-License-Identifier: MIT */
/* search.c - a policy, and the races that a lucky configuration has to win (contract: search.h) */
#include "policy/search.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct explore_search {
	const struct pem_explore_space *space;
	const struct pem_explore_policy *policy;
	void *state; /* the policy's */
	struct trial_races *races;
	uint32_t most, made; /* runs; 0: no limit */
};

static int tell_policy(const struct pem_explore_trial *trial, void *arg)
{
	const struct explore_search *search = arg;

	return search->policy->process_trial(search->state, trial);
}

struct explore_search *explore_search__new(const struct pem_explore_space *space,
					   const struct pem_explore_policy *policy,
					   const struct explore_search_options *options)
{
	struct explore_search *search = calloc(1, sizeof(*search));
	struct pem_explore_options given = options->policy;
	const struct trial_races_options races = {.objectives =
							  given.objectives ? given.objectives : 1,
						  .runs = options->runs ? options->runs : 1,
						  .race_runs = options->race_runs,
						  .pairs = options->pairs,
						  .known = tell_policy,
						  .arg = search};

	if (!search)
		return NULL;
	search->space = space;
	search->policy = policy;
	search->races = trial_races__new(space, &races);
	given.size = sizeof(given);
	given.objectives = races.objectives;
	if (!options->counts_configurations) {
		search->most = given.budget;
		given.budget = (given.budget + races.runs - 1) / races.runs;
	}
	search->state = search->races ? policy->begin(space, &given) : NULL;
	if (search->state)
		return search;
	explore_search__free(search);
	return NULL;
}

void explore_search__free(struct explore_search *search)
{
	int error = errno;

	if (!search)
		return;
	search->policy->end(search->state);
	trial_races__free(search->races);
	free(search);
	errno = error;
}

int explore_search__next(struct explore_search *search, uint32_t *levels, bool *again)
{
	const struct pem_explore_space *space = search->space;
	const uint32_t *turn = trial_races__turn(search->races);
	uint32_t i;
	int rc;

	if (search->most && search->made >= search->most)
		return 0;
	*again = turn != NULL;
	if (turn) {
		memcpy(levels, turn, space->parameter_count * sizeof(*levels));
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
	*again = trial_races__find(search->races, levels) != SIZE_MAX;
	return 1;
}

int explore_search__add(struct explore_search *search, const struct trial_race_run *run)
{
	search->made += !run->elsewhere;
	return trial_races__add(search->races, run);
}

struct trial_races *explore_search__races(const struct explore_search *search)
{
	return search->races;
}

int explore_search__reserve(struct explore_search *search, const uint32_t *levels, uint32_t outcome)
{
	const struct pem_explore_trial trial = {
		.size = sizeof(trial), .levels = levels, .outcome = outcome};

	return trial_races__find(search->races, levels) != SIZE_MAX ? 0
								    : tell_policy(&trial, search);
}

int explore_search__record(struct explore_search *search, const struct pem_explore_record *record)
{
	int rc = search->policy->process_record(search->state, record);

	return rc || trial_races__are_on(search->races) ? rc
							: search->policy->stop_run(search->state);
}
