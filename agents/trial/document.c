/* SPDX-License-Identifier: MIT */
/* document.c - the XML file of an experiment */
#include "trial/document.h"

#include "cli.h"
#include "hash.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char trial_schema[] =
#include "exploration_xsd.h"
	;

#define RUNS_MAX 1000u
#define TRIALS 100u /* if neither trials nor time are given */

int trial_reader__no_memory(struct pem_error *error)
{
	snprintf(error->text, sizeof(error->text), "out of memory");
	return -ENOMEM;
}

/* --- values of attributes --- */

static double seconds_of(const char *text)
{
	char *unit;
	double value = strtod(text, &unit);

	return !strcmp(unit, "ms")    ? value / 1000
	       : !strcmp(unit, "min") ? value * 60
	       : !strcmp(unit, "h")   ? value * 3600
				      : value;
}

static uint64_t bytes_of(const char *text)
{
	char *unit;
	uint64_t value = strtoull(text, &unit, 10);

	return value << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0);
}

static double seconds_at(const struct settings_xml_node *node, const char *name, double usual)
{
	const char *text = settings_xml__attribute(node, name);

	return text ? seconds_of(text) : usual;
}

static uint32_t count_at(const struct settings_xml_node *node, const char *name, uint32_t usual)
{
	const char *text = settings_xml__attribute(node, name);

	return text ? (uint32_t)strtoul(text, NULL, 10) : usual;
}

/* A copy of an attribute or a text; NULL stays NULL. */
int trial_reader__copy(struct trial_reader *reader, char **to, const char *text)
{
	*to = text ? strdup(text) : NULL;
	return text && !*to ? trial_reader__no_memory(reader->error) : 0;
}

/* --- commands --- */

/*
 * {word} that is almost the name of a parameter is a mistake; another one is the command's own, and
 * noted. has_arguments: {arguments} is replaced there.
 */
static int check_places(struct trial_reader *reader, const struct settings_xml_node *node,
			const char *attribute, const char *text, bool has_arguments)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
				      "0123456789.-";
	struct trial_experiment *e = reader->experiment;
	const char *names[TRIAL_PARAMETERS_MAX + 2] = {"scratch", "arguments"}, *at = text, *near;
	size_t count = has_arguments ? 2 : 1, n;
	char word[64];
	uint32_t i;

	for (i = 0; i < e->space->view.parameter_count; i++)
		names[count++] = e->targets[i].name;
	for (; (at = strchr(at, '{')); at++) {
		n = strspn(at + 1, letters);
		if (n < 1 || n >= sizeof(word) || at[n + 1] != '}' || strchr(letters + 53, at[1]) ||
		    (at > text && at[-1] == '$'))
			continue;
		memcpy(word, at + 1, n);
		word[n] = '\0';
		near = cli_nearest(word, names, count);
		if (near && !strcmp(near, word))
			continue;
		if (near || !strcmp(word, "arguments"))
			return settings_xml__refuse(
				reader->xml, node, attribute, attribute ? (size_t)(at - text) : 0,
				near ? "there is no parameter '%s'; is {%s} meant? The command's "
				       "own words have a space there: { %s }"
				     : "{%s} is replaced in the command and in start alone",
				word, near, word);
		memcpy(e->unknown, word, sizeof(word));
	}
	return 0;
}

static int read_command(struct trial_reader *reader, const struct settings_xml_node *node,
			char **command)
{
	const char *text = settings_xml__text(node);
	int rc;

	if (!text || !text[strspn(text, " \t\r\n")])
		return settings_xml__refuse(reader->xml, node, NULL, 0, "the command is missing");
	rc = check_places(reader, node, NULL, text,
			  command == &reader->experiment->command ||
				  command == &reader->experiment->start);
	return rc ? rc : trial_reader__copy(reader, command, text);
}

static bool is_wrapper(const char *word, size_t n)
{
	static const char *const all[] = {"nice", "ionice",  "taskset", "chrt",   "numactl",
					  "env",  "command", "time",    "setsid", "timeout",
					  "exec", "nohup",   "stdbuf"};
	const char *slash = memrchr(word, '/', n), *name = slash ? slash + 1 : word;
	size_t i, left = n - (size_t)(name - word);

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strlen(all[i]) == left && !memcmp(all[i], name, left))
			return true;
	}
	return false;
}

