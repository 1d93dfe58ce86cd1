/* SPDX-License-Identifier: MIT */
/*
 * store.c - runs of an experiment in the CPO database
 *
 * A configuration is a directive, whose text is "name=value name=value"; each of its runs is a run
 * with evidence for it. The run's row is there before the run begins, without its end: after kill
 * -9 such a row tells that a run was lost. Its metric "(outcome)" tells how it ended, its workload
 * is "KEY NODE": the experiment, and where it ran. A pair is one run with evidence for two
 * directives, the second one as its control. A run that has a reason has evidence for a directive
 * with this text.
 */
#include "trial/store.h"

#include "grow.h"
#include "hash.h"

#include <pem/agent.h>

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t trial_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int trial_store__open(struct trial_store *store, const struct trial_experiment *experiment,
		      bool read_only, struct pem_error *error)
{
	const struct pem_database_options options = {.size = sizeof(options),
						     .read_only = read_only};

	memset(store, 0, sizeof(*store));
	store->experiment = experiment;
	store->read_only = read_only;
	store->database = pem_database__open(NULL, &options, error);
	if (!store->database)
		return -errno;
	stat(pem_database__location(store->database), &store->file);
	return 0;
}

/* SQLite goes on with a file that was removed, and all that is written is lost. */
static int check_file(const struct trial_store *store, struct pem_error *error)
{
	const char *path = pem_database__location(store->database);
	struct stat now;

	if (trial_store__is_shared(store) ||
	    (!stat(path, &now) && now.st_dev == store->file.st_dev &&
	     now.st_ino == store->file.st_ino))
		return 0;
	snprintf(
		error->text, sizeof(error->text),
		"the database %.300s was removed or replaced while the exploration ran: its trials "
		"are lost; the same command makes them again",
		path);
	return -ESTALE;
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_.-", c));
}

/* Does prepare make the program? It does if it has the file's name as a word. */
static bool is_made(const struct trial_experiment *e)
{
	const char *slash = strrchr(e->program, '/'), *at = slash ? e->prepare : NULL;
	size_t n = slash ? strlen(slash + 1) : 0;

	while (n && at && (at = strstr(at, slash + 1))) {
		if ((at == e->prepare || !is_of_word(at[-1])) && !is_of_word(at[n]))
			return true;
		at += n;
	}
	return false;
}

/* Identify the experiment's program, or of the files that its pattern matches the last one. */
static int identify_program(struct trial_store *store, struct pem_error *error)
{
	const char *name = store->experiment->program, *slash;
	glob_t found = {0};
	int rc;

	if (strchr(name, '/') && !glob(name, 0, NULL, &found))
		name = found.gl_pathv[found.gl_pathc - 1];
	rc = pem_agent__identify(name, &store->application, &store->machine, error);
	globfree(&found);
	slash = strrchr(store->application.path, '/');
	if (!rc && slash && strcmp(slash + 1, store->application.name))
		snprintf(store->build, sizeof(store->build), "this build of %s (%.400s)",
			 store->application.name, store->application.path);
	else
		snprintf(store->build, sizeof(store->build), "this build of %.400s",
			 store->application.path);
	return rc;
}

int trial_store__identify(struct trial_store *store, struct pem_error *error)
{
	const struct trial_experiment *e = store->experiment;
	bool made = is_made(e);
	int64_t rc = -ENOENT;

	store->application.size = sizeof(store->application);
	store->machine.size = sizeof(store->machine);
	if (!made)
		rc = identify_program(store, error);
	if (rc && !made && e->names_program)
		return (int)rc;
	store->has_program = !rc;
	if (rc) {
		/* The row in the database needs an application. */
		snprintf(store->build, sizeof(store->build),
			 made ? "any build of %.200s, since prepare makes it"
			      : "any build of what the command runs: '%.200s' is not a program's "
				"file, so name the program (<exploration program=\"...\">)",
			 e->program);
		rc = pem_agent__identify("/bin/sh", &store->application, &store->machine, error);
	}
	if (rc || store->read_only)
		return (int)rc;
	rc = pem_database__put(store->database, PEM_DB_APPLICATION, &store->application, error);
	store->application.id = rc;
	if (rc >= 0)
		rc = pem_database__put(store->database, PEM_DB_MACHINE, &store->machine, error);
	store->machine.id = rc;
	return rc < 0 ? (int)rc : 0;
}

