// SPDX-License-Identifier: MIT
/*
 * calls.c - system calls by name and by file: how often, how long, what failed, how much was moved
 */
#include "grow.h"
#include "times.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 20u /* unless the user asks for them */
#define ERRNO_MOST 4095 /* Linux: a system call that failed returns -ERRNO_MOST to -1 */

/* --- collecting --- */

static struct report_call *row_of(struct report_times *t, const struct report_call *like)
{
	uint64_t of = report_mix(report_mix(0, (uint64_t)like->interval << 32 | like->file),
				 (uint64_t)like->thread << 32 | like->phase);
	uint32_t *at = pem_number_map__at(&t->call_at, of);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&t->calls, sizeof(*t->calls), t->call_count + 1, &t->call_capacity) <
		    0)
			return NULL;
		t->calls[t->call_count] = *like;
		*at = (uint32_t)t->call_count++;
	}
	return &t->calls[*at];
}

static void add_result(struct report_times *t, struct report_call *row,
		       const struct pem_record *end)
{
	int64_t result;

	if (t->end_event != end->event) {
		t->end_event = end->event;
		t->end_field = pem_event__field_by_role(end->event, PEM_ROLE_VALUE);
	}
	if (t->end_field < 0)
		return;
	result = pem_record__i64(end, (unsigned)t->end_field);
	if (result < 0 && result >= -ERRNO_MOST)
		row->errors++;
	else if (result > 0 && t->intervals[row->interval].moves_bytes)
		cli_sum__add(&row->bytes, (uint64_t)result);
}

int report_calls__add(struct report_times *t, uint32_t interval, const struct pem_ended *ended,
		      const struct pem_record *record, const struct pem_interval *phase)
{
	const struct pem_interval *call = ended->interval;
	uint64_t ns = ended->end_ns > call->begin.time_ns ? ended->end_ns - call->begin.time_ns : 0;
	struct report_call like = {.interval = interval,
				   .file = call->file != NULL ? call->file->number : NO_FILE,
				   .thread =
					   call->thread != NULL ? call->thread->number : NO_THREAD,
				   .phase = NO_INTERVAL};
	struct report_call *row;

	/* A phase that began within the call is not what it was in. */
	if (phase != NULL && phase->begin.time_ns <= call->begin.time_ns) {
		like.phase = report_times__interval(t, phase);
		if (like.phase == NO_INTERVAL)
			return -ENOMEM;
	}
	row = row_of(t, &like);
	if (row == NULL)
		return -ENOMEM;
	if (ended->outcome != PEM_INTERVAL_ENDED) {
		row->unknown++;
		return 0;
	}
	row->count++;
	cli_sum__add(&row->total_ns, ns);
	if (ns > row->most_ns)
		row->most_ns = ns;
	add_result(t, row, record);
	return pem_sketch__add(&row->sketch, (double)ns);
}

static void free_rows(struct report_call *rows, size_t count)
{
	size_t i;

	for (i = 0; rows != NULL && i < count; i++)
		pem_sketch__free(&rows[i].sketch);
	free(rows);
}

void report_calls__free(struct report_times *t)
{
	free_rows(t->calls, t->call_count);
	pem_number_map__free(&t->call_at);
}

/* --- rows for one question --- */

static uint32_t key_of(const struct report_times *t, const struct report_call *call,
		       enum report_key key)
{
	const struct pem_pass_thread *thread;

	switch (key) {
	case KEY_SYSCALL:
		return call->interval;
	case KEY_FILE:
		return call->file;
	case KEY_THREAD:
		return call->thread;
	case KEY_PHASE:
		return call->phase;
	default:
		thread = pem_pass__thread(t->pass, call->thread);
		return thread != NULL && thread->process != NULL ? thread->process->number
								 : UINT32_MAX;
	}
}

