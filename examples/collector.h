/* SPDX-License-Identifier: MIT */
/*
 * collector.h - a toy heap with a copying collector, for examples that need a program with phases
 *
 * This is not a real memory manager. It makes known exactly how many fresh pages the program
 * touches between two collections, and how many the collector itself touches. It raises
 * APP::GC::Start and APP::GC::End.
 */
#ifndef COLLECTOR_H
#define COLLECTOR_H

#include <stddef.h>

struct heap;

/* Make a heap of at most capacity pages. No page is touched yet. NULL with errno. */
struct heap *heap_new(size_t capacity);
void heap_free(struct heap *heap);

/*
 * Do the program's work: write once to each of this number of untouched pages. Returns 0, or
 * -ENOMEM if the heap is full.
 */
int heap_allocate(struct heap *heap, size_t pages);

/*
 * Collect: copy the older half of the pages to fresh memory, one page for each page kept, and drop
 * the old memory.
 */
int heap_collect(struct heap *heap);

#endif
