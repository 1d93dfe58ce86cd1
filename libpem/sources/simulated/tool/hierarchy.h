/* SPDX-License-Identifier: MIT */
/*
 * hierarchy.h - caches and TLBs that do not exist: what each reference finds in them
 *
 * The model. An access of a program is one access, also if it lies in two lines. It misses a level
 * that lacks one of these, and is then made to the next level as a whole. A level keeps what it
 * was asked for, and no level takes anything out of another (neither inclusive nor exclusive).
 * Stores are as loads: they are allocated, and what is written back costs nothing. Nothing is
 * fetched ahead. Cycles are one for each instruction, and what the level costs that answers.
 *
 * It needs no C library: a tool for Valgrind has none.
 */
#ifndef PEM_SIMULATED_HIERARCHY_H
#define PEM_SIMULATED_HIERARCHY_H

#include <pem/hardware.h>

#include <stddef.h>
#include <stdint.h>

struct hierarchy_part {
	struct pem_hardware_part part;
	/*
	 * Of each set, its blocks, plus 1: 0 is none. LRU: the last used one first. PLRU: each way
	 * stays at its index.
	 */
	uint64_t *blocks;
	uint64_t *trees; /* PLRU: of each set, a bit for each node: the older half is the upper */
};

/* The parts that an access asks, one after the other. */
struct hierarchy_chain {
	struct hierarchy_part *parts[PEM_HARDWARE_LEVELS_MAX];
	uint32_t count;
};

struct hierarchy {
	struct hierarchy_part caches[PEM_HARDWARE_CACHES_MAX];
	struct hierarchy_part tlbs[PEM_HARDWARE_TLBS_MAX];
	struct hierarchy_chain code, data, code_tlbs, data_tlbs;
	uint32_t memory_cycles, walk_cycles;
	/* [PEM_SIMULATED_CYCLES]: beyond one for each instruction. The caller counts these. */
	uint64_t counts[PEM_SIMULATED_COUNT];
};

/* The memory that it needs, of hardware that passed pem_hardware__check. */
size_t hierarchy__bytes(const struct pem_hardware *hardware);
/* memory: so many bytes, all 0, aligned to 8. They stay in use. */
void hierarchy__init(struct hierarchy *h, const struct pem_hardware *hardware, void *memory);
void hierarchy__fetch(struct hierarchy *h, uint64_t address, uint32_t bytes);
void hierarchy__load(struct hierarchy *h, uint64_t address, uint32_t bytes);
void hierarchy__store(struct hierarchy *h, uint64_t address, uint32_t bytes);

#endif
