// SPDX-License-Identifier: MIT
/* middle.c - advice to the kernel, chunk by chunk, and samples of what came of it */
#include "middle.h"

#include "arena.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* A chunk takes two mappings, and three quarters of them stay for the program. */
#define ROOM_SHARE 8u

static struct {
	uint64_t room, used; /* chunks. used is changed by atomic operations, which order nothing */
} middle;

void middle__init(uint64_t mappings)
{
	middle.room = mappings / ROOM_SHARE;
}

void middle__release(size_t bytes)
{
	__atomic_fetch_sub(&middle.used, bytes / ARENA_CHUNK, __ATOMIC_RELAXED);
}

void middle__after_fork_child(void)
{
	middle.used = 0;
}

/* Is the first page of a chunk that was just advised one of 64 KiB? */
static bool is_middle(uintptr_t chunk)
{
	unsigned char there[MIDDLE_PAGE / ARENA_PAGE];
	size_t i;

	if (syscall(SYS_madvise, chunk, ARENA_PAGE, MADV_POPULATE_WRITE) ||
	    syscall(SYS_mincore, chunk, MIDDLE_PAGE, there))
		return false;
	for (i = 0; i < sizeof(there) && there[i] & 1; i++)
		;
	return i == sizeof(there);
}

/* NULL: done. Else the reason why the chunk has small pages. */
static const char *advise_chunk(uintptr_t chunk, bool is_sampled)
{
	const char *reason = NULL;

	if (__atomic_fetch_add(&middle.used, 1, __ATOMIC_RELAXED) >= middle.room)
		reason = "mappings";
	else if (syscall(SYS_madvise, chunk, ARENA_CHUNK - ARENA_PAGE, MADV_HUGEPAGE))
		reason = "kernel";
	else if (is_sampled && !is_middle(chunk))
		reason = "64 KiB";
	if (!reason)
		return NULL;
	syscall(SYS_madvise, chunk, ARENA_CHUNK, MADV_NOHUGEPAGE);
	middle__release(ARENA_CHUNK);
	return reason;
}

size_t middle__advise(uintptr_t start, size_t bytes, const char **reason)
{
	const char *refused = NULL;
	size_t at;

	for (at = 0; at < bytes; at += ARENA_CHUNK) {
		refused = advise_chunk(start + at, at / ARENA_CHUNK % MIDDLE_SAMPLED == 0);
		if (refused)
			break;
	}
	if (refused)
		*reason = refused;
	return at;
}