/*
 * The command's first word, after assignments and programs that run another one, with their options
 * and numbers.
 */
static int find_program(struct trial_reader *reader)
{
	const char *at = reader->experiment->command;
	bool is_wrapped = false;
	size_t n;

	for (;; at += n) {
		at += strspn(at, " \t\r\n");
		n = strcspn(at, " \t\r\n");
		if (is_wrapper(at, n))
			is_wrapped = true;
		else if (!memchr(at, '=', n) && !(is_wrapped && strchr("-0123456789", *at) && n))
			break;
	}
	reader->experiment->program = strndup(at, n);
	return reader->experiment->program ? 0 : trial_reader__no_memory(reader->error);
}

static int read_run(struct trial_reader *reader, const struct settings_xml_node *node)
{
	struct trial_experiment *e = reader->experiment;
	const char *folder = settings_xml__attribute(node, "folder");
	const char *disk = settings_xml__attribute(node, "disk");
	const char *status = settings_xml__attribute(node, "status");
	char path[PATH_MAX], whole[PATH_MAX];
	const char *slash = strrchr(e->path, '/');
	struct stat st;
	int rc;

	e->duration_s = seconds_at(node, "duration", 0);
	e->limit_s = seconds_at(node, "limit", 300 + e->duration_s);
	if (e->duration_s >= e->limit_s)
		return settings_xml__refuse(
			reader->xml, node, "duration", 0,
			"a run that is ended after %g s has failed at the limit "
			"of %g s: give a longer limit",
			e->duration_s, e->limit_s);
	e->records = count_at(node, "records", 0);
	e->warm_ups = count_at(node, "warm-up", 0);
	e->disk_bytes = disk ? bytes_of(disk) : UINT64_C(1) << 30;
	e->any_status = status && !strcmp(status, "any");
	/* Beside the document. */
	if (folder && *folder == '/')
		snprintf(path, sizeof(path), "%s", folder);
	else
		snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - e->path) : 0, e->path,
			 folder ? folder : ".");
	if (!realpath(path, whole) || stat(whole, &st) || !S_ISDIR(st.st_mode))
		return settings_xml__refuse(reader->xml, node, "folder", 0,
					    "there is no folder '%.200s'", path);
	if (trial_reader__copy(reader, &e->folder, whole))
		return -ENOMEM;
	rc = read_command(reader, node, &e->command);
	return rc || e->names_program ? rc : find_program(reader);
}

/* --- metrics --- */

static int check_match(struct trial_reader *reader, const struct settings_xml_node *node,
		       const char *match)
{
	char text[200];
	regex_t expression;
	int rc = regcomp(&expression, match, REG_EXTENDED);
	size_t groups = rc ? 0 : expression.re_nsub;

	if (rc) {
		regerror(rc, &expression, text, sizeof(text));
		return settings_xml__refuse(reader->xml, node, "match", 0,
					    "the regular expression is wrong: %s", text);
	}
	regfree(&expression);
	return groups == 1 ? 0
			   : settings_xml__refuse(reader->xml, node, "match", 0,
						  "the expression has to have one group, which is "
						  "the number: match=\"qps: ([0-9.]+)\"");
}

static int read_source(struct trial_reader *reader, const struct settings_xml_node *node,
		       struct trial_measure *metric)
{
	static const char *const of[] = {"time", "cpu", "memory", "status"};
	static const char *const units[] = {"s", "s", "bytes", ""};
	const char *from = settings_xml__attribute(node, "of");
	const char *match = settings_xml__attribute(node, "match");
	const char *event = settings_xml__attribute(node, "event");
	const char *until = settings_xml__attribute(node, "until");
	const char *field = settings_xml__attribute(node, "field");
	const char *where = settings_xml__attribute(node, "where");
	const char *unit = settings_xml__attribute(node, "unit");
	size_t i;
	int rc;