bool trial_store__is_shared(const struct trial_store *store)
{
	return store->database &&
	       !strncmp(pem_database__location(store->database), "postgresql:", 11);
}

void trial_runs__drop(struct trial_runs *runs)
{
	free(runs->at[--runs->count].levels);
	free(runs->at[runs->count].beside);
}

void trial_runs__free(struct trial_runs *runs)
{
	while (runs->count)
		trial_runs__drop(runs);
	free(runs->at);
	*runs = (struct trial_runs){0};
}

void trial_store__close(struct trial_store *store)
{
	size_t i;

	pem_database__close(store->database);
	store->database = NULL;
	trial_runs__free(&store->ended);
	trial_runs__free(&store->unfinished);
	for (i = 0; i < store->machine_count; i++)
		free(store->machines[i].text);
	free(store->machines);
	pem_number_map__free(&store->known);
}

int trial_store__forget_lost(struct trial_store *store, size_t *lost, struct pem_error *error)
{
	size_t i;
	int rc = 0;

	*lost = 0;
	for (i = 0; rc >= 0 && i < store->unfinished.count; i++) {
		if (!trial_store__is_lost(store, &store->unfinished.at[i]))
			continue;
		++*lost;
		rc = pem_database__remove(store->database, PEM_DB_RUN, store->unfinished.at[i].id,
					  error);
	}
	return rc < 0 ? rc : 0;
}

/* --- a run --- */

struct change {
	struct trial_store *store;
	bool alone; /* nobody else may be at the configuration */
	const struct pem_db_directive *beside; /* of a pair that begins; or NULL */
	const struct trial_outcome *outcome; /* of a pair: two */
	struct pem_error *error;
};

static int64_t put(struct change *change, enum pem_db_table table, const void *row)
{
	return pem_database__put(change->store->database, table, row, change->error);
}

struct others {
	struct trial_store *store;
	bool going_on;
	struct pem_error *error;
};

static int look_at_other(const void *row, void *arg)
{
	struct others *others = arg;
	struct pem_db_run run = {.size = sizeof(run),
				 .id = ((const struct pem_db_evidence *)row)->run};
	int rc = pem_database__find(others->store->database, PEM_DB_RUN, &run, &run, others->error);
	struct trial_stored stored = {.began_ns = run.began_ns};
	const char *node = strchr(run.workload, ' ');

	snprintf(stored.node, sizeof(stored.node), "%.31s", node ? node + 1 : "");
	others->going_on |=
		rc == 1 && !run.wall_ns && !trial_store__is_lost(others->store, &stored);
	return rc < 0 ? rc : 0;
}

/* The directive's row is locked until the end of the transaction, so nobody begins meanwhile. */
static int64_t check_alone(struct change *change, int64_t directive)
{
	struct pem_db_evidence like = {.size = sizeof(like), .directive = directive};
	struct others others = {.store = change->store, .error = change->error};
	int64_t rc = pem_database__each(change->store->database, PEM_DB_EVIDENCE, &like,
					look_at_other, &others, change->error);

	return rc < 0 ? rc : others.going_on ? -EALREADY : 0;
}

static int64_t put_begin(struct pem_database *database, void *arg)
{
	struct change *change = arg;
	struct trial_store *store = change->store;
	struct pem_db_evidence evidence = {.size = sizeof(evidence), .role = PEM_DB_TREATED};
	struct pem_db_evidence control = {.size = sizeof(control), .role = PEM_DB_CONTROL};
	int64_t rc = put(change, PEM_DB_DIRECTIVE, &store->directive);

	(void)database;
	store->directive.id = evidence.directive = rc;
	if (rc >= 0 && change->beside)
		rc = store->beside = control.directive =
			put(change, PEM_DB_DIRECTIVE, change->beside);
	if (rc > 0 && change->alone && trial_store__is_shared(store)) {
		rc = check_alone(change, rc);
		if (rc < 0)
			return rc;
	}
	if (rc >= 0)
		rc = put(change, PEM_DB_RUN, &store->run);
	store->run.id = evidence.run = control.run = rc;
	if (rc > 0)
		rc = put(change, PEM_DB_EVIDENCE, &evidence);
	return rc >= 0 && change->beside ? put(change, PEM_DB_EVIDENCE, &control) : rc;
}

