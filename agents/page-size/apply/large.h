/* SPDX-License-Identifier: MIT */
/*
 * large.h - the large pages of this process: which chunks have one, and how they get it
 *
 * A large page takes the place of 512 small ones that the program has written, all but a few. It is
 * never a page's first memory: a program that touches a byte of each large page would have 512
 * times the memory that it has alone. So no limit of memory finds more of it than without large
 * pages.
 *
 * The set has a lock of its own. The caller holds the lock of whoever the chunk belongs to.
 */
#ifndef PAGE_APPLY_LARGE_H
#define PAGE_APPLY_LARGE_H

#include <stdbool.h>
#include <stdint.h>

enum large_result {
	LARGE_HAD, /* it is a large page already */
	LARGE_THIN, /* too few of its pages are there, or another process has them, too */
	LARGE_MADE, /* all but those that failed */
	LARGE_REFUSED, /* it could be one */
};

/* A look at some chunks of a directive. */
struct large_look {
	uintptr_t at; /* where to look: each look ends where the next begins */
	uint32_t most; /* chunks that may be made large pages now */
	bool may_ask; /* false: what could be a large page is refused */
	enum large_result result;
	uint32_t chunks; /* that the result is of */
	uint32_t failed; /* of these, at which the kernel did */
};

/* One thread at a time may look, between these. false: the kernel says nothing of pages. */
bool large__begin(void);
void large__end(void);
/* Look at the chunks of a directive from look->at to end, of which there is one at least. */
void large__look(uint32_t directive, struct large_look *look, uintptr_t end);
/* Memory between these addresses goes: its chunks are large pages no more. Keeps errno. */
void large__released(uintptr_t start, uintptr_t end);
void large__before_fork(void);
/* A child shares its parent's pages, and has no large ones of its own. */
void large__after_fork(bool is_child);

#endif
