/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * others.bpf.h - events that need not be of the thread that runs, such as who is woken
 *
 * Part of pem.bpf.c, which includes it.
 */
#ifndef PEM_OTHERS_BPF_H
#define PEM_OTHERS_BPF_H

/*
 * As pem_begin(), for an interval of scope 'system'. Such an interval begins or ends in any
 * process, so the target is not tested.
 */
__attribute__((unused)) PEM_INLINE bool pem_begin_system(struct pem_kevent *e, uint32_t index)
{
	return pem_begin_action(e, index,
				PEM_LOAD(pem_control.action[index]) & ~(uint64_t)PEM_KACTION_TREE);
}

/*
 * As pem_begin(), for an event of a thread that need not be the one that runs: who is woken is
 * observed whoever wakes. If the thread that runs is not observed, the record belongs to no thread.
 */
__attribute__((unused)) PEM_INLINE bool pem_begin_of(struct pem_kevent *e, uint32_t index,
						     struct task_struct *task)
{
	const struct pem_kfilter *filter = &pem_control.filter[index];
	uint64_t thread;

	e->action = PEM_LOAD(pem_control.action[index]);
	if (e->action == 0)
		return false;
	e->ring = pem_ring_here();
	if (!e->ring)
		return false;
	e->of = task->tgid;
	if (e->action & PEM_KACTION_TREE && !pem_is_target(e->of))
		return false;
	if (e->action & PEM_ACTION_FILTER &&
	    !(pem_filter_cpu(filter) && pem_filter_task(filter, e->of, task->pid)))
		return false;
	e->flags = PEM_ACTION_FLAGS(e->action);
	e->index = index;
	e->cell = &e->ring->cells[index];
	e->shared = 0;
	e->thread = 0;
	if (!(e->action & PEM_ACTION_LOG))
		return true; /* only records have a thread */
	thread = bpf_get_current_pid_tgid();
	if (!(e->action & PEM_KACTION_TREE) || pem_context_in(e->ring, thread >> 32))
		e->thread = thread;
	return true;
}

/* PF_KTHREAD and PF_EXITING in the kernel's sched.h */
#define PEM_TASK_KERNEL 0x00200000u
#define PEM_TASK_ENDS 0x00000004u

/*
 * For fields of role 'interrupt': is the running thread interrupted, so that it does not raise the
 * event itself? 0: no, 1: yes, 255: unknown. The context of a program lies on the stack in use, and
 * the thread's registers at the top of its own. Interrupts have another stack, but on x86 one that
 * comes in user mode stays on the thread's. The thread's registers then have no number of a system
 * call, as those of a thread that has a page fault.
 */
__attribute__((unused)) PEM_INLINE uint8_t pem_interrupted(struct pem_kevent *e, uint32_t index,
							   unsigned long long *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	uint64_t at = pem_number_of(e, index, (uint64_t)ctx);
	uint64_t top = pem_number_of(e, index, (uint64_t)regs);
	uint64_t stack = (uint64_t)task->stack;

	/* The idle thread itself wakes no thread. */
	if (at - stack >= top - stack || task->pid == 0)
		return 1;
#if defined(__TARGET_ARCH_x86)
	/* Threads of the kernel have no call. One that ends may have been in none. */
	if (!(task->flags & (PEM_TASK_KERNEL | PEM_TASK_ENDS)) && (int64_t)regs->orig_ax < 0)
		return PEM_INTERRUPT_UNKNOWN;
#endif
	return 0;
}
#define pem_interrupt() pem_interrupted(&pem_e, pem_e.index, pem_ctx)

#endif
