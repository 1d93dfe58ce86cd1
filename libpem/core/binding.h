/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * binding.h - predicates of event sets, and the demands that are bound to them
 *
 * Not here: the meaning of predicates (predicate.h), evaluating them (pem/predicate.h).
 */
#ifndef PEM_WHERE_H
#define PEM_WHERE_H

#include "core/gate.h"

#include <pem/pem.h>
#include <pem/trace.h>

struct pem_event_set;
struct pem_session;

struct pem_demand;

/*
 * A predicate as a user wrote it, compiled for one event. It lives as long as the session. Equal
 * predicates share one struct.
 */
struct pem_predicate {
	struct pem_predicate *next;
	char *text;
	struct pem_named_gates gates; /* The producer alone tests them. */
	uint32_t test_count;
	struct pem_test test[];
};

/*
 * Return the session's own copy of a predicate, made if need be. gates NULL: none. NULL: out of
 * memory.
 */
const struct pem_predicate *pem_session__intern_predicate(struct pem_session *session,
							  const char *text,
							  const struct pem_test *test,
							  uint32_t count,
							  const struct pem_named_gates *gates);
/* PEM_GATES() of a predicate that a handle uses. 0: it has none, or there is no predicate. */
uint32_t pem_predicate__gates(const struct pem_predicate *predicate);

/*
 * Is there a session, and is the set one of its sets? Returns 0, or -EINVAL with error.
 */
int pem_event_set__check(const struct pem_session *session, const struct pem_event_set *set,
			 struct pem_error *error);

/* What a handle wants of an event. */
enum pem_use { PEM_USE_STATISTIC, PEM_USE_RECORDS, PEM_USE_CALLBACK };

/*
 * Bind a handle to an event: to a demand that has the context and the predicate, or to a new one.
 * predicate NULL: the event has none. Returns 0, or -errno with error. -EBUSY: another handle takes
 * the event's records in a way that rules this one out; -ENOSPC: the session has too many further
 * demands; -ENOMEM. Each successful bind needs one pem_demand__unbind, after the handle has taken
 * back what it set in the demand.
 */
int pem_session__bind_event(struct pem_session *session, const struct pem_event *event,
			    const struct pem_predicate *predicate,
			    const struct pem_context *context, enum pem_use use,
			    struct pem_demand **demand, struct pem_error *error);
/*
 * Bind a handle to event i of a set, with the set's predicate for it. A log that takes the event by
 * its level is bound to it first (pem_session_hooks.handle_comes). Else as the function above.
 */
int pem_session__bind(struct pem_session *session, const struct pem_event_set *set, size_t i,
		      const struct pem_context *context, enum pem_use use,
		      struct pem_demand **demand, struct pem_error *error);
/* What the handle set in the demand it has taken back. */
void pem_demand__unbind(struct pem_demand *demand);
/*
 * Note in the trace's info that the event is recorded only where the demand's predicate holds. Does
 * nothing if the demand has no predicate.
 */
void pem_demand__note_predicate(const struct pem_demand *demand, struct pem_trace_info *info);
void pem_session__forget_predicates(struct pem_session *session);

#endif
