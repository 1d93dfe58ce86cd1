/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * distribution.h - variance, histogram and most frequent values of a statistic: adding a value where it happens, and reading
 *
 * Not here: count, sum, least and greatest (struct pem_cell, ring.h), adding parts up (libpem/distribution.c).
 *
 * One writer for each struct pem_distribution, any reader. The first line is read as a cell is; buckets are counters, each whole by
 * itself; an entry of the most frequent values tells by its sequence when it changes hands. So a reader never waits for a
 * writer that adds a value each few nanoseconds; what it got together may be some events apart.
 */
#ifndef PEM_DISTRIBUTION_H
#define PEM_DISTRIBUTION_H

#include <pem/abi.h>

/* Bucket of a value: 0 for 0 and below, else its highest bit's number, from 1 to 64. */
PEM_INLINE uint32_t pem_distribution_bucket(uint64_t value, int is_signed)
{
	uint32_t bucket = 1;

	if (!value || (is_signed && (int64_t)value < 0))
		return 0;
	if (value >> 32) {
		bucket += 32;
		value >>= 32;
	}
	if (value >> 16) {
		bucket += 16;
		value >>= 16;
	}
	if (value >> 8) {
		bucket += 8;
		value >>= 8;
	}
	if (value >> 4) {
		bucket += 4;
		value >>= 4;
	}
	if (value >> 2) {
		bucket += 2;
		value >>= 2;
	}
	return bucket + (uint32_t)(value >> 1);
}

/* A square of 128 bits, low word first; by halves, for BPF has no multiplication to 128. */
PEM_INLINE void pem_distribution_square(uint64_t magnitude, uint64_t square[2])
{
	uint64_t low = (uint32_t)magnitude, high = magnitude >> 32;
	uint64_t middle = low * high; /* twice, 32 bits up */
	uint64_t sum = low * low + (middle << 33);

	square[0] = sum;
	square[1] = high * high + (middle >> 31) + (sum < low * low);
}

/* The least frequent entry, of which a free one is the least; where value has an entry, that one and *found 1. */
static inline uint32_t pem_distribution_find(const struct pem_distribution *distribution,
					     uint64_t value, int *found)
{
	uint32_t i, least = 0;

	*found = 1;
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++) {
		if (distribution->top[i].count && distribution->top[i].value == value)
			return i;
		if (distribution->top[i].count < distribution->top[least].count)
			least = i;
	}
	*found = 0;
	return least;
}

#ifndef __bpf__

/* Begin anew: what is there is another tag's. Without a tag it is nobody's: what readers get of it meanwhile they throw away. */
static inline void pem_distribution_reset(struct pem_distribution *distribution, uint64_t tag)
{
	uint32_t i;

	__atomic_store_n(&distribution->tag, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->begin, ~0ULL, __ATOMIC_RELAXED); /* unequal to any count */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (i = 0; i < 2; i++)
		__atomic_store_n(&distribution->sum[i], 0, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		__atomic_store_n(&distribution->squares[i], 0, __ATOMIC_RELAXED);
	for (i = 0; i < PEM_DISTRIBUTION_BUCKETS; i++)
		__atomic_store_n(&distribution->bucket[i], 0, __ATOMIC_RELAXED);
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++)
		__atomic_store_n(&distribution->top[i].count, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->end, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->begin, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->tag, tag,
			 __ATOMIC_RELEASE); /* pairs with pem_distribution_read */
}

