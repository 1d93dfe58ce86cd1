/* SPDX-License-Identifier: MIT */
/*
 * chase.h - memory of one page size, and the time of accesses to it
 *
 * Times are of the thread's CPU time, so that programs that share the CPU count little, and in
 * nanoseconds an access.
 */
#ifndef PAGE_SIZE_CHASE_H
#define PAGE_SIZE_CHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_BYTES 64u
#define SMALL_SHIFT 12u
#define LARGE_SHIFT 21u
/* Lines of a list at most. */
#define CHASE_LINES_MAX 65536u

struct arena {
	char *memory; /* begins where a large page may */
	size_t bytes;
	void *mapped;
	size_t mapped_bytes;
};

/*
 * Map and touch bytes, a multiple of 2 MiB, in pages of 1 << shift: SMALL_SHIFT or LARGE_SHIFT. 0,
 * -ENOMEM, or -ENOTSUP: the kernel did not give such pages for all of it.
 */
int arena__init(struct arena *arena, size_t bytes, uint32_t shift);
/* The same, not touched. */
int arena__map(struct arena *arena, size_t bytes, uint32_t shift);
void arena__free(struct arena *arena);
/* Bytes of an arena that are in large pages, as smaps has it; 0 if it can't be read. */
size_t arena__large_bytes(const struct arena *arena);
/* The thread's CPU time. */
double cpu_ns(void);
/* SplitMix64: a number below the limit. */
uint64_t dice_roll(uint64_t *state, uint64_t below);

/*
 * A line in each of count pieces of stride bytes of the arena, in random order. With stride
 * LINE_BYTES the order keeps to some pages at a time, so that few accesses miss the TLB. lines has
 * room for count.
 */
void lines__scatter(char **lines, const struct arena *arena, size_t count, size_t stride,
		    uint64_t *dice);
/* Each access waits for the one before it. */
double lines__dependent_ns(char **lines, size_t count, size_t accesses);
/* No access waits for another. */
double lines__independent_ns(char **lines, size_t count, size_t accesses);

/* Random accesses to the first bytes of the arena: reads that depend, and updates that do not. */
double random__dependent_ns(const struct arena *arena, size_t bytes, size_t accesses,
			    uint64_t *dice);
double random__updates_ns(const struct arena *arena, size_t bytes, size_t accesses, uint64_t *dice);

/*
 * Random updates, of which one in every goes to the arena, at random, and the others to a table
 * that any cache holds. The time for each that goes to the arena. Instructions for one update, far
 * or near: SPARSE_INSTRUCTIONS, as GCC 12 compiles it. Not for two threads at once.
 */
#define SPARSE_INSTRUCTIONS 31.0
#define SPARSE_NEAR_WORDS 4096u
double random__sparse_ns(const struct arena *arena, size_t bytes, uint32_t every, size_t accesses,
			 uint64_t *dice);

/*
 * Random updates, none of which waits for anything, and instructions between that do nothing:
 * SPACED_INSTRUCTIONS for each.
 */
#define SPACED_INSTRUCTIONS 252.0
double random__spaced_ns(const struct arena *arena, size_t bytes, size_t accesses, uint64_t *dice);

#endif
