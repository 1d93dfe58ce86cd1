// SPDX-License-Identifier: MIT
/*
 * calls.c - system calls by name and by file: how often, how long, what failed, how much was moved
 */
#include "call_kinds.h"
#include "grow.h"
#include "times.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 20u /* unless the user asks for them */
#define ERRNO_MOST 4095 /* Linux: a system call that failed returns -ERRNO_MOST to -1 */

/* --- collecting --- */

static struct report_call *row_of(struct report_times *t, uint32_t interval, uint32_t file)
{
	uint32_t *at = cli_map__at(&t->call_at, (uint64_t)interval << 32 | file);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&t->calls, sizeof(*t->calls), t->call_count + 1, &t->call_capacity) <
		    0)
			return NULL;
		t->calls[t->call_count] = (struct report_call){.interval = interval, .file = file};
		*at = (uint32_t)t->call_count++;
	}
	return &t->calls[*at];
}

static void add_result(struct report_call *row, const struct pem_interval *call,
		       const struct pem_record *end)
{
	int field = pem_event__field_by_role(end->event, PEM_ROLE_VALUE);
	int64_t result;

	if (field < 0)
		return;
	result = pem_record__i64(end, (unsigned)field);
	if (result < 0 && result >= -ERRNO_MOST)
		row->errors++;
	else if (result > 0 && pem_call__returns_bytes(pem_interval__title(call)))
		row->bytes += (uint64_t)result;
}

int report_calls__add(struct report_times *t, uint32_t interval, const struct pem_ended *ended,
		      const struct pem_record *record)
{
	const struct pem_interval *call = ended->interval;
	struct report_call *row =
		row_of(t, interval, call->file != NULL ? call->file->number : NO_FILE);
	uint64_t ns = ended->end_ns > call->begin.time_ns ? ended->end_ns - call->begin.time_ns : 0;

	if (row == NULL)
		return -ENOMEM;
	row->count++;
	row->total_ns += ns;
	if (ns > row->most_ns)
		row->most_ns = ns;
	add_result(row, call, record);
	return 0;
}

/* --- rows for one question --- */

static uint32_t interval_key(const struct report_call *call)
{
	return call->interval;
}

static uint32_t file_key(const struct report_call *call)
{
	return call->file;
}

static int longer(const void *a, const void *b)
{
	const struct report_call *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

/*
 * Sum the rows that agree in key. NULL: each row by itself. The other number is that of the row in
 * which most time went. The caller frees the result. NULL: no memory.
 */
static struct report_call *sum(const struct report_times *t,
			       uint32_t (*key)(const struct report_call *), size_t *count)
{
	struct report_call *rows = calloc(t->call_count + 1, sizeof(*rows));
	uint64_t *largest = calloc(t->call_count + 1, sizeof(*largest));
	struct cli_map at = {0};
	size_t i;

	*count = 0;
	for (i = 0; rows != NULL && largest != NULL && i < t->call_count; i++) {
		const struct report_call *call = &t->calls[i];
		uint32_t *index = cli_map__at(&at, key != NULL ? key(call) : i), k;

		if (index == NULL)
			break;
		if (*index == UINT32_MAX)
			*index = (uint32_t)(*count)++;
		k = *index;
		if (call->total_ns >= largest[k]) {
			largest[k] = call->total_ns;
			rows[k].interval = call->interval;
			rows[k].file = call->file;
		}
		rows[k].count += call->count;
		rows[k].total_ns += call->total_ns;
		rows[k].errors += call->errors;
		rows[k].bytes += call->bytes;
		if (call->most_ns > rows[k].most_ns)
			rows[k].most_ns = call->most_ns;
	}
	if (rows != NULL)
		qsort(rows, *count, sizeof(*rows), longer);
	free(largest);
	cli_map__free(&at);
	return rows;
}

/* --- tables --- */

static const char *call_name(const struct report_times *t, const struct report_call *row)
{
	const char *name = t->intervals[row->interval].name, *space = strchr(name, ' ');

	return space != NULL ? space + 1 : name;
}

static const char *file_name(const struct report_times *t, const struct report_call *row)
{
	return row->file != NO_FILE ? pem_pass__file(t->pass, row->file)->path
				    : "(no file, or unknown)";
}

static void count_cells(struct cli_table *table, const struct report_call *row)
{
	cli_table__cell(table, cli_count(row->count));
	cli_table__cell(table, row->errors != 0 ? cli_count(row->errors) : "");
	cli_table__cell(table, cli_duration(row->total_ns));
	cli_table__cell(table, cli_duration(row->total_ns / row->count));
	cli_table__cell(table, cli_duration(row->most_ns));
	cli_table__cell(table, row->bytes != 0 ? cli_bytes(row->bytes) : "");
}

static void count_columns(struct cli_table *table)
{
	cli_table__column(table, "CALLS", CLI_RIGHT);
	cli_table__column(table, "FAILED", CLI_RIGHT);
	cli_table__column(table, "TOTAL", CLI_RIGHT);
	cli_table__column(table, "MEAN", CLI_RIGHT);
	cli_table__column(table, "LONGEST", CLI_RIGHT);
	cli_table__column(table, "MOVED", CLI_RIGHT);
}

static void print_calls(const struct report_times *t, enum report_by by)
{
	size_t most = by == REPORT_ALL ? ROWS_MOST : SIZE_MAX;
	bool by_file = by == REPORT_SYSCALL_FILE;
	struct cli_table *table = cli_table__new(stdout);
	struct report_call *rows;
	size_t i, count;

	rows = sum(t, by_file ? NULL : interval_key, &count);
	cli_table__column(table, "SYSTEM CALL", CLI_LEFT);
	count_columns(table);
	if (by != REPORT_ALL)
		cli_table__column(table, by_file ? "FILE" : "MOST TIME ON", CLI_LEFT);
	for (i = 0; rows != NULL && i < count && i < most; i++) {
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, call_name(t, &rows[i]));
		count_cells(table, &rows[i]);
		cli_table__cell(table,
				by_file || rows[i].file != NO_FILE ? file_name(t, &rows[i]) : "");
	}
	report__heading("System calls");
	cli_table__print(table);
	if (count > most)
		printf("and %s more (--by syscall)\n", cli_count(count - most));
	free(rows);
}

