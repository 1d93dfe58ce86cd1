/* SPDX-License-Identifier: MIT */
/* betweens.c - which records a metric's times go from and to (contract: betweens.h) */
#include "betweens.h"
#include "doubt.h"
#include "grow.h"
#include "number_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

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
	size_t losses; /* that were looked at for those without an end */
	struct pem_number_map open_at; /* key: process, or 0; value: index in open_ns */
	uint64_t *open_ns; /* since when records of it are lost: the stream has none behind */
	size_t open_count, open_capacity;
	size_t count;
	struct between all[];
};

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
			b->all[b->count++] =
				(struct between){.number = i,
						 .of = pem_model__by_name(model, m->of.event),
						 .to = pem_model__by_name(model, m->to.event)};
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
	pem_number_map__free(&b->open_at);
	free(b->open_ns);
	free(b);
}

/* Whose records a loss is of: a process, or the kernel and counters. */
static uint64_t loser_of(uint32_t source, uint32_t pid)
{
	return pem_doubt__source(source) == PEM_DOUBT_PROGRAMS ? (uint64_t)pid << 1 | 1 : 0;
}

/* Note the losses behind which their streams have no more records. Returns 0 or -ENOMEM. */
static int note_open_losses(struct pem_betweens *b)
{
	struct pem_trace_loss loss = {.size = sizeof(loss)};
	size_t known = pem_trace__loss_count(b->trace);
	uint32_t *at;

	for (; b->losses < known; b->losses++) {
		if (pem_trace__loss(b->trace, b->losses, &loss) < 0 || loss.end_ns != UINT64_MAX)
			continue;
		at = pem_number_map__at(&b->open_at, loser_of(loss.source, loss.pid));
		if (at == NULL || pem_grow(&b->open_ns, sizeof(*b->open_ns), b->open_count + 1,
					   &b->open_capacity) < 0)
			return -ENOMEM;
		if (*at == UINT32_MAX) {
			b->open_ns[b->open_count] = UINT64_MAX;
			*at = (uint32_t)b->open_count++;
		}
		if (loss.begin_ns < b->open_ns[*at])
			b->open_ns[*at] = loss.begin_ns;
	}
	return 0;
}

/* Were records of the record's process, or of the kernel, lost before it, and none came behind? */
static bool is_behind_a_loss(const struct pem_betweens *b, const struct pem_record *record)
{
	uint32_t own = pem_number_map__value(&b->open_at, loser_of(PEM_PACKET_USER, record->pid));
	uint32_t kernel = pem_number_map__value(&b->open_at, 0);

	return (own != UINT32_MAX && b->open_ns[own] < record->time_ns) ||
	       (kernel != UINT32_MAX && b->open_ns[kernel] < record->time_ns);
}

/* Tells the thread from all others; without a pass, from those of its time. */
static uint64_t key_of(const struct pem_record *record, const struct pem_pass_thread *thread)
{
	return thread != NULL ? 1ull << 63 | thread->number
			      : (uint64_t)record->pid << 32 | record->tid;
}

/* Where the time of the thread of this key began. NULL: no memory. */
static uint64_t *time_of(struct between *m, uint64_t key)
{
	uint32_t *at = pem_number_map__at(&m->at, key);

	if (at == NULL)
		return NULL;
	if (*at == UINT32_MAX) {
		/* Times that go on now are forgotten. A trace may have threads without end. */
		if (m->count == THREADS_MAX) {
			pem_number_map__free(&m->at);
			m->count = 0;
			return time_of(m, key);
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
		uint64_t key, uint64_t *ns)
{
	enum pem_doubt_source source = pem_doubt__source(record->source);
	uint64_t *from_ns = time_of(m, key), sure_ns = b->doubt.until_ns[source];

	*ns = NO_TIME;
	if (from_ns == NULL)
		return -ENOMEM;
	/* Between them another record of either event may be lost. */
	if (b->doubt.until_ns[m->from] > sure_ns)
		sure_ns = b->doubt.until_ns[m->from];
	if (record->event == m->to) {
		if (*from_ns != NO_TIME && *from_ns <= record->time_ns && *from_ns >= sure_ns &&
		    !is_behind_a_loss(b, record))
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
			 const struct pem_pass_thread *thread,
			 int (*found)(void *arg, size_t metric, uint64_t ns), void *arg)
{
	uint64_t ns;
	size_t i;
	int rc = 0;

	if (b->count == 0)
		return 0;
	pem_doubt__note(&b->doubt, b->trace);
	rc = note_open_losses(b);
	for (i = 0; rc == 0 && i < b->count; i++) {
		struct between *m = &b->all[i];

		if ((record->event != m->of && record->event != m->to) || record->tid == 0)
			continue;
		rc = take(b, m, record, key_of(record, thread), &ns);
		if (rc == 0 && ns != NO_TIME)
			rc = found(arg, m->number, ns);
	}
	return rc;
}
