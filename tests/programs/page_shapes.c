// SPDX-License-Identifier: MIT
/*
 * page_shapes.c - shapes of memory use whose best page sizes are known: argv[1] is the shape,
 * argv[2] how many million references, argv[3] what it takes of memory, in MiB
 *
 * It includes no header of pem. It ends with 0 and prints a sum that does not depend on page sizes.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static uint64_t state = 1;

static inline uint64_t dice(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

__attribute__((noinline)) static uint64_t update(uint64_t *table, size_t words, size_t count)
{
	uint64_t sum = 0;

	while (count--)
		sum += table[dice() % words]++;
	return sum;
}

__attribute__((noinline)) static uint64_t stream(const uint64_t *table, size_t words)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < words; i++)
		sum += table[i];
	return sum;
}

/* A hot table, and a cold one of the same size that is read once. */
static uint64_t hot_and_cold(size_t count, size_t bytes)
{
	uint64_t *cold = malloc(bytes), *hot = malloc(bytes);

	memset(cold, 1, bytes);
	return update(hot, bytes / 8, count) + stream(cold, bytes / 8);
}

/* One line in each 2 MiB. */
static uint64_t sparse(size_t count, size_t bytes)
{
	uint64_t *table = malloc(bytes);
	size_t regions = bytes / (2 * MIB);
	uint64_t sum = 0;

	while (count--)
		sum += table[dice() % regions * (2 * MIB / 8)]++;
	return sum;
}

/* All references to what the first TLB level reaches, beside much that is hardly used. */
static uint64_t in_reach(size_t count, size_t bytes)
{
	uint64_t *large = calloc(1, bytes), *small = malloc(64 << 10);

	return update(small, (64 << 10) / 8, count) + large[dice() % (bytes / 8)];
}

/* One table, and then another, which is used three times as much. */
static uint64_t two_phases(size_t count, size_t bytes)
{
	uint64_t *first = malloc(bytes), *second = malloc(bytes);

	return update(first, bytes / 8, count / 4) + update(second, bytes / 8, count * 3 / 4);
}

/* A column of a matrix whose rows have a power of two of bytes. */
static uint64_t strides(size_t count, size_t bytes)
{
	unsigned char *table = malloc(bytes);
	uint64_t sum = 0;
	size_t at = 0, row = 0;

	while (count--) {
		sum += table[at + row]++;
		at += 64 << 10;
		if (at >= bytes) {
			at = 0;
			row = (row + 8) % (64 << 10);
		}
	}
	return sum;
}

/* Buffers that live for few references. */
static uint64_t short_lived(size_t count, size_t bytes)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < count / 1024; i++) {
		uint64_t *buffer = malloc(bytes / 64);

		sum += update(buffer, bytes / 64 / 8, 1024);
		free(buffer);
	}
	return sum;
}

__attribute__((noinline)) static void *xmalloc(size_t bytes)
{
	void *made = malloc(bytes);

	if (!made)
		abort();
	/* Not a tail call: the caller is to be on the stack. */
	__asm__ volatile("" : : "r"(made) : "memory");
	return made;
}

/* One wrapper for a hot table and a cold one. */
static uint64_t wrapper(size_t count, size_t bytes)
{
	uint64_t *cold = xmalloc(bytes), *hot;

	memset(cold, 1, bytes);
	hot = xmalloc(bytes);
	return update(hot, bytes / 8, count) + stream(cold, bytes / 8);
}

/* A table that grows by realloc. */
static uint64_t grows(size_t count, size_t bytes)
{
	size_t now = MIB;
	uint64_t *table = malloc(now), sum = 0;

	memset(table, 0, now);
	while (now < bytes) {
		table = realloc(table, 2 * now);
		memset((char *)table + now, 0, now);
		now *= 2;
		sum += update(table, now / 8, count / 16);
	}
	return sum + update(table, now / 8, count / 2);
}

/* mmap in place of malloc. */
static uint64_t maps(size_t count, size_t bytes)
{
	uint64_t *table =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return table == MAP_FAILED ? 0 : update(table, bytes / 8, count);
}

static uint64_t static_table[64 * MIB / 8];

