/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * targets.h - the set of a session's target processes: probes read it, and fork, exit and ioctl
 * change it, without a lock
 *
 * The key of a process is the address of its signal_struct. A process keeps this address over exec,
 * has it from before its first event to after its last, and shares it with no other process.
 * target.c says when a process is added and removed.
 *
 * The set is a hash table whose buckets hold 16 keys each. pem_targets_add takes a free entry by
 * compare-and-swap. pem_targets_remove clears all entries that hold the key. The generation counts
 * additions and removals, so that a CPU can keep an answer.
 *
 * A writer first changes the table and then adds 1 to the generation (MD). A reader reads the
 * generation before the entries (md): docs/architecture.md, Barriers.
 */
#ifndef PEM_KMOD_TARGETS_H
#define PEM_KMOD_TARGETS_H

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/compiler.h>
#endif

#include <pem/abi.h>

#define PEM_TARGET_BITS 12
#define PEM_TARGET_SETS (1u << PEM_TARGET_BITS)
#define PEM_TARGET_WAYS 16u

struct pem_kmod_targets {
	atomic_t generation;
	atomic_t lost; /* processes that found no free entry */
	unsigned long key[PEM_TARGET_SETS][PEM_TARGET_WAYS]; /* 0: free */
};

PEM_INLINE unsigned long *pem_targets_set(struct pem_kmod_targets *targets, unsigned long key)
{
	/*
	 * Multiplicative hashing (Knuth, 6.4): the highest bits of the product depend on all bits
	 * of the key.
	 */
	return targets->key[(uint64_t)key * 0x9e3779b97f4a7c15ull >> (64 - PEM_TARGET_BITS)];
}

static inline bool pem_targets_have(struct pem_kmod_targets *targets, unsigned long key)
{
	const unsigned long *set = pem_targets_set(targets, key);
	uint32_t i;

	for (i = 0; i < PEM_TARGET_WAYS; i++) {
		if (READ_ONCE(set[i]) == key)
			return true;
	}
	return false;
}

/* Add a key. False: there is no free entry. It is then counted in lost. */
static inline bool pem_targets_add(struct pem_kmod_targets *targets, unsigned long key)
{
	unsigned long *set = pem_targets_set(targets, key);
	uint32_t i;

	if (pem_targets_have(targets, key))
		return true;
	for (i = 0; i < PEM_TARGET_WAYS; i++) {
		if (!cmpxchg_relaxed(&set[i], 0ul, key)) {
			/* MD */
			atomic_fetch_add_release(1, &targets->generation);
			return true;
		}
	}
	atomic_inc(&targets->lost);
	return false;
}

static inline void pem_targets_remove(struct pem_kmod_targets *targets, unsigned long key)
{
	unsigned long *set = pem_targets_set(targets, key);
	bool any = false;
	uint32_t i;

	for (i = 0; i < PEM_TARGET_WAYS; i++) {
		if (READ_ONCE(set[i]) == key) {
			WRITE_ONCE(set[i], 0);
			any = true;
		}
	}
	/* MD */
	if (any)
		atomic_fetch_add_release(1, &targets->generation);
}

#endif
