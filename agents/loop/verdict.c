/* SPDX-License-Identifier: MIT */
/* verdict.c - this run as evidence, what all of them come to, and what becomes of directives */
#include "loop.h"

#include "stubs/cpo_agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As many runs on each side: that all of them are on one by chance has a probability of 1/32. */
#define OTHERWISE_RUNS_MIN 5u
/* So many runs that are no evidence, and more than those that are, end the trial. */
#define EXCLUDED_MAX 16u

uint32_t agent_verdict__group(const char *workload, int64_t status)
{
	char part[9];

	snprintf(part, sizeof(part), "%.8s", workload);
	return (uint32_t)strtoul(part, NULL, 16) ^ (uint32_t)status << 24;
}

void agent_verdict__add(struct pem_agent *agent, const struct pem_agent_trial *trial)
{
	agent->trials[agent->trial_count++ % PEM_AGENT_TRIALS_MAX] = *trial;
}

static size_t trials_kept(const struct pem_agent *agent)
{
	return agent->trial_count < PEM_AGENT_TRIALS_MAX ? agent->trial_count
							 : PEM_AGENT_TRIALS_MAX;
}

/* Put this run as evidence for or against a directive. */
static int64_t put_evidence(struct pem_agent *agent, const struct pem_db_directive *d,
			    enum pem_db_role role)
{
	const struct pem_db_evidence evidence = {.size = sizeof(evidence),
						 .directive = d->id,
						 .run = agent->run.id,
						 .role = role,
						 .value = agent_end__value(&agent->end)};

	return pem_database__put(agent->database, PEM_DB_EVIDENCE, &evidence, &agent->error);
}

struct judging {
	struct pem_agent *agent;
	struct pem_agent_comparison *comparison;
	enum pem_agent_verdict verdict;
	enum pem_db_state state; /* of the directives from now on */
	char reason[160];
};

/* A directive that made the command crash is not tried on. */
static bool has_crashed(const struct pem_agent *agent)
{
	static const int crashes[] = {4 /* ILL */, 6 /* ABRT */, 7 /* BUS */,
				      8 /* FPE */, 9 /* KILL */, 11 /* SEGV */};
	size_t i;

	for (i = 0; !agent->end.interrupted && i < sizeof(crashes) / sizeof(crashes[0]); i++) {
		if (agent->end.status == 128 + crashes[i])
			return true;
	}
	return false;
}

/*
 * With directives, how many runs of this workload ended with a status that none without had? Runs
 * of different status are not compared, so no verdict would ever tell of them.
 */
static unsigned ended_otherwise(const struct pem_agent *agent)
{
	const struct pem_agent_trial *trials = agent->trials;
	uint32_t workload = agent_verdict__group(agent->run.workload, 0);
	size_t count = trials_kept(agent), i, k;
	unsigned found = 0;

	for (i = 0; i < count; i++) {
		if (!trials[i].treated || (trials[i].group ^ workload) & 0xffffff)
			continue;
		for (k = 0; k < count; k++) {
			if (!trials[k].treated && trials[k].group == trials[i].group)
				break;
		}
		found += k == count;
	}
	return found;
}

static void decide(struct judging *j)
{
	struct pem_agent *agent = j->agent;
	const struct pem_agent_comparison *c = j->comparison;

	j->state = agent->kept ? PEM_DB_KEPT : PEM_DB_ON_TRIAL;
	if (agent->purpose == PEM_AGENT_TREATED && has_crashed(agent)) {
		j->state = PEM_DB_WITHDRAWN;
		j->verdict = PEM_AGENT_SLOWER;
		snprintf(j->reason, sizeof(j->reason), "the command ended by signal %d with it",
			 agent->end.status - 128);
	} else if (agent->controls >= OTHERWISE_RUNS_MIN &&
		   ended_otherwise(agent) >= OTHERWISE_RUNS_MIN) {
		j->state = PEM_DB_WITHDRAWN;
		j->verdict = PEM_AGENT_SLOWER;
		snprintf(j->reason, sizeof(j->reason),
			 "the command ended with another status in %u runs with it than in %zu "
			 "without",
			 ended_otherwise(agent), agent->controls);
	} else if (j->verdict == PEM_AGENT_FASTER) {
		j->state = PEM_DB_KEPT;
		snprintf(j->reason, sizeof(j->reason),
			 "%.1f %% faster in %u runs than in %u without", c->gain, c->treated,
			 c->controls);
	} else if (j->verdict == PEM_AGENT_SLOWER || j->verdict == PEM_AGENT_EQUAL) {
		j->state = PEM_DB_WITHDRAWN;
		snprintf(j->reason, sizeof(j->reason), "%s in %u runs, against %u without",
			 j->verdict == PEM_AGENT_EQUAL ? "no difference" : "slower", c->treated,
			 c->controls);
	} else if (!agent->kept && agent->trial_count >= agent->options.trials_max) {
		j->state = PEM_DB_WITHDRAWN;
		snprintf(j->reason, sizeof(j->reason), "no gain is shown after %zu runs",
			 agent->trial_count);
	} else if (!agent->kept && agent->exclusions >= EXCLUDED_MAX &&
		   agent->exclusions > agent->trial_count) {
		j->state = PEM_DB_WITHDRAWN;
		snprintf(j->reason, sizeof(j->reason), "%zu of %zu runs could not be compared",
			 agent->exclusions, agent->exclusions + agent->trial_count);
	}
}

