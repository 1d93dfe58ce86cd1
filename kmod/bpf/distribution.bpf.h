/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wide.bpf.h - variance, histogram and most frequent values, added to in the kernel as pem/distribution.h does in programs
 *
 * Included by pem.bpf.c alone. One function for all programs, not inlined: the verifier looks at it once for each that is
 * loaded, whatever calls it, and that is most of what loading them costs if it is not short. An entry of the map has one
 * writer, for no program runs within itself on a CPU.
 */
#ifndef PEM_DISTRIBUTION_BPF_H
#define PEM_DISTRIBUTION_BPF_H

#include <pem/event.h>
#include <pem/distribution.h>

PEM_STATIC_ASSERT(!(PEM_KRING_EVENTS_MAX & (PEM_KRING_EVENTS_MAX - 1)) &&
			  !(PEM_DISTRIBUTION_TOP & (PEM_DISTRIBUTION_TOP - 1)),
		  "masks of indexes, which change none that there is");

/* PEM_DISTRIBUTION_COUNT for each CPU; max_entries is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct pem_distribution));
	__uint(max_entries, PEM_DISTRIBUTION_COUNT);
} pem_distributions SEC(".maps");

/*
 * The verifier walks what follows a jump once for each way it may go, until nothing is left that tells the ways apart: so
 * some conditions are arithmetic here, and an index comes from no jump.
 */
PEM_INLINE uint64_t pem_is_signed(uint32_t type)
{
	const uint32_t types = 1u << PEM_TYPE_INT8 | 1u << PEM_TYPE_INT16 | 1u << PEM_TYPE_INT32 |
			       1u << PEM_TYPE_INT64;

	return types >> type & 1;
}

/* Clang knows no more of it: it keeps a mask that only the verifier needs, and arithmetic that it would make jumps of. */
#define PEM_HIDE(value) __asm__("" : "+r"(value))

/* Begin anew. Without a tag it is nobody's: what readers get of it meanwhile they throw away. */
PEM_INLINE void pem_distribution_begin(struct pem_distribution *distribution, const uint32_t *key,
				       uint64_t tag)
{
	PEM_STORE(distribution->tag, 0);
	PEM_ORDER_STORES(distribution->tag);
	bpf_map_update_elem(&pem_distributions, key, (const void *)&pem_config.zeros, BPF_ANY);
	PEM_ORDER_STORES(distribution->tag);
	PEM_STORE(distribution->tag, tag);
}

/* negative: 1 or 0 */
PEM_INLINE void pem_distribution_put_square(struct pem_distribution *distribution, uint64_t value,
					    uint64_t negative)
{
	uint64_t n = distribution->begin + 1, low = distribution->sum[0] + value, square[2];
	uint64_t high = distribution->sum[1] - negative + (low < value), carry;

	PEM_STORE(distribution->begin, n);
	PEM_ORDER_STORES(distribution->begin);
	PEM_STORE(distribution->sum[0], low);
	PEM_STORE(distribution->sum[1], high);
	pem_distribution_square((value ^ -negative) + negative, square);
	low = distribution->squares[0] + square[0];
	carry = low < square[0];
	PEM_STORE(distribution->squares[0], low);
	/* A square's high word is 2^64 - 2 at most: it takes the carry. */
	square[1] += carry;
	high = distribution->squares[1] + square[1];
	PEM_STORE(distribution->squares[1], high);
	PEM_STORE(distribution->squares[2], distribution->squares[2] + (high < square[1]));
	PEM_ORDER_STORES(distribution->begin);
	PEM_STORE(distribution->end, n);
}

/* As pem_distribution_bucket() has it: how many bits there are from the highest one down. */
PEM_INLINE void pem_distribution_put_bucket(struct pem_distribution *distribution, uint64_t value,
					    uint64_t negative)
{
	uint64_t bits = value & (negative - 1);
	uint64_t *bucket;

	bits |= bits >> 1;
	bits |= bits >> 2;
	bits |= bits >> 4;
	bits |= bits >> 8;
	bits |= bits >> 16;
	bits |= bits >> 32;
	bits = __builtin_popcountll(bits);
	PEM_HIDE(bits);
	bucket = &distribution->bucket[bits & 127];
	PEM_STORE(*bucket, *bucket + 1);
}

/*
 * The entry that pem_distribution_find() has: the value's, or the first of the least frequent ones. Entries are taken in order, and
 * free ones have value 0: so one that is free and seems to be the value's is the first of those.
 */
PEM_INLINE uint64_t pem_distribution_entry(struct pem_distribution *distribution, uint64_t value)
{
	uint64_t least = ~0ULL >> 1, rank, i;
	int64_t less;

#pragma unroll
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++) {
		if (PEM_LOAD(distribution->top[i].value) == value)
			return i;
	}
#pragma unroll
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++) {
		rank = PEM_LOAD(distribution->top[i].count) * PEM_DISTRIBUTION_TOP + i;
		less = (int64_t)(rank - least);
		PEM_HIDE(less);
		least += (uint64_t)(less & less >> 63);
	}
	return least;
}

PEM_INLINE void pem_distribution_put_top(struct pem_distribution *distribution, uint64_t value)
{
	uint64_t at = pem_distribution_entry(distribution, value), count;
	struct pem_distribution_top *top;

	/* What was stored and read back is any number to the verifier: it does not walk the rest once for each entry. */
	PEM_STORE(distribution->reserved[0], at);
	top = &distribution->top[PEM_LOAD(distribution->reserved[0]) & (PEM_DISTRIBUTION_TOP - 1)];
	count = top->count;
	if (count && top->value == value) {
		PEM_STORE(top->count, count + 1);
		return;
	}
	PEM_STORE(top->sequence, top->sequence | 1);
	PEM_ORDER_STORES(top->sequence);
	PEM_STORE(top->value, value);
	PEM_STORE(top->count, count + 1);
	PEM_STORE(top->error, count);
	PEM_ORDER_STORES(top->sequence);
	PEM_STORE(top->sequence, top->sequence + 1);
}

/* Add a value to what event index keeps on this CPU beside its cell. A global function: its arguments are numbers. */
__attribute__((noinline)) int pem_add_distribution(uint32_t index, uint64_t action, uint64_t value)
{
	uint64_t negative = value >> 63 & pem_is_signed(PEM_ACTION_TYPE(action)), tag;
	struct pem_distribution *distribution;
	uint32_t word, key;

	word = PEM_LOAD(pem_control.filter[index & (PEM_KRING_EVENTS_MAX - 1)].distribution);
	key = bpf_get_smp_processor_id() * PEM_DISTRIBUTION_COUNT +
	      (PEM_DISTRIBUTION_INDEX(word) & (PEM_DISTRIBUTION_COUNT - 1));
	distribution = bpf_map_lookup_elem(&pem_distributions, &key);
	if (!distribution)
		return 0;
	tag = PEM_DISTRIBUTION_TAG(word, action);
	if (distribution->tag != tag)
		pem_distribution_begin(distribution, &key, tag);
	if (PEM_DISTRIBUTION_KEEP(word) & PEM_DISTRIBUTION_HISTOGRAM)
		pem_distribution_put_bucket(distribution, value, negative);
	if (PEM_DISTRIBUTION_KEEP(word) & PEM_DISTRIBUTION_VARIANCE)
		pem_distribution_put_square(distribution, value, negative);
	if (PEM_DISTRIBUTION_KEEP(word) & PEM_DISTRIBUTION_VALUES)
		pem_distribution_put_top(distribution, value);
	return 0;
}

#endif
