// SPDX-License-Identifier: MIT
/* large.c - a set of chunks, what pagemap says of their pages, and MADV_COLLAPSE */
#include "large.h"

#include "arena.h"
#include "counts.h"
#include "files.h"
#include "lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Of an entry of /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst) */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)
#define PAGE_EXCLUSIVE (UINT64_C(1) << 56)

/* Pages of a chunk that may be missing: a large page then takes a 32nd more memory. */
#define HOLES_MAX 16u
#define CHUNKS_MAX 32u /* that are made large pages at once */
#define SET_FIRST 512u /* entries: a page */

/* A hash table with linear probing. An entry is a chunk's address and its directive; 0: none. */
static struct {
	struct lock lock;
	uint64_t *entries;
	uint64_t size, count; /* size: a power of two */
} set;

/* One thread at a time looks. Not on the stack, which may be small. */
static uint64_t pages[ARENA_CHUNK_PAGES];
static int pagemap = -1;

static uint64_t place_of(uintptr_t chunk)
{
	return (chunk / ARENA_CHUNK * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (set.size - 1);
}

/* Where a chunk is, or would be. */
static uint64_t find(uintptr_t chunk)
{
	uint64_t at = place_of(chunk);

	while (set.entries[at] && set.entries[at] / ARENA_CHUNK != chunk / ARENA_CHUNK)
		at = (at + 1) & (set.size - 1);
	return at;
}

static uint64_t *map_entries(uint64_t count)
{
	return (uint64_t *)syscall(SYS_mmap, NULL, count * sizeof(uint64_t), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Have space for more entries: fewer than SET_FIRST / 2. */
static bool grow(uint32_t more)
{
	uint64_t *was = set.entries, had = set.size, i;
	uint64_t *entries;

	if (set.count + more <= had / 2)
		return true;
	entries = map_entries(had ? 2 * had : SET_FIRST);
	if (entries == MAP_FAILED)
		return false;
	set.entries = entries;
	set.size = had ? 2 * had : SET_FIRST;
	for (i = 0; i < had; i++) {
		if (was[i])
			set.entries[find(was[i])] = was[i];
	}
	if (was)
		syscall(SYS_munmap, was, had * sizeof(uint64_t));
	return true;
}

static bool has(uintptr_t chunk)
{
	return set.size && set.entries[find(chunk)];
}

/* Entries after an empty place could not be found: each that may moves into it. */
static void drop(uint64_t at)
{
	uint64_t next = at, mask = set.size - 1, home;

	set.count--;
	for (;;) {
		set.entries[at] = 0;
		do {
			next = (next + 1) & mask;
			if (!set.entries[next])
				return;
			home = place_of(set.entries[next]);
		} while (((next - home) & mask) < ((next - at) & mask));
		set.entries[at] = set.entries[next];
		at = next;
	}
}

/* --- */

/* An entry goes. Returns the bytes that are to be given back. */
static uint64_t forget(uint64_t at)
{
	counts__all[set.entries[at] % ARENA_CHUNK].granted -= ARENA_CHUNK;
	drop(at);
	return ARENA_CHUNK;
}

/* Under the lock, so that a child is forked with the descriptor or without it. */
bool large__begin(void)
{
	if (!lock__try(&set.lock))
		return false;
	pagemap = files__open("/proc/self/pagemap", O_RDONLY, 0);
	lock__release(&set.lock);
	return pagemap >= 0;
}

void large__end(void)
{
	bool locked = lock__try(&set.lock);
	int fd = pagemap;

	pagemap = -1;
	close(fd);
	if (locked)
		lock__release(&set.lock);
}

static bool read_pages(uintptr_t chunk)
{
	return pread(pagemap, pages, sizeof(pages), (off_t)(chunk / ARENA_PAGE * sizeof(*pages))) ==
	       (ssize_t)sizeof(pages);
}

/*
 * Is nearly all of a chunk there? alone: also this process's alone, in memory and without a file.
 * A chunk that can't be read stays as it was.
 */
static bool is_dense(uintptr_t chunk, bool alone)
{
	const uint64_t flags = PAGE_PRESENT | PAGE_OF_FILE | PAGE_EXCLUSIVE;
	uint32_t i, holes = 0;

	if (!read_pages(chunk))
		return !alone;
	for (i = 0; i < ARENA_CHUNK_PAGES && holes <= HOLES_MAX; i++) {
		if (!(pages[i] & (PAGE_PRESENT | PAGE_SWAPPED)))
			holes++;
		else if (alone && (pages[i] & flags) != (PAGE_PRESENT | PAGE_EXCLUSIVE))
			return false;
	}
	return holes <= HOLES_MAX;
}

/* How many chunks in a row could be large pages, most at most. */
static uint32_t count_dense(uintptr_t chunk, uintptr_t end, uint32_t most)
{
	uint32_t count = 0;

	while (count < most && chunk < end && !has(chunk) && is_dense(chunk, true)) {
		count++;
		chunk += ARENA_CHUNK;
	}
	return count;
}

/*
 * The kernel waits for every processor in each call, so that it is called once for many chunks. It
 * goes on after one that it fails at, and does not say which. Returns a bit for each large page.
 */
static uint32_t collapse(uintptr_t chunk, uint32_t count)
{
	uint32_t done = 0, i;

	if (!syscall(SYS_madvise, chunk, (size_t)count * ARENA_CHUNK, MADV_COLLAPSE))
		return UINT32_MAX;
	for (i = 0; i < count; i++) {
		if (!syscall(SYS_madvise, chunk + (uint64_t)i * ARENA_CHUNK, (size_t)ARENA_CHUNK,
			     MADV_COLLAPSE))
			done |= 1u << i;
	}
	return done;
}

/* Make chunks large pages: how many are granted. *failed: those of them that are not made. */
static uint32_t make(uint32_t directive, uintptr_t chunk, uint32_t count, uint32_t *failed)
{
	struct counts *counts = &counts__all[directive];
	uint32_t got, done, i;

	if (count > CHUNKS_MAX)
		count = CHUNKS_MAX;
	if (!grow(count)) {
		counts->reason = "kernel";
		return 0;
	}
	got = (uint32_t)(counts__ask(counts, (uint64_t)count * ARENA_CHUNK, ARENA_CHUNK) /
			 ARENA_CHUNK);
	if (!got)
		return 0;
	done = collapse(chunk, got);
	grants__made();
	for (i = 0; i < got; i++, chunk += ARENA_CHUNK) {
		if (done >> i & 1) {
			set.entries[find(chunk)] = chunk | directive;
			set.count++;
		} else {
			++*failed;
		}
	}
	if (*failed) {
		counts__give_back(counts, (uint64_t)*failed * ARENA_CHUNK);
		counts->reason = "kernel";
	}
	counts__made(counts);
	return got;
}

static void look_at(uint32_t directive, struct large_look *look, uintptr_t end)
{
	const struct counts *counts = &counts__all[directive];
	uint32_t most = look->most, got;

	look->result = LARGE_HAD;
	if (has(look->at) && is_dense(look->at, false))
		return;
	look->result = LARGE_THIN;
	if (has(look->at)) { /* the program has given the pages back (MADV_DONTNEED) */
		grants__give_back(forget(find(look->at)));
		return;
	}
	/* Nobody wants more than the site's part. */
	if (counts->most && most > (counts->most - counts->granted) / ARENA_CHUNK)
		most = (uint32_t)((counts->most - counts->granted) / ARENA_CHUNK);
	look->chunks = count_dense(look->at, end, most);
	if (!look->chunks) {
		look->chunks = 1;
		return;
	}
	got = look->may_ask ? make(directive, look->at, look->chunks, &look->failed) : 0;
	look->result = got ? LARGE_MADE : LARGE_REFUSED;
	if (got)
		look->chunks = got;
}

void large__look(uint32_t directive, struct large_look *look, uintptr_t end)
{
	look->chunks = 1;
	look->failed = 0;
	look->result = LARGE_HAD;
	if (lock__try(&set.lock)) {
		look_at(directive, look, end);
		lock__release(&set.lock);
	}
	look->at += (uint64_t)look->chunks * ARENA_CHUNK;
}

void large__released(uintptr_t start, uintptr_t end)
{
	uintptr_t chunk = start / ARENA_CHUNK * ARENA_CHUNK;
	uint64_t at, gone = 0;
	int saved = errno;

	if (!__atomic_load_n(&set.count, __ATOMIC_RELAXED) || !lock__take(&set.lock))
		return;
	if ((end - chunk) / ARENA_CHUNK < set.size) {
		for (; chunk < end && set.count; chunk += ARENA_CHUNK) {
			at = find(chunk);
			if (set.entries[at])
				gone += forget(at);
		}
	} else {
		/* An entry may move into the place of one that is dropped. */
		for (at = 0; at < set.size;) {
			if (set.entries[at] &&
			    set.entries[at] / ARENA_CHUNK >= chunk / ARENA_CHUNK &&
			    set.entries[at] / ARENA_CHUNK * ARENA_CHUNK < end)
				gone += forget(at);
			else
				at++;
		}
	}
	lock__release(&set.lock);
	/* Once for all of them: the account is a file. */
	if (gone)
		grants__give_back(gone);
	errno = saved;
}

void large__before_fork(void)
{
	lock__before_fork(&set.lock);
}

void large__after_fork(bool is_child)
{
	if (is_child && pagemap >= 0) { /* another thread was looking */
		close(pagemap);
		pagemap = -1;
	}
	if (is_child && set.count) {
		syscall(SYS_munmap, set.entries, set.size * sizeof(uint64_t));
		set.entries = NULL;
		set.size = set.count = 0;
	}
	lock__after_fork(&set.lock, is_child);
}
