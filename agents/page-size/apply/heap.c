// SPDX-License-Identifier: MIT
/* heap.c - arenas under their locks, and counts for the report */
#include "heap.h"

#include "extents.h"
#include "large.h"
#include "look.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

/*
 * In the middle of the lower half of 47 or 48 bits, far from what the kernel places by itself:
 * programs and their heap below, mappings and stacks above.
 */
#define RANGE_BASE UINT64_C(0x600000000000)
#define RANGE_SHIFT 44u
#define SLOT_SHIFT_MAX 40u
#define RANDOM_CHUNKS (UINT64_C(1) << 21) /* 4 TiB */
/*
 * The arenas begin at different numbers of chunks behind their slots. Processors tell lines of a
 * set apart by few bits of the address (AMD: 12 to 27), so equal offsets in arenas that lie at
 * multiples of a large power of two would displace each other.
 */
#define COLOURS 128u
#define COLOUR_STEP 45u
/* Within a large page the same of a second-level cache, whose ways have up to 32 pages. */
#define PAGE_COLOURS 16u
#define PAGE_COLOUR_STEP 7u

uintptr_t heap__base;
uint64_t heap__bytes;
uint32_t heap__slot_shift;
static struct heap_site sites[PAGE_APPLY_SITES_MAX];

static uint32_t slot_count;

static void released(void *data, uintptr_t start, uintptr_t end)
{
	(void)data;
	large__released(start, end);
}

void heap__init(const struct directives *directives, uint64_t random)
{
	uint32_t i, bits;

	for (i = 0; i < directives->count; i++) {
		if (directives->list[i].site.kind == PAGE_SITE_HEAP)
			slot_count = i + 1;
	}
	if (!slot_count)
		return;
	bits = slot_count > 1 ? 32 - (uint32_t)__builtin_clz(slot_count - 1) : 0;
	heap__slot_shift = RANGE_SHIFT - bits;
	if (heap__slot_shift > SLOT_SHIFT_MAX)
		heap__slot_shift = SLOT_SHIFT_MAX;
	heap__base = RANGE_BASE + random % RANDOM_CHUNKS * ARENA_CHUNK;
	for (i = 0; i < slot_count; i++) {
		struct heap_site *site = &sites[i];
		struct arena_pages pages = {.released = released,
					    .colour = i * PAGE_COLOUR_STEP % PAGE_COLOURS};

		arena__init(&site->arena,
			    heap__base + ((uintptr_t)i << heap__slot_shift) +
				    (uintptr_t)(i * COLOUR_STEP % COLOURS) * ARENA_CHUNK,
			    ((uint64_t)1 << heap__slot_shift) - (uint64_t)COLOURS * ARENA_CHUNK,
			    &pages);
		if (directives->list[i].site.kind == PAGE_SITE_HEAP)
			extents__add(i, site->arena.base, site->arena.base + site->arena.limit);
		site->least = directives->list[i].least;
		site->counts = &counts__all[i];
	}
	heap__bytes = (uint64_t)slot_count << heap__slot_shift;
}

static struct heap_site *site_of(const void *block)
{
	return &sites[((uintptr_t)block - heap__base) >> heap__slot_shift];
}

bool heap__owns_slow(uintptr_t block)
{
	const struct heap_site *site = site_of((void *)block);
	/* It only grows, and whoever has a block has seen it grown. */
	uint32_t mapped = __atomic_load_n(&site->arena.mapped, __ATOMIC_RELAXED);

	return block - site->arena.base < (uint64_t)mapped * ARENA_PAGE;
}

void heap__altered(uintptr_t start, size_t bytes)
{
	uint32_t i;

	for (i = 0; i < slot_count; i++) {
		struct arena *arena = &sites[i].arena;
		uint32_t mapped = __atomic_load_n(&arena->mapped, __ATOMIC_RELAXED);

		if (start < arena->base + (uint64_t)mapped * ARENA_PAGE &&
		    start + bytes > arena->base)
			__atomic_store_n(&arena->altered, true, __ATOMIC_RELAXED);
	}
}

