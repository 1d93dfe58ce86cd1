// SPDX-License-Identifier: MIT
/* chase.c - arenas, and loops over them that are timed */
#include "chase.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define SMALL_BYTES ((size_t)1 << SMALL_SHIFT)
#define LARGE_BYTES ((size_t)1 << LARGE_SHIFT)
/* Lines that are visited together: they lie in 64 pages, which any TLB holds. */
#define GROUP_LINES 4096u

double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Steele, Lea, Flood, OOPSLA 2014. */
uint64_t dice_roll(uint64_t *state, uint64_t below)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) % below;
}

/* --- arenas --- */

int arena__map(struct arena *arena, size_t bytes, uint32_t shift)
{
	memset(arena, 0, sizeof(*arena));
	arena->mapped_bytes = bytes + LARGE_BYTES;
	arena->mapped = mmap(NULL, arena->mapped_bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena->mapped == MAP_FAILED) {
		arena->mapped = NULL;
		return -ENOMEM;
	}
	arena->memory = (char *)arena->mapped + (-(uintptr_t)arena->mapped & (LARGE_BYTES - 1));
	arena->bytes = bytes;
	/* A kernel without large pages knows neither. */
	madvise(arena->memory, bytes, shift == LARGE_SHIFT ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return 0;
}

int arena__init(struct arena *arena, size_t bytes, uint32_t shift)
{
	int rc = arena__map(arena, bytes, shift);
	size_t i;

	if (rc < 0)
		return rc;
	for (i = 0; i < bytes; i += SMALL_BYTES)
		((volatile char *)arena->memory)[i] = 0;
	if (shift == SMALL_SHIFT)
		return 0;
	if (shift == LARGE_SHIFT && arena__large_bytes(arena) == bytes)
		return 0;
	if (shift == LARGE_SHIFT && !madvise(arena->memory, bytes, MADV_COLLAPSE) &&
	    arena__large_bytes(arena) == bytes)
		return 0;
	arena__free(arena);
	return -ENOTSUP;
}

void arena__free(struct arena *arena)
{
	if (arena->mapped)
		munmap(arena->mapped, arena->mapped_bytes);
	memset(arena, 0, sizeof(*arena));
}

size_t arena__large_bytes(const struct arena *arena)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	uintptr_t first = 0, end = 0;
	size_t sum = 0, kib;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "AnonHugePages: %zu kB", &kib) == 1 &&
		    first < (uintptr_t)arena->memory + arena->bytes &&
		    end > (uintptr_t)arena->memory)
			sum += kib << 10;
		else if (strchr(line, '-') &&
			 sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &end) != 2)
			continue;
	}
	if (file)
		fclose(file);
	return sum;
}

/* --- lists of lines --- */

static void shuffle(char **lines, size_t count, uint64_t *dice)
{
	size_t i, j;
	char *line;

	for (i = count; i > 1; i--) {
		j = dice_roll(dice, i);
		line = lines[i - 1];
		lines[i - 1] = lines[j];
		lines[j] = line;
	}
}

void lines__scatter(char **lines, const struct arena *arena, size_t count, size_t stride,
		    uint64_t *dice)
{
	size_t group = stride == LINE_BYTES ? GROUP_LINES : count, i;

	for (i = 0; i < count; i++)
		lines[i] = arena->memory + i * stride +
			   dice_roll(dice, stride / LINE_BYTES) * LINE_BYTES;
	for (i = 0; i < count; i += group)
		shuffle(lines + i, count - i < group ? count - i : group, dice);
}

double lines__dependent_ns(char **lines, size_t count, size_t accesses)
{
	size_t i, left;
	double ns;
	void **at;

	for (i = 0; i < count; i++)
		*(void **)lines[i] = lines[(i + 1) % count];
	/* Once around, so that all is in the caches. */
	for (at = (void **)lines[0], i = 0; i < count; i++)
		at = *at;
	ns = cpu_ns();
	for (left = (accesses + 7) / 8; left; left--) {
		at = *at;
		at = *at;
		at = *at;
		at = *at;
		at = *at;
		at = *at;
		at = *at;
		at = *at;
	}
	__asm__ volatile("" : : "r"(at));
	ns = (cpu_ns() - ns) / (double)((accesses + 7) / 8 * 8);
	return ns;
}

