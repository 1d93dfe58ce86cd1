/* SPDX-License-Identifier: MIT */
/* history.c - what the database knows of an application, and what this run adds to it */
#include "loop.h"

#include "stubs/cpo_agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The directive that stands for "observed, and there is nothing to gain". */
#define NOTHING "(nothing)"
/* The directive that stands for "to be observed again". */
#define AGAIN "(again)"
/* The directive that stands for "observed, but not modelled"; its rank says how often. */
#define FAILED "(failed)"
/* Observing is slow: after so many failures the command is left alone. */
#define FAILURES_MAX 3u
/* As many runs on each side: that all of them are on one by chance has a probability of 1/32. */
#define OTHERWISE_RUNS_MIN 5u

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Stop using the database: the command runs on without it. */
static void give_up(struct pem_agent *agent)
{
	pem_agent__say(agent, PEM_LOG_WARNING, "%s; the agent leaves this run alone",
		       agent->error.text);
	pem_database__close(agent->database);
	agent->database = NULL;
	agent->application.id = agent->machine.id = agent->run.id = 0;
	agent->purpose = PEM_AGENT_ALONE;
}

/* --- the beginning --- */

/* What was measured of the machine stays. */
static int64_t put_machine(struct pem_database *db, struct pem_agent *agent)
{
	struct pem_db_machine like = {.size = sizeof(like)};
	int rc;

	memcpy(like.fingerprint, agent->machine.fingerprint, sizeof(like.fingerprint));
	rc = pem_database__find(db, PEM_DB_MACHINE, &like, &agent->machine, &agent->error);
	if (rc)
		return rc < 0 ? rc : agent->machine.id;
	return pem_database__put(db, PEM_DB_MACHINE, &agent->machine, &agent->error);
}

static int64_t put_run(struct pem_database *db, void *arg)
{
	struct pem_agent *agent = arg;
	struct pem_db_run *run = &agent->run;
	int64_t id = pem_database__put(db, PEM_DB_APPLICATION, &agent->application, &agent->error);

	agent->application.id = run->application = id;
	if (id > 0)
		id = put_machine(db, agent);
	agent->machine.id = run->machine = id;
	if (id > 0)
		id = pem_database__put(db, PEM_DB_RUN, run, &agent->error);
	run->id = id;
	return id;
}

static int take_directive(const void *row, void *arg)
{
	const struct pem_db_directive *d = row;
	struct pem_agent *agent = arg;
	size_t at = agent->directive_count;

	if (!strcmp(d->subject, FAILED))
		agent->failures = d->rank > 0 ? (uint32_t)d->rank : 0;
	agent->known |= strcmp(d->subject, FAILED) || agent->failures >= FAILURES_MAX;
	agent->again |= !strcmp(d->subject, AGAIN);
	if ((d->state != PEM_DB_ON_TRIAL && d->state != PEM_DB_KEPT) ||
	    at == PEM_AGENT_DIRECTIVES_MAX)
		return 0;
	agent->kept = d->state == PEM_DB_KEPT;
	for (; at > 0 && agent->directives[at - 1].rank > d->rank; at--)
		agent->directives[at] = agent->directives[at - 1];
	agent->directives[at] = *d;
	agent->directive_count++;
	return 0;
}

/* Runs are compared that had the same arguments and ended alike. */
static uint32_t group_of(const char *workload, int64_t status)
{
	char part[9];

	snprintf(part, sizeof(part), "%.8s", workload);
	return (uint32_t)strtoul(part, NULL, 16) ^ (uint32_t)status << 24;
}

static void add_trial(struct pem_agent *agent, const struct pem_agent_trial *trial)
{
	agent->trials[agent->trial_count++ % PEM_AGENT_TRIALS_MAX] = *trial;
}

static size_t trials_kept(const struct pem_agent *agent)
{
	return agent->trial_count < PEM_AGENT_TRIALS_MAX ? agent->trial_count
							 : PEM_AGENT_TRIALS_MAX;
}

static int take_evidence(const void *row, void *arg)
{
	const struct pem_db_evidence *evidence = row;
	struct pem_agent *agent = arg;
	struct pem_db_run run = {.size = sizeof(run), .id = evidence->run};
	int rc;

	if (evidence->role == PEM_DB_BASIS)
		return 0;
	rc = pem_database__find(agent->database, PEM_DB_RUN, &run, &run, &agent->error);
	if (rc <= 0)
		return rc;
	add_trial(agent, &(struct pem_agent_trial){.value = evidence->value,
						   .treated = evidence->role == PEM_DB_TREATED,
						   .group = group_of(run.workload, run.status)});
	if (!strcmp(run.workload, agent->run.workload)) {
		agent->treated += evidence->role == PEM_DB_TREATED;
		agent->controls += evidence->role == PEM_DB_CONTROL;
	}
	return 0;
}

