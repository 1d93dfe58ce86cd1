// SPDX-License-Identifier: MIT
/*
 * collector.c - see collector.h
 */
#include "collector.h"

#include "stubs/gc.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct heap {
	uint8_t *space; /* capacity pages; the first used pages were touched */
	size_t capacity, used, page_bytes;
	uint32_t collections;
};

/*
 * Map fresh memory. The kernel provides a page at its first touch. A huge page would be provided at
 * one touch instead of 512, so huge pages are off, because the example counts touches.
 */
static uint8_t *map_space(const struct heap *heap)
{
	uint8_t *space = mmap(NULL, heap->capacity * heap->page_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (space == MAP_FAILED)
		return NULL;
	madvise(space, heap->capacity * heap->page_bytes, MADV_NOHUGEPAGE);
	return space;
}

struct heap *heap_new(size_t capacity)
{
	struct heap *heap = calloc(1, sizeof(*heap));

	if (!heap)
		return NULL;
	heap->capacity = capacity;
	heap->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	heap->space = map_space(heap);
	if (!heap->space) {
		free(heap);
		return NULL;
	}
	return heap;
}

void heap_free(struct heap *heap)
{
	if (!heap)
		return;
	munmap(heap->space, heap->capacity * heap->page_bytes);
	free(heap);
}

int heap_allocate(struct heap *heap, size_t pages)
{
	size_t i;

	if (pages > heap->capacity - heap->used)
		return -ENOMEM;
	for (i = 0; i < pages; i++)
		*(volatile uint8_t *)(heap->space + (heap->used + i) * heap->page_bytes) = 1;
	heap->used += pages;
	return 0;
}

int heap_collect(struct heap *heap)
{
	size_t kept = heap->used / 2, freed = heap->used - kept;
	uint8_t *to;

	heap->collections++;
	pem_notify_gc_start(heap->collections, heap->used * heap->page_bytes);
	to = map_space(heap);
	if (to) {
		memcpy(to, heap->space, kept * heap->page_bytes);
		munmap(heap->space, heap->capacity * heap->page_bytes);
		heap->space = to;
		heap->used = kept;
	}
	pem_notify_gc_end(heap->collections, heap->used * heap->page_bytes,
			  to ? freed * heap->page_bytes : 0);
	return to ? 0 : -ENOMEM;
}