double lines__independent_ns(char **lines, size_t count, size_t accesses)
{
	size_t rounds = (accesses + count - 1) / count, round, i;
	double ns = 0;

	/* The first round is not timed. */
	for (round = 0; round <= rounds; round++) {
		for (i = 0; i < count; i++)
			(void)*(volatile char *)lines[i];
		if (!round)
			ns = cpu_ns();
	}
	return (cpu_ns() - ns) / (double)(rounds * count);
}

/* --- random accesses --- */

/* A number below count, by the high bits; neither is above 2^32. */
static uint64_t pick(uint64_t x, uint64_t count)
{
	return (x >> 32) * count >> 32;
}

/* What is read counts for nothing, but the compiler can't know. */
double random__dependent_ns(const struct arena *arena, size_t bytes, size_t accesses,
			    uint64_t *dice)
{
	uint64_t x = dice_roll(dice, UINT64_MAX), count = bytes / sizeof(x), none = 0;
	const volatile uint64_t *words = (const volatile uint64_t *)arena->memory;
	double ns = cpu_ns();
	size_t i;

	__asm__ volatile("" : "+r"(none));
	for (i = 0; i < accesses; i++)
		x = x * 6364136223846793005u + 1442695040888963407u +
		    (words[pick(x, count)] & none);
	__asm__ volatile("" : : "r"(x));
	return (cpu_ns() - ns) / (double)accesses;
}

/* As in the HPC Challenge's RandomAccess. */
double random__updates_ns(const struct arena *arena, size_t bytes, size_t accesses, uint64_t *dice)
{
	uint64_t x = dice_roll(dice, UINT64_MAX) | 1, count = bytes / sizeof(x);
	uint64_t *words = (uint64_t *)arena->memory;
	double ns = cpu_ns();
	size_t i;

	for (i = 0; i < accesses; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		words[pick(x, count)] ^= x;
	}
	return (cpu_ns() - ns) / (double)accesses;
}

/* Without branches: a wrong guess would end what the processor looks ahead at. */
double random__sparse_ns(const struct arena *arena, size_t bytes, uint32_t every, size_t accesses,
			 uint64_t *dice)
{
	static uint64_t near[SPARSE_NEAR_WORDS];
	uint64_t x = dice_roll(dice, UINT64_MAX) | 1, count = bytes / sizeof(x), is_far, words;
	uintptr_t far = (uintptr_t)arena->memory, from;
	double ns = cpu_ns();
	size_t i;

	for (i = 0; i < accesses * every; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		is_far = -(uint64_t) !((x & UINT32_MAX) * every >> 32);
		words = (count & is_far) | (SPARSE_NEAR_WORDS & ~is_far);
		from = (far & is_far) | ((uintptr_t)near & ~is_far);
		((uint64_t *)from)[pick(x, words)] ^= x;
	}
	return (cpu_ns() - ns) / (double)accesses;
}

double random__spaced_ns(const struct arena *arena, size_t bytes, size_t accesses, uint64_t *dice)
{
	uint64_t x = dice_roll(dice, UINT64_MAX), count = bytes / sizeof(x), z;
	uint64_t *words = (uint64_t *)arena->memory;
	double ns = cpu_ns();
	size_t i;

	for (i = 0; i < accesses; i++) {
		x += 0x9e3779b97f4a7c15;
		z = (x ^ x >> 31) * 0xbf58476d1ce4e5b9;
		words[pick(z, count)] ^= z;
		__asm__ volatile(".rept 240\n nop\n .endr");
	}
	return (cpu_ns() - ns) / (double)accesses;
}
