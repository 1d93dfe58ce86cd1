/* SPDX-License-Identifier: MIT */
/*
 * ranges.h - a map of ranges of addresses to sites
 *
 * Invariant: the ranges are sorted, each has at least one byte, and none overlaps the next.
 *
 * It needs no C library and allocates nothing: the caller provides the memory, so that the observer
 * inside Valgrind keeps its ranges in it, too. Not thread-safe.
 */
#ifndef PAGE_PROFILE_RANGES_H
#define PAGE_PROFILE_RANGES_H

#include "profile/format.h"

#include <stddef.h>

#define RANGES_NO_SITE UINT32_MAX

struct ranges {
	struct profile_range *entries;
	size_t count, capacity;
};

/* The index of the first range that ends above an address; count: there is none. */
size_t ranges__above(const struct ranges *ranges, uint64_t address);
/* One range can split another: this many more entries must be free before ranges__set. */
#define RANGES_SPARE 2u
/*
 * Give the addresses of a range to its site; site RANGES_NO_SITE takes them from any. An empty
 * range changes nothing. gone is called with each piece that leaves the map, and may be NULL.
 */
void ranges__set(struct ranges *ranges, const struct profile_range *range,
		 void (*gone)(const struct profile_range *piece, void *arg), void *arg);

#endif
