/* SPDX-License-Identifier: MIT */
/* student.c - Student's distribution (contract: student.h) */
#include "student.h"

#include <math.h>

#define FRACTION_STEPS 300
#define TINY 1e-300

/*
 * The continued fraction of the incomplete beta function (Abramowitz and Stegun, 26.5.8), by the
 * method of Lentz. It converges fast for x below (a + 1) / (a + b + 2).
 */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), f;
	int m;

	d = 1 / (fabs(d) < TINY ? TINY : d);
	f = d;
	for (m = 1; m <= FRACTION_STEPS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		d = 1 / (fabs(d) < TINY ? TINY : d);
		c = 1 + even / c;
		c = fabs(c) < TINY ? TINY : c;
		f *= d * c;
		d = 1 + odd * d;
		d = 1 / (fabs(d) < TINY ? TINY : d);
		c = 1 + odd / c;
		c = fabs(c) < TINY ? TINY : c;
		step = d * c;
		f *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return f;
}

/* The regularized incomplete beta function. */
static double beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double pem_student__p(double t, double df)
{
	if (isnan(t) || !(df > 0))
		return 1;
	if (isinf(t))
		return 0;
	return beta(df / 2, 0.5, df / (df + t * t));
}

double pem_student__quantile(double p, double df)
{
	double low = 0, high = 1, middle;
	int i;

	while (pem_student__p(high, df) > p && high < 1e12)
		high *= 2;
	for (i = 0; i < 100; i++) {
		middle = (low + high) / 2;
		if (pem_student__p(middle, df) > p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}
