// SPDX-License-Identifier: MIT
/*
 * waits.c - who was blocked, in what, and who ended it
 *
 * A wait is a time in which a thread was blocked. What ended it is the thread that woke it, by the
 * kernel's own record (meaning 'thread-waking'): the reader of a pipe, or who gave up a mutex.
 */
#include "grow.h"
#include "hash.h"
#include "times.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 20u /* unless the user asks for them */
#define OBJECT_BYTES 64u /* more than a lock or condition variable of any C library has */

/* --- collecting --- */

/* Is the call one that waits for a word of memory, in an object that the interval is about? */
static bool waits_for_object(const struct pem_interval *call, const struct pem_interval *of)
{
	int argument = pem_event__field_by_role(call->begin.event, PEM_ROLE_DESCRIPTOR);
	const struct pem_event *event = of->begin.event;
	uint64_t word, object;
	unsigned int i;

	if (argument < 0 || strncmp(pem_interval__title(call), "futex", 5) != 0)
		return false;
	word = pem_record__u64(&call->begin, (unsigned int)argument);
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].type != PEM_TYPE_ADDRESS)
			continue;
		object = pem_record__u64(&of->begin, i);
		if (word >= object && word - object < OBJECT_BYTES)
			return true;
	}
	return false;
}

/*
 * What the thread waited in: the interval around the wait. If that is a system call within another
 * interval, such as futex in the wait for a mutex, the other one says more. But a thread that holds
 * a lock may wait for anything.
 */
static const struct pem_interval *reason_of(const struct pem_interval *interval)
{
	const struct pem_interval *outer = interval != NULL ? interval->outer : NULL;
	const struct pem_event *event = outer != NULL ? outer->begin.event : NULL;
	int key;

	if (outer == NULL || pem_event__is_phase(event) ||
	    pem_event__field_by_role(interval->begin.event, PEM_ROLE_SYSTEM_CALL) < 0)
		return interval;
	key = pem_event__field_by_role(event, PEM_ROLE_KEY);
	if (key < 0 ||
	    (event->fields[key].type == PEM_TYPE_ADDRESS && !waits_for_object(interval, outer)))
		return interval;
	return outer;
}

/* Address of the lock that an interval is about; 0: it is about none. */
static uint64_t lock_of(const struct pem_interval *interval)
{
	const struct pem_event *event = interval->begin.event;
	int key = pem_event__field_by_role(event, PEM_ROLE_KEY);

	return key >= 0 && event->fields[key].type == PEM_TYPE_ADDRESS
		       ? pem_record__u64(&interval->begin, (unsigned)key)
		       : 0;
}

static struct report_wait *row_of(struct report_times *t, const struct report_wait *like)
{
	uint64_t key = report_mix(report_mix(0, like->thread), like->interval);
	char *waits_on = NULL;
	uint32_t *at = pem_number_map__at(
		&t->wait_at,
		report_mix(report_mix(report_mix(report_mix(key, like->waker), like->woken_by),
				      like->file),
			   report_mix(report_mix(like->lock, like->holder),
				      like->waits_on != NULL
					      ? pem_hash__text(PEM_HASH_START, like->waits_on)
					      : 0)));

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&t->waits, sizeof(*t->waits), t->wait_count + 1, &t->wait_capacity) <
		    0)
			return NULL;
		if (like->waits_on != NULL && (waits_on = strdup(like->waits_on)) == NULL)
			return NULL;
		t->waits[t->wait_count] = *like;
		t->waits[t->wait_count].waits_on = waits_on;
		*at = (uint32_t)t->wait_count++;
	}
	return &t->waits[*at];
}

static bool is_one_of(const char *word, const char *const *words)
{
	while (*words != NULL && strcmp(word, *words) != 0)
		words++;
	return *words != NULL;
}

/* What ended a wait in a call. No page fault lets go of what one of these waits for. */
static enum pem_woken_by woken_by(const char *call, enum pem_woken_by by)
{
	static const char *const calls[] = {
		"accept",       "accept4",       "clock_nanosleep", "connect",   "epoll_pwait",
		"epoll_pwait2", "epoll_wait",    "futex",           "nanosleep", "pause",
		"poll",         "ppoll",         "pselect6",        "recvfrom",  "recvmmsg",
		"recvmsg",      "rt_sigsuspend", "rt_sigtimedwait", "select",    "sendmsg",
		"sendto",       "wait4",         "waitid",          NULL};

