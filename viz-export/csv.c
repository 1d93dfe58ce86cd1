/* SPDX-License-Identifier: MIT */
/*
 * csv.c - exporter: one table for pandas.read_csv and sqlite3's .import, one row per record
 *
 * Not here: reading the trace (libpem), files (output.c).
 *
 * The columns are: clock, time_ns, layer, event, pid, tid, cpu, process; then one per field name of
 * the events that occur in the trace, in the order of the model. Events that share a field's name
 * share its column. A field named like one of the first columns becomes field_NAME. A cell is empty
 * if its value is unknown or if the row's event lacks the field. Fields with base 16 are printed as
 * 0x..., values with labels as their names, and a list as its elements, separated by spaces. If the
 * trace names the elements, as of counters read at an event, each is NAME=VALUE. Quoting is that of
 * RFC 4180, and lines end with \n.
 *
 * Texts come from the observed programs, and the table may be opened in a spreadsheet. So a text
 * that a spreadsheet would take for a formula gets an apostrophe in front. A text that begins with
 * an apostrophe gets another one. A reader that removes the first apostrophe of a text has the
 * original text. Numbers never get an apostrophe.
 *
 * Whoever prints the table sends its texts to a terminal. So control characters, and bytes that are
 * no UTF-8, are question marks. Tabs and ends of lines stay in a file, but not on a terminal.
 */
#define _GNU_SOURCE
#include "output.h"
#include "grow.h"
#include "hash.h"
#include "number_map.h"

#include <pem/export.h>

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_RECORDS 65536

static const char *const first_columns[] = {"clock", "time_ns", "layer", "event",
					    "pid",   "tid",     "cpu",   "process"};
#define FIRST_COLUMNS (sizeof(first_columns) / sizeof(first_columns[0]))

#define COLUMNS_MAX 4096u /* a row has a comma for each */

/* Where an event shows its fields. */
struct event_cells {
	struct cell {
		uint32_t column;
		uint32_t field;
	} * cells; /* by rising column */
	unsigned count; /* 0: it has no fields, or does not occur */
};

struct csv {
	struct pem_trace *trace;
	const struct pem_model *model;
	FILE *out;
	const char **columns; /* names of the fields' columns */
	size_t column_count, column_capacity;
	struct pem_number_map column_at; /* key: hash of the name; value: index in columns */
	struct pem_number_map event_at; /* key: event id; value: index in the model */
	struct event_cells *events; /* by index in the model */
	bool is_terminal;
	struct pem_export_options options;
	bool no_memory; /* no memory for a cell */
};

/* --- values --- */

/*
 * Would a spreadsheet compute the text? The last four characters are =, +, - and @ of full width.
 */
static bool is_formula(const char *text)
{
	static const char *const full_width[] = {"\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d",
						 "\xef\xbc\xa0"};
	size_t i;

	if (*text && strchr("=+-@\t\r\n'", *text))
		return true;
	for (i = 0; i < sizeof(full_width) / sizeof(full_width[0]); i++) {
		if (strncmp(text, full_width[i], 3) == 0)
			return true;
	}
	return false;
}

/* May all of the text be shown as it is? Texts beyond ASCII are looked at by make_fit. */
static bool is_fit(const struct csv *csv, const char *text)
{
	const unsigned char *c = (const unsigned char *)text;

	while ((*c >= 0x20 && *c < 0x7f) ||
	       (!csv->is_terminal && (*c == '\t' || *c == '\n' || *c == '\r')))
		c++;
	return *c == '\0';
}

/* Make each control character, but of a file's tabs and ends of lines, a question mark. */
static const char *make_fit(const struct csv *csv, char *text)
{
	char *part = text, *end, kept;

	if (csv->is_terminal)
		return pem_printable(text);
	for (;; part = end + 1) {
		end = part + strcspn(part, "\t\n\r");
		kept = *end;
		*end = '\0';
		pem_printable(part);
		*end = kept;
		if (kept == '\0')
			return text;
	}
}

/*
 * Semicolons and tabs separate cells in some spreadsheets. So the text after one must not begin a
 * formula either.
 */
