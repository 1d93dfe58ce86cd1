/* SPDX-License-Identifier: MIT */
/* loop.c - one run of an agent: what it is for, and the agent's functions in their order */
#include "loop.h"

#include "stubs/cpo_agent.h"

#include <pem/sized.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAIN_MIN 1.0
#define TRIALS_MAX 64u
/* One run in so many that need no agent is waited for all the same. */
#define WAITED_FOR 16

void pem_agent__say(struct pem_agent *agent, enum pem_log_level level, const char *format, ...)
{
	char text[1024];
	va_list args;

	if (!agent->options.log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	agent->options.log(level, pem_printable(text), agent->options.log_arg);
}

struct pem_database *pem_agent__database(struct pem_agent *agent)
{
	return agent->database;
}

const struct pem_db_application *pem_agent__application(const struct pem_agent *agent)
{
	return &agent->application;
}

const struct pem_db_machine *pem_agent__machine(const struct pem_agent *agent)
{
	return &agent->machine;
}

int pem_agent__note(struct pem_agent *agent, const char *name, const char *unit, double value,
		    enum pem_db_origin origin)
{
	struct pem_db_metric metric = {.size = sizeof(metric),
				       .run = agent->run.id,
				       .count = 1,
				       .mean = value,
				       .minimum = value,
				       .maximum = value,
				       .origin = origin};
	int64_t rc;

	if (!agent->database)
		return 0;
	if (strlen(name) >= sizeof(metric.name) || strlen(unit) >= sizeof(metric.unit))
		return -EINVAL;
	strcpy(metric.name, name);
	strcpy(metric.unit, unit);
	rc = pem_database__put(agent->database, PEM_DB_METRIC, &metric, &agent->error);
	return rc < 0 ? (int)rc : 0;
}

int pem_agent__usage(const struct pem_agent *agent, struct pem_agent_usage *usage)
{
	const struct agent_end *end = &agent->end;
	const struct pem_agent_usage all = {.size = sizeof(all),
					    .seconds = end->seconds,
					    .user_s = end->user_s,
					    .system_s = end->system_s,
					    .minor_faults = end->minor_faults,
					    .major_faults = end->major_faults,
					    .peak_bytes = (int64_t)end->peak_kib * 1024,
					    .status = end->status};

	if (pem_sized__check(usage))
		return -EINVAL;
	pem_sized__write(usage, 0, &all, sizeof(all));
	return 0;
}

int pem_agent__propose(struct pem_agent *agent, const struct pem_db_directive *given)
{
	struct pem_db_directive d;
	struct pem_db_evidence basis = {.size = sizeof(basis), .run = agent->run.id};
	int64_t rc = pem_sized__read(&d, sizeof(d), given, sizeof(d));

	if (rc)
		return (int)rc;
	if (!agent->database)
		return 0;
	d.application = agent->application.id;
	d.machine = agent->machine.id;
	d.began_ns = agent->run.began_ns;
	memcpy(d.agent, agent->run.agent, sizeof(d.agent));
	if (d.state == PEM_DB_PROPOSED && d.predicted >= agent->options.gain_min)
		d.state = PEM_DB_ON_TRIAL;
	if (d.state == PEM_DB_ON_TRIAL && agent->proposed == PEM_AGENT_DIRECTIVES_MAX) {
		d.state = PEM_DB_WITHDRAWN;
		snprintf(d.reason, sizeof(d.reason), "%u directives are tried together at most",
			 PEM_AGENT_DIRECTIVES_MAX);
	}
	rc = pem_database__put(agent->database, PEM_DB_DIRECTIVE, &d, &agent->error);
	basis.directive = d.id = rc;
	if (rc > 0)
		rc = pem_database__put(agent->database, PEM_DB_EVIDENCE, &basis, &agent->error);
	if (rc < 0) {
		pem_agent__say(agent, PEM_LOG_WARNING, "a directive is not kept: %s",
			       agent->error.text);
		return (int)rc;
	}
	if (d.state == PEM_DB_ON_TRIAL)
		agent->directives[agent->proposed++] = d;
	return 0;
}

void pem_agent__exclude(struct pem_agent *agent)
{
	agent->excluded = true;
}

/* --- the steps --- */

static int apply_all(struct pem_agent *agent)
{
	const struct pem_db_directive *d;
	size_t i;
	int rc;

	for (i = 0; i < agent->directive_count; i++) {
		d = &agent->directives[i];
		rc = agent->ops->apply(agent, d, agent->arg);
		if (rc) {
			/* Half of the directives is not what is on trial. */
			agent_command__free(agent);
			agent->purpose = PEM_AGENT_ALONE;
			return rc;
		}
	}
	for (i = 0; i < agent->directive_count; i++) {
		d = &agent->directives[i];
		pem_notify_agent_directive_applied((uint64_t)d->id, (uint64_t)agent->run.id, 0,
						   d->text);
	}
	return 0;
}

static void forward(enum pem_log_level level, const char *text, void *arg)
{
	pem_agent__say(arg, level, "%s", text);
}

/* The command under a session, and the model of what was seen. */
static int run_observed(struct pem_agent *agent, struct pem_error *error)
{
	const struct pem_session_options options = {
		.size = sizeof(options), .log = forward, .log_arg = agent};
	struct pem_session *session = pem_session__open(&options, error);
	int rc;

	if (!session || agent->ops->observe(agent, session, agent->arg)) {
		pem_agent__say(agent, PEM_LOG_WARNING, "this run is not observed%s%s",
			       session ? "" : ": ", session ? "" : error->text);
		pem_session__close(session);
		agent_command__free(agent);
		agent->purpose = PEM_AGENT_ALONE;
		return agent_command__run(agent, NULL, error);
	}
	pem_notify_agent_observation_begin((uint64_t)agent->run.id, 0);
	rc = agent_command__run(agent, session, error);
	pem_notify_agent_observation_end((uint64_t)agent->run.id, 0);
	if (!rc)
		agent_history__forget(agent);
	if (!rc && agent->ops->model(agent, session, agent->arg))
		agent_history__failed(agent);
	else if (!rc)
		agent_history__modelled(agent);
	pem_session__close(session);
	return rc;
}

/* Get out of the way of a command that there is nothing to do for. */
static void leave(struct pem_agent *agent)
{
	if (!agent->options.exec_alone || !agent->run.id || !agent->seen ||
	    agent->directive_count || agent->run.id % WAITED_FOR == 0)
		return;
	pem_agent__say(agent, PEM_LOG_INFO, "nothing is to be gained: the command runs alone");
	pem_notify_agent_ended((uint64_t)agent->run.id, PEM_CPO_AGENT_OUTCOME_UNCHANGED);
	pem_database__close(agent->database);
	agent->database = NULL;
	/* If that fails, the usual way says why. */
	agent_command__exec(agent);
}

static int run_once(struct pem_agent *agent, struct pem_error *error)
{
	if (agent->purpose == PEM_AGENT_OBSERVED)
		return run_observed(agent, error);
	if (agent->purpose == PEM_AGENT_ALONE)
		leave(agent);
	if (agent->purpose == PEM_AGENT_TREATED)
		apply_all(agent);
	return agent_command__run(agent, NULL, error);
}

static enum pem_agent_verdict validate(struct pem_agent *agent,
				       struct pem_agent_comparison *comparison)
{
	enum pem_agent_verdict verdict;
	uint64_t id = (uint64_t)agent->directives[0].id, run = (uint64_t)agent->run.id;

	pem_notify_agent_validation_begin(id, run);
	verdict = agent_verdict__judge(agent, comparison);
	pem_notify_agent_validation_end(
		id, run, comparison->gain, (comparison->gain_high - comparison->gain_low) / 2,
		comparison->treated < comparison->controls ? comparison->treated
							   : comparison->controls,
		(uint8_t)verdict);
	return verdict;
}

static void fill_report(const struct pem_agent *agent, enum pem_agent_verdict verdict,
			const struct pem_agent_comparison *c, struct pem_agent_report *report)
{
	const struct pem_agent_report all = {
		.size = sizeof(all),
		.purpose = agent->purpose,
		.verdict = verdict,
		.run = agent->run.id,
		.seconds = agent->end.seconds,
		.gain = c->gain,
		.gain_low = c->gain_low,
		.gain_high = c->gain_high,
		.treated = c->treated,
		.controls = c->controls,
		.directives =
			(uint32_t)(agent->purpose == PEM_AGENT_OBSERVED ? agent->proposed
									: agent->directive_count),
		.kept = agent->kept && agent->directive_count,
		.excluded = agent->excluded,
		.interrupted = (uint32_t)agent->end.interrupted,
		.waited = agent->end.waited_s,
	};

	if (report)
		pem_sized__write(report, 0, &all, sizeof(all));
}

static unsigned outcome_of(const struct pem_agent *agent, bool withdrawn)
{
	if (withdrawn)
		return PEM_CPO_AGENT_OUTCOME_WITHDRAWN;
	return agent->kept ? PEM_CPO_AGENT_OUTCOME_IMPROVED : PEM_CPO_AGENT_OUTCOME_UNCHANGED;
}

static int run_agent(struct pem_agent *agent, struct pem_agent_report *report,
		     struct pem_error *error)
{
	struct pem_agent_comparison comparison = {0};
	enum pem_agent_verdict verdict = PEM_AGENT_UNCLEAR;
	bool withdrawn = false;
	int rc = agent_identify(agent, error);

	if (rc)
		return rc;
	agent_history__begin(agent);
	pem_notify_agent_started((uint64_t)agent->run.id, 0, agent->ops->name,
				 agent->application.name);
	rc = run_once(agent, error);
	if (agent->ops->ended)
		agent->ops->ended(agent, agent->purpose, agent->arg);
	agent->excluded |= agent->end.interrupted && agent->directive_count;
	if (!rc) {
		agent_history__end(agent);
		if (agent->database && !agent->options.apply_always &&
		    (agent->purpose == PEM_AGENT_TREATED || agent->purpose == PEM_AGENT_CONTROL)) {
			verdict = validate(agent, &comparison);
			withdrawn = !agent->directive_count;
		}
		fill_report(agent, verdict, &comparison, report);
	}
	pem_notify_agent_ended(
		(uint64_t)agent->run.id,
		(uint8_t)(rc ? PEM_CPO_AGENT_OUTCOME_FAILED : outcome_of(agent, withdrawn)));
	return rc ? rc : agent->end.status;
}

static int check_ops(const struct pem_agent_ops *ops, struct pem_error *error)
{
	if (ops->name && *ops->name &&
	    strlen(ops->name) < sizeof(((struct pem_db_run *)0)->agent) && ops->observe &&
	    ops->model && ops->apply)
		return 0;
	snprintf(error->text, sizeof(error->text),
		 "an agent needs a name of at most 31 bytes, and observe, model and apply");
	return -EINVAL;
}

int pem_agent__run(const struct pem_agent_ops *given, void *arg, char *const argv[],
		   const struct pem_agent_options *options, struct pem_agent_report *report,
		   struct pem_error *error)
{
	struct pem_agent *agent = calloc(1, sizeof(*agent));
	struct pem_agent_ops ops;
	struct pem_error own;
	int rc = 0;

	if (!error)
		error = &own;
	if (!agent) {
		snprintf(error->text, sizeof(error->text), "out of memory");
		return -ENOMEM;
	}
	if (pem_sized__read(&ops, sizeof(ops), given, sizeof(ops)) || !argv[0] ||
	    (report && pem_sized__check(report)) ||
	    (options && pem_sized__read(&agent->options, sizeof(agent->options), options,
					sizeof(agent->options)))) {
		snprintf(error->text, sizeof(error->text),
			 "a struct has a size that no version of it has, or there is no command");
		rc = -EINVAL;
	}
	if (!rc)
		rc = check_ops(&ops, error);
	agent->ops = &ops;
	agent->arg = arg;
	agent->argv = argv;
	if (!(agent->options.gain_min > 0))
		agent->options.gain_min = GAIN_MIN;
	if (!agent->options.trials_max)
		agent->options.trials_max = TRIALS_MAX;
	if (!rc)
		rc = run_agent(agent, report, error);
	agent_command__free(agent);
	pem_database__close(agent->database);
	free(agent);
	return rc;
}
