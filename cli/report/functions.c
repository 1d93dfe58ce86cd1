// SPDX-License-Identifier: MIT
/*
 * functions.c - where events were, by function: samples of the CPU, and calls that allocate
 *
 * A function is that of the symbol or debug information, into which others may have been inlined.
 */
#include "grow.h"
#include "sites.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 40u /* of one event */

struct function {
	uint32_t event; /* index in the report's events */
	bool is_sample; /* of the CPU: it says where the time went */
	const char *name; /* of a site; NULL: unknown */
	uint32_t number; /* of the function in the code; PEM_CODE_NONE: unknown */
	const char *object; /* path; NULL: unknown */
	bool is_kernel;
	bool is_cut; /* stands for callers that are not known */
	uint32_t location; /* of the code; of one of them that were joined */
	struct report_amounts sum;
	uint64_t total; /* records in it and in what it called; of no stacks 0 */
	uint64_t last_stack; /* that was counted in total: index + 1 */
};

struct functions {
	struct function *rows;
	size_t count, capacity;
	uint64_t *of_event; /* records by event, to tell shares */
	bool has_callers; /* there are stacks with more than one function */
};

static struct function describe(const struct report *r, uint32_t event, uint32_t location)
{
	const struct pem_code *code = r->sites->code;
	const struct pem_code_location *at = pem_code__location(code, location);
	struct function f = {.event = event,
			     .location = location,
			     .number = PEM_CODE_NONE,
			     .is_kernel = at->is_kernel};

	f.is_sample = r->events[event].event->meaning == PEM_MEANS_SAMPLE;
	if (at->name_count != 0) {
		f.name = at->names[at->name_count - 1].function;
		f.number = at->names[at->name_count - 1].number;
	}
	f.is_cut = at->object == PEM_CODE_NONE && at->offset == PEM_CALLERS_CUT;
	if (at->object != PEM_CODE_NONE)
		f.object = pem_code__object(code, at->object)->path;
	return f;
}

static int compare_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? (a != NULL) - (b != NULL) : strcmp(a, b);
}