	if (!!from + !!match + !!event != 1)
		return settings_xml__refuse(
			reader->xml, node, NULL, 0,
			"a metric is measured in one way: of=\"time\", "
			"match=\"qps: ([0-9.]+)\", or event=\"OS::Mem::PageFault\"");
	if ((until || field || where) && !event)
		return settings_xml__refuse(reader->xml, node,
					    until   ? "until"
					    : field ? "field"
						    : "where",
					    0, "'until', 'field' and 'where' belong to an event");
	if (until && field)
		return settings_xml__refuse(reader->xml, node, "field", 0,
					    "with 'until' the time from event to event is the "
					    "value, and no field");
	metric->source = match ? TRIAL_OF_OUTPUT : TRIAL_OF_EVENT;
	for (i = 0; from && strcmp(of[i], from);)
		i++;
	if (from) {
		metric->source = (enum trial_metric_source)i;
		unit = units[i];
	}
	if (!unit)
		unit = until ? "s" : "";
	rc = trial_reader__copy(reader, &metric->unit, unit);
	if (!rc)
		rc = trial_reader__copy(reader, &metric->match, match);
	if (!rc)
		rc = trial_reader__copy(reader, &metric->event, event);
	if (!rc)
		rc = trial_reader__copy(reader, &metric->until, until);
	if (!rc)
		rc = trial_reader__copy(reader, &metric->field, field);
	if (!rc)
		rc = trial_reader__copy(reader, &metric->where, where);
	return rc || !match ? rc : check_match(reader, node, match);
}

static int read_metric(struct trial_reader *reader, const struct settings_xml_node *node)
{
	static const char *const uses[] = {"last", "mean",   "sum", "least",
					   "most", "median", "p99", "count"};
	struct trial_experiment *e = reader->experiment;
	struct trial_measure *metric = &e->metrics[e->metric_count];
	const char *better = settings_xml__attribute(node, "better");
	const char *use = settings_xml__attribute(node, "use");
	bool has_aim = !better || strcmp(better, "no");
	size_t i;
	int rc = trial_reader__copy(reader, &metric->name, settings_xml__attribute(node, "name"));

	e->metric_count++;
	if (!rc)
		rc = read_source(reader, node, metric);
	if (rc)
		return rc;
	metric->greater_is_better = better && !strcmp(better, "more");
	metric->use = metric->until   ? TRIAL_USE_MEAN
		      : metric->field ? TRIAL_USE_SUM
				      : TRIAL_USE_LAST;
	if (metric->event && !metric->until && !metric->field)
		metric->use = TRIAL_USE_COUNT;
	for (i = 0; use && i < sizeof(uses) / sizeof(uses[0]); i++) {
		if (!strcmp(uses[i], use))
			metric->use = (enum trial_use)i;
	}
	if (metric->event && !metric->until && !metric->field && metric->use != TRIAL_USE_COUNT)
		return settings_xml__refuse(reader->xml, node, "use", 0,
					    "an event without 'field' or 'until' is counted: "
					    "use=\"count\"");
	for (i = 0; i + 1 < e->metric_count; i++) {
		if (!strcmp(e->metrics[i].name, metric->name))
			return settings_xml__refuse(reader->xml, node, "name", 0,
						    "there are two metrics '%s'", metric->name);
	}
	if (has_aim && e->objectives + 1 != e->metric_count)
		return settings_xml__refuse(reader->xml, node, "name", 0,
					    "metrics with an aim come before those with "
					    "better=\"no\"");
	e->objectives += has_aim;
	return 0;
}

/* --- the whole --- */

static int read_element(struct trial_reader *reader, const struct settings_xml_node *node)
{
	struct trial_experiment *e = reader->experiment;
	const char *name = settings_xml__name(node), *ready;
	int rc;

	if (!strcmp(name, "parameter"))
		return trial_reader__parameter(reader, node);
	if (!strcmp(name, "constraint"))
		return trial_reader__constraint(reader, node);
	if (!strcmp(name, "prepare"))
		return read_command(reader, node, &e->prepare);
	if (!strcmp(name, "end"))
		return read_command(reader, node, &e->end);
	if (!strcmp(name, "metric"))
		return read_metric(reader, node);
	if (!strcmp(name, "command"))
		return read_run(reader, node);
	ready = settings_xml__attribute(node, "ready");
	rc = ready ? check_places(reader, node, "ready", ready, false) : 0;
	if (!rc)
		rc = trial_reader__copy(reader, &e->ready, ready);
	return rc ? rc : read_command(reader, node, &e->start);
}

static void add_text(uint64_t *hash, const char *text)
{
	*hash = pem_hash__text(*hash, text ? text : "");
}

static void add_number(uint64_t *hash, double number)
{
	char text[32];

	snprintf(text, sizeof(text), "%.9g", number);
	add_text(hash, text);
}