int trial_store__directive(const struct trial_store *store, const uint32_t *levels,
			   struct pem_db_directive *directive)
{
	*directive = (struct pem_db_directive){.size = sizeof(*directive),
					       .application = store->application.id,
					       .machine = store->machine.id,
					       .agent = TRIAL_AGENT};
	if (trial_words__text(store->experiment, levels, directive->text))
		return -E2BIG;
	snprintf(directive->subject, sizeof(directive->subject), "%s %016llx",
		 store->experiment->key,
		 (unsigned long long)pem_hash__text(PEM_HASH_START, directive->text));
	return 0;
}

int trial_store__begin(struct trial_store *store, const uint32_t *levels, const uint32_t *beside,
		       bool alone, struct pem_error *error)
{
	struct pem_db_directive other, *directive = &store->directive;
	struct change change = {
		.store = store, .alone = alone, .beside = beside ? &other : NULL, .error = error};
	struct pem_db_run *run = &store->run;
	char node[TRIAL_NODE_BYTES];
	int64_t rc;

	store->beside = 0;
	if (trial_store__directive(store, levels, directive) ||
	    trial_store__directive(store, beside ? beside : levels, &other))
		return -E2BIG;
	directive->state = other.state = PEM_DB_ON_TRIAL;
	directive->began_ns = other.began_ns = trial_now_ns();
	*run = (struct pem_db_run){.size = sizeof(*run),
				   .application = store->application.id,
				   .machine = store->machine.id,
				   .agent = TRIAL_AGENT,
				   .began_ns = trial_now_ns()};
	trial_guard__node(node);
	snprintf(run->workload, sizeof(run->workload), "%s %s", store->experiment->key, node);
	rc = check_file(store, error);
	if (!rc)
		rc = pem_database__uuid(run->uuid);
	if (!rc)
		rc = pem_database__together(store->database, put_begin, &change, error);
	return rc < 0 ? (int)rc : 0;
}

static int64_t put_metric(struct change *change, const char *name, const char *unit, double value)
{
	struct pem_db_metric metric = {.size = sizeof(metric),
				       .run = change->store->run.id,
				       .count = 1,
				       .mean = value,
				       .minimum = value,
				       .maximum = value};

	snprintf(metric.name, sizeof(metric.name), "%s", name);
	snprintf(metric.unit, sizeof(metric.unit), "%.23s", unit);
	return put(change, PEM_DB_METRIC, &metric);
}

/* Note why the run failed, or what it left, if there is anything. Returns 0 or -errno. */
static int64_t put_reason(struct change *change)
{
	const struct trial_store *store = change->store;
	struct pem_db_directive reason = {.size = sizeof(reason),
					  .application = store->application.id,
					  .machine = store->machine.id,
					  .agent = TRIAL_REASON,
					  .began_ns = store->run.began_ns};
	struct pem_db_evidence evidence = {
		.size = sizeof(evidence), .run = store->run.id, .role = PEM_DB_EXCLUDED};
	int64_t rc;

	if (!*store->directive.reason)
		return 0;
	strcpy(reason.text, store->directive.reason);
	snprintf(reason.subject, sizeof(reason.subject), "%s %016llx", store->experiment->key,
		 (unsigned long long)pem_hash__text(PEM_HASH_START, reason.text));
	rc = put(change, PEM_DB_DIRECTIVE, &reason);
	evidence.directive = rc;
	return rc < 0 ? rc : put(change, PEM_DB_EVIDENCE, &evidence);
}

