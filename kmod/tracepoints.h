/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tracepoints.h - tracepoint headers whose name is not the name of their system, and what these
 * headers lack
 *
 * codegen lists all other headers (pem_kmod_headers.h). Preprocessing declared.c finds out which
 * headers of both lists a kernel has. kmod/declared then writes only those to pem_kmod_checks.h. So
 * this file may hold only lines that kmod/declared knows: blocks from __has_include to #endif, and
 * lines outside of such blocks.
 */
/* Types that the kernel's tracepoint headers use without declaring them. */
struct compact_control;
#include <linux/fs.h>
#include <linux/jbd2.h>
typedef unsigned long long ext4_fsblk_t;
typedef __u32 ext4_lblk_t;
typedef int ext4_grpblk_t;
typedef unsigned int ext4_group_t;

/* Headers that define one macro each in a different way. */
#if __has_include(<trace/events/ext4.h>)
#include <trace/events/ext4.h>
#undef show_map_flags
#endif

/* Headers whose name is not the name of their tracepoints' system. */
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
