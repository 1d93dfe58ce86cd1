/* SPDX-License-Identifier: MIT */
/* hierarchy.c - see hierarchy.h */
#include "hierarchy.h"

/* --- one set --- */

/* Returns 1 if the set had the block. It has it afterwards, as the one used last. */
static int touch_lru(uint64_t *blocks, uint32_t ways, uint64_t block)
{
	uint64_t moved = blocks[0], next;
	uint32_t i;

	if (moved == block)
		return 1;
	blocks[0] = block;
	for (i = 1; i < ways; i++) {
		next = blocks[i];
		blocks[i] = moved;
		if (next == block)
			return 1;
		moved = next;
	}
	return 0;
}

/* The way that the tree says is the oldest. Nodes are numbered from 1, as those of a heap. */
static uint32_t oldest_way(uint64_t tree, uint32_t ways)
{
	uint32_t node = 1;

	while (node < ways)
		node = 2 * node + (uint32_t)(tree >> node & 1);
	return node - ways;
}

/* The tree, with all nodes on the path to the way pointing away from it. */
static uint64_t point_away(uint64_t tree, uint32_t ways, uint32_t way)
{
	uint32_t node;

	for (node = way + ways; node > 1; node /= 2) {
		if (node & 1)
			tree &= ~(UINT64_C(1) << (node / 2));
		else
			tree |= UINT64_C(1) << (node / 2);
	}
	return tree;
}

static int touch_plru(uint64_t *blocks, uint64_t *tree, uint32_t ways, uint64_t block)
{
	uint32_t way;

	for (way = 0; way < ways && blocks[way] != block; way++)
		;
	if (way < ways) {
		*tree = point_away(*tree, ways, way);
		return 1;
	}
	for (way = 0; way < ways && blocks[way]; way++)
		;
	if (way == ways)
		way = oldest_way(*tree, ways);
	blocks[way] = block;
	*tree = point_away(*tree, ways, way);
	return 0;
}

static int touch(struct hierarchy_part *p, uint64_t block)
{
	uint32_t set = (uint32_t)block & (p->part.sets - 1);
	uint64_t *blocks = p->blocks + (size_t)set * p->part.ways;

	if (p->part.replacement == PEM_HARDWARE_PLRU)
		return touch_plru(blocks, &p->trees[set], p->part.ways, block + 1);
	return touch_lru(blocks, p->part.ways, block + 1);
}

/* --- accesses --- */

/* Returns 1 if the part had all of it. */
static int has_all(struct hierarchy_part *p, uint64_t address, uint32_t bytes)
{
	uint64_t block = address >> p->part.shift;
	uint64_t last = (address + bytes - 1) >> p->part.shift;
	int has = touch(p, block);

	while (block++ < last)
		has &= touch(p, block);
	return has;
}

/* Ask one part after the other. Returns the index of the one that answers; count: none does. */
static uint32_t ask(const struct hierarchy_chain *chain, uint64_t address, uint32_t bytes)
{
	uint32_t i;

	for (i = 0; i < chain->count; i++)
		if (has_all(chain->parts[i], address, bytes))
			break;
	return i;
}

/*
 * Is it in the block that its set used last? Then asking changes nothing. Most accesses are.
 */
static inline int is_last_used(const struct hierarchy_chain *chain, uint64_t address,
			       uint32_t bytes)
{
	const struct hierarchy_part *p = chain->parts[0];
	uint64_t block;

	if (!chain->count)
		return 1;
	block = address >> p->part.shift;
	return p->part.replacement == PEM_HARDWARE_LRU &&
	       block == (address + bytes - 1) >> p->part.shift &&
	       p->blocks[(size_t)((uint32_t)block & (p->part.sets - 1)) * p->part.ways] ==
		       block + 1;
}

static void translate(struct hierarchy *h, const struct hierarchy_chain *tlbs, uint64_t address,
		      uint32_t bytes, enum pem_simulated first_misses)
{
	uint32_t i, answers = ask(tlbs, address, bytes);

	if (!answers) /* the first one, or there is no TLB at all */
		return;
	for (i = 0; i < answers; i++) {
		if (tlbs->parts[i]->part.level == 1)
			h->counts[first_misses]++;
		else if (tlbs->parts[i]->part.level == 2)
			h->counts[PEM_SIMULATED_L2_TLB_MISSES]++;
	}
	if (answers < tlbs->count) {
		h->counts[PEM_SIMULATED_CYCLES] += tlbs->parts[answers]->part.cycles;
		return;
	}
	h->counts[PEM_SIMULATED_PAGE_WALKS]++;
	h->counts[PEM_SIMULATED_PAGE_WALK_CYCLES] += h->walk_cycles;
	h->counts[PEM_SIMULATED_CYCLES] += h->walk_cycles;
}

