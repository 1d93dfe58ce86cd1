/* SPDX-License-Identifier: MIT */
/*
 * csv.c - exporter: one table for pandas.read_csv and sqlite3's .import, one row per record
 *
 * Not here: reading the trace (libpem), files (output.c).
 *
 * The columns are: clock, time_ns, layer, event, pid, tid, cpu, process, process_start_ns,
 * thread_start_ns; then one per field name of the events that occur in the trace, in the order of
 * the model. A number of a process or thread may name several, one after the other: its start tells
 * them apart; it is empty if it is unknown or before the recording. Events that share a field's
 * name share its column. A field named like one of the first columns becomes field_NAME. A cell is
 * empty if its value is unknown or if the row's event lacks the field. A trace that needs more than
 * COLUMNS_MAX columns is refused, because each row has a cell for each column, and sqlite3 would
 * not import the table.
 *
 * Fields with base 16 are printed as 0x..., values with labels as their names, and a list as its
 * elements, separated by spaces. If the trace names the elements, as of counters read at an event,
 * each is NAME=VALUE. Quoting is that of RFC 4180, and lines end with \n.
 *
 * Texts come from the observed programs, and the table may be opened in a spreadsheet or shown on a
 * terminal. So a text that a spreadsheet would take for a formula gets an apostrophe in front. A
 * text that begins with an apostrophe gets another one. Numbers never get an apostrophe. Each byte
 * of a character that a terminal would obey (shared/text.h), and each byte that is no UTF-8, is
 * written as \xNN, with two hexadecimal digits. So is a backslash in front of an x: \x5c. Tabs and
 * newlines stay what they are, in quotes. The original text is what a reader has who removes the
 * first character if it is an apostrophe, and then replaces each \xNN by the byte NN.
 */
#define _GNU_SOURCE
#include "output.h"
#include "text.h"

#include <pem/context.h>
#include <pem/export.h>

#include <errno.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_RECORDS 65536

static const char *const first_columns[] = {
	"clock",   "time_ns",          "layer",          "event", "pid", "tid", "cpu",
	"process", "process_start_ns", "thread_start_ns"};
#define FIRST_COLUMNS (sizeof(first_columns) / sizeof(first_columns[0]))

/* sqlite3 imports tables of at most 2000 columns, unless it was built otherwise. */
#define COLUMNS_MAX 2000u
#define FIELD_COLUMNS_MAX (COLUMNS_MAX - FIRST_COLUMNS)

/* A field of a row's event, and the column that shows it. */
struct cell {
	uint16_t column; /* index in csv.columns */
	uint16_t field; /* index in the event's fields */
};

/* What the rows of an event show. */
struct layout {
	const struct pem_event *event;
	struct cell *cells; /* in the order of columns; as many as the event has fields */
	bool occurs; /* The trace has a record of the event. */
};

struct csv {
	struct pem_trace *trace;
	const struct pem_model *model;
	FILE *out;
	struct layout *layouts; /* of the model's events, in the order of their ids */
	size_t layout_count;
	/* Names of the fields' columns. The last element is for the first name that is too much. */
	const char *columns[FIELD_COLUMNS_MAX + 1];
	size_t column_count;
	void *by_name; /* tree (tsearch) of pointers into columns */
	char commas[COLUMNS_MAX];
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

	if (*text && strchr("=+-@\t\n'", *text))
		return true;
	for (i = 0; i < sizeof(full_width) / sizeof(full_width[0]); i++) {
		if (strncmp(text, full_width[i], 3) == 0)
			return true;
	}
	return false;
}

/* Does the character of a text need an escape? bytes: its length, 0 if it is no UTF-8. */
static bool needs_escape(const char *text, unsigned bytes)
{
	if (*text == '\t' || *text == '\n')
		return false;
	return !bytes || pem_is_control(pem_utf8_point(text, bytes)) ||
	       (text[0] == '\\' && text[1] == 'x');
}

/* Of a character of several bytes the second one is no UTF-8 by itself. */
static void put_escaped(FILE *out, const char *text)
{
	unsigned bytes;

	for (; *text; text += bytes) {
		bytes = pem_utf8_bytes(text, PEM_UTF8_BYTES_MAX);
		if (needs_escape(text, bytes)) {
			fprintf(out, "\\x%02x", (unsigned char)*text);
			bytes = 1;
			continue;
		}
		if (*text == '"')
			putc_unlocked('"', out);
		fwrite_unlocked(text, 1, bytes, out);
	}
}

