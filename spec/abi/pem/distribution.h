/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * distribution.h - variance, histogram and most frequent values of a statistic
 *
 * These inlines add a value where the event happens, and read a distribution. Not here: count, sum,
 * least and greatest (statistic.h), adding the parts of several lanes (libpem/distribution.c).
 *
 * Each struct pem_distribution has one writer and any number of readers. A reader reads the first
 * cache line as it reads a cell. A bucket is a counter of one word. The sequence of a top entry
 * says when the entry passes to another value. So a reader never waits for a writer that adds a
 * value every few nanoseconds. In return, the parts that a reader gets may be some events apart.
 */
#ifndef PEM_DISTRIBUTION_H
#define PEM_DISTRIBUTION_H

#include <pem/statistic.h>

/*
 * Return the bucket of a value: 0 for 0 and below, else the number of its highest bit, from 1 to
 * 64. is_signed: 0 or 1.
 */
PEM_INLINE uint64_t pem_distribution_bucket(uint64_t value, uint64_t is_signed)
{
	uint64_t bits = value & ((value >> 63 & is_signed) - 1);

	return PEM_WIDTH(bits);
}

/* Write a square of 128 bits, low word first. BPF has no multiplication to 128 bits. */
PEM_INLINE void pem_distribution_square(uint64_t magnitude, uint64_t square[2])
{
#if defined(__SIZEOF_INT128__) && !defined(__bpf__)
	__extension__ unsigned __int128 product = (unsigned __int128)magnitude * magnitude;

	square[0] = (uint64_t)product;
	square[1] = (uint64_t)(product >> 64);
#else
	uint64_t low = (uint32_t)magnitude, high = magnitude >> 32;
	uint64_t middle = low * high; /* counts twice, shifted by 32 bits */
	uint64_t sum = low * low + (middle << 33);

	square[0] = sum;
	square[1] = high * high + (middle >> 31) + (sum < low * low);
#endif
}

PEM_STATIC_ASSERT(!(PEM_DISTRIBUTION_TOP & (PEM_DISTRIBUTION_TOP - 1)),
		  "a mask of indexes, which changes none");

/*
 * Begin a distribution anew. Until pem_distribution_become is called the distribution has no tag,
 * and readers throw away what they read.
 */
PEM_INLINE void pem_distribution_forget(struct pem_distribution *distribution)
{
	PEM_STORE(distribution->tag, 0);
	PEM_STORE(distribution->begin, ~0ULL); /* unequal to any count */
	/* SC */
	PEM_ORDER_STORES(distribution->tag);
}

/*
 * Give an empty distribution its tag. The caller has set all members to 0, except the sequences of
 * top.
 */
PEM_INLINE void pem_distribution_become(struct pem_distribution *distribution, uint64_t tag)
{
	/* SD */
	PEM_RELEASE(distribution->tag, tag);
}

/*
 * Add an integer to what the variance needs: the sum of values, sign-extended to 128 bits, and the
 * sum of their squares. is_signed: 0 or 1. A square's high word is 2^64 - 2 at most, so it can take
 * a carry.
 */
PEM_INLINE void pem_distribution_add_square(struct pem_distribution *distribution, uint64_t value,
					    uint64_t is_signed)
{
	uint64_t negative = value >> 63 & is_signed;
	uint64_t n = distribution->begin + 1, low = distribution->sum[0] + value, square[2];
	uint64_t high = distribution->sum[1] - negative + (low < value);

	PEM_STORE(distribution->begin, n);
	/* SA */
	PEM_ORDER_STORES(distribution->begin);
	PEM_STORE(distribution->sum[0], low);
	PEM_STORE(distribution->sum[1], high);
	pem_distribution_square((value ^ -negative) + negative, square);
	low = distribution->squares[0] + square[0];
	square[1] += low < square[0];
	PEM_STORE(distribution->squares[0], low);
	high = distribution->squares[1] + square[1];
	PEM_STORE(distribution->squares[1], high);
	PEM_STORE(distribution->squares[2], distribution->squares[2] + (high < square[1]));
	/* SB */
	PEM_RELEASE(distribution->end, n);
}

