/* SPDX-License-Identifier: MIT */
/* history.c - what the database knows of an application, and what this run adds to it */
#include "loop.h"

#include "stubs/cpo_agent.h"

#include <errno.h>
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

int64_t agent_history__now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void agent_history__give_up(struct pem_agent *agent)
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

static int take_evidence(const void *row, void *arg)
{
	const struct pem_db_evidence *evidence = row;
	struct pem_agent *agent = arg;
	struct pem_db_run run = {.size = sizeof(run), .id = evidence->run};
	int rc;

	agent->aside += evidence->role == PEM_DB_SET_ASIDE;
	if (evidence->role != PEM_DB_TREATED && evidence->role != PEM_DB_CONTROL)
		return 0;
	rc = pem_database__find(agent->database, PEM_DB_RUN, &run, &run, &agent->error);
	if (rc <= 0)
		return rc;
	agent_verdict__add(agent, &(struct pem_agent_trial){
					  .value = evidence->value,
					  .treated = evidence->role == PEM_DB_TREATED,
					  .group = agent_verdict__group(run.workload, run.status)});
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

static enum pem_agent_purpose purpose_of(struct pem_agent *agent)
{
	if (agent->again && !(agent->options.apply_always && agent->directive_count))
		return PEM_AGENT_OBSERVED;
	if (agent->directive_count && !agent->options.apply_always && agent->ops->ready &&
	    !agent->ops->ready(agent, agent->directives, agent->directive_count, agent->arg)) {
		agent->set_aside = true;
		return agent->kept ? PEM_AGENT_TREATED : PEM_AGENT_ALONE;
	}
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
	agent->run.began_ns = agent_history__now_ns();
	snprintf(agent->run.agent, sizeof(agent->run.agent), "%s", agent->ops->name);
	agent->database = pem_database__open(agent->options.database, &options, &agent->error);
	if (!agent->database || pem_database__uuid(agent->run.uuid)) {
		agent_history__give_up(agent);
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
		agent_history__give_up(agent);
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
		agent_history__give_up(agent);
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
		agent_history__give_up(agent);
	agent->directive_count = 0;
	agent->kept = false;
}

int pem_agent__observe_again(struct pem_agent *agent, const char *reason)
{
	struct pem_db_directive again = {.size = sizeof(again),
					 .application = agent->application.id,
					 .machine = agent->machine.id,
					 .subject = AGAIN,
					 .began_ns = agent_history__now_ns()};
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
					  .began_ns = agent_history__now_ns()};

	if (!agent->database)
		return;
	memcpy(failed.agent, agent->run.agent, sizeof(failed.agent));
	snprintf(failed.reason, sizeof(failed.reason),
		 "what was observed could not be modelled, %u times", agent->failures + 1);
	if (pem_database__put(agent->database, PEM_DB_DIRECTIVE, &failed, &agent->error) < 0)
		agent_history__give_up(agent);
	else if (agent->failures + 1 >= FAILURES_MAX)
		pem_agent__say(agent, PEM_LOG_WARNING,
			       "%s: the command is not observed again, since no model came of it "
			       "%u times",
			       agent->ops->name, FAILURES_MAX);
}
