// SPDX-License-Identifier: MIT
/* collect.c - reads a whole trace once and counts what pem report shows */
#include "report.h"
#include "grow.h"

#include <pem/context.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_STEP 16384 /* records between two reads of the clock */

const char *const report_layers[LAYERS] = {"APP", "OS", "HW", "CPO", "other"};

#define RECENT_MAX 64u

/* Where records are counted. It exists only during the pass. */
struct counting {
	/* Where the event, the process and the thread of recent records are counted. */
	const struct pem_event *recent_events[RECENT_MAX];
	uint32_t recent_event_index[RECENT_MAX];
	struct recent_thread {
		uint64_t identity;
		uint32_t process, thread; /* index + 1; process 0: free */
	} recent_threads[RECENT_MAX];
	struct pem_number_map event_at; /* key: event id; value: index in events */
	/* key: number of the process in the pass + 1, or 0; value: index in processes */
	struct pem_number_map process_at;
	struct pem_number_map thread_at; /* key: identity(); value: index in threads */
	/* key: event and what it counts; value: index in counters */
	struct pem_number_map counter_at;
	struct report_open *open;
};

static unsigned int layer_of(const struct pem_event *event)
{
	unsigned int i;

	for (i = 0; i < LAYER_OTHER; i++)
		if (strcmp(report_layers[i], event->layer) == 0)
			break;
	return i;
}

/* Is the value an amount that is moved at each event, not a state? */
static bool is_amount(const struct pem_event *event, int field)
{
	return event->meaning != PEM_MEANS_COUNTER && event->meaning != PEM_MEANS_GAUGE &&
	       event->meaning != PEM_MEANS_SAMPLE &&
	       strcmp(event->fields[field].unit, "bytes") == 0;
}

/* Sizes and moved bytes are summed. Of other values the last one counts. */
static void choose_value(struct report_event *e)
{
	int size = pem_event__field_by_role(e->event, PEM_ROLE_SIZE);
	int value = pem_event__field_by_role(e->event, PEM_ROLE_VALUE);

	e->field = size >= 0 ? size : value;
	/* Where objects and other memory lie is no amount. What a call returned last tells nothing.
	 */
	if (e->event->meaning == PEM_MEANS_OBJECT || e->event->source_kind == PEM_SOURCE_SAMPLE ||
	    (e->event->meaning == PEM_MEANS_INTERVAL_END && size < 0 && value >= 0 &&
	     !is_amount(e->event, value)))
		return;
	if (size >= 0 || (value >= 0 && is_amount(e->event, value))) {
		e->value = VALUE_SUM;
	} else if (value >= 0) {
		e->value = VALUE_LAST;
	}
}

static int prepare_events(struct report *report, struct counting *c)
{
	const struct pem_model *model = pem_trace__model(report->trace);
	size_t i, count = pem_model__count(model);

	report->events = calloc(count + 1, sizeof(*report->events));
	report->occurred = calloc(count + 1, sizeof(*report->occurred));
	if (report->events == NULL || report->occurred == NULL)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		struct report_event *e = &report->events[i];
		uint32_t *at;

		e->event = pem_model__event(model, i);
		e->layer = layer_of(e->event);
		e->sample = report_page_sample__of(e->event);
		e->balance = pem_trace__event_balance(report->trace, e->event);
		choose_value(e);
		e->result = cli_allocation__result(e->event);
		at = pem_number_map__at(&c->event_at, e->event->id);
		if (at == NULL)
			return -ENOMEM;
		*at = (uint32_t)i;
	}
	report->event_count = count;
	return 0;
}

/*
 * The process and thread of a record, as numbers of the pass. Different processes and threads may
 * have had one number after the other.
 */
static uint64_t identity(const struct pem_around *around)
{
	uint64_t process = around->process != NULL ? around->process->number + 1ull : 0;
	uint64_t thread = around->thread != NULL ? around->thread->number + 1ull : 0;

	return process << 32 | thread;
}