/* For the variance of integers: the sums of values, sign-extended to 128 bits, and of their squares. */
static inline void pem_distribution_add_square(struct pem_distribution *distribution,
					       uint64_t value, int is_signed)
{
	int negative = is_signed && (int64_t)value < 0;
	uint64_t n = distribution->begin + 1, low = distribution->sum[0] + value, square[2];
	uint64_t middle = distribution->squares[0], high;

	pem_distribution_square(negative ? -value : value, square);
	__atomic_store_n(&distribution->begin, n, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* begin before the values */
	__atomic_store_n(&distribution->sum[1],
			 distribution->sum[1] - (uint64_t)negative + (low < value),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->sum[0], low, __ATOMIC_RELAXED);
	low = middle + square[0];
	middle = distribution->squares[1] + (low < square[0]);
	high = middle < (uint64_t)(low < square[0]);
	middle += square[1];
	high += middle < square[1];
	__atomic_store_n(&distribution->squares[0], low, __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->squares[1], middle, __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->squares[2], distribution->squares[2] + high,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->end, n, __ATOMIC_RELEASE); /* the values before the end */
}

static inline void pem_distribution_add_bucket(struct pem_distribution *distribution,
					       uint32_t bucket)
{
	__atomic_store_n(&distribution->bucket[bucket], distribution->bucket[bucket] + 1,
			 __ATOMIC_RELAXED);
}

static inline void pem_distribution_set_top(struct pem_distribution_top *top, uint64_t value,
					    uint64_t count, uint64_t error)
{
	__atomic_store_n(&top->sequence, top->sequence | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* odd before the change */
	__atomic_store_n(&top->value, value, __ATOMIC_RELAXED);
	__atomic_store_n(&top->count, count, __ATOMIC_RELAXED);
	__atomic_store_n(&top->error, error, __ATOMIC_RELAXED);
	__atomic_store_n(&top->sequence, (top->sequence | 1) + 1, __ATOMIC_RELEASE);
}

/* Space-Saving: a value without an entry takes the least frequent one's, and may have come as often as that one had. */
static inline void pem_distribution_add_top(struct pem_distribution *distribution, uint64_t value)
{
	int found;
	uint32_t i = pem_distribution_find(distribution, value, &found);
	struct pem_distribution_top *top = &distribution->top[i];

	if (found)
		__atomic_store_n(&top->count, top->count + 1, __ATOMIC_RELAXED);
	else
		pem_distribution_set_top(top, value, top->count + 1, top->count);
}

static inline int pem_distribution_read_top(const struct pem_distribution_top *top,
					    struct pem_distribution_top *copy, unsigned tries)
{
	do {
		copy->sequence = __atomic_load_n(&top->sequence, __ATOMIC_ACQUIRE);
		copy->value = __atomic_load_n(&top->value, __ATOMIC_RELAXED);
		copy->count = __atomic_load_n(&top->count, __ATOMIC_RELAXED);
		copy->error = __atomic_load_n(&top->error, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(copy->sequence & 1) &&
		    __atomic_load_n(&top->sequence, __ATOMIC_RELAXED) == copy->sequence)
			return 1;
	} while (--tries);
	return 0;
}

static inline void pem_distribution_read_line(const struct pem_distribution *distribution,
					      struct pem_distribution *copy, unsigned tries)
{
	uint32_t i;

	do {
		copy->end = __atomic_load_n(&distribution->end, __ATOMIC_ACQUIRE);
		for (i = 0; i < 2; i++)
			copy->sum[i] = __atomic_load_n(&distribution->sum[i], __ATOMIC_RELAXED);
		for (i = 0; i < 3; i++)
			copy->squares[i] =
				__atomic_load_n(&distribution->squares[i], __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		copy->begin = __atomic_load_n(&distribution->begin, __ATOMIC_RELAXED);
	} while (copy->begin != copy->end && --tries);
}

/*
 * Copy what a tag's statistic holds. 0: there is nothing of that tag, or it began anew meanwhile. What a thread was killed in
 * the middle of is copied as it is, and an entry is left out.
 */
static inline int pem_distribution_read(const struct pem_distribution *distribution,
					struct pem_distribution *copy, uint64_t tag, unsigned tries)
{
	uint32_t i;

	if (__atomic_load_n(&distribution->tag, __ATOMIC_ACQUIRE) != tag)
		return 0;
	pem_distribution_read_line(distribution, copy, tries);
	for (i = 0; i < PEM_DISTRIBUTION_BUCKETS; i++)
		copy->bucket[i] = __atomic_load_n(&distribution->bucket[i], __ATOMIC_RELAXED);
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++) {
		if (!pem_distribution_read_top(&distribution->top[i], &copy->top[i], tries))
			copy->top[i].count = 0;
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	copy->tag = tag;
	return copy->begin != ~0ULL && __atomic_load_n(&distribution->tag, __ATOMIC_RELAXED) == tag;
}

#endif
#endif
