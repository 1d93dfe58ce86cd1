/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demand.h - what a session wants of each event
 *
 * A demand is the union of what the session's handles want of one event. Demands become rules in
 * the session page and action words in the producers' control pages (processes/rules.c). For an
 * event of a source they become actions of that source (source_host/sources.c).
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
	bool has_context; /* a handle has set it */
	/* The predicate of the event sets that the handles were made of; NULL: none. */
	const struct pem_predicate *predicate;
	unsigned bound; /* handles that chose the predicate */
	bool log, statistic, callback;
	/* A handle for it is registered, enabled or not. A source opens all that may be wanted. */
	bool want_log, want_statistic, want_async;
	/*
	 * Bit i: asynchronous callback i is enabled and wants the event. Changes under the async
	 * lock, too.
	 */
	uint64_t async;
	/* async was not 0 at some time. From then on not every record in a pool is for the log. */
	bool async_ever;
	/*
	 * Asynchronous callbacks need this kernel event to find the process and thread of other
	 * records.
	 */
	bool async_context;
	bool wake; /* the thread of asynchronous callbacks sleeps */
	/*
	 * Records that an asynchronous callback wanted and that were lost: there was no room for
	 * them, or they were overwritten.
	 */
	uint64_t async_lost;
	/* What the source had discarded when async_lost was last brought up to date. */
	uint64_t source_lost;
	/* Records of a source that were callback-only. */
	uint64_t callback_only;
	uint8_t field;
	uint32_t epoch;
	const struct pem_statistics *statistics; /* the handle that chose field */
	int instance; /* index of the source's instance; -1: none yet, or a stub */
	size_t instance_index;
	uint8_t detail; /* enum pem_detail: the most that the overhead budget allows */
	/* The detail was less than wanted at some time; it was off at some time. */
	bool was_reduced, was_off;
	int unavailable; /* 0, or the -errno of a source that can't deliver it */
	char reason[232]; /* why it is unavailable */
	char source[24]; /* name of the source */
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
	       event->source_kind == PEM_SOURCE_PROBE;
}

/*
 * Return the demand for an event of the session's model, made if need be. NULL: out of memory, or
 * there are PEM_DEMANDS_MAX demands. The pointer stays valid.
 */
struct pem_demand *pem_session__demand(struct pem_session *session, const struct pem_event *event);

/*
 * Set a demand's context, or check that it has this one. Returns 0, or -EBUSY with error when
 * another handle has chosen another context.
 */
int pem_demand__set_context(struct pem_demand *demand, const struct pem_context *context,
			    struct pem_error *error);

/*
 * A handle is gone: after the last one, let the next handle choose another context. The context
 * stays if a source is open, because the source was opened with it.
 */
void pem_demand__release_context(struct pem_demand *demand);

/* Return the action word for what is enabled now. */
uint64_t pem_demand__action(const struct pem_demand *demand);

/* Does the event tell which process or thread kernel records belong to, or their names? */
bool pem_event__tells_context(const struct pem_event *event);

#endif