/* With or without the directives? By chance, so that nothing else can tell runs apart. */
static enum pem_agent_purpose choose(const struct pem_agent *agent)
{
	char text[40];
	unsigned dice;

	if (agent->options.apply_always)
		return PEM_AGENT_TREATED;
	if (pem_database__uuid(text))
		return PEM_AGENT_CONTROL;
	text[4] = '\0';
	dice = (unsigned)strtoul(text, NULL, 16);
	if (agent->kept)
		return dice % 16 ? PEM_AGENT_TREATED : PEM_AGENT_CONTROL;
	if (agent->treated == agent->controls)
		return dice % 2 ? PEM_AGENT_TREATED : PEM_AGENT_CONTROL;
	return (agent->treated < agent->controls) == (dice % 4 != 0) ? PEM_AGENT_TREATED
								     : PEM_AGENT_CONTROL;
}

static enum pem_agent_purpose purpose_of(const struct pem_agent *agent)
{
	if (agent->again && !(agent->options.apply_always && agent->directive_count))
		return PEM_AGENT_OBSERVED;
	if (agent->directive_count)
		return choose(agent);
	return agent->known ? PEM_AGENT_ALONE : PEM_AGENT_OBSERVED;
}

/* Was there a run with these arguments? The first of them is always waited for. */
static int64_t find_workload(struct pem_agent *agent)
{
	struct pem_db_run like = {.size = sizeof(like),
				  .application = agent->application.id,
				  .machine = agent->machine.id};
	int rc;

	memcpy(like.agent, agent->run.agent, sizeof(like.agent));
	memcpy(like.workload, agent->run.workload, sizeof(like.workload));
	rc = pem_database__find(agent->database, PEM_DB_RUN, &like, &like, &agent->error);
	agent->seen = rc > 0 && like.id != agent->run.id;
	return rc;
}

bool agent_history__begin(struct pem_agent *agent)
{
	struct pem_database_options options = {
		.size = sizeof(options), .log = agent->options.log, .arg = agent->options.log_arg};
	struct pem_db_directive like = {.size = sizeof(like)};
	struct pem_db_evidence evidence = {.size = sizeof(evidence)};
	int64_t rc;

	agent->run.size = sizeof(agent->run);
	agent->run.began_ns = now_ns();
	snprintf(agent->run.agent, sizeof(agent->run.agent), "%s", agent->ops->name);
	agent->database = pem_database__open(agent->options.database, &options, &agent->error);
	if (!agent->database || pem_database__uuid(agent->run.uuid)) {
		give_up(agent);
		return false;
	}
	rc = pem_database__together(agent->database, put_run, agent, &agent->error);
	if (rc > 0) {
		like.application = agent->application.id;
		like.machine = agent->machine.id;
		memcpy(like.agent, agent->run.agent, sizeof(like.agent));
		rc = pem_database__each(agent->database, PEM_DB_DIRECTIVE, &like, take_directive,
					agent, &agent->error);
	}
	if (rc >= 0)
		rc = find_workload(agent);
	if (rc >= 0 && agent->directive_count) {
		evidence.directive = agent->directives[0].id;
		rc = pem_database__each(agent->database, PEM_DB_EVIDENCE, &evidence, take_evidence,
					agent, &agent->error);
	}
	if (rc < 0) {
		give_up(agent);
		return false;
	}
	agent->purpose = purpose_of(agent);
	return true;
}

/* --- the end --- */

static int64_t put_end(struct pem_database *db, void *arg)
{
	struct pem_agent *agent = arg;
	const struct agent_end *end = &agent->end;

	agent->run.wall_ns = (int64_t)(end->seconds * 1e9);
	agent->run.status = end->status;
	if (pem_database__put(db, PEM_DB_RUN, &agent->run, &agent->error) < 0)
		return -EIO;
	pem_agent__note(agent, "wall", "s", end->seconds, PEM_DB_MEASURED);
	pem_agent__note(agent, "user", "s", end->user_s, PEM_DB_MEASURED);
	pem_agent__note(agent, "system", "s", end->system_s, PEM_DB_MEASURED);
	pem_agent__note(agent, "minor faults", "", (double)end->minor_faults, PEM_DB_MEASURED);
	pem_agent__note(agent, "major faults", "", (double)end->major_faults, PEM_DB_MEASURED);
	pem_agent__note(agent, "peak memory", "KiB", (double)end->peak_kib, PEM_DB_MEASURED);
	return 0;
}

void agent_history__end(struct pem_agent *agent)
{
	if (agent->database &&
	    pem_database__together(agent->database, put_end, agent, &agent->error) < 0)
		give_up(agent);
}

/* Put this run as evidence for or against a directive. */
static int64_t put_evidence(struct pem_agent *agent, const struct pem_db_directive *d,
			    enum pem_db_role role)
{
	const struct pem_db_evidence evidence = {.size = sizeof(evidence),
						 .directive = d->id,
						 .run = agent->run.id,
						 .role = role,
						 .value = agent->end.seconds};