static void print_files(const struct report_times *t, size_t most)
{
	struct cli_table *table = cli_table__new(stdout);
	struct report_call *rows;
	size_t i, count, shown = 0;

	rows = sum(t, file_key, &count);
	count_columns(table);
	cli_table__column(table, "MOST IN", CLI_LEFT);
	cli_table__column(table, "FILE", CLI_LEFT);
	for (i = 0; rows != NULL && i < count; i++) {
		/* The calls on no file are no file. */
		if (rows[i].file == NO_FILE || shown++ >= most)
			continue;
		cli_table__row(table, CLI_PLAIN);
		count_cells(table, &rows[i]);
		cli_table__cell(table, call_name(t, &rows[i]));
		cli_table__cell(table, file_name(t, &rows[i]));
	}
	report__heading("Files, by the time of system calls on them");
	cli_table__print(table);
	if (shown > most)
		printf("and %s more (--by file)\n", cli_count(shown - most));
	free(rows);
}

void report_calls__print(const struct report *r, enum report_by by)
{
	const struct report_times *t = r->times;

	if (t->call_count == 0)
		return;
	if (by == REPORT_ALL || by == REPORT_SYSCALL || by == REPORT_SYSCALL_FILE)
		print_calls(t, by);
	if ((by == REPORT_ALL && pem_pass__file_count(t->pass) != 0) || by == REPORT_FILE)
		print_files(t, by == REPORT_ALL ? ROWS_MOST : SIZE_MAX);
}

/* --- JSON --- */

static struct json_object *entry_json(const struct report_call *row)
{
	struct json_object *entry = json_object_new_object();

	cli_json__count(entry, "count", row->count);
	cli_json__count(entry, "failed", row->errors);
	cli_json__count(entry, "total_ns", row->total_ns);
	cli_json__count(entry, "longest_ns", row->most_ns);
	cli_json__count(entry, "moved_bytes", row->bytes);
	return entry;
}

void report_calls__json(const struct report *r, struct json_object *object)
{
	const struct report_times *t = r->times;
	struct json_object *array = json_object_new_array(), *entry;
	struct report_call *rows;
	size_t i, count;

	rows = sum(t, NULL, &count);
	for (i = 0; rows != NULL && i < count; i++) {
		entry = entry_json(&rows[i]);
		cli_json__text(entry, "call", call_name(t, &rows[i]));
		if (rows[i].file != NO_FILE)
			cli_json__text(entry, "file", pem_pass__file(t->pass, rows[i].file)->path);
		json_object_array_add(array, entry);
	}
	json_object_object_add(object, "system_calls", array);
	free(rows);
}
