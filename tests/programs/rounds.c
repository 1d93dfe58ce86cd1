// SPDX-License-Identifier: MIT
/*
 * rounds.c - a program of known truth: rounds that touch memory, compute, and sleep
 *
 * Use: rounds ROUNDS SEED [large]. In each round three parts are marked. 'touch' takes the longer
 * the more pages it touches, by chance, for the first time, and raises an event for each page that
 * it spares; so page faults rise with its duration, and those events fall. 'compute' takes no page,
 * and ticks as often each second, however long it takes. 'sleep' lasts 300 microseconds, or longer
 * where the system is late. large: the memory has large pages, so that there are few faults.
 */
#include "programs/rounds.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGES 600
#define PAGE_BYTES 4096
#define LARGE_BYTES (2u << 20)

static uint64_t seed;

static uint32_t chance(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % below;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void touch(int large)
{
	uint32_t pages = 60 + chance(PAGES - 60), i;
	size_t bytes = PAGES * PAGE_BYTES + 2 * LARGE_BYTES;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *first =
		(char *)(((uintptr_t)memory + LARGE_BYTES - 1) & ~(uintptr_t)(LARGE_BYTES - 1));

	if (memory == MAP_FAILED)
		exit(1);
	madvise(memory, bytes, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	pem_notify_rounds_begin("touch");
	for (i = 0; i < pages; i++)
		first[(size_t)i * PAGE_BYTES] = 1;
	for (i = pages; i < PAGES; i += 10)
		pem_notify_rounds_spared();
	pem_notify_rounds_end("touch");
	munmap(memory, bytes);
}

static void compute(void)
{
	uint32_t ticks = 4 + chance(20), i;
	uint64_t end;

	pem_notify_rounds_begin("compute");
	for (i = 0; i < ticks; i++) {
		for (end = now_ns() + 50000; now_ns() < end;)
			;
		pem_notify_rounds_tick();
	}
	pem_notify_rounds_end("compute");
}

int main(int argc, char **argv)
{
	const struct timespec nap = {0, 300000};
	long round, rounds = argc > 1 ? atol(argv[1]) : 0;
	int large = argc > 3 && strcmp(argv[3], "large") == 0;

	seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
	chance(1);
	for (round = 0; round < rounds; round++) {
		touch(large);
		pem_notify_rounds_noise(chance(1000));
		compute();
		pem_notify_rounds_noise(chance(1000));
		pem_notify_rounds_begin("sleep");
		nanosleep(&nap, NULL);
		pem_notify_rounds_end("sleep");
	}
	return 0;
}