	return by == PEM_WOKEN_INTERRUPT_OR_FAULT && is_one_of(call, calls) ? PEM_WOKEN_INTERRUPT
									    : by;
}

int report_waits__add(struct report_times *t, const struct pem_span *span, uint64_t ns)
{
	const struct pem_interval *reason = reason_of(span->interval);
	struct report_wait like = {.thread = span->thread->number,
				   .interval = NO_INTERVAL,
				   .file = NO_FILE,
				   .waker = span->waker != NULL ? span->waker->number : NO_THREAD,
				   .woken_by = span->woken_by,
				   .waits_on = span->waits_on,
				   .holder =
					   span->holder != NULL ? span->holder->number : NO_THREAD};
	struct report_wait *row;
	int64_t location;

	if (reason != NULL) {
		like.interval = report_times__interval(t, reason);
		if (like.interval == NO_INTERVAL)
			return -ENOMEM;
		like.file = reason->file != NULL ? reason->file->number : NO_FILE;
		like.lock = lock_of(reason);
		location = like.lock != 0 ? report_locks__locate(t, like.lock, span->thread) : 0;
		if (location < 0)
			return -ENOMEM;
		like.location = (uint32_t)location;
		like.woken_by =
			woken_by(report_times__title(&t->intervals[like.interval]), span->woken_by);
	}
	row = row_of(t, &like);
	if (row == NULL)
		return -ENOMEM;
	row->count++;
	cli_sum__add(&row->total_ns, ns);
	if (ns > row->most_ns)
		row->most_ns = ns;
	pem_path_part__set_user(span->part, (uint64_t)(row - t->waits) + 1);
	return 0;
}

void report_waits__free(struct report_times *t)
{
	size_t i;

	for (i = 0; i < t->wait_count; i++)
		free((char *)(uintptr_t)t->waits[i].waits_on);
	free(t->waits);
}

/* --- words --- */

const char *report_times__thread_words(const struct report_times *t, uint32_t number)
{
	const struct pem_pass_thread *thread = pem_pass__thread(t->pass, number);

	if (thread == NULL)
		return "";
	if (thread->process == NULL || thread->process->name[0] == '\0')
		return cli_format("? %u", thread->tid);
	return cli_format("%.40s%s%s %u", thread->process->name,
			  *report_times__own_name(thread) != '\0' ? "/" : "",
			  report_times__own_name(thread), thread->tid);
}

const char *report_waits__object(const struct report_times *t, const struct report_wait *row)
{
	if (row->file != NO_FILE)
		return pem_pass__file(t->pass, row->file)->path;
	if (row->holder != NO_THREAD)
		return cli_format("%.90s, held by %.80s",
				  row->waits_on != NULL ? row->waits_on : "?",
				  report_times__thread_words(t, row->holder));
	if (row->waits_on != NULL)
		return row->waits_on;
	return row->lock != 0 ? report_locks__words(t, row->lock, row->location) : "";
}

const char *report_waits__reason(const struct report_times *t, const struct report_wait *row)
{
	return row->interval != NO_INTERVAL ? report_times__title(&t->intervals[row->interval])
					    : "no known interval";
}

const char *report_waits__waker(const struct report_times *t, const struct report_wait *row)
{
	/* Only its timer ends such a call by an interrupt. */
	static const char *const sleeps[] = {"clock_nanosleep", "nanosleep", NULL};

	switch (row->woken_by) {
	case PEM_WOKEN_THREAD:
		return report_times__thread_words(t, row->waker);
	case PEM_WOKEN_INTERRUPT:
		return is_one_of(report_waits__reason(t, row), sleeps) ? "its timer"
								       : "an interrupt";
	case PEM_WOKEN_INTERRUPT_OR_FAULT:
		return "an interrupt or a page fault";
	case PEM_WOKEN_OUTSIDE:
		return "a process outside";
	default:
		return "";
	}
}

