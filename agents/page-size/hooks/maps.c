// SPDX-License-Identifier: LGPL-2.1-or-later
/* maps.c - mmap, munmap, mremap and mprotect: memory that a program maps itself has a site, too */
#include "apply/callers.h"
#include "apply/heap.h"
#include "apply/next.h"
#include "hooks.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#define CALL_SITE ((uintptr_t)__builtin_return_address(0))

static uintptr_t page_up(uintptr_t at)
{
	return (at + ARENA_PAGE - 1) / ARENA_PAGE * ARENA_PAGE;
}

static void tell(uintptr_t start, uintptr_t end, uint32_t site)
{
	/* What was referred to before stands in front of it. */
	bursts__settle();
	if (!output__lock())
		return;
	output__range(start, end, site, site == NO_SITE ? 0 : end - start);
	output__unlock();
}

/* Memory is there that the program asked for. found: the number of its context, or -1. */
static void mapped(void *start, size_t bytes, int found)
{
	int saved = errno;
	uint32_t site = found < 0 ? NO_SITE : sites__number(sites__context((uint32_t)found));

	/* The data of objects, and blocks, have their sites already. */
	if (!objects__hold((uintptr_t)start) && !heap__owns(start))
		tell((uintptr_t)start, page_up((uintptr_t)start + bytes), site);
	errno = saved;
}

HOOKS_EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t at)
{
	void *start;

	if (flags & MAP_FIXED)
		heap__alter(address, bytes);
	start = NEXT(mmap)(address, bytes, protection, flags, fd, at);
	if (!bursts__are_on() || start == MAP_FAILED)
		return start;
	mapped(start, bytes,
	       (flags & (MAP_PRIVATE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS)
		       ? callers__find(PAGE_SITE_MAP, 1, CALL_SITE)
		       : -1);
	return start;
}

HOOKS_EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int fd,
			  off64_t at) __attribute__((alias("mmap")));

HOOKS_EXPORT int munmap(void *address, size_t bytes)
{
	heap__alter(address, bytes);
	/* Before it is another's. */
	if (bursts__are_on() && bytes && !heap__owns(address) && !objects__hold((uintptr_t)address))
		tell((uintptr_t)address, page_up((uintptr_t)address + bytes), NO_SITE);
	return NEXT(munmap)(address, bytes);
}

HOOKS_EXPORT int mprotect(void *address, size_t bytes, int protection)
{
	if ((protection & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE))
		heap__alter(address, bytes);
	return NEXT(mprotect)(address, bytes, protection);
}

HOOKS_EXPORT void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
	void *to, *moved;
	va_list more;

	va_start(more, flags);
	to = va_arg(more, void *);
	va_end(more);
	heap__alter(old, old_bytes);
	if (flags & MREMAP_FIXED)
		heap__alter(to, bytes);
	moved = NEXT(mremap)(old, old_bytes, bytes, flags, to);
	if (!bursts__are_on() || moved == MAP_FAILED)
		return moved;
	if (moved != old && old_bytes && !heap__owns(old))
		tell((uintptr_t)old, page_up((uintptr_t)old + old_bytes), NO_SITE);
	mapped(moved, bytes, callers__find(PAGE_SITE_MAP, 1, CALL_SITE));
	return moved;
}
