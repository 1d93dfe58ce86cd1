/* SPDX-License-Identifier: MIT */
/* counts.h - what each directive has come to, for the report (apply.h) */
#ifndef PAGE_APPLY_COUNTS_H
#define PAGE_APPLY_COUNTS_H

#include "directives.h"
#include "grants.h"

struct counts {
	uint64_t requests;
	uint64_t bytes, peak; /* in use */
	uint64_t granted, large; /* bytes of large pages: now, and the most */
	uint64_t most; /* of them; 0: as many as the budget has */
	uint64_t wanted; /* the most bytes that were large pages, or could have been, at one time */
	const char *reason; /* why they were not; NULL: nothing was refused */
	uint64_t told; /* wanted, when a line was written last */
	bool told_refused; /* and some were refused */
};

/*
 * By directive. requests, bytes and peak are written under the lock of whoever serves its kind of
 * sites; granted and large under that of the set of large pages (large.h); wanted and what was told
 * by the thread that looks (look.h); reason by any of them.
 */
extern struct counts counts__all[PAGE_APPLY_SITES_MAX];

static inline void counts__init(const struct directives *directives)
{
	uint32_t i;

	for (i = 0; i < directives->count; i++)
		counts__all[i].most = directives->list[i].most;
}

static inline void counts__set(struct counts *counts, uint64_t bytes)
{
	counts->bytes = bytes;
	if (counts->bytes > counts->peak)
		counts->peak = counts->bytes;
}

static inline void counts__add(struct counts *counts, uint64_t was, uint64_t is)
{
	counts__set(counts, counts->bytes + is - was);
}

/*
 * Write a line now: a process that is killed writes none at its end. Called as the wanted bytes
 * have doubled, and when something is refused first, so that a process writes some ten lines,
 * whatever it asks for. Keeps errno.
 */
void counts__tell(struct counts *counts);

/* These bytes could be large pages, besides those that are. */
static inline void counts__want(struct counts *counts, uint64_t refused)
{
	if (counts->granted + refused > counts->wanted)
		counts->wanted = counts->granted + refused;
	if (counts->wanted > 2 * counts->told ||
	    (counts->wanted > counts->large && !counts->told_refused))
		counts__tell(counts);
}

/* Ask for these bytes of large pages of unit bytes: how many were granted. */
static inline uint64_t counts__ask(struct counts *counts, uint64_t bytes, uint64_t unit)
{
	uint64_t granted = grants__ask(bytes, unit, &counts->reason);

	counts->granted += granted;
	return granted;
}

/* What is granted is there now. */
static inline void counts__made(struct counts *counts)
{
	if (counts->granted > counts->large)
		counts->large = counts->granted;
}

static inline void counts__give_back(struct counts *counts, uint64_t bytes)
{
	counts->granted -= bytes;
	grants__give_back(bytes);
}

/* A forked child has no large pages of its own, and reports what its sites ask for themselves. */
void counts__after_fork_child(void);

#endif
