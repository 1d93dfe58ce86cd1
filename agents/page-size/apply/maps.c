// SPDX-License-Identifier: MIT
/*
 * maps.c - mmap, munmap, mremap and mprotect
 *
 * A mapping of a listed site begins at a multiple of 2 MiB, and its whole chunks have large pages,
 * or pages of 64 KiB (middle.h), as far as they are granted. Memory that the program commits in a
 * reservation of its own (MAP_FIXED) stays where it is, and its whole chunks have them; neighbours
 * count as one. MAP_HUGETLB is not used: its pages are taken from a pool that a child's first write
 * after fork, or a control group's limit, may find empty, and then SIGBUS ends the program.
 */
#include "maps.h"

#include "arena.h"
#include "counts.h"
#include "extents.h"
#include "front.h"
#include "middle.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct range {
	uintptr_t start;
	size_t bytes;
	size_t granted;
	size_t middle; /* of them, advised to be pages of 64 KiB */
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

/* Ask for large pages for bytes more: how many were granted. */
static size_t ask(uint32_t directive, size_t bytes)
{
	if (all->list[directive].page_size == ARENA_PAGE || !bytes)
		return 0;
	return counts__ask(&counts__all[directive], bytes, ARENA_CHUNK);
}

/* The kernel moves one mapping in a call: advice must not divide what the program takes for one. */
static void join(struct range *range)
{
	madvise((void *)range->start, range->bytes, MADV_NOHUGEPAGE);
	middle__release(range->middle);
	range->middle = 0;
}

static void advise_middle(struct range *range, uintptr_t first)
{
	struct counts *counts = &counts__all[range->directive];
	const char *reason;

	range->middle = middle__advise(first, range->granted, &reason);
	if (range->middle < range->granted)
		counts__refuse(counts, range->granted - range->middle, reason);
	range->granted = range->middle;
}

/*
 * Large pages in front as granted, then small ones. If all is granted, the mapping stays one to the
 * kernel, with the rest that fills no chunk.
 *
 * Two parts become one again (join) only if a page was there before they were parted: without one,
 * each later gets a struct anon_vma of its own. So the last page is populated, by the kernel, since
 * the program may have protected it; where that fails, all pages stay small.
 */
static void advise(struct range *range)
{
	bool is_middle = all->list[range->directive].page_size == MIDDLE_PAGE;
	uintptr_t end = range->start + range->bytes, large = chunk_up(range->start);
	void *last = (void *)((end - 1) / ARENA_PAGE * ARENA_PAGE);

	if (range->granted && !is_middle && range->granted == whole_chunks(range->start, end)) {
		madvise((void *)range->start, range->bytes, MADV_HUGEPAGE);
		return;
	}
	join(range);
	if (!range->granted || madvise(last, ARENA_PAGE, MADV_POPULATE_WRITE))
		return;
	if (is_middle)
		advise_middle(range, large);
	else
		madvise((void *)large, range->granted, MADV_HUGEPAGE);
}

