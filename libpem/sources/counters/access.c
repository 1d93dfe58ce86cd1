// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * access.c - what the kernel makes of a processor's sample of data, in the numbers of
 * spec/hw/data.xml
 *
 * The kernel describes an access twice: by newer fields (mem_lvl_num, mem_remote) and by older bits
 * (mem_lvl). Which of them it fills depends on the processor and the kernel's age: see the tables
 * pebs_data_source and their like in Linux's arch/x86/events/intel. The newer ones are taken
 * where they say something, but a level that was missed is none, and where only the bits tell
 * another node's memory from its cache, they hold.
 */
#include "data.h"

#include <string.h>

enum { ACCESS_UNKNOWN, ACCESS_LOAD, ACCESS_STORE };

enum {
	SOURCE_UNKNOWN,
	SOURCE_L1,
	SOURCE_FILL_BUFFER,
	SOURCE_L2,
	SOURCE_L3,
	SOURCE_MEMORY,
	SOURCE_REMOTE_CACHE,
	SOURCE_REMOTE_MEMORY,
	SOURCE_OTHER
};

enum { TLB_UNKNOWN, TLB_L1, TLB_L2, TLB_WALK, TLB_ANY };

/* Later than the kernel headers that pem may be built with. */
enum {
	LEVEL_L2_MISSES = 0x5, /* lines on their way to the second level */
	LEVEL_MEMORY_SIDE = 0x6,
	LEVEL_UNCACHED = 0x8,
	LEVEL_CXL = 0x9,
	LEVEL_IO = 0xa
};

static uint8_t source_by_number(const union perf_mem_data_src *source)
{
	switch (source->mem_lvl_num) {
	case PERF_MEM_LVLNUM_L1:
		return SOURCE_L1;
	case PERF_MEM_LVLNUM_LFB:
	case LEVEL_L2_MISSES:
		return SOURCE_FILL_BUFFER;
	case PERF_MEM_LVLNUM_L2:
		return source->mem_remote ? SOURCE_REMOTE_CACHE : SOURCE_L2;
	case PERF_MEM_LVLNUM_L3:
		return source->mem_remote ? SOURCE_REMOTE_CACHE : SOURCE_L3;
	case PERF_MEM_LVLNUM_ANY_CACHE:
		return source->mem_remote ? SOURCE_REMOTE_CACHE : SOURCE_UNKNOWN;
	case PERF_MEM_LVLNUM_RAM:
	case PERF_MEM_LVLNUM_PMEM:
		return source->mem_remote ? SOURCE_REMOTE_MEMORY : SOURCE_MEMORY;
	case PERF_MEM_LVLNUM_L4:
	case LEVEL_MEMORY_SIDE:
	case LEVEL_UNCACHED:
	case LEVEL_CXL:
	case LEVEL_IO:
		return SOURCE_OTHER;
	default:
		return SOURCE_UNKNOWN;
	}
}

/* Bits of levels say where the access hit; without HIT, where it did not. */
static uint8_t source_by_bits(uint64_t levels)
{
	static const struct {
		uint64_t bits;
		uint8_t source;
	} known[] = {{PERF_MEM_LVL_L1, SOURCE_L1},
		     {PERF_MEM_LVL_LFB, SOURCE_FILL_BUFFER},
		     {PERF_MEM_LVL_L2, SOURCE_L2},
		     {PERF_MEM_LVL_L3, SOURCE_L3},
		     {PERF_MEM_LVL_LOC_RAM, SOURCE_MEMORY},
		     {PERF_MEM_LVL_REM_CCE1 | PERF_MEM_LVL_REM_CCE2, SOURCE_REMOTE_CACHE},
		     {PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2, SOURCE_REMOTE_MEMORY},
		     {PERF_MEM_LVL_IO | PERF_MEM_LVL_UNC, SOURCE_OTHER}};
	size_t i;

	if (!(levels & PERF_MEM_LVL_HIT))
		return SOURCE_UNKNOWN;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (levels & known[i].bits)
			return known[i].source;
	return SOURCE_UNKNOWN;
}

/* Some processors tell a hit in either of two levels. */
static uint8_t tlb_of(uint64_t tlb)
{
	const uint64_t levels = tlb & (PERF_MEM_TLB_L1 | PERF_MEM_TLB_L2);

	if (tlb & PERF_MEM_TLB_MISS)
		return TLB_WALK;
	if (!(tlb & PERF_MEM_TLB_HIT))
		return TLB_UNKNOWN;
	if (tlb & (PERF_MEM_TLB_WK | PERF_MEM_TLB_OS))
		return TLB_WALK;
	if (!levels)
		return TLB_UNKNOWN;
	return levels == PERF_MEM_TLB_L1 ? TLB_L1 : levels == PERF_MEM_TLB_L2 ? TLB_L2 : TLB_ANY;
}

static uint8_t source_of(const union perf_mem_data_src *source)
{
	uint8_t found;

	if (source->mem_lvl & PERF_MEM_LVL_MISS)
		return SOURCE_UNKNOWN;
	if (source->mem_lvl & (PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_REM_RAM2))
		return SOURCE_REMOTE_MEMORY;
	found = source_by_number(source);
	if (found == SOURCE_UNKNOWN)
		found = source_by_bits(source->mem_lvl);
	/* The third level knew that another core has the line, and that core gave it. */
	if (found == SOURCE_L3 && (source->mem_snoop & PERF_MEM_SNOOP_HITM || source->mem_snoopx))
		found = SOURCE_REMOTE_CACHE;
	return found;
}

/* Decode a PERF_SAMPLE_DATA_SRC (perf_event_open(2)). */
static void decode(uint64_t data_source, struct ring_data *data)
{
	const union perf_mem_data_src source = {.val = data_source};

	data->access = source.mem_op & PERF_MEM_OP_STORE  ? ACCESS_STORE
		       : source.mem_op & PERF_MEM_OP_LOAD ? ACCESS_LOAD
							  : ACCESS_UNKNOWN;
	data->source = source_of(&source);
	data->tlb = tlb_of(source.mem_dtlb);
	/* Of a store some processors tell other things in its place. */
	if (data->access != ACCESS_LOAD)
		data->latency = 0;
}

void access__find(struct ring_sample *sample)
{
	decode(sample->data_source, &sample->data);
	sample->data.origin = sample->data.address ? DATA_ORIGIN_MEASURED : DATA_ORIGIN_NONE;
	if (sample->abi == PERF_SAMPLE_REGS_ABI_64)
		memcpy(&sample->data.stack_pointer, sample->registers, 8);
}
