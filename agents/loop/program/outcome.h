/* SPDX-License-Identifier: MIT */
/* outcome.h - what came of a run under the loop of agents, for programs that print it */
#ifndef AGENTS_LOOP_OUTCOME_H
#define AGENTS_LOOP_OUTCOME_H

#include <pem/agent.h>

struct json_object;

/*
 * Print a sentence: what the run was for, its time, and the gain so far. purposes: words for each
 * enum pem_agent_purpose; more: the sentence's end, or "".
 */
void agent_outcome__say(const struct pem_agent_report *report, const char *const purposes[4],
			const char *more);
/* The same as an object, which the caller frees. */
struct json_object *agent_outcome__json(const struct pem_agent_report *report);
/* pem_agent__run() returned -errno: print why, and return the exit status. */
int agent_outcome__fail(int rc, const struct pem_error *error);

#endif
