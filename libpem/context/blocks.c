/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * blocks.c - memory that is allocated: which block a release, a realloc or an access is of
 *
 * Blocks of one address and group are a list, the newest first. There are two where realloc has
 * moved a block, and another thread got the old address before realloc's record was raised: that
 * record ends the older one.
 *
 * For accesses, blocks are also in buckets: a block of a size class, of up to 2^n bytes, is in the
 * bucket of its address divided by 2^n. So the block that contains an address is in one of two
 * buckets of each class. They are put there by the next access: most blocks are released before
 * one.
 */
#include "pass.h"

#include <errno.h>
#include <stdlib.h>

#define SLAB_BLOCKS 1024u

struct pem_held {
	struct pem_block block;
	struct pem_life_process *process;
	struct pem_life_thread *thread;
	uint64_t begin_clock;
	struct pem_held *older; /* of the same key; free: the next free one */
	uint64_t bucket; /* key of its bucket; 0: it is among the new ones */
	struct pem_held *bucket_next, *bucket_previous; /* or of the new ones */
	uint32_t source;
	uint32_t scope;
};

struct pem_slab {
	struct pem_slab *next;
	struct pem_held blocks[SLAB_BLOCKS];
};

void pem_blocks__free(struct pem_blocks *blocks)
{
	struct pem_slab *slab;

	while (blocks->slabs) {
		slab = blocks->slabs;
		blocks->slabs = slab->next;
		free(slab);
	}
	pem_keys__free(&blocks->by_address);
	pem_keys__free(&blocks->by_bucket);
}

static struct pem_held *new_held(struct pem_blocks *blocks)
{
	struct pem_held *held;
	struct pem_slab *slab;
	size_t i;

	if (!blocks->free) {
		slab = malloc(sizeof(*slab));
		if (!slab)
			return NULL;
		slab->next = blocks->slabs;
		blocks->slabs = slab;
		for (i = 0; i < SLAB_BLOCKS; i++) {
			slab->blocks[i].older = blocks->free;
			blocks->free = &slab->blocks[i];
		}
	}
	held = blocks->free;
	blocks->free = held->older;
	return held;
}

/* --- buckets --- */

#define CLASS_MAX 62u /* no memory is larger */

static unsigned class_of(uint64_t size)
{
	unsigned class = size <= 16 ? 4 : 64 - (unsigned)__builtin_clzll(size - 1);

	return class < CLASS_MAX ? class : CLASS_MAX;
}

static uint64_t bucket_key(const struct pem_life_process *process, unsigned class, uint64_t bucket)
{
	return pem_mix2(bucket,
			(uint64_t)(process ? process->process.number + 1 : 0) << 8 | class) |
	       1;
}

static int put_in_bucket(struct pem_blocks *blocks, struct pem_held *held)
{
	unsigned class = class_of(held->block.size);
	void **first;

	held->bucket = bucket_key(held->process, class, held->block.address >> class);
	first = pem_keys__at(&blocks->by_bucket, held->bucket);
	if (!first)
		return -ENOMEM;
	held->bucket_previous = NULL;
	held->bucket_next = *first;
	if (held->bucket_next)
		held->bucket_next->bucket_previous = held;
	*first = held;
	blocks->classes |= 1ull << class;
	return 0;
}

static void put_among_new(struct pem_blocks *blocks, struct pem_held *held)
{
	held->bucket = 0;
	held->bucket_previous = NULL;
	held->bucket_next = blocks->unsorted;
	if (held->bucket_next)
		held->bucket_next->bucket_previous = held;
	blocks->unsorted = held;
}

/* Put all new blocks into their buckets. */
static int sort_new(struct pem_blocks *blocks)
{
	struct pem_held *held;
	int rc = 0;

	while (!rc && blocks->unsorted) {
		held = blocks->unsorted;
		blocks->unsorted = held->bucket_next;
		if (blocks->unsorted)
			blocks->unsorted->bucket_previous = NULL;
		rc = put_in_bucket(blocks, held);
	}
	return rc;
}

static void take_from_bucket(struct pem_blocks *blocks, struct pem_held *held)
{
	void **first;

	if (held->bucket_next)
		held->bucket_next->bucket_previous = held->bucket_previous;
	if (held->bucket_previous) {
		held->bucket_previous->bucket_next = held->bucket_next;
		return;
	}
	if (!held->bucket) {
		blocks->unsorted = held->bucket_next;
		return;
	}
	first = pem_keys__find(&blocks->by_bucket, held->bucket);
	*first = held->bucket_next;
	if (!held->bucket_next)
		pem_keys__remove(&blocks->by_bucket, first);
}

static bool is_sure(const struct pem_pass *pass, const struct pem_held *held)
{
	return PEM_LIKELY(!pass->losses_seen) ||
	       held->begin_clock >= pem_pass__loss(pass, (enum pem_scope)held->scope, held->source,
						   held->process, held->thread, PEM_NO_CPU);
}

static struct pem_held *in_bucket(const struct pem_pass *pass, uint64_t key, uint64_t address)
{
	void **first = pem_keys__find(&pass->blocks.by_bucket, key);
	struct pem_held *held = first ? *first : NULL;

	for (; held; held = held->bucket_next)
		if (held->process == pass->process && address >= held->block.address &&
		    address - held->block.address < held->block.size && is_sure(pass, held))
			return held;
	return NULL;
}

static int find_access(struct pem_pass *pass, uint64_t address)
{
	struct pem_held *held = NULL;
	uint64_t classes, bucket;
	unsigned class;
	int rc = sort_new(&pass->blocks);

	if (rc)
		return rc;
	classes = pass->blocks.classes;
	for (; !held && classes; classes &= classes - 1) {
		class = (unsigned)__builtin_ctzll(classes);
		bucket = address >> class;
		held = in_bucket(pass, bucket_key(pass->process, class, bucket), address);
		if (!held && bucket)
			held = in_bucket(pass, bucket_key(pass->process, class, bucket - 1),
					 address);
	}
	if (held)
		pass->around->block = &held->block;
	return 0;
}

