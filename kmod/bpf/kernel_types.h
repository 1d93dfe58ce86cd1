/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel_types.h - the few members of kernel structures that specs name, relocated at load time (CO-RE)
 *
 * Not a description of these structures: libbpf finds where each member lies in the running kernel. A spec
 * whose `from` names another member adds it here.
 */
#ifndef PEM_KERNEL_TYPES_H
#define PEM_KERNEL_TYPES_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live; /* threads that have not ended */
};

struct thread_info {
	unsigned int cpu;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int exit_code;
	int prio;
	pid_t pid;
	pid_t tgid;
	struct task_struct *real_parent;
	struct signal_struct *signal;
	char comm[16];
};

struct linux_binprm {
	const char *filename;
	const char *interp;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8;
	unsigned long ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	unsigned long long regs[31];
	unsigned long long sp;
	unsigned long long pc;
	unsigned long long pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			unsigned long long regs[31];
			unsigned long long sp;
			unsigned long long pc;
			unsigned long long pstate;
		};
	};
	unsigned long long orig_x0;
};
#endif

#pragma clang attribute pop

#endif
