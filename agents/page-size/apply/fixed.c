// SPDX-License-Identifier: MIT
/*
 * fixed.c - zeroed data of objects that the program is started with, and its stack
 *
 * Not here: objects that are loaded later.
 */
#include "fixed.h"

#include "arena.h"
#include "counts.h"
#include "extents.h"
#include "object.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define RANGES_MAX 64u
#define STACK_MAX (64u << 20) /* of a stack without a limit */
#define STACK_KEPT (256u << 10) /* between large pages and the stack's limit */

struct fixed {
	uintptr_t start, end; /* whole chunks */
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

/* Whole chunks between these may have large pages. */
static void add(uint32_t directive, uintptr_t start, uintptr_t end)
{
	struct counts *counts = &counts__all[directive];
	uintptr_t first = chunk_up(start), last = chunk_down(end);

	counts->requests++;
	counts__add(counts, 0, end - start);
	if (last > first && fixed.count < RANGES_MAX)
		fixed.ranges[fixed.count++] = (struct fixed){first, last, directive};
}

/* --- data --- */

/*
 * A writable segment: its bytes from the file end at filled, zeros follow. The kernel has large
 * pages for memory without a file only, so what comes from the file keeps small ones.
 */
static void serve_segment(uint32_t directive, uintptr_t start, uintptr_t filled, uintptr_t end)
{
	uintptr_t zeros = (filled + ARENA_PAGE - 1) / ARENA_PAGE * ARENA_PAGE;

	add(directive, zeros > start ? zeros : start, end);
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
	if (bottom > below && bottom < last)
		add(directive, bottom, last);
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

bool fixed__is_any(void)
{
	return fixed.count;
}

bool fixed__look(uint32_t directive, struct large_look *look)
{
	const struct fixed *range = NULL;
	uint32_t i;

	for (i = 0; i < fixed.count; i++) {
		if (fixed.ranges[i].directive == directive && look->at < fixed.ranges[i].end &&
		    (!range || fixed.ranges[i].start < range->start))
			range = &fixed.ranges[i];
	}
	if (!range)
		return false;
	if (look->at < range->start)
		look->at = range->start;
	large__look(directive, look, range->end);
	return true;
}
