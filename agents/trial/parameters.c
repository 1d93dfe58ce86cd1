/* SPDX-License-Identifier: MIT */
/* parameters.c - parameters, constraints and conditions of an experiment's document */
#include "trial/document.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 4096u

/* --- values --- */

struct values {
	char *text; /* that the values lie in, apart by NUL */
	const char *value[VALUES_MAX];
	size_t count;
};

/* "1 2 4" */
static int split_values(struct trial_reader *reader, const struct settings_xml_node *node,
			struct values *values, const char *text)
{
	char *word, *rest;

	values->text = strdup(text);
	if (!values->text)
		return trial_reader__no_memory(reader->error);
	for (word = strtok_r(values->text, " \t\r\n", &rest); word;
	     word = strtok_r(NULL, " \t\r\n", &rest)) {
		if (values->count == VALUES_MAX)
			return settings_xml__refuse(reader->xml, node, "values", 0,
						    "a parameter has at most %u values",
						    VALUES_MAX);
		values->value[values->count++] = word;
	}
	return values->count ? 0
			     : settings_xml__refuse(reader->xml, node, "values", 0,
						    "values are missing: values=\"1 2 4\"");
}

/* from="1" to="8" step="1", or factor="2" */
static int make_values(struct trial_reader *reader, const struct settings_xml_node *node,
		       struct values *values)
{
	const char *from = settings_xml__attribute(node, "from");
	const char *to = settings_xml__attribute(node, "to");
	const char *step = settings_xml__attribute(node, "step");
	const char *factor = settings_xml__attribute(node, "factor");
	double first = from ? strtod(from, NULL) : NAN, last = to ? strtod(to, NULL) : NAN;
	double by = strtod(factor ? factor : step ? step : "1", NULL), value;
	size_t used = 0, i;

	if (!isfinite(first) || !isfinite(last) || first > last || (step && factor))
		return settings_xml__refuse(reader->xml, node, NULL, 0,
					    "a range has from, to, and step or factor: from=\"1\" "
					    "to=\"8\" step=\"1\", or factor=\"2\"");
	if (!isfinite(by) || by <= (factor ? 1 : 0) || (factor && first <= 0))
		return settings_xml__refuse(
			reader->xml, node, factor ? "factor" : "step", 0,
			"a step is greater than 0, a factor greater than 1, and "
			"a range with a factor begins above 0");
	values->text = malloc((size_t)VALUES_MAX * 32);
	if (!values->text)
		return trial_reader__no_memory(reader->error);
	for (i = 0;; i++) {
		value = factor ? first * pow(by, (double)i) : first + (double)i * by;
		/* What rounding adds to the last value does not leave it out. */
		if (value > last + (factor ? fabs(last) : by) * 1e-9)
			return 0;
		if (!factor && fabs(value) < by * 1e-9)
			value = 0;
		if (i == VALUES_MAX)
			return settings_xml__refuse(reader->xml, node, "to", 0,
						    "a parameter has at most %u values",
						    VALUES_MAX);
		values->value[values->count++] = values->text + used;
		used += (size_t)snprintf(values->text + used, 32, "%.12g", value) + 1;
	}
}

static int find_values(struct trial_reader *reader, const struct settings_xml_node *node,
		       struct values *values)
{
	const char *text = settings_xml__attribute(node, "values");
	bool has_range =
		settings_xml__attribute(node, "from") || settings_xml__attribute(node, "to");

	if (text && has_range)
		return settings_xml__refuse(reader->xml, node, "values", 0,
					    "a parameter has values, or from and to; not both");
	if (has_range)
		return make_values(reader, node, values);
	return split_values(reader, node, values, text ? text : "off on");
}

static const struct {
	const char *attribute;
	enum settings_way way;
	const char *in; /* which other attribute it needs, or NULL */
} ways[] = {
	{"argument", SETTINGS_ARGUMENT, NULL}, {"environment", SETTINGS_ENVIRONMENT, NULL},
	{"file", SETTINGS_FILE, "key"},        {"pragma", SETTINGS_PRAGMA, "in"},
	{"postgres", SETTINGS_POSTGRES, "in"}, {"redis", SETTINGS_REDIS, "in"},
	{"sysctl", SETTINGS_SYSCTL, NULL},     {"cgroup", SETTINGS_CGROUP, NULL},
	{"program", SETTINGS_PROGRAM, NULL},
};