/* --- holding and letting go --- */

/* Never 0. Within a process each address has another key. */
static uint64_t address_key(const struct pem_pass *pass, const struct pem_plan *plan,
			    const struct pem_record *record, uint64_t address)
{
	uint64_t where = pem_pass__where(pass, plan, record) << 32 | plan->group;
	uint64_t keys = pem_plan__keys(plan, record);
	uint64_t key = pem_mix(keys ^ where) ^ address * 0x9e3779b97f4a7c15ull;

	return key ? key : 1;
}

/* Let go of a block of a list; newer: the one before it, or NULL. */
static void let_go(struct pem_pass *pass, void **first, struct pem_held *newer,
		   struct pem_held *held)
{
	struct pem_blocks *all = &pass->blocks;

	if (newer)
		newer->older = held->older;
	else
		*first = held->older;
	if (!*first)
		pem_keys__remove(&all->by_address, first);
	if (pass->plans.has_access)
		take_from_bucket(all, held);
	held->older = all->free;
	all->free = held;
	all->held--;
}

/*
 * Release the block at an address: the newest one there, or, as the old block of a realloc, the
 * oldest. Returns it, whose memory is used again by the next allocation, or NULL: it is unknown.
 */
static const struct pem_block *release(struct pem_pass *pass, const struct pem_plan *plan,
				       const struct pem_record *record, uint64_t address,
				       bool is_old)
{
	void **first =
		pem_keys__find(&pass->blocks.by_address, address_key(pass, plan, record, address));
	struct pem_held *held = first ? *first : NULL, *newer = NULL;
	bool sure;

	while (held && is_old && held->older) {
		newer = held;
		held = held->older;
	}
	sure = held && is_sure(pass, held);
	if (held)
		let_go(pass, first, newer, held);
	if (sure)
		return &held->block;
	pass->unknown.releases++;
	pass->around->is_unmatched = 1;
	return NULL;
}

/*
 * A block where two are already: one of them was released by a call that nobody observed. It is
 * the oldest.
 */
static void drop_oldest(struct pem_pass *pass, struct pem_held *newest)
{
	struct pem_held *newer = newest, *held = newest->older;
	void *first = newest;

	if (!held || !held->older)
		return;
	while (held->older) {
		newer = held;
		held = held->older;
	}
	let_go(pass, &first, newer, held);
	pass->unknown.releases++;
}

static void describe(struct pem_pass *pass, const struct pem_plan *plan,
		     const struct pem_record *record, uint64_t address, struct pem_block *block)
{
	*block = (struct pem_block){
		.address = address,
		.size = pem_number__load(plan->size, record->data),
		.begin_ns = record->time_ns,
		.code = pem_number__load(plan->code, record->data),
		.event = record->event,
		.thread = pass->thread ? &pass->thread->thread : NULL,
		.stack = pem_number__load(plan->stack, record->data),
	};
	pass->around->block = block;
}

static int hold(struct pem_pass *pass, const struct pem_plan *plan, const struct pem_record *record,
		uint64_t address)
{
	struct pem_blocks *all = &pass->blocks;
	struct pem_held *held;
	void **first;

	if (all->held >= pass->open_max) {
		pass->unknown.left_out++;
		describe(pass, plan, record, address, &all->left_out);
		return 0;
	}
	first = pem_keys__at(&all->by_address, address_key(pass, plan, record, address));
	held = first ? new_held(all) : NULL;
	if (!held)
		return -ENOMEM;
	describe(pass, plan, record, address, &held->block);
	held->process = pass->process;
	held->thread = pass->thread;
	held->begin_clock = record->clock;
	held->source = record->source;
	held->scope = plan->scope;
	held->older = *first;
	*first = held;
	all->held++;
	if (pass->plans.has_access)
		put_among_new(all, held);
	drop_oldest(pass, held);
	return 0;
}

int pem_blocks__record(struct pem_pass *pass, const struct pem_plan *plan,
		       const struct pem_record *record)
{
	uint64_t address = pem_number__load(plan->address, record->data);
	uint64_t old = pem_number__load(plan->old_address, record->data);
	const struct pem_block *ended;

	if (plan->meaning == PEM_MEANS_ACCESS)
		return find_access(pass, address);
	if (plan->group == PEM_NONE || !pem_pass__is_placed(pass, plan, record))
		return 0;
	if (plan->meaning == PEM_MEANS_RELEASE) {
		if (address)
			pass->around->block = release(pass, plan, record, address, false);
		return 0;
	}
	/* An allocation that failed changes nothing: the old block stays. */
	if (!address)
		return 0;
	ended = old ? release(pass, plan, record, old, true) : NULL;
	if (ended) {
		pass->blocks.old_block = *ended;
		pass->around->old_block = &pass->blocks.old_block;
	}
	return hold(pass, plan, record, address);
}

int pem_pass__blocks(const struct pem_pass *pass,
		     int (*visit)(void *arg, const struct pem_pass_process *process,
				  const struct pem_block *block),
		     void *arg)
{
	const struct pem_keys *keys;
	size_t i;
	int rc = 0;

	if (!pass || !visit)
		return -EINVAL;
	keys = &pass->blocks.by_address;
	for (i = 0; !rc && i < keys->size; i++) {
		const struct pem_held *held = keys->entries[i].key ? keys->entries[i].first : NULL;

		if (held && is_sure(pass, held))
			rc = visit(arg, held->process ? &held->process->process : NULL,
				   &held->block);
	}
	return rc;
}
