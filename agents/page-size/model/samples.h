/* SPDX-License-Identifier: MIT */
/*
 * samples.h - a random sample of rows of 16-bit numbers, in bounded memory
 *
 * Invariant: each reference offered so far is among the rows with the same probability, 1 / period.
 *
 * The sample has a fixed size, as that of Waldspurger et al. (Efficient MRC construction with
 * SHARDS, FAST 2015): when it is full, each row is kept with probability 1/2 and the period
 * doubles. But it samples references, not pages. The model counts all pages anyway, and a large
 * page is one of too few to be sampled.
 */
#ifndef PAGE_SIZE_SAMPLES_H
#define PAGE_SIZE_SAMPLES_H

#include "internal.h"

struct samples {
	uint16_t *rows;
	uint32_t width; /* numbers in a row */
	size_t count, capacity, capacity_max;
	uint64_t offered, period;
	uint64_t skip; /* references until the next sample */
	uint64_t random; /* state; never 0 */
};

/* seed: any number. Nothing is allocated before the first row. */
void samples__init(struct samples *samples, uint32_t width, uint64_t seed);
void samples__destroy(struct samples *samples);
/* A row for the caller to fill, or NULL with errno ENOMEM. */
uint16_t *samples__add(struct samples *samples);

/* Is this reference a sample? If so, the caller must call samples__add. */
static inline bool samples__offer(struct samples *samples)
{
	samples->offered++;
	return !samples->skip--;
}

#endif
