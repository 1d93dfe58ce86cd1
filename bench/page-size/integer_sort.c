// SPDX-License-Identifier: MIT
/*
 * integer_sort.c - ranks keys by buckets: integer_sort [MILLIONS [BUCKETS [PASSES]]]
 *
 * Keys are copied to their buckets, each of which is written from front to back; then they are
 * counted bucket by bucket, and ranks are given out.
 */
#include "program.h"

#include <string.h>

#define KEY_BITS 24u
#define KEYS (1u << KEY_BITS)

struct sort {
	uint64_t count, buckets;
	uint32_t *keys, *sorted;
	uint32_t *ends; /* of each bucket: where its next key goes */
	uint32_t *counts; /* of each key, and later its rank */
};

static void rank_keys(struct sort *s)
{
	uint64_t i, b, k, next = 0;

	memset(s->ends, 0, s->buckets * sizeof(*s->ends));
	memset(s->counts, 0, KEYS * sizeof(*s->counts));
	for (i = 0; i < s->count; i++)
		s->ends[s->keys[i] * s->buckets >> KEY_BITS]++;
	for (b = 0; b < s->buckets; b++) {
		uint32_t n = s->ends[b];

		s->ends[b] = next;
		next += n;
	}
	for (i = 0; i < s->count; i++)
		s->sorted[s->ends[s->keys[i] * s->buckets >> KEY_BITS]++] = s->keys[i];
	for (i = 0; i < s->count; i++)
		s->counts[s->sorted[i]]++;
	for (next = 0, k = 0; k < KEYS; k++) {
		next += s->counts[k];
		s->counts[k] = next - s->counts[k];
	}
}

int main(int argc, char **argv)
{
	struct sort s = {.count = program_argument(argc, argv, 1, 32) * 1000000,
			 .buckets = program_argument(argc, argv, 2, 16384)};
	uint64_t passes = program_argument(argc, argv, 3, 4), i, sum = 0, seed = 9;

	s.keys = program_array(s.count, sizeof(*s.keys));
	s.sorted = program_array(s.count, sizeof(*s.sorted));
	s.ends = program_array(s.buckets, sizeof(*s.ends));
	s.counts = program_array(KEYS, sizeof(*s.counts));
	/* The mean of two: more keys in the middle. */
	for (i = 0; i < s.count; i++)
		s.keys[i] = (program_below(&seed, KEYS) + program_below(&seed, KEYS)) / 2;
	for (; passes; passes--) {
		rank_keys(&s);
		for (i = 0; i < s.count; i++)
			sum += s.counts[s.keys[i]] * (passes + i % 3);
	}
	return program_end("integer_sort", sum);
}
