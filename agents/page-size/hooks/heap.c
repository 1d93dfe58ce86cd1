// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * heap.c - gives each context that asks for much memory of its own: heap.h of ../apply
 *
 * A heap is an arena of ../apply with small pages. It lies in slots of one range of addresses,
 * which is not reserved. A context whose heap is full gets another one, of twice the addresses.
 * What asks for little has memory of the C library's, of no site.
 */
#include "apply/heap.h"

#include "apply/look.h"
#include "hooks.h"

#include <errno.h>
#include <string.h>

/*
 * In the middle of the lower half of 47 or 48 bits, far from what the kernel places by itself:
 * programs and their heap below, mappings and stacks above.
 */
#define RANGE_BASE UINT64_C(0x600000000000)
#define RANGE_SHIFT 44u
#define SLOT_SHIFT 32u
#define SLOTS (1u << (RANGE_SHIFT - SLOT_SHIFT))
#define RANDOM_CHUNKS (UINT64_C(1) << 21) /* 4 TiB */

struct heap {
	struct lock lock;
	struct arena arena;
	struct context *context;
	uint32_t slots;
	uint64_t bytes; /* of addresses that were told */
	uint64_t most, told; /* bytes of blocks */
	uint64_t calls;
};

uintptr_t heap__base;
uint64_t heap__bytes;
uint32_t heap__slot_shift = SLOT_SHIFT;

static struct lock making;
static struct heap *heaps[SLOTS]; /* of each slot */
static struct heap all[SLOTS];
static uint32_t heap_count, slots_used;

void heap__start(uint64_t random)
{
	heap__base = RANGE_BASE + random % RANDOM_CHUNKS * ARENA_CHUNK;
	heap__bytes = (uint64_t)SLOTS << SLOT_SHIFT;
}

static struct heap *heap_at(uintptr_t block)
{
	/* The acquire pairs with the release in make. */
	return __atomic_load_n(&heaps[(block - heap__base) >> SLOT_SHIFT], __ATOMIC_ACQUIRE);
}

bool heap__owns_slow(uintptr_t block)
{
	const struct heap *heap = heap_at(block);

	return heap && block - heap->arena.base <
			       (uint64_t)__atomic_load_n(&heap->arena.mapped, __ATOMIC_RELAXED) *
				       ARENA_PAGE;
}

void heap__altered(uintptr_t start, size_t bytes)
{
	struct heap *heap;
	uint32_t i;

	for (i = 0; i < __atomic_load_n(&heap_count, __ATOMIC_ACQUIRE); i++) {
		heap = &all[i];
		if (start < heap->arena.base + arena__bytes(&heap->arena) &&
		    start + bytes > heap->arena.base)
			__atomic_store_n(&heap->arena.altered, true, __ATOMIC_RELAXED);
	}
}

/* --- heaps --- */

static struct heap *make(struct context *context, struct heap *full, size_t size)
{
	uint64_t slots = full ? 2 * (uint64_t)full->slots : 1, i;
	const struct arena_pages pages = {0};
	struct heap *heap = NULL;

	while (slots << SLOT_SHIFT < 2 * (uint64_t)size && slots < SLOTS)
		slots *= 2;
	if (!lock__take(&making))
		return NULL;
	heap = __atomic_load_n(&context->heap, __ATOMIC_RELAXED);
	if (heap != full) {
		lock__release(&making); /* another thread was quicker */
		return heap;
	}
	heap = NULL;
	if (slots_used + slots <= SLOTS) {
		heap = &all[heap_count];
		heap->context = context;
		heap->slots = (uint32_t)slots;
		arena__init(&heap->arena, heap__base + ((uintptr_t)slots_used << SLOT_SHIFT),
			    slots << SLOT_SHIFT, &pages);
		for (i = 0; i < slots; i++)
			__atomic_store_n(&heaps[slots_used + i], heap, __ATOMIC_RELEASE);
		slots_used += (uint32_t)slots;
		__atomic_store_n(&heap_count, heap_count + 1, __ATOMIC_RELEASE);
		__atomic_store_n(&context->heap, heap, __ATOMIC_RELEASE);
	}
	lock__release(&making);
	return heap;
}

