// SPDX-License-Identifier: MIT
/*
 * fixed.c - .data and .bss of objects that the program is started with, and its stack
 *
 * Not here: objects that are loaded later.
 */
#include "fixed.h"

#include "arena.h"
#include "counts.h"
#include "extents.h"
#include "middle.h"
#include "next.h"
#include "object.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define RANGES_MAX 64u
#define STACK_MAX (64u << 20) /* of a stack without a limit */
#define STACK_KEPT (256u << 10) /* between large pages and the stack's limit */

struct fixed {
	uintptr_t start, end; /* with large pages */
	uint32_t directive;
};

static struct {
	const struct directives *all;
	uint32_t count;
	struct fixed ranges[RANGES_MAX];
} fixed;

static uintptr_t chunk_up(uintptr_t at)
{
	return (at + ARENA_CHUNK - 1) / ARENA_CHUNK * ARENA_CHUNK;
}

static uintptr_t chunk_down(uintptr_t at)
{
	return at / ARENA_CHUNK * ARENA_CHUNK;
}

/* Of whole chunks those that are granted: where they end. */
static uintptr_t ask(uint32_t directive, uintptr_t start, uintptr_t end, uint64_t bytes)
{
	struct counts *counts = &counts__all[directive];
	struct fixed *range = &fixed.ranges[fixed.count];
	uint64_t granted;

	counts->requests++;
	counts__add(counts, 0, bytes);
	if (end <= start || fixed.count == RANGES_MAX)
		return start;
	granted = counts__ask(counts, end - start, ARENA_CHUNK);
	if (granted)
		*range = (struct fixed){start, start + granted, directive};
	fixed.count += granted != 0;
	return start + granted;
}

/* --- data --- */

static bool is_middle(uint32_t directive)
{
	return fixed.all->list[directive].page_size == MIDDLE_PAGE;
}

/* Ask for pages of the directive's size. What the kernel refuses is counted. */
static void advise(uint32_t directive, uintptr_t start, size_t bytes)
{
	const char *reason;
	size_t got;

	if (!is_middle(directive)) {
		madvise((void *)start, bytes, MADV_HUGEPAGE);
		return;
	}
	got = middle__advise(start, bytes, &reason);
	if (got < bytes)
		counts__refuse(&counts__all[directive], bytes - got, reason);
}

/* The kernel moves one mapping in a call, and the last page of a chunk may be one of its own. */
static bool move(uint32_t directive, char *from, uintptr_t to, size_t bytes)
{
	size_t at, step, most = is_middle(directive) ? ARENA_CHUNK - ARENA_PAGE : bytes;

	for (at = 0; at < bytes; at += step) {
		step = is_middle(directive) && at % ARENA_CHUNK ? ARENA_PAGE : most;
		if (NEXT(mremap)(from + at, step, step, MREMAP_MAYMOVE | MREMAP_FIXED,
				 (void *)(to + at)) == MAP_FAILED)
			return false;
	}
	return true;
}

/*
 * Memory that a file is behind has no large pages. So it is replaced by anonymous memory with the
 * same bytes: nobody else runs yet.
 */
