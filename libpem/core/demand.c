/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demand.c - what a session wants of each event
 */
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "model_internal.h"
#include "util.h"

#include <pem/predicate.h>
#include <pem/stub.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void begin(struct pem_demand *demand, const struct pem_event *event)
{
	demand->event = event;
	demand->first = demand;
	demand->page_context = -1;
	demand->field = PEM_NO_FIELD;
	demand->epoch = 1;
	demand->instance = -1;
	demand->detail = PEM_DETAIL_LOG;
}

struct pem_demand *pem_session__demand(struct pem_session *s, const struct pem_event *event)
{
	ssize_t index = pem_model__index(s->model, event->id);
	size_t i;

	if (!s->demands) {
		s->demands = calloc(PEM_DEMANDS_MAX, sizeof(*s->demands));
		if (!s->demands)
			return NULL;
	}
	/*
	 * A source's records ask for a demand each, so demand_of remembers its index. The demands
	 * are searched only if that index is another event's now.
	 */
	i = index >= 0 ? s->demand_of[index] : s->demand_count;
	if (i < s->demand_count && s->demands[i].event == event)
		return &s->demands[i];
	for (i = 0; i < s->demand_count && s->demands[i].event != event; i++)
		;
	if (i == PEM_DEMANDS_MAX)
		return NULL;
	if (index >= 0)
		s->demand_of[index] = (uint16_t)i;
	if (i < s->demand_count)
		return &s->demands[i];
	begin(&s->demands[i], event);
	s->demand_count++;
	return &s->demands[i];
}

struct pem_demand *pem_session__further_demand(struct pem_session *s, struct pem_demand *first)
{
	struct pem_demand *demand, **link;
	uint32_t epoch, i;

	if (!s->further)
		s->further = calloc(PEM_FURTHER_CELLS, sizeof(*s->further));
	if (!s->further)
		return NULL;
	for (i = 0; i < PEM_FURTHER_CELLS && s->further[i].event; i++)
		;
	if (i == PEM_FURTHER_CELLS)
		return NULL;
	demand = &s->further[i];
	epoch = demand->epoch; /* what the cell held for the demand before does not show */
	memset(demand, 0, sizeof(*demand));
	begin(demand, first->event);
	demand->epoch = (epoch + 1) & 0xffffff;
	demand->cell = (uint8_t)(i + 1);
	demand->first = first;
	for (link = &first->next; *link; link = &(*link)->next)
		;
	*link = demand;
	return demand;
}

void pem_demand__remove_further(struct pem_demand *demand)
{
	struct pem_demand **link = &demand->first->next;

	while (*link != demand)
		link = &(*link)->next;
	*link = demand->next;
	demand->event = NULL;
}

uint64_t pem_demand__async(const struct pem_demand *first)
{
	const struct pem_demand *demand;
	uint64_t async = 0;

	for (demand = first; demand; demand = demand->next)
		async |= demand->async;
	return async;
}

struct pem_demand *pem_demand__of_log(struct pem_demand *first)
{
	struct pem_demand *demand = first;

	while (demand && !demand->want_log)
		demand = demand->next;
	return demand;
}

struct pem_demand *pem_demand__of_instance(struct pem_demand *first, int instance)
{
	struct pem_demand *demand = first;

	while (demand && demand->instance != instance)
		demand = demand->next;
	return demand ? demand : first;
}

bool pem_demand__takes(const struct pem_demand *demand, const uint8_t *record, size_t bytes,
		       uint32_t tid, uint64_t contexts)
{
	const struct pem_predicate *predicate = demand->predicate;

	return demand->page_context >= 0 && contexts >> demand->page_context & 1 &&
	       (demand->context.tid == PEM_ANY || demand->context.tid == tid) &&
	       (!predicate ||
		(pem_tests__valid(predicate->test, predicate->test_count, (uint32_t)bytes) &&
		 pem_tests_pass(predicate->test, predicate->test_count, record)));
}

uint64_t pem_demand__action(const struct pem_demand *demand)
{
	uint32_t flags = 0, type = 0, offset = 0, detail = demand->first->detail;

	/* An event that the overhead budget does not let be logged is counted. */
	if ((demand->log && detail == PEM_DETAIL_LOG) || demand->async || demand->async_context)
		flags |= PEM_ACTION_LOG;
	if (demand->wake)
		flags |= PEM_ACTION_WAKE;
	if (demand->callback)
		flags |= PEM_ACTION_CALLBACK;
	if ((demand->statistic && detail != PEM_DETAIL_OFF) ||
	    (demand->log && detail == PEM_DETAIL_STATISTICS))
		flags |= PEM_ACTION_STAT | (demand->distribution ? PEM_ACTION_DISTRIBUTION : 0);
	if (demand->field != PEM_NO_FIELD) {
		type = demand->event->fields[demand->field].type;
		/* An action has 4 bits for the type of the value that is added up. */
		if (type == PEM_TYPE_ADDRESS)
			type = PEM_TYPE_UINT64;
		offset = demand->event->fields[demand->field].offset;
	}
	if (demand->context.tid != PEM_ANY || demand->context.one_cpu ||
	    (demand->predicate && demand->predicate->test_count))
		flags |= flags ? PEM_ACTION_FILTER : 0;
	/* Stubs know this word, and a log is of no field and no epoch. */
	if (demand->event->source_kind == PEM_SOURCE_STUB && flags == PEM_ACTION_LOG)
		return PEM_ACTION_LOGGED(0);
	/*
	 * The epoch stays when nothing is wanted: a source's statistic belongs to it and can still
	 * be read.
	 */
	return PEM_ACTION(flags, demand->field, type, offset, demand->epoch);
}

bool pem_event__tells_context(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_TRACEPOINT &&
	       (event->meaning == PEM_MEANS_SETS_THREAD ||
		event->meaning == PEM_MEANS_THREAD_START ||
		event->meaning == PEM_MEANS_THREAD_END ||
		event->meaning == PEM_MEANS_PROCESS_NAME ||
		event->meaning == PEM_MEANS_THREAD_NAME);
}
