// SPDX-License-Identifier: MIT
/*
 * allocate.c - allocates and releases blocks, and prints the CPU time of a pair in nanoseconds
 *
 *	allocate COUNT malloc | xmalloc | deep
 *
 * With deep they are made from 20 further calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *volatile kept;

/* A function of this name allocates for its caller, which is then the site. */
static __attribute__((noinline)) void *xmalloc(size_t size)
{
	void *block = malloc(size);

	if (!block)
		abort();
	return block;
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static __attribute__((noinline)) void pairs(long count, int wrapped)
{
	while (count--) {
		kept = wrapped ? xmalloc(24) : malloc(24);
		free(kept);
	}
}

/* Calls itself, and the blocks are those of the innermost call. */
static __attribute__((noinline)) void descend(int calls, long count, int wrapped)
{
	if (calls)
		descend(calls - 1, count, wrapped);
	else
		pairs(count, wrapped);
	kept = NULL;
}

int main(int argc, char **argv)
{
	long count = argc == 3 ? atol(argv[1]) : 0;
	double begin;
	int wrapped, calls;

	if (count <= 0)
		return 1;
	wrapped = !strcmp(argv[2], "xmalloc");
	calls = strcmp(argv[2], "deep") ? 0 : 20;
	descend(calls, 1000, wrapped);
	begin = cpu_ns();
	descend(calls, count, wrapped);
	printf("%.3f\n", (cpu_ns() - begin) / (double)count);
	return 0;
}
