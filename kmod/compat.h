/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - differences between kernel versions, and between the module and BPF
 *
 * No other file asks for the kernel's version.
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

/* For kernel='5.18-6.7' of a spec: true from release 5.18 on, and up to the last 6.7 release. */
#define PEM_KERNEL_FROM(major, minor) (LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0))
#define PEM_KERNEL_UNTIL(major, minor) (LINUX_VERSION_CODE < KERNEL_VERSION(major, (minor) + 1, 0))

/*
 * Keep a probe on its CPU. Tracepoints call probes with preemption off. Since 6.13 the tracepoints
 * of system calls do not.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define pem_pin() preempt_disable_notrace()
#define pem_unpin() preempt_enable_notrace()
#else
#define pem_pin() ((void)0)
#define pem_unpin() ((void)0)
#endif

/* Change a mapping's flags. Since 6.3 vm_flags can't be stored to directly. */
static inline void pem_vm_flags(struct vm_area_struct *vma, unsigned long set, unsigned long clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

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
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
	folio_set_young(page_folio(page));
#else
	set_page_young(compound_head(page));
#endif
}

/* May other processes of the owner read this memory? */
static inline bool pem_is_dumpable(struct mm_struct *mm)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return __mm_flags_get_dumpable(mm) == SUID_DUMP_USER;
#else
	return __get_dumpable(mm->flags) == SUID_DUMP_USER;
#endif
}

/* Specs use libbpf's names of registers. */
#define PT_REGS_IP(regs) instruction_pointer(regs)
#if defined(CONFIG_X86_64)
#define PT_REGS_PARM1_SYSCALL(regs) ((regs)->di)
#elif defined(CONFIG_ARM64)
#define PT_REGS_PARM1_SYSCALL(regs) ((regs)->orig_x0)
#endif

#endif
