/* SPDX-License-Identifier: MIT */
/*
 * callers.h - which directive a call is under, by where it returns to
 *
 * Most calls are under none, and that is known from one load: a cache says for a page of code
 * whether its object is named in a directive. An entry is one word, so that no reader sees half of
 * it. After dlclose the cache is emptied. An entry that is older than its object (one that the C
 * library closed by itself) costs a directive its effect, never a result: whose a block is, is told
 * by its address.
 *
 * All functions are thread-safe, take no lock, call no allocator, and keep errno.
 */
#ifndef PAGE_APPLY_CALLERS_H
#define PAGE_APPLY_CALLERS_H

#include "directives.h"

#define CALLERS_ENTRIES 2048u

/* Page of code << 16 | group + 1, or 0 for an object that no directive names. */
extern uint64_t callers__cache[CALLERS_ENTRIES];

/* directives must stay. Returns false: this C library can't tell objects by addresses. */
bool callers__init(const struct directives *directives);
uint32_t callers__resolve(uintptr_t site);
void callers__forget(void);
/* The number of the directive, or -1, of a call that returns to site in an object of this group. */
int callers__find(uint32_t kind, uint32_t group, uintptr_t site);

/* 0: the call is under no directive. */
static inline uint32_t callers__group(uintptr_t site)
{
	uint64_t page = site >> 12;
	uint64_t entry = __atomic_load_n(&callers__cache[page % CALLERS_ENTRIES], __ATOMIC_RELAXED);

	if (__builtin_expect(entry >> 16 == page, 1))
		return entry & 0xffff;
	return callers__resolve(site);
}

#endif
