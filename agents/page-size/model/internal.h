/* SPDX-License-Identifier: MIT */
/* internal.h - what the files of this folder share */
#ifndef PAGE_SIZE_INTERNAL_H
#define PAGE_SIZE_INTERNAL_H

#include "model.h"

/* The pool of a level that holds a page size, or NULL. */
const struct page_pool *geometry__pool(const struct page_geometry *geometry, uint32_t level,
				       uint32_t size);
/* Are the numbers of sites and the sizes of the mapping in range? */
bool geometry__fits(const struct page_geometry *geometry, const struct page_sites *sites,
		    const struct page_mapping *mapping);
/* The mean time of a walk for a page of this site. */
double geometry__walk_ns(const struct page_geometry *geometry, const struct page_sites *sites,
			 uint32_t site, uint32_t size);
/* What of the mean time of a hit in this level is hidden, for a page of this site. */
double geometry__hidden_ns(const struct page_geometry *geometry, const struct page_sites *sites,
			   uint32_t site, uint32_t level);
/* Of what a TLB entry maps. */
static inline uint32_t geometry__entry_shift(const struct page_geometry *geometry, uint32_t size)
{
	return geometry->entry_shifts[size] ? geometry->entry_shifts[size] : geometry->shifts[size];
}

/* Hits of each level and site. The first level's are not asked for. */
struct level_hits {
	double of[PAGE_LEVELS_MAX][PAGE_SITES_MAX];
};

/* Fill in walks and time_ns from the other numbers of a result. */
void geometry__add_up(const struct page_geometry *geometry, const struct page_sites *sites,
		      const struct page_mapping *mapping, const struct level_hits *hits,
		      struct page_result *result);

/*
 * A key that is unique for site and page, and never 0. The page number has at most 54 bits, because
 * a page has at least 2^PAGE_SHIFT_MIN bytes.
 */
static inline uint64_t page_key(uint64_t page, uint32_t site, uint32_t size)
{
	return 1ull << 63 | page << 8 | (uint64_t)site << 2 | size;
}

/* Of Knuth's multiplicative hashing: the high bits are the mixed ones. */
static inline uint64_t page_hash(uint64_t key)
{
	return (key ^ key >> 32) * 0x9e3779b97f4a7c15ull;
}

#endif
