/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gate.h - the gates of a session: which events open and close them
 *
 * Predicates name gates. A gate takes one of the session's numbers with the first handle that uses
 * it, and keeps it until the session closes, so that its state stays known. Not here: the states,
 * which programs keep (pem/gate.h, producer/gates.h), the text (predicate.h).
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
	int number; /* of the session's gates; -1: no handle has used it */
	struct pem_gate *next;
};

struct pem_session_gates {
	struct pem_gate *known; /* all that predicates named */
	const struct pem_gate *gate[PEM_GATES_MAX]; /* those that handles used, by their number */
	uint32_t count;
};

/* The gates of a predicate, in the order of its text. */
struct pem_named_gates {
	struct pem_gate *gate[PEM_GATES_MAX];
	uint32_t count;
	uint32_t negated; /* bit i: gate[i] has to be closed */
};

/*
 * Find the gates of an expression for an event, and make those that are new. Returns 0, or -errno
 * with error: -EINVAL: a name; -ENOTSUP: an event that can't have gates; -ENOMEM.
 */
int pem_session__find_gates(struct pem_session *session, const struct pem_event *event,
			    const struct pem_expression *expression, struct pem_named_gates *gates,
			    struct pem_error *error);
/*
 * A handle uses these gates: from the next publishing of rules on, programs keep them. Returns 0,
 * or -errno with error, and then none of them takes a number: -E2BIG: PEM_GATES_MAX.
 */
int pem_session__use_gates(struct pem_session *session, const struct pem_named_gates *gates,
			   struct pem_error *error);
/* PEM_GATES() of gates that a handle uses. */
uint32_t pem_gates__mask(const struct pem_named_gates *gates);
void pem_session__forget_gates(struct pem_session *session);
/* Does the event open or close a gate that handles use? */
bool pem_session__gates_use(const struct pem_session *session, const struct pem_event *event);
/* How many gates handles use, or used. */
uint32_t pem_session__used_gates(const struct pem_session *session);

#endif
