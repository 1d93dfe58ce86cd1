/* SPDX-License-Identifier: MIT */
/* work.c - an experiment that is worked on here: opened, run, restored (contract: work.h) */
#include "trial/work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a value that was never taken: after so many it is not tried again. */
#define REFUSALS 3

int trial_work__open(struct trial_work *work, bool changes, struct pem_error *error)
{
	int rc = trial_store__open(&work->store, &work->experiment, !changes, error);
	bool is_new = rc == -ENOENT && !changes;

	if (rc && !is_new)
		return rc;
	error->text[0] = '\0';
	/* A relative PEM_DB was of the folder before. */
	if (chdir(work->experiment.folder)) {
		snprintf(error->text, sizeof(error->text), "%.300s: %s", work->experiment.folder,
			 strerror(errno));
		return -errno;
	}
	rc = trial_store__identify(&work->store, error);
	if (rc || is_new)
		return rc;
	/* The runs that another agent keeps meanwhile are read once it has ended. */
	if (changes) {
		work->settings = trial_guard__settings(error);
		if (!work->settings)
			return -errno;
	}
	return trial_store__update(&work->store, error);
}

/* Note for the values of the last run that they were taken, or for one that it was refused. */
static void note_taken(struct trial_work *work, const uint32_t *levels)
{
	const struct trial_outcome *outcome = &work->outcomes[0];
	bool is_refused = outcome->outcome == PEM_EXPLORE_REFUSED;
	const struct trial_space *space = work->experiment.space;
	size_t i;

	for (i = 0; i < space->view.parameter_count; i++) {
		struct trial_taken **all = &work->taken[i];

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

const char *trial_work__refused(const struct trial_work *work, const uint32_t *levels)
{
	size_t i;

	for (i = 0; i < work->experiment.space->view.parameter_count; i++) {
		const struct trial_taken *taken = work->taken[i];

		if (taken && taken[levels[i]].refused >= REFUSALS && !taken[levels[i]].taken)
			return taken[levels[i]].reason;
	}
	return NULL;
}

int trial_work__run(struct trial_work *work, const uint32_t *levels, const uint32_t *beside,
		    bool alone, struct pem_error *error)
{
	struct trial trial = {.experiment = &work->experiment,
			      .settings = work->settings,
			      .program = work->store.application.path,
			      .scratch = trial_scratch,
			      .interrupted = &trial_interrupted,
			      .record = work->record,
			      .arg = work->arg};
	const uint32_t *const both[] = {levels, beside};
	struct trial_outcome *outcomes = work->outcomes;
	int rc = trial_store__begin(&work->store, levels, beside, alone, error), ended;
	struct pem_error why = {.text = ""};

	if (rc)
		return rc;
	memset(outcomes, 0, sizeof(work->outcomes));
	rc = beside ? trial_pair__run(&trial, both, outcomes, error)
		    : trial__run(&trial, levels, outcomes, error);
	/* Nothing can be run here: that is no trial. */
	outcomes->interrupted |= rc != 0;
	ended = trial_store__end(&work->store, levels, beside, outcomes, rc ? &why : error);
	if (rc || ended)
		return rc ? rc : ended;
	if (outcomes->interrupted)
		return -EINTR;
	if (!beside)
		note_taken(work, levels);
	return 0;
}

void trial_work__restore(struct trial_work *work)
{
	trial_guard__restore(work->settings);
	work->settings = NULL;
}

void trial_work__close(struct trial_work *work)
{
	size_t i;

	trial_work__restore(work);
	trial_store__close(&work->store);
	trial_experiment__free(&work->experiment);
	for (i = 0; i < TRIAL_PARAMETERS_MAX; i++)
		free(work->taken[i]);
}
