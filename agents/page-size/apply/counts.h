/* SPDX-License-Identifier: MIT */
/* counts.h - what each directive has come to, for the report (apply.h) */
#ifndef PAGE_APPLY_COUNTS_H
#define PAGE_APPLY_COUNTS_H

#include "directives.h"
#include "grants.h"

struct counts {
	uint64_t requests;
	uint64_t bytes, peak; /* in use */
	uint64_t refused; /* bytes of large pages */
	const char *reason; /* NULL: nothing was refused */
	uint64_t granted; /* bytes of large pages */
	uint64_t most; /* of them; 0: as many as the budget has */
	uint64_t measured; /* what was granted when smaps was asked last */
	uint64_t large; /* the most that smaps found */
	uint64_t small; /* bytes that it found where large pages were granted */
	uint64_t told; /* granted and refused bytes, when a line was written last */
	bool told_refused; /* and some were refused */
};

/* By directive. Written under the lock of whoever serves its kind of sites. */
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
 * Write a line now: whoever is killed writes none at its end. Called as what was granted or refused
 * has doubled, and when something is refused first, so that a process writes some ten lines,
 * whatever it asks for. Keeps errno.
 */
void counts__tell(struct counts *counts);

/*
 * Ask for so many bytes of large pages: how many were granted. What is beyond the site's part is
 * not refused: nobody wants it.
 */
static inline uint64_t counts__ask(struct counts *counts, uint64_t bytes, uint64_t unit)
{
	uint64_t left = counts->most > counts->granted ? counts->most - counts->granted : 0,
		 granted;

	if (counts->most && bytes > left)
		bytes = left / unit * unit;
	if (!bytes)
		return 0;
	granted = grants__ask(bytes, unit, &counts->reason);
	counts->refused += bytes - granted;
	counts->granted += granted;
	if (counts->granted + counts->refused > 2 * counts->told ||
	    (counts->refused && !counts->told_refused))
		counts__tell(counts);
	return granted;
}

/* Ask smaps, if anything was granted: it takes time. Keeps errno. */
void counts__measure(void);
/* A forked child has no large pages of its own, and reports what its sites ask for themselves. */
void counts__after_fork_child(void);

/* Before large pages are released: smaps is asked if there are by a quarter more than before. */
static inline void counts__before_release(struct counts *counts)
{
	if (counts->granted <= counts->measured + counts->measured / 4)
		return;
	counts->measured = counts->granted;
	counts__measure();
}

static inline void counts__give_back(struct counts *counts, uint64_t bytes)
{
	counts->granted -= bytes;
	grants__give_back(bytes);
}

/* What was granted the kernel did not give. */
static inline void counts__refuse(struct counts *counts, uint64_t bytes, const char *reason)
{
	counts__give_back(counts, bytes);
	counts->refused += bytes;
	counts->reason = reason;
}

#endif
