/* SPDX-License-Identifier: MIT */
/* stored.c - runs of an experiment that the database has */
#include "trial/store.h"

#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST (-1e9) /* gain in %: no run takes ten million times as long */

struct configuration {
	int64_t directive;
	uint32_t *levels;
	char reason[160];
};

/* The text of a directive that is a reason. */
struct reason {
	int64_t directive;
	char text[160];
};

struct walk {
	struct trial_store *store;
	struct reason *reasons; /* by rising numbers of directives */
	size_t reason_count, reason_capacity;
	struct configuration *configurations; /* by rising numbers of directives */
	size_t configuration_count, configuration_capacity;
	struct pem_db_run *runs; /* that are not known yet */
	size_t run_count, run_capacity;
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

static int add_reason(const void *row, void *arg)
{
	const struct pem_db_directive *directive = row;
	struct walk *walk = arg;
	struct reason *reason;

	if (pem_grow(&walk->reasons, sizeof(*reason), walk->reason_count + 1,
		     &walk->reason_capacity))
		return -ENOMEM;
	reason = &walk->reasons[walk->reason_count++];
	reason->directive = directive->id;
	snprintf(reason->text, sizeof(reason->text), "%.159s", directive->text);
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

/* Both kinds of rows begin with their directive's number. */
static int by_directive(const void *key, const void *row)
{
	int64_t directive = *(const int64_t *)key, other = *(const int64_t *)row;

	return directive < other ? -1 : directive > other;
}

/* One of count rows; NULL: none has this directive. */
static const void *row_of(const void *rows, size_t count, size_t bytes, int64_t directive)
{
	return count ? bsearch(&directive, rows, count, bytes, by_directive) : NULL;
}

/* The configuration of a directive that this space has, or NULL. */
static const struct configuration *configuration_of(const struct walk *walk, int64_t directive)
{
	return row_of(walk->configurations, walk->configuration_count,
		      sizeof(*walk->configurations), directive);
}

/* The directives of a run: of a pair, the second one is the control's. */
struct sides {
	const struct walk *walk;
	int64_t directives[2]; /* 0: none */
	double control; /* value */
	const struct reason *reason; /* NULL: none */
};

static int take_side(const void *row, void *arg)
{
	const struct pem_db_evidence *evidence = row;
	struct sides *sides = arg;
	const struct walk *walk = sides->walk;
	const struct reason *reason =
		row_of(walk->reasons, walk->reason_count, sizeof(*reason), evidence->directive);
	/* Both of a void pair are excluded. */
	bool is_control = evidence->role == PEM_DB_CONTROL ||
			  (evidence->role == PEM_DB_EXCLUDED && sides->directives[0]);

	if (reason) {
		sides->reason = reason;
		return 0;
	}
	if (is_control)
		sides->control = evidence->value;
	sides->directives[is_control] = evidence->directive;
	return 0;
}

struct filling {
	const struct trial_experiment *experiment;
	struct trial_stored *stored;
	bool has_outcome;
};

static int fill_value(const void *row, void *arg)
{
	const struct pem_db_metric *metric = row;
	struct filling *filling = arg;
	size_t i;

	if (!strcmp(metric->name, TRIAL_OUTCOME) && metric->mean >= PEM_EXPLORE_MEASURED &&
	    metric->mean <= PEM_EXPLORE_STOPPED) {
		filling->stored->outcome = (uint32_t)metric->mean;
		filling->has_outcome = true;
	}
	for (i = 0; i < filling->experiment->metric_count; i++) {
		if (!strcmp(filling->experiment->metrics[i].name, metric->name))
			filling->stored->values[i] = metric->mean;
	}
	return 0;
}

static int add_machine(struct trial_store *store, const struct pem_db_machine *row)
{
	char text[192];
	size_t i;

	snprintf(text, sizeof(text), "%s, Linux %.48s", row->processor, row->kernel);
	for (i = 0; i < store->machine_count; i++) {
		if (!strcmp(store->machines[i].text, text))
			snprintf(text, sizeof(text), "%.120s, Linux %.48s, %lld", row->processor,
				 row->kernel, (long long)row->id);
	}
	if (pem_grow(&store->machines, sizeof(*store->machines), store->machine_count + 1,
		     &store->machine_capacity))
		return -ENOMEM;
	store->machines[i] = (struct trial_machine){.id = row->id, .text = strdup(text)};
	if (!store->machines[i].text)
		return -ENOMEM;
	store->machine_count++;
	return 0;
}

/* The index of a machine, which may be a new one. Returns it, -ENOENT: it can't be read; -errno. */
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
	if (rc == 1)
		rc = add_machine(store, &machine);
	else if (!rc)
		rc = -ENOENT;
	return rc ? rc : (int)i;
}

/* Has a run that ended what put_end() writes? Others may write to a shared database. */
static bool is_whole(const struct filling *filling, const struct pem_db_run *run)
{
	const struct trial_stored *stored = filling->stored;
	size_t i;

	if (!filling->has_outcome || run->wall_ns < 0)
		return false;
	for (i = 0; i < filling->experiment->objectives; i++) {
		if (trial_outcome__has_values(stored->outcome) && isnan(stored->values[i]))
			return false;
	}
	return true;
}

/* Read what is known of a run. Returns 0 or -errno. */
static int read_run(struct walk *walk, const struct pem_db_run *run, struct pem_error *error)
{
	struct trial_store *store = walk->store;
	const struct trial_experiment *e = store->experiment;
	struct pem_db_evidence evidence = {.size = sizeof(evidence), .run = run->id};
	struct pem_db_metric metric = {.size = sizeof(metric), .run = run->id};
	struct filling filling = {.experiment = e};
	struct sides sides = {.walk = walk};
	const struct configuration *found, *beside;
	const char *node = strchr(run->workload, ' ');
	int64_t rc;
	uint32_t *known;
	int machine;

	rc = pem_database__each(store->database, PEM_DB_EVIDENCE, &evidence, take_side, &sides,
				error);
	if (rc < 0)
		return (int)rc;
	found = configuration_of(walk, sides.directives[0]);
	beside = configuration_of(walk, sides.directives[1]);
	if (!found || (sides.directives[1] && !beside))
		return 0;
	machine = find_machine(store, run->machine, error);
	store->unreadable += machine == -ENOENT;
	if (machine < 0)
		return machine == -ENOENT ? 0 : machine;
	filling.stored = trial_runs__add(run->wall_ns ? &store->ended : &store->unfinished,
					 e->space->view.parameter_count, found->levels,
					 beside ? beside->levels : NULL, (uint32_t)machine);
	if (!filling.stored)
		return -ENOMEM;
	filling.stored->id = run->id;
	filling.stored->beside_value = sides.control;
	filling.stored->began_ns = run->began_ns;
	filling.stored->seconds = (double)run->wall_ns / 1e9;
	snprintf(filling.stored->node, sizeof(filling.stored->node), "%.31s", node ? node + 1 : "");
	if (!run->wall_ns)
		return 0;
	known = pem_number_map__at(&store->known, (uint64_t)run->id);
	if (!known)
		return -ENOMEM;
	*known = 1;
	rc = pem_database__each(store->database, PEM_DB_METRIC, &metric, fill_value, &filling,
				error);
	/* Earlier versions noted the last reason of a configuration alone. */
	if (sides.reason)
		strcpy(filling.stored->reason, sides.reason->text);
	else if (!trial_outcome__has_values(filling.stored->outcome))
		strcpy(filling.stored->reason, found->reason);
	if (rc >= 0 && !is_whole(&filling, run)) {
		trial_runs__drop(&store->ended);
		store->unreadable++;
	}
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
	struct pem_db_directive directive = {.size = sizeof(directive),
					     .application = store->application.id,
					     .agent = TRIAL_AGENT};
	struct pem_db_run run = {
		.size = sizeof(run), .application = store->application.id, .agent = TRIAL_AGENT};
	struct pem_db_directive reason = directive;
	size_t i;
	int64_t rc;

	strcpy(reason.agent, TRIAL_REASON);
	rc = pem_database__each(store->database, PEM_DB_RUN, &run, add_unknown, walk, error);
	if (rc >= 0 && walk->run_count)
		rc = pem_database__each(store->database, PEM_DB_DIRECTIVE, &directive,
					add_configuration, walk, error);
	if (rc >= 0 && walk->run_count)
		rc = pem_database__each(store->database, PEM_DB_DIRECTIVE, &reason, add_reason,
					walk, error);
	for (i = 0; rc >= 0 && i < walk->run_count; i++)
		rc = read_run(walk, &walk->runs[i], error);
	return rc;
}

int trial_store__update(struct trial_store *store, struct pem_error *error)
{
	struct walk walk = {.store = store};
	int64_t rc = begin_machines(store, error);
	size_t i;

	trial_runs__free(&store->unfinished);
	store->unreadable = 0;
	if (!rc)
		rc = find_application(store, error);
	if (rc == 1)
		rc = read_all(&walk, error);
	for (i = 0; i < walk.configuration_count; i++)
		free(walk.configurations[i].levels);
	free(walk.configurations);
	free(walk.reasons);
	free(walk.runs);
	return rc < 0 ? (int)rc : 0;
}

bool trial_store__is_lost(const struct trial_store *store, const struct trial_stored *run)
{
	/* prepare, start, ready and end have the limit of a run, too; clocks differ. */
	double most_s = store->experiment->limit_s * (5 + store->experiment->warm_ups) + 60;
	char node[TRIAL_NODE_BYTES];

	trial_guard__node(node);
	return !trial_store__is_shared(store) || !strcmp(run->node, node) ||
	       (store->experiment->limit_s > 0 &&
		fabs((double)trial_now_ns() - (double)run->began_ns) / 1e9 > most_s);
}

bool trial_store__goes_on(const struct trial_store *store, const struct trial_stored *run)
{
	return !run->machine && !trial_store__is_lost(store, run);
}

/* --- validations: a configuration and the defaults, in turns, after it was chosen --- */

static int take_validation(const void *row, void *arg)
{
	*(struct pem_db_validation *)arg = *(const struct pem_db_validation *)row;
	return 0;
}

/* The directive of a comparison: it names both sides, which of two values is better, and how they
 * ran. */
static int comparison_of(const struct trial_store *store, const uint32_t *levels, bool in_pairs,
			 struct pem_db_directive *directive)
{
	const struct trial_experiment *e = store->experiment;
	char usual[TRIAL_TEXT_BYTES];
	size_t used;

