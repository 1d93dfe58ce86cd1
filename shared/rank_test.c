/* SPDX-License-Identifier: MIT */
/* rank_test.c - are values below others, by their ranks? (contract: rank_test.h) */
#include "rank_test.h"

#include <stdlib.h>

/* Twice the rank of a value among others, from 1: equal ones share the middle of theirs. */
static size_t doubled_rank(const double *values, size_t count, double value)
{
	size_t rank = 1, i;

	for (i = 0; i < count; i++)
		rank += values[i] < value ? 2 : values[i] == value;
	return rank;
}

double pem_rank_test(const double *values, size_t count, const double *others, size_t other_count)
{
	/* Of the subsets of each size, how many have each sum of doubled ranks. */
	static const size_t most = PEM_RANK_TEST_VALUES, sums = 4 * most * most + 2 * most + 1;
	double all[2 * PEM_RANK_TEST_VALUES], below = 0, total = 0, *ways;
	size_t all_count = 0, sum = 0, i, k, s;

	count = count < most ? count : most;
	other_count = other_count < most ? other_count : most;
	for (i = 0; i < count; i++)
		all[all_count++] = values[i];
	for (i = 0; i < other_count; i++)
		all[all_count++] = others[i];
	ways = calloc((count + 1) * sums, sizeof(*ways));
	if (!ways)
		return 1;
	ways[0] = 1;
	for (i = 0; i < all_count; i++) {
		size_t rank = doubled_rank(all, all_count, all[i]);

		sum += i < count ? rank : 0;
		for (k = i + 1 < count ? i + 1 : count; k > 0; k--) {
			for (s = rank; s < sums; s++)
				ways[k * sums + s] += ways[(k - 1) * sums + s - rank];
		}
	}
	for (s = 0; s < sums; s++) {
		total += ways[count * sums + s];
		below += s <= sum ? ways[count * sums + s] : 0;
	}
	free(ways);
	return below / total;
}
