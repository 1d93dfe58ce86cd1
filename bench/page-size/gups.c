// SPDX-License-Identifier: MIT
/*
 * gups.c - random updates of two tables of different heat: gups [MILLIONS [HOT_MB [COLD_MB]]]
 *
 * Of 16 updates 15 go to the hot table. Their order is read from a list, which is read from
 * front to back, and each update is noted in a small histogram, which any TLB holds.
 */
#include "program.h"

#define LIST (1u << 22)
#define BINS 4096u

int main(int argc, char **argv)
{
	uint64_t updates = program_argument(argc, argv, 1, 120) * 1000000;
	uint64_t hot_count = (program_argument(argc, argv, 2, 96) << 20) / sizeof(uint64_t);
	uint64_t cold_count = (program_argument(argc, argv, 3, 384) << 20) / sizeof(uint64_t);
	uint64_t *hot = program_array(hot_count, sizeof(*hot));
	uint64_t *cold = program_array(cold_count, sizeof(*cold));
	uint64_t *list = program_array(LIST, sizeof(*list));
	uint32_t *bins = program_array(BINS, sizeof(*bins));
	uint64_t i, seed = 1, sum = 0;

	for (i = 0; i < hot_count; i++)
		hot[i] = i;
	for (i = 0; i < cold_count; i++)
		cold[i] = i;
	for (i = 0; i < LIST; i++)
		list[i] = program_random(&seed);
	for (i = 0; i < BINS; i++)
		bins[i] = 0;
	for (i = 0; i < updates; i++) {
		/* Not the same in the next pass over the list. */
		uint64_t value = list[i % LIST] * (2 * (i / LIST) + 1);
		uint64_t number = value >> 32;

		if (value & 15)
			hot[number * hot_count >> 32] ^= value;
		else
			cold[number * cold_count >> 32] ^= value;
		bins[number % BINS]++;
	}
	for (i = 0; i < BINS; i++)
		sum += bins[i] * hot[i % hot_count] + cold[i % cold_count];
	return program_end("gups", sum);
}
