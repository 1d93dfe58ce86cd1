// SPDX-License-Identifier: MIT
/*
 * locks.c - intervals of locks, such as waits for a mutex and the time that it was held: by lock
 *
 * A lock is an address in a process: the field of role 'key' of the interval's begin. Programs
 * raise these events themselves. So no event of the kernel is needed. A lock that is a variable of
 * a program or library, or in one, has its name.
 */
#include "grow.h"
#include "times.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* --- collecting --- */

int64_t report_locks__locate(struct report_times *t, uint64_t lock,
			     const struct pem_pass_thread *thread)
{
	const struct pem_pass_process *process = thread != NULL ? thread->process : NULL;

	return pem_code__locate(t->data, process != NULL ? process->pid : 0, process, lock + 1);
}

int report_locks__add(struct report_times *t, uint32_t interval, const struct pem_interval *ended,
		      uint64_t ns)
{
	struct report_lock like = {
		.lock = pem_record__u64(&ended->begin,
					(unsigned int)t->intervals[interval].lock_field),
		.interval = interval,
		.thread = ended->thread != NULL ? ended->thread->number : NO_THREAD};
	int64_t location = report_locks__locate(t, like.lock, ended->thread);
	uint64_t key = report_mix(report_mix(report_mix(0, like.lock), interval), like.thread);
	struct report_lock *row;
	uint32_t *at;

	if (t->lock_count >= LOCKS_MAX && pem_number_map__value(&t->lock_at, key) == UINT32_MAX) {
		t->locks_left_out++;
		return 0;
	}
	at = pem_number_map__at(&t->lock_at, key);
	if (at == NULL || location < 0)
		return -ENOMEM;
	like.location = (uint32_t)location;
	if (*at == UINT32_MAX) {
		if (pem_grow(&t->locks, sizeof(*t->locks), t->lock_count + 1, &t->lock_capacity) <
		    0)
			return -ENOMEM;
		t->locks[t->lock_count] = like;
		*at = (uint32_t)t->lock_count++;
	}
	row = &t->locks[*at];
	row->count++;
	cli_sum__add(&row->total_ns, ns);
	if (ns > row->most_ns)
		row->most_ns = ns;
	return 0;
}

/* --- rows: one for each process, lock and kind of interval --- */

struct row {
	struct report_lock sum; /* its thread is the one of most time */
	const struct pem_pass_process *process; /* NULL: unknown */
	uint64_t thread_ns; /* of that thread */
	uint32_t threads;
};

static int longer(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->sum.total_ns != y->sum.total_ns)
		return x->sum.total_ns < y->sum.total_ns ? 1 : -1;
	return x->sum.lock != y->sum.lock
		       ? (x->sum.lock > y->sum.lock) - (x->sum.lock < y->sum.lock)
		       : (x->sum.interval > y->sum.interval) - (x->sum.interval < y->sum.interval);
}

static void add_to(struct row *row, const struct report_lock *lock)
{
	if (row->threads++ == 0)
		row->sum = (struct report_lock){
			.lock = lock->lock, .location = lock->location, .interval = lock->interval};
	if (lock->total_ns >= row->thread_ns) {
		row->thread_ns = lock->total_ns;
		row->sum.thread = lock->thread;
	}
	row->sum.count += lock->count;
	cli_sum__add(&row->sum.total_ns, lock->total_ns);
	if (lock->most_ns > row->sum.most_ns)
		row->sum.most_ns = lock->most_ns;
}

/* The caller frees the result. NULL: no memory. */
static struct row *rows_of(const struct report_times *t, size_t *count)
{
	struct row *rows = calloc(t->lock_count + 1, sizeof(*rows));
	struct pem_number_map map = {0};
	size_t i;

	*count = 0;
	for (i = 0; rows != NULL && i < t->lock_count; i++) {
		const struct pem_pass_thread *thread =
			pem_pass__thread(t->pass, t->locks[i].thread);
		const struct pem_pass_process *process = thread != NULL ? thread->process : NULL;
		uint32_t *at = pem_number_map__at(
			&map, report_mix(report_mix(report_mix(0, t->locks[i].lock),
						    t->locks[i].interval),
					 process != NULL ? process->number : NO_THREAD));

		if (at == NULL)
			break;
		if (*at == UINT32_MAX) {
			*at = (uint32_t)(*count)++;
			rows[*at].process = process;
		}
		add_to(&rows[*at], &t->locks[i]);
	}
	pem_number_map__free(&map);
	if (rows != NULL)
		qsort(rows, *count, sizeof(*rows), longer);
	return rows;
}

