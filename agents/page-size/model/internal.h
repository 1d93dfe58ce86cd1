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
/* Of what a TLB entry maps. */
static inline uint32_t geometry__entry_shift(const struct page_geometry *geometry, uint32_t size)
{
	return geometry->entry_shifts[size] ? geometry->entry_shifts[size] : geometry->shifts[size];
}

/* Hits of each level and site. The first level's are not asked for. */
struct level_hits {
	double of[PAGE_LEVELS_MAX][PAGE_SITES_MAX];
};

/* What one hit of each level and one walk of each size cost an access that overlaps with others. */
struct overlap {
	double hit_ns[PAGE_LEVELS_MAX], walk_ns[PAGE_SIZES_MAX];
};

/* From the references, misses and walks of a result. */
void overlap__find(const struct page_geometry *geometry, const struct page_sites *sites,
		   const struct page_mapping *mapping, const struct page_result *result,
		   struct overlap *overlap);
/* The mean time of a walk, and of a hit in a level, for a page of this site. */
double overlap__walk_ns(const struct overlap *overlap, const struct page_geometry *geometry,
			const struct page_sites *sites, uint32_t site, uint32_t size);
double overlap__hit_ns(const struct overlap *overlap, const struct page_geometry *geometry,
		       const struct page_sites *sites, uint32_t site, uint32_t level);

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
