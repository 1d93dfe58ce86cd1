// SPDX-License-Identifier: MIT
/*
 * runs.c - runs of pages: found by size in bins, merged when free or idle
 *
 * A run that is taken gets exactly its own pages, and memory that is idle goes back to the kernel,
 * addresses included: what limits the program's memory or addresses (control group, RLIMIT_AS,
 * RLIMIT_DATA, mlockall) finds little more than the program uses.
 */
#include "runs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TABLE_FIRST 16384u
#define SEARCH_MAX 64u /* free spans of a bin that are compared */
/* Idle memory that an arena keeps, so that what comes next needs no call of the kernel. */
#define IDLE_PAGES 256u
#define IDLE_SHARE 32u /* of the used pages */
/*
 * Each free span parts the mappings before and after it, and a process may have 65,530 of them by
 * default (vm.max_map_count). All arenas together have this many at most.
 */
#define FREE_SPANS_MAX 4096u
/* Shorter idle spans stay. A C library's allocator keeps holes of twice this length. */
#define RELEASE_PAGES 16u
#define COLOUR_PAGES 16u
/* A moved run stays a mapping of its own. Shorter ones are copied. */
#define MOVED_PAGES_MIN 256u
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

static uint32_t free_spans; /* of all arenas */

/* The program's own mmap may be one that this library stands in front of. */
static void *map_memory(uintptr_t at, size_t bytes, int flags)
{
	return (void *)syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* New memory at pages that have none. */
static bool give_memory(const struct arena *arena, uint32_t page, uint32_t pages)
{
	uintptr_t start = (uintptr_t)page_address(arena, page);
	size_t bytes = (size_t)pages * ARENA_PAGE;
	void *at = map_memory(start, bytes, MAP_FIXED_NOREPLACE);

	if (at == MAP_FAILED)
		return false;
	if ((uintptr_t)at == start)
		return true;
	/* The kernel is older than 4.17, and the addresses are taken. */
	syscall(SYS_munmap, at, bytes);
	return false;
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

/* For bin_link and bin_unlink: threads use different arenas at a time. */
static void count_free(enum arena_span_state state, uint32_t more)
{
	if (state == ARENA_SPAN_FREE)
		__atomic_fetch_add(&free_spans, more, __ATOMIC_RELAXED);
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

uint32_t runs__idle_pages(uint32_t pages)
{
	return pages < RELEASE_PAGES ? 0 : pages;
}

/* state: ARENA_SPAN_FREE, ARENA_SPAN_EMPTY or ARENA_SPAN_IDLE */
static void bin_link(struct arena *arena, uint32_t n, enum arena_span_state state)
{
	struct arena_span *span = span_at(arena, n);
	uint32_t *first = &arena->bins[state][bin_of(span->pages)];

	span->state = (uint8_t)state;
	count_free(state, 1);
	if (state == ARENA_SPAN_IDLE)
		arena->idle += runs__idle_pages(span->pages);
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

	count_free(span->state, UINT32_MAX);
	if (span->state == ARENA_SPAN_IDLE)
		arena->idle -= runs__idle_pages(span->pages);
	if (span->previous)
		span_at(arena, span->previous)->next = span->next;
	else
		arena->bins[span->state][bin_of(span->pages)] = span->next;
	if (span->next)
		span_at(arena, span->next)->previous = span->previous;
}

/* The span before or after a page, if it is free, empty or idle; 0: it isn't, or there is none. */
static uint32_t unused_before(const struct arena *arena, uint32_t page)
{
	uint32_t n = page ? page_map(arena)[page - 1] : 0;

	return n && span_at(arena, n)->state <= ARENA_SPAN_IDLE ? n : 0;
}

static uint32_t unused_after(const struct arena *arena, uint32_t page)
{
	uint32_t n = page < arena->mapped ? page_map(arena)[page] : 0;

	return n && span_at(arena, n)->state <= ARENA_SPAN_IDLE ? n : 0;
}

/*
 * Make a span that is in no list a free, empty or idle one, together with neighbours of that state.
 * Returns its number.
 */
static uint32_t merge(struct arena *arena, uint32_t n, enum arena_span_state state)
{
	uint32_t other = unused_before(arena, span_at(arena, n)->page);

	if (other && span_at(arena, other)->state == state) {
		bin_unlink(arena, other);
		span_at(arena, other)->pages += span_at(arena, n)->pages;
		span_drop(arena, n);
		n = other;
	}
	other = unused_after(arena, span_at(arena, n)->page + span_at(arena, n)->pages);
	if (other && span_at(arena, other)->state == state) {
		bin_unlink(arena, other);
		span_at(arena, n)->pages += span_at(arena, other)->pages;
		span_drop(arena, other);
	}
	bin_link(arena, n, state);
	return n;
}

/* --- memory --- */

/* Use at least this many pages more of the arena's addresses. */
static bool use_more(struct arena *arena, uint64_t pages)
{
	uint64_t all;

	pages = (pages + ARENA_CHUNK_PAGES - 1) / ARENA_CHUNK_PAGES * ARENA_CHUNK_PAGES;
	all = arena->mapped + pages;
	if (all * ARENA_PAGE > arena->limit || all > UINT32_MAX / 2 || !span_room(arena, 6) ||
	    !table_grow(&arena->map, all * sizeof(uint32_t)))
		return false;
	arena->mapped += (uint32_t)pages;
	merge(arena, span_new(arena, arena->mapped - (uint32_t)pages, (uint32_t)pages),
	      ARENA_SPAN_FREE);
	return true;
}

/* The same with an eighth of the arena more. Addresses cost nothing. */
static bool grow(struct arena *arena, uint32_t pages)
{
	return use_more(arena, (uint64_t)pages + arena->mapped / 8) || use_more(arena, pages);
}

static bool is_free(const struct arena *arena, uint32_t n)
{
	return n && span_at(arena, n)->state == ARENA_SPAN_FREE;
}

/*
 * Takes the memory of a span away, and the mapping unless there would be too many. Returns the new
 * state; ARENA_SPAN_LARGE: mappings of the program's own may still be there.
 */
static enum arena_span_state take_memory(const struct arena *arena, uint32_t n)
{
	const struct arena_span *span = span_at(arena, n);
	uintptr_t start = (uintptr_t)page_address(arena, span->page);
	size_t bytes = (size_t)span->pages * ARENA_PAGE;
	bool is_few = __atomic_load_n(&free_spans, __ATOMIC_RELAXED) < FREE_SPANS_MAX ||
		      is_free(arena, unused_before(arena, span->page)) ||
		      is_free(arena, unused_after(arena, span->page + span->pages));

	if (arena->pages.released)
		arena->pages.released(arena->pages.data, start, start + bytes);
	if (is_few && !syscall(SYS_munmap, start, bytes))
		return ARENA_SPAN_FREE;
	if (__atomic_load_n(&arena->altered, __ATOMIC_RELAXED))
		return map_memory(start, bytes, MAP_FIXED) == MAP_FAILED ? ARENA_SPAN_LARGE
									 : ARENA_SPAN_EMPTY;
	if (syscall(SYS_madvise, start, bytes, MADV_DONTNEED_LOCKED))
		syscall(SYS_madvise, start, bytes, MADV_DONTNEED);
	return ARENA_SPAN_EMPTY;
}

/* An idle span becomes a free or empty one. false: it stays. */
static bool release(struct arena *arena, uint32_t n)
{
	enum arena_span_state state = take_memory(arena, n);

	if (state == ARENA_SPAN_LARGE)
		return false;
	bin_unlink(arena, n);
	merge(arena, n, state);
	return true;
}

static void release_idle(struct arena *arena)
{
	uint32_t *bins = arena->bins[ARENA_SPAN_IDLE], bin = ARENA_BINS;

	while (bin-- > bin_of(RELEASE_PAGES)) {
		while (bins[bin]) {
			if (!release(arena, bins[bin]))
				return;
		}
	}
}

/* --- runs --- */

/* The first page of the span where such a run may begin. */
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
static uint32_t run_find(const struct arena *arena, enum arena_span_state state, uint32_t pages,
			 uint32_t aligned)
{
	uint32_t bin, n, best = 0, compared;

	for (bin = bin_of(pages); bin < ARENA_BINS && !best; bin++) {
		compared = 0;
		for (n = arena->bins[state][bin]; n && compared < SEARCH_MAX;
		     n = span_at(arena, n)->next, compared++) {
			if (run_fits(arena, span_at(arena, n), pages, aligned) &&
			    (!best || span_at(arena, n)->pages < span_at(arena, best)->pages))
				best = n;
		}
	}
	return best;
}

/* Cut a run out of a free, empty or idle span. What is before and after it stays as it is. */
static uint32_t run_cut(struct arena *arena, uint32_t n, uint32_t page, uint32_t pages)
{
	struct arena_span was = *span_at(arena, n);
	uint32_t end = was.page + was.pages;

	bin_unlink(arena, n);
	if (page > was.page) {
		span_at(arena, n)->pages = page - was.page;
		bin_link(arena, n, was.state);
		n = span_new(arena, page, pages);
	}
	span_at(arena, n)->page = page;
	span_at(arena, n)->pages = pages;
	span_at(arena, n)->state = ARENA_SPAN_LARGE;
	span_mark(arena, n);
	if (page + pages < end)
		bin_link(arena, span_new(arena, page + pages, end - page - pages), was.state);
	return n;
}

/* How many pages after its chunk's first page a run begins. It takes no chunk more for that. */
static uint32_t colour_of(const struct arena *arena, const struct arena_span *span, uint32_t page,
			  uint32_t pages)
{
	uint32_t most = span->page + span->pages - page - pages;
	uint32_t rest = (ARENA_CHUNK_PAGES - pages % ARENA_CHUNK_PAGES) % ARENA_CHUNK_PAGES;

	if (page % ARENA_CHUNK_PAGES || pages <= ARENA_CHUNK_PAGES)
		return 0;
	if (rest < most)
		most = rest;
	if (COLOUR_PAGES - 1 < most)
		most = COLOUR_PAGES - 1;
	return arena->pages.colour < most ? arena->pages.colour : most;
}

/* Memory for a run of a free span. What is skipped before it is idle: one mapping holds the chunk.
 */
static uint32_t take_free(struct arena *arena, uint32_t n, uint32_t page, uint32_t skipped,
			  uint32_t pages)
{
	uint32_t run;

	if (!give_memory(arena, page, skipped + pages))
		return 0;
	n = run_cut(arena, n, page, skipped + pages);
	if (!skipped)
		return n;
	run = span_new(arena, page + skipped, pages);
	span_at(arena, run)->state = ARENA_SPAN_LARGE;
	span_mark(arena, run);
	span_at(arena, n)->pages = skipped;
	merge(arena, n, ARENA_SPAN_IDLE);
	return run;
}

uint32_t runs__take(struct arena *arena, uint32_t pages, uint32_t aligned, bool zero)
{
	uint32_t n = run_find(arena, ARENA_SPAN_IDLE, pages, aligned), page, skipped = 0;
	bool is_idle = n != 0, is_mapped;
	int saved = errno;

	if (!n)
		n = run_find(arena, ARENA_SPAN_EMPTY, pages, aligned);
	is_mapped = n != 0;
	if (!n)
		n = run_find(arena, ARENA_SPAN_FREE, pages, aligned);
	if (!n && grow(arena, pages + aligned - 1))
		n = run_find(arena, ARENA_SPAN_FREE, pages, aligned);
	if (n && span_room(arena, 4)) {
		page = (uint32_t)run_start(arena, span_at(arena, n), aligned);
		if (aligned == 1 && !is_mapped)
			skipped = colour_of(arena, span_at(arena, n), page, pages);
		n = is_mapped ? run_cut(arena, n, page, pages)
			      : take_free(arena, n, page, skipped, pages);
	} else {
		n = 0;
	}
	errno = saved;
	if (!n)
		return 0;
	arena->used += pages;
	if (is_idle && zero)
		memset(page_address(arena, span_at(arena, n)->page), 0, (size_t)pages * ARENA_PAGE);
	return n;
}

void runs__free(struct arena *arena, uint32_t n)
{
	struct arena_span *span = span_at(arena, n);
	/*
	 * The program may have left pages protected, unmapped, or a mapping of a file in their
	 * place: what is used next is new memory.
	 */
	bool is_altered = __atomic_load_n(&arena->altered, __ATOMIC_RELAXED);
	enum arena_span_state state = ARENA_SPAN_IDLE;
	int saved = errno;

	if (is_altered)
		state = take_memory(arena, n);
	if (state != ARENA_SPAN_LARGE) { /* else the span is never used again */
		arena->used -= span->pages;
		merge(arena, n, state);
	}
	if (arena->idle > IDLE_PAGES + arena->used / IDLE_SHARE)
		release_idle(arena);
	errno = saved;
}

static bool run_extend(struct arena *arena, uint32_t n, uint32_t more)
{
	uint32_t end = span_at(arena, n)->page + span_at(arena, n)->pages, behind, has = 0;
	bool is_mapped;

	if (!span_room(arena, 6))
		return false;
	behind = unused_after(arena, end);
	if (behind)
		has = span_at(arena, behind)->pages;
	if (has && has < more && span_at(arena, behind)->state == ARENA_SPAN_IDLE) {
		if (!release(arena, behind))
			return false;
		behind = unused_after(arena, end);
		has = span_at(arena, behind)->pages;
	}
	/* The last one grows with the arena. */
	if (has < more && end + has == arena->mapped && grow(arena, more - has)) {
		behind = unused_after(arena, end);
		has = span_at(arena, behind)->pages;
	}
	if (has < more)
		return false;
	is_mapped = span_at(arena, behind)->state != ARENA_SPAN_FREE;
	if (!is_mapped && !give_memory(arena, end, more))
		return false;
	behind = run_cut(arena, behind, end, more);
	span_drop(arena, behind);
	span_at(arena, n)->pages += more;
	span_mark(arena, n);
	arena->used += more;
	return true;
}

bool runs__resize(struct arena *arena, uint32_t n, uint32_t pages)
{
	uint32_t had = span_at(arena, n)->pages, rest;
	int saved = errno;
	bool done;

	if (pages > had) {
		done = run_extend(arena, n, pages - had);
		errno = saved;
		return done;
	}
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

/* --- moving --- */

/* A run of addresses without memory, which begins at the same page of a chunk as another. */
static uint32_t take_addresses(struct arena *arena, uint32_t like, uint32_t pages)
{
	uint32_t offset = like % ARENA_CHUNK_PAGES, n, page;

	n = run_find(arena, ARENA_SPAN_FREE, pages + offset, ARENA_CHUNK_PAGES);
	if (!n && grow(arena, pages + offset + ARENA_CHUNK_PAGES - 1))
		n = run_find(arena, ARENA_SPAN_FREE, pages + offset, ARENA_CHUNK_PAGES);
	if (!n || !span_room(arena, 6))
		return 0;
	page = (uint32_t)run_start(arena, span_at(arena, n), ARENA_CHUNK_PAGES) + offset;
	return run_cut(arena, n, page, pages);
}

/* false: the pages are of several mappings, or too few addresses are left. */
static bool move_memory(const struct arena *arena, uint32_t from, uint32_t to, uint32_t had,
			uint32_t pages)
{
	size_t bytes = (size_t)had * ARENA_PAGE;

	if (pages > had && !give_memory(arena, to + had, pages - had))
		return false;
	if ((void *)syscall(SYS_mremap, page_address(arena, from), bytes, bytes,
			    MREMAP_MAYMOVE | MREMAP_FIXED, page_address(arena, to)) != MAP_FAILED)
		return true;
	if (pages > had)
		syscall(SYS_munmap, page_address(arena, to + had),
			(size_t)(pages - had) * ARENA_PAGE);
	return false;
}

uint32_t runs__move(struct arena *arena, uint32_t n, uint32_t pages)
{
	uint32_t from = span_at(arena, n)->page, had = span_at(arena, n)->pages, to;
	uintptr_t start = (uintptr_t)page_address(arena, from);
	int saved = errno;

	if (had < MOVED_PAGES_MIN || __atomic_load_n(&arena->altered, __ATOMIC_RELAXED))
		return 0;
	to = take_addresses(arena, from, pages);
	if (to && !move_memory(arena, from, span_at(arena, to)->page, had, pages)) {
		merge(arena, to, ARENA_SPAN_FREE);
		to = 0;
	}
	errno = saved;
	if (!to)
		return 0;
	if (arena->pages.released)
		arena->pages.released(arena->pages.data, start,
				      start + (uintptr_t)had * ARENA_PAGE);
	merge(arena, n, ARENA_SPAN_FREE);
	arena->used += pages - had;
	return to;
}