PEM_INLINE void pem_distribution_add_bucket(struct pem_distribution *distribution, uint64_t bucket)
{
	PEM_STORE(distribution->bucket[bucket], distribution->bucket[bucket] + 1);
}

/*
 * Return the index of the entry for a value: the value's own entry, or else the first of the least
 * frequent ones. A free entry has count 0. The loops have no jump but those to their end: see
 * PEM_HIDE.
 */
PEM_INLINE uint64_t pem_distribution_find(const struct pem_distribution *distribution,
					  uint64_t value)
{
	uint64_t least = ~0ULL >> 1, rank, i;
	int64_t less;

	PEM_UNROLL
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++) {
		if (PEM_LOAD(distribution->top[i].value) == value)
			return i;
	}
	PEM_UNROLL
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++) {
		rank = PEM_LOAD(distribution->top[i].count) * PEM_DISTRIBUTION_TOP + i;
		less = (int64_t)(rank - least);
		PEM_HIDE(less);
		least += (uint64_t)(less & less >> 63);
	}
	return least & (PEM_DISTRIBUTION_TOP - 1);
}

PEM_INLINE void pem_distribution_set_top(struct pem_distribution_top *top, uint64_t value,
					 uint64_t count, uint64_t error)
{
	uint64_t odd = top->sequence | 1;

	PEM_STORE(top->sequence, odd);
	/* SA */
	PEM_ORDER_STORES(top->sequence);
	PEM_STORE(top->value, value);
	PEM_STORE(top->count, count);
	PEM_STORE(top->error, error);
	/* SB */
	PEM_RELEASE(top->sequence, odd + 1);
}

/*
 * Count a value in the entry that pem_distribution_find returned. The algorithm is Space-Saving: a
 * value without an entry takes the entry of the least frequent value. It may have come before as
 * often as that value, so that value's count becomes its error.
 */
PEM_INLINE void pem_distribution_put_top(struct pem_distribution_top *top, uint64_t value)
{
	uint64_t count = top->count;

	if (count && top->value == value)
		PEM_STORE(top->count, count + 1);
	else
		pem_distribution_set_top(top, value, count + 1, count);
}

#ifndef __bpf__

/* A byte for each of 8 entries: 0x80 where the byte is the hash. Bytes above such a one may be
 * wrong. */
static inline uint64_t pem_distribution_match(uint64_t hashes, uint64_t hash)
{
	const uint64_t ones = 0x0101010101010101ULL;
	uint64_t other = hashes ^ hash * ones;

	return (other - ones) & ~other & ones << 7;
}

/*
 * Return the index of an entry with the least count. From one to the next the least count seldom
 * changes, so the search goes on behind the last one: 3 to 6 steps for mixed values, and twice
 * around where each replacement raises it.
 */
static inline uint64_t pem_distribution_least(struct pem_distribution *distribution)
{
	const uint64_t last = PEM_DISTRIBUTION_TOP - 1;
	uint64_t least = distribution->top_least, at = distribution->top_at, i;

	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++, at++)
		if (distribution->top[at & last].count == least)
			goto found;
	least = distribution->top[0].count;
	at = 0;
	for (i = 1; i < PEM_DISTRIBUTION_TOP; i++) {
		if (distribution->top[i].count < least) {
			least = distribution->top[i].count;
			at = i;
		}
	}
	distribution->top_least = least;
found:
	distribution->top_at = at + 1;
	return at & last;
}

/*
 * Count a value among the most frequent ones. The hashes of all entries are compared at once: one
 * in 256 other values has the same. A jump out of the middle (longjmp) may leave a value that is
 * not found by its hash and gets a second entry; readers then take the first that they find.
 */
static inline void pem_distribution_add_top(struct pem_distribution *distribution, uint64_t value)
{
	uint64_t hash = value * 0x9e3779b97f4a7c15ULL >> 56, found, i;
	struct pem_distribution_top *top;
	unsigned word;

	for (word = 0; word < PEM_DISTRIBUTION_TOP / 8; word++) {
		found = pem_distribution_match(distribution->top_hash[word], hash);
		for (; found; found &= found - 1) {
			top = &distribution->top[word * 8 + (unsigned)__builtin_ctzll(found) / 8];
			if (top->value == value && top->count) {
				PEM_STORE(top->count, top->count + 1);
				return;
			}
		}
	}
	i = pem_distribution_least(distribution);
	pem_distribution_put_top(&distribution->top[i], value);
	/* The word, not the byte: the next event loads the word. */
	distribution->top_hash[i / 8] &= ~(0xffULL << i % 8 * 8);
	distribution->top_hash[i / 8] |= hash << i % 8 * 8;
}

