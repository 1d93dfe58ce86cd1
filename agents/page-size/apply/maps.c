// SPDX-License-Identifier: MIT
/*
 * maps.c - mmap, munmap, mremap and mprotect
 *
 * A mapping of a listed site begins at a multiple of 2 MiB, and its whole chunks may become large
 * pages (large.h). Memory that the program commits in a reservation of its own (MAP_FIXED) stays
 * where it is; neighbours count as one. MAP_HUGETLB is not used: its pages are taken from a pool
 * that a child's first write after fork, or a control group's limit, may find empty, and then
 * SIGBUS ends the program.
 */
#include "maps.h"

#include "arena.h"
#include "counts.h"
#include "extents.h"
#include "front.h"
#include "look.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

struct range {
	uintptr_t start;
	size_t bytes;
	uint32_t directive;
};

bool maps__active;

static const struct directives *all;
static struct {
	struct lock lock;
	uint32_t count; /* read without the lock, too */
	struct range ranges[MAPS_MAX];
} maps;

void maps__init(const struct directives *directives)
{
	uint32_t i;

	all = directives;
	for (i = 0; i < directives->count; i++)
		maps__active |= directives->list[i].site.kind == PAGE_SITE_MAP;
}

static uintptr_t chunk_up(uintptr_t at)
{
	return (at + ARENA_CHUNK - 1) / ARENA_CHUNK * ARENA_CHUNK;
}

/* Bytes of the whole chunks between these. */
static size_t whole_chunks(uintptr_t start, uintptr_t end)
{
	uintptr_t first = chunk_up(start), last = end / ARENA_CHUNK * ARENA_CHUNK;

	return last > first ? last - first : 0;
}

/* Addresses for this many bytes at a multiple of a chunk. No memory is there, and none is locked.
 */
