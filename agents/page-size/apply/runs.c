// SPDX-License-Identifier: MIT
/*
 * runs.c - runs of pages: found by size in bins, merged when free, backed by large pages or small
 *
 * Free memory beyond some slack goes back to the kernel in whole chunks, together with the grant
 * of its large pages, so that another site may have them.
 */
#include "runs.h"

#include "middle.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TABLE_FIRST 16384u
#define SEARCH_MAX 64u /* free spans of a bin that are compared */
#define SLACK_CHUNKS 4u

/* The program's own mmap may be one that this library stands in front of. */
static void *map_memory(uintptr_t at, size_t bytes, int flags)
{
	return (void *)syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static bool advise(const struct arena *arena, uint32_t chunk, uint32_t count, int advice)
{
	return !syscall(SYS_madvise, page_address(arena, chunk * ARENA_CHUNK_PAGES),
			(size_t)count * ARENA_CHUNK, advice);
}

/* Map pages of the arena anew. false: they are as they were. */
static bool replace(const struct arena *arena, uint32_t page, uint32_t pages)
{
	return map_memory((uintptr_t)page_address(arena, page), (size_t)pages * ARENA_PAGE,
			  MAP_FIXED) != MAP_FAILED;
}

static bool table_grow(struct arena_table *table, uint64_t bytes)
{
	size_t size = table->bytes ? table->bytes : TABLE_FIRST;
	void *at;

	if (bytes <= table->bytes)
		return true;
	while (size < bytes)
		size *= 2;
	if (table->at)
		at = (void *)syscall(SYS_mremap, table->at, table->bytes, size, MREMAP_MAYMOVE);
	else
		at = map_memory(0, size, 0);
	if (at == MAP_FAILED)
		return false;
	table->at = at;
	table->bytes = size;
	return true;
}

/* --- spans and bins --- */

/* Make sure that count structures can be had; the table may move. */
static bool span_room(struct arena *arena, uint32_t count)
{
	if (!arena->span_count)
		arena->span_count = 1;
	return table_grow(&arena->spans,
			  (uint64_t)(arena->span_count + count) * sizeof(struct arena_span));
}

static uint32_t span_new(struct arena *arena, uint32_t page, uint32_t pages)
{
	uint32_t n = arena->span_free;
	struct arena_span *span;

	if (n)
		arena->span_free = span_at(arena, n)->next;
	else
		n = arena->span_count++;
	span = span_at(arena, n);
	span->page = page;
	span->pages = pages;
	return n;
}

static void span_drop(struct arena *arena, uint32_t n)
{
	struct arena_span *span = span_at(arena, n);

	span->state = ARENA_SPAN_FREE;
	span->pages = 0;
	span->next = arena->span_free;
	arena->span_free = n;
}

static void span_mark(struct arena *arena, uint32_t n)
{
	struct arena_span *span = span_at(arena, n);

	page_map(arena)[span->page] = n;
	page_map(arena)[span->page + span->pages - 1] = n;
}

static uint32_t bin_of(uint32_t pages)
{
	return 31 - (uint32_t)__builtin_clz(pages);
}

static void bin_link(struct arena *arena, uint32_t n)
{
	struct arena_span *span = span_at(arena, n);
	uint32_t *first = &arena->bins[bin_of(span->pages)];

	span->state = ARENA_SPAN_FREE;
	span->previous = 0;
	span->next = *first;
	if (*first)
		span_at(arena, *first)->previous = n;
	*first = n;
	span_mark(arena, n);
}

static void bin_unlink(struct arena *arena, uint32_t n)
{
	struct arena_span *span = span_at(arena, n);

	if (span->previous)
		span_at(arena, span->previous)->next = span->next;
	else
		arena->bins[bin_of(span->pages)] = span->next;
	if (span->next)
		span_at(arena, span->next)->previous = span->previous;
}

/* The free span before or behind a page; 0: there is none. */
static uint32_t free_before(const struct arena *arena, uint32_t page)
{
	uint32_t n = page ? page_map(arena)[page - 1] : 0;

	return n && span_at(arena, n)->state == ARENA_SPAN_FREE ? n : 0;
}

static uint32_t free_behind(const struct arena *arena, uint32_t page)
{
	uint32_t n = page < arena->mapped ? page_map(arena)[page] : 0;

	return n && span_at(arena, n)->state == ARENA_SPAN_FREE ? n : 0;
}

/* Make a span that is in no list a free one, together with free neighbours. Returns its number. */
static uint32_t merge(struct arena *arena, uint32_t n)
{
	uint32_t before = free_before(arena, span_at(arena, n)->page), behind;

	if (before) {
		bin_unlink(arena, before);
		span_at(arena, before)->pages += span_at(arena, n)->pages;
		span_drop(arena, n);
		n = before;
	}
	behind = free_behind(arena, span_at(arena, n)->page + span_at(arena, n)->pages);
	if (behind) {
		bin_unlink(arena, behind);
		span_at(arena, n)->pages += span_at(arena, behind)->pages;
		span_drop(arena, behind);
	}
	bin_link(arena, n);
	return n;
}

/* --- memory --- */

/* Map at least so many pages behind the last. */
static bool map_more(struct arena *arena, uint64_t pages)
{
	uint64_t bytes = (pages * ARENA_PAGE + ARENA_CHUNK - 1) / ARENA_CHUNK * ARENA_CHUNK;
	uint64_t all = arena__bytes(arena) + bytes;
	uintptr_t end = arena->base + arena__bytes(arena);
	void *at;

	if (all > arena->limit || all / ARENA_PAGE > UINT32_MAX / 2 || !span_room(arena, 4) ||
	    !table_grow(&arena->map, all / ARENA_PAGE * sizeof(uint32_t)) ||
	    !table_grow(&arena->chunks, all / ARENA_CHUNK))
		return false;
	at = map_memory(end, bytes, MAP_FIXED_NOREPLACE);
	if (at == MAP_FAILED)
		return false;
	if ((uintptr_t)at != end) { /* a kernel before 4.17, and the addresses are taken */
		syscall(SYS_munmap, at, bytes);
		return false;
	}
	memset(chunk_states(arena) + arena->mapped / ARENA_CHUNK_PAGES, ARENA_CHUNK_EMPTY,
	       bytes / ARENA_CHUNK);
	pages = bytes / ARENA_PAGE;
	arena->mapped += (uint32_t)pages;
	merge(arena, span_new(arena, arena->mapped - (uint32_t)pages, (uint32_t)pages));
	return true;
}

/* The same with an eighth of the arena more, so that small requests seldom call the kernel. */
static bool grow(struct arena *arena, uint32_t pages)
{
	int saved = errno;
	bool done = map_more(arena, (uint64_t)pages + arena->mapped / 8) || map_more(arena, pages);

	errno = saved;
	return done;
}

/* Pages of 64 KiB, as far as the kernel gives them: for how many chunks from the first on. */
static uint32_t advise_middle(const struct arena *arena, uint32_t chunk, uint32_t count)
{
	const char *reason;
	size_t bytes = (size_t)count * ARENA_CHUNK, got;

	got = middle__advise((uintptr_t)page_address(arena, chunk * ARENA_CHUNK_PAGES), bytes,
			     &reason);
	if (got < bytes)
		arena->pages.refuse(arena->pages.data, bytes - got, reason);
	return (uint32_t)(got / ARENA_CHUNK);
}

/* Put memory behind the empty chunks of these: large pages as granted, or small ones. */
static void fill_chunks(struct arena *arena, uint32_t chunk, uint32_t end)
{
	uint8_t *states = chunk_states(arena);
	uint32_t count, large;

	for (; chunk < end; chunk += count) {
		for (count = 0; chunk + count < end && states[chunk + count] == ARENA_CHUNK_EMPTY;)
			count++;
		if (!count) {
			count = 1;
			continue;
		}
		large = 0;
		if (arena->pages.grant)
			large = (uint32_t)(arena->pages.grant(arena->pages.data,
							      (uint64_t)count * ARENA_CHUNK) /
					   ARENA_CHUNK);
		if (large && !arena->pages.are_middle)
			advise(arena, chunk, large, MADV_HUGEPAGE);
		/* Else the kernel might take large ones, where it does so unasked. */
		if (arena->pages.are_middle)
			advise(arena, chunk, count, MADV_NOHUGEPAGE);
		else if (large < count)
			advise(arena, chunk + large, count - large, MADV_NOHUGEPAGE);
		if (large && arena->pages.are_middle)
			large = advise_middle(arena, chunk, large);
		arena->large_bytes += (uint64_t)large * ARENA_CHUNK;
		memset(states + chunk,
		       arena->pages.are_middle ? ARENA_CHUNK_MIDDLE : ARENA_CHUNK_LARGE, large);
		memset(states + chunk + large, ARENA_CHUNK_SMALL, count - large);
	}
}

static void zero_pages(const struct arena *arena, uint32_t page, uint32_t end)
{
	while (page < end) {
		uint32_t chunk = page / ARENA_CHUNK_PAGES;
		uint32_t next = (chunk + 1) * ARENA_CHUNK_PAGES;

		if (next > end)
			next = end;
		if (chunk_states(arena)[chunk] != ARENA_CHUNK_EMPTY)
			memset(page_address(arena, page), 0, (size_t)(next - page) * ARENA_PAGE);
		page = next;
	}
}

/* These pages are used from now on. */
static void fill(struct arena *arena, uint32_t page, uint32_t end, bool zero)
{
	int saved = errno;

	if (zero)
		zero_pages(arena, page, end);
	fill_chunks(arena, page / ARENA_CHUNK_PAGES, (end - 1) / ARENA_CHUNK_PAGES + 1);
	arena->used += end - page;
	if (arena->used > arena->peak)
		arena->peak = arena->used;
	errno = saved;
}

static void empty_chunk(struct arena *arena, uint32_t chunk)
{
	uint8_t *state = chunk_states(arena) + chunk;

	/* Small pages first, lest a page be large and not counted for a moment. */
	advise(arena, chunk, 1, MADV_NOHUGEPAGE);
	/* The kernel keeps pages that the program has locked. New memory takes their place. */
	if (!advise(arena, chunk, 1, MADV_DONTNEED) &&
	    !replace(arena, chunk * ARENA_CHUNK_PAGES, ARENA_CHUNK_PAGES))
		return;
	if (*state == ARENA_CHUNK_MIDDLE)
		middle__release(ARENA_CHUNK);
	if (*state == ARENA_CHUNK_LARGE || *state == ARENA_CHUNK_MIDDLE) {
		arena->large_bytes -= ARENA_CHUNK;
		arena->pages.give_back(arena->pages.data, ARENA_CHUNK);
	}
	*state = ARENA_CHUNK_EMPTY;
}

/* Give whole chunks of a free span back, but for some: those that come next need no new page. */
static void empty_chunks(struct arena *arena, const struct arena_span *span)
{
	uint32_t first = (span->page + ARENA_CHUNK_PAGES - 1) / ARENA_CHUNK_PAGES;
	uint32_t end = (span->page + span->pages) / ARENA_CHUNK_PAGES, chunk, kept = 0;
	uint32_t slack = SLACK_CHUNKS + arena->peak / ARENA_CHUNK_PAGES / 4;
	int saved = errno;

	for (chunk = first; chunk < end; chunk++) {
		if (chunk_states(arena)[chunk] == ARENA_CHUNK_EMPTY || ++kept <= slack)
			continue;
		if (kept == slack + 1 && arena->large_bytes)
			arena->pages.before_release(arena->pages.data);
		empty_chunk(arena, chunk);
	}
	errno = saved;
}

/* --- runs --- */

/* The first page of the free span where such a run may begin. */
static uint64_t run_start(const struct arena *arena, const struct arena_span *span,
			  uint32_t aligned)
{
	uint64_t first = arena->base / ARENA_PAGE + span->page;

	return (first + aligned - 1) / aligned * aligned - arena->base / ARENA_PAGE;
}

static bool run_fits(const struct arena *arena, const struct arena_span *span, uint32_t pages,
		     uint32_t aligned)
{
	return run_start(arena, span, aligned) + pages <= (uint64_t)span->page + span->pages;
}

/* Of the smallest bin with a span that fits, the smallest of those that are compared. */
static uint32_t run_find(const struct arena *arena, uint32_t pages, uint32_t aligned)
{
	uint32_t bin, n, best = 0, compared;

	for (bin = bin_of(pages); bin < ARENA_BINS && !best; bin++) {
		compared = 0;
		for (n = arena->bins[bin]; n && compared < SEARCH_MAX;
		     n = span_at(arena, n)->next, compared++) {
			if (run_fits(arena, span_at(arena, n), pages, aligned) &&
			    (!best || span_at(arena, n)->pages < span_at(arena, best)->pages))
				best = n;
		}
	}
	return best;
}

/* Cut a run out of a free span. What is before and behind it stays free. */
static uint32_t run_cut(struct arena *arena, uint32_t n, uint32_t page, uint32_t pages)
{
	struct arena_span was = *span_at(arena, n);
	uint32_t end = was.page + was.pages;

	bin_unlink(arena, n);
	if (page > was.page) {
		span_at(arena, n)->pages = page - was.page;
		bin_link(arena, n);
		n = span_new(arena, page, pages);
	}
	span_at(arena, n)->page = page;
	span_at(arena, n)->pages = pages;
	span_at(arena, n)->state = ARENA_SPAN_LARGE;
	span_mark(arena, n);
	if (page + pages < end)
		bin_link(arena, span_new(arena, page + pages, end - page - pages));
	return n;
}

/* How many pages behind its chunk's first page a run begins. It takes no chunk more for that. */
static uint32_t colour_of(const struct arena *arena, const struct arena_span *span, uint32_t page,
			  uint32_t pages)
{
	uint32_t room = span->page + span->pages - page - pages;
	uint32_t rest = (ARENA_CHUNK_PAGES - pages % ARENA_CHUNK_PAGES) % ARENA_CHUNK_PAGES;

	if (page % ARENA_CHUNK_PAGES || pages <= ARENA_CHUNK_PAGES)
		return 0;
	if (rest < room)
		room = rest;
	return arena->pages.colour < room ? arena->pages.colour : room;
}

uint32_t runs__take_zeroed(struct arena *arena, uint32_t pages, uint32_t aligned, bool zero)
{
	uint32_t n = run_find(arena, pages, aligned), page;

	if (!n && grow(arena, pages + aligned - 1))
		n = run_find(arena, pages, aligned);
	if (!n || !span_room(arena, 2))
		return 0;
	page = (uint32_t)run_start(arena, span_at(arena, n), aligned);
	if (aligned == 1)
		page += colour_of(arena, span_at(arena, n), page, pages);
	n = run_cut(arena, n, page, pages);
	fill(arena, span_at(arena, n)->page, span_at(arena, n)->page + pages, zero);
	return n;
}

uint32_t runs__take(struct arena *arena, uint32_t pages, uint32_t aligned)
{
	return runs__take_zeroed(arena, pages, aligned, false);
}

/*
 * The program may have left pages protected, unmapped, or a mapping of a file in their place: what
 * is used next is new memory. false: there is none.
 */
static bool restore(struct arena *arena, const struct arena_span *span)
{
	uint32_t chunk = span->page / ARENA_CHUNK_PAGES;
	uint32_t last = (span->page + span->pages - 1) / ARENA_CHUNK_PAGES;
	int saved = errno;
	bool done = replace(arena, span->page, span->pages);

	for (; done && chunk <= last; chunk++) {
		uint8_t state = chunk_states(arena)[chunk];

		advise(arena, chunk, 1,
		       state == ARENA_CHUNK_LARGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
		if (state == ARENA_CHUNK_MIDDLE)
			syscall(SYS_madvise, page_address(arena, chunk * ARENA_CHUNK_PAGES),
				ARENA_CHUNK - ARENA_PAGE, MADV_HUGEPAGE);
	}
	errno = saved;
	return done;
}

void runs__free(struct arena *arena, uint32_t n)
{
	/* What can't be restored is never used again. */
	if (__atomic_load_n(&arena->altered, __ATOMIC_RELAXED) &&
	    !restore(arena, span_at(arena, n)))
		return;
	arena->used -= span_at(arena, n)->pages;
	n = merge(arena, n);
	empty_chunks(arena, span_at(arena, n));
}

static bool run_extend(struct arena *arena, uint32_t n, uint32_t more)
{
	uint32_t end = span_at(arena, n)->page + span_at(arena, n)->pages, behind;
	uint32_t room = 0;

	behind = free_behind(arena, end);
	if (behind)
		room = span_at(arena, behind)->pages;
	/* The last one grows with the arena. */
	if (room < more && end + room == arena->mapped && grow(arena, more - room)) {
		behind = free_behind(arena, end);
		room = span_at(arena, behind)->pages;
	}
	if (room < more || !span_room(arena, 2))
		return false;
	behind = run_cut(arena, behind, end, more);
	span_drop(arena, behind);
	span_at(arena, n)->pages += more;
	span_mark(arena, n);
	fill(arena, end, end + more, false);
	return true;
}

bool runs__resize(struct arena *arena, uint32_t n, uint32_t pages)
{
	uint32_t had = span_at(arena, n)->pages, rest;

	if (pages > had)
		return run_extend(arena, n, pages - had);
	if (pages == had)
		return true;
	if (!span_room(arena, 1))
		return false;
	rest = span_new(arena, span_at(arena, n)->page + pages, had - pages);
	span_at(arena, rest)->state = ARENA_SPAN_LARGE;
	span_at(arena, n)->pages = pages;
	span_mark(arena, n);
	span_mark(arena, rest);
	runs__free(arena, rest);
	return true;
}

void arena__disown(struct arena *arena)
{
	uint32_t chunk, count = arena->mapped / ARENA_CHUNK_PAGES;
	int saved = errno;

	if (!arena->large_bytes)
		return;
	advise(arena, 0, count, MADV_NOHUGEPAGE);
	for (chunk = 0; chunk < count; chunk++) {
		if (chunk_states(arena)[chunk] != ARENA_CHUNK_EMPTY)
			chunk_states(arena)[chunk] = ARENA_CHUNK_SMALL;
	}
	arena->large_bytes = 0;
	errno = saved;
}