/* By event, object, name and function. Two functions may have one name. */
static int by_identity(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	int order = (x->event > y->event) - (x->event < y->event);

	if (order == 0)
		order = x->is_kernel - y->is_kernel;
	if (order == 0)
		order = compare_text(x->object, y->object);
	if (order == 0)
		order = compare_text(x->name, y->name);
	return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* Samples first. Of one event together, the event with most records first, then by its bytes. */
static const uint64_t *sort_of_event;

static int by_weight(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	uint64_t i = sort_of_event[x->event], j = sort_of_event[y->event];

	if (x->is_sample != y->is_sample)
		return x->is_sample ? -1 : 1;
	if (i != j)
		return i < j ? 1 : -1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	if (x->sum.bytes != y->sum.bytes)
		return x->sum.bytes < y->sum.bytes ? 1 : -1;
	if (x->sum.count != y->sum.count)
		return x->sum.count < y->sum.count ? 1 : -1;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return by_identity(a, b);
}

/* Join rows of one function. Returns 0 or -ENOMEM. row_at: key: event, location. */
static int join(struct functions *f, struct pem_number_map *row_at)
{
	size_t i, n = 0;

	qsort(f->rows, f->count, sizeof(*f->rows), by_identity);
	for (i = 0; i < f->count; i++) {
		const struct function *row = &f->rows[i];
		uint32_t *at =
			pem_number_map__at(row_at, (uint64_t)row->event << 32 | row->location);

		if (at == NULL)
			return -ENOMEM;
		if (n == 0 || by_identity(&f->rows[n - 1], row) != 0) {
			f->rows[n++] = *row;
		} else {
			report_amounts__join(&f->rows[n - 1].sum, &row->sum);
		}
		*at = (uint32_t)n - 1;
	}
	f->count = n;
	return 0;
}

/* Make a row, without any record, for each function that called another one. 0 or -ENOMEM. */
static int add_callers(struct functions *f, const struct report *r)
{
	const struct report_sites *s = r->sites;
	struct pem_number_map seen = {0};
	int rc = 0;
	size_t i;

	for (i = 0; rc == 0 && i < s->stack_count; i++) {
		uint32_t event = s->stacks[i].event;
		uint32_t node = pem_code__caller(s->code, s->stacks[i].node);

		for (; rc == 0 && node != PEM_CODE_NONE; node = pem_code__caller(s->code, node)) {
			uint32_t location = pem_code__node_location(s->code, node);
			uint32_t *at = pem_number_map__at(&seen, (uint64_t)event << 32 | node);

			f->has_callers = true;
			if (at == NULL ||
			    pem_grow(&f->rows, sizeof(*f->rows), f->count + 1, &f->capacity) < 0)
				rc = -ENOMEM;
			else if (*at != UINT32_MAX)
				break; /* and so are its callers */
			else
				f->rows[f->count++] = describe(r, event, location);
			if (at != NULL)
				*at = 0;
		}
	}
	pem_number_map__free(&seen);
	return rc;
}

/* Count each stack once in each function that it has. */
static void add_totals(struct functions *f, const struct report_sites *s,
		       const struct pem_number_map *row_at)
{
	size_t i;

	for (i = 0; i < s->stack_count; i++) {
		uint32_t node = s->stacks[i].node;

		for (; node != PEM_CODE_NONE; node = pem_code__caller(s->code, node)) {
			uint32_t at = pem_number_map__value(
				row_at, (uint64_t)s->stacks[i].event << 32 |
						pem_code__node_location(s->code, node));

			if (at == UINT32_MAX || f->rows[at].last_stack == i + 1)
				continue;
			f->rows[at].total += s->stacks[i].sum.count;
			f->rows[at].last_stack = i + 1;
		}
	}
}

/* Returns false if there is no memory. Free it in both cases. */
static bool collect(struct functions *f, const struct report *r)
{
	const struct report_sites *s = r->sites;
	struct pem_number_map row_at = {0};
	bool is_complete;
	size_t i;

	f->of_event = calloc(r->event_count + 1, sizeof(*f->of_event));
	if (f->of_event == NULL ||
	    pem_grow(&f->rows, sizeof(*f->rows), s->count + 1, &f->capacity) < 0)
		return false;
	for (i = 0; i < s->count; i++) {
		struct function *row = &f->rows[f->count++];

		*row = describe(r, s->sites[i].event, s->sites[i].location);
		row->sum = s->sites[i].sum;
		f->of_event[row->event] += row->sum.count;
	}
	is_complete = add_callers(f, r) == 0 && join(f, &row_at) == 0;
	if (is_complete)
		add_totals(f, s, &row_at);
	pem_number_map__free(&row_at);
	sort_of_event = f->of_event;
	qsort(f->rows, f->count, sizeof(*f->rows), by_weight);
	return is_complete;
}

static void free_functions(struct functions *f)
{
	free(f->rows);
	free(f->of_event);
}

static const char *name_words(const struct function *f)
{
	return f->name != NULL ? report_site__short(f->name) : "?";
}

static const char *object_words(const struct function *f)
{
	const char *slash = f->object != NULL ? strrchr(f->object, '/') : NULL;

	if (f->is_kernel)
		return "(kernel)";
	if (f->object == NULL && f->name != NULL && !f->is_cut)
		return "(jit)";
	return slash != NULL ? slash + 1 : "";
}

static bool lacks_names(const struct functions *f)
{
	size_t i;

	for (i = 0; i < f->count; i++)
		if (f->rows[i].object != NULL && f->rows[i].name == NULL)
			return true;
	return false;
}

static const char *share_of(const struct functions *f, const struct function *row, uint64_t count)
{
	uint64_t all = f->of_event[row->event];

	return cli_format("%.1f %%", all != 0 ? 100.0 * (double)count / (double)all : 0);
}

/* Was a tenth of the records in what it called? It may have none of its own. */
static bool is_large_caller(const struct functions *f, const struct function *row)
{
	return row->total * 10 >= f->of_event[row->event];
}

void report_functions__print(const struct report *r)
{
	struct cli_table *table = cli_table__new(stdout);
	struct functions f = {0};
	size_t i, of_event = 0, left_out = 0;

	if (!collect(&f, r))
		f.count = 0;
	cli_table__column(table, "EVENTS", CLI_RIGHT);
	cli_table__column(table, "SHARE", CLI_RIGHT);
	if (f.has_callers)
		cli_table__column(table, "WITH CALLED", CLI_RIGHT);
	cli_table__column(table, "BYTES", CLI_RIGHT);
	cli_table__column(table, "PEAK", CLI_RIGHT);
	cli_table__column(table, "LIVE", CLI_RIGHT);
	cli_table__column(table, "TEMPORARY", CLI_RIGHT);
	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "OBJECT", CLI_CUT);
	cli_table__column(table, "FUNCTION", CLI_CUT);
	for (i = 0; i < f.count; i++) {
		const struct function *row = &f.rows[i];
		of_event = i != 0 && f.rows[i - 1].event == row->event ? of_event + 1 : 0;
		if (of_event >= ROWS_MOST && !is_large_caller(&f, row)) {
			left_out++;
			continue;
		}
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_count(row->sum.count));
		cli_table__cell(table, share_of(&f, row, row->sum.count));
		if (f.has_callers)
			cli_table__cell(table,
					row->total != 0 ? share_of(&f, row, row->total) : "");
		cli_table__cell(table, row->sum.bytes != 0 ? cli_sum__bytes(row->sum.bytes) : "");
		cli_table__cell(table, row->sum.peak != 0 ? cli_sum__bytes(row->sum.peak) : "");
		cli_table__cell(table,
				row->sum.live != 0 ? cli_sum__bytes(row->sum.live_bytes) : "");
		cli_table__cell(table,
				row->sum.temporary != 0 ? cli_count(row->sum.temporary) : "");
		cli_table__cell(table, report_site__event(r->events[row->event].event));
		cli_table__cell(table, object_words(row));
		cli_table__cell(table, name_words(row));
	}
	report__heading("Functions");
	cli_table__print(table);
	if (left_out != 0)
		printf("and %s more (--json)\n", cli_count(left_out));
	report_sites__print_notes(r->sites,
				  "No event of the trace says where it was in the code. Samples "
				  "do (HW::HWPerf::HPMsAndPC), and calls of the C library, such "
				  "as APP::Libc::Malloc.");
	if (lacks_names(&f))
		cli_wrap(stdout,
			 "?: the object has no symbols. Install its debug symbols (packages "
			 "-dbgsym or "
			 "-debuginfo), or name a server in DEBUGINFOD_URLS.",
			 0, 0, cli_width(stdout));
	free_functions(&f);
}

void report_functions__json(const struct report *r, struct cli_json_stream *json)
{
	struct json_object *entry;
	struct functions f = {0};
	size_t i;

	if (!collect(&f, r))
		f.count = 0;
	cli_json_stream__open(json, "functions", '[');
	for (i = 0; i < f.count; i++) {
		const struct function *row = &f.rows[i];

		entry = json_object_new_object();
		cli_json__text(entry, "event", r->events[row->event].event->name);
		if (row->name != NULL)
			cli_json__text(entry, "function", row->name);
		if (row->object != NULL)
			cli_json__text(entry, "object", row->object);
		cli_json__flag(entry, "kernel", row->is_kernel);
		report_amounts__json(entry, &row->sum);
		cli_json__count(entry, "of", f.of_event[row->event]);
		if (row->is_sample || row->total != 0)
			cli_json__count(entry, "total", row->total);
		cli_json_stream__add(json, NULL, entry);
	}
	free_functions(&f);
	cli_json_stream__close(json, ']');
}
