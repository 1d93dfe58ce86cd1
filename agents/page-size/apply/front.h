/* SPDX-License-Identifier: MIT */
/* front.h - from a call to the directive it is under */
#ifndef PAGE_APPLY_FRONT_H
#define PAGE_APPLY_FRONT_H

#include "callers.h"
#include "heap.h"
#include "next.h"
#include "start.h"

#define CALL_SITE ((uintptr_t)__builtin_return_address(0))

/* Out of line: few calls come here. */
void *front__alloc(uint32_t group, uintptr_t site, size_t size, size_t alignment, bool zero);
int front__directive(uint32_t kind, uint32_t group, uintptr_t site);

/* 0: the call is under no directive, or there are none. */
static inline uint32_t front__group(uintptr_t site)
{
	return apply__active ? callers__group(site) : 0;
}

/* A block for a request under a directive; NULL: the program's own allocator is asked. */
static inline void *front__try(uintptr_t site, size_t size, size_t alignment, bool zero)
{
	uint32_t group = front__group(site);

	return __builtin_expect(group, 0) ? front__alloc(group, site, size, alignment, zero) : NULL;
}

static inline bool front__is_alignment(size_t alignment)
{
	return alignment && !(alignment & (alignment - 1));
}

#endif
