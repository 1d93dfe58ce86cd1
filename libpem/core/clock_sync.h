/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clock_sync.h - the cycle counter against CLOCK_MONOTONIC, by paired readings
 */
#ifndef PEM_CLOCK_SYNC_H
#define PEM_CLOCK_SYNC_H

#include <stdint.h>

#define PEM_CLOCK_PAIRS 64u

struct pem_clock_pair {
	uint64_t cycles;
	uint64_t monotonic_ns;
	uint64_t error_cycles; /* half of the time between the two readings around it */
};

/*
 * The line that the last conversion used. The next conversion mostly lies on it, too, and needs no
 * division then. A line holds for less than 2^32 ns. Within that span its slope, rounded up, gives
 * the result that the division gives.
 */
struct pem_clock_line {
	uint64_t from_ns, span_ns; /* span_ns 0: there is no line yet */
	uint64_t from_cycles;
	unsigned __int128 slope; /* cycles per ns, times 2^64 */
};

struct pem_clock_sync {
	struct pem_clock_pair pair[PEM_CLOCK_PAIRS]; /* a ring: the oldest pair is overwritten */
	uint64_t count; /* pairs taken so far */
	uint64_t hz;
	struct pem_clock_pair first;
	struct pem_clock_line line;
	/*
	 * The greatest error seen: a pair's distance from where the rate puts it, plus half its
	 * bracket.
	 */
	uint64_t worst_cycles;
};

/* Take the first pair. */
void pem_clock_sync__init(struct pem_clock_sync *sync);
/* Take another pair, unless the last one is less than a millisecond old. */
void pem_clock_sync__update(struct pem_clock_sync *sync);
/*
 * Return the cycle counter at a monotonic time: linear between the pairs around it, else from the
 * nearest pair at the counter's rate.
 */
uint64_t pem_clock_sync__cycles_at(struct pem_clock_sync *sync, uint64_t monotonic_ns);
/*
 * Return the counter's rate over the whole time since __init. The rate is the more exact the longer
 * that time is. Within the first 0.1 s, return the rate found at __init.
 */
uint64_t pem_clock_sync__hz(struct pem_clock_sync *sync);
/* Return a bound on the error of all conversions so far. */
uint64_t pem_clock_sync__error_ns(const struct pem_clock_sync *sync);

uint64_t pem_monotonic_ns(void);

#endif
