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

/* Types that the kernel's headers of tracepoints take for declared. */
struct compact_control;
#include <linux/fs.h>
#include <linux/jbd2.h>
typedef unsigned long long ext4_fsblk_t;
typedef __u32 ext4_lblk_t;
typedef int ext4_grpblk_t;
typedef unsigned int ext4_group_t;

/* Headers of tracepoints that define one macro each in their own way. */
#if __has_include(<trace/events/ext4.h>)
#include <trace/events/ext4.h>
#undef show_map_flags
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
