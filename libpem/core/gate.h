/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gate.h - the gates of a session: which events open and close them
 *
 * A gate lives from the first handle that uses it until the session closes, so that its state stays
 * known. Not here: the states, which programs keep (pem/gate.h, producer/gates.h), the text
 * (predicate.h).
 */
#ifndef PEM_CORE_GATE_H
#define PEM_CORE_GATE_H

#include <pem/gate.h>
#include <pem/pem.h>

#include <stdbool.h>
#include <stddef.h>

struct pem_expression;
struct pem_session;

#define PEM_GATE_EVENTS_MAX 8u /* that open a gate, or close it: versions of an event, mostly */

struct pem_gate {
	const struct pem_event *open[PEM_GATE_EVENTS_MAX], *close[PEM_GATE_EVENTS_MAX];
	size_t open_count, close_count;
	uint32_t flags; /* PEM_GATE_OF_PROCESS, PEM_GATE_COUNTS */
	bool used; /* a handle has used it: its rules are in the page */
};

struct pem_session_gates {
	struct pem_gate gate[PEM_GATES_MAX];
	uint32_t count;
};

/*
 * Find the gates of an expression for an event, and make those that are new. Sets *gates to
 * PEM_GATES(...), 0 if there are none. Returns 0, or -errno with error: -EINVAL: a name, or an
 * event that can't have gates; -E2BIG: PEM_GATES_MAX; -ENOMEM.
 */
int pem_session__find_gates(struct pem_session *session, const struct pem_event *event,
			    const struct pem_expression *expression, uint32_t *gates,
			    struct pem_error *error);
/*
 * A handle uses these gates: from the next publishing of rules on, programs keep them. Returns 0,
 * or -errno with error.
 */
int pem_session__use_gates(struct pem_session *session, uint32_t gates, struct pem_error *error);
/* Does the event open or close a gate that handles use? */
bool pem_session__gates_use(const struct pem_session *session, const struct pem_event *event);
/* The gates that handles use, or used: bit g. */
uint32_t pem_session__used_gates(const struct pem_session *session);

#endif