const char *report_locks__variable(const struct report_times *t, uint32_t location)
{
	const struct pem_code_location *at = pem_code__location(t->data, location);
	uint64_t within;

	if (at->name_count == 0 || at->names[0].function == NULL)
		return NULL;
	within = at->offset - 1 - at->names[0].start;
	return within == 0 ? cli_format("&%.300s", at->names[0].function)
			   : cli_format("&%.300s+0x%llx", at->names[0].function,
					(unsigned long long)within);
}

const char *report_locks__words(const struct report_times *t, uint64_t lock, uint32_t location)
{
	const char *variable = report_locks__variable(t, location);

	return variable != NULL ? variable : cli_format("0x%llx", (unsigned long long)lock);
}

void report_locks__print(const struct report *r, enum report_by by)
{
	const struct report_times *t = r->times;
	struct cli_table *table;
	struct row *rows;
	size_t i, count;

	if (by != REPORT_LOCK)
		return;
	if (t->lock_count == 0) {
		putchar('\n');
		cli_wrap(stdout,
			 "No wait for a lock, and no lock held, was recorded: -e APP::Lock records "
			 "both",
			 0, 0, cli_width(stdout));
		return;
	}
	rows = rows_of(t, &count);
	table = cli_table__new(stdout);
	cli_table__column(table, "LOCK", CLI_CUT);
	cli_table__column(table, "TIMES", CLI_RIGHT);
	cli_table__column(table, "TOTAL", CLI_RIGHT);
	cli_table__column(table, "LONGEST", CLI_RIGHT);
	cli_table__column(table, "THREADS", CLI_RIGHT);
	cli_table__column(table, "IN", CLI_CUT);
	cli_table__column(table, "MOSTLY", CLI_CUT);
	for (i = 0; rows != NULL && i < count; i++) {
		const struct report_lock *sum = &rows[i].sum;

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, report_locks__words(t, sum->lock, sum->location));
		cli_table__cell(table, cli_count(sum->count));
		cli_table__cell(table, cli_sum__duration(sum->total_ns));
		cli_table__cell(table, cli_duration(sum->most_ns));
		cli_table__cell(table, cli_count(rows[i].threads));
		cli_table__cell(table, report_times__title(&t->intervals[sum->interval]));
		cli_table__cell(table, report_times__thread_words(t, sum->thread));
	}
	report__heading("Locks");
	cli_table__print(table);
	if (pem_code__object_count(t->data) == 0)
		cli_wrap(stdout,
			 "Locks that are variables have their names if APP::Loader::Object is "
			 "recorded beside them.",
			 0, 0, cli_width(stdout));
	if (t->locks_left_out != 0)
		printf("and %s intervals of more locks\n", cli_count(t->locks_left_out));
	free(rows);
}

void report_locks__json(const struct report *r, struct cli_json_stream *json)
{
	struct json_object *entry;
	const struct report_times *t = r->times;
	size_t i, count;
	struct row *rows = rows_of(t, &count);

	cli_json_stream__open(json, "locks", '[');
	for (i = 0; rows != NULL && i < count; i++) {
		entry = json_object_new_object();
		if (rows[i].process != NULL)
			cli_json__count(entry, "pid", rows[i].process->pid);
		cli_json__count(entry, "lock", rows[i].sum.lock);
		if (report_locks__variable(t, rows[i].sum.location) != NULL)
			cli_json__text(entry, "variable",
				       report_locks__variable(t, rows[i].sum.location));
		cli_json__text(entry, "interval", t->intervals[rows[i].sum.interval].name);
		cli_json__count(entry, "threads", rows[i].threads);
		cli_json__count(entry, "count", rows[i].sum.count);
		cli_json__count(entry, "total_ns", rows[i].sum.total_ns);
		cli_json__count(entry, "longest_ns", rows[i].sum.most_ns);
		cli_json_stream__add(json, NULL, entry);
	}
	free(rows);
	cli_json_stream__close(json, ']');
}
