/* SPDX-License-Identifier: MIT */
/* scores.c - values on the scale on which models see them */
#include "models/models.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void model_sort(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
}

/* The standard normal quantile, by halving. */
static double quantile(double probability)
{
	double low = -10, high = 10;

	while (high - low > 1e-9) {
		double middle = (low + high) / 2;

		if (0.5 * erfc(-middle * M_SQRT1_2) < probability)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The number of sorted values that are less than a value; or not greater, if equal ones count. */
static size_t rank_of(const double *sorted, size_t count, double value, bool with_equal)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sorted[middle] < value || (with_equal && sorted[middle] == value))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Equal values share the middle of their ranks. */
static void score_ranks(double *scores, size_t count)
{
	double *sorted = scores + count;
	size_t i;

	memcpy(sorted, scores, count * sizeof(*scores));
	model_sort(sorted, count);
	for (i = 0; i < count; i++) {
		size_t below = rank_of(sorted, count, scores[i], false);
		size_t within = rank_of(sorted, count, scores[i], true);

		scores[i] = quantile((double)(below + within) / 2 / (double)count);
	}
}

/* Logarithms, where all values have one sign; else the values in units of the best one. */
static void score_logarithms(double *scores, size_t count)
{
	double least = INFINITY, most = -INFINITY, unit;
	size_t i;

	for (i = 0; i < count; i++) {
		least = fmin(least, scores[i]);
		most = fmax(most, scores[i]);
	}
	unit = fabs(least) > 0 ? fabs(least) : 1;
	for (i = 0; i < count; i++)
		scores[i] = least > 0  ? log(scores[i])
			    : most < 0 ? -log(-scores[i])
				       : scores[i] / unit;
}

double model_scores(const double *values, size_t count, bool ranks, double *scores)
{
	double mean = 0, square = 0, deviation;
	size_t i;

	memcpy(scores, values, count * sizeof(*scores));
	if (ranks)
		score_ranks(scores, count);
	else
		score_logarithms(scores, count);
	for (i = 0; i < count; i++)
		mean += scores[i] / (double)count;
	for (i = 0; i < count; i++)
		square += (scores[i] - mean) * (scores[i] - mean) / (double)count;
	deviation = sqrt(square) + 1e-12;
	for (i = 0; i < count; i++)
		scores[i] = (scores[i] - mean) / deviation;
	return deviation;
}
