/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gates.bpf.h - is the thread or process inside an interval now? Read from the program's own memory
 *
 * pem/gate.h describes that memory. It is the program's, so it may hold anything: each read may
 * fail, and the worst that a program can do is to falsify the counts of programs of its user. What
 * can't be read is unknown, and the event counts as undecided.
 */
#ifndef PEM_GATES_BPF_H
#define PEM_GATES_BPF_H

#include <pem/gate.h>

/*
 * By process id: the address of its struct pem_gate_states for this session. Only files of the
 * process's own user tell it, and only while the process lives (members.c). A process that has
 * ended, or has executed another program, leaves its entry, whose memory then has another session's
 * id.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(key_size, 4);
	__uint(value_size, 8);
	__uint(max_entries, 1);
} pem_gate_memory SEC(".maps");

/* The value of the running thread's thread pointer. */
PEM_INLINE uint64_t pem_thread_pointer(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#else
	return BPF_CORE_READ(task, thread.uw.tp_value);
#endif
}

/*
 * Find the words of the running thread. 0: it has changed none. Returns false if that can't be
 * read.
 */
PEM_INLINE bool pem_thread_words(const struct pem_gate_states *states, uint64_t *words)
{
	uint64_t self, at = pem_thread_pointer() + states->thread_offset;
	uint32_t head[2]; /* the first members of struct pem_thread: depth, tid */

	*words = 0;
	if (bpf_probe_read_user(&self, sizeof(self), (void *)at) ||
	    bpf_probe_read_user(head, sizeof(head), (void *)self))
		return false;
	if (!head[1]) /* the state that all threads share which have none of their own */
		return true;
	if (bpf_probe_read_user(words, sizeof(*words), (void *)(self + states->words_offset)))
		return false;
	if (*words)
		*words += (uint64_t)states->session_index * PEM_GATES_MAX * sizeof(uint64_t);
	return true;
}

/*
 * Judge gates for an event of the running thread. A global function, as pem_add_distribution() is:
 * the verifier walks it once.
 */
__attribute__((noinline)) int pem_judge_gates(uint32_t gates)
{
	uint32_t pid = bpf_get_current_pid_tgid() >> 32, gate, verdict, result = PEM_GATE_PASSES;
	uint32_t named = PEM_GATES_INSIDE(gates) | PEM_GATES_OUTSIDE(gates);
	struct pem_gate_states states;
	uint64_t *at, words = 0, word;

	if (!pem_config.has_gates) /* a constant: no other program pays for the rest */
		return PEM_GATE_UNDECIDED;
	at = bpf_map_lookup_elem(&pem_gate_memory, &pid);
	if (!at || bpf_probe_read_user(&states, sizeof(states), (void *)*at) ||
	    states.session_id != pem_config.session_id)
		return PEM_GATE_UNDECIDED;
	if (named & ~states.of_process && !pem_thread_words(&states, &words))
		return PEM_GATE_UNDECIDED;
	for (gate = 0; gate < PEM_GATES_MAX; gate++) {
		if (!(named >> gate & 1))
			continue;
		word = states.of_process >> gate & 1 ? states.word[gate] : 0;
		verdict = PEM_GATE_PASSES;
		if (!(states.of_process >> gate & 1) && words &&
		    bpf_probe_read_user(&word, sizeof(word), (void *)(words + 8 * gate)))
			verdict = PEM_GATE_UNDECIDED;
		else
			verdict = pem_gate_judge(&states, gates, gate, word);
		if (verdict == PEM_GATE_REJECTS)
			return PEM_GATE_REJECTS;
		if (verdict == PEM_GATE_UNDECIDED)
			result = PEM_GATE_UNDECIDED;
	}
	return result;
}

/* Do the gates let an event count? If that is unknown, it is counted as such, see struct pem_cell.
 */
__attribute__((unused)) PEM_INLINE bool pem_gates_pass(struct pem_kevent *e, uint32_t index)
{
	uint64_t tag = PEM_ACTION_TAG(e->action);
	int verdict = pem_judge_gates(pem_config.gates[index]);

	if (verdict != PEM_GATE_UNDECIDED)
		return verdict == PEM_GATE_PASSES;
	if (e->cell->discarded != tag) {
		PEM_STORE(e->cell->produced, 0);
		/* SE */
		PEM_RELEASE(e->cell->discarded, tag);
	}
	PEM_STORE(e->cell->produced, e->cell->produced + 1);
	return false;
}

#endif
