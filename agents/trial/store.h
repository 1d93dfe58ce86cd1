/* SPDX-License-Identifier: MIT */
/*
 * store.h - what store.c, which writes rows, and stored.c, which reads them, share
 */
#ifndef TRIAL_STORE_H
#define TRIAL_STORE_H

#include "trial/trial.h"

#define TRIAL_AGENT "explore"
#define TRIAL_COMPARER "explore gain" /* of directives that are compared with the defaults */
#define TRIAL_REASON "explore reason" /* of directives whose texts are reasons of runs */
#define TRIAL_OUTCOME "(outcome)" /* no name of a metric in a document */

/* Nanoseconds since 1970. */
int64_t trial_now_ns(void);
/* Add a run of these levels, beside others or NULL, without values. NULL: no memory. */
struct trial_stored *trial_runs__add(struct trial_runs *runs, uint32_t parameters,
				     const uint32_t *levels, const uint32_t *beside,
				     uint32_t machine);
/* Remove the last run, which is there. */
void trial_runs__drop(struct trial_runs *runs);
void trial_runs__free(struct trial_runs *runs);
/* The key of a configuration's directive on this machine, and its text. Returns 0 or -E2BIG. */
int trial_store__directive(const struct trial_store *store, const uint32_t *levels,
			   struct pem_db_directive *directive);

/* Was an unfinished run lost (trial_store__forget_lost)? */
bool trial_store__is_lost(const struct trial_store *store, const struct trial_stored *run);

#endif
