/* SPDX-License-Identifier: MIT */
/*
 * store.c - runs of an experiment in the CPO database
 *
 * A configuration is a directive, whose text is "name=value name=value"; each of its runs is a run
 * with evidence for it. The run's row is there before the run begins, without its end: after kill
 * -9 such a row tells that a run was lost. Its metric "(outcome)" tells how it ended, its workload
 * is "KEY NODE": the experiment, and where it ran.
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
	return store->database &&
	       !strncmp(pem_database__location(store->database), "postgresql:", 11);
}

static void free_runs(struct trial_runs *runs)
{
	while (runs->count)
		free(runs->at[--runs->count].levels);
	free(runs->at);
	*runs = (struct trial_runs){0};
}

void trial_store__close(struct trial_store *store)
{
	pem_database__close(store->database);
	store->database = NULL;
	free_runs(&store->ended);
	free_runs(&store->unfinished);
	free(store->machines);
	pem_number_map__free(&store->known);
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
	char node[TRIAL_NODE_BYTES];
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

static bool has_values(uint32_t outcome)
{
	return outcome == PEM_EXPLORE_MEASURED || outcome == PEM_EXPLORE_STOPPED;
}

static int64_t put_end(struct pem_database *database, void *arg)
{
	struct change *change = arg;
	struct trial_store *store = change->store;
	const struct trial_experiment *e = store->experiment;
	const struct trial_outcome *outcome = change->outcome;
	bool has_any = has_values(outcome->outcome);
	struct pem_db_evidence evidence = {.size = sizeof(evidence),
					   .directive = store->directive.id,
					   .run = store->run.id,
					   .role = has_any ? PEM_DB_TREATED : PEM_DB_EXCLUDED,
					   .value = has_any ? outcome->values[0] : 0};
	int64_t rc;
	size_t i;

	/* A person ended it: nothing is known, and it is as if it had not begun. */
	if (outcome->interrupted)
		return pem_database__remove(database, PEM_DB_RUN, store->run.id, change->error);
	rc = put_metric(change, OUTCOME, "", outcome->outcome);
	for (i = 0; has_any && rc >= 0 && i < e->metric_count; i++) {
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

/* Add a run of these levels, without values. NULL: no memory. */
static struct trial_stored *add_run(struct trial_runs *runs, uint32_t parameters,
				    const uint32_t *levels, uint32_t machine)
{
	struct trial_stored *stored;

	if (pem_grow(&runs->at, sizeof(*stored), runs->count + 1, &runs->capacity))
		return NULL;
	stored = &runs->at[runs->count];
	*stored = (struct trial_stored){.machine = machine, .outcome = PEM_EXPLORE_FAILED};
	stored->levels = malloc((parameters + 1) * sizeof(*levels));
	if (!stored->levels)
		return NULL;
	memcpy(stored->levels, levels, parameters * sizeof(*levels));
	stored->levels[parameters] = machine;
	for (parameters = 0; parameters < TRIAL_METRICS_MAX; parameters++)
		stored->values[parameters] = NAN;
	runs->count++;
	return stored;
}

/* Is it this process's run, which has ended? */
static int keep_own(struct trial_store *store, const uint32_t *levels,
		    const struct trial_outcome *outcome)
{
	struct trial_stored *stored =
		add_run(&store->ended, store->experiment->space->view.parameter_count, levels, 0);
	uint32_t *known = pem_number_map__at(&store->known, (uint64_t)store->run.id);

	if (!stored || !known)
		return -ENOMEM;
	*known = 1;
	stored->id = store->run.id;
	stored->outcome = outcome->outcome;
	stored->seconds = outcome->seconds;
	stored->began_ns = store->run.began_ns;
	if (has_values(outcome->outcome))
		memcpy(stored->values, outcome->values, sizeof(stored->values));
	memcpy(stored->reason, outcome->reason, sizeof(stored->reason));
	trial_guard__node(stored->node);
	return 0;
}

int trial_store__end(struct trial_store *store, const uint32_t *levels,
		     const struct trial_outcome *outcome, struct pem_error *error)
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
	if (rc >= 0)
		rc = check_file(store, error);
	if (rc >= 0 && !outcome->interrupted)
		rc = keep_own(store, levels, outcome);
	return rc < 0 ? (int)rc : 0;
}

