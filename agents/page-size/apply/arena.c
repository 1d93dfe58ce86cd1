// SPDX-License-Identifier: MIT
/* arena.c - blocks: size classes, and runs of pages (runs.c) for larger ones */
#include "runs.h"

#include <string.h>

/* The least and most blocks of a span of small blocks, but for those that ARENA_BITS limits. */
#define SPAN_BYTES 65536u
#define SPAN_BLOCKS_MIN 8u
/* Spans without a block in use that an arena keeps: of so many pages at most, and in all. */
#define KEPT_SPAN_PAGES 16u
#define KEPT_PAGES 128u

/* Classes: multiples of 16 up to 256, then 16 for each doubling: at most a 16th is lost. */
static uint32_t class_of(size_t size)
{
	uint32_t shift;

	if (size <= 256)
		return size ? (uint32_t)(size - 1) / 16 : 0;
	shift = 63 - (uint32_t)__builtin_clzl(size - 1); /* 8: 257 to 512 */
	return 16 + (shift - 8) * 16 + ((uint32_t)((size - 1) >> (shift - 4)) & 15);
}

static uint32_t class_bytes(uint32_t class)
{
	uint32_t shift;

	if (class < 16)
		return (class + 1) * 16;
	shift = 8 + (class - 16) / 16;
	return (1u << shift) + ((class - 16) % 16 + 1) * (1u << (shift - 4));
}

static uint32_t class_blocks(uint32_t class)
{
	uint32_t blocks = SPAN_BYTES / class_bytes(class);

	if (blocks > ARENA_BITS)
		return ARENA_BITS;
	return blocks < SPAN_BLOCKS_MIN ? SPAN_BLOCKS_MIN : blocks;
}

/* No page is without a block: a large page can't be made while pages are untouched. */
static uint32_t class_pages(uint32_t class)
{
	return (class_blocks(class) * class_bytes(class) + ARENA_PAGE - 1) / ARENA_PAGE;
}

static void class_link(struct arena *arena, uint32_t n)
{
	struct arena_span *span = span_at(arena, n);
	uint32_t *first = &arena->classes[span->class];

	span->previous = 0;
	span->next = *first;
	if (*first)
		span_at(arena, *first)->previous = n;
	*first = n;
}

static void class_unlink(struct arena *arena, uint32_t n)
{
	struct arena_span *span = span_at(arena, n);

	if (span->previous)
		span_at(arena, span->previous)->next = span->next;
	else
		arena->classes[span->class] = span->next;
	if (span->next)
		span_at(arena, span->next)->previous = span->previous;
}

void arena__init(struct arena *arena, uintptr_t base, uint64_t limit,
		 const struct arena_pages *pages)
{
	memset(arena, 0, sizeof(*arena));
	arena->base = base;
	arena->limit = limit;
	arena->pages = *pages;
}

static uint32_t new_class_span(struct arena *arena, uint32_t class)
{
	uint32_t n = runs__take(arena, class_pages(class), 1, false), i;
	struct arena_span *span;

	if (!n)
		return 0;
	span = span_at(arena, n);
	span->state = ARENA_SPAN_SMALL;
	span->class = (uint8_t) class;
	span->used = 0;
	arena->kept += span->pages;
	memset(span->bits, 0, sizeof(span->bits));
	for (i = 0; i < span->pages; i++)
		page_map(arena)[span->page + i] = n;
	class_link(arena, n);
	return n;
}

static void *alloc_small(struct arena *arena, uint32_t class, bool zero)
{
	uint32_t n = arena->classes[class], i = 0;
	struct arena_span *span;
	char *block;

	if (!n)
		n = new_class_span(arena, class);
	if (!n)
		return NULL;
	span = span_at(arena, n);
	while (!~span->bits[i])
		i++;
	i = i * 64 + (uint32_t)__builtin_ctzl(~span->bits[i]);
	span->bits[i / 64] |= 1ull << i % 64;
	if (!span->used)
		arena->kept -= span->pages;
	if (++span->used == class_blocks(class))
		class_unlink(arena, n);
	arena->block_bytes += class_bytes(class);
	block = page_address(arena, span->page) + (size_t)i * class_bytes(class);
	if (zero)
		memset(block, 0, class_bytes(class));
	return block;
}

/* Blocks of a class whose size is a power of two lie at multiples of it, up to a page. */
static size_t small_size(size_t size, size_t alignment)
{
	if (alignment <= 16)
		return size;
	if (size < alignment)
		return alignment;
	return size <= ARENA_PAGE ? 1ul << (64 - __builtin_clzl(size - 1)) : SIZE_MAX;
}

void *arena__alloc(struct arena *arena, size_t size, size_t alignment, bool zero)
{
	size_t small = alignment <= ARENA_PAGE ? small_size(size, alignment) : SIZE_MAX;
	uint64_t pages, aligned = alignment / ARENA_PAGE;
	uint32_t n;

	if (small <= ARENA_SMALL_MAX)
		return alloc_small(arena, class_of(small), zero);
	if (size > arena->limit || alignment > arena->limit)
		return NULL;
	pages = (size + ARENA_PAGE - 1) / ARENA_PAGE;
	n = runs__take(arena, (uint32_t)(pages ? pages : 1), (uint32_t)(aligned ? aligned : 1),
		       zero);
	if (!n)
		return NULL;
	arena->block_bytes += (uint64_t)span_at(arena, n)->pages * ARENA_PAGE;
	return page_address(arena, span_at(arena, n)->page);
}

