// SPDX-License-Identifier: MIT
/*
 * times_print.c - where the time of threads went, and how long intervals took, as tables and JSON
 */
#include "times.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 20u /* unless the user asks for them */

static uint64_t known_ns(const struct report_thread_time *t)
{
	return t->ns[PEM_THREAD_RUNNING] + t->ns[PEM_THREAD_RUNNABLE] + t->ns[PEM_THREAD_BLOCKED];
}

/* The thread that ran or waited for a CPU for longest first: one that only slept tells little. */
static int busier(const void *a, const void *b)
{
	const struct report_thread_time *x = *(const struct report_thread_time *const *)a;
	const struct report_thread_time *y = *(const struct report_thread_time *const *)b;
	uint64_t i = x->ns[PEM_THREAD_RUNNING] + x->ns[PEM_THREAD_RUNNABLE];
	uint64_t j = y->ns[PEM_THREAD_RUNNING] + y->ns[PEM_THREAD_RUNNABLE];

	if (i != j)
		return i < j ? 1 : -1;
	return (x->thread->number > y->thread->number) - (x->thread->number < y->thread->number);
}

static int longer(const void *a, const void *b)
{
	const struct report_interval *x = *(const struct report_interval *const *)a;
	const struct report_interval *y = *(const struct report_interval *const *)b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

static const struct report_thread_time **sorted_threads(const struct report_times *t, size_t *count)
{
	const struct report_thread_time **rows = calloc(t->thread_count + 1, sizeof(*rows));
	size_t i;

	*count = 0;
	for (i = 0; rows != NULL && i < t->thread_count; i++)
		if (t->threads[i].thread != NULL && known_ns(&t->threads[i]) != 0)
			rows[(*count)++] = &t->threads[i];
	if (rows != NULL)
		qsort(rows, *count, sizeof(*rows), busier);
	return rows;
}

/* with_calls: system calls are intervals, too. */
static const struct report_interval **sorted_intervals(const struct report_times *t,
						       bool with_calls, size_t *count)
{
	const struct report_interval **rows = calloc(t->interval_count + 1, sizeof(*rows));
	size_t i;

	*count = 0;
	for (i = 0; rows != NULL && i < t->interval_count; i++)
		if (with_calls || !t->intervals[i].is_call)
			rows[(*count)++] = &t->intervals[i];
	if (rows != NULL)
		qsort(rows, *count, sizeof(*rows), longer);
	return rows;
}

static const char *process_words(const struct report_times *t, const struct pem_pass_thread *thread)
{
	const struct pem_pass_process *process = thread->process;

	if (process == NULL || process->name[0] == '\0')
		return "?";
	return report_times__process_words(t, process, process->name);
}

const char *report_times__own_name(const struct pem_pass_thread *thread)
{
	const char *process = thread->process != NULL ? thread->process->name : "";
	const char *slash = strrchr(process, '/');

	/* The kernel's names of threads have 15 bytes, those of programs may be paths. */
	return strncmp(slash != NULL ? slash + 1 : process, thread->name, 15) != 0 ? thread->name
										   : "";
}

const char *report_times__title(const struct report_interval *interval)
{
	const char *space = strchr(interval->name, ' ');
	const char *colon = strrchr(interval->name, ':');

	return space != NULL ? space + 1 : colon != NULL ? colon + 1 : interval->name;
}

/* Where it was blocked for longest, if that is a tenth of its blocked time or more. */
static const char *blocked_words(const struct report_times *t, const struct report_thread_time *row)
{
	const struct report_blocked *longest = report_times__longest(t, row);

	if (longest == NULL || longest->ns < row->ns[PEM_THREAD_BLOCKED] / 10)
		return "";
	return cli_format("%s in %.100s", cli_duration(longest->ns),
			  longest->interval == NO_INTERVAL
				  ? "no known interval"
				  : report_times__title(&t->intervals[longest->interval]));
}

static void print_threads(const struct report_times *t, size_t most)
{
	const struct report_thread_time **rows;
	struct cli_table *table;
	size_t i, count;

	rows = sorted_threads(t, &count);
	if (rows == NULL || count == 0) {
		free(rows);
		return;
	}
	table = cli_table__new(stdout);
	cli_table__column(table, "PID", CLI_RIGHT);
	cli_table__column(table, "TID", CLI_RIGHT);
	cli_table__column(table, "PROCESS", CLI_CUT);
	cli_table__column(table, "THREAD", CLI_CUT);
	cli_table__column(table, "RAN", CLI_RIGHT);
	cli_table__column(table, "FOR A CPU", CLI_RIGHT);
	cli_table__column(table, "BLOCKED", CLI_RIGHT);
	cli_table__column(table, "BLOCKED MOST", CLI_CUT);
	for (i = 0; i < count && i < most; i++) {
		const struct pem_pass_thread *thread = rows[i]->thread;

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, thread->process != NULL
					       ? cli_format("%u", thread->process->pid)
					       : "?");
		cli_table__cell(table, cli_format("%u", thread->tid));
		cli_table__cell(table, process_words(t, thread));
		cli_table__cell(table, report_times__own_name(thread));
		cli_table__cell(table, cli_sum__duration(rows[i]->ns[PEM_THREAD_RUNNING]));
		cli_table__cell(table, cli_sum__duration(rows[i]->ns[PEM_THREAD_RUNNABLE]));
		cli_table__cell(table, cli_sum__duration(rows[i]->ns[PEM_THREAD_BLOCKED]));
		cli_table__cell(table, blocked_words(t, rows[i]));
	}
	report__heading("Where threads' time went");
	cli_table__print(table);
	if (count > most)
		printf("and %s more (--by state)\n", cli_count(count - most));
	free(rows);
}

