// SPDX-License-Identifier: MIT
/* metrics.c - the metrics that specs declare, of the whole trace and of each name of phases */
#include "betweens.h"
#include "report.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct report_metrics {
	struct pem_betweens *betweens;
	size_t count;
	/* By the number of the metric in the model. */
	struct {
		const struct report_event *of, *to; /* of its terms; NULL: not in the trace */
		struct pem_sketch times; /* between the two events */
		double total_ns;
	} all[];
};

/* --- collecting --- */

static const struct report_event *event_of(const struct report *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->event_count; i++)
		if (strcmp(r->events[i].event->name, name) == 0)
			return &r->events[i];
	return NULL;
}

struct report_metrics *report_metrics__new(const struct report *r)
{
	const struct pem_model *model = pem_trace__model(r->trace);
	size_t i, count = pem_model__metric_count(model);
	struct report_metrics *m = calloc(1, sizeof(*m) + count * sizeof(m->all[0]));

	if (m == NULL)
		return NULL;
	m->count = count;
	m->betweens = pem_betweens__new(r->trace);
	if (m->betweens == NULL) {
		free(m);
		return NULL;
	}
	for (i = 0; i < count; i++) {
		m->all[i].of = event_of(r, pem_model__metric(model, i)->of.event);
		m->all[i].to = event_of(r, pem_model__metric(model, i)->to.event);
	}
	return m;
}

void report_metrics__free(struct report_metrics *m)
{
	size_t i;

	if (m == NULL)
		return;
	for (i = 0; i < m->count; i++)
		pem_sketch__free(&m->all[i].times);
	pem_betweens__free(m->betweens);
	free(m);
}

static int add_time(void *arg, size_t metric, uint64_t ns)
{
	struct report_metrics *m = arg;

	m->all[metric].total_ns += (double)ns;
	return pem_sketch__add(&m->all[metric].times, (double)ns);
}

int report_metrics__record(struct report_metrics *m, const struct pem_record *record,
			   const struct pem_pass_thread *thread)
{
	return pem_betweens__record(m->betweens, record, thread, add_time, m);
}

/* --- values --- */

/*
 * Was the event counted, so that no record means none? A counter that counts has records. An event
 * of a source that could not record all may not have been recorded.
 */
static bool is_counted(const struct report *r, const struct report_event *e)
{
	if (e->count != 0)
		return true;
	return e->event->meaning != PEM_MEANS_COUNTER &&
	       (e->event->source_kind == PEM_SOURCE_STUB || r->info->gap_count == 0);
}

/* What metrics are of. */
struct scope {
	const struct report *r;
	const struct report_phase *phase; /* NULL: the whole trace */
};

static double value_in_phase(const struct report_phase *phase, const struct report_event *e,
			     bool is_count)
{
	size_t at = e->occurred_at;
	const union report_amount *sum;

	if (phase->is_partial || (phase->is_of_threads && e->threadless != 0))
		return NAN;
	if (at == 0 || at > phase->counted)
		return 0;
	if (is_count)
		return (double)phase->inside[at - 1].count;
	sum = &phase->inside[at - 1].sum;
	return report_event__is_float(e) ? sum->f : (double)sum->i;
}

static double value_of(const struct pem_metric_term *term, size_t metric, const void *arg)
{
	const struct scope *scope = arg;
	const struct pem_metric *m = pem_model__metric(pem_trace__model(scope->r->trace), metric);
	const struct report_event *e;
	bool is_count = *term->field == '\0';

	e = term == &m->of   ? scope->r->metrics->all[metric].of
	    : term == &m->to ? scope->r->metrics->all[metric].to
			     : event_of(scope->r, term->event);
	if (e == NULL || !is_counted(scope->r, e) || report__is_partial(scope->r, e))
		return NAN;
	if (!is_count &&
	    (e->field < 0 || strcmp(e->event->fields[e->field].name, term->field) != 0))
		return NAN;
	if (scope->phase != NULL)
		return value_in_phase(scope->phase, e, is_count);
	if (is_count)
		return (double)e->count;
	if (e->event->meaning != PEM_MEANS_COUNTER)
		return e->sum_f;
	return report_event__is_float(e) ? e->total_f : (double)e->total;
}

static struct cli_estimate estimate_of(const struct pem_metric_term *term, size_t metric,
				       const void *arg)
{
	const struct scope *scope = arg;
	const struct pem_metric *m = pem_model__metric(pem_trace__model(scope->r->trace), metric);
	const struct report_event *e = term == &m->of ? scope->r->metrics->all[metric].of
						      : scope->r->metrics->all[metric].to;

	return e != NULL ? report__estimate(scope->r, e) : (struct cli_estimate){0};
}

static double between(size_t metric, const void *arg)
{
	const struct scope *scope = arg;
	const struct report_metrics *m = scope->r->metrics;

	/* A time may begin in one phase and end in another. */
	if (scope->phase != NULL || m->all[metric].times.count == 0)
		return NAN;
	return m->all[metric].total_ns / (double)m->all[metric].times.count;
}

static const struct pem_sketch *times_of(size_t metric, const void *arg)
{
	const struct scope *scope = arg;

	return &scope->r->metrics->all[metric].times;
}

static struct cli_metrics metrics_of(const struct scope *scope)
{
	uint64_t ns = scope->phase != NULL ? scope->phase->total_ns : report__ran_ns(scope->r);

	return (struct cli_metrics){.model = pem_trace__model(scope->r->trace),
				    .seconds = (double)ns / 1e9,
				    .value = value_of,
				    .between = between,
				    .times = times_of,
				    .estimate = estimate_of,
				    .arg = scope};
}

/* --- showing --- */

void report_metrics__print(const struct report *r)
{
	struct scope scope = {.r = r};
	struct cli_metrics metrics = metrics_of(&scope);
	struct cli_table *table;

	if (!cli_metrics__any(&metrics))
		return;
	table = cli_table__new(stdout);
	cli_metrics__columns(table);
	cli_metrics__rows(&metrics, table, NULL);
	report__heading("Metrics");
	cli_table__print(table);
}

void report_metrics__print_phases(const struct report *r, size_t most)
{
	struct cli_table *table = NULL;
	size_t i;

	for (i = 0; i < r->phase_count && i < most; i++) {
		struct scope scope = {.r = r, .phase = &r->phases[i]};
		struct cli_metrics metrics = metrics_of(&scope);

		if (!cli_metrics__any(&metrics))
			continue;
		if (table == NULL) {
			table = cli_table__new(stdout);
			cli_table__column(table, "PHASE", CLI_CUT);
			cli_metrics__columns(table);
		}
		cli_metrics__rows(&metrics, table, r->phases[i].name);
	}
	if (table == NULL)
		return;
	report__heading("Metrics in phases");
	cli_table__print(table);
}

struct json_object *report_metrics__json(const struct report *r, const struct report_phase *phase)
{
	struct scope scope = {.r = r, .phase = phase};
	struct cli_metrics metrics = metrics_of(&scope);

	return cli_metrics__json(&metrics, phase != NULL);
}