static int read_target(struct trial_reader *reader, const struct settings_xml_node *node,
		       struct settings_target *target)
{
	const char *key, *in, *found = NULL;
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < sizeof(ways) / sizeof(ways[0]); i++) {
		key = settings_xml__attribute(node, ways[i].attribute);
		if (!key)
			continue;
		if (found)
			return settings_xml__refuse(reader->xml, node, ways[i].attribute, 0,
						    "a parameter is given in one way: by '%s' or "
						    "by '%s'",
						    found, ways[i].attribute);
		found = ways[i].attribute;
		in = ways[i].in ? settings_xml__attribute(node, ways[i].in) : NULL;
		if (ways[i].in && !in)
			return settings_xml__refuse(reader->xml, node, found, 0,
						    "with '%s', '%s' has to say where", found,
						    ways[i].in);
		target->way = ways[i].way;
		/* A file is where the key is; of the other ways the attribute is the key. */
		rc = trial_reader__copy(reader, (char **)&target->key,
					ways[i].way == SETTINGS_FILE ? in : key);
		if (!rc)
			rc = trial_reader__copy(reader, (char **)&target->in,
						ways[i].way == SETTINGS_FILE ? key : in);
	}
	return rc;
}

/* Words that are there or not are for a parameter that is on or off. */
static int check_argument(struct trial_reader *reader, const struct settings_xml_node *node,
			  uint32_t index)
{
	const struct settings_target *target = &reader->experiment->targets[index];
	const struct pem_explore_parameter *p = &reader->experiment->space->parameters[index];

	if (target->way != SETTINGS_ARGUMENT || strstr(target->key, "{}") ||
	    (p->levels == 2 && !strcmp(p->values[0], "off") && !strcmp(p->values[1], "on")))
		return 0;
	return settings_xml__refuse(
		reader->xml, node, "argument", 0,
		"{} is missing, where the value goes: argument=\"%.40s {}\"; only "
		"a parameter with the values off and on needs none",
		target->key);
}

/* The level that an attribute names. */
static int read_default(struct trial_reader *reader, const struct settings_xml_node *node,
			uint32_t index)
{
	const struct pem_explore_parameter *p = &reader->experiment->space->parameters[index];
	const char *text = settings_xml__attribute(node, "default");
	uint32_t i;

	if (!text) {
		reader->experiment->has_default = false;
		return 0;
	}
	for (i = 0; i < p->levels; i++) {
		if (!strcmp(p->values[i], text)) {
			reader->experiment->defaults[index] = i;
			return 0;
		}
	}
	return settings_xml__refuse(reader->xml, node, "default", 0,
				    "'%.60s' is not one of the values of '%.60s'", text, p->name);
}

int trial_reader__parameter(struct trial_reader *reader, const struct settings_xml_node *node)
{
	struct trial_space *space = reader->experiment->space;
	const char *name = settings_xml__attribute(node, "name");
	uint32_t index = space->view.parameter_count, i;
	struct values *values = calloc(1, sizeof(*values));
	bool is_log = settings_xml__attribute(node, "factor");
	struct pem_error why = {.text = ""};
	int rc = values ? 0 : trial_reader__no_memory(reader->error);

	for (i = 0; !rc && i < index; i++) {
		if (!strcmp(space->parameters[i].name, name))
			rc = settings_xml__refuse(reader->xml, node, "name", 0,
						  "there are two parameters '%s'", name);
	}
	if (!rc && !strcmp(name, "scratch"))
		rc = settings_xml__refuse(reader->xml, node, "name", 0,
					  "{scratch} is the folder of a run: choose another name");
	/* One more is the machine, if trials of several kinds are known. */
	if (!rc && index + 1 == TRIAL_PARAMETERS_MAX)
		rc = settings_xml__refuse(reader->xml, node, NULL, 0,
					  "there are more than %u parameters",
					  TRIAL_PARAMETERS_MAX - 1);
	if (!rc)
		rc = find_values(reader, node, values);
	if (!rc) {
		rc = trial_space__add(space, name, values->value, values->count, is_log, NULL,
				      &why);
		if (rc)
			settings_xml__refuse(reader->xml, node, "values", 0, "%s", why.text);
	}
	if (!rc) {
		reader->experiment->targets[index].name = space->parameters[index].name;
		rc = read_target(reader, node, &reader->experiment->targets[index]);
	}
	if (!rc)
		rc = check_argument(reader, node, index);
	if (!rc)
		rc = read_default(reader, node, index);
	if (values)
		free(values->text);
	free(values);
	return rc;
}