static int longer(const void *a, const void *b)
{
	const struct report_call *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

/*
 * Sum the rows that agree in two keys, which may be one. The other numbers are those of the row in
 * which most time went. The caller frees the result by free_rows. NULL: no memory.
 */
static struct report_call *sum(const struct report_times *t, enum report_key first,
			       enum report_key second, size_t *count)
{
	struct report_call *rows = calloc(t->call_count + 1, sizeof(*rows));
	uint64_t *largest = calloc(t->call_count + 1, sizeof(*largest));
	struct pem_number_map at = {0};
	size_t i;

	*count = 0;
	for (i = 0; rows != NULL && largest != NULL && i < t->call_count; i++) {
		const struct report_call *call = &t->calls[i];
		uint64_t key = (uint64_t)key_of(t, call, first) << 32 | key_of(t, call, second);
		uint32_t *index = pem_number_map__at(&at, key);
		struct report_call *row, before;

		if (index == NULL)
			break;
		if (*index == UINT32_MAX)
			*index = (uint32_t)(*count)++;
		row = &rows[*index];
		before = *row;
		if (call->total_ns >= largest[*index]) {
			largest[*index] = call->total_ns;
			*row = *call;
		}
		row->count = before.count + call->count;
		row->total_ns = before.total_ns;
		cli_sum__add(&row->total_ns, call->total_ns);
		row->errors = before.errors + call->errors;
		row->unknown = before.unknown + call->unknown;
		row->bytes = before.bytes;
		cli_sum__add(&row->bytes, call->bytes);
		row->most_ns = call->most_ns > before.most_ns ? call->most_ns : before.most_ns;
		row->sketch = before.sketch;
		if (pem_sketch__merge(&row->sketch, &call->sketch) < 0)
			break;
	}
	if (rows != NULL)
		qsort(rows, *count, sizeof(*rows), longer);
	free(largest);
	pem_number_map__free(&at);
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
	bool ended = row->count != 0;

	cli_table__cell(table, cli_count(row->count));
	cli_table__cell(table, row->errors != 0 ? cli_count(row->errors) : "");
	cli_table__cell(table, row->unknown != 0 ? cli_count(row->unknown) : "");
	cli_table__cell(table, ended ? cli_sum__duration(row->total_ns) : "");
	cli_table__cell(table, cli_sum__mean_duration(row->total_ns, row->count));
	cli_percentiles__durations(&row->sketch, row->most_ns, table);
	cli_table__cell(table, ended ? cli_duration(row->most_ns) : "");
	cli_table__cell(table, row->bytes != 0 ? cli_sum__bytes(row->bytes) : "");
}

static void count_columns(struct cli_table *table)
{
	cli_table__column(table, "CALLS", CLI_RIGHT);
	cli_table__column(table, "FAILED", CLI_RIGHT);
	cli_table__column(table, "NO END", CLI_RIGHT);
	cli_table__column(table, "TOTAL", CLI_RIGHT);
	cli_table__column(table, "MEAN", CLI_RIGHT);
	cli_percentiles__columns(table);
	cli_table__column(table, "LONGEST", CLI_RIGHT);
	cli_table__column(table, "MOVED", CLI_RIGHT);
}

static const char *key_words(const struct report_times *t, const struct report_call *row,
			     enum report_key key)
{
	const struct pem_pass_thread *thread = pem_pass__thread(t->pass, row->thread);

	switch (key) {
	case KEY_SYSCALL:
		return call_name(t, row);
	case KEY_FILE:
		return file_name(t, row);
	case KEY_PHASE:
		return row->phase != NO_INTERVAL ? report_times__title(&t->intervals[row->phase])
						 : "(in none, or in several)";
	case KEY_THREAD:
		return thread != NULL
			       ? cli_format("%.40s %u",
					    thread->process != NULL ? thread->process->name : "?",
					    thread->tid)
			       : "?";
	default:
		if (thread == NULL || thread->process == NULL)
			return "?";
		return cli_format(
			"%.60s %u",
			report_times__process_words(t, thread->process, thread->process->name),
			thread->process->pid);
	}
}

static const char *const key_titles[REPORT_KEYS] = {
	[KEY_SYSCALL] = "SYSTEM CALL", [KEY_FILE] = "FILE",   [KEY_PROCESS] = "PROCESS",
	[KEY_THREAD] = "THREAD",       [KEY_PHASE] = "PHASE",
};

/* A row, and where the sum of its first key stands. */
struct ranked {
	struct report_call call;
	size_t rank;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return longer(&x->call, &y->call);
}

/*
 * The rows of a pair: those of one value of the first key together, in the order of their sums. The
 * caller frees the result by free_ranked. NULL: no memory.
 */
static struct ranked *rank_rows(const struct report_times *t, const enum report_key *pair,
				size_t *count)
{
	size_t group_count = 0, i;
	struct report_call *groups, *rows;
	struct ranked *ranked = NULL;
	struct pem_number_map ranks = {0};
	uint32_t *at;

	groups = sum(t, pair[0], pair[0], &group_count);
	rows = sum(t, pair[0], pair[1], count);
	if (groups != NULL && rows != NULL)
		ranked = calloc(*count + 1, sizeof(*ranked));
	for (i = 0; ranked != NULL && i < group_count; i++) {
		at = pem_number_map__at(&ranks, key_of(t, &groups[i], pair[0]));
		if (at != NULL)
			*at = (uint32_t)i;
	}
	for (i = 0; ranked != NULL && i < *count; i++) {
		at = pem_number_map__at(&ranks, key_of(t, &rows[i], pair[0]));
		ranked[i] = (struct ranked){rows[i], at != NULL ? *at : SIZE_MAX};
	}
	if (ranked != NULL)
		qsort(ranked, *count, sizeof(*ranked), by_rank);
	/* The sketches of rows are those of the result. */
	if (ranked == NULL)
		free_rows(rows, *count);
	else
		free(rows);
	free_rows(groups, group_count);
	pem_number_map__free(&ranks);
	return ranked;
}

static void free_ranked(struct ranked *ranked, size_t count)
{
	size_t i;

	for (i = 0; ranked != NULL && i < count; i++)
		pem_sketch__free(&ranked[i].call.sketch);
	free(ranked);
}

static void print_pair(const struct report *r)
{
	const struct report_times *t = r->times;
	bool has_file = r->pair[0] == KEY_FILE || r->pair[1] == KEY_FILE;
	/* What is long stands last, where it wraps. */
	enum report_key first = r->pair[0] == KEY_FILE ? r->pair[1] : r->pair[0];
	struct cli_table *table = cli_table__new(stdout);
	struct ranked *rows;
	size_t i, count;

	rows = rank_rows(t, r->pair, &count);
	cli_table__column(table, key_titles[first], CLI_CUT);
	if (!has_file)
		cli_table__column(table, key_titles[r->pair[1]], CLI_LEFT);
	count_columns(table);
	if (has_file)
		cli_table__column(table, key_titles[KEY_FILE], CLI_LEFT);
	for (i = 0; rows != NULL && i < count; i++) {
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, key_words(t, &rows[i].call, first));
		if (!has_file)
			cli_table__cell(table, key_words(t, &rows[i].call, r->pair[1]));
		count_cells(table, &rows[i].call);
		if (has_file)
			cli_table__cell(table, key_words(t, &rows[i].call, KEY_FILE));
	}
	report__heading("System calls");
	cli_table__print(table);
	free_ranked(rows, count);
}

