/* SPDX-License-Identifier: MIT */
/* outcome.h - outcomes of trials (enum pem_explore_outcome), as texts and as questions */
#ifndef TRIAL_OUTCOME_H
#define TRIAL_OUTCOME_H

#include <pem/explore.h>

#include <stdbool.h>

#define TRIAL_OUTCOMES 4u

static inline const char *trial_outcome__text(uint32_t outcome)
{
	static const char *const texts[TRIAL_OUTCOMES] = {"measured", "failed", "refused",
							  "stopped"};

	return outcome < TRIAL_OUTCOMES ? texts[outcome] : "unknown";
}

/* Does a trial of this outcome have values? */
static inline bool trial_outcome__has_values(uint32_t outcome)
{
	return outcome == PEM_EXPLORE_MEASURED || outcome == PEM_EXPLORE_STOPPED;
}

#endif
