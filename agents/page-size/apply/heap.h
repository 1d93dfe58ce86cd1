/* SPDX-License-Identifier: MIT */
/*
 * heap.h - an arena for each directive of a heap site, and whose a block is
 *
 * Arenas lie in one range of addresses, in which each has a slot. The range is not reserved: a
 * program whose address space is limited loses none of it to memory that nobody asked for.
 *
 * All functions are thread-safe and keep errno.
 */
#ifndef PAGE_APPLY_HEAP_H
#define PAGE_APPLY_HEAP_H

#include "arena.h"
#include "counts.h"
#include "large.h"
#include "lock.h"

struct heap_site {
	struct lock lock;
	struct arena arena;
	uint64_t least;
	struct counts *counts;
};

/* The range; bytes is 0 until heap__init. */
extern uintptr_t heap__base;
extern uint64_t heap__bytes;
extern uint32_t heap__slot_shift;

/* random: any number, which moves the range. Only directives of heap sites get a slot. */
void heap__init(const struct directives *directives, uint64_t random);
/* NULL: the request is too small for the directive, or can't be had here; also before heap__init.
 */
void *heap__alloc(uint32_t directive, size_t size, size_t alignment, bool zero);
/* block: heap__owns said yes. */
void heap__free(void *block);
size_t heap__usable(const void *block);
/* A block of the same arena with the same bytes, as far as they fit; NULL: block is as it was. */
void *heap__resize(void *block, size_t size);
/*
 * Copy the first bytes of a block that is freed next. Memory is taken back as it is copied: what
 * limits the program's memory does not find it twice.
 */
void heap__copy(void *to, void *from, size_t bytes);
/*
 * Look at a directive's next chunks from look->at on (look.h). false: there are none, or another
 * thread, or the one that a handler interrupts, is changing them. Waits for nothing.
 */
bool heap__look(uint32_t directive, struct large_look *look);
bool heap__owns_slow(uintptr_t block);
/* The program changes mappings in its blocks. Takes no lock. */
void heap__altered(uintptr_t start, size_t bytes);
void heap__before_fork(void);
void heap__after_fork(bool is_child);

static inline bool heap__owns(const void *block)
{
	return __builtin_expect((uintptr_t)block - heap__base < heap__bytes, 0) &&
	       heap__owns_slow((uintptr_t)block);
}

/* The same of addresses that are nearly always elsewhere. */
static inline void heap__alter(const void *address, size_t bytes)
{
	if (__builtin_expect((uintptr_t)address - heap__base < heap__bytes, 0))
		heap__altered((uintptr_t)address, bytes);
}

#endif
