// SPDX-License-Identifier: MIT
/*
 * collect.c - reads a trace once and makes series of what its events say (contract: series.h)
 *
 * It goes by what specs declare (meaning, roles, units), and knows no event's name. The one
 * exception is the event that holds lists of counters (pem/trace.h).
 */
#include "series.h"
#include "betweens.h"
#include "cli.h"
#include "doubt.h"
#include "grow.h"
#include "hash.h"
#include "intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_STEP 16384
/* If the trace does not say how long it is, windows begin so short. */
#define WINDOW_NS 1000000u
/* Most counters of threads and CPUs that are followed, and most kinds of intervals. */
#define READINGS_MAX 65536u
#define KINDS_MAX 1024u
#define COUNTERS_MAX 16u
/* The reader takes no more streams. */
#define STREAMS_MAX 65536u

/* The metrics of an event. */
struct event_metrics {
	const struct pem_event *event;
	long count, value; /* metrics; -1: none */
	int field; /* of the value */
	int result; /* see cli_allocation__result */
	bool is_phase, is_context;
};

struct reading {
	uint64_t time_ns;
	double value;
};

struct collecting {
	struct compare_series *series;
	struct event_metrics *events;
	struct pem_number_map event_at; /* key: event id */
	struct pem_number_map reading_at; /* key: counter and what it counts */
	struct reading *readings;
	size_t reading_count, reading_capacity;
	bool forgot_readings;
	/* Durations, by the hash of group and name. At most half of the entries are used. */
	struct {
		uint64_t key; /* 0: free */
		long metric; /* -1: there was no room for one */
	} kinds[2 * KINDS_MAX];
	size_t kind_count;
	struct pem_betweens *betweens;
	/* By the number of the model's metric: index + 1; 0: no time was found; < 0: no room. */
	long *between_series;
	struct pem_intervals *intervals;
	long counters[COUNTERS_MAX]; /* metrics of the list of counters; -1: none */
	bool has_counters;
	enum pem_doubt_source source; /* of the record */
	struct pem_pass *pass;
	const struct pem_record *record; /* that is being taken */
	const struct pem_around *around; /* what the pass knows of it */
	struct pem_doubt doubt;
	uint64_t seen[STREAMS_MAX / 64]; /* bits: streams that had a record */
};

/* Is the event one that was recorded only to know who runs where? */
static bool is_context(const struct pem_trace_info *info, const char *name)
{
	const char *at = info->context_events;
	size_t bytes = strlen(name);

	for (; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == bytes && strncmp(at, name, bytes) == 0)
			return true;
	return false;
}

static bool is_number(const struct pem_field *field)
{
	return field->type >= PEM_TYPE_UINT8 && field->type <= PEM_TYPE_FLOAT64;
}

/*
 * Is a value what a call returned, such as an address, a descriptor or an error, or an address or
 * a bit mask? Sums and means of these mean nothing.
 */
static bool is_result(const struct pem_event *event, const struct pem_field *field)
{
	return field->base == 16 || (event->meaning == PEM_MEANS_INTERVAL_END &&
				     (*field->unit == '\0' || strcmp(field->unit, "none") == 0));
}

/*
 * The value of an event: sizes are summed, counters grow, and other values are levels. -1: it has
 * none. *kind is set.
 */
static int value_of(const struct pem_event *event, enum compare_kind *kind)
{
	int size = pem_event__field_by_role(event, PEM_ROLE_SIZE);
	int value = pem_event__field_by_role(event, PEM_ROLE_VALUE);

	if (event->meaning == PEM_MEANS_OBJECT)
		return -1;
	*kind = COMPARE_SUM;
	if (size >= 0)
		return is_number(&event->fields[size]) ? size : -1;
	if (value < 0 || is_result(event, &event->fields[value]) ||
	    !is_number(&event->fields[value]) || event->fields[value].label_kind != PEM_LABELS_NONE)
		return -1;
	if (event->meaning == PEM_MEANS_COUNTER)
		*kind = COMPARE_GROWTH;
	else if (event->meaning == PEM_MEANS_GAUGE || event->meaning == PEM_MEANS_SAMPLE ||
		 strcmp(event->fields[value].unit, "bytes") != 0)
		*kind = COMPARE_LEVEL;
	return value;
}

