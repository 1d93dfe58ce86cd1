// SPDX-License-Identifier: MIT
/*
 * touched.c - a program whose data structures data_samples.py looks for: each round touches the
 * same bytes in the same order
 *
 *	touched ROUNDS
 *
 * First it prints a line for each of its data structures: name, address, bytes. It is linked
 * without PIE, so that its code and variables lie where they lie under Valgrind.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 48u /* of the matrices */
#define NODES 2048u
#define CELLS 4096u
#define SORTED 1024u

struct node {
	struct node *next;
	uint64_t value;
	char rest[48];
};

static double left[SIDE * SIDE], right[SIDE * SIDE], product[SIDE * SIDE];
static struct node *nodes;
static uint64_t *cells;

static __attribute__((noinline)) void multiply(void)
{
	unsigned i, j, k;

	for (i = 0; i < SIDE; i++)
		for (j = 0; j < SIDE; j++) {
			double sum = 0;

			for (k = 0; k < SIDE; k++)
				sum += left[i * SIDE + k] * right[k * SIDE + j];
			product[i * SIDE + j] = sum;
		}
}

static __attribute__((noinline)) uint64_t follow(const struct node *node)
{
	uint64_t sum = 0;

	for (; node; node = node->next)
		sum += node->value;
	return sum;
}

static __attribute__((noinline)) void hash(uint64_t keys)
{
	uint64_t i, at;

	memset(cells, 0, CELLS * sizeof(*cells));
	for (i = 1; i <= keys; i++) {
		at = i * 0x9e3779b97f4a7c15u >> 52;
		while (cells[at])
			at = (at + 1) % CELLS;
		cells[at] = i;
	}
}

static __attribute__((noinline)) void sift(uint32_t *heap, unsigned from, unsigned count)
{
	unsigned child;
	uint32_t value = heap[from];

	while ((child = 2 * from + 1) < count) {
		child += child + 1 < count && heap[child + 1] > heap[child];
		if (heap[child] <= value)
			break;
		heap[from] = heap[child];
		from = child;
	}
	heap[from] = value;
}

static __attribute__((noinline)) void sort(uint32_t *numbers)
{
	uint32_t x = 1, last;
	unsigned i;

	for (i = 0; i < SORTED; i++)
		numbers[i] = x = x * 1664525u + 1013904223u;
	for (i = SORTED / 2; i--;)
		sift(numbers, i, SORTED);
	for (i = SORTED - 1; i; i--) {
		last = numbers[i];
		numbers[i] = numbers[0];
		numbers[0] = last;
		sift(numbers, 0, i);
	}
}

/* In an order that a prefetcher does not foresee. */
static void link_nodes(void)
{
	unsigned i, at = 0, next;

	for (i = 0; i < NODES; i++) {
		nodes[at].value = i;
		next = (at * 5 + 1) % NODES;
		nodes[at].next = i + 1 < NODES ? &nodes[next] : NULL;
		at = next;
	}
}

static void say(const char *name, const volatile void *at, size_t bytes)
{
	printf("%s %" PRIuPTR " %zu\n", name, (uintptr_t)at, bytes);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
	uint32_t numbers[SORTED];
	uint64_t sum = 0;

	nodes = calloc(NODES, sizeof(*nodes));
	cells = calloc(CELLS, sizeof(*cells));
	if (!nodes || !cells)
		return 1;
	link_nodes();
	say("left", left, sizeof(left));
	say("right", right, sizeof(right));
	say("product", product, sizeof(product));
	say("nodes", nodes, NODES * sizeof(*nodes));
	say("cells", cells, CELLS * sizeof(*cells));
	say("numbers", numbers, sizeof(numbers));
	fflush(stdout);
	while (rounds--) {
		multiply();
		sum += follow(nodes);
		hash(CELLS * 3 / 4);
		sort(numbers);
	}
	free(nodes);
	free(cells);
	return sum == 1;
}
