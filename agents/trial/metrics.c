/* SPDX-License-Identifier: MIT */
/* metrics.c - what is measured of a run */
#include "trial/trial.h"

#include "grow.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define VALUES_MAX (1u << 22) /* of one metric in one run */
#define THREADS_MAX 4096u /* that an interval is open in at the same time */

/* A thread in which 'event' came and 'until' did not yet. */
struct open_interval {
	uint32_t tid;
	uint64_t clock;
};

struct reading {
	struct trial_readings *all;
	const struct trial_measure *metric;
	regex_t expression;
	bool has_expression;
	double *values, *times_s;
	size_t count, values_capacity, times_capacity;
	size_t told; /* values that a policy got */
	bool is_cut; /* there were too many values */
	char bad[32]; /* text of the output that is not a number; "": all were */
	struct pem_statistics *statistics;
	struct pem_callback *callback;
	const struct pem_event *begin;
	int field; /* of begin; -1: none */
	struct open_interval *open;
	size_t open_count, open_capacity;
};

struct trial_readings {
	const struct trial_experiment *experiment;
	pthread_mutex_t lock; /* of values: callbacks come in another thread */
	struct reading reading[TRIAL_METRICS_MAX];
	uint64_t first_clock;
	bool has_stubs; /* programs raise some of the events */
};

static void add(struct reading *reading, double value, double time_s)
{
	if (reading->count == VALUES_MAX ||
	    pem_grow(&reading->values, sizeof(double), reading->count + 1,
		     &reading->values_capacity) ||
	    pem_grow(&reading->times_s, sizeof(double), reading->count + 1,
		     &reading->times_capacity)) {
		reading->is_cut = true;
		return;
	}
	reading->values[reading->count] = value;
	reading->times_s[reading->count++] = time_s;
}

/* Add the number that a group of the expression matched. All of it has to be a decimal number. */
static void add_text(struct reading *reading, const char *text, size_t bytes, double time_s)
{
	char number[64], *end = number;
	double value = 0;

	snprintf(number, sizeof(number), "%.*s", (int)(bytes < 63 ? bytes : 63), text);
	if (bytes < sizeof(number) && number[strspn(number, "0123456789.eE+-")] == '\0')
		value = strtod(number, &end);
	if (end != number && !*end && isfinite(value))
		add(reading, value, time_s);
	else if (!reading->bad[0])
		snprintf(reading->bad, sizeof(reading->bad), "'%.28s'", number);
}

/* --- events --- */

static double field_of(const struct pem_record *record, int field)
{
	enum pem_type type = (enum pem_type)record->event->fields[field].type;

	if (type == PEM_TYPE_FLOAT32 || type == PEM_TYPE_FLOAT64)
		return pem_record__f64(record, (unsigned)field);
	return type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64
		       ? (double)pem_record__i64(record, (unsigned)field)
		       : (double)pem_record__u64(record, (unsigned)field);
}

static struct open_interval *find_open(struct reading *reading, uint32_t tid)
{
	size_t i;

	for (i = 0; i < reading->open_count; i++) {
		if (reading->open[i].tid == tid)
			return &reading->open[i];
	}
	return NULL;
}

/* The time from 'event' to 'until' in a thread: of nested ones, the outermost 'event' counts. */
static void take_interval(struct reading *reading, const struct pem_record *record, double time_s)
{
	struct open_interval *open = find_open(reading, record->tid);

	if (record->event == reading->begin) {
		if (open || reading->open_count == THREADS_MAX ||
		    pem_grow(&reading->open, sizeof(*open), reading->open_count + 1,
			     &reading->open_capacity))
			return;
		reading->open[reading->open_count++] =
			(struct open_interval){record->tid, record->clock};
	} else if (open) {
		add(reading, (double)(record->clock - open->clock) / (double)pem_clock__hz(),
		    time_s);
		*open = reading->open[--reading->open_count];
	}
}

