/* SPDX-License-Identifier: MIT */
/*
 * gate.h - gates: which thread or process is inside an interval now, kept where its events happen
 *
 * A gate belongs to a session. Events of programs open and close it. The library keeps each gate's
 * state in the program's own memory: one word of the process, or one of each thread. It judges the
 * program's own events by these words, and BPF programs read them for the kernel's events. So no
 * system call is needed, and a program can only falsify the counts of programs of its user.
 *
 *	struct pem_gate_states (one for each session index)  struct pem_thread of a thread
 *	+-----------------------------------------+          +----------------------------+
 *	| session_id, tag, closed, of_process     |          | depth, tid                 |
 *	| thread_offset, words_offset     --------|--------->| ... pointer to its words --|--> word
 *	| word[gate], for gates of a process      |          +----------------------------+
 *	+-----------------------------------------+
 *
 * Not here: which events open and close a gate (struct pem_rule), predicates with gates
 * (libpem/predicate.h).
 */
#ifndef PEM_GATE_H
#define PEM_GATE_H

#include <pem/statistic.h>

#define PEM_GATES_MAX 8u /* of a session */

/* The gates of a predicate: those that have to be open, and those that have to be closed. */
#define PEM_GATES(inside, outside) ((uint32_t)(inside) | (uint32_t)(outside) << 16)
#define PEM_GATES_INSIDE(gates) ((gates)&0xffffu)
#define PEM_GATES_OUTSIDE(gates) ((gates) >> 16)

/*
 * PEM_RULE_CELL of a rule, from 65 on, which libraries that know no gates leave alone:
 *
 *	from 65		the further cell of index n - 65, whose statistic has gates. max_level is
 *			PEM_GATES().
 *	from 129	no cell: the event opens gate (n - 129) / 2, or closes it if n is even.
 *			max_level is PEM_GATE_OF_PROCESS and such.
 *
 * In a cell whose statistic has gates, 'produced' counts the events that a gate of unknown state
 * left undecided, and 'discarded' is the PEM_ACTION_TAG() in whose epoch they were.
 */
#define PEM_RULE_GATED_CELLS 65u
#define PEM_RULE_GATE_EVENTS 129u
#define PEM_RULE_CELLS_END (PEM_RULE_GATE_EVENTS + 2 * PEM_GATES_MAX)

/* What a gate is. */
#define PEM_GATE_OF_PROCESS 1u /* else each thread has its own state */
/* as often open as it was opened and not closed; else open or closed */
#define PEM_GATE_COUNTS 2u

/*
 * A process's state of the gates of one session. A word holds the tag in its high half and
 * in its low half how often the gate was opened and not closed. With another tag the thread, or
 * the process, has raised none of the gate's events since the process joined the session; of a gate
 * with PEM_GATE_COUNTS, none that opens it.
 */
struct pem_gate_states {
	uint32_t session_id; /* pem_session_page.id; 0: no session's */
	/* Another each time the process joins a session here. 0: no rule named a gate yet. */
	uint32_t tag;
	/*
	 * Bit g: the gate's events were recorded from the process's start on. So a word with
	 * another tag means closed. Else it means that the state is unknown.
	 */
	uint32_t closed;
	uint32_t of_process; /* bit g: the gate's word is word[g], and not the thread's */
	int64_t thread_offset; /* from the thread pointer to the address of its struct pem_thread */
	/* From there to the address of the words: u64[PEM_SESSIONS_MAX][PEM_GATES_MAX]; 0: none. */
	uint32_t words_offset;
	uint32_t session_index;
	uint64_t word[PEM_GATES_MAX];
	uint8_t reserved[32];
};
PEM_STATIC_ASSERT(sizeof(struct pem_gate_states) == 128, "two cache lines");

#define PEM_GATE_WORD(tag, depth) ((uint64_t)(tag) << 32 | (uint32_t)(depth))

/* Whether an event counts: no, yes, or the state of a gate that decides it is unknown. */
enum pem_gate_verdict { PEM_GATE_REJECTS, PEM_GATE_PASSES, PEM_GATE_UNDECIDED };

/*
 * Judge one gate of a predicate. word is that of the thread or the process. The least verdict of
 * all gates counts, where rejecting comes before undecided.
 */
PEM_INLINE uint32_t pem_gate_judge(const struct pem_gate_states *states, uint32_t gates,
				   uint32_t gate, uint64_t word)
{
	uint32_t bit = 1u << gate, is_open = (uint32_t)word != 0, tag = PEM_LOAD(states->tag);

	if (!tag || word >> 32 != tag) {
		if (!(PEM_LOAD(states->closed) & bit))
			return PEM_GATE_UNDECIDED;
		is_open = 0;
	}
	if ((PEM_GATES_INSIDE(gates) & bit && !is_open) ||
	    (PEM_GATES_OUTSIDE(gates) & bit && is_open))
		return PEM_GATE_REJECTS;
	return PEM_GATE_PASSES;
}

#endif