static bool is_interval(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_INTERVAL_BEGIN ||
	       event->meaning == PEM_MEANS_INTERVAL_END;
}

/* As pem report has it: intervals that programs declare, of a level that is recorded as usual. */
static bool is_phase(const struct pem_event *event)
{
	return is_interval(event) && event->level <= PEM_LEVEL_INFO &&
	       (strcmp(event->layer, "APP") == 0 || strcmp(event->layer, "CPO") == 0);
}

/* What the metrics of an event have in common with those of the interval that it begins or ends. */
static const char *origin_of(const struct pem_event *event)
{
	return is_interval(event) ? event->group : event->name;
}

static void describe(struct collecting *c, long metric, const struct event_metrics *e)
{
	if (metric < 0)
		return;
	c->series->metrics[metric].is_context = e->is_context;
	c->series->metrics[metric].event_id = e->event->id;
	c->series->metrics[metric].source = c->source;
}

/* Make the metrics of an event, at its first record. Returns 0 or -ENOMEM. */
static int open_event(struct collecting *c, struct event_metrics *e)
{
	const struct pem_event *event = e->event;
	enum compare_kind kind = COMPARE_COUNT;
	char name[192];

	e->field = value_of(event, &kind);
	e->value = -1;
	/* How often counters are read is nothing that the program did. */
	e->count = -1;
	if (event->meaning != PEM_MEANS_COUNTER && event->meaning != PEM_MEANS_SAMPLE)
		e->count = compare_series__metric(c->series, cli_event_name(event), COMPARE_COUNT,
						  "", origin_of(event));
	if (e->field >= 0) {
		if (kind == COMPARE_GROWTH)
			snprintf(name, sizeof(name), "%s", cli_event_name(event));
		else
			snprintf(name, sizeof(name), "%s %s", cli_event_name(event),
				 event->fields[e->field].name);
		e->value = compare_series__metric(c->series, name, kind,
						  event->fields[e->field].unit, origin_of(event));
	}
	describe(c, e->count, e);
	describe(c, e->value, e);
	return e->count == -ENOMEM || e->value == -ENOMEM ? -ENOMEM : 0;
}

/* --- counters --- */

/*
 * A counter holds what it has counted so far. What it counted since its last reading is spread over
 * that time. first: what to do with the first reading.
 */
static int take_reading(struct collecting *c, size_t metric, uint64_t key, uint64_t time_ns,
			double value, bool from_zero)
{
	uint32_t *at = pem_number_map__at(&c->reading_at, key);
	struct reading before = {.value = -1};

	if (at == NULL)
		return -ENOMEM;
	if (*at == UINT32_MAX) {
		/* What is forgotten begins anew, and what it counted meanwhile is not known. */
		if (c->reading_count == READINGS_MAX) {
			pem_number_map__free(&c->reading_at);
			c->reading_count = 0;
			c->forgot_readings = true;
			return take_reading(c, metric, key, time_ns, value, false);
		}
		if (pem_grow(&c->readings, sizeof(*c->readings), c->reading_count + 1,
			     &c->reading_capacity) < 0)
			return -ENOMEM;
		*at = (uint32_t)c->reading_count++;
	} else {
		before = c->readings[*at];
	}
	if (before.value >= 0 && value >= before.value)
		compare_series__spread(c->series, metric, before.time_ns, time_ns,
				       value - before.value);
	else if (before.value < 0 && from_zero && !c->forgot_readings)
		compare_series__add(c->series, metric, time_ns, value);
	c->readings[*at] = (struct reading){time_ns, value};
	return 0;
}

/* A process or thread that has a number which was used before begins to count from 0. */
static uint64_t counter_key(const struct pem_around *around, uint32_t cpu, uint32_t number)
{
	uint64_t process = around->process != NULL ? around->process->number + 1 : 0;
	uint64_t thread = around->thread != NULL ? around->thread->number + 1 : 0;

	return ((process << 32 | thread) * 0x9e3779b97f4a7c15ull) ^ ((uint64_t)cpu << 32 | number);
}