static void put_text(struct csv *csv, const char *text)
{
	const char *mark = is_formula(text) ? "'" : "", *c;
	char *fit = NULL;
	FILE *out = csv->out;

	if (!is_fit(csv, text)) {
		fit = strdup(text);
		csv->no_memory |= !fit;
		text = fit ? make_fit(csv, fit) : "";
	}
	if (!strpbrk(text, ",\"\r\n;\t")) {
		fputs_unlocked(mark, out);
		fputs_unlocked(text, out);
		free(fit);
		return;
	}
	putc_unlocked('"', out);
	fputs_unlocked(mark, out);
	for (c = text; *c; c++) {
		if (*c == '"')
			putc_unlocked('"', out);
		putc_unlocked(*c, out);
	}
	putc_unlocked('"', out);
	free(fit);
}

static void put_unsigned(FILE *out, uint64_t value, unsigned base)
{
	char digits[24];
	size_t i = sizeof(digits);

	do {
		digits[--i] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	if (base == 16) {
		digits[--i] = 'x';
		digits[--i] = '0';
	}
	fwrite_unlocked(digits + i, 1, sizeof(digits) - i, out);
}

/* Print the shortest text that reads back as the same double, with a point in every locale. */
static void put_double(FILE *out, double value, bool is_single)
{
	char text[40], *c;
	int precision, most = is_single ? 9 : 17;

	for (precision = is_single ? 6 : 15; precision < most; precision++) {
		snprintf(text, sizeof(text), "%.*g", precision, value);
		if (is_single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
			break;
	}
	snprintf(text, sizeof(text), "%.*g", precision, value);
	for (c = text; *c; c++) {
		if (!strchr("0123456789+-einfa", *c))
			*c = '.';
	}
	fputs_unlocked(text, out);
}

/* Print a number of a type that lies at data. */
static void put_number(FILE *out, enum pem_type type, unsigned base, const void *data)
{
	size_t bytes = pem_type__bytes(type);
	uint64_t bits = 0;
	float single;
	double real;
	int64_t value;

	memcpy(&bits, data, bytes);
	if (type == PEM_TYPE_FLOAT32) {
		memcpy(&single, data, sizeof(single));
		put_double(out, (double)single, true);
	} else if (type == PEM_TYPE_FLOAT64) {
		memcpy(&real, data, sizeof(real));
		put_double(out, real, false);
	} else if (base == 16 || type < PEM_TYPE_INT8 || type > PEM_TYPE_INT64) {
		put_unsigned(out, bits, base);
	} else {
		value = (int64_t)(bits << (64 - bytes * 8)) >> (64 - bytes * 8);
		if (value < 0)
			putc_unlocked('-', out);
		put_unsigned(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10);
	}
}

/* Print the kth of comma-separated names, and '='. Prints nothing if there is none. */
static void put_element_name(FILE *out, const char *names, uint32_t k)
{
	for (; k && *names; k--)
		names += strcspn(names, ",") + (names[strcspn(names, ",")] == ',');
	if (*names)
		fprintf(out, "%.*s=", (int)strcspn(names, ","), names);
}

/* names: of the elements; "": they have no names */
static void put_list(FILE *out, const struct pem_record *record, unsigned i, const char *names)
{
	const struct pem_field *field = &record->event->fields[i];
	const void *elements;
	uint32_t count = pem_record__list(record, i, &elements), k;

	for (k = 0; k < count; k++) {
		if (k)
			putc_unlocked(' ', out);
		put_element_name(out, names, k);
		put_number(out, field->element_type, field->base,
			   (const uint8_t *)elements + k * pem_type__bytes(field->element_type));
	}
}

/* A list with names of the trace is quoted like other texts. */
static void put_named_list(struct csv *csv, const struct pem_record *record, unsigned i,
			   const char *names)
{
	char *text = NULL;
	size_t bytes;
	FILE *cell = open_memstream(&text, &bytes);

	if (cell) {
		put_list(cell, record, i, names);
		csv->no_memory |= fclose(cell) != 0;
	}
	csv->no_memory |= !text;
	if (text && !csv->no_memory)
		put_text(csv, text);
	free(text);
}

/* names: of a list's elements; "": they have no names */
static void put_field(struct csv *csv, const struct pem_record *record, unsigned i,
		      const char *names)
{
	const struct pem_field *field = &record->event->fields[i];
	FILE *out = csv->out;
	char words[256];

	if (field->label_count && pem_record__words(record, i, words, sizeof(words)))
		put_text(csv, words);
	else if (field->type == PEM_TYPE_STRING)
		put_text(csv, pem_record__string(record, i));
	else if (field->type != PEM_TYPE_LIST && field->type != PEM_TYPE_ARRAY)
		put_number(out, field->type, field->base, record->data + field->offset);
	else if (*names)
		put_named_list(csv, record, i, names);
	else
		put_list(out, record, i, names);
}

/* --- columns --- */

static bool is_first_column(const char *name)
{
	size_t i;

	for (i = 0; i < FIRST_COLUMNS; i++) {
		if (strcmp(name, first_columns[i]) == 0)
			return true;
	}
	return false;
}

/* The event's index in the model. */
static size_t event_index(const struct csv *csv, const struct pem_event *event)
{
	return pem_number_map__value(&csv->event_at, event->id);
}

/* Read the trace once to find which events occur: seen[i] for event i of the model. */
static int find_events(struct csv *csv, bool *seen, struct pem_error *error)
{
	const struct pem_event *last = NULL;
	struct pem_record record = {.size = sizeof(record)};
	int rc;

	while ((rc = pem_trace__next(csv->trace, &record, error)) > 0) {
		if (record.event != last)
			seen[event_index(csv, record.event)] = true;
		last = record.event;
	}
	return rc ? rc : pem_trace__rewind(csv->trace);
}

/* Find the column of a name, or make it. Returns its index, or -ENOMEM. */
static long column_of(struct csv *csv, const char *name)
{
	uint64_t key = pem_hash__text(PEM_HASH_START, name);
	uint32_t *at;

	/* Names of one hash have keys that follow each other. */
	while ((at = pem_number_map__at(&csv->column_at, key++)) && *at != UINT32_MAX)
		if (strcmp(csv->columns[*at], name) == 0)
			return *at;
	if (!at || pem_grow(&csv->columns, sizeof(*csv->columns), csv->column_count + 1,
			    &csv->column_capacity))
		return -ENOMEM;
	*at = (uint32_t)csv->column_count;
	csv->columns[csv->column_count] = name;
	return (long)csv->column_count++;
}

static int by_column(const void *a, const void *b)
{
	const struct cell *x = a, *y = b;

	return x->column < y->column ? -1 : x->column > y->column;
}

/* Give each field of an event its column. */
static int add_columns(struct csv *csv, struct event_cells *of, const struct pem_event *event)
{
	unsigned i;

	of->cells = calloc(event->field_count + 1, sizeof(*of->cells));
	if (!of->cells)
		return -ENOMEM;
	of->count = event->field_count;
	for (i = 0; i < of->count; i++) {
		long column = column_of(csv, event->fields[i].name);

		if (column < 0)
			return (int)column;
		of->cells[i] = (struct cell){(uint32_t)column, i};
	}
	qsort(of->cells, of->count, sizeof(*of->cells), by_column);
	return 0;
}

static int number_events(struct csv *csv)
{
	size_t i;

	for (i = 0; i < pem_model__count(csv->model); i++) {
		uint32_t *at =
			pem_number_map__at(&csv->event_at, pem_model__event(csv->model, i)->id);

		if (!at)
			return -ENOMEM;
		*at = (uint32_t)i;
	}
	return 0;
}

static int lay_out(struct csv *csv, struct pem_error *error)
{
	size_t n = pem_model__count(csv->model), i;
	bool *seen = calloc(n + 1, sizeof(*seen));
	int rc = -ENOMEM;

	csv->events = calloc(n + 1, sizeof(*csv->events));
	if (seen && csv->events)
		rc = number_events(csv);
	if (!rc)
		rc = find_events(csv, seen, error);
	for (i = 0; i < n && !rc; i++)
		if (seen[i])
			rc = add_columns(csv, &csv->events[i], pem_model__event(csv->model, i));
	free(seen);
	if (rc || csv->column_count <= COLUMNS_MAX)
		return rc;
	if (error)
		snprintf(error->text, sizeof(error->text),
			 "the trace's events have %zu different fields, and a table has at most %u "
			 "columns for them; record fewer events (-e), or export to perfetto",
			 csv->column_count, COLUMNS_MAX);
	return -E2BIG;
}

/* --- rows --- */

static void put_header(const struct csv *csv)
{
	size_t i;

	for (i = 0; i < FIRST_COLUMNS; i++)
		fprintf(csv->out, "%s%s", i ? "," : "", first_columns[i]);
	for (i = 0; i < csv->column_count; i++)
		fprintf(csv->out, ",%s%s", is_first_column(csv->columns[i]) ? "field_" : "",
			csv->columns[i]);
	putc('\n', csv->out);
}

static void put_known(FILE *out, uint32_t value, uint32_t unknown)
{
	putc_unlocked(',', out);
	if (value != unknown)
		put_unsigned(out, value, 10);
}

static void put_row(struct csv *csv, const struct pem_record *record, const struct event_cells *of)
{
	const char *names = strcmp(record->event->name, PEM_COUNTERS_EVENT) == 0
				    ? pem_trace__info(csv->trace)->counters
				    : "";
	const struct cell *cell = of->cells, *end = cell + of->count;
	FILE *out = csv->out;
	size_t c;

	put_unsigned(out, record->clock, 10);
	putc_unlocked(',', out);
	put_unsigned(out, record->time_ns, 10);
	putc_unlocked(',', out);
	put_text(csv, record->event->layer);
	putc_unlocked(',', out);
	put_text(csv, record->event->name);
	put_known(out, record->pid, 0);
	put_known(out, record->tid, 0);
	put_known(out, record->cpu, PEM_NO_CPU);
	putc_unlocked(',', out);
	put_text(csv, pem_trace__process_name(csv->trace, record->pid));
	for (c = 0; c < csv->column_count; c++) {
		putc_unlocked(',', out);
		if (cell < end && cell->column == c)
			put_field(csv, record, cell++->field, names);
	}
	putc_unlocked('\n', out);
}

static int put_rows(struct csv *csv, struct pem_error *error)
{
	uint64_t done = 0, total = pem_trace__total_balance(csv->trace).delivered;
	const struct pem_event *last = NULL;
	struct pem_record record = {.size = sizeof(record)};
	size_t i = 0;
	int rc;

	while ((rc = pem_trace__next(csv->trace, &record, error)) > 0) {
		if (record.event != last)
			i = event_index(csv, record.event);
		last = record.event;
		put_row(csv, &record, &csv->events[i]);
		if (csv->no_memory)
			return -ENOMEM;
		if (++done % PROGRESS_RECORDS)
			continue;
		if (csv->options.progress)
			csv->options.progress(done, total, csv->options.progress_arg);
		/* pem_output__finish reports the reason */
		if (ferror(csv->out))
			break;
	}
	return rc < 0 ? rc : 0;
}

static int csv_run(struct pem_trace *trace, const char *path,
		   const struct pem_export_options *options, struct pem_error *error)
{
	struct csv csv = {.trace = trace};
	struct pem_output output;
	size_t i;
	int rc;

	rc = pem_export__options(&csv.options, options, error);
	if (rc)
		return rc;
	csv.model = pem_trace__model(trace);
	rc = pem_output__open(&output, path, error);
	if (rc)
		return rc;
	csv.out = output.file;
	csv.is_terminal = isatty(fileno(output.file)) == 1;
	rc = pem_trace__rewind(trace);
	if (!rc)
		rc = lay_out(&csv, error);
	if (!rc) {
		put_header(&csv);
		rc = put_rows(&csv, error);
	}
	if (rc == -ENOMEM && error)
		snprintf(error->text, sizeof(error->text), "no memory to export the trace");
	rc = pem_output__finish(&output, rc, error);
	for (i = 0; csv.events && i < pem_model__count(csv.model); i++)
		free(csv.events[i].cells);
	free(csv.events);
	free(csv.columns);
	pem_number_map__free(&csv.column_at);
	pem_number_map__free(&csv.event_at);
	return rc;
}

__attribute__((visibility("default"))) extern const struct pem_exporter pem_exporter;
const struct pem_exporter pem_exporter = {
	.size = sizeof(struct pem_exporter),
	.abi_version = PEM_EXPORT_ABI_VERSION,
	.name = "csv",
	.description = "one table, a row per record, for pandas and sqlite3",
	.suffix = ".csv",
	.run = csv_run,
};
