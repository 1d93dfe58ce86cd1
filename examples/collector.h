/* SPDX-License-Identifier: MIT */
/*
 * collector.h - a toy heap with a copying collector, for examples that need a program with phases
 *
 * Not a memory manager to use: it exists so that one knows exactly how many fresh pages the program
 * touches between two collections, and how many the collector touches itself. It raises
 * APP::GC::Start and APP::GC::End.
 */
#ifndef COLLECTOR_H
#define COLLECTOR_H

#include <stddef.h>

struct heap;

/* A heap of at most capacity pages, none of them touched yet. NULL with errno. */
struct heap *heap_new(size_t capacity);
void heap_free(struct heap *heap);

/*
 * The mutator's work: write to so many pages that nobody has touched, each once. 0, or -ENOMEM:
 * heap full.
 */
int heap_allocate(struct heap *heap, size_t pages);

/*
 * Keep the older half of the pages: copy them to fresh memory, as many pages as are kept, and drop
 * the old.
 */
int heap_collect(struct heap *heap);

#endif