static void on_event(const struct pem_record *record, void *arg)
{
	struct reading *reading = arg;
	struct trial_readings *all = reading->all;
	double time_s;

	pthread_mutex_lock(&all->lock);
	if (!all->first_clock)
		all->first_clock = record->clock;
	time_s = (double)(record->clock - all->first_clock) / (double)pem_clock__hz();
	if (reading->metric->until)
		take_interval(reading, record, time_s);
	else
		add(reading, field_of(record, reading->field), time_s);
	pthread_mutex_unlock(&all->lock);
}

/* Sums are kept where the events happen; single values come one by one. */
static bool needs_values(const struct trial_measure *metric)
{
	return metric->until || metric->use == TRIAL_USE_LAST || metric->use == TRIAL_USE_MEDIAN ||
	       metric->use == TRIAL_USE_P99;
}

static int observe(struct reading *reading, struct pem_session *session, struct pem_error *error)
{
	const struct trial_measure *metric = reading->metric;
	const char *patterns[] = {metric->event, metric->until};
	struct pem_event_set *set =
		pem_event_set__new(session, patterns, metric->until ? 2 : 1, error);
	size_t expected = metric->until ? 2 : 1;
	int rc;

	if (!set)
		return -errno;
	if (metric->where) {
		rc = pem_event_set__where_of(set, metric->event, metric->where, error);
		if (rc) {
			pem_event_set__free(set);
			return rc;
		}
	}
	reading->begin = pem_event_set__event(set, 0);
	if (reading->begin->source_kind == PEM_SOURCE_STUB)
		reading->all->has_stubs = true;
	reading->field = metric->field ? pem_event__field(reading->begin, metric->field) : -1;
	if (pem_event_set__event(set, expected)) {
		snprintf(error->text, sizeof(error->text),
			 "the metric '%s': '%.100s' names several events; one is measured",
			 metric->name, metric->event);
		pem_event_set__free(set);
		return -EINVAL;
	}
	if (metric->field && reading->field < 0) {
		snprintf(
			error->text, sizeof(error->text),
			"the metric '%s': %.100s has no field '%.60s'; 'pem list' shows its fields",
			metric->name, metric->event, metric->field);
		pem_event_set__free(set);
		return -EINVAL;
	}
	if (needs_values(metric)) {
		reading->callback = pem_session__register_async_callback(
			session, set, NULL, on_event, reading, NULL, error);
		pem_callback__enable(reading->callback);
	} else {
		reading->statistics =
			pem_session__register_statistics(session, set, NULL, metric->field, error);
		if (reading->statistics)
			pem_statistics__enable(reading->statistics);
	}
	pem_event_set__free(set);
	return reading->callback || reading->statistics ? 0 : -errno;
}

/* Wait for the events from before the command's end. Returns 0 or -ENODATA with error. */
static int settle(struct reading *reading, struct pem_error *error)
{
	struct pem_callback_counts counts = {.size = sizeof(counts)};

	pem_callback__settle(reading->callback);
	pem_callback__counts(reading->callback, &counts);
	if (!counts.lost)
		return 0;
	snprintf(error->text, sizeof(error->text),
		 "the metric '%s' is not known: some of its events were lost, as they came faster "
		 "than they could be read",
		 reading->metric->name);
	return -ENODATA;
}

/* --- all --- */

struct trial_readings *trial_readings__begin(const struct trial_experiment *experiment,
					     struct pem_session *session, struct pem_error *error)
{
	struct trial_readings *all = calloc(1, sizeof(*all));
	size_t i;
	int rc = all ? 0 : -ENOMEM;

	if (!all) {
		snprintf(error->text, sizeof(error->text), "out of memory");
		return NULL;
	}
	all->experiment = experiment;
	pthread_mutex_init(&all->lock, NULL);
	for (i = 0; !rc && i < experiment->metric_count; i++) {
		struct reading *reading = &all->reading[i];

		reading->all = all;
		reading->metric = &experiment->metrics[i];
		if (reading->metric->match) {
			/* It was compiled before, when the document was read. */
			rc = regcomp(&reading->expression, reading->metric->match, REG_EXTENDED)
				     ? -ENOMEM
				     : 0;
			reading->has_expression = !rc;
		} else if (reading->metric->event) {
			rc = observe(reading, session, error);
		}
	}
	if (!rc)
		return all;
	trial_readings__free(all);
	errno = -rc;
	return NULL;
}

