/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * distribution.bpf.h - adds values to distributions (variance, histogram, most frequent values) in
 * the kernel, as pem/distribution.h does in programs
 *
 * Only pem.bpf.c includes this file. All programs share one function, which is not inlined. The
 * verifier checks it once for each loaded program, even if the program never calls it. So most of
 * the time of loading goes into this function unless it is short. An entry of the map has one
 * writer, because no program interrupts another one on its CPU.
 */
#ifndef PEM_DISTRIBUTION_BPF_H
#define PEM_DISTRIBUTION_BPF_H

#include <pem/event.h>
#include <pem/distribution.h>

PEM_STATIC_ASSERT(!(PEM_KRING_EVENTS_MAX & (PEM_KRING_EVENTS_MAX - 1)),
		  "a mask of indexes, which changes none");

/* PEM_DISTRIBUTION_COUNT for each CPU; max_entries is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct pem_distribution));
	__uint(max_entries, PEM_DISTRIBUTION_COUNT);
} pem_distributions SEC(".maps");

/*
 * After a jump the verifier walks the rest once for each way, until it can't distinguish the ways
 * any more. So some conditions here are arithmetic, and no index depends on a jump.
 */
PEM_INLINE uint64_t pem_is_signed(uint32_t type)
{
	const uint32_t types = 1u << PEM_TYPE_INT8 | 1u << PEM_TYPE_INT16 | 1u << PEM_TYPE_INT32 |
			       1u << PEM_TYPE_INT64;

	return types >> type & 1;
}

/*
 * Add a value to the distribution of event index on this CPU. A global function takes only numbers
 * as arguments.
 */
__attribute__((noinline)) int pem_add_distribution(uint32_t index, uint64_t action, uint64_t value)
{
	uint64_t is_signed = pem_is_signed(PEM_ACTION_TYPE(action)), tag, at;
	struct pem_distribution *distribution;
	uint32_t word, key;

	word = PEM_LOAD(pem_control.filter[index & (PEM_KRING_EVENTS_MAX - 1)].distribution);
	key = bpf_get_smp_processor_id() * PEM_DISTRIBUTION_COUNT +
	      (PEM_DISTRIBUTION_INDEX(word) & (PEM_DISTRIBUTION_COUNT - 1));
	distribution = bpf_map_lookup_elem(&pem_distributions, &key);
	if (!distribution)
		return 0;
	tag = PEM_DISTRIBUTION_TAG(word, action);
	if (distribution->tag != tag) {
		pem_distribution_forget(distribution);
		bpf_map_update_elem(&pem_distributions, &key, (const void *)&pem_config.zeros,
				    BPF_ANY);
		pem_distribution_become(distribution, tag);
	}
	if (PEM_DISTRIBUTION_KEEP(word) & PEM_DISTRIBUTION_HISTOGRAM)
		pem_distribution_add_bucket(distribution,
					    pem_distribution_bucket(value, is_signed) & 127);
	if (PEM_DISTRIBUTION_KEEP(word) & PEM_DISTRIBUTION_VARIANCE)
		pem_distribution_add_square(distribution, value, is_signed);
	if (PEM_DISTRIBUTION_KEEP(word) & PEM_DISTRIBUTION_VALUES) {
		/*
		 * To the verifier a value that was stored and read back is any number. So it does
		 * not walk the rest once for each entry.
		 */
		PEM_STORE(distribution->top_at, pem_distribution_find(distribution, value));
		at = PEM_LOAD(distribution->top_at) & (PEM_DISTRIBUTION_TOP - 1);
		pem_distribution_put_top(&distribution->top[at], value);
	}
	return 0;
}

#endif
