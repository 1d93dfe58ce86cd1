/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wide.bpf.h - variance, histogram and most frequent values, added to in the kernel as pem/wide.h does in programs
 *
 * Included by pem.bpf.c alone. One function for all programs, not inlined: the verifier looks at it once for each that is
 * loaded, whatever calls it. An entry of the map has one writer, for no program runs within itself on a CPU.
 */
#ifndef PEM_WIDE_BPF_H
#define PEM_WIDE_BPF_H

#include <pem/event.h>
#include <pem/wide.h>

/* PEM_WIDE_COUNT for each CPU; max_entries is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct pem_wide));
	__uint(max_entries, PEM_WIDE_COUNT);
} pem_wides SEC(".maps");

/* Begin anew, if what is there is another tag's. */
PEM_INLINE void pem_wide_begin(struct pem_wide *wide, uint64_t tag)
{
	uint32_t i;

	if (wide->tag == tag)
		return;
	PEM_STORE(wide->begin, ~0ULL); /* unequal to any count */
	PEM_ORDER_STORES(wide->begin);
	for (i = 0; i < 2; i++)
		PEM_STORE(wide->sum[i], 0);
	for (i = 0; i < 3; i++)
		PEM_STORE(wide->squares[i], 0);
	for (i = 0; i < PEM_WIDE_BUCKETS; i++)
		PEM_STORE(wide->bucket[i], 0);
	for (i = 0; i < PEM_WIDE_TOP; i++)
		PEM_STORE(wide->top[i].count, 0);
	PEM_STORE(wide->tag, tag);
	PEM_ORDER_STORES(wide->begin);
	PEM_STORE(wide->end, 0);
	PEM_ORDER_STORES(wide->begin);
	PEM_STORE(wide->begin, 0);
}

PEM_INLINE void pem_wide_put_square(struct pem_wide *wide, uint64_t value, bool negative)
{
	uint64_t n = wide->begin + 1, low = wide->sum[0] + value, square[2];
	uint64_t high = wide->sum[1] - negative + (low < value), carry;

	PEM_STORE(wide->begin, n);
	PEM_ORDER_STORES(wide->begin);
	PEM_STORE(wide->sum[0], low);
	PEM_STORE(wide->sum[1], high);
	pem_wide_square(negative ? -value : value, square);
	low = wide->squares[0] + square[0];
	carry = low < square[0];
	PEM_STORE(wide->squares[0], low);
	high = wide->squares[1] + carry;
	carry = high < carry;
	high += square[1];
	carry += high < square[1];
	PEM_STORE(wide->squares[1], high);
	PEM_STORE(wide->squares[2], wide->squares[2] + carry);
	PEM_ORDER_STORES(wide->begin);
	PEM_STORE(wide->end, n);
}

/*
 * What was stored and read back is any number to the verifier. An index that it follows through branches instead costs one walk
 * of all that comes after for each of its values.
 */
PEM_INLINE uint64_t pem_wide_any(struct pem_wide *wide, uint64_t index)
{
	PEM_STORE(wide->reserved[0], index);
	return PEM_LOAD(wide->reserved[0]);
}

PEM_INLINE void pem_wide_put_bucket(struct pem_wide *wide, uint64_t value, bool is_signed)
{
	uint64_t bucket = pem_wide_any(wide, pem_wide_bucket(value, is_signed));

	if (bucket < PEM_WIDE_BUCKETS)
		PEM_STORE(wide->bucket[bucket], wide->bucket[bucket] + 1);
}

/* As pem_wide_find does it. */
PEM_INLINE struct pem_wide_top *pem_wide_entry(struct pem_wide *wide, uint64_t value, bool *found)
{
	uint64_t least_count = ~0ULL, count, at = 0;
	uint32_t i;

	*found = false;
#pragma unroll
	for (i = 0; i < PEM_WIDE_TOP; i++) {
		count = PEM_LOAD(wide->top[i].count);
		if (count && PEM_LOAD(wide->top[i].value) == value) {
			at = i;
			*found = true;
			break;
		}
		if (count < least_count) {
			least_count = count;
			at = i;
		}
	}
	return &wide->top[pem_wide_any(wide, at) & (PEM_WIDE_TOP - 1)];
}

PEM_INLINE void pem_wide_put_top(struct pem_wide *wide, uint64_t value)
{
	bool found;
	struct pem_wide_top *top = pem_wide_entry(wide, value, &found);
	uint64_t count = top->count;

	if (found) {
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

/* Add a value to what event index keeps on this CPU beyond its slot. A global function: its arguments are numbers. */
__attribute__((noinline)) int pem_add_wide(uint32_t index, uint64_t action, uint64_t value)
{
	uint32_t type = PEM_ACTION_TYPE(action), word, key;
	bool is_signed = type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64;
	struct pem_wide *wide;

	if (index >= PEM_KRING_EVENTS_MAX)
		return 0;
	word = PEM_LOAD(pem_control.filter[index].wide);
	key = bpf_get_smp_processor_id() * PEM_WIDE_COUNT +
	      (PEM_WIDE_INDEX(word) & (PEM_WIDE_COUNT - 1));
	wide = bpf_map_lookup_elem(&pem_wides, &key);
	if (!wide)
		return 0;
	pem_wide_begin(wide, PEM_WIDE_TAG(word, action));
	if (PEM_WIDE_KEEP(word) & PEM_WIDE_VARIANCE)
		pem_wide_put_square(wide, value, is_signed && (int64_t)value < 0);
	if (PEM_WIDE_KEEP(word) & PEM_WIDE_HISTOGRAM)
		pem_wide_put_bucket(wide, value, is_signed);
	if (PEM_WIDE_KEEP(word) & PEM_WIDE_VALUES)
		pem_wide_put_top(wide, value);
	return 0;
}

#endif
