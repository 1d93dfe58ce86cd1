/* SPDX-License-Identifier: GPL-2.0-only */
/* types_base.h - names of integer types, and types that all subsystems use (see kernel_types.h) */
#ifndef PEM_TYPES_BASE_H
#define PEM_TYPES_BASE_H

#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>

/* A pointer to each CPU's own memory: the kernel's compilers tell its type from others. */
#define __percpu

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

typedef unsigned int blk_opf_t;
typedef u8 blk_status_t;
typedef int clockid_t;
typedef u32 dev_t;
typedef u64 dma_addr_t;
typedef u32 errseq_t;
typedef unsigned int gfp_t;
typedef unsigned int isolate_mode_t;
typedef s64 ktime_t;
typedef long long loff_t;
typedef unsigned long netmem_ref;
typedef u64 sector_t;
typedef long ssize_t;
typedef unsigned int tid_t;
typedef unsigned int uid_t;

typedef struct {
	int counter;
} atomic_t;

struct timespec64 {
	long long tv_sec;
	long tv_nsec;
};

struct itimerspec64 {
	struct timespec64 it_interval;
	struct timespec64 it_value;
};

#endif
