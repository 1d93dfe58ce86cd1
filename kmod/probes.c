// SPDX-License-Identifier: GPL-2.0
/*
 * probes.c - the generated probes, compiled and checked against this kernel's tracepoints
 *
 * The compiler checks each probe's parameters against the tracepoint's own, if the kernel's headers
 * declare it. Not here: who registers them (attach.c).
 */
#include "pem_kmod.h"

#include "pem_kmod_checks.h"

/*
 * Specs turn the network's numbers round for kernels of two kinds, of which one knows no ntohl().
 */
#ifdef __CHECKER__
#define __builtin_bswap16(x) __builtin_bswap16((__force u16)(x))
#define __builtin_bswap32(x) __builtin_bswap32((__force u32)(x))
#endif

#include "pem_kmod_events.h"
