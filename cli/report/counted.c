/* SPDX-License-Identifier: MIT */
/*
 * counted.c - what threads' counters counted within intervals, and from one event to the next
 *
 * A thread logs what its counters hold in front of an event (HW::HWPerf::HPMsInThread). Of an
 * interval the difference between its begin and its end is told; of another event the difference
 * from the thread's reading before.
 */
#include "grow.h"
#include "hash.h"
#include "number_map.h"
#include "report.h"
#include "times.h"

#include <pem/context.h>

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS_MAX 8u
#define ROWS_MOST 40u
#define NONE UINT32_MAX

struct reading {
	uint64_t value[COUNTERS_MAX];
	uint32_t known; /* bit i: value i is there */
	uint32_t event_id; /* of the event that it is in front of */
	bool is_new; /* that event has not come yet */
	uint32_t next_free;
};

struct thread {
	struct reading now, before; /* its last two */
};

/* What was counted under one name in one thread, or in all. */
struct counted {
	char *name;
	const struct pem_pass_thread *thread; /* NULL: all */
	uint64_t times;
	uint64_t sum[COUNTERS_MAX];
	uint64_t of[COUNTERS_MAX]; /* how often the counter was known */
	bool is_interval;
};

struct report_counted {
	char *names; /* of counters, cut into texts */
	const char *counter[COUNTERS_MAX];
	bool is_time[COUNTERS_MAX]; /* in ns */
	size_t counters;
	struct thread *threads;
	size_t thread_count, thread_capacity;
	struct pem_number_map thread_at; /* key: number of the thread in the pass */
	struct reading *begun; /* of open intervals, whose user[1] is the index + 1 */
	size_t begun_count, begun_capacity;
	uint32_t free_begun;
	struct counted *rows;
	size_t row_count, row_capacity;
	struct pem_number_map row_at; /* key: hash of name and thread */
};

/* Is this the name of a counter of nanoseconds? */
static bool is_time(const struct pem_model *catalogue, const char *name)
{
	size_t i;

	for (i = 0; catalogue != NULL && i < pem_model__count(catalogue); i++) {
		const struct pem_event *event = pem_model__event(catalogue, i);
		int value = pem_event__field_by_role(event, PEM_ROLE_VALUE);

		if (event->source_kind == PEM_SOURCE_PERF && value >= 0 &&
		    strcmp(event->specifier, name) == 0)
			return strcmp(event->fields[value].unit, "ns") == 0;
	}
	return false;
}

struct report_counted *report_counted__new(const struct pem_trace_info *info)
{
	struct report_counted *c = calloc(1, sizeof(*c));
	struct pem_model *catalogue = pem_model__new();
	struct pem_error error = {{0}};
	char *rest;

	if (c == NULL || catalogue == NULL || pem_model__add_catalogue(catalogue, &error) < 0 ||
	    (c->names = strdup(info->counters)) == NULL) {
		free(c);
		pem_model__free(catalogue);
		return NULL;
	}
	c->free_begun = NONE;
	rest = pem_printable(c->names);
	while (c->counters < COUNTERS_MAX && rest != NULL && *rest != '\0') {
		c->counter[c->counters] = strsep(&rest, ",");
		c->is_time[c->counters] = is_time(catalogue, c->counter[c->counters]);
		c->counters++;
	}
	pem_model__free(catalogue);
	return c;
}

void report_counted__free(struct report_counted *c)
{
	size_t i;

	if (c == NULL)
		return;
	for (i = 0; i < c->row_count; i++)
		free(c->rows[i].name);
	free(c->rows);
	free(c->threads);
	free(c->begun);
	free(c->names);
	pem_number_map__free(&c->thread_at);
	pem_number_map__free(&c->row_at);
	free(c);
}

/* NULL: no memory. */
static struct thread *thread_of(struct report_counted *c, const struct pem_pass_thread *thread)
{
	uint32_t *at = pem_number_map__at(&c->thread_at, thread->number);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&c->threads, sizeof(*c->threads), c->thread_count + 1,
			     &c->thread_capacity) < 0)
			return NULL;
		c->threads[c->thread_count] = (struct thread){0};
		*at = (uint32_t)c->thread_count++;
	}
	return &c->threads[*at];
}

