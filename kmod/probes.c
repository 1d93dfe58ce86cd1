// SPDX-License-Identifier: GPL-2.0
/*
 * probes.c - the generated probes, compiled and checked against this kernel's tracepoints
 *
 * The compiler compares each probe's parameters with the tracepoint's own, if the kernel's headers
 * declare it. Not here: registering probes (attach.c).
 */
#include "pem_kmod.h"

#include "pem_kmod_checks.h"

/*
 * Specs use these builtins to convert network byte order, because BPF programs have no ntohl().
 * sparse wants a cast for a number in network byte order.
 */
#ifdef __CHECKER__
#define __builtin_bswap16(x) __builtin_bswap16((__force u16)(x))
#define __builtin_bswap32(x) __builtin_bswap32((__force u32)(x))
#endif

#include "pem_kmod_events.h"
