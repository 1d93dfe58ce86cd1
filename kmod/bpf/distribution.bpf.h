/* SPDX-License-Identifier: GPL-2.0 */
/*
 * distribution.bpf.h - variance, histogram and most frequent values, added to in the kernel as
 * pem/distribution.h does in programs
 *
 * Included by pem.bpf.c alone. One function for all programs, not inlined: the verifier looks at it
 * once for each that is loaded, whatever calls it, and that is most of what loading them costs if
 * it is not short. An entry of the map has one writer, for no program runs within itself on a CPU.
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
 * The verifier walks what follows a jump once for each way it may go, until nothing is left that
 * tells the ways apart: so some conditions are arithmetic here, and an index comes from no jump.
 */
PEM_INLINE uint64_t pem_is_signed(uint32_t type)
{
	const uint32_t types = 1u << PEM_TYPE_INT8 | 1u << PEM_TYPE_INT16 | 1u << PEM_TYPE_INT32 |
			       1u << PEM_TYPE_INT64;

	return types >> type & 1;
}

/*
 * Add a value to what event index keeps on this CPU beside its cell. A global function: its
 * arguments are numbers.
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
		 * What was stored and read back is any number to the verifier: it does not walk the
		 * rest once for each entry.
		 */
		PEM_STORE(distribution->reserved[0], pem_distribution_find(distribution, value));
		at = PEM_LOAD(distribution->reserved[0]) & (PEM_DISTRIBUTION_TOP - 1);
		pem_distribution_put_top(&distribution->top[at], value);
	}
	return 0;
}

#endif
