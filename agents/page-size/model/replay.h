/* SPDX-License-Identifier: MIT */
/*
 * replay.h - windows of the references, kept to be simulated for a mapping that is asked for
 *
 * Invariant: the windows begin at multiples of period, counted in references, and each is whole but
 * perhaps the last. When there is no room for another, every second one is dropped, and the period
 * doubles. So they are spread evenly over all that was read.
 *
 * They say what stack distances cannot: a later level of a TLB sees only what missed the levels
 * before it, which depends on the whole mapping, and a pool may not be LRU. In the windows the TLB
 * is simulated as it is, and as the distances have it; the difference corrects the distances, which
 * are of all references. This is the method of control variates (Lavenberg and Welch, A perspective
 * on the use of control variables, Management Science 27(3), 1981).
 */
#ifndef PAGE_SIZE_REPLAY_H
#define PAGE_SIZE_REPLAY_H

#include "internal.h"

#define REPLAY_WINDOW 16384u
#define REPLAY_WINDOWS_MAX 16u

struct replay {
	uint64_t *references; /* page of size 0 << 8 | site: page numbers have at most 54 bits */
	uint32_t shift; /* of size 0 */
	uint32_t capacity; /* windows */
	uint64_t count; /* kept references */
	uint64_t period;
	uint64_t left; /* references until the window ends, or the next one begins */
	bool recording;
};

/* What is to be added to the misses that the distances say, for each reference. */
struct replay_correction {
	double misses[PAGE_LEVELS_MAX];
	double site_walks[PAGE_SITES_MAX];
	struct level_hits hits;
	/* Standard errors, from how much the windows differ. */
	double walks_error, time_error_ns;
};

void replay__init(struct replay *replay, uint32_t shift);
void replay__destroy(struct replay *replay);
size_t replay__bytes(const struct replay *replay);
/* Keep a reference, and begin or end a window. 0 or -ENOMEM. */
int replay__turn(struct replay *replay, uint64_t address, uint32_t site);

/* Read the next reference. 0 or -ENOMEM. */
static inline int replay__add(struct replay *replay, uint64_t address, uint32_t site)
{
	if (!replay->left || replay->recording)
		return replay__turn(replay, address, site);
	replay->left--;
	return 0;
}

/* 0 or -ENOMEM. Allocates while it runs. */
int replay__correct(const struct replay *replay, const struct page_geometry *geometry,
		    const struct page_sites *sites, const struct page_mapping *mapping,
		    struct replay_correction *correction);

#endif
