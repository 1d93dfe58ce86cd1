/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demand.h - what a session wants of each event
 *
 * A demand is the union of what handles want of one event, in one context, with one predicate, and
 * with one statistic. Handles that differ in one of these have demands of their own: an event has a
 * first demand and may have further ones. Demands become rules in the session page and action words
 * in the producers' control pages (processes/rules.c). For an event of a source they become actions
 * of that source (source_host/sources.c).
 *
 * A program raises a record once, whoever wants it. Where the demands that want an event's records
 * differ, the consumer tests each record again for each of them (pem_demand__takes). A source has
 * an instance for each of them, and each instance delivers records of its own.
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
	/* The event's first demand: this one, or another that it is a further one of. */
	struct pem_demand *first;
	/* The event's next further demand, or NULL. */
	struct pem_demand *next;
	/* 0: the event's own cell; else 1 and the index of a further one. */
	uint8_t cell;
	/* The session page's index of the context; -1: it has none. */
	int page_context;
	struct pem_context context;
	/* The predicate of the event sets that the handles were made of; NULL: none. */
	const struct pem_predicate *predicate;
	unsigned bound; /* handles that chose the demand */
	bool log, statistic, callback;
	/* Of the event, kept in its first demand: threads read counters when it is logged. */
	bool counters;
	/* A handle for it is registered, enabled or not. A source opens all that may be wanted. */
	bool want_log, want_statistic, want_async;
	/*
	 * Bit i: asynchronous callback i is enabled and wants the event. Changes under the async
	 * lock, too.
	 */
	uint64_t async;
	/*
	 * Of the event, kept in its first demand: demands that want records differ. A record of a
	 * program is tested again for each of them.
	 */
	bool records_differ;
	/*
	 * Of the event, kept in its first demand: async of a demand was not 0 at some time. From
	 * then on not every record in a pool is for the log.
	 */
	bool async_ever;
	/*
	 * Asynchronous callbacks need this kernel event to find the process and thread of other
	 * records.
	 */
	bool async_context;
	bool wake; /* the thread of asynchronous callbacks sleeps */
	/*
	 * Of the event, kept in its first demand: records that an asynchronous callback wanted and
	 * that were lost. There was no room for them, or they were overwritten.
	 */
	uint64_t async_lost;
	/* What the source had discarded when async_lost was last brought up to date. */
	uint64_t source_lost;
	/* Records that the demand's instance of a source delivered and that were callback-only. */
	uint64_t callback_only;
	uint8_t field;
	uint32_t epoch;
	const struct pem_statistics *statistics; /* the handle that chose field */
	int instance; /* index of the source's instance; -1: none yet, or a stub */
	size_t instance_index;
	/* Of the event, kept in its first demand, up to was_off. */
	uint8_t detail; /* enum pem_detail: the most that the overhead budget allows */
	/* The detail was less than wanted at some time; it was off at some time. */
	bool was_reduced, was_off;
	int unavailable; /* 0, or the -errno of a source that can't deliver it */
	char reason[232]; /* why it is unavailable */
	char source[24]; /* name of the source */
	/* Of the event, kept in its first demand, up to overwritten. */
	uint64_t delivered, lost; /* records of a source: written, not written */
	/* Records of a source that a flight recorder kept for a while and has overwritten since. */
	uint64_t overwritten;
	uint32_t distribution; /* PEM_DISTRIBUTION(...): the distribution to keep; 0: none */
	/*
	 * Statistic of processes that are gone; valid if its epoch, retired_epoch, is the demand's.
	 */
	struct pem_statistic retired;
	struct pem_distribution_total
		/* Valid for retired_epoch, too; NULL: the demand kept no distribution. */
		*retired_distribution;
	uint32_t retired_epoch;
};

struct pem_event_set {
	struct pem_session *session;
	const struct pem_predicate **predicates; /* one for each event; NULL: none */
	/*
	 * enum pem_level: the set's patterns cover every stub event up to this level, also events
	 * that the session does not know yet; 0: they cover none.
	 */
	uint8_t any_level;
	size_t count;
	const struct pem_event *events[];
};

/* Does the kernel raise the event: at a tracepoint, at a probe, or in a sampler of pem.ko? */
static inline bool pem_event__is_of_kernel(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_TRACEPOINT ||
	       event->source_kind == PEM_SOURCE_MODULE || event->source_kind == PEM_SOURCE_USDT ||
	       event->source_kind == PEM_SOURCE_PROBE || event->source_kind == PEM_SOURCE_UPROBE;
}

/*
 * Return the first demand for an event of the session's model, made if need be. NULL: out of
 * memory, or there are PEM_DEMANDS_MAX demands. The pointer stays valid.
 */
struct pem_demand *pem_session__demand(struct pem_session *session, const struct pem_event *event);

/*
 * Return a further demand for the event of a first one. NULL: all PEM_FURTHER_CELLS are in use, or
 * out of memory.
 */
struct pem_demand *pem_session__further_demand(struct pem_session *session,
					       struct pem_demand *first);
/* Let others have a further demand that no handle and no source has any more. */
void pem_demand__remove_further(struct pem_demand *demand);

/* Return the asynchronous callbacks that are enabled in any demand of an event, a bit for each. */
uint64_t pem_demand__async(const struct pem_demand *first);
/* Return the log's demand of an event's demands; NULL: none. */
struct pem_demand *pem_demand__of_log(struct pem_demand *first);

/*
 * Return the demand of an event that an instance of a source serves; the first where there is none.
 * A record of a source is for the demand of the instance that delivers it.
 */
struct pem_demand *pem_demand__of_instance(struct pem_demand *first, int instance);

/*
 * Is a record for the demand? contexts: bit i, its process is in the session page's context i; tid:
 * of its thread, as the process knows it. Its CPU is not tested.
 */
bool pem_demand__takes(const struct pem_demand *demand, const uint8_t *record, size_t bytes,
		       uint32_t tid, uint64_t contexts);

/* Return the action word for what is enabled now. */
uint64_t pem_demand__action(const struct pem_demand *demand);

/* Does the event tell which process or thread kernel records belong to, or their names? */
bool pem_event__tells_context(const struct pem_event *event);

#endif