	if (!e->has_default || trial_words__text(e, e->defaults, usual) ||
	    trial_store__directive(store, levels, directive))
		return -ENOENT;
	used = strlen(directive->subject);
	snprintf(directive->subject + used, sizeof(directive->subject) - used, " %016llx %s%s",
		 (unsigned long long)pem_hash__text(PEM_HASH_START, usual),
		 e->metrics[0].greater_is_better ? "more" : "less", in_pairs ? " pairs" : "");
	strcpy(directive->agent, TRIAL_COMPARER);
	return 0;
}

/* Others may write to a shared database. */
static bool is_right(const struct pem_db_validation *v)
{
	return v->treated == v->controls && v->treated >= 0 && v->treated <= 1000 &&
	       v->gain_low >= LEAST && v->gain_low <= v->gain && v->gain <= v->gain_high &&
	       v->gain_high < 100;
}

/*
 * Find the directive of a comparison, and its last validation. Returns 1; 0: there is none, and
 * directive->id is 0 if there is no directive either; or -errno with error.
 */
static int find_comparison(struct trial_store *store, const uint32_t *levels, bool in_pairs,
			   struct pem_db_directive *directive, struct pem_db_validation *validation,
			   struct pem_error *error)
{
	struct pem_db_validation like = {.size = sizeof(like)};
	int64_t rc;