/* The span of a block, and its number in it; 0: the address is no block's that is in use. */
static uint32_t find(const struct arena *arena, const void *block, uint32_t *index)
{
	uint64_t at = (uintptr_t)block - arena->base, within;
	const struct arena_span *span;
	uint32_t n;

	if (at >= arena__bytes(arena))
		return 0;
	n = page_map(arena)[at / ARENA_PAGE];
	if (!n || n >= arena->span_count)
		return 0;
	span = span_at(arena, n);
	within = at - (uint64_t)span->page * ARENA_PAGE;
	*index = 0;
	if (span->state == ARENA_SPAN_LARGE)
		return within ? 0 : n;
	if (span->state != ARENA_SPAN_SMALL || within >= (uint64_t)span->pages * ARENA_PAGE ||
	    within % class_bytes(span->class))
		return 0;
	*index = (uint32_t)(within / class_bytes(span->class));
	return *index < ARENA_BITS && span->bits[*index / 64] >> *index % 64 & 1 ? n : 0;
}

void arena__free(struct arena *arena, void *block)
{
	uint32_t index, n = find(arena, block, &index);
	struct arena_span *span;

	if (!n)
		return;
	span = span_at(arena, n);
	if (span->state == ARENA_SPAN_LARGE) {
		arena->block_bytes -= (uint64_t)span->pages * ARENA_PAGE;
		runs__free(arena, n);
		return;
	}
	arena->block_bytes -= class_bytes(span->class);
	span->bits[index / 64] &= ~(1ull << index % 64);
	if (span->used-- == class_blocks(span->class))
		class_link(arena, n);
	if (span->used)
		return;
	arena->kept += span->pages;
	/* A small span stays, lest one block that comes and goes makes it again and again. */
	if (span->pages <= KEPT_SPAN_PAGES && arena->kept <= KEPT_PAGES)
		return;
	arena->kept -= span->pages;
	class_unlink(arena, n);
	runs__free(arena, n);
}

bool arena__resize(struct arena *arena, void *block, size_t size)
{
	uint32_t index, n = find(arena, block, &index);
	struct arena_span *span;
	uint32_t had, pages;

	if (!n || size > arena->limit)
		return false;
	span = span_at(arena, n);
	if (span->state == ARENA_SPAN_SMALL)
		return size <= ARENA_SMALL_MAX && class_of(size) == span->class;
	if (size <= ARENA_SMALL_MAX / 2)
		return false;
	had = span->pages;
	pages = (uint32_t)((size + ARENA_PAGE - 1) / ARENA_PAGE);
	if (!runs__resize(arena, n, pages))
		return false;
	arena->block_bytes += ((uint64_t)pages - had) * ARENA_PAGE;
	return true;
}

void *arena__move(struct arena *arena, void *block, size_t size)
{
	uint32_t index, n = find(arena, block, &index), had, pages;

	if (!n || size > arena->limit || size <= ARENA_SMALL_MAX ||
	    span_at(arena, n)->state != ARENA_SPAN_LARGE)
		return NULL;
	had = span_at(arena, n)->pages;
	pages = (uint32_t)((size + ARENA_PAGE - 1) / ARENA_PAGE);
	if (pages < had)
		return NULL;
	n = runs__move(arena, n, pages);
	if (!n)
		return NULL;
	arena->block_bytes += ((uint64_t)pages - had) * ARENA_PAGE;
	return page_address(arena, span_at(arena, n)->page);
}

size_t arena__usable(const struct arena *arena, const void *block)
{
	uint32_t index, n = find(arena, block, &index);
	const struct arena_span *span;

	if (!n)
		return 0;
	span = span_at(arena, n);
	return span->state == ARENA_SPAN_SMALL ? class_bytes(span->class)
					       : (size_t)span->pages * ARENA_PAGE;
}

/* --- invariants --- */

static bool check_small(const struct arena *arena, uint32_t n)
{
	const struct arena_span *span = span_at(arena, n);
	uint32_t i, used = 0;

	for (i = 0; i < span->pages; i++) {
		if (page_map(arena)[span->page + i] != n)
			return false;
	}
	for (i = 0; i < ARENA_BITS / 64; i++)
		used += (uint32_t)__builtin_popcountl(span->bits[i]);
	return used == span->used && used <= class_blocks(span->class);
}

bool arena__check(const struct arena *arena)
{
	uint32_t page = 0, used = 0, idle = 0, kept = 0, n;
	uint8_t before = ARENA_SPAN_LARGE;

	for (; page < arena->mapped; page += span_at(arena, n)->pages) {
		const struct arena_span *span;

		n = page_map(arena)[page];
		if (!n || n >= arena->span_count)
			return false;
		span = span_at(arena, n);
		if (span->page != page || !span->pages ||
		    page_map(arena)[page + span->pages - 1] != n)
			return false;
		if (span->state <= ARENA_SPAN_IDLE && span->state == before)
			return false;
		before = span->state;
		if (span->state == ARENA_SPAN_IDLE)
			idle += runs__idle_pages(span->pages);
		if (span->state <= ARENA_SPAN_IDLE)
			continue;
		used += span->pages;
		if (span->state == ARENA_SPAN_SMALL && !check_small(arena, n))
			return false;
		if (span->state == ARENA_SPAN_SMALL && !span->used)
			kept += span->pages;
	}
	return page == arena->mapped && used == arena->used && idle == arena->idle &&
	       kept == arena->kept;
}