static void *reserve(size_t bytes)
{
	size_t page = ARENA_PAGE - 1, length = (bytes + page) & ~page;
	char *room, *start;

	room = NEXT(mmap)(NULL, length + ARENA_CHUNK, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return MAP_FAILED;
	start = room + (-(uintptr_t)room & (ARENA_CHUNK - 1));
	if (start > room)
		NEXT(munmap)(room, (size_t)(start - room));
	NEXT(munmap)(start + length, (size_t)(room + ARENA_CHUNK - start));
	return start;
}

/* The kernel fills the mapping at once if asked to, so it has its length from the first. */
static void *map_aligned(size_t bytes, int protection, int flags)
{
	void *room = reserve(bytes), *start;

	if (room == MAP_FAILED)
		return MAP_FAILED;
	start = NEXT(mmap)(room, bytes, protection, flags | MAP_FIXED, -1, 0);
	if (start == MAP_FAILED)
		NEXT(munmap)(room, bytes);
	return start;
}

static bool is_served(const void *address, size_t bytes, int protection, int flags)
{
	return !address && bytes >= ARENA_CHUNK && protection & PROT_WRITE &&
	       (flags & (MAP_PRIVATE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS) &&
	       !(flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_HUGETLB | MAP_GROWSDOWN |
			  MAP_LOCKED | MAP_SHARED
#ifdef MAP_32BIT
			  | MAP_32BIT
#endif
			  ));
}

/* Memory that the program puts somewhere itself, most likely in what it has reserved. */
static bool is_committed(int protection, int flags)
{
	return protection & PROT_WRITE &&
	       (flags & (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)) ==
		       (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED) &&
	       !(flags & (MAP_HUGETLB | MAP_GROWSDOWN | MAP_LOCKED | MAP_POPULATE));
}

static void note_extent(const struct range *range)
{
	extents__add(range->directive, range->start, range->start + range->bytes);
}

static void add(const struct range *range)
{
	maps.ranges[maps.count] = *range;
	__atomic_store_n(&maps.count, maps.count + 1, __ATOMIC_RELAXED);
}

static void *serve(uint32_t directive, size_t bytes, int protection, int flags)
{
	struct counts *counts = &counts__all[directive];
	struct range range;
	int saved = errno;
	void *start;

	if (bytes < all->list[directive].least || bytes > SIZE_MAX / 2)
		return MAP_FAILED;
	start = map_aligned(bytes, protection, flags);
	if (start == MAP_FAILED) {
		errno = saved;
		return MAP_FAILED;
	}
	if (!lock__take(&maps.lock)) {
		NEXT(munmap)(start, bytes);
		errno = saved;
		return MAP_FAILED;
	}
	counts->requests++;
	counts__add(counts, 0, bytes);
	range = (struct range){.start = (uintptr_t)start, .bytes = bytes, .directive = directive};
	note_extent(&range);
	if (maps.count < MAPS_MAX)
		add(&range);
	else
		counts->reason = "mappings";
	lock__release(&maps.lock);
	look__grown();
	errno = saved;
	return start;
}

static bool overlaps(const struct range *range, uintptr_t start, uintptr_t end)
{
	return range->start < end && start < range->start + range->bytes;
}

static struct range *find(uintptr_t start, uintptr_t end)
{
	uint32_t i;

	for (i = 0; i < maps.count; i++) {
		if (overlaps(&maps.ranges[i], start, end))
			return &maps.ranges[i];
	}
	return NULL;
}

/* What the site has had before these addresses; NULL: nothing. */
static struct range *find_before(uint32_t directive, uintptr_t start)
{
	uint32_t i;

	for (i = 0; i < maps.count; i++) {
		struct range *range = &maps.ranges[i];

		if (range->start + range->bytes == start && range->directive == directive)
			return range;
	}
	return NULL;
}

static void forget(uintptr_t start, uintptr_t end);

/* A listed site has committed memory. What the same addresses were before is over. */
static void commit(uint32_t directive, uintptr_t start, size_t bytes)
{
	struct counts *counts = &counts__all[directive];
	size_t whole = whole_chunks(start, start + bytes);
	struct range range = {.start = start, .bytes = bytes, .directive = directive};
	struct range *before;
	int saved = errno;

	if (bytes < all->list[directive].least || !lock__take(&maps.lock))
		return;
	forget(start, start + bytes);
	before = find_before(directive, start);
	if (before || whole) {
		note_extent(&range);
		counts->requests++;
		counts__add(counts, 0, bytes);
	}
	if (before)
		before->bytes += bytes;
	else if (whole && maps.count < MAPS_MAX)
		add(&range);
	else if (whole)
		counts->reason = "mappings";
	lock__release(&maps.lock);
	if (before || whole)
		look__grown();
	errno = saved;
}

/* The program puts other memory at addresses of a site. */
static void replace(uintptr_t start, uintptr_t end)
{
	int saved = errno;

	if (!lock__take(&maps.lock))
		return;
	forget(start, end);
	lock__release(&maps.lock);
	errno = saved;
}

APPLY_EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t at)
{
	uint32_t group = 0;
	void *start = MAP_FAILED;
	int found = -1;

	if (maps__active &&
	    (is_served(address, bytes, protection, flags) || is_committed(protection, flags)))
		group = front__group(CALL_SITE);
	if (__builtin_expect(group, 0))
		found = callers__find(PAGE_SITE_MAP, group, CALL_SITE);
	if (found >= 0 && !(flags & MAP_FIXED))
		start = serve((uint32_t)found, bytes, protection, flags);
	if (start != MAP_FAILED)
		return start;
	if (!(flags & MAP_FIXED))
		return NEXT(mmap)(address, bytes, protection, flags, fd, at);
	heap__alter(address, bytes);
	start = NEXT(mmap)(address, bytes, protection, flags, fd, at);
	if (start != MAP_FAILED && found >= 0)
		commit((uint32_t)found, (uintptr_t)start, bytes);
	else if (start != MAP_FAILED && __atomic_load_n(&maps.count, __ATOMIC_RELAXED))
		replace((uintptr_t)start, (uintptr_t)start + bytes);
	return start;
}

APPLY_EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int fd,
			  off64_t at) __attribute__((alias("mmap")));

/* --- what becomes of it --- */

static void keep(const struct range *was, uintptr_t start, uintptr_t end)
{
	const struct range part = {
		.start = start, .bytes = end - start, .directive = was->directive};

	if (start < end && maps.count < MAPS_MAX)
		add(&part);
}

/* These addresses are not the program's any more. */
static void forget(uintptr_t start, uintptr_t end)
{
	struct range *range, was;
	uintptr_t from, to, was_end;

	while ((range = find(start, end))) {
		was = *range;
		was_end = was.start + was.bytes;
		__atomic_store_n(&maps.count, maps.count - 1, __ATOMIC_RELAXED);
		*range = maps.ranges[maps.count];
		from = was.start > start ? was.start : start;
		to = was_end < end ? was_end : end;
		keep(&was, was.start, from);
		keep(&was, to, was_end);
		counts__add(&counts__all[was.directive], to - from, 0);
		large__released(from, to);
	}
}