	*validation = (struct pem_db_validation){.size = sizeof(*validation)};
	*directive = (struct pem_db_directive){.size = sizeof(*directive)};
	if (!store->database || !store->application.id || !store->machine.id ||
	    comparison_of(store, levels, in_pairs, directive))
		return 0;
	/* Its key alone. */
	directive->text[0] = '\0';
	rc = pem_database__find(store->database, PEM_DB_DIRECTIVE, directive, directive, error);
	if (rc != 1)
		return (int)rc;
	like.directive = directive->id;
	/* The last one comes last. */
	rc = pem_database__each(store->database, PEM_DB_VALIDATION, &like, take_validation,
				validation, error);
	return rc > 0 ? is_right(validation) : (int)rc;
}

/* The gain of the metric, from a gain in % of the time: a rate is the inverse of a time. */
static double gain_of_time(const struct trial_store *store, double percent)
{
	double share = percent / 100;

	return store->experiment->metrics[0].greater_is_better ? share / (1 - share) : share;
}

int trial_store__gain(struct trial_store *store, const uint32_t *levels, struct trial_gain *gain,
		      struct pem_error *error)
{
	struct pem_db_directive directive;
	struct pem_db_validation found;
	bool in_pairs = true;
	int rc = find_comparison(store, levels, in_pairs, &directive, &found, error);

