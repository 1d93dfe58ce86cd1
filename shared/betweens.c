/* SPDX-License-Identifier: MIT */
/* betweens.c - which records a metric's times go from and to (contract: betweens.h) */
#include "betweens.h"
#include "doubt.h"
#include "grow.h"
#include "number_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NO_TIME UINT64_MAX
#define THREADS_MAX 65536u /* of each metric */

struct between {
	size_t number; /* of the metric in the model */
	const struct pem_event *of, *to;
	enum pem_doubt_source from; /* of the first event */
	struct pem_number_map at; /* key: thread; value: index in from_ns */
	uint64_t *from_ns; /* of the last first event; NO_TIME: none since the last second one */
	size_t count, capacity;
};

struct pem_betweens {
	const struct pem_trace *trace;
	struct pem_doubt doubt;
	size_t count;
	struct between all[];
};

static const struct pem_event *event_of(const struct pem_model *model, const char *name)
{
	size_t i;

	for (i = 0; i < pem_model__count(model); i++)
		if (strcmp(pem_model__event(model, i)->name, name) == 0)
			return pem_model__event(model, i);
	return NULL;
}

struct pem_betweens *pem_betweens__new(const struct pem_trace *trace)
{
	const struct pem_model *model = pem_trace__model(trace);
	size_t i, count = pem_model__metric_count(model);
	struct pem_betweens *b = calloc(1, sizeof(*b) + count * sizeof(b->all[0]));

	if (b == NULL)
		return NULL;
	b->trace = trace;
	for (i = 0; i < count; i++) {
		const struct pem_metric *m = pem_model__metric(model, i);

		if (m->form == PEM_METRIC_BETWEEN)
			b->all[b->count++] = (struct between){.number = i,
							      .of = event_of(model, m->of.event),
							      .to = event_of(model, m->to.event)};
	}
	return b;
}

void pem_betweens__free(struct pem_betweens *b)
{
	size_t i;

	if (b == NULL)
		return;
	for (i = 0; i < b->count; i++) {
		pem_number_map__free(&b->all[i].at);
		free(b->all[i].from_ns);
	}
	free(b);
}

/* Where the thread's time began. NULL: no memory. */
static uint64_t *time_of(struct between *m, const struct pem_record *record)
{
	uint32_t *at = pem_number_map__at(&m->at, (uint64_t)record->pid << 32 | record->tid);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		/* Times that go on now are forgotten. A trace may have threads without end. */
		if (m->count == THREADS_MAX) {
			pem_number_map__free(&m->at);
			m->count = 0;
			return time_of(m, record);
		}
		if (pem_grow(&m->from_ns, sizeof(*m->from_ns), m->count + 1, &m->capacity) < 0)
			return NULL;
		m->from_ns[m->count] = NO_TIME;
		*at = (uint32_t)m->count++;
	}
	return &m->from_ns[*at];
}

/* Set *ns to the time that ends with the record, or to NO_TIME. Returns 0 or -ENOMEM. */
static int take(const struct pem_betweens *b, struct between *m, const struct pem_record *record,
		uint64_t *ns)
{
	enum pem_doubt_source source = pem_doubt__source(record->source);
	uint64_t *from_ns = time_of(m, record), sure_ns = b->doubt.until_ns[source];

	*ns = NO_TIME;
	if (from_ns == NULL)
		return -ENOMEM;
	/* Between them another record of either event may be lost. */
	if (b->doubt.until_ns[m->from] > sure_ns)
		sure_ns = b->doubt.until_ns[m->from];
	if (record->event == m->to) {
		if (*from_ns != NO_TIME && *from_ns <= record->time_ns && *from_ns >= sure_ns)
			*ns = record->time_ns - *from_ns;
		*from_ns = NO_TIME;
	}
	if (record->event == m->of) {
		*from_ns = record->time_ns;
		m->from = source;
	}
	return 0;
}

int pem_betweens__record(struct pem_betweens *b, const struct pem_record *record,
			 int (*found)(void *arg, size_t metric, uint64_t ns), void *arg)
{
	uint64_t ns;
	size_t i;
	int rc = 0;

	if (b->count == 0)
		return 0;
	pem_doubt__note(&b->doubt, b->trace);
	for (i = 0; rc == 0 && i < b->count; i++) {
		struct between *m = &b->all[i];

		if ((record->event != m->of && record->event != m->to) || record->tid == 0)
			continue;
		rc = take(b, m, record, &ns);
		if (rc == 0 && ns != NO_TIME)
			rc = found(arg, m->number, ns);
	}
	return rc;
}
