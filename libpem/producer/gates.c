/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gates.c - the state of gates: opened and closed by events, judged for other events
 *
 * A word is changed by compare-and-swap, since a signal handler's event may open a gate in the
 * middle of another event that does, and since threads share the words of a process.
 */
#include "producer/gates.h"
#include "producer/producer.h"

#include <stddef.h>

struct pem_gate_states pem_process_gates[PEM_SESSIONS_MAX] __attribute__((aligned(64)));

/* What the process knows of the gates of a session. Untouched in a session without gates. */
static struct {
	uint32_t known; /* bit g: rules of the gate have been applied. Under the process lock. */
	uint32_t counts; /* bit g: PEM_GATE_COUNTS. GU publishes it. */
	uint16_t uses[PEM_PROCESS_EVENTS_MAX]; /* by event index: opened gates, closed gates << 8 */
} sessions[PEM_SESSIONS_MAX];

static uint32_t last_tag; /* under the process lock */

static uint32_t new_tag(void)
{
	last_tag += !(last_tag + 1) ? 2 : 1;
	return last_tag;
}

static int64_t thread_offset(void)
{
	uint8_t *thread_pointer;

#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(thread_pointer));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(thread_pointer));
#endif
	return (uint8_t *)&pem_thread_current - thread_pointer;
}

/* BPF programs read the states at any time: while they change, they are no session's. */
static void fill_states(unsigned session_index, uint32_t session_id, uint32_t closed)
{
	struct pem_gate_states *states = &pem_process_gates[session_index];

	/* none: BPF programs read it on this CPU, or at any other time */
	__atomic_store_n(&states->session_id, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&states->closed, closed, __ATOMIC_RELAXED);
	states->thread_offset = thread_offset();
	states->words_offset = offsetof(struct pem_thread_full, gates);
	states->session_index = session_index;
	/* GT */
	__atomic_store_n(&states->tag, new_tag(), __ATOMIC_RELEASE);
	/* none: as above */
	__atomic_store_n(&states->session_id, session_id, __ATOMIC_SEQ_CST);
}

void pem_gates__begin(unsigned session_index)
{
	struct pem_gate_states *states = &pem_process_gates[session_index];
	struct pem_joined *joined = &pem_process.joined[session_index];
	uint32_t i;

	if (!joined->has_gates)
		return;
	__atomic_store_n(&joined->has_gates, false, __ATOMIC_RELAXED);
	/* none: BPF programs read it on this CPU, or at any other time */
	__atomic_store_n(&states->session_id, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&states->closed, 0, __ATOMIC_RELAXED);
	/* GT */
	__atomic_store_n(&states->tag, 0, __ATOMIC_RELEASE);
	for (i = 0; i < PEM_PROCESS_EVENTS_MAX; i++)
		__atomic_store_n(&sessions[session_index].uses[i], 0, __ATOMIC_RELAXED);
	sessions[session_index].known = 0;
	__atomic_store_n(&states->of_process, 0, __ATOMIC_RELAXED);
}

void pem_gates__inherit(unsigned session_index)
{
	if (pem_process.joined[session_index].has_gates)
		fill_states(session_index, pem_process_gates[session_index].session_id,
			    sessions[session_index].known |
				    pem_process_gates[session_index].closed);
}

static uint32_t named(uint32_t gates)
{
	return (PEM_GATES_INSIDE(gates) | PEM_GATES_OUTSIDE(gates)) & 0xff;
}

/*
 * Rules that name gates (bit g: gate g) are applied: those of its events, or of statistics that it
 * decides. A program that lacks a gate's events has only the second.
 */
static void begin_gates(unsigned session_index, uint32_t gates, bool started)
{
	struct pem_gate_states *states = &pem_process_gates[session_index];
	struct pem_joined *joined = &pem_process.joined[session_index];
	uint32_t recorded = joined->first_gates;

	if (!joined->has_gates)
		fill_states(session_index, joined->page->id, 0);
	__atomic_store_n(&joined->has_gates, true, __ATOMIC_RELAXED);
	/* The session's own process may be older than its command. */
	if (started && joined->page->consumer_pid != pem_process.pid)
		recorded |= __atomic_load_n(&joined->page->gates_at_start, __ATOMIC_RELAXED);
	__atomic_fetch_or(&states->closed, recorded & gates, __ATOMIC_RELAXED);
}

/* A gate's rule is applied for the first time. */
static void begin_gate(unsigned session_index, uint32_t gate, uint32_t flags, bool started)
{
	uint32_t bit = 1u << gate, counts = sessions[session_index].counts & ~bit;

	begin_gates(session_index, bit, started);
	if (sessions[session_index].known & bit)
		return;
	sessions[session_index].known |= bit;
	/* In one store: other threads read the bits of other gates meanwhile. */
	__atomic_store_n(&sessions[session_index].counts,
			 counts | (flags & PEM_GATE_COUNTS ? bit : 0), __ATOMIC_RELAXED);
	if (flags & PEM_GATE_OF_PROCESS)
		__atomic_fetch_or(&pem_process_gates[session_index].of_process, bit,
				  __ATOMIC_RELAXED);
}

