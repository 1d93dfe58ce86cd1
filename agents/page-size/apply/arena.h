/* SPDX-License-Identifier: MIT */
/*
 * arena.h - an allocator in a range of addresses of its own, whose pages have the size one wants
 *
 * Not here: which requests come to an arena, and how many large pages there may be.
 *
 * The memory of an arena holds blocks and nothing else: what is known about them lies elsewhere, so
 * that large pages hold data only. An arena consists of chunks of 2 MiB. A chunk is empty (no
 * memory behind it: it reads as zeros), large (a large page was granted), middle (pages of 64 KiB
 * were granted) or small.
 *
 * A span is a run of pages of 4 KiB: free, one large block, or small blocks of one size class.
 * Invariants: the spans cover the mapped pages without gap or overlap; two free spans are never
 * neighbours; an empty chunk overlaps free spans only.
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
#define ARENA_SMALL_MAX 16384u
#define ARENA_CLASSES 40u
#define ARENA_BINS 32u
#define ARENA_BITS 512u /* small blocks of a span, at most */

enum arena_span_state { ARENA_SPAN_FREE, ARENA_SPAN_LARGE, ARENA_SPAN_SMALL };

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
	/* How many of so many bytes may be large pages now: a multiple of ARENA_CHUNK. */
	uint64_t (*grant)(void *data, uint64_t bytes);
	/* Large pages are released next. */
	void (*before_release)(void *data);
	/* So many bytes of large pages are no longer there. */
	void (*give_back)(void *data, uint64_t bytes);
	/* So many that were granted the kernel did not give. Only of middle ones this is known. */
	void (*refuse)(void *data, uint64_t bytes, const char *reason);
	bool are_middle; /* what is granted is to be of 64 KiB (middle.h) */
	/*
	 * A run of more than a chunk that begins with a chunk begins so many pages further on, as
	 * far as its last chunk has room. So equal offsets in arrays of several arenas are not all
	 * in the same set of a cache, which large pages would make them.
	 */
	uint32_t colour;
	void *data;
};

struct arena {
	uintptr_t base; /* a multiple of ARENA_CHUNK */
	uint64_t limit; /* bytes of addresses */
	struct arena_pages pages; /* grant NULL: never large */
	uint32_t mapped; /* pages */
	uint32_t used; /* pages in spans that are not free */
	uint32_t peak; /* the most of used */
	uint32_t span_count, span_free; /* the list of structures not in use, through next */
	uint64_t large_bytes; /* granted now, in large pages or middle ones */
	uint64_t block_bytes; /* of blocks in use */
	/*
	 * The program changed mappings of the arena: protected, unmapped or replaced pages of a
	 * block. Set by any thread, and never taken back.
	 */
	bool altered;
	struct arena_table spans; /* struct arena_span; number 0 is none */
	/* uint32_t: the span of a page; of free and large spans, of the first and last page only */
	struct arena_table map;
	struct arena_table chunks; /* uint8_t: enum arena_chunk_state */
	uint32_t bins[ARENA_BINS]; /* free spans of 2^n pages and more */
	uint32_t classes[ARENA_CLASSES]; /* small spans that have room */
};

enum arena_chunk_state {
	ARENA_CHUNK_EMPTY,
	ARENA_CHUNK_LARGE,
	ARENA_CHUNK_SMALL,
	ARENA_CHUNK_MIDDLE,
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
/* The child of a fork: no page is granted any more. What is large stays so until it is written. */
void arena__disown(struct arena *arena);
/* Bytes mapped, from base on. */
static inline uint64_t arena__bytes(const struct arena *arena)
{
	return (uint64_t)arena->mapped * ARENA_PAGE;
}
/* Are the invariants above kept? For tests. */
bool arena__check(const struct arena *arena);

#endif