/* Add an integer to the parts that are kept: PEM_DISTRIBUTION_*. is_signed: 0 or 1. */
static inline void pem_distribution_add(struct pem_distribution *distribution, uint32_t keep,
					uint64_t value, uint64_t is_signed)
{
	if (keep & PEM_DISTRIBUTION_VARIANCE)
		pem_distribution_add_square(distribution, value, is_signed);
	if (keep & PEM_DISTRIBUTION_HISTOGRAM)
		pem_distribution_add_bucket(distribution,
					    pem_distribution_bucket(value, is_signed));
	if (keep & PEM_DISTRIBUTION_VALUES)
		pem_distribution_add_top(distribution, value);
}

static inline void pem_distribution_reset(struct pem_distribution *distribution, uint64_t tag)
{
	uint32_t i;

	pem_distribution_forget(distribution);
	for (i = 0; i < 2; i++)
		PEM_STORE(distribution->sum[i], 0);
	for (i = 0; i < 3; i++)
		PEM_STORE(distribution->squares[i], 0);
	for (i = 0; i < PEM_DISTRIBUTION_BUCKETS; i++)
		PEM_STORE(distribution->bucket[i], 0);
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++)
		PEM_STORE(distribution->top[i].count, 0);
	distribution->top_least = distribution->top_at = 0;
	PEM_STORE(distribution->end, 0);
	PEM_STORE(distribution->begin, 0);
	pem_distribution_become(distribution, tag);
}

static inline int pem_distribution_read_top(const struct pem_distribution_top *top,
					    struct pem_distribution_top *copy, unsigned tries)
{
	do {
		/* sb */
		copy->sequence = __atomic_load_n(&top->sequence, __ATOMIC_ACQUIRE);
		copy->value = __atomic_load_n(&top->value, __ATOMIC_RELAXED);
		copy->count = __atomic_load_n(&top->count, __ATOMIC_RELAXED);
		copy->error = __atomic_load_n(&top->error, __ATOMIC_RELAXED);
		/* sa */
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
		/* sb */
		copy->end = __atomic_load_n(&distribution->end, __ATOMIC_ACQUIRE);
		for (i = 0; i < 2; i++)
			copy->sum[i] = __atomic_load_n(&distribution->sum[i], __ATOMIC_RELAXED);
		for (i = 0; i < 3; i++)
			copy->squares[i] =
				__atomic_load_n(&distribution->squares[i], __ATOMIC_RELAXED);
		/* sa */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		copy->begin = __atomic_load_n(&distribution->begin, __ATOMIC_RELAXED);
	} while (copy->begin != copy->end && --tries);
}

/*
 * Copy the distribution that belongs to tag. Returns 1, or 0: the distribution has another tag, or
 * began anew meanwhile. tries limits the attempts at each part. If a thread was killed in the
 * middle of an update, the first line is copied as it is, and the top entry it was changing is left
 * out.
 */
static inline int pem_distribution_read(const struct pem_distribution *distribution,
					struct pem_distribution *copy, uint64_t tag, unsigned tries)
{
	uint32_t i;

	/* sd */
	if (__atomic_load_n(&distribution->tag, __ATOMIC_ACQUIRE) != tag)
		return 0;
	pem_distribution_read_line(distribution, copy, tries);
	for (i = 0; i < PEM_DISTRIBUTION_BUCKETS; i++)
		copy->bucket[i] = __atomic_load_n(&distribution->bucket[i], __ATOMIC_RELAXED);
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++) {
		if (!pem_distribution_read_top(&distribution->top[i], &copy->top[i], tries))
			copy->top[i].count = 0;
	}
	/* sc */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	copy->tag = tag;
	return copy->begin != ~0ULL && __atomic_load_n(&distribution->tag, __ATOMIC_RELAXED) == tag;
}

#endif
#endif
