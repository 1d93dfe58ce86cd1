// SPDX-License-Identifier: MIT
/*
 * json.c - pem report for programs
 */
#include "report.h"

#include <pem/context.h>

#include <stdlib.h>

static struct json_object *balance_json(const struct pem_balance *b)
{
	struct json_object *object = json_object_new_object();

	cli_json__count(object, "produced", b->produced);
	cli_json__count(object, "delivered", b->delivered);
	cli_json__count(object, "discarded", b->discarded);
	cli_json__count(object, "overwritten", b->overwritten);
	return object;
}

/* Add counts per second if the trace has a length. */
static void add_rate(struct json_object *object, const struct report *r, uint64_t count)
{
	cli_json__real(object, "rate",
		       r->duration_ns != 0 ? (double)count * 1e9 / (double)r->duration_ns : 0);
}

static struct json_object *by_layer_json(const struct report *r, const uint64_t *by_layer)
{
	struct json_object *object = json_object_new_object();
	unsigned int layer;

	for (layer = 0; layer < LAYERS; layer++)
		if (r->layer_count[layer] != 0)
			cli_json__count(object, report_layers[layer], by_layer[layer]);
	return object;
}

static struct json_object *layers_json(const struct report *r)
{
	struct json_object *object = json_object_new_object();
	unsigned int layer;

	for (layer = 0; layer < LAYERS; layer++) {
		struct json_object *entry;

		if (r->layer_count[layer] == 0)
			continue;
		entry = json_object_new_object();
		cli_json__count(entry, "count", r->layer_count[layer]);
		add_rate(entry, r, r->layer_count[layer]);
		json_object_object_add(object, report_layers[layer], entry);
	}
	return object;
}

static void threads_json(const struct report *r, const struct report_process *p,
			 struct cli_json_stream *json)
{
	uint32_t i, at = p->first_thread;

