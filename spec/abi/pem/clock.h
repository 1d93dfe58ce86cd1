/* SPDX-License-Identifier: MIT */
/*
 * clock.h - the raw cycle counter, the one clock of pem
 */
#ifndef PEM_CLOCK_H
#define PEM_CLOCK_H

#include <pem/abi.h>

/*
 * Return the current value of the cycle counter. The read is not serializing: neighbouring
 * instructions may move across it. Async-signal-safe, never blocks. Its rate: pem_clock__hz()
 * (pem/pem.h).
 */
static inline uint64_t pem_clock(void)
{
#if defined(__x86_64__)
	uint64_t low, high; /* the instruction clears their upper halves */

	__asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high));
	return high << 32 | low;
#elif defined(__aarch64__)
	uint64_t value;

	__asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(value));
	return value;
#else
#error "pem knows the cycle counter of x86-64 and arm64 only: add yours here"
#endif
}

/* As pem_clock: return the lower half, and fill the upper one. */
static inline uint32_t pem_clock_halves(uint32_t *high)
{
#if defined(__x86_64__)
	uint32_t low;

	__asm__ __volatile__("rdtsc" : "=a"(low), "=d"(*high));
	return low;
#else
	uint64_t clock = pem_clock();

	*high = (uint32_t)(clock >> 32);
	return (uint32_t)clock;
#endif
}

#endif
