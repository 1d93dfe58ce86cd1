/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - how kernels differ, and how the module differs from BPF: the only file that asks for a
 * kernel's version
 */
#ifndef PEM_KMOD_COMPAT_H
#define PEM_KMOD_COMPAT_H

#include <linux/kconfig.h>
#include <linux/mm.h>
#include <linux/page_idle.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched/coredump.h>
#include <linux/version.h>

/* A spec's kernel='5.18-6.7': from the first release of the one to the last of the other. */
#define PEM_KERNEL_FROM(major, minor) (LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0))
#define PEM_KERNEL_UNTIL(major, minor) (LINUX_VERSION_CODE < KERNEL_VERSION(major, (minor) + 1, 0))

/*
 * A probe stays on its CPU. Tracepoints call probes with preemption off, but for those of system
 * calls, since 6.13.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define pem_pin() preempt_disable_notrace()
#define pem_unpin() preempt_enable_notrace()
#else
#define pem_pin() ((void)0)
#define pem_unpin() ((void)0)
#endif

/* A mapping's flags may not be stored to since 6.3. */
static inline void pem_vm_flags(struct vm_area_struct *vma, unsigned long set, unsigned long clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/*
 * Take an entry's accessed bit and clear it, in the kernel's own way: on x86 its function is not
 * exported, and is this instruction. The table's lock is held.
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
 * Reclaim takes it for a set accessed bit, if the kernel was built to (CONFIG_PAGE_IDLE_FLAG); else
 * this does nothing.
 */
static inline void pem_mark_young(struct page *page)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
	folio_set_young(page_folio(page));
#else
	set_page_young(compound_head(page));
#endif
}

/* May others of its user look into this memory? */
static inline bool pem_is_dumpable(struct mm_struct *mm)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return __mm_flags_get_dumpable(mm) == SUID_DUMP_USER;
#else
	return __get_dumpable(mm->flags) == SUID_DUMP_USER;
#endif
}

/* What specs call registers by are libbpf's names. */
#define PT_REGS_IP(regs) instruction_pointer(regs)
#if defined(CONFIG_X86_64)
#define PT_REGS_PARM1_SYSCALL(regs) ((regs)->di)
#elif defined(CONFIG_ARM64)
#define PT_REGS_PARM1_SYSCALL(regs) ((regs)->orig_x0)
#endif

#endif