static struct counted *row_of(struct report_counted *c, const char *name, bool is_interval,
			      const struct pem_pass_thread *thread)
{
	uint64_t key = pem_hash__text(PEM_HASH_START + is_interval, name) ^
		       (thread != NULL ? thread->number + 1ull : 0) * 0x9e3779b97f4a7c15ull;
	struct counted *row;
	uint32_t *at;

	/* Another row may have the same hash. */
	for (; (at = pem_number_map__at(&c->row_at, key)) != NULL && *at != UINT32_MAX; key++) {
		row = &c->rows[*at];
		if (row->thread == thread && row->is_interval == is_interval &&
		    strcmp(row->name, name) == 0)
			return row;
	}
	if (at == NULL ||
	    pem_grow(&c->rows, sizeof(*c->rows), c->row_count + 1, &c->row_capacity) < 0)
		return NULL;
	row = &c->rows[c->row_count];
	*row = (struct counted){.name = strdup(name), .thread = thread, .is_interval = is_interval};
	if (row->name == NULL)
		return NULL;
	*at = (uint32_t)c->row_count++;
	return row;
}

static int add(struct report_counted *c, const char *name, bool is_interval,
	       const struct pem_pass_thread *thread, const struct reading *from,
	       const struct reading *to)
{
	struct counted *row = row_of(c, name, is_interval, thread);
	size_t i;

	if (row == NULL)
		return -ENOMEM;
	row->times++;
	for (i = 0; i < c->counters; i++) {
		if ((from->known & to->known) >> i & 1 && to->value[i] >= from->value[i]) {
			cli_sum__add(&row->sum[i], to->value[i] - from->value[i]);
			row->of[i]++;
		}
	}
	return 0;
}

static int take_reading(struct report_counted *c, const struct pem_record *record,
			const struct pem_pass_thread *of)
{
	int list = pem_event__field(record->event, "counterValues");
	int missing = pem_event__field(record->event, "missing");
	int id = pem_event__field(record->event, "eventId");
	struct thread *thread = thread_of(c, of);
	struct reading *reading;
	const void *values = NULL;
	uint32_t n;

	if (thread == NULL)
		return -ENOMEM;
	if (list < 0 || missing < 0 || id < 0 ||
	    record->event->fields[list].type != PEM_TYPE_LIST ||
	    record->event->fields[list].element_type != PEM_TYPE_UINT64)
		return 0;
	thread->before = thread->now;
	reading = &thread->now;
	n = pem_record__list(record, (unsigned int)list, &values);
	n = n < COUNTERS_MAX ? n : COUNTERS_MAX;
	if (n != 0)
		memcpy(reading->value, values, n * sizeof(reading->value[0]));
	reading->known =
		((1u << n) - 1) & ~(uint32_t)pem_record__u64(record, (unsigned int)missing);
	reading->event_id = (uint32_t)pem_record__u64(record, (unsigned int)id);
	reading->is_new = true;
	return 0;
}

static int keep_begin(struct report_counted *c, const struct pem_interval *interval,
		      const struct reading *reading)
{
	uint32_t i = c->free_begun;

	if (i != NONE) {
		c->free_begun = c->begun[i].next_free;
	} else {
		if (pem_grow(&c->begun, sizeof(*c->begun), c->begun_count + 1, &c->begun_capacity) <
		    0)
			return -ENOMEM;
		i = (uint32_t)c->begun_count++;
	}
	c->begun[i] = *reading;
	pem_interval__set_user(interval, 1, i + 1ull);
	return 0;
}

/* Add what an interval counted, if its end was counted. reading NULL: it was not. */
static int end_interval(struct report_counted *c, const struct pem_ended *ended,
			const struct pem_record *record, const struct reading *reading)
{
	uint32_t i = (uint32_t)ended->interval->user[1];
	int rc = 0;

	if (i == 0)
		return 0;
	if (reading != NULL && ended->outcome == PEM_INTERVAL_ENDED &&
	    ended->interval->begin.tid == record->tid)
		rc = add(c, pem_interval__title(ended->interval), true, ended->interval->thread,
			 &c->begun[i - 1], reading);
	c->begun[i - 1].next_free = c->free_begun;
	c->free_begun = i - 1;
	return rc;
}

