/* SPDX-License-Identifier: MIT */
/* runs.h - the pages of an arena: spans are taken, given back, made longer and shorter, and moved
 */
#ifndef PAGE_APPLY_RUNS_H
#define PAGE_APPLY_RUNS_H

#include "arena.h"

static inline struct arena_span *span_at(const struct arena *arena, uint32_t n)
{
	return (struct arena_span *)arena->spans.at + n;
}

static inline uint32_t *page_map(const struct arena *arena)
{
	return arena->map.at;
}

static inline char *page_address(const struct arena *arena, uint32_t page)
{
	return (char *)(arena->base + (uint64_t)page * ARENA_PAGE);
}

/*
 * A span of this many pages at a multiple of aligned pages from address 0, as a large block; the
 * arena grows if it must. zero: its bytes are 0. 0: there is no such span.
 */
uint32_t runs__take(struct arena *arena, uint32_t pages, uint32_t aligned, bool zero);
void runs__free(struct arena *arena, uint32_t n);
/* Give a large block another length where it is. false: it can't be; nothing changed. */
bool runs__resize(struct arena *arena, uint32_t n, uint32_t pages);
/* Give it another place and at least its length, with its memory. 0: it can't be; nothing changed.
 */
uint32_t runs__move(struct arena *arena, uint32_t n, uint32_t pages);
/* How many pages of an idle span of this length count. */
uint32_t runs__idle_pages(uint32_t pages);

#endif
