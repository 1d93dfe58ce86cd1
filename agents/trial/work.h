/* SPDX-License-Identifier: MIT */
/*
 * work.h - an experiment that is worked on here: runs are made, and kept in the database
 *
 *	work.c		opened, run, restored; values that are refused
 *	compare.c	a configuration and the defaults in fresh runs: how much better it is
 *
 * Everything belongs to one thread. Nothing here prints but trial_guard's functions. A run blocks
 * for as long as its commands take.
 */
#ifndef TRIAL_WORK_H
#define TRIAL_WORK_H

#include "trial/trial.h"

#include <pem/agent.h>

/* In how many runs a value was taken as it was given, and refused. */
struct trial_taken {
	uint32_t taken, refused;
	char reason[160]; /* of the last refusal */
};

struct trial_work {
	struct trial_experiment experiment;
	struct trial_store store;
	struct settings_agent *settings; /* while runs are made */
	struct trial_taken *taken[TRIAL_PARAMETERS_MAX]; /* by level; NULL: no run yet */
	/* Of the last run that this process made, and of the one beside it, if it was a pair. */
	struct trial_outcome outcomes[2];
	/* As of struct trial; NULL: runs are not ended before their end. */
	bool (*record)(const struct pem_explore_record *record, void *arg);
	void *arg;
};

/* --- work.c --- */

/*
 * Open the database of an experiment that was read, go to the folder where its commands run, and
 * read its runs. changes: runs will be made; be the only agent of this user that changes settings,
 * and restore the settings that an earlier one left. Without changes a database that is not there
 * has no runs. Returns 0 or -errno with error. Close it also after that.
 */
int trial_work__open(struct trial_work *work, bool changes, struct pem_error *error);
/*
 * Run a configuration once, beside another one at the same time or alone (NULL), and keep the
 * outcome. Returns 0; -EINTR: it was interrupted; -EALREADY: alone is true, and another machine is
 * at it; another -errno with error.
 */
int trial_work__run(struct trial_work *work, const uint32_t *levels, const uint32_t *beside,
		    bool alone, struct pem_error *error);
/*
 * Why a configuration need not run: one of its values was refused again and again, and never taken.
 * NULL: it has to run.
 */
const char *trial_work__refused(const struct trial_work *work, const uint32_t *levels);
/* Give all settings their first values: no run follows. */
void trial_work__restore(struct trial_work *work);
/* Restore, close the database, and free the experiment. */
void trial_work__close(struct trial_work *work);

/* --- compare.c --- */

#define TRIAL_TURNS 6u /* of both, in a comparison */

/* A value of the first metric as costs are compared: above 0, the less the better. Or NAN. */
double trial_experiment__cost(const struct trial_experiment *experiment, double value);

/*
 * A comparison of a configuration with the defaults in fresh runs: in pairs if the experiment has
 * those, else in turns. The one that begins changes from turn to turn.
 */
struct trial_comparison {
	struct trial_work *work;
	const uint32_t *levels; /* of the configuration; the caller's */
	uint32_t made; /* runs */
	struct pem_agent_trial runs[2 * TRIAL_TURNS]; /* the configuration's are treated */
};

/*
 * Begin, or go on with a comparison that was interrupted, if nothing else ran since. The
 * experiment has defaults, and the configuration is another one. Returns 0 or -errno with error.
 */
int trial_comparison__begin(struct trial_comparison *comparison, struct trial_work *work,
			    const uint32_t *levels, struct pem_error *error);
/* Are there runs to make? Two turns without a value end it. */
bool trial_comparison__goes_on(const struct trial_comparison *comparison);
/* Make the next run, or the next pair. Returns as trial_work__run. */
int trial_comparison__run(struct trial_comparison *comparison, struct pem_error *error);
/*
 * Judge the runs, and note the result: trial_store__gain has it then. One that could not be made is
 * noted without runs. Returns 0 or -errno with error.
 */
int trial_comparison__keep(struct trial_comparison *comparison, struct pem_error *error);

#endif
