/* SPDX-License-Identifier: MIT */
/*
 * store.c - runs of an experiment in the CPO database
 *
 * A configuration is a directive, whose text is "name=value name=value"; each of its runs is a run
 * with evidence for it. The run's row is there before the run begins, without its end: after kill
 * -9 such a row tells that a run was lost. Its metric "(outcome)" tells how it ended.
 */
#include "trial/trial.h"

#include "grow.h"
#include "hash.h"

#include <pem/agent.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define AGENT "explore"
#define OUTCOME "(outcome)" /* no name of a metric in a document */

static int64_t now_ns(void)
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

/* Does prepare name the program's file? */
static bool is_made(const struct trial_experiment *e)
{
	const char *slash = strrchr(e->program, '/');

	return e->prepare && strstr(e->prepare, slash ? slash + 1 : e->program);
}

int trial_store__identify(struct trial_store *store, struct pem_error *error)
{
	int64_t rc;

	store->application.size = sizeof(store->application);
	store->machine.size = sizeof(store->machine);
	/* What prepare makes is another build in each trial. */
	rc = is_made(store->experiment)
		     ? -ENOENT
		     : pem_agent__identify(store->experiment->program, &store->application,
					   &store->machine, error);
	/* A word that is no file is the shell's. */
	if (rc)
		rc = pem_agent__identify("/bin/sh", &store->application, &store->machine, error);
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
	return !strncmp(pem_database__location(store->database), "postgresql:", 11);
}

void trial_store__close(struct trial_store *store)
{
	pem_database__close(store->database);
	store->database = NULL;
}

int trial_store__forget(struct trial_store *store, int64_t run, struct pem_error *error)
{
	int rc = pem_database__remove(store->database, PEM_DB_RUN, run, error);

	return rc < 0 ? rc : 0;
}

/* --- a run --- */

struct change {
	struct trial_store *store;
	const struct trial_outcome *outcome;
	struct pem_error *error;
};

static int64_t put(struct change *change, enum pem_db_table table, const void *row)
{
	return pem_database__put(change->store->database, table, row, change->error);
}

static int64_t put_begin(struct pem_database *database, void *arg)
{
	struct change *change = arg;
	struct trial_store *store = change->store;
	struct pem_db_evidence evidence = {.size = sizeof(evidence), .role = PEM_DB_TREATED};
	int64_t rc = put(change, PEM_DB_DIRECTIVE, &store->directive);

	(void)database;
	store->directive.id = evidence.directive = rc;
	if (rc > 0)
		rc = put(change, PEM_DB_RUN, &store->run);
	store->run.id = evidence.run = rc;
	return rc > 0 ? put(change, PEM_DB_EVIDENCE, &evidence) : rc;
}