void *heap__alloc(uint32_t directive, size_t size, size_t alignment, bool zero)
{
	struct heap_site *site = &sites[directive];
	uint32_t used;
	void *block;

	if (size < site->least || !heap__bytes)
		return NULL;
	if (!lock__take(&site->lock))
		return NULL;
	used = site->arena.used;
	block = arena__alloc(&site->arena, size, alignment, zero);
	if (block) {
		site->counts->requests++;
		counts__set(site->counts, site->arena.block_bytes);
	} else {
		site->counts->reason = "kernel";
	}
	used = site->arena.used - used;
	lock__release(&site->lock);
	if (used)
		look__grown();
	return block;
}

void heap__free(void *block)
{
	struct heap_site *site = site_of(block);

	if (!lock__take(&site->lock))
		return; /* the block is lost */
	arena__free(&site->arena, block);
	counts__set(site->counts, site->arena.block_bytes);
	lock__release(&site->lock);
}

size_t heap__usable(const void *block)
{
	struct heap_site *site = site_of(block);
	bool locked = lock__take(&site->lock);
	size_t usable = arena__usable(&site->arena, block);

	if (locked)
		lock__release(&site->lock);
	return usable;
}

/* Whole pages of a block that is no longer used, before it is freed. */
static void drop_pages(uintptr_t start, uintptr_t end)
{
	size_t bytes = end / ARENA_PAGE * ARENA_PAGE - start;
	int saved = errno;

	large__released(start, end);
	if (syscall(SYS_madvise, start, bytes, MADV_DONTNEED_LOCKED))
		syscall(SYS_madvise, start, bytes, MADV_DONTNEED);
	errno = saved;
}

void heap__copy(void *to, void *from, size_t bytes)
{
	uintptr_t start = (uintptr_t)from, drop;
	size_t at = 0, part;

	for (; at < bytes; at += part) {
		part = bytes - at < ARENA_CHUNK ? bytes - at : ARENA_CHUNK;
		memcpy((char *)to + at, (char *)from + at, part);
		drop = (start + at + ARENA_PAGE - 1) / ARENA_PAGE * ARENA_PAGE;
		if (bytes > ARENA_CHUNK && drop + ARENA_PAGE <= start + at + part)
			drop_pages(drop, start + at + part);
	}
}

void *heap__resize(void *block, size_t size)
{
	struct heap_site *site = site_of(block);
	size_t was = 0;
	void *moved;

	if (!lock__take(&site->lock))
		return NULL;
	site->counts->requests++;
	moved = block;
	if (!arena__resize(&site->arena, block, size))
		moved = arena__move(&site->arena, block, size);
	if (!moved) {
		was = arena__usable(&site->arena, block);
		moved = arena__alloc(&site->arena, size, 16, false);
	}
	counts__set(site->counts, site->arena.block_bytes);
	lock__release(&site->lock);
	look__grown();
	if (!was || !moved)
		return moved;
	/* The block is the caller's: no lock is held while it is copied. */
	heap__copy(moved, block, was < size ? was : size);
	heap__free(block);
	return moved;
}

bool heap__look(uint32_t directive, struct large_look *look)
{
	struct heap_site *site = &sites[directive];
	uintptr_t end;
	bool found;

	if (!heap__bytes || !lock__try(&site->lock))
		return false;
	if (look->at < site->arena.base)
		look->at = site->arena.base;
	end = site->arena.base + arena__bytes(&site->arena);
	found = look->at < end;
	if (found)
		large__look(directive, look, end);
	lock__release(&site->lock);
	return found;
}

void heap__before_fork(void)
{
	uint32_t i;

	for (i = 0; i < slot_count; i++)
		lock__before_fork(&sites[i].lock);
}

void heap__after_fork(bool is_child)
{
	uint32_t i;

	for (i = 0; i < slot_count; i++) {
		lock__after_fork(&sites[i].lock, is_child);
	}
}
