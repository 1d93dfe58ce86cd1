// SPDX-License-Identifier: GPL-2.0-only
/*
 * probes.c - the generated probes, of which the compiler takes those that fit this kernel's
 * tracepoints
 *
 * The compiler compares each probe's parameters with the tracepoint's own, if the kernel's headers
 * declare it. kmod/declared compiles this file first, with PEM_KMOD_TRIED, to find the others. Not
 * here: registering probes (attach.c).
 */
#include "pem_kmod.h"

#include <pem/event.h>

#include "pem_kmod_checks.h"
#include "pem_kmod_tried.h"

#ifdef PEM_KMOD_TRIED
#define PEM_KMOD_TRY(tracepoint, fits) static_assert(fits, #tracepoint)
#endif

/*
 * Specs use these builtins to convert network byte order, because BPF programs have no ntohl().
 * sparse wants a cast for a number in network byte order.
 */
#ifdef __CHECKER__
#define __builtin_bswap16(x) __builtin_bswap16((__force u16)(x))
#define __builtin_bswap32(x) __builtin_bswap32((__force u32)(x))
#endif

#include "pem_kmod_events.h"