/* Addresses for so many bytes at a multiple of a chunk. */
static void *map_aligned(size_t bytes, int protection, int flags)
{
	size_t page = ARENA_PAGE - 1, length = (bytes + page) & ~page;
	char *room, *start;

	room = NEXT(mmap)(NULL, length + ARENA_CHUNK, protection, flags, -1, 0);
	if (room == MAP_FAILED)
		return MAP_FAILED;
	start = room + (-(uintptr_t)room & (ARENA_CHUNK - 1));
	if (start > room)
		NEXT(munmap)(room, (size_t)(start - room));
	NEXT(munmap)(start + length, (size_t)(room + ARENA_CHUNK - start));
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
	/* Pages that are populated before the advice would be small. */
	start = map_aligned(bytes, protection, flags & ~MAP_POPULATE);
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
	if (maps.count < MAPS_MAX) {
		range.granted = ask(directive, whole_chunks(0, bytes));
		advise(&range);
		add(&range);
	} else {
		counts->refused += whole_chunks(0, bytes);
		counts->reason = "kernel";
	}
	lock__release(&maps.lock);
	if (flags & MAP_POPULATE)
		madvise(start, bytes, MADV_POPULATE_WRITE);
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

/* New memory within a mapping has its advice: to the kernel the two are one, as without advice. */
static void advise_replaced(uintptr_t start, size_t bytes)
{
	struct range *range;
	int saved = errno;

	if (!lock__take(&maps.lock))
		return;
	range = find(start, start + bytes);
	if (range)
		advise(range);
	lock__release(&maps.lock);
	errno = saved;
}

static bool is_all_granted(const struct range *range)
{
	return range->granted == whole_chunks(range->start, range->start + range->bytes);
}

/* What the site has had before these addresses, all in large pages; NULL: nothing. */
static struct range *find_before(uint32_t directive, uintptr_t start)
{
	uint32_t i;

	for (i = 0; i < maps.count; i++) {
		struct range *range = &maps.ranges[i];

		if (range->start + range->bytes == start && range->directive == directive &&
		    is_all_granted(range))
			return range;
	}
	return NULL;
}

/* The range before has more now. Its last bytes, which filled no chunk, may be in small pages. */
static void extend(struct range *range, size_t bytes)
{
	uintptr_t end = range->start + range->bytes;
	uintptr_t rest = end / ARENA_CHUNK * ARENA_CHUNK;

	range->bytes += bytes;
	range->granted +=
		ask(range->directive, whole_chunks(range->start, end + bytes) - range->granted);
	advise(range);
	if (!range->middle && rest >= chunk_up(range->start) && rest < end &&
	    rest + ARENA_CHUNK <= chunk_up(range->start) + range->granted)
		madvise((void *)rest, ARENA_CHUNK, MADV_COLLAPSE);
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
	if (before) {
		extend(before, bytes);
	} else if (whole && maps.count < MAPS_MAX) {
		range.granted = ask(directive, whole);
		advise(&range);
		add(&range);
	} else if (whole) {
		counts->refused += whole;
		counts->reason = "kernel";
	}
	lock__release(&maps.lock);
	errno = saved;
}

/* The program takes memory back that it had committed, and keeps the addresses. */
static void decommit(uintptr_t start, uintptr_t end)
{
	int saved = errno;

	if (!lock__take(&maps.lock))
		return;
	forget(start, end);
	lock__release(&maps.lock);
	errno = saved;
}

/* What becomes of addresses that the program has given other memory. */
static void replaced(int directive, uintptr_t start, size_t bytes, int protection)
{
	if (directive >= 0)
		commit((uint32_t)directive, start, bytes);
	else if (!__atomic_load_n(&maps.count, __ATOMIC_RELAXED))
		return;
	else if (!(protection & PROT_WRITE) && bytes >= ARENA_CHUNK)
		decommit(start, start + bytes);
	else
		advise_replaced(start, bytes);
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
	if (start != MAP_FAILED &&
	    (flags & (MAP_PRIVATE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS))
		replaced(found, (uintptr_t)start, bytes, protection);
	return start;
}

APPLY_EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int fd,
			  off64_t at) __attribute__((alias("mmap")));

/* --- what becomes of it --- */

/* What is left of a range between these. Returns bytes of large pages that are no more in it. */
static size_t keep(const struct range *was, uintptr_t start, uintptr_t end)
{
	uintptr_t large = chunk_up(was->start) + was->granted;
	struct range part = {.start = start, .bytes = end - start, .directive = was->directive};

	if (start >= end)
		return 0;
	part.granted = whole_chunks(start, large < end ? large : end);
	part.middle = was->middle ? part.granted : 0;
	if (maps.count < MAPS_MAX)
		add(&part); /* else it is noted no more, but its pages stay counted */
	return part.granted;
}

/* These addresses are not the program's any more. */
static void forget(uintptr_t start, uintptr_t end)
{
	struct range *range, was;
	uintptr_t from, to, was_end;
	size_t kept;

	while ((range = find(start, end))) {
		was = *range;
		was_end = was.start + was.bytes;
		__atomic_store_n(&maps.count, maps.count - 1, __ATOMIC_RELAXED);
		*range = maps.ranges[maps.count];
		from = was.start > start ? was.start : start;
		to = was_end < end ? was_end : end;
		kept = keep(&was, was.start, from) + keep(&was, to, was_end);
		counts__add(&counts__all[was.directive], to - from, 0);
		if (was.granted > kept)
			counts__give_back(&counts__all[was.directive], was.granted - kept);
		if (was.middle > kept)
			middle__release(was.middle - kept);
	}
}

APPLY_EXPORT int munmap(void *address, size_t bytes)
{
	uintptr_t start = (uintptr_t)address, end = start + ((bytes + 4095) & ~(size_t)4095);
	const struct range *range;
	int rc, saved = errno;

	heap__alter(address, bytes);
	if (!__atomic_load_n(&maps.count, __ATOMIC_RELAXED))
		return NEXT(munmap)(address, bytes);
	/* Under the lock, lest another thread gets these addresses before they are forgotten. */
	if (!lock__take(&maps.lock))
		return NEXT(munmap)(address, bytes);
	range = find(start, end);
	if (range)
		counts__before_release(&counts__all[range->directive]);
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
	void *room = map_aligned(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS), *moved;

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
	size_t had = whole_chunks(range->start, range->start + range->bytes);
	size_t whole = whole_chunks(start, start + bytes);

	counts__add(&counts__all[range->directive], range->bytes, bytes);
	range->bytes = bytes;
	/* Where the front was granted in part only, the rest stays small. */
	if (range->granted == had && whole > had)
		range->granted += ask(range->directive, whole - had);
	range->start = start;
	note_extent(range);
	advise(range);
	/* The rest that filled no chunk before was used in small pages. */
	if (range->granted > had)
		madvise((void *)(chunk_up(start) + had), ARENA_CHUNK, MADV_COLLAPSE);
}

static void *remap(struct range *range, size_t bytes, int flags)
{
	void *old = (void *)range->start, *start;
	int saved = errno;

	join(range);
	start = NEXT(mremap)(old, range->bytes, bytes, flags & ~MREMAP_MAYMOVE);
	if (start == MAP_FAILED && flags & MREMAP_MAYMOVE) {
		errno = saved;
		start = move_aligned(old, range->bytes, bytes);
	}
	if (start == MAP_FAILED) {
		saved = errno;
		advise(range);
	} else if (bytes < range->bytes) {
		forget(range->start + bytes, range->start + range->bytes);
		range = find((uintptr_t)start, (uintptr_t)start + bytes);
		if (range)
			advise(range);
	} else {
		grown(range, (uintptr_t)start, bytes);
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
		if (range)
			join(range);
		moved = NEXT(mremap)(old, old_bytes, bytes, flags, to);
		if (moved != MAP_FAILED) {
			forget(start, start + old_bytes);
			errno = saved;
		}
	}
	lock__release(&maps.lock);
	return moved;
}

/* --- around fork, and for the report --- */

int maps__directive(uintptr_t start, uintptr_t end)
{
	const struct range *range;
	int found = -1;

	range = find(start, end);
	if (range)
		found = (int)range->directive;
	return found;
}

void maps__before_fork(void)
{
	lock__before_fork(&maps.lock);
}

void maps__after_fork(bool is_child)
{
	uint32_t i;

	/* As arena__disown does. */
	for (i = 0; is_child && i < maps.count; i++) {
		struct range *range = &maps.ranges[i];

		if (range->granted)
			madvise((void *)range->start, range->bytes, MADV_NOHUGEPAGE);
		range->granted = range->middle = 0;
	}
	lock__after_fork(&maps.lock, is_child);
}
