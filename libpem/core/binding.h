/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * binding.h - predicates of event sets, and the demands that are bound to them
 *
 * Not here: what they mean (predicate.h), evaluating them (pem/predicate.h).
 */
#ifndef PEM_WHERE_H
#define PEM_WHERE_H

#include <pem/pem.h>
#include <pem/trace.h>

struct pem_event_set;
struct pem_session;

struct pem_demand;

/* What people wrote, compiled for one event. Stays while the session does; equal ones are one. */
struct pem_predicate {
	struct pem_predicate *next;
	char *text;
	uint32_t test_count;
	struct pem_test test[];
};

/*
 * Bind a handle to event i of a set, with its predicate. 0, or -EBUSY when another handle has
 * chosen another. Each has to be released.
 */
int pem_demand__bind(struct pem_demand *demand, const struct pem_event_set *set, size_t i,
		     struct pem_error *error);
void pem_demand__unbind(struct pem_demand *demand);
/*
 * Where a trace says it: this event is recorded only where the demand's predicate, if it has one,
 * holds.
 */
void pem_demand__note_predicate(const struct pem_demand *demand, struct pem_trace_info *info);
void pem_session__forget_predicates(struct pem_session *session);

#endif