	if (!rc || (rc == 1 && found.treated < 2 && !store->experiment->pairs)) {
		in_pairs = false;
		rc = find_comparison(store, levels, in_pairs, &directive, &found, error);
	}
	*gain = (struct trial_gain){.value = NAN, .low = NAN, .high = NAN, .in_pairs = in_pairs};
	if (rc == 1 && found.treated > 1)
		*gain = (struct trial_gain){.value = gain_of_time(store, found.gain),
					    .low = gain_of_time(store, found.gain_low),
					    .high = gain_of_time(store, found.gain_high),
					    .runs = (uint32_t)found.treated,
					    .in_pairs = in_pairs};
	return rc;
}

int trial_store__compare(struct trial_store *store, const uint32_t *levels, bool in_pairs,
			 bool goes_on, int64_t *since_ns, struct pem_error *error)
{
	struct pem_db_directive directive;
	struct pem_db_validation found;
	int64_t rc = find_comparison(store, levels, in_pairs, &directive, &found, error);

	*since_ns = directive.began_ns;
	if (rc < 0 || (goes_on && directive.id && !found.directive))
		return (int)rc;
	if (comparison_of(store, levels, in_pairs, &directive))
		return 0;
	directive.state = PEM_DB_ON_TRIAL;
	directive.began_ns = *since_ns = trial_now_ns();
	rc = pem_database__put(store->database, PEM_DB_DIRECTIVE, &directive, error);
	return rc < 0 ? (int)rc : 0;
}

struct validating {
	struct pem_db_directive directive;
	struct pem_db_validation *validation;
	struct pem_error *error;
};

static int64_t put_validation(struct pem_database *database, void *arg)
{
	struct validating *v = arg;
	int64_t rc = pem_database__put(database, PEM_DB_DIRECTIVE, &v->directive, v->error);

	v->validation->directive = rc;
	return rc < 0 ? rc
		      : pem_database__put(database, PEM_DB_VALIDATION, v->validation, v->error);
}

int trial_store__validate(struct trial_store *store, const uint32_t *levels, bool in_pairs,
			  struct pem_db_validation *validation, struct pem_error *error)
{
	struct validating v = {.validation = validation, .error = error};
	int64_t rc;

	if (comparison_of(store, levels, in_pairs, &v.directive))
		return 0;
	v.directive.state = PEM_DB_ON_TRIAL;
	v.directive.began_ns = validation->at_ns = trial_now_ns();
	validation->size = sizeof(*validation);
	rc = pem_database__together(store->database, put_validation, &v, error);
	return rc < 0 ? (int)rc : 0;
}