/* The reading that belongs to a record; NULL: it has none, or there is no memory. */
static struct thread *thread_with_reading(struct report_counted *c, const struct pem_record *record,
					  const struct pem_pass_thread *of)
{
	uint32_t at = pem_number_map__value(&c->thread_at, of->number);
	struct thread *thread = at != UINT32_MAX ? &c->threads[at] : NULL;

	return thread != NULL && thread->now.is_new && thread->now.event_id == record->event->id
		       ? thread
		       : NULL;
}

int report_counted__record(struct report_counted *c, const struct pem_record *record,
			   const struct pem_around *around)
{
	struct thread *thread = NULL;
	bool is_interval = false;
	size_t i;
	int rc = 0;

	if (c->counters == 0)
		return 0;
	/* A row of thread 0 is that of all. */
	if (record != NULL && around->thread == NULL)
		record = NULL;
	if (record != NULL && strcmp(record->event->name, PEM_THREAD_COUNTERS_EVENT) == 0)
		return take_reading(c, record, around->thread);
	if (record != NULL)
		thread = thread_with_reading(c, record, around->thread);
	for (i = 0; rc == 0 && i < around->ended_count; i++) {
		is_interval |= around->ended[i].interval->user[1] != 0;
		rc = end_interval(c, &around->ended[i], record,
				  thread != NULL ? &thread->now : NULL);
	}
	if (thread == NULL || rc < 0)
		return rc;
	if (around->begun != NULL)
		rc = keep_begin(c, around->begun, &thread->now);
	else if (!is_interval && thread->before.event_id != 0)
		rc = add(c, record->event->name, false, around->thread, &thread->before,
			 &thread->now);
	thread->now.is_new = false;
	return rc;
}

/* --- what is shown --- */

/* By name, then those of all threads first, then by the first counter. */
static int order(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;
	int by_name;

	if (x->is_interval != y->is_interval)
		return x->is_interval ? -1 : 1;
	by_name = strcmp(x->name, y->name);
	if (by_name != 0)
		return by_name;
	if ((x->thread == NULL) != (y->thread == NULL))
		return x->thread == NULL ? -1 : 1;
	if (x->sum[0] != y->sum[0])
		return x->sum[0] < y->sum[0] ? 1 : -1;
	return x->thread != NULL && y->thread != NULL
		       ? (int)(x->thread->number > y->thread->number) -
				 (int)(x->thread->number < y->thread->number)
		       : 0;
}

int report_counted__finish(struct report_counted *c)
{
	size_t i, k, count = c->row_count;

	for (i = 0; i < count; i++) {
		struct counted one = c->rows[i];
		struct counted *all = row_of(c, one.name, one.is_interval, NULL);

		if (all == NULL)
			return -ENOMEM;
		all->times += one.times;
		for (k = 0; k < c->counters; k++) {
			cli_sum__add(&all->sum[k], one.sum[k]);
			all->of[k] += one.of[k];
		}
	}
	if (c->row_count != 0)
		qsort(c->rows, c->row_count, sizeof(*c->rows), order);
	return 0;
}

static size_t index_of(const struct report_counted *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->counters && strcmp(c->counter[i], name) != 0; i++)
		;
	return i;
}

/* Instructions in a cycle. Below 0: this is not known. */
static double instructions_per_cycle(const struct report_counted *c, const struct counted *row)
{
	size_t cycles = index_of(c, "Cycles"), instructions = index_of(c, "Instructions");

	if (cycles == c->counters || instructions == c->counters || row->sum[cycles] == 0 ||
	    row->of[cycles] != row->of[instructions])
		return -1;
	return (double)row->sum[instructions] / (double)row->sum[cycles];
}

static bool has_ipc(const struct report_counted *c)
{
	size_t i;

	for (i = 0; i < c->row_count; i++)
		if (instructions_per_cycle(c, &c->rows[i]) >= 0)
			return true;
	return false;
}