/* Name the metrics of the list of counters. */
static int open_counters(struct collecting *c)
{
	const char *at = c->series->info->counters;
	size_t i;

	for (i = 0; i < COUNTERS_MAX; i++)
		c->counters[i] = -1;
	for (i = 0; i < COUNTERS_MAX && *at != '\0'; i++) {
		size_t bytes = strcspn(at, ",");
		char name[192];

		snprintf(name, sizeof(name), "%.*s", (int)(bytes < 180 ? bytes : 180), at);
		c->counters[i] = compare_series__metric(c->series, name, COMPARE_GROWTH, "", name);
		if (c->counters[i] == -ENOMEM)
			return -ENOMEM;
		if (c->counters[i] >= 0)
			c->series->metrics[c->counters[i]].source = c->source;
		at += bytes + (at[bytes] == ',');
	}
	c->has_counters = true;
	return 0;
}

/* A list of what all counters of a CPU have counted so far. */
static int take_counters(struct collecting *c, const struct pem_record *record)
{
	int list = pem_event__field(record->event, "counterValues");
	int missing = pem_event__field(record->event, "missing");
	const struct pem_around no_thread = {0};
	uint64_t mask = missing >= 0 ? pem_record__u64(record, (unsigned int)missing) : 0, value;
	const void *values;
	uint32_t n, i;
	int rc = c->has_counters ? 0 : open_counters(c);

	n = list >= 0 && record->event->fields[list].element_type == PEM_TYPE_UINT64
		    ? pem_record__list(record, (unsigned int)list, &values)
		    : 0;
	for (i = 0; rc == 0 && i < n && i < COUNTERS_MAX; i++) {
		if (mask >> i & 1 || c->counters[i] < 0)
			continue;
		memcpy(&value, (const char *)values + i * sizeof(value), sizeof(value));
		rc = take_reading(c, (size_t)c->counters[i],
				  counter_key(&no_thread, record->cpu, ~i), record->time_ns,
				  (double)value, false);
	}
	return rc;
}

/* --- intervals --- */

/* Make the metric of an interval's duration. Returns -1 if there is no room for it, or -ENOMEM. */
static long new_duration(struct collecting *c, const struct event_metrics *e,
			 const struct pem_record *record)
{
	bool is_named = pem_event__field_by_role(record->event, PEM_ROLE_NAME) >= 0;
	char name[192];
	long metric;

	snprintf(name, sizeof(name), "duration of %.150s",
		 is_named ? pem_interval__name(record) : record->event->group);
	metric = compare_series__metric(c->series, name, COMPARE_DURATION, "ns",
					record->event->group);
	if (metric < 0)
		return metric == -ENOMEM ? -ENOMEM : -1;
	describe(c, metric, e);
	c->series->metrics[metric].is_phase = e->is_phase;
	return metric;
}

/* The metric of an interval's duration; -1: there is no room for it; -ENOMEM. */
static long duration_of(struct collecting *c, const struct event_metrics *e,
			const struct pem_record *record)
{
	uint64_t key = pem_hash__text(pem_hash__text(PEM_HASH_START, record->event->group),
				      pem_interval__name(record)) |
		       1;
	size_t i = (key >> 1) % (2 * KINDS_MAX);
	long metric;

	while (c->kinds[i].key != 0 && c->kinds[i].key != key)
		i = (i + 1) % (2 * KINDS_MAX);
	if (c->kinds[i].key == key)
		return c->kinds[i].metric;
	if (c->kind_count == KINDS_MAX)
		return -1;
	metric = new_duration(c, e, record);
	if (metric == -ENOMEM)
		return metric;
	c->kind_count++;
	c->kinds[i].key = key;
	c->kinds[i].metric = metric;
	return metric;
}

static int begin_interval(struct collecting *c, const struct event_metrics *e,
			  const struct pem_record *record)
{
	long metric = duration_of(c, e, record);
	void *data;

	if (metric < 0)
		return metric == -ENOMEM ? -ENOMEM : 0;
	data = compare_instances__begin(c->series, (size_t)metric, record->time_ns);
	if (data == NULL)
		return -ENOMEM;
	compare_instances__forget(pem_intervals__begin(c->intervals, record, data));
	return 0;
}