static bool replace(uint32_t directive, uintptr_t start, uintptr_t end)
{
	size_t bytes = end - start;
	char *room = NEXT(mmap)(NULL, bytes + ARENA_CHUNK, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *aligned;
	bool moved;

	if (room == MAP_FAILED)
		return false;
	aligned = (char *)chunk_up((uintptr_t)room);
	advise(directive, (uintptr_t)aligned, bytes);
	memcpy(aligned, (const void *)start, bytes);
	/* At the same place in a chunk, so that the kernel moves whole pages. */
	moved = move(directive, aligned, start, bytes);
	if (aligned > room)
		NEXT(munmap)(room, (size_t)(aligned - room));
	/* Where some was moved, nothing is left to unmap. */
	NEXT(munmap)
	(moved ? aligned + bytes : aligned,
	 (size_t)(room + ARENA_CHUNK - aligned) + (moved ? 0 : bytes));
	return moved;
}

/* A writable segment: its bytes from the file end at filled, zeros follow. */
static void serve_segment(uint32_t directive, uintptr_t start, uintptr_t filled, uintptr_t end)
{
	uintptr_t first = chunk_up(start), last = chunk_down(end), zeros;

	last = ask(directive, first, last, end - start);
	if (last <= first)
		return;
	/* The page where the file ends is still the file's. */
	zeros = chunk_up((filled + 4095) / 4096 * 4096);
	if (zeros > last)
		zeros = last;
	if (zeros > first && !replace(directive, first, zeros))
		return;
	if (zeros < first)
		zeros = first;
	if (last > zeros)
		advise(directive, zeros, last - zeros);
}

static void serve_object(uint32_t directive, const struct dl_phdr_info *info)
{
	uintptr_t fixed_end = 0, start, end, from;
	const ElfW(Phdr) * program;
	unsigned i;

	/* What relocations have filled is read-only by now. */
	for (i = 0; i < info->dlpi_phnum; i++) {
		program = &info->dlpi_phdr[i];
		if (program->p_type == PT_GNU_RELRO)
			fixed_end = info->dlpi_addr + program->p_vaddr + program->p_memsz;
	}
	for (i = 0; i < info->dlpi_phnum; i++) {
		program = &info->dlpi_phdr[i];
		if (program->p_type != PT_LOAD || !(program->p_flags & PF_W))
			continue;
		start = info->dlpi_addr + program->p_vaddr;
		end = start + program->p_memsz;
		extents__add(directive, start, end);
		from = fixed_end > start && fixed_end < end ? fixed_end : start;
		if (end - from >= fixed.all->list[directive].least)
			serve_segment(directive, from, start + program->p_filesz, end);
	}
}

static int each_object(struct dl_phdr_info *info, size_t size, void *data)
{
	uintptr_t start = UINTPTR_MAX, end = 0, at;
	uint64_t object;
	uint32_t i;

	(void)size, (void)data;
	for (i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		if (start > at / 4096 * 4096)
			start = at / 4096 * 4096;
		if (end < at + info->dlpi_phdr[i].p_memsz)
			end = at + info->dlpi_phdr[i].p_memsz;
	}
	if (start > end || !object__number(start, end, info->dlpi_addr, &object))
		return 0;
	for (i = 0; i < fixed.all->count; i++) {
		const struct directive *directive = &fixed.all->list[i];

		if (directive->site.kind == PAGE_SITE_DATA && directive->page_size > ARENA_PAGE &&
		    directive->site.frames[0].object == object)
			serve_object(i, info);
	}
	return 0;
}

/* --- the stack --- */

/* Where the stack begins now, and what is mapped below it ends. */
static bool find_stack(uintptr_t *below, uintptr_t *start, uintptr_t *top)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), first, end;
	char text[4096], *line, *behind, *rest;
	size_t length = 0;
	ssize_t got;
	bool found = false;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	*below = 0;
	while (!found && (got = read(fd, text + length, sizeof(text) - 1 - length)) > 0) {
		length += (size_t)got;
		text[length] = '\0';
		for (line = text; !found && (behind = strchr(line, '\n')); line = behind + 1) {
			first = strtoul(line, &rest, 16);
			end = *rest == '-' ? strtoul(rest + 1, NULL, 16) : 0;
			found = first <= here && here < end;
			if (found)
				*start = first, *top = end;
			else
				*below = end;
		}
		length -= (size_t)(line - text);
		memmove(text, line, length);
	}
	close(fd);
	return found;
}

/*
 * The stack grows by a page at a time, and a page never spans what is not there yet. So it is made
 * to grow at once: the kernel writes to its future end, and says so if it can't.
 */
static bool grow_stack(uintptr_t end)
{
	return !syscall(SYS_clock_getres, CLOCK_MONOTONIC, (void *)end);
}

static void serve_stack(uint32_t directive)
{
	uint64_t least = fixed.all->list[directive].least;
	uintptr_t below, start, top, bottom, last;
	struct rlimit limit;
	uint64_t bytes;

	if (getrlimit(RLIMIT_STACK, &limit) || !find_stack(&below, &start, &top))
		return;
	/* Below it grows until the limit, or nearly to what is there. */
	extents__add(directive, below, top);
	bytes = limit.rlim_cur > STACK_MAX ? STACK_MAX : limit.rlim_cur;
	if (least && bytes > least)
		bytes = least + STACK_KEPT;
	last = chunk_down((uintptr_t)__builtin_frame_address(0) - ARENA_PAGE);
	if (bytes < ARENA_CHUNK + STACK_KEPT || last < bytes)
		return;
	bottom = chunk_up((uintptr_t)__builtin_frame_address(0) - bytes + STACK_KEPT);
	/* The kernel keeps a gap of 1 MiB between the stack and what is below it. */
	if (bottom < below + ARENA_CHUNK || bottom >= last || bottom >= start)
		return;
	last = ask(directive, bottom, last, last - bottom);
	if (last <= bottom || !grow_stack(bottom - ARENA_PAGE))
		return;
	madvise((void *)bottom, last - bottom, MADV_HUGEPAGE);
	/* The loader has used some of the highest chunk already. Kernels before 6.1 refuse. */
	madvise((void *)(last - ARENA_CHUNK), ARENA_CHUNK, MADV_COLLAPSE);
}

/* --- */

void fixed__init(const struct directives *directives)
{
	bool data = false;
	uint32_t i;

	fixed.all = directives;
	for (i = 0; i < directives->count; i++) {
		data |= directives->list[i].site.kind == PAGE_SITE_DATA;
		if (directives->list[i].site.kind == PAGE_SITE_STACK &&
		    directives->list[i].page_size >= ARENA_CHUNK)
			serve_stack(i);
	}
	if (data)
		dl_iterate_phdr(each_object, NULL);
}

int fixed__directive(uintptr_t start, uintptr_t end)
{
	uint32_t i;

	for (i = 0; i < fixed.count; i++) {
		if (fixed.ranges[i].start < end && start < fixed.ranges[i].end)
			return (int)fixed.ranges[i].directive;
	}
	return -1;
}

void fixed__after_fork_child(void)
{
	uint32_t i;

	for (i = 0; i < fixed.count; i++)
		madvise((void *)fixed.ranges[i].start, fixed.ranges[i].end - fixed.ranges[i].start,
			MADV_NOHUGEPAGE);
}
