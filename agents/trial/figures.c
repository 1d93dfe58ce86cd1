/* SPDX-License-Identifier: MIT */
/* figures.c - what several runs of a configuration come to: means and their errors */
#include "trial/trial.h"

#include "student.h"

#include <math.h>

/* Welford, Technometrics 4 (1962) */
void trial_figures__add(struct trial_figures *figures, const double *values, size_t count)
{
	double before;
	size_t i;

	figures->runs++;
	for (i = 0; i < count; i++) {
		before = values[i] - figures->means[i];
		figures->means[i] += before / figures->runs;
		figures->squares[i] += before * (values[i] - figures->means[i]);
		if (figures->runs > 1)
			figures->errors[i] =
				sqrt(figures->squares[i] / (figures->runs - 1) / figures->runs);
	}
}

/* The square of the error that the mean of one run has. NAN: unknown. */
static double variance(const struct trial_figures *figures, double unit)
{
	return figures->runs > 1 ? pow(figures->errors[0] / unit, 2) * figures->runs : NAN;
}

double trial_figures__half_interval(const struct trial_figures *a, double a_unit,
				    const struct trial_figures *b, double b_unit)
{
	double of_a = variance(a, a_unit), of_b = variance(b, b_unit), freedom;

	if (isnan(of_a) && isnan(of_b))
		return NAN;
	freedom = (isnan(of_a) ? b->runs : a->runs) - 1;
	of_a = (isnan(of_a) ? of_b : of_a) / a->runs;
	of_b = isnan(of_b) ? of_a * a->runs / b->runs : of_b / b->runs;
	if (!(of_a + of_b > 0))
		return 0;
	if (a->runs > 1 && b->runs > 1)
		freedom = (of_a + of_b) * (of_a + of_b) /
			  (of_a * of_a / (a->runs - 1) + of_b * of_b / (b->runs - 1));
	return pem_student__quantile(0.05, freedom) * sqrt(of_a + of_b);
}

struct trial_gain trial_figures__gain(const struct trial_figures *found,
				      const struct trial_figures *usual, bool greater_is_better)
{
	double mean = found->means[0], usual_mean = usual->means[0], half = NAN, ratio;
	double sign = greater_is_better ? 1 : -1;

	if (!usual->runs || !(usual_mean > 0) || !(mean > 0))
		return (struct trial_gain){.value = NAN, .low = NAN, .high = NAN};
	ratio = mean / usual_mean;
	if (found->runs > 1 && usual->runs > 1)
		half = trial_figures__half_interval(found, mean, usual, usual_mean);
	/*
	 * The interval is one of the ratio's logarithm, whose error is the ratio's as a share of
	 * it: no more time is saved than all of it.
	 */
	return (struct trial_gain){.value = sign * (ratio - 1),
				   .low = sign * (ratio * exp(-sign * half) - 1),
				   .high = sign * (ratio * exp(sign * half) - 1)};
}
