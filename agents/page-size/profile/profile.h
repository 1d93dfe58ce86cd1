/* SPDX-License-Identifier: MIT */
/*
 * profile.h - reads a profile (format.h), which is taken to be hostile
 *
 * Not here: what the references mean (../model/model.h).
 *
 * Functions return 0 or more, or -errno with error. One profile is for one thread at a time.
 */
#ifndef PAGE_PROFILE_H
#define PAGE_PROFILE_H

#include "format.h"

#include <pem/pem.h>

#include <stdbool.h>

struct page_profile;

struct page_profile_summary {
	enum profile_source source;
	uint64_t references, kept; /* of the program; of the profile */
	uint64_t instructions; /* 0: unknown */
	uint64_t lost;
	uint64_t stopped_at;
	uint64_t forks; /* of the whole program */
	bool cut; /* the end is missing: the totals are of what is there */
};

/* A site as it was observed. */
struct page_profile_site {
	struct page_site site;
	uint64_t bytes; /* most bytes of ranges that it had at one time */
	uint64_t requested;
	uint64_t longest; /* bytes of its longest range */
	uint64_t calls; /* blocks that it had in all; 0: unknown */
	uint64_t references, chained; /* of those kept */
};

struct page_profile_reference {
	uint64_t address;
	uint32_t site; /* UINT32_MAX: none */
	uint32_t thread;
	uint32_t flags; /* 1: a store, 2: chained */
	uint32_t starts; /* 1: the first of a burst */
};

/*
 * Open a profile and read it through once, for its sites and totals. NULL with errno and error,
 * which names the file, the place in it, and what is wrong: EBADMSG for a damaged file.
 */
struct page_profile *page_profile__open(const char *path, struct pem_error *error);
void page_profile__close(struct page_profile *profile);
const struct page_profile_summary *page_profile__summary(const struct page_profile *profile);
/* The sites; *count is set to their number. */
const struct page_profile_site *page_profile__sites(const struct page_profile *profile,
						    uint32_t *count);
/*
 * Which object a frame is of: its path where the program ran, for people and for names. NULL:
 * unknown.
 */
const char *page_profile__path(const struct page_profile *profile, uint64_t object);
/*
 * Read the next references, in order, at most count. Returns how many; 0 at the end. It starts
 * again at the first after page_profile__rewind.
 */
int64_t page_profile__read(struct page_profile *profile, struct page_profile_reference *room,
			   size_t count, struct pem_error *error);
void page_profile__rewind(struct page_profile *profile);

#endif
