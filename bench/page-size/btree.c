// SPDX-License-Identifier: MIT
/*
 * btree.c - look-ups in a B+ tree: btree [THOUSAND_KEYS [THOUSAND_LOOKUPS]]
 *
 * Leaves are allocated one by one, in random order, as inserts would. Inner nodes are few and hot;
 * the records that the leaves lead to are many and cold: one look-up in eight reads its record.
 */
#include "program.h"

#define KEYS 32u /* of a node */
#define RECORD 4u /* numbers in one */

struct leaf {
	uint64_t keys[KEYS];
	uint32_t records[KEYS];
};

struct inner {
	uint64_t keys[KEYS]; /* the least key under each child */
	void *children[KEYS];
};

struct tree {
	void *root;
	uint32_t height; /* of inner nodes */
};

static uint32_t below_or_equal(const uint64_t *keys, uint64_t key)
{
	uint32_t low = 0, step;

	for (step = KEYS / 2; step; step /= 2)
		low += keys[low + step] <= key ? step : 0;
	return low;
}

static void shuffle(uint32_t *order, uint64_t count, uint64_t *seed)
{
	uint64_t i;

	for (i = 0; i < count; i++)
		order[i] = i;
	for (i = count; i > 1; i--) {
		uint32_t other = program_below(seed, i), held = order[i - 1];

		order[i - 1] = order[other];
		order[other] = held;
	}
}

/* Keys are 3, 6, 9 and so on; those after count fill the last leaf. */
static void **make_leaves(uint64_t count, uint64_t leaf_count, uint64_t *seed)
{
	uint32_t *order = program_array(leaf_count, sizeof(*order));
	void **leaves = program_array(leaf_count, sizeof(*leaves));
	uint64_t i, k;

	shuffle(order, leaf_count, seed);
	for (i = 0; i < leaf_count; i++) {
		struct leaf *leaf = program_array(1, sizeof(*leaf));
		uint64_t first = (uint64_t)order[i] * KEYS;

		for (k = 0; k < KEYS; k++) {
			leaf->keys[k] = (first + k) * 3;
			leaf->records[k] = program_below(seed, count);
		}
		leaves[order[i]] = leaf;
	}
	free(order);
	return leaves;
}

/* Builds the levels above the leaves, in the same array of children. */
static struct tree make_inner(void **nodes, uint64_t count)
{
	struct tree tree = {.height = 0};
	uint64_t span = 3 * KEYS, i, k, n;

	for (; count > 1; count = n, span *= KEYS, tree.height++) {
		n = (count + KEYS - 1) / KEYS;
		for (i = 0; i < n; i++) {
			struct inner *inner = program_array(1, sizeof(*inner));

			for (k = 0; k < KEYS; k++) {
				uint64_t child = i * KEYS + k;

				inner->keys[k] = child < count ? child * span : UINT64_MAX;
				inner->children[k] = child < count ? nodes[child] : NULL;
			}
			nodes[i] = inner;
		}
	}
	tree.root = nodes[0];
	return tree;
}

static const struct leaf *find(const struct tree *tree, uint64_t key)
{
	const void *node = tree->root;
	uint32_t level;

	for (level = 0; level < tree->height; level++) {
		const struct inner *inner = node;

		node = inner->children[below_or_equal(inner->keys, key)];
	}
	return node;
}

int main(int argc, char **argv)
{
	uint64_t count = program_argument(argc, argv, 1, 12000) * 1000;
	uint64_t lookups = program_argument(argc, argv, 2, 6000) * 1000, i, seed = 6, sum = 0;
	uint64_t *records = program_array(count * RECORD, sizeof(*records));
	uint64_t leaf_count = (count + KEYS - 1) / KEYS;
	void **leaves = make_leaves(count, leaf_count, &seed);
	struct tree tree = make_inner(leaves, leaf_count);

	for (i = 0; i < count * RECORD; i++)
		records[i] = i;
	for (i = 0; i < lookups; i++) {
		uint64_t key = (uint64_t)program_below(&seed, count) * 3;
		const struct leaf *leaf = find(&tree, key);
		uint32_t k = below_or_equal(leaf->keys, key);

		if (i % 8)
			sum += leaf->keys[k] == key;
		else
			sum += records[(uint64_t)leaf->records[k] * RECORD];
	}
	return program_end("btree", sum);
}
