/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * compat.h - differences between kernel versions, and between the module and BPF
 *
 * No other file asks for the kernel's version. compat_pages.h has what only accessed.c needs.
 */
#ifndef PEM_KMOD_COMPAT_H
#define PEM_KMOD_COMPAT_H

#include <linux/kconfig.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
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

/* Specs use libbpf's names of registers. */
#define PT_REGS_IP(regs) instruction_pointer(regs)
#if defined(CONFIG_X86_64)
#define PT_REGS_PARM1_SYSCALL(regs) ((regs)->di)
#elif defined(CONFIG_ARM64)
#define PT_REGS_PARM1_SYSCALL(regs) ((regs)->orig_x0)
#endif

#endif