static struct report_process *process_of(struct report *report, struct counting *c,
					 const struct pem_around *around)
{
	uint32_t *at = pem_number_map__at(&c->process_at, identity(around) >> 32);
	struct report_process *process;

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		if (pem_grow(&report->processes, sizeof(*report->processes),
			     report->process_count + 1, &report->process_capacity) < 0)
			return NULL;
		process = &report->processes[report->process_count];
		memset(process, 0, sizeof(*process));
		process->process = around->process;
		process->pid = around->process != NULL ? around->process->pid : 0;
		*at = (uint32_t)report->process_count++;
	}
	return &report->processes[*at];
}

static struct report_thread *thread_of(struct report *report, struct counting *c,
				       struct report_process *process,
				       const struct pem_around *around)
{
	uint32_t *at = pem_number_map__at(&c->thread_at, identity(around));
	struct report_thread *thread;

	if (at == NULL)
		return NULL;
	if (*at != UINT32_MAX)
		return &report->threads[*at];
	if (pem_grow(&report->threads, sizeof(*report->threads), report->thread_count + 1,
		     &report->thread_capacity) < 0)
		return NULL;
	*at = (uint32_t)report->thread_count++;
	thread = &report->threads[*at];
	memset(thread, 0, sizeof(*thread));
	thread->process = (uint32_t)(process - report->processes);
	thread->thread = around->thread;
	thread->tid = around->thread != NULL ? around->thread->tid : 0;
	if (process->threads++ == 0)
		process->first_thread = *at;
	else
		report->threads[process->last_thread].next = *at;
	process->last_thread = *at;
	process->nameless |= thread->tid == 0;
	return thread;
}

/* value: of the event's type, extended to 64 bits. */
static void add_so_far(struct report_event *e, uint64_t value, double value_f)
{
	enum pem_type type = e->event->fields[e->field].type;

	if (isfinite(value_f))
		e->sum_f += value_f;
	if (!report_event__is_float(e)) {
		e->amount.i = (int64_t)value;
		if (type < PEM_TYPE_INT8 || type > PEM_TYPE_INT64)
			e->amount.i = value;
		e->so_far.i += e->amount.i;
	} else if (isfinite(value_f)) {
		e->amount.f = value_f;
		e->so_far.f += value_f;
	}
}

/*
 * Add what a counter has grown by. It counts from 0 on, unless it was running before the records
 * that a flight recorder still has: then nothing is known of what it counted before its first. A
 * value that falls is another counter's, as of a thread whose number is used again.
 */
static void count_growth(struct report_event *e, const struct pem_record *record,
			 const struct report_counter *before, bool is_known)
{
	uint64_t value = pem_record__u64(record, (unsigned int)e->field);
	double value_f = pem_record__f64(record, (unsigned int)e->field);

	if (is_known && value_f >= before->last_f)
		add_so_far(e, value - before->last, value_f - before->last_f);
}

/*
 * A counter only grows, for each process, thread and CPU that it counts. Keep its last value for
 * each.
 */
static int keep_counter(struct report *report, struct counting *c, uint32_t event,
			const struct pem_record *record, const struct pem_around *around)
{
	unsigned int field = (unsigned int)report->events[event].field;
	/*
	 * Two counters whose keys mix to one number would share a value. The probability is 2^-64
	 * for a pair.
	 */
	uint64_t key =
		(identity(around) * 0x9e3779b97f4a7c15ull) ^ ((uint64_t)record->cpu << 32 | event);
	uint32_t *at = pem_number_map__at(&c->counter_at, key);
	struct report_counter *before;
	bool is_new;

	if (at == NULL)
		return -ENOMEM;
	is_new = *at == UINT32_MAX;
	if (is_new) {
		if (pem_grow(&report->counters, sizeof(*report->counters),
			     report->counter_count + 1, &report->counter_capacity) < 0)
			return -ENOMEM;
		report->counters[report->counter_count] = (struct report_counter){.event = event};
		*at = (uint32_t)report->counter_count++;
	}
	before = &report->counters[*at];
	count_growth(&report->events[event], record, before, !is_new || report->info->ran_ns == 0);
	before->last = pem_record__u64(record, field);
	before->last_f = pem_record__f64(record, field);
	return 0;
}

