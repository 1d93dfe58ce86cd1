// SPDX-License-Identifier: MIT
/*
 * hash_join.c - joins two relations by a hash table: hash_join [THOUSAND_ROWS [PROBES_PER_ROW]]
 *
 * The smaller relation is put into chains. The larger one is read from front to back, and what
 * matches is summed by group.
 */
#include "program.h"

#define GROUPS (1u << 18)

struct row {
	uint64_t key, value;
};

struct entry {
	uint64_t key, value;
	uint32_t next; /* number of the next entry of the chain, plus one */
	uint32_t group;
};

int main(int argc, char **argv)
{
	uint64_t count = program_argument(argc, argv, 1, 6000) * 1000;
	uint64_t probes = count * program_argument(argc, argv, 2, 6), i, seed = 5, sum = 0;
	uint32_t buckets = 1, *heads, number;
	struct entry *entries = program_array(count, sizeof(*entries));
	struct row *rows = program_array(probes, sizeof(*rows));
	uint64_t *groups = program_array(GROUPS, sizeof(*groups));

	while (buckets < count)
		buckets *= 2;
	heads = program_array(buckets, sizeof(*heads));
	for (i = 0; i < GROUPS; i++)
		groups[i] = 0;
	for (i = 0; i < buckets; i++)
		heads[i] = 0;
	for (i = 0; i < probes; i++)
		rows[i] = (struct row){program_below(&seed, 2 * count), i};
	for (i = 0; i < count; i++) {
		uint64_t key = program_below(&seed, 2 * count);
		uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
		uint32_t *head = &heads[(hash >> 32) * buckets >> 32];

		entries[i] = (struct entry){key, i, *head, hash % GROUPS};
		*head = i + 1;
	}
	for (i = 0; i < probes; i++) {
		uint64_t hash = rows[i].key * UINT64_C(0x9e3779b97f4a7c15);

		for (number = heads[(hash >> 32) * buckets >> 32]; number;
		     number = entries[number - 1].next) {
			const struct entry *entry = &entries[number - 1];

			if (entry->key == rows[i].key)
				groups[entry->group] += entry->value ^ rows[i].value;
		}
	}
	for (i = 0; i < GROUPS; i++)
		sum = sum * 31 + groups[i];
	return program_end("hash_join", sum);
}
