/* SPDX-License-Identifier: MIT */
/* data_print.c - data structures that samples fell in, as a table and as JSON */
#include "data.h"
#include "sites.h"

#include <json-c/json.h>
#include <string.h>

#define ROWS_MOST 40u

static const char *const kinds[DATA_KINDS] = {
	[DATA_NONE] = "none",         [DATA_UNKNOWN] = "unknown", [DATA_HEAP] = "heap",
	[DATA_VARIABLE] = "variable", [DATA_STACK] = "stack",     [DATA_MAPPING] = "mapping",
};

static const struct pem_code_location *location_of(const struct report_data *d,
						   const struct data_row *row)
{
	return pem_code__location(row->kind == DATA_HEAP ? d->code : d->data, row->location);
}

static const char *path_of(const struct report_data *d, const struct data_row *row)
{
	uint32_t object = location_of(d, row)->object;

	return object != PEM_CODE_NONE ? pem_code__object(d->data, object)->path : "";
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

/* As people know it: "[anon]". */
static const char *mapping_words(const char *path)
{
	return strcmp(path, "//anon") == 0 ? "[anon]" : path;
}

/* The data structure. */
static const char *data_words(const struct report_data *d, const struct data_row *row)
{
	switch (row->kind) {
	case DATA_HEAP:
		return report_site__function(location_of(d, row));
	case DATA_VARIABLE:
		return location_of(d, row)->names[0].function;
	case DATA_STACK:
		if (row->thread != NULL && row->thread->name[0] != '\0')
			return cli_format("stack of thread %u, %s", row->tid, row->thread->name);
		return cli_format("stack of thread %u", row->tid);
	case DATA_MAPPING:
		return mapping_words(path_of(d, row));
	case DATA_NONE:
		return "(no address)";
	default:
		return "(nothing known there)";
	}
}

/* Where it is from: the allocation's line, or the variable's object. */
static const char *from_words(const struct report_data *d, const struct data_row *row)
{
	if (row->kind == DATA_HEAP)
		return report_site__line(d->code, location_of(d, row));
	return row->kind == DATA_VARIABLE ? base_of(path_of(d, row)) : "";
}

static const char *share_words(uint64_t part, uint64_t all)
{
	return cli_format("%.1f %%", all != 0 ? 100.0 * (double)part / (double)all : 0);
}

/* The label of a source, as the trace's specification has it. */
static const char *source_label(const struct report_data *d, unsigned int source)
{
	const char *label = pem_field__label(&d->event->fields[d->source], source);

	return label != NULL ? label : cli_format("%u", source);
}

/* What answered most of the loads. */
static const char *source_words(const struct report_data *d, const struct data_row *row)
{
	unsigned int i, most = 0;
	uint64_t all = 0;

	for (i = 1; i < DATA_SOURCES; i++) {
		all += row->of_source[i];
		if (row->of_source[i] > row->of_source[most])
			most = i;
	}
	return most != 0 ? cli_format("%s %s", source_label(d, most),
				      share_words(row->of_source[most], all))
			 : "";
}

static double latency_of(const struct data_row *row)
{
	return (double)row->latency_sum / (double)row->latency_count;
}

static void print_notes(const struct report_data *d)
{
	uint64_t left_out = pem_code__left_out(d->data);

	if (d->samples == 0)
		cli_wrap(stdout,
			 "The trace has no samples of data (HW::HWPerf::DataSample): pem record "
			 "--mem takes them.",
			 0, 0, cli_width(stdout));
	else if (d->measured == 0)
		cli_wrap(stdout,
			 "Addresses are computed from what instructions do as a timer rings: "
			 "approximate, and without latency and source. man pem-record tells how "
			 "far they are off.",
			 0, 0, cli_width(stdout));
	if (left_out != 0)
		cli_wrap(stdout,
			 cli_format("%s mappings were left out: a process, or all of them, had too "
				    "many",
				    cli_count(left_out)),
			 0, 0, cli_width(stdout));
}

void report_data__print(const struct report *r)
{
	const struct report_data *d = r->data;
	struct cli_table *table = cli_table__new(stdout);
	size_t i;

	report__heading("Data");
	cli_table__column(table, "SAMPLES", CLI_RIGHT);
	cli_table__column(table, "SHARE", CLI_RIGHT);
	cli_table__column(table, "LOADS", CLI_RIGHT);
	cli_table__column(table, "STORES", CLI_RIGHT);
	if (d->measured != 0) {
		cli_table__column(table, "CYCLES", CLI_RIGHT);
		cli_table__column(table, "MOST FROM", CLI_CUT);
	}
	cli_table__column(table, "KIND", CLI_LEFT);
	cli_table__column(table, "DATA", CLI_CUT);
	cli_table__column(table, "FROM", CLI_CUT);
	for (i = 0; i < d->count && i < ROWS_MOST; i++) {
		const struct data_row *row = &d->rows[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_count(row->count));
		cli_table__cell(table, share_words(row->count, d->samples));
		cli_table__cell(table, row->loads != 0 ? cli_count(row->loads) : "");
		cli_table__cell(table, row->stores != 0 ? cli_count(row->stores) : "");
		if (d->measured != 0) {
			cli_table__cell(table, row->latency_count != 0
						       ? cli_format("%.0f", latency_of(row))
						       : "");
			cli_table__cell(table, source_words(d, row));
		}
		cli_table__cell(table, kinds[row->kind]);
		cli_table__cell(table, data_words(d, row));
		cli_table__cell(table, from_words(d, row));
	}
	cli_table__print(table);
	if (d->count > ROWS_MOST)
		printf("and %s more (--json)\n", cli_count(d->count - ROWS_MOST));
	print_notes(d);
}

static void measured_json(struct json_object *entry, const struct report_data *d,
			  const struct data_row *row)
{
	struct json_object *sources = json_object_new_object();
	unsigned int i;

	if (row->latency_count != 0)
		cli_json__real(entry, "latency_cycles", latency_of(row));
	for (i = 1; i < DATA_SOURCES; i++)
		if (row->of_source[i] != 0)
			cli_json__count(sources, source_label(d, i), row->of_source[i]);
	json_object_object_add(entry, "sources", sources);
}

static struct json_object *row_json(const struct report *r, const struct data_row *row)
{
	const struct report_data *d = r->data;
	struct json_object *entry = json_object_new_object();

	cli_json__text(entry, "kind", kinds[row->kind]);
	cli_json__text(entry, "data", data_words(d, row));
	cli_json__text(entry, "from", from_words(d, row));
	if (row->kind == DATA_HEAP && row->event < r->event_count)
		cli_json__text(entry, "event", r->events[row->event].event->name);
	if (row->kind == DATA_VARIABLE || row->kind == DATA_MAPPING)
		cli_json__text(entry, "object", path_of(d, row));
	if (row->kind == DATA_STACK) {
		cli_json__count(entry, "pid", row->pid);
		cli_json__count(entry, "tid", row->tid);
	}
	cli_json__count(entry, "count", row->count);
	cli_json__count(entry, "of", d->samples);
	cli_json__count(entry, "loads", row->loads);
	cli_json__count(entry, "stores", row->stores);
	measured_json(entry, d, row);
	return entry;
}

void report_data__json(const struct report *r, struct cli_json_stream *json)
{
	size_t i;

	cli_json_stream__open(json, "data", '[');
	for (i = 0; i < r->data->count; i++)
		cli_json_stream__add(json, NULL, row_json(r, &r->data->rows[i]));
	cli_json_stream__close(json, ']');
}