APPLY_EXPORT int munmap(void *address, size_t bytes)
{
	uintptr_t start = (uintptr_t)address, end = start + ((bytes + 4095) & ~(size_t)4095);
	int rc, saved = errno;

	look__call();
	heap__alter(address, bytes);
	if (!__atomic_load_n(&maps.count, __ATOMIC_RELAXED))
		return NEXT(munmap)(address, bytes);
	/* Under the lock, lest another thread gets these addresses before they are forgotten. */
	if (!lock__take(&maps.lock))
		return NEXT(munmap)(address, bytes);
	rc = NEXT(munmap)(address, bytes);
	if (!rc) {
		forget(start, end);
		errno = saved;
	}
	lock__release(&maps.lock);
	return rc;
}

APPLY_EXPORT int mprotect(void *address, size_t bytes, int protection)
{
	if ((protection & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE))
		heap__alter(address, bytes);
	return NEXT(mprotect)(address, bytes, protection);
}

/* Move to addresses that large pages fit. */
static void *move_aligned(void *old, size_t old_bytes, size_t bytes)
{
	void *room = reserve(bytes), *moved;

	if (room == MAP_FAILED)
		return MAP_FAILED;
	moved = NEXT(mremap)(old, old_bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, room);
	if (moved == MAP_FAILED)
		NEXT(munmap)(room, bytes);
	return moved;
}

/* A mapping that grew is a new one, at a place where large pages fit. */
static void grown(struct range *range, uintptr_t start, size_t bytes)
{
	counts__add(&counts__all[range->directive], range->bytes, bytes);
	if (start != range->start)
		large__released(range->start, range->start + range->bytes);
	range->bytes = bytes;
	range->start = start;
	note_extent(range);
}

static void *remap(struct range *range, size_t bytes, int flags)
{
	void *old = (void *)range->start, *start;
	int saved = errno;

	start = NEXT(mremap)(old, range->bytes, bytes, flags & ~MREMAP_MAYMOVE);
	if (start == MAP_FAILED && flags & MREMAP_MAYMOVE) {
		errno = saved;
		start = move_aligned(old, range->bytes, bytes);
	}
	/* RLIMIT_AS may leave space for the block alone, and not for the rest of its mapping. */
	if (start == MAP_FAILED && flags & MREMAP_MAYMOVE) {
		errno = saved;
		start = NEXT(mremap)(old, range->bytes, bytes, flags);
	}
	if (start == MAP_FAILED) {
		saved = errno;
	} else if (bytes < range->bytes) {
		forget(range->start + bytes, range->start + range->bytes);
	} else {
		grown(range, (uintptr_t)start, bytes);
		look__grown();
	}
	errno = saved;
	return start;
}

APPLY_EXPORT void *mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
	uintptr_t start = (uintptr_t)old;
	struct range *range;
	void *moved, *to;
	int saved = errno;
	va_list more;

	va_start(more, flags);
	to = va_arg(more, void *);
	va_end(more);
	heap__alter(old, old_bytes);
	if (flags & MREMAP_FIXED)
		heap__alter(to, bytes);
	if (!__atomic_load_n(&maps.count, __ATOMIC_RELAXED))
		return NEXT(mremap)(old, old_bytes, bytes, flags, to);
	if (!lock__take(&maps.lock))
		return NEXT(mremap)(old, old_bytes, bytes, flags, to);
	range = find(start, start + old_bytes);
	if (range && range->start == start && range->bytes == old_bytes && bytes &&
	    !(flags & ~MREMAP_MAYMOVE)) {
		moved = remap(range, bytes, flags);
	} else {
		moved = NEXT(mremap)(old, old_bytes, bytes, flags, to);
		if (moved != MAP_FAILED) {
			forget(start, start + old_bytes);
			errno = saved;
		}
	}
	lock__release(&maps.lock);
	return moved;
}

/* --- */

bool maps__look(uint32_t directive, struct large_look *look)
{
	uintptr_t chunk = UINTPTR_MAX, end = 0, first;
	uint32_t i;

	if (!lock__try(&maps.lock))
		return false;
	for (i = 0; i < maps.count; i++) {
		const struct range *range = &maps.ranges[i];

		first = chunk_up(range->start > look->at ? range->start : look->at);
		if (range->directive == directive &&
		    first + ARENA_CHUNK <= range->start + range->bytes && first < chunk) {
			chunk = first;
			end = first + whole_chunks(first, range->start + range->bytes);
		}
	}
	if (chunk != UINTPTR_MAX) {
		look->at = chunk;
		large__look(directive, look, end);
	}
	lock__release(&maps.lock);
	return chunk != UINTPTR_MAX;
}

void maps__before_fork(void)
{
	lock__before_fork(&maps.lock);
}

void maps__after_fork(bool is_child)
{
	lock__after_fork(&maps.lock, is_child);
}
