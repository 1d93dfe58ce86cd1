/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demand.h - what a session wants of each event
 *
 * A demand is the union of what the session's handles want of one event. Demands become rules in
 * the session page and action words in the producers' control pages (processes/rules.c), or actions
 * of a source (source_host/sources.c).
 */
#ifndef PEM_DEMAND_H
#define PEM_DEMAND_H

#include "distribution.h"

#include <pem/model.h>
#include <pem/pem.h>

#include <stdbool.h>
#include <stdint.h>

struct pem_predicate;
struct pem_session;
struct pem_statistics;

/* As the enum Detail of spec/cpo/recorder.xml. */
enum pem_detail { PEM_DETAIL_OFF, PEM_DETAIL_STATISTICS, PEM_DETAIL_LOG };

struct pem_demand {
	const struct pem_event *event;
	struct pem_context context;
	bool has_context; /* some handle has set it */
	/* of the sets that handles were made of; NULL: none */
	const struct pem_predicate *predicate;
	unsigned bound; /* handles that chose it */
	bool log, statistic, callback;
	/* registered, enabled or not: a source opens what may be wanted */
	bool want_log, want_statistic, want_async;
	/* bit i: asynchronous callback i is enabled and wants it; also under the async lock */
	uint64_t async;
	bool async_ever; /* it was so: not all that lies in pools is the log's */
	bool async_context; /* of the kernel: tells whose records are, for asynchronous callbacks */
	bool wake; /* their thread sleeps */
	uint64_t async_lost; /* while wanted by one: found no room, or was overwritten */
	uint64_t source_lost; /* of a source: discarded by it, as async_lost knows */
	uint64_t callback_only; /* records of a source that were not for the log */
	uint8_t field;
	uint32_t epoch;
	const struct pem_statistics *statistics; /* the handle that chose field */
	int instance; /* of sources, -1: none yet or a stub */
	size_t instance_index;
	uint8_t detail; /* enum pem_detail: the most that the overhead budget lets it have */
	bool was_reduced, was_off; /* it ever was less than wanted, or off */
	int unavailable; /* 0, or -errno of a source that can't */
	char reason[232]; /* why */
	char source[24]; /* its name */
	uint64_t delivered, lost; /* records of a source: written, not written */
	uint64_t overwritten; /* kept by a flight recorder for a while, and not any more */
	uint32_t distribution; /* PEM_DISTRIBUTION(...): what else to keep, 0: nothing */
	struct pem_statistic retired; /* from processes that are gone; valid for retired_epoch */
	struct pem_distribution_total *retired_distribution; /* with wide */
	uint32_t retired_epoch;
};

struct pem_event_set {
	struct pem_session *session;
	const struct pem_predicate **predicates; /* of the events; NULL: none */
	/* enum pem_level up to which patterns cover every stub event, met or not; 0: none do */
	uint8_t any_level;
	size_t count;
	const struct pem_event *events[];
};

/* Does the kernel raise the event, at a tracepoint or because pem.ko looks? */
static inline bool pem_event__is_of_kernel(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_TRACEPOINT ||
	       event->source_kind == PEM_SOURCE_MODULE || event->source_kind == PEM_SOURCE_USDT ||
	       event->source_kind == PEM_SOURCE_PROBE;
}

/* The demand for an event of the session's model; NULL: out of memory. The pointer stays valid. */
struct pem_demand *pem_session__demand(struct pem_session *session, const struct pem_event *event);

/* Set or check a demand's context. 0, or -EBUSY when another handle has chosen another. */
int pem_demand__set_context(struct pem_demand *demand, const struct pem_context *context,
			    struct pem_error *error);

/*
 * After the last handle that chose it another may be set; not of a source, which was opened with
 * it.
 */
void pem_demand__release_context(struct pem_demand *demand);

/* The action word of what is enabled now. */
uint64_t pem_demand__action(const struct pem_demand *demand);

/* Does the event say which process or thread kernel records belong to, or what that is called? */
bool pem_event__tells_context(const struct pem_event *event);

#endif
