// SPDX-License-Identifier: MIT
/* copies.c - copies of one stage, which may be unequally fast (contract: service.h) */
#include "models/service.h"

#include <math.h>

/* Of a logarithm: what clocks can't tell is no difference. */
#define ERROR_MIN 1e-4

static double error_of(const struct model_range *range)
{
	return fmax(model_range__error(range), ERROR_MIN);
}

/* The probability that a chi-square exceeds x (Wilson, Hilferty, Proc. Nat. Acad. Sci. 17, 1931).
 */
static double chi_square_p(double x, uint32_t df)
{
	double spread = 2.0 / (9 * df);

	if (df == 1)
		return erfc(sqrt(x / 2));
	return 0.5 * erfc((cbrt(x / df) - (1 - spread)) / sqrt(spread) * M_SQRT1_2);
}

void model_copies__compare(const struct model_estimate *copies, uint32_t count,
			   struct model_copies *result)
{
	double weights = 0, mean = 0, squares = 0;
	uint32_t i;

	*result = (struct model_copies){.known = true, .p = 1};
	for (i = 0; i < count; i++) {
		double weight, rate = log(copies[i].range.rate);

		if (!copies[i].known) {
			*result = (struct model_copies){.p = 1};
			return;
		}
		weight = 1 / (error_of(&copies[i].range) * error_of(&copies[i].range));
		weights += weight;
		squares += weight * (rate - mean) * (rate - mean) * (weights - weight) / weights;
		mean += (rate - mean) * weight / weights;
		result->sum += copies[i].range.rate;
		if (copies[i].range.rate < copies[result->slowest].range.rate)
			result->slowest = i;
	}
	result->least = copies[result->slowest].range;
	result->even = count * result->least.rate;
	if (count > 1)
		result->p = chi_square_p(squares, count - 1);
}
