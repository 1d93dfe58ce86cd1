/* SPDX-License-Identifier: MIT */
/* metric.c - checks metrics: names, and that what they are made of exists and can be counted */
#include "catalogue.h"
#include "check.h"

#include "metric_sum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Find an event of the set by its name, which has this number of bytes. */
static const struct pem_spec_event *find_event(const struct pem_spec_set *set, const char *event,
					       size_t bytes)
{
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		for (k = 0; k < set->specs[i].event_count; k++) {
			const char *name = set->specs[i].events[k].name;

			if (name && strlen(name) == bytes && !memcmp(name, event, bytes))
				return &set->specs[i].events[k];
		}
	}
	return NULL;
}

/* Only a field of role 'size' or 'value' is an amount that every reader sums. */
static int is_amount(const struct pem_spec_field *field)
{
	return (field->role == PEM_ROLE_SIZE || field->role == PEM_ROLE_VALUE) &&
	       pem_type__size(field->type);
}

static const struct pem_spec_field *field_of(const struct pem_spec_event *event, const char *name)
{
	size_t i;

	for (i = 0; i < event->field_count; i++)
		if (event->fields[i].name && !strcmp(event->fields[i].name, name))
			return &event->fields[i];
	return NULL;
}

/* Not of a set that is a part: readers of traces find the events. */
static void no_event(const struct check *c, const struct pem_spec_metric *metric,
		     const char *attribute, const char *term, size_t bytes)
{
	char *name = pem_xprintf("%.*s", (int)bytes, term), *meant;
	struct pem_suggestion near = {.meant = name};
	size_t i, k;

	for (i = 0; i < c->set->count; i++) {
		if (c->set->is_part || c->set->specs[i].is_damaged)
			goto out;
		for (k = 0; k < c->set->specs[i].event_count; k++)
			pem_suggestion__try(&near, c->set->specs[i].events[k].name,
					    strlen(c->set->specs[i].events[k].name));
	}
	pem_catalogue__suggest(&near);
	meant = pem_suggestion__text(&near, "'", "'");
	ERROR(c, metric->at,
	      "%s='%s' of metric '%s': neither the specs given nor pem's catalogue have an event "
	      "'%s': expected the name of one, or its spec beside this one%s",
	      attribute, term, metric->name, name, meant);
	free(meant);
out:
	free(name);
}

static void check_term(const struct check *c, const struct pem_spec_metric *metric,
		       const char *attribute, const char *term)
{
	const char *point = strchr(term, '.');
	size_t bytes = strcspn(term, "."), i;
	const struct pem_spec_event *event = find_event(c->set, term, bytes);
	const struct pem_spec_field *field;

	if (!event)
		event = pem_catalogue__find(term, bytes);
	if (!event)
		no_event(c, metric, attribute, term, bytes);
	if (!event || !point)
		return;
	field = field_of(event, point + 1);
	if (!field) {
		ERROR(c, metric->at, "%s='%s': the event has no field of this name", attribute,
		      term);
		return;
	}
	if (!is_amount(field)) {
		ERROR(c, metric->at,
		      "%s='%s': the field is no amount: expected one of role 'size' or 'value' "
		      "that is a number",
		      attribute, term);
		return;
	}
	if (field->role == PEM_ROLE_SIZE)
		return;
	for (i = 0; i < event->field_count; i++)
		if (event->fields[i].role == PEM_ROLE_SIZE)
			ERROR(c, metric->at,
			      "%s='%s': the event has a size, and no other field of it is "
			      "summed: expected '%s'",
			      attribute, term, event->fields[i].name);
}

/* A sum of a quotient: its terms and their number. Returns how many there are. */
static unsigned check_sum(const struct check *c, const struct pem_spec_metric *metric,
			  const char *attribute, const char *sum)
{
	struct pem_metric_sum_term term;
	unsigned count = 0;
	char name[256]; /* of a longer one the schema complains */
	int rc;

	while ((rc = pem_metric_sum__next(&sum, !count, &term)) == 1) {
		snprintf(name, sizeof(name), "%.*s", (int)term.bytes, term.name);
		check_term(c, metric, attribute, name);
		count++;
	}
	if (rc < 0)
		ERROR(c, metric->at,
		      "%s='' of metric '%s' has no term at '%s': expected an event or a field, "
		      "with a factor of 1 to %d before a '*' or without one",
		      attribute, metric->name, sum, PEM_METRIC_FACTOR_MAX);
	return count;
}

static void check_quotient(const struct check *c, const struct pem_spec_metric *metric)
{
	unsigned count = check_sum(c, metric, "of", metric->of);

	count += check_sum(c, metric, "to", metric->to);
	if (count > PEM_METRIC_PARTS)
		ERROR(c, metric->at, "metric '%s' has %u terms: expected %u at most", metric->name,
		      count, PEM_METRIC_PARTS);
}

/* Is this a sum, and not just a term? */
static int is_sum(const char *text)
{
	return text && strpbrk(text, " +-*") != NULL;
}

static void check_name(const struct check *c, const struct pem_spec_metric *metric)
{
	size_t i;

	for (i = 0; &c->spec->metrics[i] != metric; i++)
		if (c->spec->metrics[i].name && !strcmp(c->spec->metrics[i].name, metric->name))
			ERROR(c, metric->at, "a second metric '%s': expected another name",
			      metric->name);
	if (find_event(c->set, metric->name, strlen(metric->name)))
		ERROR(c, metric->at, "an event has the name '%s', too: expected another one",
		      metric->name);
	if (!metric->description[0])
		WARN(c, metric->at, "metric '%s' has no description: expected what it tells",
		     metric->name);
}

static void check_terms(const struct check *c, const struct pem_spec_metric *metric)
{
	int needs_two = metric->form != PEM_METRIC_RATE;

	if (needs_two != (metric->to != NULL)) {
		ERROR(c, metric->at,
		      needs_two ? "metric '%s' lacks to='': expected what of='' is taken with"
				: "metric '%s' is a rate and has to='': expected of='' alone",
		      metric->name);
		return;
	}
	if (metric->form == PEM_METRIC_BETWEEN &&
	    (strchr(metric->of, '.') || strchr(metric->to, '.'))) {
		ERROR(c, metric->at, "metric '%s' lies between events: expected no fields",
		      metric->name);
		return;
	}
	if (metric->form == PEM_METRIC_QUOTIENT) {
		check_quotient(c, metric);
		return;
	}
	if (is_sum(metric->of) || is_sum(metric->to)) {
		ERROR(c, metric->at, "metric '%s' has a sum: expected form='quotient'",
		      metric->name);
		return;
	}
	check_term(c, metric, "of", metric->of);
	if (metric->to)
		check_term(c, metric, "to", metric->to);
}

void pem_check_metrics(const struct check *c)
{
	size_t i;

	for (i = 0; i < c->spec->metric_count; i++) {
		const struct pem_spec_metric *metric = &c->spec->metrics[i];

		if (metric->is_damaged || !metric->name || !metric->of || !metric->form)
			continue;
		check_name(c, metric);
		check_terms(c, metric);
	}
}
