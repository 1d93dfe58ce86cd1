// SPDX-License-Identifier: MIT
/*
 * times.c - adds up where the time of threads went, and how long intervals took
 *
 * The pass (pem/context.h) says both. What it does not know is counted as unknown here.
 */
#include "call_kinds.h"
#include "times.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int report_times__new(struct report *report)
{
	struct pem_pass_options options = {.size = sizeof(options), .has_paths = 1};
	struct pem_error error = {{0}};

	/*
	 * Blocks take most of a pass's time. Only the reports of sites and data ask for them. Sends
	 * that nobody receives take memory: 72 MB at most.
	 */
	if (report->sites == NULL && report->data == NULL) {
		options.without = PEM_PASS_BLOCKS;
		options.open_max = 1000000;
	}
	report->times = calloc(1, sizeof(*report->times));
	if (report->times == NULL)
		return -ENOMEM;
	report->times->data = pem_code__new_data();
	report->times->pass = pem_pass__new(report->trace, &options, &error);
	return report->times->pass != NULL && report->times->data != NULL ? 0 : -ENOMEM;
}

struct pem_pass *report_times__pass(const struct report *report)
{
	return report->times->pass;
}

void report_times__free(struct report_times *t)
{
	size_t i;

	if (t == NULL)
		return;
	for (i = 0; i < t->interval_count; i++) {
		free(t->intervals[i].name);
		pem_sketch__free(&t->intervals[i].sketch);
	}
	free(t->intervals);
	free(t->blocked);
	free(t->threads);
	report_messages__free(t);
	report_path__free(t->path);
	report_calls__free(t);
	report_waits__free(t);
	free(t->locks);
	pem_number_map__free(&t->lock_at);
	pem_number_map__free(&t->wait_at);
	pem_number_map__free(&t->name_at);
	pem_number_map__free(&t->interval_at);
	pem_number_map__free(&t->blocked_at);
	pem_pass__free(t->pass);
	pem_code__free(t->data);
	free(t);
}

static int lock_field_of(const struct pem_event *event)
{
	int key = pem_event__field_by_role(event, PEM_ROLE_KEY);

	return key >= 0 && event->fields[key].type == PEM_TYPE_ADDRESS ? key : -1;
}

static uint32_t row_by_name(struct report_times *t, const struct pem_interval *interval)
{
	const char *group = interval->begin.event->group, *title = pem_interval__title(interval);
	const char *last = strrchr(group, ':');
	uint32_t *at = pem_number_map__at(&t->interval_at,
					  pem_hash__text(PEM_HASH_START + interval->group, title));
	struct report_interval *row;
	char name[256];

	if (at == NULL || *at != UINT32_MAX)
		return at != NULL ? *at : NO_INTERVAL;
	if (pem_grow(&t->intervals, sizeof(*t->intervals), t->interval_count + 1,
		     &t->interval_capacity) < 0)
		return NO_INTERVAL;
	if (last != NULL && strcmp(last + 1, title) == 0)
		snprintf(name, sizeof(name), "%.120s", group);
	else
		snprintf(name, sizeof(name), "%.120s %.120s", group, title);
	row = &t->intervals[t->interval_count];
	memset(row, 0, sizeof(*row));
	row->name = strdup(pem_printable(name));
	if (row->name == NULL)
		return NO_INTERVAL;
	row->is_call = pem_event__field_by_role(interval->begin.event, PEM_ROLE_SYSTEM_CALL) >= 0;
	row->lock_field = lock_field_of(interval->begin.event);
	row->moves_bytes = row->is_call && pem_call__returns_bytes(title);
	*at = (uint32_t)t->interval_count++;
	return *at;
}

/* Most intervals are system calls. Their names are looked up once. */
uint32_t report_times__interval(struct report_times *t, const struct pem_interval *interval)
{
	const struct pem_event *event = interval->begin.event;
	uint32_t row, *known;
	uint64_t number;
	int field;

	if (event != t->call_event) {
		field = t->call_event == NULL
				? pem_event__field_by_role(event, PEM_ROLE_SYSTEM_CALL)
				: -1;
		/* A field of role 'name' would be the title. */
		if (field < 0 || pem_event__field_by_role(event, PEM_ROLE_NAME) >= 0)
			return row_by_name(t, interval);
		t->call_event = event;
		t->call_field = (unsigned int)field;
	}
	number = (uint64_t)pem_record__i64(&interval->begin, t->call_field);
	if (number >= CALLS_MAX)
		return row_by_name(t, interval);
	known = &t->call_intervals[number];
	if (*known == 0) {
		row = row_by_name(t, interval);
		if (row == NO_INTERVAL)
			return row;
		*known = row + 1;
	}
	return *known - 1;
}