static int64_t put_end(struct pem_database *database, void *arg)
{
	struct change *change = arg;
	struct trial_store *store = change->store;
	const struct trial_experiment *e = store->experiment;
	const struct trial_outcome *outcome = change->outcome;
	/* A pair is void as a whole. */
	bool has_any = trial_outcome__has_values(outcome->outcome);
	struct pem_db_evidence evidence = {.size = sizeof(evidence),
					   .directive = store->directive.id,
					   .run = store->run.id,
					   .role = has_any ? PEM_DB_TREATED : PEM_DB_EXCLUDED,
					   .value = has_any ? outcome->values[0] : 0};
	struct pem_db_evidence control = {.size = sizeof(control),
					  .directive = store->beside,
					  .run = store->run.id,
					  .role = has_any ? PEM_DB_CONTROL : PEM_DB_EXCLUDED,
					  .value = has_any && store->beside ? outcome[1].values[0]
									    : 0};
	int64_t rc;
	size_t i;

	/* A person ended it: nothing is known, and it is as if it had not begun. */
	if (outcome->interrupted)
		return pem_database__remove(database, PEM_DB_RUN, store->run.id, change->error);
	/* Another machine whose clock is wrong may have taken it for lost: it is put again. */
	rc = put(change, PEM_DB_RUN, &store->run);
	store->run.id = evidence.run = control.run = rc;
	if (rc >= 0)
		rc = put_metric(change, TRIAL_OUTCOME, "", outcome->outcome);
	for (i = 0; has_any && rc >= 0 && i < e->metric_count; i++) {
		if (!isnan(outcome->values[i]))
			rc = put_metric(change, e->metrics[i].name, e->metrics[i].unit,
					outcome->values[i]);
	}
	if (rc >= 0)
		rc = put(change, PEM_DB_EVIDENCE, &evidence);
	if (rc >= 0 && store->beside)
		rc = put(change, PEM_DB_EVIDENCE, &control);
	if (rc >= 0)
		rc = put_reason(change);
	return rc < 0 ? rc : put(change, PEM_DB_DIRECTIVE, &store->directive);
}

struct trial_stored *trial_runs__add(struct trial_runs *runs, uint32_t parameters,
				     const uint32_t *levels, const uint32_t *beside,
				     uint32_t machine)
{
	size_t bytes = (parameters + 1) * sizeof(*levels);
	struct trial_stored *stored;

	if (pem_grow(&runs->at, sizeof(*stored), runs->count + 1, &runs->capacity))
		return NULL;
	stored = &runs->at[runs->count];
	*stored = (struct trial_stored){.machine = machine, .outcome = PEM_EXPLORE_FAILED};
	stored->levels = malloc(bytes);
	stored->beside = beside ? malloc(bytes) : NULL;
	if (!stored->levels || (beside && !stored->beside)) {
		free(stored->levels);
		free(stored->beside);
		return NULL;
	}
	memcpy(stored->levels, levels, parameters * sizeof(*levels));
	stored->levels[parameters] = machine;
	if (beside) {
		memcpy(stored->beside, beside, parameters * sizeof(*levels));
		stored->beside[parameters] = machine;
	}
	for (parameters = 0; parameters < TRIAL_METRICS_MAX; parameters++)
		stored->values[parameters] = NAN;
	runs->count++;
	return stored;
}

/* This process's run has ended: keep it as if it had been read. */
static int keep_own(struct trial_store *store, const uint32_t *levels, const uint32_t *beside,
		    const struct trial_outcome *outcome)
{
	struct trial_stored *stored = trial_runs__add(
		&store->ended, store->experiment->space->view.parameter_count, levels, beside, 0);
	uint32_t *known = pem_number_map__at(&store->known, (uint64_t)store->run.id);

	if (!stored || !known)
		return -ENOMEM;
	*known = 1;
	stored->id = store->run.id;
	stored->outcome = outcome->outcome;
	stored->seconds = outcome->seconds;
	stored->began_ns = store->run.began_ns;
	if (trial_outcome__has_values(outcome->outcome))
		memcpy(stored->values, outcome->values, sizeof(stored->values));
	if (beside)
		stored->beside_value = outcome[1].values[0];
	memcpy(stored->reason, outcome->reason, sizeof(stored->reason));
	trial_guard__node(stored->node);
	return 0;
}

int trial_store__end(struct trial_store *store, const uint32_t *levels, const uint32_t *beside,
		     const struct trial_outcome *outcome, struct pem_error *error)
{
	struct change change = {.store = store, .outcome = outcome, .error = error};
	int64_t rc;

	store->run.wall_ns = (int64_t)(outcome->seconds * 1e9) + 1;
	store->run.status = outcome->status;
	/* A configuration that was measured alone stays one, whatever its pair came to. */
	store->directive.state = beside || trial_outcome__has_values(outcome->outcome)
					 ? PEM_DB_ON_TRIAL
					 : PEM_DB_WITHDRAWN;
	snprintf(store->directive.reason, sizeof(store->directive.reason), "%s", outcome->reason);
	pem_printable(store->directive.reason);
	rc = pem_database__together(store->database, put_end, &change, error);
	if (rc >= 0)
		rc = check_file(store, error);
	if (rc >= 0 && !outcome->interrupted)
		rc = keep_own(store, levels, beside, outcome);
	return rc < 0 ? (int)rc : 0;
}
