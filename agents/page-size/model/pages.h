/* SPDX-License-Identifier: MIT */
/*
 * pages.h - the set of all pages that were touched, by key
 *
 * Invariant: at most 7 of 10 entries are in use, and between an entry and the one that its hash
 * names, all are in use. So a page takes 12 to 23 bytes, and 35 while the set grows.
 */
#ifndef PAGE_SIZE_PAGES_H
#define PAGE_SIZE_PAGES_H

#include "internal.h"

struct pages {
	uint64_t *keys; /* 1 << bits; 0: free */
	uint32_t bits;
	size_t used;
};

/* 0 or -ENOMEM. */
int pages__init(struct pages *pages);
void pages__destroy(struct pages *pages);
/* 1: the page is new; 0: it was there; or -ENOMEM. */
int pages__add(struct pages *pages, uint64_t key);

/* Neighbouring pages share cache lines: the hash is of eight pages together. */
static inline size_t pages__index(const struct pages *pages, uint64_t key)
{
	uint64_t page = key >> 8 & 7;

	return (page_hash(key & ~(7ull << 8)) >> (64 - pages->bits) & ~7ull) | page;
}

static inline void pages__prefetch(const struct pages *pages, uint64_t key)
{
	__builtin_prefetch(&pages->keys[pages__index(pages, key)]);
}

#endif