/* Add to the sum of an event, up to the limits of 64 bits. */
static int add_to_sum(struct report_event *e, uint64_t value, double value_f)
{
	enum pem_type type = e->event->fields[e->field].type;

	if (isfinite(value_f) && pem_sketch__add(&e->sketch, value_f) < 0)
		return -ENOMEM;
	e->summed++;
	e->total_f += value_f;
	add_so_far(e, value, value_f);
	if (report_event__is_float(e))
		return 0;
	if (type < PEM_TYPE_INT8 || type > PEM_TYPE_INT64) {
		e->overflowed |= value > UINT64_MAX - e->total;
		e->total = value > UINT64_MAX - e->total ? UINT64_MAX : e->total + value;
	} else if (__builtin_add_overflow((int64_t)e->total, (int64_t)value,
					  (int64_t *)&e->total)) {
		e->overflowed = true;
		e->total = (uint64_t)((int64_t)value < 0 ? INT64_MIN : INT64_MAX);
	}
	return 0;
}

static int count_value(struct report *report, struct counting *c, uint32_t event,
		       const struct pem_record *record, const struct pem_around *around)
{
	struct report_event *e = &report->events[event];

	if (e->field < 0)
		return 0;
	if (e->value == VALUE_LAST && record->event->meaning == PEM_MEANS_COUNTER)
		return keep_counter(report, c, event, record, around);
	if (e->value != VALUE_SUM) {
		e->total = pem_record__u64(record, (unsigned int)e->field);
		e->total_f = pem_record__f64(record, (unsigned int)e->field);
		add_so_far(e, e->total, e->total_f);
	} else if (cli_allocation__failed(record, e->result, e->field)) {
		e->failed++;
	} else if (pem_record__f64(record, (unsigned int)e->field) >= 0) {
		/* A negative size is an error number, so it is not summed. */
		return add_to_sum(e, pem_record__u64(record, (unsigned int)e->field),
				  pem_record__f64(record, (unsigned int)e->field));
	}
	return 0;
}

static int find_event(struct counting *c, const struct pem_event *event, uint32_t *index)
{
	uint32_t recent = event->id % RECENT_MAX, *at;

	if (c->recent_events[recent] != event) {
		at = pem_number_map__at(&c->event_at, event->id);
		if (at == NULL || *at == UINT32_MAX)
			return -ENOMEM;
		c->recent_events[recent] = event;
		c->recent_event_index[recent] = *at;
	}
	*index = c->recent_event_index[recent];
	return 0;
}

static const struct recent_thread *find_thread(struct report *report, struct counting *c,
					       const struct pem_around *around)
{
	uint64_t wanted = identity(around);
	struct recent_thread *recent = &c->recent_threads[wanted % RECENT_MAX];
	struct report_process *process;
	struct report_thread *thread;

	if (recent->process != 0 && recent->identity == wanted)
		return recent;
	process = process_of(report, c, around);
	thread = process != NULL ? thread_of(report, c, process, around) : NULL;
	if (thread == NULL)
		return NULL;
	*recent = (struct recent_thread){wanted, (uint32_t)(process - report->processes) + 1,
					 (uint32_t)(thread - report->threads) + 1};
	return recent;
}

static bool is_of_phase(const struct report_event *e)
{
	return (e->layer == LAYER_APP || e->layer == LAYER_CPO) &&
	       e->event->level <= PEM_LEVEL_INFO;
}

static bool begins_phase(const struct report_event *e)
{
	return e->event->meaning == PEM_MEANS_INTERVAL_BEGIN && is_of_phase(e);
}

static bool ends_phase(const struct report_event *e)
{
	return e->event->meaning == PEM_MEANS_INTERVAL_END && is_of_phase(e);
}