/* Equal keys: what is run and what is measured are the same. Values, aims and budgets may differ.
 */
static void write_key(struct trial_experiment *e)
{
	const char *const texts[] = {e->name, e->folder, e->prepare, e->start, e->command, e->end};
	uint64_t hash = PEM_HASH_START;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		add_text(&hash, texts[i]);
	add_number(&hash, e->duration_s);
	add_number(&hash, e->records);
	add_number(&hash, e->warm_ups);
	add_number(&hash, e->limit_s);
	add_number(&hash, (double)e->disk_bytes);
	add_number(&hash, e->any_status);
	for (i = 0; i < e->space->view.parameter_count; i++) {
		add_text(&hash, e->conditions[i]);
		add_text(&hash, e->targets[i].name);
		add_number(&hash, e->targets[i].way);
		add_text(&hash, e->targets[i].key);
		add_text(&hash, e->targets[i].in);
	}
	for (i = 0; i < e->metric_count; i++) {
		const struct trial_measure *m = &e->metrics[i];

		add_text(&hash, m->name);
		add_number(&hash, m->source);
		add_text(&hash, m->match);
		add_text(&hash, m->event);
		add_text(&hash, m->until);
		add_text(&hash, m->field);
		add_text(&hash, m->where);
		add_number(&hash, m->use);
	}
	snprintf(e->key, sizeof(e->key), "explore:%016llx", (unsigned long long)hash);
}

/* Does a parameter change anything: a command, or which other parameters mean something? */
static bool has_place(const struct trial_experiment *e, const char *name)
{
	const char *const commands[] = {e->prepare, e->start, e->ready, e->command, e->end};
	char place[80];
	size_t i;

	snprintf(place, sizeof(place), "{%s}", name);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i] && strstr(commands[i], place))
			return true;
	}
	for (i = 0; i < e->space->view.parameter_count; i++) {
		if (e->conditions[i] && strstr(e->conditions[i], name))
			return true;
	}
	return false;
}

bool trial_experiment__needs_session(const struct trial_experiment *experiment)
{
	size_t i;

	for (i = 0; i < experiment->metric_count; i++) {
		if (experiment->metrics[i].source == TRIAL_OF_EVENT)
			return true;
	}
	return false;
}

static int finish(struct trial_reader *reader, const struct settings_xml_node *root)
{
	struct trial_experiment *e = reader->experiment;
	struct pem_error why = {.text = ""};
	size_t bytes = 0, most;
	uint32_t i, k;

	for (i = 0; i < e->space->view.parameter_count; i++) {
		if (e->targets[i].way == SETTINGS_PLACE && e->space->parameters[i].levels > 1 &&
		    !has_place(e, e->targets[i].name))
			return settings_xml__refuse(reader->xml, root, NULL, 0,
						    "the parameter '%s' reaches nobody: no command "
						    "has {%s}, and it is given in no other way",
						    e->targets[i].name, e->targets[i].name);
	}
	for (i = 0; i < e->metric_count; i++) {
		if (e->metrics[i].source == TRIAL_OF_MEMORY && trial_experiment__needs_session(e))
			return settings_xml__refuse(
				reader->xml, root, NULL, 0,
				"the metric '%s': memory is not known if an event "
				"is measured beside it: leave one of them out",
				e->metrics[i].name);
	}
	if (!e->objectives)
		return settings_xml__refuse(reader->xml, root, NULL, 0,
					    "no metric has an aim: leave better=\"no\" out of the "
					    "first one");
	trial_space__allow(e->space, trial_reader__allows, e);
	if (trial_space__finish(e->space, NULL, 0, &why))
		return settings_xml__refuse(reader->xml, root, NULL, 0, "%s", why.text);
	if (!e->space->view.count)
		return settings_xml__refuse(reader->xml, root, NULL, 0,
					    "the constraints allow no configuration");
	for (i = 0; i < e->space->view.parameter_count; i++) {
		const struct pem_explore_parameter *p = &e->space->parameters[i];

		for (k = 0, most = 0; k < p->levels; k++) {
			if (strlen(p->values[k]) > most)
				most = strlen(p->values[k]);
		}
		bytes += strlen(p->name) + most + 2;
	}
	if (bytes >= TRIAL_TEXT_BYTES)
		return settings_xml__refuse(reader->xml, root, NULL, 0,
					    "a configuration as text, name=value and so on, would "
					    "have more than %u bytes: shorten names and values",
					    TRIAL_TEXT_BYTES - 1);
	if (e->has_default && !e->space->view.allows(&e->space->view, e->defaults))
		return settings_xml__refuse(reader->xml, root, NULL, 0,
					    "the constraints do not allow the defaults together");
	write_key(e);
	return e->pairs && trial_experiment__pairs(e, &why)
		       ? settings_xml__refuse(reader->xml, root, "pairs", 0, "%s", why.text)
		       : 0;
}