bool trial_readings__have_stubs(const struct trial_readings *all)
{
	return all->has_stubs;
}

size_t trial_readings__line(struct trial_readings *all, const char *line, double time_s)
{
	regmatch_t found[2];
	size_t i, first;

	pthread_mutex_lock(&all->lock);
	for (i = 0; line && i < all->experiment->metric_count; i++) {
		struct reading *reading = &all->reading[i];

		if (reading->has_expression && !regexec(&reading->expression, line, 2, found, 0) &&
		    found[1].rm_so >= 0)
			add_text(reading, line + found[1].rm_so,
				 (size_t)(found[1].rm_eo - found[1].rm_so), time_s);
	}
	first = all->reading[0].count;
	pthread_mutex_unlock(&all->lock);
	return first;
}

int trial_readings__next(struct trial_readings *all, struct pem_explore_record *record)
{
	size_t i;
	int rc = 0;

	pthread_mutex_lock(&all->lock);
	for (i = 0; !rc && i < all->experiment->objectives; i++) {
		struct reading *reading = &all->reading[i];

		if (reading->told == reading->count)
			continue;
		record->size = sizeof(*record);
		record->value = reading->values[reading->told];
		if (reading->metric->greater_is_better)
			record->value = -record->value;
		record->time_ns = (uint64_t)(reading->times_s[reading->told++] * 1e9);
		record->objective = (uint32_t)i;
		rc = 1;
	}
	pthread_mutex_unlock(&all->lock);
	return rc;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* One number of several values; they become sorted. */
static double use_values(struct reading *reading)
{
	double sum = 0, last = reading->values[reading->count - 1];
	size_t i;

	for (i = 0; i < reading->count; i++)
		sum += reading->values[i];
	qsort(reading->values, reading->count, sizeof(double), by_value);
	switch (reading->metric->use) {
	case TRIAL_USE_MEAN:
		return sum / (double)reading->count;
	case TRIAL_USE_SUM:
		return sum;
	case TRIAL_USE_LEAST:
		return reading->values[0];
	case TRIAL_USE_MOST:
		return reading->values[reading->count - 1];
	case TRIAL_USE_MEDIAN:
		return (reading->values[(reading->count - 1) / 2] +
			reading->values[reading->count / 2]) /
		       2;
	case TRIAL_USE_P99:
		return reading->values[(reading->count * 99 - 1) / 100];
	case TRIAL_USE_COUNT:
		return (double)reading->count;
	default:
		return last;
	}
}

/* One number of a statistic. NAN: no event came, of which a number could be. */
static double use_statistic(const struct pem_statistic *s, enum trial_use use)
{
	double sum = s->is_float    ? s->sum_f
		     : s->is_signed ? (double)(int64_t)s->sum
				    : (double)s->sum;

	if (use == TRIAL_USE_COUNT)
		return (double)s->count;
	if (use == TRIAL_USE_SUM)
		return sum;
	if (!s->count)
		return NAN;
	if (use == TRIAL_USE_MEAN)
		return s->mean;
	if (use == TRIAL_USE_LEAST)
		return s->is_float    ? s->min_f
		       : s->is_signed ? (double)(int64_t)s->min
				      : (double)s->min;
	return s->is_float ? s->max_f : s->is_signed ? (double)(int64_t)s->max : (double)s->max;
}

static int never_came(const struct reading *reading, struct pem_error *error)
{
	const struct trial_measure *metric = reading->metric;

	if (reading->bad[0])
		snprintf(error->text, sizeof(error->text),
			 "the metric '%s' is not a number: %s matched %.60s", metric->name,
			 reading->bad, metric->match);
	else if (reading->is_cut)
		snprintf(error->text, sizeof(error->text),
			 "the metric '%s' had more values than the %u that are kept in a run",
			 metric->name, VALUES_MAX);
	else if (metric->match)
		snprintf(error->text, sizeof(error->text),
			 "the metric '%s' never came: no line matched %.60s", metric->name,
			 metric->match);
	else
		snprintf(error->text, sizeof(error->text),
			 "the metric '%s' never came: no %.60s%s%.30s", metric->name, metric->event,
			 metric->until ? " before " : " happened",
			 metric->until ? metric->until : "");
	return -ENODATA;
}

/* More values may come meanwhile, from processes that the command left. */
static int read_values(struct reading *reading, double *value, struct pem_error *error)
{
	bool is_count = reading->metric->use == TRIAL_USE_COUNT;
	int rc = 0;

	pthread_mutex_lock(&reading->all->lock);
	if (reading->is_cut || reading->bad[0] || (!reading->count && !is_count))
		rc = never_came(reading, error);
	else
		*value = reading->count ? use_values(reading) : 0;
	pthread_mutex_unlock(&reading->all->lock);
	return rc;
}

static int read_events(struct reading *reading, double *value, struct pem_error *error)
{
	struct pem_statistic statistic = {.size = sizeof(statistic)};

	if (reading->statistics) {
		pem_statistics__read(reading->statistics, &statistic, 1);
		if (statistic.unavailable || statistic.is_partial) {
			snprintf(error->text, sizeof(error->text),
				 "the metric '%s' can't be counted here: %s", reading->metric->name,
				 statistic.unavailable ? strerror(-statistic.unavailable)
						       : "it was counted for a part of the time");
			return -ENODATA;
		}
		*value = use_statistic(&statistic, reading->metric->use);
		return isnan(*value) ? never_came(reading, error) : 0;
	}
	return settle(reading, error) ? -ENODATA : read_values(reading, value, error);
}

static int read_one(struct reading *reading, const struct trial_ended *ended, double *value,
		    struct pem_error *error)
{
	switch (reading->metric->source) {
	case TRIAL_OF_TIME:
		*value = ended->seconds;
		return 0;
	case TRIAL_OF_CPU:
		*value = ended->cpu_s;
		return 0;
	case TRIAL_OF_MEMORY:
		*value = (double)ended->memory_bytes;
		if (ended->memory_bytes)
			return 0;
		*value = NAN;
		/* What is not an aim may stay unknown. */
		if (reading >= reading->all->reading + reading->all->experiment->objectives)
			return 0;
		snprintf(error->text, sizeof(error->text),
			 "the metric '%s' is not known: the command had less memory than pem has, "
			 "about 10 MB",
			 reading->metric->name);
		return -ENODATA;
	case TRIAL_OF_STATUS:
		*value = WIFEXITED(ended->status) ? WEXITSTATUS(ended->status)
						  : 128 + WTERMSIG(ended->status);
		return 0;
	case TRIAL_OF_EVENT:
		return read_events(reading, value, error);
	default:
		return read_values(reading, value, error);
	}
}

int trial_readings__end(struct trial_readings *all, const struct trial_ended *ended, double *values,
			struct pem_error *error)
{
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < all->experiment->metric_count; i++)
		rc = read_one(&all->reading[i], ended, &values[i], error);
	return rc;
}

void trial_readings__free(struct trial_readings *all)
{
	size_t i;

	if (!all)
		return;
	for (i = 0; i < TRIAL_METRICS_MAX; i++) {
		struct reading *reading = &all->reading[i];

		if (reading->has_expression)
			regfree(&reading->expression);
		pem_callback__unregister(reading->callback);
		pem_statistics__unregister(reading->statistics);
		free(reading->values);
		free(reading->times_s);
		free(reading->open);
	}
	pthread_mutex_destroy(&all->lock);
	free(all);
}
