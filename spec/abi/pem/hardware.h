/* SPDX-License-Identifier: MIT */
/*
 * hardware.h - a machine that is simulated: its description, and what was counted
 *
 * A recorder makes the file, and 'pem-codegen --hardware' fills its head from XML. A tool for
 * Valgrind maps it in each process that it runs, takes one entry, and adds nothing else. Only the
 * process of an entry writes it. Readers take whatever the file holds: see pem_hardware__check.
 */
#ifndef PEM_HARDWARE_H
#define PEM_HARDWARE_H

#include <pem/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEM_HARDWARE_MAGIC 0x7768656du
#define PEM_HARDWARE_VERSION 1u
#define PEM_HARDWARE_CACHES_MAX 8u
#define PEM_HARDWARE_TLBS_MAX 8u
#define PEM_HARDWARE_LEVELS_MAX 3u
#define PEM_HARDWARE_WAYS_MAX 4096u
/* Of all entries of one cache or TLB: what the simulator needs memory for. */
#define PEM_HARDWARE_ENTRIES_MAX (1u << 22)
#define PEM_HARDWARE_CYCLES_MAX 1000000u
#define PEM_HARDWARE_PROCESSES_MAX 4096u

/* Bits of pem_hardware_part.serves. */
#define PEM_HARDWARE_CODE 1u
#define PEM_HARDWARE_DATA 2u

#define PEM_HARDWARE_LRU 0u
#define PEM_HARDWARE_PLRU 1u /* a tree of bits: ways is a power of two up to 64 */

/* A cache or a TLB. */
struct pem_hardware_part {
	uint32_t level; /* 1 to PEM_HARDWARE_LEVELS_MAX */
	uint32_t serves; /* PEM_HARDWARE_CODE, PEM_HARDWARE_DATA, or both */
	uint32_t replacement;
	uint32_t cycles; /* that an access costs which is answered here; level 1: not used */
	uint32_t ways;
	uint32_t sets; /* a power of two */
	uint32_t shift; /* log2 of the bytes of a line, or of a page */
	uint32_t reserved;
};
PEM_STATIC_ASSERT(sizeof(struct pem_hardware_part) == 32, "a part is 32 bytes");

struct pem_hardware {
	uint32_t magic;
	uint32_t version;
	uint32_t cache_count; /* ordered by level */
	uint32_t tlb_count; /* ordered by level; those that hold pages of page_shift alone */
	uint32_t page_shift;
	uint32_t memory_cycles; /* of an access that no cache answers */
	uint32_t walk_cycles; /* of a translation that no TLB has */
	uint32_t process_count; /* counts on past PEM_HARDWARE_PROCESSES_MAX; processes add 1
				   atomically */
	struct pem_hardware_part caches[PEM_HARDWARE_CACHES_MAX];
	struct pem_hardware_part tlbs[PEM_HARDWARE_TLBS_MAX];
};
PEM_STATIC_ASSERT(sizeof(struct pem_hardware) == 544, "the head is 544 bytes");

/* What is counted. The order is that of the file, and of names in pem_simulated_names. */
enum pem_simulated {
	PEM_SIMULATED_INSTRUCTIONS,
	PEM_SIMULATED_CYCLES,
	PEM_SIMULATED_LOADS,
	PEM_SIMULATED_STORES,
	PEM_SIMULATED_L1_CODE_MISSES,
	PEM_SIMULATED_L1_DATA_MISSES,
	PEM_SIMULATED_L2_ACCESSES,
	PEM_SIMULATED_L2_MISSES,
	PEM_SIMULATED_L3_ACCESSES,
	PEM_SIMULATED_L3_MISSES,
	PEM_SIMULATED_LAST_LEVEL_MISSES,
	PEM_SIMULATED_CODE_TLB_MISSES,
	PEM_SIMULATED_DATA_TLB_MISSES,
	PEM_SIMULATED_L2_TLB_MISSES,
	PEM_SIMULATED_PAGE_WALKS,
	PEM_SIMULATED_PAGE_WALK_CYCLES,
	PEM_SIMULATED_COUNT
};

/* What one process, or what it became by exec, has counted. */
struct pem_simulated_process {
	uint32_t pid;
	uint32_t reserved;
	uint64_t counts[PEM_SIMULATED_COUNT];
};
PEM_STATIC_ASSERT(sizeof(struct pem_simulated_process) == 136, "an entry is 136 bytes");

struct pem_hardware_file {
	struct pem_hardware hardware;
	struct pem_simulated_process processes[PEM_HARDWARE_PROCESSES_MAX];
};
PEM_STATIC_ASSERT(offsetof(struct pem_hardware_file, processes) == 544,
		  "processes follow the head");

/*
 * The client request of Valgrind that reads a counter of the thread, with its number. The answer
 * has PEM_SIMULATED_ANSWER set; without the tool it is 0.
 */
#define PEM_SIMULATED_REQUEST (0x50u << 24 | 0x48u << 16)
#define PEM_SIMULATED_ANSWER (UINT64_C(1) << 63)

static inline int pem_hardware__check_part(const struct pem_hardware_part *part)
{
	return part->level >= 1 && part->level <= PEM_HARDWARE_LEVELS_MAX && part->serves >= 1 &&
	       part->serves <= (PEM_HARDWARE_CODE | PEM_HARDWARE_DATA) &&
	       part->cycles <= PEM_HARDWARE_CYCLES_MAX && part->ways >= 1 &&
	       part->ways <= PEM_HARDWARE_WAYS_MAX && part->sets >= 1 &&
	       part->sets <= PEM_HARDWARE_ENTRIES_MAX && !(part->sets & (part->sets - 1)) &&
	       (uint64_t)part->ways * part->sets <= PEM_HARDWARE_ENTRIES_MAX && part->shift >= 3 &&
	       part->shift <= 30 &&
	       (part->replacement == PEM_HARDWARE_LRU ||
		(part->replacement == PEM_HARDWARE_PLRU && part->ways <= 64 &&
		 !(part->ways & (part->ways - 1))));
}

/* Is a head, of which this is a copy of one's own, one that can be simulated? 1: yes. */
static inline int pem_hardware__check(const struct pem_hardware *hardware)
{
	uint32_t i;

	if (hardware->magic != PEM_HARDWARE_MAGIC || hardware->version != PEM_HARDWARE_VERSION ||
	    hardware->cache_count < 1 || hardware->cache_count > PEM_HARDWARE_CACHES_MAX ||
	    hardware->tlb_count > PEM_HARDWARE_TLBS_MAX || hardware->page_shift < 12 ||
	    hardware->page_shift > 30 || hardware->memory_cycles > PEM_HARDWARE_CYCLES_MAX ||
	    hardware->walk_cycles > PEM_HARDWARE_CYCLES_MAX)
		return 0;
	for (i = 0; i < hardware->cache_count; i++)
		if (!pem_hardware__check_part(&hardware->caches[i]))
			return 0;
	for (i = 0; i < hardware->tlb_count; i++)
		if (!pem_hardware__check_part(&hardware->tlbs[i]) ||
		    hardware->tlbs[i].shift != hardware->page_shift)
			return 0;
	return 1;
}

#ifdef __cplusplus
}
#endif
#endif