static int longer(const void *a, const void *b)
{
	const struct report_wait *x = *(const struct report_wait *const *)a;
	const struct report_wait *y = *(const struct report_wait *const *)b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* The rows, the longest first. The caller frees the result. NULL: no memory. */
static const struct report_wait **sorted(const struct report_times *t)
{
	const struct report_wait **rows = calloc(t->wait_count + 1, sizeof(*rows));
	size_t i;

	for (i = 0; rows != NULL && i < t->wait_count; i++)
		rows[i] = &t->waits[i];
	if (rows != NULL)
		qsort(rows, t->wait_count, sizeof(*rows), longer);
	return rows;
}

void report_waits__print(const struct report *r, enum report_by by)
{
	size_t i, most = by == REPORT_WAIT ? SIZE_MAX : ROWS_MOST;
	const struct report_times *t = r->times;
	const struct report_wait **rows;
	struct cli_table *table;

	if (by != REPORT_WAIT || t->wait_count == 0)
		return;
	rows = sorted(t);
	table = cli_table__new(stdout);
	cli_table__column(table, "THREAD", CLI_CUT);
	cli_table__column(table, "WAITS", CLI_RIGHT);
	cli_table__column(table, "TOTAL", CLI_RIGHT);
	cli_table__column(table, "LONGEST", CLI_RIGHT);
	cli_table__column(table, "IN", CLI_CUT);
	cli_table__column(table, "WOKEN BY", CLI_CUT);
	cli_table__column(table, "ON", CLI_CUT);
	for (i = 0; rows != NULL && i < t->wait_count && i < most; i++) {
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, report_times__thread_words(t, rows[i]->thread));
		cli_table__cell(table, cli_count(rows[i]->count));
		cli_table__cell(table, cli_sum__duration(rows[i]->total_ns));
		cli_table__cell(table, cli_duration(rows[i]->most_ns));
		cli_table__cell(table, report_waits__reason(t, rows[i]));
		cli_table__cell(table, report_waits__waker(t, rows[i]));
		cli_table__cell(table, report_waits__object(t, rows[i]));
	}
	report__heading("Waits");
	cli_table__print(table);
	if (!report__has(r, PEM_MEANS_THREAD_WAKING))
		cli_wrap(stdout, "Who ended a wait was not recorded: pem record -e +Waking does.",
			 0, 0, cli_width(stdout));
	free(rows);
}

/* --- JSON --- */

static const char *const woken_by_words[] = {[PEM_WOKEN_THREAD] = "thread",
					     [PEM_WOKEN_INTERRUPT] = "interrupt",
					     [PEM_WOKEN_INTERRUPT_OR_FAULT] = "interrupt-or-fault",
					     [PEM_WOKEN_OUTSIDE] = "outside"};

static void thread_json(struct json_object *entry, const char *pid, const char *tid,
			const struct pem_pass_thread *thread)
{
	if (thread == NULL)
		return;
	if (thread->process != NULL)
		cli_json__count(entry, pid, thread->process->pid);
	cli_json__count(entry, tid, thread->tid);
}

void report_waits__describe(const struct report_times *t, const struct report_wait *row,
			    struct json_object *entry)
{
	thread_json(entry, "waker_pid", "waker_tid", pem_pass__thread(t->pass, row->waker));
	if (row->woken_by != PEM_WOKEN_UNKNOWN)
		cli_json__text(entry, "woken_by", woken_by_words[row->woken_by]);
	if (row->interval != NO_INTERVAL)
		cli_json__text(entry, "interval", t->intervals[row->interval].name);
	if (row->file != NO_FILE)
		cli_json__text(entry, "file", report_waits__object(t, row));
	if (row->lock != 0)
		cli_json__count(entry, "lock", row->lock);
	if (row->lock != 0 && report_locks__variable(t, row->location) != NULL)
		cli_json__text(entry, "variable", report_locks__variable(t, row->location));
	if (row->waits_on != NULL)
		cli_json__text(entry, "waits_on", row->waits_on);
	thread_json(entry, "holder_pid", "holder_tid", pem_pass__thread(t->pass, row->holder));
}

void report_waits__json(const struct report *r, struct cli_json_stream *json)
{
	struct json_object *entry;
	const struct report_wait **rows = sorted(r->times);
	const struct report_times *t = r->times;
	size_t i;

	cli_json_stream__open(json, "waits", '[');
	for (i = 0; rows != NULL && i < t->wait_count; i++) {
		entry = json_object_new_object();
		thread_json(entry, "pid", "tid", pem_pass__thread(t->pass, rows[i]->thread));
		report_waits__describe(t, rows[i], entry);
		cli_json__count(entry, "count", rows[i]->count);
		cli_json__count(entry, "total_ns", rows[i]->total_ns);
		cli_json__count(entry, "longest_ns", rows[i]->most_ns);
		cli_json_stream__add(json, NULL, entry);
	}
	free(rows);
	cli_json_stream__close(json, ']');
}
