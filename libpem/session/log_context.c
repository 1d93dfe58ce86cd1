/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* log_context.c - what is logged beside the events that were asked for */
#include "core/core.h"
#include "core/demand.h"
#include "session/session.h"
#include "writer/log.h"
#include "model_internal.h"
#include "util.h"

#include <stdio.h>
#include <string.h>

static bool logs_kernel(const struct pem_log *log)
{
	size_t i;

	for (i = 0; i < log->count; i++) {
		if (pem_event__is_of_kernel(log->demands[i]->event))
			return true;
	}
	return false;
}

/* Does the log take ends of the intervals that an event begins? */
static bool logs_ends(const struct pem_log *log, const struct pem_event *begin)
{
	const struct pem_event *event;
	size_t i;

	for (i = 0; i < log->count; i++) {
		event = log->demands[i]->event;
		if (event->meaning == PEM_MEANS_INTERVAL_END && event->scope == begin->scope &&
		    !strcmp(event->group, begin->group))
			return true;
	}
	return false;
}

/* Of an interval that began before, the beginning is recorded only if the end is. */
bool pem_log__goes_along(const struct pem_log *log, const struct pem_event *event)
{
	if (!logs_kernel(log))
		return false;
	if (event->source_kind != PEM_SOURCE_PROC)
		return pem_event__tells_context(event);
	return event->meaning != PEM_MEANS_INTERVAL_BEGIN || logs_ends(log, event);
}

static void note_context_event(struct pem_trace_info *info, const struct pem_event *event)
{
	size_t used = strlen(info->context_events);

	if (used + strlen(event->name) + 2 <= sizeof(info->context_events))
		sprintf(info->context_events + used, "%s%s", used ? " " : "", event->name);
}

static void add_context_event(struct pem_session *s, struct pem_demand *demand)
{
	struct pem_demand *of_log = pem_demand__of_log(demand);

	if (of_log)
		demand = of_log;
	if (demand->log)
		return;
	if (!demand->want_log)
		note_context_event(&s->log->info, demand->event);
	demand->log = demand->want_log = true;
}

/*
 * Kernel records do not name threads and processes, and do not tell what began before. So the
 * events that tell these are logged, too, even if nobody asked for them. If some of them are not
 * available, this is then no gap.
 */
static void add_context_events(struct pem_session *s, struct pem_log *log)
{
	const struct pem_event *event;
	struct pem_demand *demand;
	size_t i;

	for (i = 0; i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		if (!pem_log__goes_along(log, event))
			continue;
		demand = pem_session__demand(s, event);
		if (demand && pem_session__can_deliver(s, event, NULL))
			add_context_event(s, demand);
	}
}

/* Count how often stacks are looked for whose calls are logged: that has a cost of its own. */
static void count_walks(struct pem_session *s, struct pem_log *log)
{
	const struct pem_event *event = pem_model__by_name(s->model, PEM_STACK_WALK_EVENT);
	bool has_frames = false;
	size_t i;

	for (i = 0; i < log->count; i++)
		has_frames |= log->demands[i]->event->meaning == PEM_MEANS_FRAME;
	if (!has_frames || !event)
		return;
	log->walks = pem_session__demand(s, event);
	if (log->walks && !log->walks->statistics) {
		log->walks->field = 0;
		log->walks->statistic = log->walks->want_statistic = true;
	}
}

void pem_log__add_context(struct pem_log *log)
{
	add_context_events(log->session, log);
	count_walks(log->session, log);
}