static int end_interval(struct report_times *t, const struct pem_ended *ended,
			const struct pem_record *record, const struct pem_interval *phase)
{
	uint32_t index = report_times__interval(t, ended->interval);
	struct report_interval *row;
	uint64_t ns;

	if (index == NO_INTERVAL)
		return -ENOMEM;
	row = &t->intervals[index];
	if (ended->outcome != PEM_INTERVAL_ENDED && ended->outcome != PEM_INTERVAL_WITH_THREAD) {
		row->unknown++;
		return row->is_call ? report_calls__add(t, index, ended, record, phase) : 0;
	}
	ns = ended->end_ns > ended->interval->begin.time_ns
		     ? ended->end_ns - ended->interval->begin.time_ns
		     : 0;
	row->count++;
	cli_sum__add(&row->total_ns, ns);
	if (ns > row->most_ns)
		row->most_ns = ns;
	if (pem_sketch__add(&row->sketch, (double)ns) < 0)
		return -ENOMEM;
	if (row->lock_field >= 0)
		return report_locks__add(t, index, ended->interval, ns);
	return row->is_call ? report_calls__add(t, index, ended, record, phase) : 0;
}

static int block_in(struct report_times *t, const struct pem_span *span, uint64_t ns)
{
	uint32_t index = NO_INTERVAL, *at;
	struct report_thread_time *thread;

	if (span->interval != NULL) {
		index = report_times__interval(t, span->interval);
		if (index == NO_INTERVAL)
			return -ENOMEM;
		cli_sum__add(&t->intervals[index].blocked_ns, ns);
	}
	at = pem_number_map__at(&t->blocked_at, (uint64_t)span->thread->number << 32 | index);
	if (at == NULL)
		return -ENOMEM;
	if (*at == UINT32_MAX) {
		if (pem_grow(&t->blocked, sizeof(*t->blocked), t->blocked_count + 1,
			     &t->blocked_capacity) < 0)
			return -ENOMEM;
		t->blocked[t->blocked_count] =
			(struct report_blocked){.thread = span->thread->number, .interval = index};
		*at = (uint32_t)t->blocked_count++;
	}
	cli_sum__add(&t->blocked[*at].ns, ns);
	thread = &t->threads[span->thread->number];
	if (thread->longest == 0 || t->blocked[*at].ns > t->blocked[thread->longest - 1].ns)
		thread->longest = *at + 1;
	return 0;
}

static int add_span(struct report_times *t, const struct pem_span *span)
{
	uint64_t ns = span->end_ns > span->begin_ns ? span->end_ns - span->begin_ns : 0;
	size_t number = span->thread->number;

	if (number >= t->thread_count) {
		if (pem_grow(&t->threads, sizeof(*t->threads), number + 1, &t->thread_capacity) < 0)
			return -ENOMEM;
		memset(&t->threads[t->thread_count], 0,
		       (number + 1 - t->thread_count) * sizeof(*t->threads));
		t->thread_count = number + 1;
	}
	t->threads[number].thread = span->thread;
	cli_sum__add(&t->threads[number].ns[span->state], ns);
	if (span->state != PEM_THREAD_BLOCKED)
		return 0;
	return block_in(t, span, ns) == 0 ? report_waits__add(t, span, ns) : -ENOMEM;
}

int report_times__add(struct report_times *t, const struct pem_record *record,
		      const struct pem_around *around)
{
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < around->span_count; i++)
		rc = add_span(t, &around->spans[i]);
	for (i = 0; rc == 0 && i < around->ended_count; i++)
		rc = end_interval(t, &around->ended[i], record, around->phase);
	if (rc == 0 && record != NULL && record->event->meaning == PEM_MEANS_OBJECT)
		rc = pem_code__map(t->data, record);
	if (rc == 0 && record != NULL && around->partner != NULL)
		rc = report_messages__add(t, record, around->partner);
	return rc;
}

/* --- which process --- */

int report_times__finish(struct report_times *t, struct pem_trace *trace)
{
	const struct pem_pass_process *process;
	uint32_t *at;
	size_t i;

	if (pem_code__location_count(t->data) != 0 && pem_code__name(t->data, trace) < 0)
		return -ENOMEM;
	for (i = 0; i < pem_pass__process_count(t->pass); i++) {
		process = pem_pass__process(t->pass, i);
		at = pem_number_map__at(&t->name_at, pem_hash__text(PEM_HASH_START, process->name));
		if (at == NULL)
			return -ENOMEM;
		*at = *at == UINT32_MAX ? 1 : *at + 1;
	}
	return report_path__find(t);
}

const char *report_times__process_words(const struct report_times *t,
					const struct pem_pass_process *process, const char *name)
{
	uint32_t same;

	if (process == NULL || process->arguments[0] == '\0')
		return name;
	same = pem_number_map__value(&t->name_at, pem_hash__text(PEM_HASH_START, process->name));
	if (same == UINT32_MAX || same < 2)
		return name;
	return cli_format("%.40s%s", process->arguments,
			  strlen(process->arguments) > 40 ? "..." : "");
}