static uint64_t statics(size_t count, size_t bytes)
{
	(void)bytes;
	return update(static_table, sizeof(static_table) / 8, count);
}

/* A linked list in random order: each reference waits for the one before. */
static uint64_t chain(size_t count, size_t bytes)
{
	size_t n = bytes / 64, i, j;
	struct node {
		struct node *next;
		uint64_t pad[7];
	} *nodes = malloc(bytes), *at;
	uint32_t *order = malloc(n * sizeof(*order)), keep;

	for (i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (i = n - 1; i > 0; i--) {
		j = dice() % (i + 1);
		keep = order[i];
		order[i] = order[j];
		order[j] = keep;
	}
	for (i = 0; i < n; i++)
		nodes[order[i]].next = &nodes[order[(i + 1) % n]];
	at = &nodes[order[0]];
	free(order);
	while (count--)
		at = at->next;
	return (uint64_t)(at - nodes);
}

static uint64_t *shared_table;
static size_t thread_count, thread_bytes;

static void *work(void *arg)
{
	uint64_t *own = malloc(64 << 10), seed = (uintptr_t)arg, sum = 0, x = seed;
	size_t i;

	memset(own, 0, 64 << 10);
	for (i = 0; i < thread_count; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		sum += __atomic_fetch_add(&shared_table[x % (thread_bytes / 8)], 1,
					  __ATOMIC_RELAXED);
		own[x % 8192]++;
	}
	free(own);
	return (void *)(uintptr_t)(sum != 0);
}

/* A table for two threads, and a small one for each of them. */
static uint64_t threads(size_t count, size_t bytes)
{
	pthread_t thread[2];
	uintptr_t i;

	shared_table = malloc(bytes);
	thread_count = count / 4;
	thread_bytes = bytes;
	for (i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, (void *)(i + 1));
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return stream(shared_table, bytes / 8);
}

/* A server that forks to save, and goes on writing: a hundred times. */
static uint64_t forks(size_t count, size_t bytes)
{
	uint64_t *table = malloc(bytes), sum = 0;
	int i, ends[2];
	pid_t child;

	for (i = 0; i < 100; i++) {
		if (pipe(ends))
			return 0;
		child = fork();
		if (!child) {
			close(ends[1]);
			_exit(read(ends[0], &i, 1) != 0);
		}
		sum += update(table, bytes / 8, count / 100);
		close(ends[0]);
		close(ends[1]);
		waitpid(child, NULL, 0);
	}
	return sum;
}

struct item {
	struct item *next;
	uint64_t value;
};

/* Very many small blocks, each used once. */
static uint64_t small_blocks(size_t count, size_t bytes)
{
	struct item *list = NULL, *item;
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		item = malloc(sizeof(*item));
		item->next = list;
		item->value = i;
		list = item;
		if (i * 32 > bytes) {
			for (; list; list = item) {
				item = list->next;
				sum += list->value;
				free(list);
			}
		}
	}
	return sum;
}

/* The processor alone. */
static uint64_t compute(size_t count, size_t bytes)
{
	uint64_t sum = 0;

	(void)bytes;
	while (count--)
		sum += dice();
	return sum;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t (*run)(size_t count, size_t bytes);
	} shapes[] = {
		{"hot-and-cold", hot_and_cold}, {"sparse", sparse},   {"in-reach", in_reach},
		{"two-phases", two_phases},     {"strides", strides}, {"short-lived", short_lived},
		{"wrapper", wrapper},           {"grows", grows},     {"maps", maps},
		{"statics", statics},           {"chain", chain},     {"threads", threads},
		{"small-blocks", small_blocks}, {"forks", forks},     {"compute", compute},
	};
	size_t i;

	for (i = 0; argc == 4 && i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		if (strcmp(argv[1], shapes[i].name))
			continue;
		printf("%llu\n",
		       (unsigned long long)shapes[i].run(strtoul(argv[2], NULL, 10) * 1000000,
							 strtoul(argv[3], NULL, 10) * MIB));
		return 0;
	}
	fprintf(stderr, "page_shapes SHAPE MILLIONS MIB\n");
	return 1;
}