static void print_calls(const struct report_times *t, enum report_by by)
{
	size_t most = by == REPORT_ALL ? ROWS_MOST : SIZE_MAX;
	struct cli_table *table = cli_table__new(stdout);
	struct report_call *rows;
	size_t i, count;

	rows = sum(t, KEY_SYSCALL, KEY_SYSCALL, &count);
	cli_table__column(table, "SYSTEM CALL", CLI_LEFT);
	count_columns(table);
	if (by != REPORT_ALL)
		cli_table__column(table, "MOST TIME ON", CLI_CUT);
	for (i = 0; rows != NULL && i < count && i < most; i++) {
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, call_name(t, &rows[i]));
		count_cells(table, &rows[i]);
		cli_table__cell(table, rows[i].file != NO_FILE ? file_name(t, &rows[i]) : "");
	}
	report__heading("System calls");
	cli_table__print(table);
	if (count > most)
		printf("and %s more (--by syscall)\n", cli_count(count - most));
	free_rows(rows, count);
}

static void print_files(const struct report_times *t, size_t most)
{
	struct cli_table *table = cli_table__new(stdout);
	struct report_call *rows;
	size_t i, count, shown = 0;

	rows = sum(t, KEY_FILE, KEY_FILE, &count);
	count_columns(table);
	cli_table__column(table, "MOST IN", CLI_CUT);
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
	free_rows(rows, count);
}

void report_calls__print(const struct report *r, enum report_by by)
{
	const struct report_times *t = r->times;

	if (t->call_count == 0)
		return;
	if (by == REPORT_PAIR)
		print_pair(r);
	if (by == REPORT_ALL || by == REPORT_SYSCALL)
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
	cli_json__count(entry, "no_end", row->unknown);
	cli_json__count(entry, "total_ns", row->total_ns);
	cli_percentiles__json(&row->sketch, &row->most_ns, "_ns", entry);
	cli_json__count(entry, "longest_ns", row->most_ns);
	cli_json__count(entry, "moved_bytes", row->bytes);
	return entry;
}

static void key_json(struct json_object *entry, const struct report_times *t,
		     const struct report_call *row, enum report_key key)
{
	const struct pem_pass_thread *thread = pem_pass__thread(t->pass, row->thread);

	if (key == KEY_SYSCALL)
		cli_json__text(entry, "call", call_name(t, row));
	if (key == KEY_FILE && row->file != NO_FILE)
		cli_json__text(entry, "file", pem_pass__file(t->pass, row->file)->path);
	if (key == KEY_PHASE && row->phase != NO_INTERVAL)
		cli_json__text(entry, "phase", key_words(t, row, KEY_PHASE));
	if (key == KEY_THREAD && thread != NULL)
		cli_json__count(entry, "tid", thread->tid);
	if ((key == KEY_THREAD || key == KEY_PROCESS) && thread != NULL &&
	    thread->process != NULL) {
		cli_json__count(entry, "pid", thread->process->pid);
		cli_json__text(entry, "process", thread->process->name);
	}
}

void report_calls__json(const struct report *r, struct cli_json_stream *json)
{
	enum report_key first = r->has_pair ? r->pair[0] : KEY_SYSCALL;
	enum report_key second = r->has_pair ? r->pair[1] : KEY_FILE;
	struct json_object *entry;
	const struct report_times *t = r->times;
	struct report_call *rows;
	size_t i, count;

	rows = sum(t, first, second, &count);
	cli_json_stream__open(json, "system_calls", '[');
	for (i = 0; rows != NULL && i < count; i++) {
		entry = entry_json(&rows[i]);
		key_json(entry, t, &rows[i], first);
		key_json(entry, t, &rows[i], second);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
	free_rows(rows, count);
}
