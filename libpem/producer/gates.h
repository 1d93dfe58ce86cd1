/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gates.h - the gates of this process's sessions: their state, opened and closed by events
 *
 * pem/gate.h has the layout, which BPF programs read. Everything here is async-signal-safe; what
 * changes rules needs the process lock.
 */
#ifndef PEM_PRODUCER_GATES_H
#define PEM_PRODUCER_GATES_H

#include <pem/gate.h>

#include <stdbool.h>
#include <stdint.h>

struct pem_joined;
struct pem_rule;
struct pem_thread_full;

extern struct pem_gate_states pem_process_gates[PEM_SESSIONS_MAX];

/* The words of a thread. */
typedef uint64_t pem_gate_words[PEM_SESSIONS_MAX][PEM_GATES_MAX];

/*
 * The entry has become another session's, or nobody's. Lock held. To be called after
 * joined->incarnation has changed: see pem_gates__of.
 */
void pem_gates__begin(unsigned session_index);
/*
 * In a child of fork: it is outside of all that its parent was in. Events of all gates that the
 * parent knew are recorded from the child's start on. Lock held.
 */
void pem_gates__inherit(unsigned session_index);
/*
 * Note which gates an event opens and closes by its rules in a session. started: the process was
 * started in the session. Lock held.
 */
void pem_gates__apply(unsigned session_index, uint32_t event_index,
		      const struct pem_rule *const *rules, uint32_t count, bool started);

/* Which gates an event opens (bits 0-7) and closes (bits 8-15), and the tag to do it with. */
struct pem_gate_use {
	uint32_t uses, tag;
};
/* incarnation: of the event's action. None is used if the entry is another session's by now. */
struct pem_gate_use pem_gates__of(unsigned session_index, uint32_t event_index,
				  uint32_t incarnation);
/*
 * Open and close the gates that an event opens and closes. To be called after the event is
 * delivered: what the library does for it, such as page faults of its own, comes before the event
 * in a trace. Returns false if the thread's state can't be kept, because it has no structure.
 */
bool pem_gates__change(unsigned session_index, struct pem_thread_full *thread,
		       struct pem_gate_use use);

/* Judge the gates of a predicate, PEM_GATES(...), for an event of the thread. */
enum pem_gate_verdict pem_gates__judge(unsigned session_index, const struct pem_thread_full *thread,
				       uint32_t gates);

#endif
