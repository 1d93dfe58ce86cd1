// SPDX-License-Identifier: MIT
/*
 * pagerank.c - PageRank of a random graph: pagerank [THOUSAND_PAGES [PASSES]]
 *
 * Few pages have most links that lead to others, so part of the ranks is much hotter than the rest.
 */
#include "program.h"

#define LINKS 6u

/* The third power of a number between 0 and 1 is small most of the time. */
static uint32_t popular(uint64_t *seed, uint64_t pages)
{
	double u = (double)(program_random(seed) >> 11) / (double)(UINT64_C(1) << 53);
	uint64_t page = (uint64_t)(u * u * u * (double)pages);

	/* Popular pages are not neighbours. */
	return page * UINT64_C(2654435761) % pages;
}

int main(int argc, char **argv)
{
	uint64_t pages = program_argument(argc, argv, 1, 12000) * 1000;
	uint64_t passes = program_argument(argc, argv, 2, 6), i, k, pass, seed = 3, sum = 0;
	uint32_t *sources = program_array(pages * LINKS, sizeof(*sources));
	uint32_t *degrees = program_array(pages, sizeof(*degrees));
	double *ranks = program_array(pages, sizeof(*ranks));
	double *shares = program_array(pages, sizeof(*shares));

	for (i = 0; i < pages; i++) {
		degrees[i] = 1;
		ranks[i] = 1.0 / (double)pages;
	}
	for (i = 0; i < pages * LINKS; i++) {
		sources[i] = popular(&seed, pages);
		degrees[sources[i]]++;
	}
	for (pass = 0; pass < passes; pass++) {
		for (i = 0; i < pages; i++)
			shares[i] = ranks[i] / degrees[i];
		for (i = 0; i < pages; i++) {
			double total = 0;

			for (k = i * LINKS; k < (i + 1) * LINKS; k++)
				total += shares[sources[k]];
			ranks[i] = 0.15 / (double)pages + 0.85 * total;
		}
	}
	for (i = 0; i < pages; i++)
		sum += (uint64_t)(ranks[i] * 1e15);
	return program_end("pagerank", sum);
}
