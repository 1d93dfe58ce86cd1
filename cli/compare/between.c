// SPDX-License-Identifier: MIT
/*
 * between.c - times between two events of a thread, as specs declare them (form 'between')
 *
 * A time goes from the last record of the first event to the next record of the second one.
 */
#include "series.h"
#include "cli.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_TIME UINT64_MAX
#define THREADS_MAX 65536u /* of each metric */

struct between {
	const struct pem_metric *metric;
	long series; /* -1: no time was found yet */
	enum compare_source from; /* of the first event */
	struct cli_map at; /* key: thread; value: index in from_ns */
	uint64_t *from_ns; /* of the last first event; NO_TIME: none since the last second one */
	size_t count, capacity;
};

struct compare_betweens {
	struct between *all;
	size_t count;
};

struct compare_betweens *compare_betweens__new(const struct pem_model *model)
{
	struct compare_betweens *b = calloc(1, sizeof(*b));
	size_t i, count = pem_model__metric_count(model);

	if (b == NULL)
		return NULL;
	b->all = calloc(count + 1, sizeof(*b->all));
	if (b->all == NULL) {
		free(b);
		return NULL;
	}
	for (i = 0; i < count; i++)
		if (pem_model__metric(model, i)->form == PEM_METRIC_BETWEEN)
			b->all[b->count++] = (struct between){.metric = pem_model__metric(model, i),
							      .series = -1};
	return b;
}

void compare_betweens__free(struct compare_betweens *b)
{
	size_t i;

	if (b == NULL)
		return;
	for (i = 0; i < b->count; i++) {
		cli_map__free(&b->all[i].at);
		free(b->all[i].from_ns);
	}
	free(b->all);
	free(b);
}

static int add_time(struct between *b, struct compare_series *s, const struct pem_record *record,
		    enum compare_source source, uint64_t from_ns)
{
	if (b->series < 0) {
		b->series = compare_series__metric(s, b->metric->name, COMPARE_DURATION, "ns",
						   b->metric->name);
		if (b->series < 0)
			return b->series == -ENOMEM ? -ENOMEM : 0;
		s->metrics[b->series].source = source;
	}
	compare_series__add(s, (size_t)b->series, record->time_ns,
			    (double)(record->time_ns - from_ns));
	return 0;
}

/* Where the thread's time began. NULL: no memory. */
static uint64_t *time_of(struct between *b, const struct pem_record *record)
{
	uint32_t *at = cli_map__at(&b->at, (uint64_t)record->pid << 32 | record->tid);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		/* Times that go on now are forgotten, as readings of counters are (collect.c). */
		if (b->count == THREADS_MAX) {
			cli_map__free(&b->at);
			b->count = 0;
			return time_of(b, record);
		}
		if (pem_grow(&b->from_ns, sizeof(*b->from_ns), b->count + 1, &b->capacity) < 0)
			return NULL;
		b->from_ns[b->count] = NO_TIME;
		*at = (uint32_t)b->count++;
	}
	return &b->from_ns[*at];
}

static int take(struct between *b, struct compare_series *s, const struct pem_record *record,
		enum compare_source source, const uint64_t *doubtful_ns)
{
	bool is_from = strcmp(b->metric->of.event, record->event->name) == 0;
	bool is_to = strcmp(b->metric->to.event, record->event->name) == 0;
	uint64_t *from_ns, sure_ns = doubtful_ns[source];
	int rc = 0;

	if ((!is_from && !is_to) || record->tid == 0)
		return 0;
	from_ns = time_of(b, record);
	if (from_ns == NULL)
		return -ENOMEM;
	/* Between them another record of either event may be lost. */
	if (doubtful_ns[b->from] > sure_ns)
		sure_ns = doubtful_ns[b->from];
	if (is_to && *from_ns != NO_TIME && *from_ns <= record->time_ns && *from_ns >= sure_ns)
		rc = add_time(b, s, record, source, *from_ns);
	if (is_to)
		*from_ns = NO_TIME;
	if (is_from) {
		*from_ns = record->time_ns;
		b->from = source;
	}
	return rc;
}

int compare_betweens__record(struct compare_betweens *b, struct compare_series *s,
			     const struct pem_record *record, enum compare_source source,
			     const uint64_t *doubtful_ns)
{
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < b->count; i++)
		rc = take(&b->all[i], s, record, source, doubtful_ns);
	return rc;
}