static void raise_events(const struct judging *j, const struct pem_db_directive *d)
{
	uint64_t run = (uint64_t)j->agent->run.id, id = (uint64_t)d->id;

	if (j->state == PEM_DB_WITHDRAWN)
		pem_notify_agent_directive_withdrawn(id, run, (uint8_t)j->verdict);
	else if (j->state == PEM_DB_KEPT && !j->agent->kept)
		pem_notify_agent_directive_kept(id, run, j->comparison->gain);
}

static enum pem_db_role role_of(const struct pem_agent *agent)
{
	if (agent->excluded)
		return PEM_DB_EXCLUDED;
	return agent->purpose == PEM_AGENT_TREATED ? PEM_DB_TREATED : PEM_DB_CONTROL;
}

static int64_t judge_directive(struct judging *j, struct pem_db_directive *d)
{
	struct pem_agent *agent = j->agent;
	const struct pem_agent_comparison *c = j->comparison;
	const struct pem_db_validation validation = {.size = sizeof(validation),
						     .directive = d->id,
						     .at_ns = agent_history__now_ns(),
						     .verdict = j->verdict,
						     .gain = c->gain,
						     .gain_low = c->gain_low,
						     .gain_high = c->gain_high,
						     .treated = c->treated,
						     .controls = c->controls};
	int64_t rc = put_evidence(agent, d, role_of(agent));

	if (rc < 0 || !*j->reason)
		return rc;
	d->state = j->state;
	d->gain = c->gain;
	memcpy(d->reason, j->reason, sizeof(d->reason));
	rc = pem_database__put(agent->database, PEM_DB_DIRECTIVE, d, &agent->error);
	if (rc > 0)
		rc = pem_database__put(agent->database, PEM_DB_VALIDATION, &validation,
				       &agent->error);
	if (rc > 0)
		raise_events(j, d);
	return rc;
}

static int64_t judge_all(struct pem_database *db, void *arg)
{
	struct judging *j = arg;
	int64_t rc = 0;
	size_t i;

	(void)db;
	for (i = 0; i < j->agent->directive_count && rc >= 0; i++)
		rc = judge_directive(j, &j->agent->directives[i]);
	if (rc >= 0 && j->agent->kept && j->state == PEM_DB_WITHDRAWN)
		rc = pem_agent__observe_again(j->agent, "what was kept pays no longer");
	return rc;
}

enum pem_agent_verdict agent_verdict__judge(struct pem_agent *agent,
					    struct pem_agent_comparison *comparison)
{
	struct judging j = {.agent = agent, .comparison = comparison};

	if (agent->excluded)
		agent->exclusions++;
	else
		agent_verdict__add(agent, &(struct pem_agent_trial){
						  .value = agent_end__value(&agent->end),
						  .treated = agent->purpose == PEM_AGENT_TREATED,
						  .group = agent_verdict__group(
							  agent->run.workload, agent->end.status)});
	j.verdict = pem_agent__judge(agent->trials, trials_kept(agent), agent->options.gain_min,
				     comparison);
	decide(&j);
	if (pem_database__together(agent->database, judge_all, &j, &agent->error) < 0) {
		agent_history__give_up(agent);
		return PEM_AGENT_UNCLEAR;
	}
	if (*j.reason && !(agent->kept && j.state == PEM_DB_KEPT))
		pem_agent__say(agent, PEM_LOG_INFO, "%s: %zu directive%s %s: %s", agent->ops->name,
			       agent->directive_count, agent->directive_count == 1 ? "" : "s",
			       j.state == PEM_DB_KEPT ? "kept" : "withdrawn", j.reason);
	agent->kept = j.state == PEM_DB_KEPT;
	if (j.state == PEM_DB_WITHDRAWN)
		agent->directive_count = 0;
	return j.verdict;
}