static void print_intervals(const struct report_times *t, bool with_calls, size_t most)
{
	const struct report_interval **rows;
	struct cli_table *table;
	bool unknown = false;
	size_t i, count;

	rows = sorted_intervals(t, with_calls, &count);
	if (rows == NULL || count == 0) {
		free(rows);
		return;
	}
	for (i = 0; i < count; i++)
		unknown |= rows[i]->unknown != 0;
	table = cli_table__new(stdout);
	cli_table__column(table, "INTERVAL", CLI_CUT);
	cli_table__column(table, "TIMES", CLI_RIGHT);
	cli_table__column(table, "TOTAL", CLI_RIGHT);
	cli_table__column(table, "MEAN", CLI_RIGHT);
	cli_percentiles__columns(table);
	cli_table__column(table, "LONGEST", CLI_RIGHT);
	cli_table__column(table, "BLOCKED", CLI_RIGHT);
	if (unknown)
		cli_table__column(table, "END UNKNOWN", CLI_RIGHT);
	for (i = 0; i < count && i < most; i++) {
		const struct report_interval *row = rows[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, row->name);
		cli_table__cell(table, cli_count(row->count));
		cli_table__cell(table, cli_sum__duration(row->total_ns));
		cli_table__cell(table, cli_sum__mean_duration(row->total_ns, row->count));
		cli_percentiles__durations(&row->sketch, row->most_ns, table);
		cli_table__cell(table, cli_duration(row->most_ns));
		cli_table__cell(table,
				row->blocked_ns != 0 ? cli_sum__duration(row->blocked_ns) : "");
		if (unknown)
			cli_table__cell(table, row->unknown != 0 ? cli_count(row->unknown) : "");
	}
	report__heading("Intervals");
	cli_table__print(table);
	if (count > most)
		printf("and %s more (--by interval)\n", cli_count(count - most));
	free(rows);
}

void report_times__print(const struct report *r, enum report_by by)
{
	size_t most = by == REPORT_ALL ? ROWS_MOST : SIZE_MAX;

	if (by == REPORT_ALL || by == REPORT_STATE)
		print_threads(r->times, most);
	if (by == REPORT_ALL || by == REPORT_INTERVAL)
		/* System calls have a table of their own. */
		print_intervals(r->times, by == REPORT_INTERVAL, most);
}

static void threads_json(const struct report_times *t, struct cli_json_stream *json)
{
	const struct report_thread_time **rows;
	size_t i, count;

	rows = sorted_threads(t, &count);
	cli_json_stream__open(json, "thread_states", '[');
	for (i = 0; rows != NULL && i < count; i++) {
		const struct report_thread_time *row = rows[i];
		const struct report_blocked *longest = report_times__longest(t, row);
		struct json_object *entry = json_object_new_object();

		if (row->thread->process != NULL)
			cli_json__count(entry, "pid", row->thread->process->pid);
		cli_json__count(entry, "tid", row->thread->tid);
		cli_json__text(entry, "process",
			       row->thread->process != NULL ? row->thread->process->name : "");
		if (row->thread->name[0] != '\0')
			cli_json__text(entry, "thread", row->thread->name);
		cli_json__count(entry, "running_ns", row->ns[PEM_THREAD_RUNNING]);
		cli_json__count(entry, "runnable_ns", row->ns[PEM_THREAD_RUNNABLE]);
		cli_json__count(entry, "blocked_ns", row->ns[PEM_THREAD_BLOCKED]);
		if (longest != NULL && longest->interval != NO_INTERVAL) {
			cli_json__text(entry, "blocked_most_in",
				       t->intervals[longest->interval].name);
			cli_json__count(entry, "blocked_most_ns", longest->ns);
		}
		cli_json_stream__add(json, NULL, entry);
	}
	free(rows);
	cli_json_stream__close(json, ']');
}

static void intervals_json(const struct report_times *t, struct cli_json_stream *json)
{
	const struct report_interval **rows;
	size_t i, count;

	rows = sorted_intervals(t, true, &count);
	cli_json_stream__open(json, "intervals", '[');
	for (i = 0; rows != NULL && i < count; i++) {
		struct json_object *entry = json_object_new_object();

		cli_json__text(entry, "interval", rows[i]->name);
		cli_json__count(entry, "count", rows[i]->count);
		cli_json__count(entry, "total_ns", rows[i]->total_ns);
		cli_percentiles__json(&rows[i]->sketch, &rows[i]->most_ns, "_ns", entry);
		cli_json__count(entry, "longest_ns", rows[i]->most_ns);
		cli_json__count(entry, "blocked_ns", rows[i]->blocked_ns);
		cli_json__count(entry, "end_unknown", rows[i]->unknown);
		cli_json_stream__add(json, NULL, entry);
	}
	free(rows);
	cli_json_stream__close(json, ']');
}

void report_times__json(const struct report *r, struct cli_json_stream *json)
{
	threads_json(r->times, json);
	report_path__json(r, json);
	report_waits__json(r, json);
	report_locks__json(r, json);
	intervals_json(r->times, json);
	report_messages__json(r, json);
}