static int read_condition(struct trial_reader *reader, const struct settings_xml_node *node,
			  const char *attribute, struct settings_condition **condition)
{
	const char *text = settings_xml__attribute(node, attribute);
	struct pem_error why = {.text = ""};
	size_t at = 0;

	if (!text)
		return 0;
	*condition = settings_condition__parse(text, &reader->experiment->space->view, &at, &why);
	return *condition ? 0
			  : settings_xml__refuse(reader->xml, node, attribute, at, "%s", why.text);
}

int trial_reader__constraint(struct trial_reader *reader, const struct settings_xml_node *node)
{
	struct settings_condition **both =
		reader->experiment->constraints[reader->experiment->constraint_count++];
	int rc = read_condition(reader, node, "if", &both[0]);

	return rc ? rc : read_condition(reader, node, "then", &both[1]);
}

/* Conditions may name parameters that come later. */
int trial_reader__conditions(struct trial_reader *reader, const struct settings_xml_node *root)
{
	const struct settings_xml_node *node;
	uint32_t i = 0;
	int rc = 0;

	for (node = settings_xml__first(root); node && !rc; node = settings_xml__next(node)) {
		if (strcmp(settings_xml__name(node), "parameter"))
			continue;
		rc = read_condition(reader, node, "when", &reader->experiment->when[i]);
		if (!rc)
			rc = trial_reader__copy(reader, &reader->experiment->conditions[i],
						settings_xml__attribute(node, "when"));
		i++;
	}
	return rc;
}

/* Which parameters mean something in a configuration. */
static void find_meaning(const struct trial_experiment *e, const uint32_t *levels,
			 bool *means_something)
{
	uint32_t count = e->space->view.parameter_count, i, changed = 1, round;

	for (i = 0; i < count; i++)
		means_something[i] = true;
	/* One may depend on another that depends on a third; a circle ends after count rounds. */
	for (round = 0; changed && round < count; round++) {
		for (changed = i = 0; i < count; i++) {
			if (!means_something[i] || !e->when[i] ||
			    settings_condition__holds(e->when[i], &e->space->view, levels,
						      means_something))
				continue;
			means_something[i] = false;
			changed = 1;
		}
	}
}

void trial_experiment__values(const struct trial_experiment *e, const uint32_t *levels,
			      const char **values)
{
	bool means_something[TRIAL_PARAMETERS_MAX];
	uint32_t i;

	find_meaning(e, levels, means_something);
	for (i = 0; i < e->space->view.parameter_count; i++)
		values[i] = means_something[i] ? e->space->parameters[i].values[levels[i]] : NULL;
}

/* Is a configuration allowed? Levels that mean nothing become 0. */
bool trial_reader__allows(void *arg, uint32_t *levels)
{
	const struct trial_experiment *e = arg;
	bool means_something[TRIAL_PARAMETERS_MAX];
	size_t i;

	find_meaning(e, levels, means_something);
	for (i = 0; i < e->space->view.parameter_count; i++) {
		if (!means_something[i])
			levels[i] = 0;
	}
	for (i = 0; i < e->constraint_count; i++) {
		if ((!e->constraints[i][0] ||
		     settings_condition__holds(e->constraints[i][0], &e->space->view, levels,
					       means_something)) &&
		    !settings_condition__holds(e->constraints[i][1], &e->space->view, levels,
					       means_something))
			return false;
	}
	return true;
}