static int count_record(struct report *report, struct counting *c, const struct pem_record *record,
			const struct pem_around *around)
{
	const struct recent_thread *of;
	struct report_process *process;
	struct report_thread *thread;
	struct report_event *e;
	uint32_t event;

	if (find_event(c, record->event, &event) < 0)
		return -ENOMEM;
	e = &report->events[event];
	/* Neither the begin nor the end of a phase lies within it. */
	if (ends_phase(e) && report_open__end(c->open, report, record, around) < 0)
		return -ENOMEM;
	report->read++;
	if (report->duration_ns < record->time_ns)
		report->duration_ns = record->time_ns;
	if (pem_record__is_marker(record)) {
		e->markers++;
		return 0;
	}
	if (e->count++ == 0) {
		report->occurred[report->occurred_count++] = event;
		e->occurred_at = (uint32_t)report->occurred_count;
	}
	report->layer_count[e->layer]++;

	of = find_thread(report, c, around);
	if (of == NULL)
		return -ENOMEM;
	process = &report->processes[of->process - 1];
	thread = &report->threads[of->thread - 1];
	process->count++;
	process->by_layer[e->layer]++;
	thread->count++;
	thread->by_layer[e->layer]++;

	e->threadless += record->pid != 0 && record->tid == 0;
	memset(&e->amount, 0, sizeof(e->amount));
	if (count_value(report, c, event, record, around) < 0 ||
	    report_open__count(c->open, e, around) < 0)
		return -ENOMEM;
	if (begins_phase(e) && report_open__begin(c->open, report, record, around) < 0)
		return -ENOMEM;
	if (e->sample != SAMPLE_NONE &&
	    report_page_samples__record(report->samples, e->sample, report, record) < 0)
		return -ENOMEM;
	if (e->layer == LAYER_CPO && report_detail__record(report, record) < 0)
		return -ENOMEM;
	if (report->sites != NULL && report_sites__record(report, e, event, record, around) < 0)
		return -ENOMEM;
	if (report->data != NULL && report_data__record(report->data, report, record, around) < 0)
		return -ENOMEM;
	if (report_metrics__record(report->metrics, record, around->thread) < 0)
		return -ENOMEM;
	return 0;
}

static int read_records(struct report *report, struct counting *c)
{
	struct cli_progress progress;
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	struct pem_error error = {{0}};
	uint64_t total = pem_trace__total_balance(report->trace).delivered, n = 0;
	int rc;

	cli_progress__start(&progress, "reading");
	for (;;) {
		rc = pem_pass__next(report_times__pass(report), &record, &around, &error);
		if (rc != -ENOMEM &&
		    (report_times__add(report->times, rc == 1 ? &record : NULL, &around) < 0 ||
		     report_counted__record(report->counted, rc == 1 ? &record : NULL, &around) <
			     0))
			rc = -ENOMEM;
		if (rc == 0)
			break;
		if (rc == -EINVAL) {
			/* Of a damaged packet only its own records are lost. Reading continues. */
			if (report->damaged++ == 0)
				report->damage = error;
			continue;
		}
		if (rc < 0)
			break;
		rc = count_record(report, c, &record, &around);
		if (rc < 0)
			break;
		if (++n == total / 10)
			report->bulk_ns = record.time_ns;
		if (n % PROGRESS_STEP == 0)
			cli_progress__update(n, total, &progress);
	}
	cli_progress__end(&progress);
	return rc;
}

static void sum_counters(struct report *report)
{
	size_t i;

	for (i = 0; i < report->counter_count; i++) {
		struct report_event *e = &report->events[report->counters[i].event];

		add_to_sum(e, report->counters[i].last, report->counters[i].last_f);
	}
}

