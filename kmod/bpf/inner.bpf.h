/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inner.bpf.h - numbers of threads that are started in inner pid namespaces
 *
 * Included by pem.bpf.c. Not here: who asks for them (pem_source_ops.outer_tid).
 */
#ifndef PEM_INNER_BPF_H
#define PEM_INNER_BPF_H

/* Threads that were started in inner pid namespaces, by their number there. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, struct pem_inner_thread);
	__type(value, struct pem_outer_thread);
	__uint(max_entries, PEM_KINNER_MAX);
} pem_inner_threads SEC(".maps");

/* Keep the number of a thread of an inner pid namespace. It may have ended before anyone asks. */
PEM_INLINE void pem_note_inner(struct task_struct *child)
{
	struct pem_outer_thread outer = {.tid = (uint32_t)child->pid};
	struct pem_inner_thread inner = {0};
	struct pid *pid = child->thread_pid;
	uint32_t level = PEM_HAS(pid) ? pid->level : 0;
	struct upid *innermost;

	if (level == 0 || pem_config.no_reading)
		return;
	/* A pointer that was read is a number to the verifier. */
	innermost = (void *)((uint64_t)BPF_CORE_READ(child, thread_pid) +
			     bpf_core_field_offset(pid->numbers) +
			     level * (uint64_t)bpf_core_type_size(struct upid));
	inner.tid = (uint32_t)BPF_CORE_READ(innermost, nr);
	inner.pid_namespace = BPF_CORE_READ(innermost, ns, ns.inum);
	outer.uid = BPF_CORE_READ(child, real_cred, uid.val);
	outer.start_ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&pem_inner_threads, &inner, &outer, BPF_ANY);
}

#endif
