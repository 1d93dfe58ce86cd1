// SPDX-License-Identifier: MIT
/* processes_print.c - events by process and by thread, as tables */
#include "report.h"

#include <pem/context.h>

#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 20 /* unless the user asks for them */

static void layer_columns(struct cli_table *table)
{
	unsigned int layer;

	cli_table__column(table, "EVENTS", CLI_RIGHT);
	for (layer = 0; layer < LAYERS; layer++)
		cli_table__column(table, report_layers[layer], CLI_RIGHT);
}

static void layer_cells(const struct report *r, struct cli_table *table, uint64_t count,
			const uint64_t *by_layer)
{
	unsigned int layer;

	cli_table__cell(table, cli_count(count));
	for (layer = 0; layer < LAYERS; layer++)
		cli_table__cell(table,
				r->layer_count[layer] != 0 ? cli_count(by_layer[layer]) : "");
}

static const char *pid_words(uint32_t pid)
{
	return pid != 0 && pid < PEM_PID_UNKNOWN ? cli_format("%u", pid) : "?";
}

/*
 * The name of a process. Without a name are processes outside of the recording, and records whose
 * process is unknown.
 */
static const char *process_name(const struct report_process *process)
{
	return process->pid == 0        ? "(idle or unknown)"
	       : *process->name != '\0' ? process->name
					: "(outside)";
}

static int more_events(const void *a, const void *b)
{
	const struct report_process *x = *(struct report_process *const *)a;
	const struct report_process *y = *(struct report_process *const *)b;

	return x->count != y->count ? (x->count < y->count ? 1 : -1)
				    : (x->pid > y->pid) - (x->pid < y->pid);
}

static int more_thread_events(const void *a, const void *b)
{
	const struct report_thread *x = *(struct report_thread *const *)a;
	const struct report_thread *y = *(struct report_thread *const *)b;

	return x->count != y->count ? (x->count < y->count ? 1 : -1)
				    : (x->tid > y->tid) - (x->tid < y->tid);
}

/* Sort pointers to the elements of an array. The caller frees the result. */
static void *sorted(const void *array, size_t count, size_t bytes,
		    int (*compare)(const void *, const void *))
{
	const void **pointers = calloc(count + 1, sizeof(*pointers));
	size_t i;

	for (i = 0; pointers != NULL && i < count; i++)
		pointers[i] = (const char *)array + i * bytes;
	if (pointers != NULL)
		qsort(pointers, count, sizeof(*pointers), compare);
	return pointers;
}

/*
 * Is the process outside of the program? Such processes occur when the program's threads took a CPU
 * from theirs. They have no names, so they share one row.
 */
static bool is_outside(const struct report_process *process)
{
	return process->pid == 0 || process->name[0] == '\0';
}

static void add_outside(struct report_process *sum, const struct report_process *process)
{
	unsigned int i;

	sum->threads += process->threads - process->nameless;
	sum->count += process->count;
	for (i = 0; i < LAYERS; i++)
		sum->by_layer[i] += process->by_layer[i];
}

/* When the process started, and its parent. "": unknown, as of processes that were there before. */
static void origin_cells(struct cli_table *table, const struct pem_pass_process *known)
{
	cli_table__cell(table, known != NULL && known->start_ns != PEM_TIME_UNKNOWN
				       ? cli_duration(known->start_ns)
				       : "");
	cli_table__cell(
		table, known != NULL && known->parent != NULL ? pid_words(known->parent->pid) : "");
}

static void process_row(const struct report *r, struct cli_table *table, bool is_all,
			const struct report_process *process)
{
	const struct pem_pass_process *known = process->process;

	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table, pid_words(process->pid));
	if (is_all)
		origin_cells(table, known);
	cli_table__cell(table, report_times__process_words(r->times, known, process_name(process)));
	cli_table__cell(table, cli_count(process->threads - process->nameless));
	layer_cells(r, table, process->count, process->by_layer);
}

static void outside_row(const struct report *r, struct cli_table *table,
			const struct report_process *outside)
{
	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table, "");
	cli_table__cell(table, "(outside)");
	cli_table__cell(table, cli_count(outside->threads));
	layer_cells(r, table, outside->count, outside->by_layer);
}

/* is_all: each process has a row, and says where it comes from. */
static void print_processes(const struct report *r, bool is_all)
{
	size_t most = is_all ? SIZE_MAX : ROWS_MOST;
	struct report_process **p =
		sorted(r->processes, r->process_count, sizeof(*r->processes), more_events);
	struct cli_table *table = cli_table__new(stdout);
	struct report_process outside = {0};
	size_t i, shown = 0, left = 0;

	cli_table__column(table, "PID", CLI_RIGHT);
	if (is_all) {
		cli_table__column(table, "STARTED", CLI_RIGHT);
		cli_table__column(table, "PARENT", CLI_RIGHT);
	}
	cli_table__column(table, "PROCESS", CLI_CUT);
	cli_table__column(table, "THREADS", CLI_RIGHT);
	layer_columns(table);
	for (i = 0; p != NULL && i < r->process_count; i++) {
		if (is_outside(p[i]) && !is_all)
			add_outside(&outside, p[i]);
		else if (shown++ < most)
			process_row(r, table, is_all, p[i]);
		else
			left++;
	}
	if (outside.count)
		outside_row(r, table, &outside);
	report__heading("Events by process");
	cli_table__print(table);
	if (left)
		printf("and %s more (--by process)\n", cli_count(left));
	free(p);
}

static void print_threads(const struct report *r)
{
	struct report_thread **t =
		sorted(r->threads, r->thread_count, sizeof(*r->threads), more_thread_events);
	struct cli_table *table = cli_table__new(stdout);
	size_t i;

	cli_table__column(table, "PID", CLI_RIGHT);
	cli_table__column(table, "TID", CLI_RIGHT);
	cli_table__column(table, "PROCESS", CLI_CUT);
	if (r->names_threads)
		cli_table__column(table, "THREAD", CLI_CUT);
	layer_columns(table);
	for (i = 0; t != NULL && i < r->thread_count; i++) {
		const struct report_process *process = &r->processes[t[i]->process];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, pid_words(process->pid));
		cli_table__cell(table, pid_words(t[i]->tid));
		cli_table__cell(table, process_name(process));
		if (r->names_threads)
			cli_table__cell(table, t[i]->name);
		layer_cells(r, table, t[i]->count, t[i]->by_layer);
	}
	report__heading("Events by thread");
	cli_table__print(table);
	free(t);
}

void report_processes__print(const struct report *r, enum report_by by)
{
	if (by == REPORT_ALL || by == REPORT_PROCESS)
		print_processes(r, by == REPORT_PROCESS);
	if (by == REPORT_THREAD)
		print_threads(r);
}