/* Give processes and threads the names that they had last. */
static void name_all(struct report *report)
{
	size_t i;

	for (i = 0; i < report->process_count; i++) {
		struct report_process *p = &report->processes[i];

		if (p->process != NULL)
			snprintf(p->name, sizeof(p->name), "%.15s", p->process->name);
	}
	for (i = 0; i < report->thread_count; i++) {
		struct report_thread *t = &report->threads[i];

		if (t->thread != NULL)
			memcpy(t->name, t->thread->name, sizeof(t->name));
		report->names_threads |= t->name[0] != '\0';
	}
}

int report__collect(struct report *report, const char *directory)
{
	struct counting c = {.open = NULL};
	int rc;

	report->trace = cli_trace__open(directory, &rc);
	if (report->trace == NULL)
		return rc;
	report->info = pem_trace__info(report->trace);
	report->duration_ns = report->info->duration_ns;
	c.open = report_open__new();
	report->samples = report_page_samples__new(report->info);
	report->counted = report_counted__new(report->info);
	rc = c.open != NULL && report->samples != NULL && report->counted != NULL
		     ? prepare_events(report, &c)
		     : -ENOMEM;
	if (rc == 0)
		rc = report_times__new(report);
	if (rc == 0) {
		report->metrics = report_metrics__new(report);
		rc = report->metrics != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0)
		rc = read_records(report, &c);
	if (rc == 0)
		rc = report_times__finish(report->times, report->trace);
	if (rc == 0)
		rc = report_counted__finish(report->counted);
	if (rc == 0 && report->sites != NULL)
		rc = report_sites__finish(report->sites, report);
	if (rc == 0 && report->data != NULL)
		rc = report_data__finish(report->data, report);
	if (rc == 0)
		rc = report_open__finish(c.open, report, report->duration_ns);
	if (rc == 0) {
		sum_counters(report);
		name_all(report);
		report__weigh(report);
	}
	report_open__free(c.open);
	pem_number_map__free(&c.event_at);
	pem_number_map__free(&c.process_at);
	pem_number_map__free(&c.thread_at);
	pem_number_map__free(&c.counter_at);
	if (rc < 0)
		return cli_error(CLI_FAILED, "reading %s failed: %s", directory, strerror(-rc));
	return CLI_DONE;
}

bool report__has(const struct report *report, enum pem_meaning meaning)
{
	size_t i;

	for (i = 0; i < report->occurred_count; i++)
		if (report->events[report->occurred[i]].event->meaning == meaning)
			return true;
	return false;
}

bool report__is_context(const struct report *report, const struct report_event *event)
{
	const char *name = event->event->name, *at = report->info->context_events;
	size_t bytes = strlen(name);

	for (; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == bytes && strncmp(at, name, bytes) == 0)
			return true;
	return false;
}

void report__free(struct report *report)
{
	size_t i;

	for (i = 0; i < report->phase_count; i++) {
		free(report->phases[i].name);
		free(report->phases[i].inside);
		pem_sketch__free(&report->phases[i].sketch);
	}
	for (i = 0; i < report->event_count; i++)
		pem_sketch__free(&report->events[i].sketch);
	free(report->phases);
	free(report->occurred);
	report_page_samples__free(report->samples);
	report_counted__free(report->counted);
	report_sites__free(report->sites);
	report_data__free(report->data);
	report_times__free(report->times);
	report_metrics__free(report->metrics);
	free(report->counters);
	free(report->steps);
	free(report->threads);
	free(report->processes);
	free(report->events);
	pem_trace__close(report->trace);
}

static int by_count(const void *a, const void *b, void *arg)
{
	const struct report *report = arg;
	const struct report_event *x = &report->events[*(const size_t *)a];
	const struct report_event *y = &report->events[*(const size_t *)b];

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->event->name, y->event->name);
}

size_t *report__order(const struct report *report)
{
	size_t i, *order = calloc(report->event_count + 1, sizeof(*order));

	if (order == NULL)
		return NULL;
	for (i = 0; i < report->event_count; i++)
		order[i] = i;
	qsort_r(order, report->event_count, sizeof(*order), by_count, (void *)(uintptr_t)report);
	return order;
}