/* Count that a cache was asked, and whether it lacked it. */
static void count_cache(struct hierarchy *h, uint32_t level, int missed,
			enum pem_simulated first_misses)
{
	if (level == 1) {
		h->counts[first_misses] += (uint64_t)missed;
	} else if (level == 2) {
		h->counts[PEM_SIMULATED_L2_ACCESSES]++;
		h->counts[PEM_SIMULATED_L2_MISSES] += (uint64_t)missed;
	} else {
		h->counts[PEM_SIMULATED_L3_ACCESSES]++;
		h->counts[PEM_SIMULATED_L3_MISSES] += (uint64_t)missed;
	}
}

static void reach(struct hierarchy *h, const struct hierarchy_chain *caches, uint64_t address,
		  uint32_t bytes, enum pem_simulated first_misses)
{
	uint32_t i, answers = ask(caches, address, bytes);

	if (!answers)
		return;
	for (i = 0; i < caches->count && i <= answers; i++)
		count_cache(h, caches->parts[i]->part.level, i < answers, first_misses);
	if (answers < caches->count) {
		h->counts[PEM_SIMULATED_CYCLES] += caches->parts[answers]->part.cycles;
		return;
	}
	h->counts[PEM_SIMULATED_LAST_LEVEL_MISSES]++;
	h->counts[PEM_SIMULATED_CYCLES] += h->memory_cycles;
}

void hierarchy__fetch(struct hierarchy *h, uint64_t address, uint32_t bytes)
{
	if (is_last_used(&h->code_tlbs, address, bytes) && is_last_used(&h->code, address, bytes))
		return;
	translate(h, &h->code_tlbs, address, bytes, PEM_SIMULATED_CODE_TLB_MISSES);
	reach(h, &h->code, address, bytes, PEM_SIMULATED_L1_CODE_MISSES);
}

static void refer(struct hierarchy *h, uint64_t address, uint32_t bytes)
{
	if (is_last_used(&h->data_tlbs, address, bytes) && is_last_used(&h->data, address, bytes))
		return;
	translate(h, &h->data_tlbs, address, bytes, PEM_SIMULATED_DATA_TLB_MISSES);
	reach(h, &h->data, address, bytes, PEM_SIMULATED_L1_DATA_MISSES);
}

void hierarchy__load(struct hierarchy *h, uint64_t address, uint32_t bytes)
{
	h->counts[PEM_SIMULATED_LOADS]++;
	refer(h, address, bytes);
}

void hierarchy__store(struct hierarchy *h, uint64_t address, uint32_t bytes)
{
	h->counts[PEM_SIMULATED_STORES]++;
	refer(h, address, bytes);
}

/* --- setting up --- */

static size_t words_of(const struct pem_hardware_part *part)
{
	return (size_t)part->sets * part->ways +
	       (part->replacement == PEM_HARDWARE_PLRU ? part->sets : 0);
}

size_t hierarchy__bytes(const struct pem_hardware *hardware)
{
	size_t words = 0;
	uint32_t i;

	for (i = 0; i < hardware->cache_count; i++)
		words += words_of(&hardware->caches[i]);
	for (i = 0; i < hardware->tlb_count; i++)
		words += words_of(&hardware->tlbs[i]);
	return words * sizeof(uint64_t);
}

static void add(struct hierarchy_chain *chain, struct hierarchy_part *p, uint32_t kind)
{
	if (p->part.serves & kind && chain->count < PEM_HARDWARE_LEVELS_MAX)
		chain->parts[chain->count++] = p;
}

static uint64_t *add_parts(struct hierarchy_part *parts, const struct pem_hardware_part *given,
			   uint32_t count, struct hierarchy_chain *code,
			   struct hierarchy_chain *data, uint64_t *memory)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		parts[i].part = given[i];
		parts[i].blocks = memory;
		parts[i].trees = memory + (size_t)given[i].sets * given[i].ways;
		memory += words_of(&given[i]);
		add(code, &parts[i], PEM_HARDWARE_CODE);
		add(data, &parts[i], PEM_HARDWARE_DATA);
	}
	return memory;
}

void hierarchy__init(struct hierarchy *h, const struct pem_hardware *hardware, void *memory)
{
	*h = (struct hierarchy){.memory_cycles = hardware->memory_cycles,
				.walk_cycles = hardware->walk_cycles};
	memory = add_parts(h->caches, hardware->caches, hardware->cache_count, &h->code, &h->data,
			   memory);
	add_parts(h->tlbs, hardware->tlbs, hardware->tlb_count, &h->code_tlbs, &h->data_tlbs,
		  memory);
}
