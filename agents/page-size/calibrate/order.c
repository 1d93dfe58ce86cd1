// SPDX-License-Identifier: MIT
/* order.c - order statistics of measured times */
#include "order.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double order__median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double order__quiet(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 5];
}

double order__spread(double *values, size_t count)
{
	double middle = order__median(values, count);

	return (values[count * 3 / 4] - values[count / 4]) / 1.349 / middle;
}