/* After each change: the arena may have grown. */
static void note(struct heap *heap)
{
	uint64_t bytes = arena__bytes(&heap->arena);

	if (heap->most < heap->arena.block_bytes)
		heap->most = heap->arena.block_bytes;
	if (bytes == heap->bytes || !output__lock())
		return;
	heap->bytes = bytes;
	output__range(heap->arena.base, heap->arena.base + bytes, heap->context->site, 0);
	output__unlock();
}

static void *take(struct heap *heap, size_t size, size_t alignment, bool zero)
{
	void *block;

	if (!lock__take(&heap->lock))
		return NULL;
	block = arena__alloc(&heap->arena, size, alignment, zero);
	heap->calls += block != NULL;
	note(heap);
	lock__release(&heap->lock);
	return block;
}

void *heap__alloc(uint32_t directive, size_t size, size_t alignment, bool zero)
{
	struct context *context = sites__context(directive);
	struct heap *heap = __atomic_load_n(&context->heap, __ATOMIC_ACQUIRE);
	int saved = errno;
	void *block;

	if (size > (uint64_t)1 << (RANGE_SHIFT - 1))
		return NULL;
	if (!heap) {
		if (__atomic_add_fetch(&context->requested, size, __ATOMIC_RELAXED) <
			    OWN_MEMORY_BYTES ||
		    sites__number(context) == NO_SITE)
			return NULL;
		heap = make(context, NULL, size);
	}
	block = heap ? take(heap, size, alignment, zero) : NULL;
	if (heap && !block) {
		heap = make(context, heap, size);
		block = heap ? take(heap, size, alignment, zero) : NULL;
	}
	errno = saved;
	return block;
}

/* --- blocks --- */

void heap__free(void *block)
{
	struct heap *heap = heap_at((uintptr_t)block);

	if (!lock__take(&heap->lock))
		return; /* the block is lost */
	arena__free(&heap->arena, block);
	lock__release(&heap->lock);
}

size_t heap__usable(const void *block)
{
	struct heap *heap = heap_at((uintptr_t)block);
	bool locked = lock__take(&heap->lock);
	size_t usable = arena__usable(&heap->arena, block);

	if (locked)
		lock__release(&heap->lock);
	return usable;
}

void *heap__resize(void *block, size_t size)
{
	struct heap *heap = heap_at((uintptr_t)block);
	size_t was = 0;
	void *moved = NULL;

	if (!lock__take(&heap->lock))
		return NULL;
	if (arena__resize(&heap->arena, block, size))
		moved = block;
	else
		was = arena__usable(&heap->arena, block);
	note(heap);
	lock__release(&heap->lock);
	if (moved || !was)
		return moved;
	/* The site of a block stays. */
	moved = heap__alloc(heap->context->number, size, 16, false);
	if (!moved)
		return NULL;
	heap__copy(moved, block, was < size ? was : size);
	heap__free(block);
	return moved;
}

void heap__copy(void *to, void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

/* Nobody looks for large pages here. */
__thread uint32_t look__calls __attribute__((tls_model("initial-exec")));

void look__now(void)
{
	look__calls = UINT32_MAX;
}

/* --- the end, and fork --- */

void heap__tell(void)
{
	struct heap *heap;
	uint32_t i;

	for (i = 0; i < heap_count; i++) {
		heap = &all[i];
		if (heap->most != heap->told)
			output__range(heap->arena.base, heap->arena.base + heap->bytes,
				      heap->context->site, heap->most);
		heap->told = heap->most;
		output__calls(heap->context->site, heap->calls);
	}
}

void heap__before_fork(void)
{
	uint32_t i;

	lock__before_fork(&making);
	for (i = 0; i < heap_count; i++)
		lock__before_fork(&all[i].lock);
}

void heap__after_fork(bool is_child)
{
	uint32_t i;

	for (i = 0; i < heap_count; i++)
		lock__after_fork(&all[i].lock, is_child);
	lock__after_fork(&making, is_child);
}
