/* SPDX-License-Identifier: MIT */
/*
 * middle.h - memory in pages of 64 KiB
 *
 * The kernel gives memory that asks for large pages the largest that fit: of 2 MiB, where a mapping
 * holds a whole chunk. So the last small page of each chunk asks for none. To the kernel a chunk is
 * two mappings then, and 31 of its 32 pages of 64 KiB can be had.
 *
 * smaps does not tell such pages. So one of every MIDDLE_SAMPLED chunks is sampled: its first small
 * page is touched, and is of 64 KiB if the 15 pages behind it are there, too.
 *
 * All functions are thread-safe and change errno.
 */
#ifndef PAGE_APPLY_MIDDLE_H
#define PAGE_APPLY_MIDDLE_H

#include <stddef.h>
#include <stdint.h>

#define MIDDLE_PAGE 65536u
#define MIDDLE_SAMPLED 16u

/*
 * mappings: that a process may have; an eighth of as many chunks can be advised. Before, none can.
 */
void middle__init(uint64_t mappings);
/*
 * Ask the kernel for pages of 64 KiB behind these whole chunks, which have small ones so far.
 * Returns for how many bytes it gives them, from the start on; if less than all, *reason is a word
 * of apply.h. The rest has small pages.
 */
size_t middle__advise(uintptr_t start, size_t bytes, const char **reason);
/* So many bytes of them are no longer there, or were advised otherwise. */
void middle__release(size_t bytes);
/* A forked child has none. */
void middle__after_fork_child(void);

#endif