void pem_gates__apply(unsigned session_index, uint32_t event_index,
		      const struct pem_rule *const *rules, uint32_t count, bool started)
{
	uint16_t uses = 0;
	uint32_t i, use;

	for (i = 0; i < count; i++) {
		use = PEM_RULE_CELL(rules[i]->flags);
		if (use >= PEM_RULE_GATED_CELLS && use < PEM_RULE_GATE_EVENTS)
			begin_gates(session_index, named(rules[i]->max_level), started);
		if (use < PEM_RULE_GATE_EVENTS || use >= PEM_RULE_CELLS_END)
			continue;
		use -= PEM_RULE_GATE_EVENTS;
		begin_gate(session_index, use / 2, rules[i]->max_level, started);
		uses |= (uint16_t)(1u << (use / 2 + (use & 1 ? 8 : 0)));
	}
	/* GU: the tag and what the gates are come before their uses */
	if (pem_process.joined[session_index].has_gates)
		__atomic_store_n(&sessions[session_index].uses[event_index], uses,
				 __ATOMIC_RELEASE);
}

/*
 * An event gets here by an action with PEM_ACTION_MORE, which was released after has_gates was set
 * (uf in notify.c).
 *
 * The incarnation is loaded last. If the tag is already that of a later session, so is the
 * incarnation. A word with an earlier tag means nothing to a later session.
 */
struct pem_gate_use pem_gates__of(unsigned session_index, uint32_t event_index,
				  uint32_t incarnation)
{
	struct pem_gate_use use, none = {0, 0};

	if (!__atomic_load_n(&pem_process.joined[session_index].has_gates, __ATOMIC_RELAXED))
		return none;
	/* gu */
	use.uses = __atomic_load_n(&sessions[session_index].uses[event_index], __ATOMIC_ACQUIRE);
	if (!use.uses)
		return none;
	/* gt */
	use.tag = __atomic_load_n(&pem_process_gates[session_index].tag, __ATOMIC_ACQUIRE);
	/* jc */
	return __atomic_load_n(&pem_process.joined[session_index].incarnation, __ATOMIC_ACQUIRE) ==
			       incarnation
		       ? use
		       : none;
}

/*
 * While it is unknown how often a gate was opened, a closing event leaves it unknown. An opening
 * one makes it known: what was open before counts no more.
 */
static void change(uint64_t *at, uint32_t tag, bool opens, bool counts)
{
	uint64_t word = __atomic_load_n(at, __ATOMIC_RELAXED);
	uint32_t depth;

	do {
		if ((int32_t)((uint32_t)(word >> 32) - tag) > 0 && word >> 32)
			return; /* a later session's */
		if (counts && !opens && word >> 32 != tag)
			return;
		depth = word >> 32 == tag ? (uint32_t)word : 0;
		if (opens)
			depth = counts && depth < UINT32_MAX ? depth + 1 : 1;
		else
			depth = counts && depth ? depth - 1 : 0;
	} while (!__atomic_compare_exchange_n(at, &word, PEM_GATE_WORD(tag, depth), 0,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

/* The word that an event of the thread changes. NULL: it can't be kept. */
static uint64_t *word_of(unsigned session_index, struct pem_thread_full *thread, uint32_t gate)
{
	if (__atomic_load_n(&pem_process_gates[session_index].of_process, __ATOMIC_RELAXED) >>
		    gate &
	    1)
		return &pem_process_gates[session_index].word[gate];
	if (!thread)
		return NULL;
	if (!thread->gates) {
		/*
		 * The first write makes the page's memory. A page fault that is judged in its
		 * middle finds that the thread has no words yet. A signal handler may have opened
		 * the gate since, so the value stays.
		 */
		__atomic_fetch_or(&(*thread->gate_memory)[session_index][gate], 0,
				  __ATOMIC_RELAXED);
		PEM_BARRIER();
		thread->gates = thread->gate_memory;
	}
	return &(*thread->gates)[session_index][gate];
}

static bool change_all(unsigned session_index, struct pem_thread_full *thread, uint32_t gates,
		       uint32_t tag, bool opens)
{
	bool all = true;
	uint64_t *word;
	uint32_t gate;

	for (; gates; gates &= gates - 1) {
		gate = (uint32_t)__builtin_ctz(gates);
		word = word_of(session_index, thread, gate);
		if (word)
			change(word, tag, opens,
			       __atomic_load_n(&sessions[session_index].counts, __ATOMIC_RELAXED) >>
					       gate &
				       1);
		all &= word != NULL;
	}
	return all;
}

bool pem_gates__change(unsigned session_index, struct pem_thread_full *thread,
		       struct pem_gate_use use)
{
	bool closed = change_all(session_index, thread, use.uses >> 8, use.tag, false);

	return change_all(session_index, thread, use.uses & 0xff, use.tag, true) && closed;
}

/*
 * The part that named the gates was released after their tag and what they are, and acquired before
 * this (uf in notify.c). So loads need no order of their own.
 */
enum pem_gate_verdict pem_gates__judge(unsigned session_index, const struct pem_thread_full *thread,
				       uint32_t gates)
{
	const struct pem_gate_states *states = &pem_process_gates[session_index];
	uint32_t left = named(gates), gate, verdict;
	uint32_t of_process = __atomic_load_n(&states->of_process, __ATOMIC_RELAXED);
	bool is_decided = true;
	uint64_t word;

	for (; left; left &= left - 1) {
		gate = (uint32_t)__builtin_ctz(left);
		word = 0;
		if (of_process >> gate & 1)
			word = __atomic_load_n(&states->word[gate], __ATOMIC_RELAXED);
		else if (thread && thread->gates)
			word = __atomic_load_n(&(*thread->gates)[session_index][gate],
					       __ATOMIC_RELAXED);
		verdict = pem_gate_judge(states, gates, gate, word);
		if (verdict == PEM_GATE_REJECTS)
			return PEM_GATE_REJECTS;
		is_decided &= verdict == PEM_GATE_PASSES;
	}
	return is_decided ? PEM_GATE_PASSES : PEM_GATE_UNDECIDED;
}
