// SPDX-License-Identifier: MIT
/*
 * updates.c - random updates of a table of 64 MiB, each of which waits for the one before: the
 * program that the demo makes quicker
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS (UINT64_C(1) << 23)
#define PAGE_WORDS 512u /* of 4 KiB: each page is there before the updates begin */
#define UPDATES 8000000u

int main(void)
{
	uint64_t *table = calloc(WORDS, sizeof(*table)), state = 1, sum = 0;
	uint32_t i;

	if (!table)
		return 1;
	for (i = 0; i < WORDS; i += PAGE_WORDS)
		table[i] = i;
	for (i = 0; i < UPDATES; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		state += table[state >> 41]++;
	}
	for (i = 0; i < WORDS; i += 4096)
		sum += table[i];
	return printf("%016" PRIx64 "\n", sum) < 0;
}
