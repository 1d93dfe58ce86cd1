/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tracepoints.h - headers of tracepoints that are not called by their system, and what these
 * headers lack
 *
 * The others' are listed by codegen (pem_kmod_headers.h). Which of both a kernel has is found out
 * by preprocessing declared.c; kmod/declared then writes those alone to pem_kmod_checks.h, so here
 * stand only lines that it knows: what is asked for by __has_include, up to #endif, and what is
 * not.
 */
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