static bool is_plain(const char *text)
{
	for (; *text >= ' ' && *text < 0x7f && !strchr(",\";\\", *text); text++)
		;
	return !*text;
}

/*
 * Semicolons and tabs separate cells in some spreadsheets. So the text after one must not begin a
 * formula either.
 */
static void put_text(FILE *out, const char *text)
{
	const char *mark = is_formula(text) ? "'" : "";
	bool quoted;

	if (is_plain(text)) {
		fputs_unlocked(mark, out);
		fputs_unlocked(text, out);
		return;
	}
	quoted = strpbrk(text, ",\"\n;\t");
	if (quoted)
		putc_unlocked('"', out);
	fputs_unlocked(mark, out);
	put_escaped(out, text);
	if (quoted)
		putc_unlocked('"', out);
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

/* Print the first of comma-separated names, and '='. Returns the others. */
static const char *put_element_name(FILE *out, const char *names)
{
	size_t length = strcspn(names, ",");

	if (*names)
		fprintf(out, "%.*s=", (int)length, names);
	return names + length + (names[length] == ',');
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
		names = put_element_name(out, names);
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
		put_text(csv->out, text);
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
		put_text(out, words);
	else if (field->type == PEM_TYPE_STRING)
		put_text(out, pem_record__string(record, i));
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

static int compare_ids(const void *a, const void *b)
{
	const struct layout *x = a, *y = b;

	return x->event->id < y->event->id ? -1 : x->event->id > y->event->id;
}

static struct layout *layout_of(const struct csv *csv, const struct pem_event *event)
{
	struct layout wanted = {.event = event};

	return bsearch(&wanted, csv->layouts, csv->layout_count, sizeof(wanted), compare_ids);
}

/* Read the trace once to find which events occur. */
static int find_events(struct csv *csv, struct pem_error *error)
{
	const struct pem_event *last = NULL;
	struct pem_record record = {.size = sizeof(record)};
	int rc;

	while ((rc = pem_trace__next(csv->trace, &record, error)) > 0) {
		if (record.event != last)
			layout_of(csv, record.event)->occurs = true;
		last = record.event;
	}
	return rc ? rc : pem_trace__rewind(csv->trace);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Find the column of a name, or add one. Returns its index, -E2BIG with error, or -ENOMEM. */
static int column_of(struct csv *csv, const char *name, struct pem_error *error)
{
	const char **candidate = &csv->columns[csv->column_count];
	const char ***found;

	*candidate = name;
	found = tsearch(candidate, &csv->by_name, compare_names);
	if (!found)
		return -ENOMEM;
	if (*found != candidate)
		return (int)(*found - csv->columns);
	if (csv->column_count < FIELD_COLUMNS_MAX)
		return (int)csv->column_count++;
	if (error)
		snprintf(error->text, sizeof(error->text),
			 "the events of the trace have fields of more than %zu names, and a table "
			 "has at most %u columns: record fewer events (pem record -e), or choose "
			 "another format",
			 FIELD_COLUMNS_MAX, COLUMNS_MAX);
	return -E2BIG;
}

static int compare_columns(const void *a, const void *b)
{
	return ((const struct cell *)a)->column - ((const struct cell *)b)->column;
}

/* Lay out the rows of an event. */
static int add_columns(struct csv *csv, struct layout *layout, struct pem_error *error)
{
	const struct pem_event *event = layout->event;
	int column;
	uint16_t i;

	layout->cells = calloc(event->field_count + 1u, sizeof(*layout->cells));
	if (!layout->cells)
		return -ENOMEM;
	for (i = 0; i < event->field_count; i++) {
		column = column_of(csv, event->fields[i].name, error);
		if (column < 0)
			return column;
		layout->cells[i] = (struct cell){.column = (uint16_t)column, .field = i};
	}
	qsort(layout->cells, event->field_count, sizeof(*layout->cells), compare_columns);
	return 0;
}

static int lay_out(struct csv *csv, struct pem_error *error)
{
	struct layout *layout;
	size_t i;
	int rc;

	memset(csv->commas, ',', sizeof(csv->commas));
	csv->layouts = calloc(pem_model__count(csv->model) + 1, sizeof(*csv->layouts));
	if (!csv->layouts)
		return -ENOMEM;
	csv->layout_count = pem_model__count(csv->model);
	for (i = 0; i < csv->layout_count; i++)
		csv->layouts[i].event = pem_model__event(csv->model, i);
	qsort(csv->layouts, csv->layout_count, sizeof(*csv->layouts), compare_ids);
	rc = find_events(csv, error);
	for (i = 0; i < csv->layout_count && !rc; i++) {
		layout = layout_of(csv, pem_model__event(csv->model, i));
		if (layout->occurs)
			rc = add_columns(csv, layout, error);
	}
	return rc;
}

/* The tree's elements are csv's. */
static void keep(void *element)
{
	(void)element;
}

static void free_layouts(struct csv *csv)
{
	size_t i;

	tdestroy(csv->by_name, keep);
	for (i = 0; i < csv->layout_count; i++)
		free(csv->layouts[i].cells);
	free(csv->layouts);
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

static void put_known(FILE *out, uint64_t value, uint64_t unknown)
{
	putc_unlocked(',', out);
	if (value != unknown)
		put_unsigned(out, value, 10);
}

static void put_commas(const struct csv *csv, size_t count)
{
	fwrite_unlocked(csv->commas, 1, count, csv->out);
}

static void put_row(struct csv *csv, const struct pem_record *record,
		    const struct pem_around *around, const struct cell *cells)
{
	const char *names =
		strcmp(record->event->name, PEM_COUNTERS_EVENT) == 0 ||
				strcmp(record->event->name, PEM_THREAD_COUNTERS_EVENT) == 0
			? pem_trace__info(csv->trace)->counters
			: "";
	FILE *out = csv->out;
	size_t at = 0; /* fields' columns that have been begun */
	unsigned i;

	put_unsigned(out, record->clock, 10);
	putc_unlocked(',', out);
	put_unsigned(out, record->time_ns, 10);
	putc_unlocked(',', out);
	put_text(out, record->event->layer);
	putc_unlocked(',', out);
	put_text(out, record->event->name);
	put_known(out, record->pid, 0);
	put_known(out, record->tid, 0);
	put_known(out, record->cpu, PEM_NO_CPU);
	putc_unlocked(',', out);
	put_text(out, pem_trace__process_name(csv->trace, record->pid));
	put_known(out, around->process ? around->process->start_ns : PEM_TIME_UNKNOWN,
		  PEM_TIME_UNKNOWN);
	put_known(out, around->thread ? around->thread->start_ns : PEM_TIME_UNKNOWN,
		  PEM_TIME_UNKNOWN);
	for (i = 0; i < record->event->field_count; i++) {
		put_commas(csv, cells[i].column + 1u - at);
		at = cells[i].column + 1u;
		put_field(csv, record, cells[i].field, names);
	}
	put_commas(csv, csv->column_count - at);
	putc_unlocked('\n', out);
}

static int put_rows(struct csv *csv, struct pem_pass *pass, struct pem_error *error)
{
	uint64_t done = 0, total = pem_trace__total_balance(csv->trace).delivered;
	const struct pem_event *last = NULL;
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	const struct cell *cells = NULL;
	int rc;

	while ((rc = pem_pass__next(pass, &record, &around, error)) > 0) {
		if (record.event != last)
			cells = layout_of(csv, record.event)->cells;
		last = record.event;
		put_row(csv, &record, &around, cells);
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

static int put_table(struct csv *csv, struct pem_error *error)
{
	struct pem_pass_options options = {.size = sizeof(options),
					   .without = PEM_PASS_BLOCKS | PEM_PASS_MESSAGES |
						      PEM_PASS_INTERVALS};
	struct pem_pass *pass = pem_pass__new(csv->trace, &options, error);
	int rc;

	if (!pass)
		return -errno;
	put_header(csv);
	rc = put_rows(csv, pass, error);
	pem_pass__free(pass);
	return rc;
}

static int csv_run(struct pem_trace *trace, const char *path,
		   const struct pem_export_options *options, struct pem_error *error)
{
	struct csv csv = {.trace = trace};
	struct pem_output output;
	int rc;

	rc = pem_export__options(&csv.options, options, error);
	if (rc)
		return rc;
	csv.model = pem_trace__model(trace);
	rc = pem_output__open(&output, path, error);
	if (rc)
		return rc;
	csv.out = output.file;
	rc = pem_trace__rewind(trace);
	if (!rc)
		rc = lay_out(&csv, error);
	if (!rc)
		rc = put_table(&csv, error);
	if (rc == -ENOMEM && error)
		snprintf(error->text, sizeof(error->text), "no memory to export the trace");
	rc = pem_output__finish(&output, rc, error);
	free_layouts(&csv);
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
