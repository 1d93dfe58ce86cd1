/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - how kernels differ, and how the module differs from BPF: the only file that asks for a kernel's version
 */
#ifndef PEM_KMOD_COMPAT_H
#define PEM_KMOD_COMPAT_H

#include <linux/kconfig.h>
#include <linux/ptrace.h>
#include <linux/version.h>

/* A spec's kernel='5.18-6.7': from the first release of the one to the last of the other. */
#define PEM_KERNEL_FROM(major, minor) (LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0))
#define PEM_KERNEL_UNTIL(major, minor) (LINUX_VERSION_CODE < KERNEL_VERSION(major, (minor) + 1, 0))

/* What specs call registers by are libbpf's names. */
#define PT_REGS_IP(regs) instruction_pointer(regs)
#if defined(CONFIG_X86_64)
#define PT_REGS_PARM1_SYSCALL(regs) ((regs)->di)
#elif defined(CONFIG_ARM64)
#define PT_REGS_PARM1_SYSCALL(regs) ((regs)->orig_x0)
#endif

/* Tracepoints whose header is not called by their system. */
#include <trace/events/syscalls.h>
#if __has_include(<asm/trace/exceptions.h>)
#include <asm/trace/exceptions.h>
#endif
#if __has_include(<asm/trace/irq_vectors.h>)
#include <asm/trace/irq_vectors.h>
#endif
#if __has_include(<asm/trace/fpu.h>)
#include <asm/trace/fpu.h>
#endif
#if __has_include(<asm/msr-trace.h>)
#include <asm/msr-trace.h>
#endif

#endif
