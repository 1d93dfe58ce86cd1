// SPDX-License-Identifier: MIT
/* kernel.c - times the first touch, the copy after fork and the collapse of pages; free pages */
#include "kernel.h"

#include "chase.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define WORK_BYTES ((size_t)32 << 20)

static double write_each(const struct arena *arena, uint32_t shift, char value)
{
	size_t step = (size_t)1 << shift, i;
	double ns = cpu_ns();

	for (i = 0; i < arena->bytes; i += step)
		((volatile char *)arena->memory)[i] = value;
	return (cpu_ns() - ns) / (double)(arena->bytes / step);
}

/* Write while a child shares the pages. The child ends when its pipe does, also if we die. */
static int measure_copy(double *ns, const struct arena *arena, uint32_t shift)
{
	int fds[2], rc = 0;
	char byte;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (!pid) {
		close(fds[1]);
		while (read(fds[0], &byte, 1) < 0 && errno == EINTR)
			;
		_exit(0);
	}
	if (pid < 0)
		rc = -errno;
	else
		*ns = write_each(arena, shift, 2);
	close(fds[1]);
	close(fds[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return rc;
}

int page_work__measure(struct page_work *work, uint32_t shift)
{
	struct arena arena;
	int rc = arena__map(&arena, WORK_BYTES, shift);
	double ns;

	memset(work, 0, sizeof(*work));
	if (rc < 0)
		return rc;
	work->first_touch_ns = write_each(&arena, shift, 1);
	if (shift == LARGE_SHIFT && arena__large_bytes(&arena) != arena.bytes) {
		/* Some or all were small ones. */
		work->first_touch_ns = 0;
		rc = -ENOTSUP;
	} else if (shift != SMALL_SHIFT) {
		rc = measure_copy(&work->copy_ns, &arena, shift);
	} else {
		rc = measure_copy(&work->copy_ns, &arena, shift);
		madvise(arena.memory, arena.bytes, MADV_HUGEPAGE);
		ns = cpu_ns();
		if (!madvise(arena.memory, arena.bytes, MADV_COLLAPSE))
			work->collapse_ns = (cpu_ns() - ns) / (double)(arena.bytes >> LARGE_SHIFT);
	}
	arena__free(&arena);
	return rc;
}

/* --- supply --- */

uint64_t memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file) &&
	       sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
		;
	if (file)
		fclose(file);
	return kib << 10;
}

/* Order k of the kernel's allocator: blocks of 1 << k small pages. */
static uint64_t free_in_blocks(uint32_t shift)
{
	FILE *file = fopen("/proc/buddyinfo", "re");
	char line[512], *at;
	uint64_t sum = 0;
	uint32_t order;
	unsigned long n;
	int taken;

	while (file && fgets(line, sizeof(line), file)) {
		at = strstr(line, "zone");
		taken = 0;
		if (!at || sscanf(at, "zone %*s%n", &taken) == EOF || !taken)
			continue;
		for (order = 0, at += taken; sscanf(at, "%lu%n", &n, &taken) == 1; order++) {
			at += taken;
			if (order + SMALL_SHIFT >= shift)
				sum += (uint64_t)n << (order + SMALL_SHIFT);
		}
	}
	if (file)
		fclose(file);
	return sum;
}

static uint64_t free_reserved(uint32_t shift)
{
	unsigned long n = 0;
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/hugepages-%llukB/free_hugepages",
		 (1ull << shift) / 1024);
	file = fopen(path, "re");
	if (file && fscanf(file, "%lu", &n) != 1)
		n = 0;
	if (file)
		fclose(file);
	return (uint64_t)n << shift;
}

uint64_t page_supply(uint32_t shift)
{
	return shift == SMALL_SHIFT ? memory_available()
				    : free_in_blocks(shift) + free_reserved(shift);
}

/* --- instructions --- */

/* The compiler can neither join nor drop these. */
#define ADD(x)                                                                                     \
	do {                                                                                       \
		x += 1;                                                                            \
		__asm__ volatile("" : "+r"(x));                                                    \
	} while (0)
#define ADD_BOTH()                                                                                 \
	do {                                                                                       \
		ADD(a);                                                                            \
		ADD(b);                                                                            \
	} while (0)

double instruction_ns(void)
{
	const uint32_t rounds = 100000;
	uint64_t a = 0, b = 0;
	double ns = cpu_ns();
	uint32_t i;

	for (i = 0; i < rounds; i++) {
		ADD_BOTH();
		ADD_BOTH();
		ADD_BOTH();
		ADD_BOTH();
		ADD_BOTH();
		ADD_BOTH();
		ADD_BOTH();
		ADD_BOTH();
	}
	/* 16 additions, and the loop's own count and branch. */
	return (cpu_ns() - ns) / (rounds * 18.0);
}