static int read_all(struct trial_reader *reader)
{
	struct trial_experiment *e = reader->experiment;
	const struct settings_xml_node *root = settings_xml__root(reader->xml), *node;
	const char *policy = settings_xml__attribute(root, "policy");
	const char *pairs = settings_xml__attribute(root, "pairs");
	const char *program = settings_xml__attribute(root, "program");
	int rc = trial_reader__copy(reader, &e->name, settings_xml__attribute(root, "name"));

	if (!rc)
		rc = trial_reader__copy(reader, &e->policy, policy ? policy : "portfolio");
	e->seed = count_at(root, "seed", 1);
	e->time_s = seconds_at(root, "time", 0);
	e->trials = count_at(root, "trials", e->time_s > 0 ? 0 : TRIALS);
	e->runs = count_at(root, "runs", 1);
	e->race_runs = count_at(root, "race", 6);
	e->pairs = pairs && !strcmp(pairs, "yes");
	e->names_program = program != NULL;
	if (!rc && program)
		rc = trial_reader__copy(reader, &e->program, program);
	e->has_default = true;
	if (!rc && settings_xml__attribute(root, "trials") && !e->trials)
		rc = settings_xml__refuse(reader->xml, root, "trials", 0,
					  "at least 1 trial is made; without 'trials', %u", TRIALS);
	if (!rc && (!e->runs || e->runs > RUNS_MAX || e->race_runs > RUNS_MAX))
		rc = settings_xml__refuse(reader->xml, root, e->runs ? "race" : "runs", 0,
					  "1 to %u runs of a configuration are possible", RUNS_MAX);
	for (node = settings_xml__first(root); node && !rc; node = settings_xml__next(node)) {
		/* Constraints come after all parameters. */
		if (!strcmp(settings_xml__name(node), "parameter"))
			rc = trial_reader__parameter(reader, node);
	}
	if (!rc)
		rc = trial_reader__conditions(reader, root);
	for (node = settings_xml__first(root); node && !rc; node = settings_xml__next(node)) {
		if (strcmp(settings_xml__name(node), "parameter"))
			rc = read_element(reader, node);
	}
	return rc ? rc : finish(reader, root);
}

int trial_experiment__read(struct trial_experiment *experiment, const char *path,
			   struct pem_error *error)
{
	struct trial_reader reader = {.experiment = experiment, .error = error};
	int rc;

	memset(experiment, 0, sizeof(*experiment));
	experiment->path = strdup(path);
	experiment->space = trial_space__new();
	if (!experiment->path || !experiment->space)
		return trial_reader__no_memory(error);
	rc = settings_xml__open(&reader.xml, path, trial_schema, "exploration.xsd", error);
	if (!rc)
		rc = read_all(&reader);
	settings_xml__close(reader.xml);
	return rc;
}

void trial_experiment__free(struct trial_experiment *e)
{
	char *texts[] = {e->path,  e->name,  e->policy,  e->folder, e->prepare,
			 e->start, e->ready, e->command, e->end,    e->program};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	for (i = 0; i < TRIAL_PARAMETERS_MAX; i++) {
		free((char *)e->targets[i].key);
		free((char *)e->targets[i].in);
		free(e->conditions[i]);
		settings_condition__free(e->when[i]);
	}
	for (i = 0; i < e->constraint_count; i++) {
		settings_condition__free(e->constraints[i][0]);
		settings_condition__free(e->constraints[i][1]);
	}
	for (i = 0; i < e->metric_count; i++) {
		struct trial_measure *m = &e->metrics[i];

		free(m->name);
		free(m->unit);
		free(m->match);
		free(m->event);
		free(m->until);
		free(m->field);
		free(m->where);
	}
	trial_space__free(e->space);
	memset(e, 0, sizeof(*e));
}
