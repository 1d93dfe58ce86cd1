/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat_pages.h - what accessed.c needs of the kernel's memory management, which kernels have in
 * different forms
 *
 * tries.c finds out which form this kernel has.
 */
#ifndef PEM_KMOD_COMPAT_PAGES_H
#define PEM_KMOD_COMPAT_PAGES_H

#include "pem_kmod_tried.h"

#include <linux/mm.h>
#include <linux/page_idle.h>
#include <linux/rcupdate.h>
#include <linux/sched/coredump.h>
#include <linux/user_namespace.h>

#if PEM_KMOD_HAS_exec_state
#include <linux/sched/exec_state.h>
#endif

/*
 * Read and clear the accessed bit of an entry, as the kernel does. On x86 the kernel's function is
 * not exported, and it is this one instruction. The caller holds the page table's lock.
 */
static inline bool pem_clear_young_pte(struct vm_area_struct *vma, unsigned long addr, pte_t *pte)
{
#ifdef CONFIG_X86
	return test_and_clear_bit(_PAGE_BIT_ACCESSED, (unsigned long *)&pte->pte);
#else
	return ptep_test_and_clear_young(vma, addr, pte);
#endif
}

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
static inline bool pem_clear_young_pmd(struct vm_area_struct *vma, unsigned long addr, pmd_t *pmd)
{
#ifdef CONFIG_X86
	return test_and_clear_bit(_PAGE_BIT_ACCESSED, (unsigned long *)pmd);
#else
	return pmdp_test_and_clear_young(vma, addr, pmd);
#endif
}
#endif

/*
 * Mark a page young, so that reclaim treats it as if its accessed bit was set. Does nothing if the
 * kernel was built without CONFIG_PAGE_IDLE_FLAG.
 */
static inline void pem_mark_young(struct page *page)
{
#if PEM_KMOD_HAS_folio_young
	folio_set_young(page_folio(page));
#else
	set_page_young(compound_head(page));
#endif
}

/*
 * May other processes of its owner read the memory of this task? A process with CAP_SYS_PTRACE in
 * *user_ns may always. The caller holds rcu_read_lock(), and the task can't exec meanwhile.
 */
static inline bool pem_is_dumpable(struct task_struct *task, struct mm_struct *mm,
				   struct user_namespace **user_ns)
{
#if PEM_KMOD_HAS_exec_state
	const struct task_exec_state *state = rcu_dereference(task->exec_state);

	*user_ns = state ? state->user_ns : &init_user_ns;
	return state && READ_ONCE(state->dumpable) == TASK_DUMPABLE_OWNER;
#elif PEM_KMOD_HAS_mm_flags
	*user_ns = mm->user_ns;
	return __mm_flags_get_dumpable(mm) == SUID_DUMP_USER;
#else
	*user_ns = mm->user_ns;
	return __get_dumpable(mm->flags) == SUID_DUMP_USER;
#endif
}

#endif
