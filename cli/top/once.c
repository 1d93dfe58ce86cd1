// SPDX-License-Identifier: MIT
/*
 * once.c - one interval of pem top, as a table or an object
 */
#include "top.h"

#include <string.h>

static void print_view(const struct top *top, const struct top_view *view, const char *title)
{
	struct cli_table *table = cli_table__new(stdout);
	struct top_rows rows = {0};
	size_t i;

	cli_table__column(table, title, CLI_LEFT);
	if (view->by == TOP_BY_PROCESS) {
		cli_table__column(table, "PID", CLI_RIGHT);
		cli_table__column(table, "THREADS", CLI_RIGHT);
	}
	cli_table__column(table, "RATE", CLI_RIGHT);
	cli_table__column(table, "COUNT", CLI_RIGHT);
	cli_table__column(table, "SUM/S", CLI_RIGHT);
	cli_table__column(table, "MEAN", CLI_RIGHT);
	top_rows__make(top, view, &rows);
	for (i = 0; i < rows.count; i++) {
		const struct top_row *row = &rows.rows[i];

		cli_table__row(table, row->is_layer ? CLI_BOLD : CLI_PLAIN);
		cli_table__cell(table,
				cli_format("%s%s",
					   view->by == TOP_BY_EVENT && !row->is_layer ? "  " : "",
					   top_name(top, row)));
		if (view->by == TOP_BY_PROCESS) {
			cli_table__cell(table, row->pid != 0 && row->pid != TOP_ENDED
						       ? cli_format("%u", row->pid)
						       : "");
			cli_table__cell(table,
					row->threads != 0 ? cli_format("%u", row->threads) : "");
		}
		cli_table__cell(table, top_rate(top, row));
		cli_table__cell(table, top_total(top, row));
		cli_table__cell(table, top_sum_rate(top, row));
		cli_table__cell(table, top_mean(top, row));
	}
	cli_table__print(table);
	top_rows__free(&rows);
}

static void add_numbers(const struct top *top, const struct top_row *row,
			struct json_object *object)
{
	cli_json__count(object, "count", row->total);
	cli_json__real(object, "rate_hz", row->rate);
	if (row->event != TOP_NONE && top->events[row->event].is_estimate)
		cli_json__flag(object, "estimate", true);
	if (row->event != TOP_NONE && top->events[row->event].field >= 0) {
		const struct top_event *e = &top->events[row->event];

		cli_json__text(object, "field", e->event->fields[e->field].name);
		cli_json__text(object, "unit", top_unit(e));
		cli_json__real(object, "sum", row->sum);
		cli_json__real(object, "mean", row->mean);
	}
}

static struct json_object *threads_json(const struct top *top, uint32_t event)
{
	struct json_object *threads = json_object_new_array();
	struct top_view view = {TOP_BY_THREAD, event, TOP_NONE, TOP_NONE};
	struct top_rows rows = {0};
	size_t i;

	top_rows__make(top, &view, &rows);
	for (i = 0; i < rows.count; i++) {
		const struct top_row *row = &rows.rows[i];
		struct json_object *object = json_object_new_object();

		cli_json__count(object, "pid", row->pid != TOP_ENDED ? row->pid : 0);
		cli_json__count(object, "tid", row->tid);
		if (row->pid == 0 && row->cpu != PEM_NO_CPU)
			cli_json__count(object, "cpu", row->cpu);
		cli_json__text(object, "program", row->program);
		add_numbers(top, row, object);
		json_object_array_add(threads, object);
	}
	top_rows__free(&rows);
	return threads;
}

static void print_json(const struct top *top)
{
	struct json_object *object = json_object_new_object();
	struct json_object *events = json_object_new_array();
	struct top_view view = {TOP_BY_EVENT, TOP_NONE, TOP_NONE, TOP_NONE};
	struct top_rows rows = {0};
	size_t i;

	top_rows__make(top, &view, &rows);
	cli_json__text(object, "target", top->target);
	cli_json__count(object, "interval_ns", top__interval_ns(top));
	for (i = 0; i < rows.count; i++) {
		const struct top_row *row = &rows.rows[i];
		struct json_object *one;

		if (row->is_layer)
			continue;
		one = json_object_new_object();
		cli_json__text(one, "name", top->events[row->event].event->name);
		cli_json__text(one, "layer", top_layers[row->layer]);
		add_numbers(top, row, one);
		json_object_object_add(one, "threads", threads_json(top, row->event));
		json_object_array_add(events, one);
	}
	json_object_object_add(object, "events", events);
	cli_json__print(object, stdout, false);
	top_rows__free(&rows);
}

void top_once__print(const struct top *top, bool json)
{
	static const struct top_view events = {TOP_BY_EVENT, TOP_NONE, TOP_NONE, TOP_NONE};
	static const struct top_view processes = {TOP_BY_PROCESS, TOP_NONE, TOP_NONE, TOP_NONE};
	const char *why = top_why_empty(top);

	if (why != NULL)
		cli_say("nothing was counted: %s", why);
	if (json) {
		print_json(top);
		return;
	}
	printf("%s: %s\n\n", top->target, cli_duration(top__interval_ns(top)));
	print_view(top, &events, "EVENT");
	printf("\n");
	print_view(top, &processes, "PROCESS");
}