static int end_interval(struct collecting *c, const struct pem_record *record)
{
	void *data = pem_intervals__end(c->intervals, record);
	uint64_t begin_ns;
	size_t metric;
	int rc;

	if (data == NULL)
		return 0;
	metric = compare_instances__metric(data);
	begin_ns = compare_instances__begin_ns(data);
	/* Between them another end or begin may be lost. */
	if (record->time_ns < begin_ns || begin_ns < c->doubt.until_ns[c->source]) {
		compare_instances__forget(data);
		return 0;
	}
	rc = compare_instances__end(c->series, data, record->time_ns);
	compare_series__add(c->series, metric, record->time_ns,
			    (double)(record->time_ns - begin_ns));
	return rc;
}

/* --- records --- */

static int take_value(struct collecting *c, const struct event_metrics *e,
		      const struct pem_record *record)
{
	double value = pem_record__f64(record, (unsigned int)e->field);

	if (c->series->metrics[e->value].kind == COMPARE_GROWTH)
		return take_reading(c, (size_t)e->value,
				    counter_key(c->around, record->cpu, record->event->id),
				    record->time_ns, value, c->series->info->ran_ns == 0);
	/* A negative size is an error number. An allocation that failed took no memory. */
	if (c->series->metrics[e->value].kind == COMPARE_SUM &&
	    (!(value >= 0) || cli_allocation__failed(record, e->result, e->field)))
		return 0;
	compare_series__add(c->series, (size_t)e->value, record->time_ns, value);
	return 0;
}

/* Keep when a stream begins. */
static void note_stream(struct collecting *c, const struct pem_record *record)
{
	uint32_t i = record->stream % STREAMS_MAX;

	if (c->seen[i / 64] >> (i % 64) & 1)
		return;
	c->seen[i / 64] |= 1ull << (i % 64);
	if (record->time_ns > c->series->reaches_ns[c->source])
		c->series->reaches_ns[c->source] = record->time_ns;
}

/* A time between two events of a thread: the metric appears with the first. */
static int add_time(void *arg, size_t metric, uint64_t ns)
{
	struct collecting *c = arg;
	const struct pem_metric *m = pem_model__metric(pem_trace__model(c->series->trace), metric);
	long *series = &c->between_series[metric];

	if (*series == 0) {
		*series =
			compare_series__metric(c->series, m->name, COMPARE_DURATION, "ns", m->name);
		if (*series == -ENOMEM)
			return -ENOMEM;
		if (*series >= 0)
			c->series->metrics[(*series)++].source = c->source;
	}
	if (*series > 0)
		compare_series__add(c->series, (size_t)*series - 1, c->record->time_ns, (double)ns);
	return 0;
}

static int take_record(struct collecting *c, const struct pem_record *record)
{
	uint32_t *at = pem_number_map__at(&c->event_at, record->event->id);
	struct event_metrics *e;
	int rc = 0;

	if (at == NULL || *at == UINT32_MAX)
		return -ENOMEM;
	e = &c->events[*at];
	c->record = record;
	c->source = pem_doubt__source(record->source);
	note_stream(c, record);
	pem_doubt__note(&c->doubt, c->series->trace);
	c->series->read++;
	if (pem_record__is_marker(record))
		return 0;
	if (e->field == -2)
		rc = open_event(c, e);
	if (rc == 0 && record->event->meaning == PEM_MEANS_INTERVAL_END)
		rc = end_interval(c, record);
	if (rc == 0 && e->count >= 0)
		compare_series__add(c->series, (size_t)e->count, record->time_ns, 1);
	if (rc == 0 && e->value >= 0)
		rc = take_value(c, e, record);
	if (rc == 0 && record->event->meaning == PEM_MEANS_INTERVAL_BEGIN)
		rc = begin_interval(c, e, record);
	if (rc == 0 && strcmp(record->event->name, PEM_COUNTERS_EVENT) == 0)
		rc = take_counters(c, record);
	if (rc == 0)
		rc = pem_betweens__record(c->betweens, record, c->around->thread, add_time, c);
	return rc;
}