int trial_store__begin(struct trial_store *store, const uint32_t *levels, struct pem_error *error)
{
	struct change change = {.store = store, .error = error};
	struct pem_db_directive *directive = &store->directive;
	struct pem_db_run *run = &store->run;
	int64_t rc;

	*directive = (struct pem_db_directive){.size = sizeof(*directive),
					       .application = store->application.id,
					       .machine = store->machine.id,
					       .agent = AGENT,
					       .state = PEM_DB_ON_TRIAL,
					       .began_ns = now_ns()};
	if (trial_words__text(store->experiment, levels, directive->text))
		return -E2BIG;
	snprintf(directive->subject, sizeof(directive->subject), "%s %016llx",
		 store->experiment->key,
		 (unsigned long long)pem_hash__text(PEM_HASH_START, directive->text));
	*run = (struct pem_db_run){.size = sizeof(*run),
				   .application = store->application.id,
				   .machine = store->machine.id,
				   .agent = AGENT,
				   .began_ns = now_ns()};
	snprintf(run->workload, sizeof(run->workload), "%s", store->experiment->key);
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

static int64_t put_end(struct pem_database *database, void *arg)
{
	struct change *change = arg;
	struct trial_store *store = change->store;
	const struct trial_experiment *e = store->experiment;
	const struct trial_outcome *outcome = change->outcome;
	bool has_values =
		outcome->outcome == PEM_EXPLORE_MEASURED || outcome->outcome == PEM_EXPLORE_STOPPED;
	struct pem_db_evidence evidence = {.size = sizeof(evidence),
					   .directive = store->directive.id,
					   .run = store->run.id,
					   .role = has_values ? PEM_DB_TREATED : PEM_DB_EXCLUDED,
					   .value = has_values ? outcome->values[0] : 0};
	int64_t rc;
	size_t i;

	/* A person ended it: nothing is known, and it is as if it had not begun. */
	if (outcome->interrupted)
		return pem_database__remove(database, PEM_DB_RUN, store->run.id, change->error);
	rc = put_metric(change, OUTCOME, "", outcome->outcome);
	for (i = 0; has_values && rc >= 0 && i < e->metric_count; i++) {
		if (!isnan(outcome->values[i]))
			rc = put_metric(change, e->metrics[i].name, e->metrics[i].unit,
					outcome->values[i]);
	}
	if (rc >= 0)
		rc = put(change, PEM_DB_RUN, &store->run);
	if (rc >= 0)
		rc = put(change, PEM_DB_EVIDENCE, &evidence);
	return rc < 0 ? rc : put(change, PEM_DB_DIRECTIVE, &store->directive);
}

int trial_store__end(struct trial_store *store, const struct trial_outcome *outcome,
		     struct pem_error *error)
{
	struct change change = {.store = store, .outcome = outcome, .error = error};
	int64_t rc;

	store->run.wall_ns = (int64_t)(outcome->seconds * 1e9) + 1;
	store->run.status = outcome->status;
	store->directive.state =
		outcome->outcome == PEM_EXPLORE_FAILED || outcome->outcome == PEM_EXPLORE_REFUSED
			? PEM_DB_WITHDRAWN
			: PEM_DB_ON_TRIAL;
	snprintf(store->directive.reason, sizeof(store->directive.reason), "%s", outcome->reason);
	pem_printable(store->directive.reason);
	rc = pem_database__together(store->database, put_end, &change, error);
	return rc < 0 ? (int)rc : check_file(store, error);
}

/* --- what was stored --- */

struct configuration {
	int64_t directive;
	uint32_t *levels;
	char reason[160];
};

struct walk {
	struct trial_store *store;
	struct configuration *configurations;
	size_t configuration_count, configuration_capacity;
	size_t at; /* of the configuration whose evidence is read */
	struct pem_db_run *runs;
	size_t run_count, run_capacity;
	struct trial_stored *stored;
	size_t count, capacity;
};

/* "page_size=4096 threads=3"; false: the space does not have it. */
static bool read_levels(const struct trial_experiment *e, char *text, uint32_t *levels)
{
	struct pem_explore_space *space = &e->space->view;
	char *word, *rest, *value;
	uint32_t i, k;

	memset(levels, 0, space->parameter_count * sizeof(*levels));
	for (word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		value = strchr(word, '=');
		if (!value)
			return false;
		*value++ = '\0';
		for (i = 0; i < space->parameter_count && strcmp(e->targets[i].name, word);)
			i++;
		if (i == space->parameter_count)
			return false;
		for (k = 0; k < space->parameters[i].levels &&
			    strcmp(space->parameters[i].values[k], value);)
			k++;
		if (k == space->parameters[i].levels)
			return false;
		levels[i] = k;
	}
	return space->allows(space, levels);
}

static int add_configuration(const void *row, void *arg)
{
	const struct pem_db_directive *directive = row;
	struct walk *walk = arg;
	const struct trial_experiment *e = walk->store->experiment;
	struct configuration *c;
	size_t n = strlen(e->key);
	char text[sizeof(directive->text)];

	if (strncmp(directive->subject, e->key, n) || directive->subject[n] != ' ')
		return 0;
	if (pem_grow(&walk->configurations, sizeof(*c), walk->configuration_count + 1,
		     &walk->configuration_capacity))
		return -ENOMEM;
	c = &walk->configurations[walk->configuration_count];
	*c = (struct configuration){.directive = directive->id};
	c->levels = calloc(e->space->view.parameter_count, sizeof(*c->levels));
	if (!c->levels)
		return -ENOMEM;
	memcpy(text, directive->text, sizeof(text));
	memcpy(c->reason, directive->reason, sizeof(c->reason));
	if (read_levels(e, text, c->levels))
		walk->configuration_count++;
	else
		free(c->levels);
	return 0;
}

static int add_run(const void *row, void *arg)
{
	struct walk *walk = arg;

	if (pem_grow(&walk->runs, sizeof(*walk->runs), walk->run_count + 1, &walk->run_capacity))
		return -ENOMEM;
	walk->runs[walk->run_count++] = *(const struct pem_db_run *)row;
	return 0;
}

/* Runs come by rising number. */
static const struct pem_db_run *run_of(const struct walk *walk, int64_t id)
{
	size_t low = 0, high = walk->run_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (walk->runs[middle].id == id)
			return &walk->runs[middle];
		if (walk->runs[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int add_stored(const void *row, void *arg)
{
	const struct pem_db_evidence *evidence = row;
	struct walk *walk = arg;
	const struct configuration *c = &walk->configurations[walk->at];
	const struct pem_db_run *run = run_of(walk, evidence->run);
	struct trial_stored *stored;
	size_t i;

	if (!run)
		return 0;
	if (pem_grow(&walk->stored, sizeof(*stored), walk->count + 1, &walk->capacity))
		return -ENOMEM;
	stored = &walk->stored[walk->count++];
	*stored = (struct trial_stored){.id = run->id,
					.levels = c->levels,
					.outcome = PEM_EXPLORE_FAILED,
					.unfinished = !run->wall_ns,
					.seconds = (double)run->wall_ns / 1e9,
					.reason = c->reason,
					.machine = walk->store->machine.processor};
	for (i = 0; i < TRIAL_METRICS_MAX; i++)
		stored->values[i] = NAN;
	return 0;
}

struct filling {
	const struct trial_experiment *experiment;
	struct trial_stored *stored;
};

static int fill_value(const void *row, void *arg)
{
	const struct pem_db_metric *metric = row;
	struct filling *filling = arg;
	size_t i;

	if (!strcmp(metric->name, OUTCOME) && metric->mean >= PEM_EXPLORE_MEASURED &&
	    metric->mean <= PEM_EXPLORE_STOPPED)
		filling->stored->outcome = (uint32_t)metric->mean;
	for (i = 0; i < filling->experiment->metric_count; i++) {
		if (!strcmp(filling->experiment->metrics[i].name, metric->name))
			filling->stored->values[i] = metric->mean;
	}
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct trial_stored *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* Find the ids of rows that a database may have from earlier. 0: it has none. */
static int find_ids(struct trial_store *store, struct pem_error *error)
{
	struct pem_db_application application = {.size = sizeof(application)};
	struct pem_db_machine machine = {.size = sizeof(machine)};
	int rc;

	if (store->application.id)
		return 1;
	strcpy(application.build_id, store->application.build_id);
	strcpy(machine.fingerprint, store->machine.fingerprint);
	rc = pem_database__find(store->database, PEM_DB_APPLICATION, &application, &application,
				error);
	store->application.id = application.id;
	if (rc == 1 &&
	    pem_database__find(store->database, PEM_DB_MACHINE, &machine, &machine, error) == 1)
		store->machine.id = machine.id;
	return rc;
}

static int64_t read_all(struct walk *walk, struct pem_error *error)
{
	struct trial_store *store = walk->store;
	struct pem_db_directive directive = {
		.size = sizeof(directive), .application = store->application.id, .agent = AGENT};
	struct pem_db_run run = {
		.size = sizeof(run), .application = store->application.id, .agent = AGENT};
	struct filling filling = {.experiment = store->experiment};
	size_t i;
	int64_t rc;

	directive.machine = run.machine = store->machine.id;
	strcpy(run.workload, store->experiment->key);
	rc = pem_database__each(store->database, PEM_DB_DIRECTIVE, &directive, add_configuration,
				walk, error);
	if (rc >= 0)
		rc = pem_database__each(store->database, PEM_DB_RUN, &run, add_run, walk, error);
	for (i = 0; rc >= 0 && i < walk->configuration_count; i++) {
		struct pem_db_evidence evidence = {.size = sizeof(evidence),
						   .directive = walk->configurations[i].directive};

		walk->at = i;
		rc = pem_database__each(store->database, PEM_DB_EVIDENCE, &evidence, add_stored,
					walk, error);
	}
	for (i = 0; rc >= 0 && i < walk->count; i++) {
		struct pem_db_metric metric = {.size = sizeof(metric), .run = walk->stored[i].id};

		filling.stored = &walk->stored[i];
		rc = pem_database__each(store->database, PEM_DB_METRIC, &metric, fill_value,
					&filling, error);
	}
	return rc;
}

int64_t trial_store__each(struct trial_store *store,
			  void (*visit)(const struct trial_stored *stored, void *arg), void *arg,
			  struct pem_error *error)
{
	struct walk walk = {.store = store};
	int64_t rc = find_ids(store, error);
	size_t i;

	if (rc == 1 && store->machine.id)
		rc = read_all(&walk, error);
	if (rc >= 0) {
		if (walk.count)
			qsort(walk.stored, walk.count, sizeof(*walk.stored), by_id);
		for (i = 0; i < walk.count; i++)
			visit(&walk.stored[i], arg);
		rc = (int64_t)walk.count;
	}
	for (i = 0; i < walk.configuration_count; i++)
		free(walk.configurations[i].levels);
	free(walk.configurations);
	free(walk.runs);
	free(walk.stored);
	return rc;
}
