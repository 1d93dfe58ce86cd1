// SPDX-License-Identifier: MIT
/*
 * metrics.c - the metrics that specs declare, of the whole trace
 *
 * Times between events, and metrics by phase, are those of cli/compare.
 */
#include "report.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

static const struct report_event *event_of(const struct report *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->event_count; i++)
		if (strcmp(r->events[i].event->name, name) == 0)
			return &r->events[i];
	return NULL;
}

/* What a term came to. NAN: it is unknown. */
static double value_of(const struct report *r, const struct pem_metric_term *term)
{
	const struct report_event *e = event_of(r, term->event);

	if (e == NULL || report__is_partial(r, e))
		return NAN;
	if (*term->field == '\0')
		return (double)e->count;
	if (e->value == VALUE_NONE || strcmp(e->event->fields[e->field].name, term->field) != 0 ||
	    (e->value == VALUE_LAST && e->event->meaning != PEM_MEANS_COUNTER))
		return NAN;
	return e->event->fields[e->field].type >= PEM_TYPE_FLOAT32 || e->value == VALUE_SUM
		       ? e->total_f
		       : (double)e->total;
}

static double metric_value(const struct report *r, const struct pem_metric *m)
{
	double of = value_of(r, &m->of), to = 0;

	if (m->form == PEM_METRIC_RATE)
		to = (double)report__ran_ns(r) / 1e9;
	else if (m->form != PEM_METRIC_BETWEEN)
		to = value_of(r, &m->to);
	if (m->form == PEM_METRIC_DIFFERENCE)
		return of - to;
	return m->form != PEM_METRIC_BETWEEN && to > 0 ? of / to : NAN;
}

void report_metrics__print(const struct report *r)
{
	const struct pem_model *model = pem_trace__model(r->trace);
	struct cli_table *table = NULL;
	size_t i;

	for (i = 0; i < pem_model__metric_count(model); i++) {
		const struct pem_metric *m = pem_model__metric(model, i);
		double value = metric_value(r, m);

		if (isnan(value))
			continue;
		if (table == NULL) {
			table = cli_table__new(stdout);
			cli_table__column(table, "METRIC", CLI_LEFT);
			cli_table__column(table, "VALUE", CLI_RIGHT);
			cli_table__column(table, "", CLI_LEFT);
		}
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, m->name);
		cli_table__cell(table, cli_decimal(value));
		cli_table__cell(table, cli_format("%.40s%s", m->unit,
						  m->form == PEM_METRIC_RATE ? "/s" : ""));
	}
	if (table == NULL)
		return;
	report__heading("Metrics");
	cli_table__print(table);
}

struct json_object *report_metrics__json(const struct report *r)
{
	const struct pem_model *model = pem_trace__model(r->trace);
	struct json_object *array = json_object_new_array(), *entry;
	size_t i;

	for (i = 0; i < pem_model__metric_count(model); i++) {
		const struct pem_metric *m = pem_model__metric(model, i);
		double value = metric_value(r, m);

		if (isnan(value))
			continue;
		entry = json_object_new_object();
		cli_json__text(entry, "metric", m->name);
		json_object_object_add(entry, "value", json_object_new_double(value));
		cli_json__text(entry, "unit", m->unit);
		cli_json__text(entry, "description", m->description);
		json_object_array_add(array, entry);
	}
	return array;
}
