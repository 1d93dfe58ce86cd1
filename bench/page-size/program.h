/* SPDX-License-Identifier: MIT */
/*
 * program.h - what the programs of this folder share: sizes by argument, random numbers, arrays
 *
 * Each program has a few arrays whose references differ in number and order, does a fixed amount of
 * work, and prints a checksum that depends on its arguments alone.
 */
#ifndef BENCH_PAGE_SIZE_PROGRAM_H
#define BENCH_PAGE_SIZE_PROGRAM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Argument i as a number of at least 1, or the one given if there are fewer arguments. */
static inline uint64_t program_argument(int argc, char **argv, int i, uint64_t otherwise)
{
	uint64_t value;
	char *end;

	if (i >= argc)
		return otherwise;
	value = strtoull(argv[i], &end, 10);
	if (!value || *end || value > UINT32_MAX) {
		fprintf(stderr, "%s: argument %d must be a number from 1 to %u\n", argv[0], i,
			UINT32_MAX);
		exit(1);
	}
	return value;
}

/* An array, not cleared. Inlined, because each use has to be an allocation site of its own. */
static inline __attribute__((always_inline)) void *program_array(size_t count, size_t size)
{
	void *array = malloc(count * size);

	if (!array) {
		fprintf(stderr, "no memory for %zu items of %zu bytes\n", count, size);
		exit(1);
	}
	return array;
}

/* SplitMix64 (Steele, Lea and Flood 2014). */
static inline uint64_t program_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* A random number below limit, which is at most 2^32. */
static inline uint32_t program_below(uint64_t *state, uint64_t limit)
{
	return (program_random(state) >> 32) * limit >> 32;
}

static inline int program_end(const char *name, uint64_t checksum)
{
	return printf("%s %016" PRIx64 "\n", name, checksum) < 0 || fflush(stdout);
}

#endif