static int prepare(struct collecting *c)
{
	struct compare_series *s = c->series;
	const struct pem_model *model = pem_trace__model(s->trace);
	const struct pem_pass_options options = {.size = sizeof(options),
						 .without = PEM_PASS_BLOCKS | PEM_PASS_MESSAGES |
							    PEM_PASS_INTERVALS};
	size_t i, count = pem_model__count(model);

	s->end_ns = s->info->duration_ns;
	s->window_ns = s->end_ns != 0 ? s->end_ns / COMPARE_WINDOWS + 1 : WINDOW_NS;
	s->window_count = s->end_ns / s->window_ns + 1;
	s->instances = compare_instances__new();
	c->pass = pem_pass__new(s->trace, &options, NULL);
	c->intervals = pem_intervals__new();
	c->betweens = pem_betweens__new(s->trace);
	c->between_series = calloc(pem_model__metric_count(model) + 1, sizeof(long));
	c->events = calloc(count + 1, sizeof(*c->events));
	if (c->pass == NULL || s->instances == NULL || c->intervals == NULL ||
	    c->betweens == NULL || c->between_series == NULL || c->events == NULL)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		const struct pem_event *event = pem_model__event(model, i);
		uint32_t *at = pem_number_map__at(&c->event_at, event->id);

		if (at == NULL)
			return -ENOMEM;
		*at = (uint32_t)i;
		c->events[i].event = event;
		c->events[i].result = cli_allocation__result(event);
		c->events[i].field = -2; /* it has no metrics yet */
		c->events[i].is_phase = is_phase(event);
		c->events[i].is_context = is_context(s->info, event->name);
	}
	return 0;
}

static int read_records(struct collecting *c)
{
	struct pem_record record = {.size = sizeof(record)};
	struct pem_around around = {.size = sizeof(around)};
	struct pem_trace *trace = c->series->trace;
	uint64_t total = pem_trace__total_balance(trace).delivered;
	struct cli_progress progress;
	int rc;

	c->around = &around;
	cli_progress__start(&progress, "reading");
	for (;;) {
		rc = pem_pass__next(c->pass, &record, &around, NULL);
		if (rc == -EINVAL) {
			c->series->damaged++;
			continue;
		}
		if (rc <= 0)
			break;
		rc = take_record(c, &record);
		if (rc < 0)
			break;
		if (c->series->read % PROGRESS_STEP == 0)
			cli_progress__update(c->series->read, total, &progress);
	}
	cli_progress__end(&progress);
	return rc;
}

static void weigh(struct compare_series *s)
{
	struct pem_balance b = pem_trace__total_balance(s->trace);

	s->balanced = s->info->complete && s->damaged == 0 &&
		      b.produced == b.delivered + b.discarded + b.overwritten &&
		      b.delivered == s->read;
	compare_series__find_losses(s);
}

int compare_series__read(struct compare_series *s, const char *directory)
{
	struct collecting *c = calloc(1, sizeof(*c)); /* too large for a small stack */
	void *data;
	int rc;

	if (c == NULL)
		return cli_error(CLI_FAILED, "no memory");
	c->series = s;
	s->directory = strdup(directory);
	s->trace = cli_trace__open(directory, &rc);
	if (s->trace == NULL) {
		free(c);
		return rc;
	}
	s->info = pem_trace__info(s->trace);
	rc = s->directory != NULL ? prepare(c) : -ENOMEM;
	if (rc == 0)
		rc = read_records(c);
	if (rc == 0 && s->has_failed)
		rc = -ENOMEM;
	if (rc == 0) {
		weigh(s);
		rc = compare_series__derive(s, pem_trace__model(s->trace));
	}
	while (c->intervals != NULL && (data = pem_intervals__take(c->intervals)) != NULL)
		compare_instances__forget(data);
	pem_pass__free(c->pass);
	pem_betweens__free(c->betweens);
	free(c->between_series);
	pem_intervals__free(c->intervals);
	pem_number_map__free(&c->event_at);
	pem_number_map__free(&c->reading_at);
	free(c->readings);
	free(c->events);
	free(c);
	if (rc < 0)
		return cli_error(CLI_FAILED, "reading %s failed: %s", directory, strerror(-rc));
	return CLI_DONE;
}

void compare_series__free(struct compare_series *s)
{
	size_t i;

	for (i = 0; i < s->metric_count; i++) {
		free(s->metrics[i].sum);
		free(s->metrics[i].weight);
		pem_sketch__free(&s->metrics[i].sketch);
	}
	free(s->metrics);
	compare_instances__free(s->instances);
	pem_trace__close(s->trace);
	free(s->directory);
}
