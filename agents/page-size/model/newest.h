/* SPDX-License-Identifier: MIT */
/*
 * newest.h - the most recently used pages of one set of few ways: an array in no order
 *
 * Invariant: entry i has the time of its last use times 16 plus i, so the least number is the
 * oldest entry and says where it is. An empty one has key 0 and time 0. Entries beyond the ways
 * have the greatest time, so that none is ever the oldest.
 *
 * An entry has 32 bits of the page number: two pages of one site and set are one here if they are
 * 2^32 pages apart times some number. Four entries are compared at a time (GCC's vectors).
 */
#ifndef PAGE_SIZE_NEWEST_H
#define PAGE_SIZE_NEWEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEWEST_WAYS_MAX 16u
#define NEWEST_LANES 4u
/* Times are below this. */
#define NEWEST_TIMES (1u << 27)

typedef int32_t newest_vector __attribute__((vector_size(16), may_alias));

/* Of each: vectors of keys, and then as many of times. */
static inline uint32_t newest__vectors(uint32_t ways)
{
	return (ways + NEWEST_LANES - 1) / NEWEST_LANES;
}

static inline size_t newest__bytes(uint32_t ways)
{
	return newest__vectors(ways) * 2 * sizeof(newest_vector);
}

static inline int32_t newest__key(uint64_t page)
{
	uint32_t key = (uint32_t)page ^ (uint32_t)(page >> 32) * 0x9e3779b1u;

	return (int32_t)(key == UINT32_MAX ? key : key + 1);
}

static inline newest_vector newest__all(int32_t value)
{
	return (newest_vector){value, value, value, value};
}

/* The number of an entry, or -1. */
static inline int newest__find(const newest_vector *set, uint32_t vectors, int32_t key)
{
	newest_vector wanted = newest__all(key), number = {1, 2, 3, 4}, found = {0};
	uint32_t i;

	for (i = 0; i < vectors; i++) {
		found |= (set[i] == wanted) & number;
		number += (int32_t)NEWEST_LANES;
	}
	return (found[0] | found[1] | found[2] | found[3]) - 1;
}

static inline uint32_t newest__oldest(const newest_vector *times, uint32_t vectors)
{
	newest_vector least = times[0], less;
	int32_t a, b;
	uint32_t i;

	for (i = 1; i < vectors; i++) {
		less = times[i] < least;
		least = (less & times[i]) | (~less & least);
	}
	a = least[0] < least[1] ? least[0] : least[1];
	b = least[2] < least[3] ? least[2] : least[3];
	return (uint32_t)(a < b ? a : b) % NEWEST_WAYS_MAX;
}

/* Make a page the newest; the oldest leaves if there is no room. Was it there? */
static inline bool newest__use(newest_vector *set, uint32_t vectors, int32_t key, uint32_t now)
{
	int32_t *keys = (int32_t *)set, *times = (int32_t *)(set + vectors);
	int found = newest__find(set, vectors, key);
	uint32_t i = found < 0 ? newest__oldest(set + vectors, vectors) : (uint32_t)found;

	keys[i] = key;
	times[i] = (int32_t)(now * NEWEST_WAYS_MAX + i);
	return found >= 0;
}

/* The number of pages that were used after this entry. */
static inline uint32_t newest__count(const newest_vector *set, uint32_t vectors, uint32_t ways,
				     int32_t time)
{
	newest_vector limit = newest__all(time), count = {0};
	uint32_t i;

	for (i = 0; i < vectors; i++)
		count -= set[vectors + i] > limit;
	return (uint32_t)(count[0] + count[1] + count[2] + count[3]) -
	       (vectors * NEWEST_LANES - ways);
}

#endif
