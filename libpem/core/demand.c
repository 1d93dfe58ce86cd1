/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demand.c - what a session wants of each event
 */
#include "core/core.h"
#include "core/demand.h"
#include "model_internal.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
	s->demands[i].event = event;
	s->demands[i].field = PEM_NO_FIELD;
	s->demands[i].epoch = 1;
	s->demands[i].instance = -1;
	s->demands[i].detail = PEM_DETAIL_LOG;
	s->demand_count++;
	return &s->demands[i];
}

int pem_demand__set_context(struct pem_demand *demand, const struct pem_context *context,
			    struct pem_error *error)
{
	if (demand->has_context && memcmp(&demand->context, context, sizeof(*context)))
		return pem_error__set(error, -EBUSY,
				      "this session already observes %s in another context; open a "
				      "second session",
				      demand->event->name);
	demand->context = *context;
	demand->has_context = true;
	return 0;
}

void pem_demand__release_context(struct pem_demand *demand)
{
	if (!demand->want_log && !demand->want_statistic && !demand->want_async &&
	    demand->instance < 0)
		demand->has_context = false;
}

uint64_t pem_demand__action(const struct pem_demand *demand)
{
	uint32_t flags = 0, type = 0, offset = 0;

	/* An event that the overhead budget does not let be logged is counted. */
	if ((demand->log && demand->detail == PEM_DETAIL_LOG) || demand->async ||
	    demand->async_context)
		flags |= PEM_ACTION_LOG;
	if (demand->wake)
		flags |= PEM_ACTION_WAKE;
	if (demand->callback)
		flags |= PEM_ACTION_CALLBACK;
	if ((demand->statistic && demand->detail != PEM_DETAIL_OFF) ||
	    (demand->log && demand->detail == PEM_DETAIL_STATISTICS))
		flags |= PEM_ACTION_STAT | (demand->distribution ? PEM_ACTION_DISTRIBUTION : 0);
	if (demand->field != PEM_NO_FIELD) {
		type = demand->event->fields[demand->field].type;
		/* An action has 4 bits for the type of the value that is added up. */
		if (type == PEM_TYPE_ADDRESS)
			type = PEM_TYPE_UINT64;
		offset = demand->event->fields[demand->field].offset;
	}
	if (demand->context.tid != PEM_ANY || demand->context.one_cpu || demand->predicate)
		flags |= flags ? PEM_ACTION_FILTER : 0;
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
