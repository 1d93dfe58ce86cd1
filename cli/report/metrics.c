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

static double value_of(const struct pem_metric_term *term, const void *arg)
{
	const struct report *r = arg;
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

static struct cli_metrics metrics_of(const struct report *r)
{
	return (struct cli_metrics){.model = pem_trace__model(r->trace),
				    .seconds = (double)report__ran_ns(r) / 1e9,
				    .value = value_of,
				    .arg = r};
}

void report_metrics__print(const struct report *r)
{
	struct cli_metrics metrics = metrics_of(r);
	struct cli_table *table = cli_metrics__table(&metrics, stdout);

	if (table == NULL)
		return;
	report__heading("Metrics");
	cli_table__print(table);
}

struct json_object *report_metrics__json(const struct report *r)
{
	struct cli_metrics metrics = metrics_of(r);

	return cli_metrics__json(&metrics);
}