/* --- what was stored --- */

struct configuration {
	int64_t directive;
	uint32_t *levels;
	char reason[160];
};

struct walk {
	struct trial_store *store;
	struct configuration *configurations; /* by rising numbers of directives */
	size_t configuration_count, configuration_capacity;
	struct pem_db_run *runs; /* that are not known yet */
	size_t run_count, run_capacity;
	int64_t directive; /* of the run that is read */
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

/* The runs that have to be read: not known as ended. */
static int add_unknown(const void *row, void *arg)
{
	const struct pem_db_run *run = row;
	struct walk *walk = arg;
	size_t n = strlen(walk->store->experiment->key);

	/* Earlier versions noted no node. */
	if (strncmp(run->workload, walk->store->experiment->key, n) ||
	    (run->workload[n] && run->workload[n] != ' ') ||
	    pem_number_map__value(&walk->store->known, (uint64_t)run->id) != UINT32_MAX)
		return 0;
	if (pem_grow(&walk->runs, sizeof(*walk->runs), walk->run_count + 1, &walk->run_capacity))
		return -ENOMEM;
	walk->runs[walk->run_count++] = *run;
	return 0;
}

static int take_directive(const void *row, void *arg)
{
	*(int64_t *)arg = ((const struct pem_db_evidence *)row)->directive;
	return 0;
}

static int by_directive(const void *key, const void *configuration)
{
	int64_t directive = *(const int64_t *)key;
	const struct configuration *other = configuration;

	return directive < other->directive ? -1 : directive > other->directive;
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

static int add_machine(struct trial_store *store, const struct pem_db_machine *row)
{
	struct trial_machine *machine;
	size_t i;

	if (pem_grow(&store->machines, sizeof(*machine), store->machine_count + 1,
		     &store->machine_capacity))
		return -ENOMEM;
	machine = &store->machines[store->machine_count];
	machine->id = row->id;
	snprintf(machine->text, sizeof(machine->text), "%s, Linux %.48s", row->processor,
		 row->kernel);
	for (i = 0; i < store->machine_count; i++) {
		if (!strcmp(store->machines[i].text, machine->text))
			snprintf(machine->text, sizeof(machine->text), "%.120s, Linux %.48s, %lld",
				 row->processor, row->kernel, (long long)row->id);
	}
	store->machine_count++;
	return 0;
}

/* The index of a machine, which may be a new one. Returns it or -errno. */
static int find_machine(struct trial_store *store, int64_t id, struct pem_error *error)
{
	struct pem_db_machine machine = {.size = sizeof(machine), .id = id};
	size_t i;
	int rc;

	for (i = 0; i < store->machine_count && store->machines[i].id != id;)
		i++;
	if (i < store->machine_count)
		return (int)i;
	rc = pem_database__find(store->database, PEM_DB_MACHINE, &machine, &machine, error);
	if (!rc) {
		snprintf(error->text, sizeof(error->text),
			 "the database has a run of machine %lld, and no such machine",
			 (long long)id);
		rc = -EBADMSG;
	}
	if (rc == 1)
		rc = add_machine(store, &machine);
	return rc ? rc : (int)i;
}

/* Read what is known of a run. Returns 0 or -errno. */
static int read_run(struct walk *walk, const struct pem_db_run *run, struct pem_error *error)
{
	struct trial_store *store = walk->store;
	const struct trial_experiment *e = store->experiment;
	struct pem_db_evidence evidence = {.size = sizeof(evidence), .run = run->id};
	struct pem_db_metric metric = {.size = sizeof(metric), .run = run->id};
	struct filling filling = {.experiment = e};
	const struct configuration *found;
	const char *node = strchr(run->workload, ' ');
	int64_t directive = 0, rc;
	uint32_t *known;
	int machine = find_machine(store, run->machine, error);

	if (machine < 0)
		return machine;
	rc = pem_database__each(store->database, PEM_DB_EVIDENCE, &evidence, take_directive,
				&directive, error);
	if (rc < 0)
		return (int)rc;
	found = bsearch(&directive, walk->configurations, walk->configuration_count, sizeof(*found),
			by_directive);
	if (!found)
		return 0;
	filling.stored = add_run(run->wall_ns ? &store->ended : &store->unfinished,
				 e->space->view.parameter_count, found->levels, (uint32_t)machine);
	if (!filling.stored)
		return -ENOMEM;
	filling.stored->id = run->id;
	filling.stored->began_ns = run->began_ns;
	filling.stored->seconds = (double)run->wall_ns / 1e9;
	snprintf(filling.stored->node, sizeof(filling.stored->node), "%.31s", node ? node + 1 : "");
	memcpy(filling.stored->reason, found->reason, sizeof(found->reason));
	if (!run->wall_ns)
		return 0;
	known = pem_number_map__at(&store->known, (uint64_t)run->id);
	if (!known)
		return -ENOMEM;
	*known = 1;
	rc = pem_database__each(store->database, PEM_DB_METRIC, &metric, fill_value, &filling,
				error);
	return rc < 0 ? (int)rc : 0;
}

/* Find the number of a row that a database may have from earlier; 0: it has none. */
static int find_application(struct trial_store *store, struct pem_error *error)
{
	struct pem_db_application application = {.size = sizeof(application)};
	int rc;

	if (store->application.id)
		return 1;
	strcpy(application.build_id, store->application.build_id);
	rc = pem_database__find(store->database, PEM_DB_APPLICATION, &application, &application,
				error);
	store->application.id = application.id;
	return rc;
}

/* This machine's kind is the first one, also if the database does not have it yet. */
static int begin_machines(struct trial_store *store, struct pem_error *error)
{
	struct pem_db_machine like = {.size = sizeof(like)}, found = {.size = sizeof(found)};
	int rc;

	if (store->machine_count)
		return 0;
	if (!store->machine.id) {
		strcpy(like.fingerprint, store->machine.fingerprint);
		rc = pem_database__find(store->database, PEM_DB_MACHINE, &like, &found, error);
		if (rc < 0)
			return rc;
		store->machine.id = found.id;
	}
	return add_machine(store, &store->machine);
}

static int64_t read_all(struct walk *walk, struct pem_error *error)
{
	struct trial_store *store = walk->store;
	struct pem_db_directive directive = {
		.size = sizeof(directive), .application = store->application.id, .agent = AGENT};
	struct pem_db_run run = {
		.size = sizeof(run), .application = store->application.id, .agent = AGENT};
	size_t i;
	int64_t rc;

	rc = pem_database__each(store->database, PEM_DB_RUN, &run, add_unknown, walk, error);
	if (rc >= 0 && walk->run_count)
		rc = pem_database__each(store->database, PEM_DB_DIRECTIVE, &directive,
					add_configuration, walk, error);
	for (i = 0; rc >= 0 && i < walk->run_count; i++)
		rc = read_run(walk, &walk->runs[i], error);
	return rc;
}

int trial_store__update(struct trial_store *store, struct pem_error *error)
{
	struct walk walk = {.store = store};
	int64_t rc = begin_machines(store, error);
	size_t i;

	free_runs(&store->unfinished);
	if (!rc)
		rc = find_application(store, error);
	if (rc == 1)
		rc = read_all(&walk, error);
	for (i = 0; i < walk.configuration_count; i++)
		free(walk.configurations[i].levels);
	free(walk.configurations);
	free(walk.runs);
	return rc < 0 ? (int)rc : 0;
}

bool trial_store__is_lost(const struct trial_store *store, const struct trial_stored *run)
{
	/* prepare, start, ready and end have the limit of a run, too; clocks differ. */
	double most_s = store->experiment->limit_s * (5 + store->experiment->warm_ups) + 60;

	return !trial_store__is_shared(store) ||
	       (store->experiment->limit_s > 0 &&
		(double)(now_ns() - run->began_ns) / 1e9 > most_s);
}
