/* SPDX-License-Identifier: MIT */
/* order.h - order statistics of measured times. Each function sorts the values; count is not 0. */
#ifndef PAGE_SIZE_ORDER_H
#define PAGE_SIZE_ORDER_H

#include <stddef.h>

double order__median(double *values, size_t count);
/* The time that a fifth of the values is below: disturbances only add to times. */
double order__quiet(double *values, size_t count);
/* Standard deviation by median, from the middle half, which disturbances leave alone. */
double order__spread(double *values, size_t count);

#endif
