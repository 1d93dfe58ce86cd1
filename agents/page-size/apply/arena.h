/* SPDX-License-Identifier: MIT */
/*
 * arena.h - an allocator in a range of addresses of its own, whose pages have the size one wants
 *
 * Not here: which requests come to an arena, and how many large pages there may be.
 *
 * The memory of an arena holds blocks and nothing else: its bookkeeping lies elsewhere, so that
 * large pages hold data only.
 *
 * A span is a run of pages of 4 KiB: free (no mapping), empty (a mapping without memory), idle
 * (memory that no block uses), one large block, or small blocks of one size class. Invariants: the
 * spans cover the arena's pages without gap or overlap; two free, empty or idle spans are never
 * neighbours; no more than IDLE_PAGES and a 32nd of the used pages are idle after a block was
 * freed, apart from idle spans of less than RELEASE_PAGES (runs.c). So an arena has little more
 * memory than its blocks need.
 *
 * One thread at a time may use an arena. Functions keep errno. Nothing here calls an allocator.
 */
#ifndef PAGE_APPLY_ARENA_H
#define PAGE_APPLY_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_PAGE 4096u
#define ARENA_CHUNK (2u << 20)
#define ARENA_CHUNK_PAGES (ARENA_CHUNK / ARENA_PAGE)
#define ARENA_SMALL_MAX 65536u
#define ARENA_CLASSES 144u
#define ARENA_BINS 32u
#define ARENA_BITS 512u /* small blocks of a span, at most */

enum arena_span_state {
	ARENA_SPAN_FREE,
	ARENA_SPAN_EMPTY,
	ARENA_SPAN_IDLE,
	ARENA_SPAN_LARGE,
	ARENA_SPAN_SMALL
};

struct arena_span {
	uint32_t page, pages;
	uint32_t next, previous; /* in a bin, or in the list of a class; 0: none */
	uint16_t used; /* small blocks */
	uint8_t state;
	uint8_t class;
	uint64_t bits[ARENA_BITS / 64]; /* small blocks in use */
};

/* Memory of the arena's own, which grows and then may move. */
struct arena_table {
	void *at;
	size_t bytes;
};

struct arena_pages {
	/* The arena gives the memory between these addresses back to the kernel. NULL: ignored. */
	void (*released)(void *data, uintptr_t start, uintptr_t end);
	/*
	 * A run of more than a chunk that begins with a chunk begins this many pages further on, if
	 * its last chunk has space. So equal offsets in arrays of several arenas are not all in the
	 * same set of a cache, which large pages would make them. Less than 16, since these pages
	 * are holes in a large page.
	 */
	uint32_t colour;
	void *data;
};

struct arena {
	uintptr_t base; /* a multiple of ARENA_CHUNK */
	uint64_t limit; /* bytes of addresses */
	struct arena_pages pages;
	uint32_t mapped; /* pages, with memory or without */
	uint32_t used; /* pages of blocks' spans */
	uint32_t idle; /* pages of idle spans that are large enough to be released */
	uint32_t kept; /* of used, pages of spans whose small blocks are all free */
	uint32_t span_count, span_free; /* the list of structures not in use, through next */
	uint64_t block_bytes; /* of blocks in use */
	/*
	 * The program changed mappings of the arena: protected, unmapped or replaced pages of a
	 * block. Set by any thread, and never taken back.
	 */
	bool altered;
	struct arena_table spans; /* struct arena_span; number 0 is none */
	/* uint32_t: the span of a page; of free, idle and large spans, of the first and last only
	 */
	struct arena_table map;
	uint32_t bins[3][ARENA_BINS]; /* free, empty and idle spans of 2^n pages and more */
	uint32_t classes[ARENA_CLASSES]; /* small spans that have space */
};

/* Nothing is mapped before the first allocation. */
void arena__init(struct arena *arena, uintptr_t base, uint64_t limit,
		 const struct arena_pages *pages);
/*
 * A block of size bytes (0 is taken for 1) at a multiple of alignment, a power of two; at least 16.
 * zero: its bytes are 0. NULL: there is no room, or the kernel gives no memory.
 */
void *arena__alloc(struct arena *arena, size_t size, size_t alignment, bool zero);
/* Release a block. What is no block, or was released, is left alone. */
void arena__free(struct arena *arena, void *block);
/* Make a block larger or smaller where it is. false: it can't be; nothing changed. */
bool arena__resize(struct arena *arena, void *block, size_t size);
/* Bytes of a block; 0: it is none. */
size_t arena__usable(const struct arena *arena, const void *block);
/*
 * Move a large block to where it can have size bytes, with its memory: nothing is copied. NULL: it
 * is no large block, or there is no such place; nothing changed.
 */
void *arena__move(struct arena *arena, void *block, size_t size);
/* Bytes of addresses that the arena uses, from base on. */
static inline uint64_t arena__bytes(const struct arena *arena)
{
	return (uint64_t)arena->mapped * ARENA_PAGE;
}
/* Are the invariants above kept? For tests. */
bool arena__check(const struct arena *arena);

#endif
