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
	uint64_t error_cycles; /* half of the bracket around the reading */
};

/*
 * The line that the last conversion was on, and the next mostly is, too: no division for each. It
 * holds for less than 2^32 ns, so that its slope, rounded up, gives the same as the division does.
 */
struct pem_clock_line {
	uint64_t from_ns, span_ns; /* 0: none yet */
	uint64_t from_cycles;
	unsigned __int128 slope; /* cycles per ns, times 2^64 */
};

struct pem_clock_sync {
	struct pem_clock_pair pair[PEM_CLOCK_PAIRS]; /* a ring, oldest overwritten */
	uint64_t count; /* pairs ever taken */
	uint64_t hz;
	struct pem_clock_pair first;
	struct pem_clock_line line;
	/* widest bracket, and how far a pair lay from where the two before it put it */
	uint64_t worst_cycles;
};

/* Take the first pair. */
void pem_clock_sync__init(struct pem_clock_sync *sync);
/* Take another pair, unless the last is less than a millisecond old. */
void pem_clock_sync__update(struct pem_clock_sync *sync);
/*
 * Cycle counter at a monotonic time: linear between the pairs around it, else from the nearest at
 * the counter's rate.
 */
uint64_t pem_clock_sync__cycles_at(struct pem_clock_sync *sync, uint64_t monotonic_ns);
/* Rate over the whole time since __init: the longer, the more exact. */
uint64_t pem_clock_sync__hz(struct pem_clock_sync *sync);
/* Bound on the error of such a conversion, so far. */
uint64_t pem_clock_sync__error_ns(const struct pem_clock_sync *sync);

uint64_t pem_monotonic_ns(void);

#endif