	cli_json_stream__open(json, "threads", '[');
	for (i = 0; i < p->threads; i++, at = r->threads[at].next) {
		struct json_object *entry = json_object_new_object();

		cli_json__count(entry, "tid", r->threads[at].tid);
		cli_json__text(entry, "name", r->threads[at].name);
		cli_json__count(entry, "count", r->threads[at].count);
		json_object_object_add(entry, "layers", by_layer_json(r, r->threads[at].by_layer));
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
}

/* What is known of where a process comes from. */
static void origin_json(struct json_object *entry, const struct pem_pass_process *process)
{
	if (process == NULL)
		return;
	if (process->arguments[0] != '\0')
		cli_json__text(entry, "arguments", process->arguments);
	if (process->parent != NULL)
		cli_json__count(entry, "parent", process->parent->pid);
	if (process->start_ns != PEM_TIME_UNKNOWN)
		cli_json__count(entry, "start_ns", process->start_ns);
	if (process->end_ns != PEM_TIME_UNKNOWN)
		cli_json__count(entry, "end_ns", process->end_ns);
}

static void processes_json(const struct report *r, struct cli_json_stream *json)
{
	size_t i;

	cli_json_stream__open(json, "processes", '[');
	for (i = 0; i < r->process_count; i++) {
		const struct report_process *p = &r->processes[i];
		struct json_object *entry = json_object_new_object();

		cli_json__count(entry, "pid", p->pid);
		cli_json__text(entry, "name", p->name);
		origin_json(entry, p->process);
		cli_json__count(entry, "count", p->count);
		json_object_object_add(entry, "layers", by_layer_json(r, p->by_layer));
		cli_json_stream__open(json, NULL, '{');
		cli_json_stream__add_members(json, entry);
		threads_json(r, p, json);
		cli_json_stream__close(json, '}');
	}
	cli_json_stream__close(json, ']');
}

static void phases_json(const struct report *r, struct cli_json_stream *json)
{
	size_t i, e;

	cli_json_stream__open(json, "phases", '[');
	for (i = 0; i < r->phase_count; i++) {
		const struct report_phase *p = &r->phases[i];
		struct json_object *entry, *events;

		entry = json_object_new_object();
		events = json_object_new_object();
		cli_json__text(entry, "name", p->name);
		cli_json__count(entry, "times", p->times);
		cli_json__count(entry, "unfinished", p->unfinished);
		cli_json__count(entry, "begin_ns", p->first_ns);
		cli_json__count(entry, "duration_ns", p->total_ns);
		cli_json__count(entry, "shortest_ns", p->least_ns);
		cli_percentiles__json(&p->sketch, &p->most_ns, "_ns", entry);
		cli_json__count(entry, "longest_ns", p->most_ns);
		for (e = 0; e < p->counted; e++)
			if (p->inside[e].count != 0)
				cli_json__count(events, r->events[r->occurred[e]].event->name,
						p->inside[e].count);
		if (p->is_partial)
			cli_json__flag(entry, "partial", true);
		json_object_object_add(entry, "events", events);
		json_object_object_add(entry, "metrics", report_metrics__json(r, p));
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
}

static void add_value(struct json_object *object, const struct report *r,
		      const struct report_event *e)
{
	struct cli_estimate estimate = report__estimate(r, e);
	const struct pem_field *field;
	const char *key = e->value == VALUE_SUM ? "sum" : "last";

	if (e->value == VALUE_NONE || e->count == 0)
		return;
	field = &e->event->fields[e->field];
	cli_json__text(object, "field", field->name);
	cli_json__text(object, "unit", field->unit);
	if (field->type == PEM_TYPE_FLOAT32 || field->type == PEM_TYPE_FLOAT64)
		cli_json__real(object, key, e->total_f);
	else if (field->type >= PEM_TYPE_INT8 && field->type <= PEM_TYPE_INT64)
		json_object_object_add(object, key, json_object_new_int64((int64_t)e->total));
	else
		cli_json__count(object, key, e->total);
	cli_estimate__json(object, &estimate);
	if (e->overflowed)
		cli_json__flag(object, "overflowed", true);
	if (e->value == VALUE_SUM && e->summed != 0)
		cli_json__real(object, "mean", e->total_f / (double)e->summed);
	cli_percentiles__json(&e->sketch, NULL, "", object);
	if (e->value == VALUE_SUM && e->result >= 0)
		cli_json__count(object, "failed", e->failed);
}

static struct json_object *per_event_json(const struct report *r)
{
	struct json_object *array = json_object_new_array();
	size_t i, *order = report__order(r);

	for (i = 0; order != NULL && i < r->event_count; i++) {
		const struct report_event *e = &r->events[order[i]];
		struct json_object *entry;

		if (e->count == 0 && e->balance.produced == 0)
			continue;
		entry = json_object_new_object();
		cli_json__text(entry, "name", e->event->name);
		cli_json__count(entry, "version", e->event->version);
		cli_json__text(entry, "layer", e->event->layer);
		cli_json__count(entry, "count", e->count);
		add_rate(entry, r, e->count);
		if (e->markers != 0)
			cli_json__count(entry, "markers", e->markers);
		add_value(entry, r, e);
		if (report__is_context(r, e))
			cli_json__flag(entry, "context", true);
		json_object_object_add(entry, "balance", balance_json(&e->balance));
		json_object_array_add(array, entry);
	}
	free(order);
	return array;
}

static struct json_object *gaps_json(const struct report *r)
{
	struct json_object *array = json_object_new_array();
	uint32_t i;

	for (i = 0; i < r->info->gap_count; i++) {
		struct json_object *entry = json_object_new_object();

		cli_json__text(entry, "source", r->info->gaps[i].source);
		cli_json__text(entry, "reason", r->info->gaps[i].reason);
		json_object_array_add(array, entry);
	}
	return array;
}

static struct json_object *predicates_json(const struct report *r)
{
	struct json_object *array = json_object_new_array();
	uint32_t i;

	for (i = 0; i < r->info->predicate_count; i++) {
		struct json_object *entry = json_object_new_object();

		cli_json__text(entry, "event", r->info->predicates[i].event);
		cli_json__text(entry, "where", r->info->predicates[i].text);
		json_object_array_add(array, entry);
	}
	return array;
}

static struct json_object *info_json(const struct report *r)
{
	const struct pem_trace_info *info = r->info;
	struct json_object *object = json_object_new_object();

	cli_json__text(object, "command", info->command);
	cli_json__text(object, "host", info->host);
	cli_json__text(object, "version", info->version);
	cli_json__count(object, "start_time_ns", info->start_time_ns);
	cli_json__count(object, "duration_ns", r->duration_ns);
	cli_json__count(object, "ran_ns", report__ran_ns(r));
	if (*info->snapshot != '\0')
		cli_json__text(object, "snapshot", info->snapshot);
	if (*report_path__sentence(r) != '\0')
		cli_json__text(object, "mostly", report_path__sentence(r));
	/* Every percentile in this object is at most this share of itself off. */
	cli_json__real(object, "percentile_error", PEM_SKETCH_ERROR);
	cli_json__count(object, "clock_hz", info->clock_hz);
	cli_json__count(object, "clock_error_ns", info->clock_error_ns);
	if (info->coarse_late_ns)
		cli_json__count(object, "coarse_late_ns", info->coarse_late_ns);
	if (info->exit_status >= 0)
		cli_json__count(object, "exit_status", (uint64_t)info->exit_status);
	else
		json_object_object_add(object, "exit_status", NULL);
	cli_json__flag(object, "complete", info->complete != 0);
	cli_json__flag(object, "balanced", r->balanced);
	cli_json__text(object, "verdict", report__verdict(r));
	cli_json__count(object, "read", r->read);
	cli_json__count(object, "torn_packets", pem_trace__torn_packets(r->trace));
	cli_json__count(object, "damaged_places", r->damaged);
	return object;
}

void report__print_json(const struct report *r)
{
	struct cli_json_stream json = {.out = stdout};

	cli_json_stream__open(&json, NULL, '{');
	cli_json_stream__add(&json, "events", balance_json(&r->total));
	cli_json_stream__add(&json, "layers", layers_json(r));
	processes_json(r, &json);
	phases_json(r, &json);
	cli_json_stream__add(&json, "per_event", per_event_json(r));
	if (r->sites != NULL) {
		report_sites__json(r, &json);
		report_functions__json(r, &json);
		report_stacks__json(r, &json);
	}
	if (r->data != NULL)
		report_data__json(r, &json);
	cli_json_stream__add(&json, "metrics", report_metrics__json(r, NULL));
	report_times__json(r, &json);
	report_calls__json(r, &json);
	report_page_samples__json(r, &json);
	report_counted__json(r, &json);
	cli_json_stream__add(&json, "cost", report_cost__json(r));
	report_detail__json(r, &json);
	cli_json_stream__add(&json, "predicates", predicates_json(r));
	cli_json_stream__add(&json, "gaps", gaps_json(r));
	cli_json_stream__add(&json, "info", info_json(r));
	cli_json_stream__close(&json, '}');
}