static const char *value_words(const struct report_counted *c, const struct counted *row, size_t i)
{
	if (row->of[i] == 0)
		return "?";
	return cli_format("%s%s",
			  c->is_time[i] ? cli_duration(row->sum[i]) : cli_count(row->sum[i]),
			  row->of[i] != row->times ? " *" : "");
}

/* Is the row of one thread, where there is no other? */
static bool is_only_thread(const struct report_counted *c, size_t i)
{
	return c->rows[i].thread != NULL && c->rows[i - 1].thread == NULL &&
	       (i + 1 == c->row_count || c->rows[i + 1].thread == NULL);
}

/* Could the counter be read at all? */
static bool is_known(const struct report_counted *c, size_t counter)
{
	size_t i;

	for (i = 0; i < c->row_count; i++)
		if (c->rows[i].of[counter] != 0)
			return true;
	return false;
}

static uint32_t pid_of(const struct counted *row)
{
	return row->thread->process != NULL ? row->thread->process->pid : 0;
}

void report_counted__print(const struct report *r)
{
	const struct report_counted *c = r->counted;
	struct cli_table *table;
	bool ipc = has_ipc(c), is_partial = false;
	size_t i, k, shown = 0;

	if (c->row_count == 0)
		return;
	table = cli_table__new(stdout);
	cli_table__column(table, "AT", CLI_CUT);
	cli_table__column(table, "TIMES", CLI_RIGHT);
	for (k = 0; k < c->counters; k++)
		if (is_known(c, k))
			cli_table__column(table, c->counter[k], CLI_RIGHT);
	if (ipc)
		cli_table__column(table, "IPC", CLI_RIGHT);
	for (i = 0; i < c->row_count && shown < ROWS_MOST; i++) {
		const struct counted *row = &c->rows[i];

		if (is_only_thread(c, i))
			continue;
		shown++;
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, row->thread == NULL
					       ? cli_format("%.100s", row->name)
					       : cli_format("  thread %u of %u", row->thread->tid,
							    pid_of(row)));
		cli_table__cell(table, cli_count(row->times));
		for (k = 0; k < c->counters; k++) {
			if (!is_known(c, k))
				continue;
			cli_table__cell(table, value_words(c, row, k));
			is_partial |= row->of[k] != row->times;
		}
		if (ipc)
			cli_table__cell(table,
					instructions_per_cycle(c, row) >= 0
						? cli_format("%.2f", instructions_per_cycle(c, row))
						: "");
	}
	report__heading("Counted by threads");
	cli_table__print(table);
	if (is_partial)
		cli_wrap(stdout,
			 "* and ?: a counter could not be read each time: more were asked for than "
			 "the processor has registers for, or it was in a child of vfork.",
			 0, 0, cli_width(stdout));
	if (i < c->row_count)
		printf("and %s more (--json)\n", cli_count(c->row_count - i));
}

void report_counted__json(const struct report *r, struct cli_json_stream *json)
{
	const struct report_counted *c = r->counted;
	size_t i, k;

	cli_json_stream__open(json, "counted", '[');
	for (i = 0; i < c->row_count; i++) {
		const struct counted *row = &c->rows[i];
		struct json_object *entry = json_object_new_object();
		struct json_object *sums = json_object_new_object();
		struct json_object *of = json_object_new_object();

		cli_json__text(entry, row->is_interval ? "interval" : "event", row->name);
		if (row->thread != NULL) {
			cli_json__count(entry, "pid", pid_of(row));
			cli_json__count(entry, "tid", row->thread->tid);
		}
		cli_json__count(entry, "times", row->times);
		for (k = 0; k < c->counters; k++) {
			if (row->of[k] != 0)
				cli_json__count(sums, c->counter[k], row->sum[k]);
			cli_json__count(of, c->counter[k], row->of[k]);
		}
		json_object_object_add(entry, "sum", sums);
		json_object_object_add(entry, "known", of);
		cli_json_stream__add(json, NULL, entry);
	}
	cli_json_stream__close(json, ']');
}
