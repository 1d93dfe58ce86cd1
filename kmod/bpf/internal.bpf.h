/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * internal.bpf.h - is a system call pem's own? pem/internal.h says how it is told
 *
 * Part of pem.bpf.c, which includes it. A call of the program's own costs a test of two registers
 * and a load, unless the loader of some process is mapping pem's libraries.
 */
#ifndef PEM_INTERNAL_BPF_H
#define PEM_INTERNAL_BPF_H

/* By process id: processes that start with pem's libraries, until pem's first call there. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct pem_start));
	__uint(max_entries, 8192);
} pem_starts SEC(".maps");

/* The number of the call that these registers are of. */
PEM_INLINE uint64_t pem_call_number(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return regs->regs[8];
#endif
}

PEM_INLINE bool pem_is_marked(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return (regs->bx ^ regs->ip) == PEM_INTERNAL_CALL;
#else
	return (regs->regs[15] ^ regs->pc) == PEM_INTERNAL_CALL;
#endif
}

PEM_INLINE void pem_forget_start(uint32_t pid)
{
	if (!bpf_map_delete_elem(&pem_starts, &pid))
		/* none: a count of entries, which any program may read late */
		__sync_fetch_and_sub(&pem_control.starting, 1);
}

/* A path, of the call that this CPU is in. */
struct pem_path_words {
	uint64_t word[PEM_LIBRARY_PATH_BYTES / 8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct pem_path_words));
	__uint(max_entries, 1);
} pem_loader_path SEC(".maps");

static const char pem_user_text[] SEC(".rodata.texts") = "%pus";

/*
 * Where a kernel is locked down, libbpf believes that it has no helper to read a program's memory,
 * and replaces the call by one that is forbidden. The helper that formats text reads such memory as
 * well. It exists since 5.13. NULL: the path can't be read.
 */
PEM_INLINE const struct pem_path_words *pem_path_formatted(uint64_t at)
{
	__u64 pointer = at;
	uint32_t zero = 0;
	struct pem_path_words *path = bpf_map_lookup_elem(&pem_loader_path, &zero);

	if (!path || bpf_snprintf((char *)path, sizeof(*path), pem_user_text, &pointer,
				  sizeof(pointer)) <= 0)
		return NULL;
	return path;
}

/* Does the path at this address begin as those of pem's libraries? */
PEM_INLINE bool pem_is_library_path(uint64_t at)
{
	uint64_t bytes = pem_config.library_path_bytes, i, word, mask;
	const struct pem_path_words *path = NULL;

	if (!bytes)
		return false;
	if (pem_config.no_reading) {
		path = pem_path_formatted(at);
		if (!path)
			return false;
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < PEM_LIBRARY_PATH_BYTES / 8 && i * 8 < bytes; i++) {
		if (path)
			word = path->word[i];
		else if (bpf_probe_read_user(&word, sizeof(word), (void *)(at + i * 8)))
			return false;
		mask = bytes - i * 8 < 8 ? (1ull << (bytes - i * 8) * 8) - 1 : ~0ull;
		if ((word ^ pem_config.library_path[i]) & mask)
			return false;
	}
	return true;
}

/*
 * Is this call one of a loader for pem's libraries? A global function: pem_add_distribution() says
 * why.
 */
__attribute__((noinline)) int pem_is_loaders(uint64_t number, uint64_t a, uint64_t b, uint64_t e)
{
	const uint64_t argument[5] = {a, b, 0, 0, e};
	uint32_t pid = bpf_get_current_pid_tgid() >> 32;
	struct pem_start begun = {0};
	struct pem_start *start = bpf_map_lookup_elem(&pem_starts, &pid);

	PEM_STORE(begun.state, PEM_START_LOADS);
	if (number == pem_config.start_calls.openat && pem_is_library_path(b)) {
		if (start)
			start->state = PEM_START_LOADS;
		else if (!bpf_map_update_elem(&pem_starts, &pid, &begun, BPF_NOEXIST))
			__sync_fetch_and_add(&pem_control.starting, 1);
		return 1;
	}
	if (start && number == pem_config.start_calls.execve) {
		pem_forget_start(pid);
		return 0;
	}
	return start && pem_start_owns(start, &pem_config.start_calls, number, argument);
}

/*
 * Is the call that begins or ends with these registers pem's own? begins: it is counted, once for
 * each call.
 */
PEM_INLINE bool pem_is_internal(struct pem_kevent *e, struct pt_regs *regs, bool begins)
{
	uint64_t number = pem_call_number(regs);
	bool is_marked = pem_is_marked(regs);

	if (!is_marked &&
	    !(PEM_LOAD(pem_control.starting) || number == pem_config.start_calls.openat))
		return false;
	if (is_marked && PEM_LOAD(pem_control.starting))
		pem_forget_start(bpf_get_current_pid_tgid() >> 32);
	if (!is_marked && !pem_is_loaders(number, PT_REGS_PARM1_SYSCALL(regs),
					  PT_REGS_PARM2_SYSCALL(regs), PT_REGS_PARM5_SYSCALL(regs)))
		return false;
	if (begins)
		pem_count(e, &e->ring->internal_calls);
	return true;
}

#endif
