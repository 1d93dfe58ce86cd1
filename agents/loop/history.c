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
/*
 * The directive that stands for "to be observed again": text, predicted and cost_bytes are the
 * workload of the run that asked, its processor time and its peak; rank counts runs since.
 */
#define AGAIN "(again)"
/* Runs with other arguments than that one's are let pass. */
#define PASSED_MAX 8
/* The directive whose rank says how often that was done. */
#define TIMES "(observed again)"
#define TIMES_MAX 4u
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

	if (!strcmp(d->subject, TIMES)) {
		agent->times = d->rank > 0 ? (uint32_t)d->rank : 0;
		return 0;
	}
	if (!strcmp(d->subject, FAILED))
		agent->failures = d->rank > 0 ? (uint32_t)d->rank : 0;
	agent->known |= strcmp(d->subject, FAILED) || agent->failures >= FAILURES_MAX;
	if (!strcmp(d->subject, AGAIN))
		agent->asked = *d;
	else if (strcmp(d->subject, FAILED))
		agent->latest = d->id;
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

	if (evidence->role == PEM_DB_BASIS)
		agent->basis = evidence->run;
	agent->exclusions += evidence->role == PEM_DB_EXCLUDED;
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
	if (agent->directive_count && agent->ops->ready &&
	    !agent->ops->ready(agent, agent->directives, agent->directive_count, agent->arg) &&
	    !agent->options.apply_always) {
		agent->excluded = true;
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

/* Is this the run that is to be observed again? If not, it is counted. */
static int64_t take_turn(struct pem_agent *agent)
{
	struct pem_db_directive *asked = &agent->asked;

	if (!asked->id)
		return 0;
	agent->again = !strcmp(asked->text, agent->run.workload) || asked->rank + 1 >= PASSED_MAX;
	if (agent->again)
		return 0;
	asked->rank = asked->rank > 0 ? asked->rank + 1 : 1;
	return pem_database__put(agent->database, PEM_DB_DIRECTIVE, asked, &agent->error);
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
		rc = take_turn(agent);
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
	pem_agent__note(agent, "wait for a CPU", "s", end->waited_s, PEM_DB_MEASURED);
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

static int forget_directive(const void *row, void *arg)
{
	const struct pem_db_directive *d = row;
	struct pem_agent *agent = arg;
	int rc;

	if (!strcmp(d->subject, TIMES))
		return 0;
	rc = pem_database__remove(agent->database, PEM_DB_DIRECTIVE, d->id, &agent->error);
	return rc < 0 ? rc : 0;
}

/* A row that says something of the application itself. */
static struct pem_db_directive make_mark(const struct pem_agent *agent, const char *subject)
{
	struct pem_db_directive mark = {.size = sizeof(mark),
					.application = agent->application.id,
					.machine = agent->machine.id,
					.began_ns = agent_history__now_ns()};

	memcpy(mark.agent, agent->run.agent, sizeof(mark.agent));
	snprintf(mark.subject, sizeof(mark.subject), "%s", subject);
	return mark;
}

static int64_t forget_all(struct pem_database *db, void *arg)
{
	struct pem_agent *agent = arg;
	struct pem_db_directive like = make_mark(agent, ""), times = make_mark(agent, TIMES);
	int64_t rc;

	like.began_ns = 0;
	rc = pem_database__each(db, PEM_DB_DIRECTIVE, &like, forget_directive, agent,
				&agent->error);
	if (rc < 0 || !agent->again)
		return rc;
	times.rank = agent->times + 1;
	rc = pem_database__put(db, PEM_DB_DIRECTIVE, &times, &agent->error);
	if (rc > 0 && !strcmp(agent->asked.text, agent->run.workload)) {
		pem_agent__note(agent, "asked time", "s", agent->asked.predicted, PEM_DB_MEASURED);
		pem_agent__note(agent, "asked memory", "B", (double)agent->asked.cost_bytes,
				PEM_DB_MEASURED);
	}
	return rc;
}

void agent_history__forget(struct pem_agent *agent)
{
	if (agent->database && (agent->known || agent->failures) &&
	    pem_database__together(agent->database, forget_all, agent, &agent->error) < 0)
		agent_history__give_up(agent);
	agent->directive_count = 0;
	agent->kept = false;
	agent->asked.id = 0;
}

int pem_agent__observe_again(struct pem_agent *agent, const char *reason)
{
	struct pem_db_directive again;
	int64_t rc;

	if (!agent->database || agent->asked.id || agent->times >= TIMES_MAX)
		return 0;
	again = make_mark(agent, AGAIN);
	snprintf(again.text, sizeof(again.text), "%s", agent->run.workload);
	snprintf(again.reason, sizeof(again.reason), "%s", reason);
	again.predicted = agent->end.user_s + agent->end.system_s;
	again.cost_bytes = (int64_t)agent->end.peak_kib * 1024;
	rc = pem_database__put(agent->database, PEM_DB_DIRECTIVE, &again, &agent->error);
	if (rc < 0)
		return (int)rc;
	agent->asked = again;
	agent->asked.id = rc;
	return 1;
}

/* --- what was observed --- */

static int take_basis(const void *row, void *arg)
{
	const struct pem_db_evidence *evidence = row;

	if (evidence->role != PEM_DB_BASIS)
		return 0;
	((struct pem_agent *)arg)->basis = evidence->run;
	return 1;
}

int pem_agent__observed(struct pem_agent *agent, const char *name, double *value)
{
	struct pem_db_evidence evidence = {.size = sizeof(evidence), .directive = agent->latest};
	struct pem_db_metric metric = {.size = sizeof(metric)};
	int64_t rc = 0;

	if (!agent->database || strlen(name) >= sizeof(metric.name))
		return 0;
	/* Of directives on trial it was read with the other evidence. */
	if (!agent->basis && agent->latest)
		rc = pem_database__each(agent->database, PEM_DB_EVIDENCE, &evidence, take_basis,
					agent, &agent->error);
	metric.run = agent->basis;
	strcpy(metric.name, name);
	if (rc >= 0 && metric.run)
		rc = pem_database__find(agent->database, PEM_DB_METRIC, &metric, &metric,
					&agent->error);
	else if (rc >= 0)
		return 0;
	if (rc > 0)
		*value = metric.mean;
	else if (rc < 0)
		pem_agent__say(agent, PEM_LOG_WARNING, "what was observed can't be read: %s",
			       agent->error.text);
	return (int)rc;
}

/* --- what comes of an observation --- */

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
	struct pem_db_directive failed;

	if (!agent->database)
		return;
	failed = make_mark(agent, FAILED);
	failed.rank = agent->failures + 1;
	failed.state = PEM_DB_WITHDRAWN;
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