	return pem_database__put(agent->database, PEM_DB_EVIDENCE, &evidence, &agent->error);
}

static int64_t forget_all(struct pem_database *db, void *arg)
{
	struct pem_agent *agent = arg;
	struct pem_db_directive like = {.size = sizeof(like),
					.application = agent->application.id,
					.machine = agent->machine.id};
	struct pem_db_directive found = {.size = sizeof(found)};
	int64_t rc;

	memcpy(like.agent, agent->run.agent, sizeof(like.agent));
	do {
		rc = pem_database__find(db, PEM_DB_DIRECTIVE, &like, &found, &agent->error);
		if (rc > 0)
			rc = pem_database__remove(db, PEM_DB_DIRECTIVE, found.id, &agent->error);
	} while (rc > 0);
	return rc;
}

void agent_history__forget(struct pem_agent *agent)
{
	if (agent->database && (agent->known || agent->failures) &&
	    pem_database__together(agent->database, forget_all, agent, &agent->error) < 0)
		give_up(agent);
	agent->directive_count = 0;
	agent->kept = false;
}

int pem_agent__observe_again(struct pem_agent *agent, const char *reason)
{
	struct pem_db_directive again = {.size = sizeof(again),
					 .application = agent->application.id,
					 .machine = agent->machine.id,
					 .subject = AGAIN,
					 .began_ns = now_ns()};
	int64_t rc;

	if (!agent->database)
		return 0;
	memcpy(again.agent, agent->run.agent, sizeof(again.agent));
	snprintf(again.reason, sizeof(again.reason), "%s", reason);
	rc = pem_database__put(agent->database, PEM_DB_DIRECTIVE, &again, &agent->error);
	return rc < 0 ? (int)rc : 0;
}

void agent_history__modelled(struct pem_agent *agent)
{
	struct pem_db_directive nothing = {
		.size = sizeof(nothing), .subject = NOTHING, .reason = "there is nothing to gain"};

	if (!agent->database)
		return;
	pem_notify_agent_decision_made(
		(uint64_t)agent->run.id, agent->proposed ? agent->directives[0].predicted : 0,
		(uint32_t)agent->proposed, agent->proposed ? agent->directives[0].text : "");
	if (agent->proposed)
		return;
	nothing.state = PEM_DB_WITHDRAWN;
	pem_agent__propose(agent, &nothing);
	agent->proposed = 0;
}

void agent_history__failed(struct pem_agent *agent)
{
	struct pem_db_directive failed = {.size = sizeof(failed),
					  .application = agent->application.id,
					  .machine = agent->machine.id,
					  .subject = FAILED,
					  .rank = agent->failures + 1,
					  .state = PEM_DB_WITHDRAWN,
					  .began_ns = now_ns()};

	if (!agent->database)
		return;
	memcpy(failed.agent, agent->run.agent, sizeof(failed.agent));
	snprintf(failed.reason, sizeof(failed.reason),
		 "what was observed could not be modelled, %u times", agent->failures + 1);
	if (pem_database__put(agent->database, PEM_DB_DIRECTIVE, &failed, &agent->error) < 0)
		give_up(agent);
	else if (agent->failures + 1 >= FAILURES_MAX)
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "%s: the command is not observed again, since no model came of it "
			       "%u times",
			       agent->ops->name, FAILURES_MAX);
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

	for (i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
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
	uint32_t workload = group_of(agent->run.workload, 0);
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

static int64_t judge_directive(struct judging *j, struct pem_db_directive *d)
{
	struct pem_agent *agent = j->agent;
	const struct pem_agent_comparison *c = j->comparison;
	const struct pem_db_validation validation = {.size = sizeof(validation),
						     .directive = d->id,
						     .at_ns = now_ns(),
						     .verdict = j->verdict,
						     .gain = c->gain,
						     .gain_low = c->gain_low,
						     .gain_high = c->gain_high,
						     .treated = c->treated,
						     .controls = c->controls};
	int64_t rc = put_evidence(
		agent, d, agent->purpose == PEM_AGENT_TREATED ? PEM_DB_TREATED : PEM_DB_CONTROL);

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

enum pem_agent_verdict agent_history__judge(struct pem_agent *agent,
					    struct pem_agent_comparison *comparison)
{
	struct judging j = {.agent = agent, .comparison = comparison};

	add_trial(agent, &(struct pem_agent_trial){
				 .value = agent->end.seconds,
				 .treated = agent->purpose == PEM_AGENT_TREATED,
				 .group = group_of(agent->run.workload, agent->end.status)});
	j.verdict = pem_agent__judge(agent->trials, trials_kept(agent), agent->options.gain_min,
				     comparison);
	decide(&j);
	if (pem_database__together(agent->database, judge_all, &j, &agent->error) < 0) {
		give_up(agent);
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
