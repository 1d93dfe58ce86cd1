/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * log_model.c - which events and records are for the log, and the model of its trace
 *
 * Not here: the handle (session/log.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "model_internal.h"
#include "util.h"

#include <string.h>

bool pem_session__is_logging(const struct pem_session *s)
{
	return s->log && s->log->writer && !s->log->closed;
}

void pem_log__model_grew(struct pem_log *log)
{
	const struct pem_model *all = log->session->model;
	size_t before = pem_model__count(log->model);

	for (; log->model_seen < pem_model__count(all); log->model_seen++)
		pem_model__share(log->model, pem_model__event(all, log->model_seen));
	pem_model__share_metrics(log->model, all);
	if (log->writer && pem_model__count(log->model) != before)
		pem_trace_writer__model_changed(log->writer);
}

void pem_log__describe(struct pem_log *log, const struct pem_event *event)
{
	if (pem_model__by_id(log->model, event->id))
		return;
	if (!pem_model__share(log->model, event) && log->writer)
		pem_trace_writer__model_changed(log->writer);
}

bool pem_log__takes(const struct pem_log *log, struct pem_demand *first)
{
	return pem_demand__of_log(first) ||
	       (log->any_level && first->event->level <= log->any_level);
}

bool pem_log__wants(const struct pem_log *log, struct pem_demand *demand, uint64_t clock)
{
	size_t i;

	if (!demand || !demand->async_ever)
		return true;
	if (!pem_log__takes(log, demand))
		return false;
	for (i = 0; i < log->span_count; i++) {
		if (clock >= log->spans[i].from && clock <= log->spans[i].to)
			return true;
	}
	return false;
}
