/* SPDX-License-Identifier: MIT */
/* rounded.h - no more digits of a value than its error allows */
#ifndef PEM_SHARED_ROUNDED_H
#define PEM_SHARED_ROUNDED_H

#include <math.h>

/*
 * A value to the second digit of its error, for %g: 12.34567 with an error of 0.5 is 12.35. An
 * error of 0, NAN or infinite: it is unknown, and the value stays.
 */
static inline double pem_rounded(double value, double error)
{
	double unit = error > 0 && isfinite(error) ? pow(10, floor(log10(error)) - 1) : 0;

	return unit > 0 ? round(value / unit) * unit : value;
}

#endif
