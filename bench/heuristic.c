// SPDX-License-Identifier: MIT
/* heuristic.c - the rate by sampled counters, as the paper has it (contract: heuristic.h) */
#include "heuristic.h"

#include <math.h>
#include <string.h>

#define RADIUS 2u
#define WINDOW_DEFAULT 32u
#define QUANTILE_95 1.64485
#define TOLERANCE 5e-7
#define SQRT_2PI 2.5066282746310002

void rate_heuristic__begin(struct rate_heuristic *h, uint32_t window)
{
	memset(h, 0, sizeof(*h));
	h->window = window != 0 ? window : WINDOW_DEFAULT;
	if (h->window < 2 * RADIUS + 1)
		h->window = 2 * RADIUS + 1;
	if (h->window > RATE_HEURISTIC_SAMPLES)
		h->window = RATE_HEURISTIC_SAMPLES;
}

/* Sample i of the window, the oldest first. */
static double sample(const struct rate_heuristic *h, uint32_t i)
{
	return h->samples[(h->next + h->window - h->sample_count + i) % h->window];
}

/* Equation 3 of the window, filtered by equation 2. */
static double find_q(const struct rate_heuristic *h)
{
	double kernel[2 * RADIUS + 1], mean = 0, squares = 0;
	uint32_t i, k, count = 0;

	for (k = 0; k <= 2 * RADIUS; k++) {
		double x = (double)k - RADIUS;

		kernel[k] = exp(-x * x / 2) / SQRT_2PI;
	}
	for (i = RADIUS; i + RADIUS < h->sample_count; i++) {
		double value = 0, delta;

		for (k = 0; k <= 2 * RADIUS; k++)
			value += kernel[k] * sample(h, i - RADIUS + k);
		delta = value - mean;
		mean += delta / ++count;
		squares += delta * (value - mean);
	}
	return mean + QUANTILE_95 * (count > 1 ? sqrt(squares / (count - 1)) : 0);
}

/* Equation 4, with sigma = 1/2. */
static double laplacian_gaussian(double x)
{
	const double sigma = 0.5;
	double bell = exp(-x * x / (2 * sigma * sigma)) / SQRT_2PI;

	return x * x * bell / pow(sigma, 5) - bell / pow(sigma, 3);
}

/* Filter the deviation of q-bar, and look whether it has stayed where it is. */
static bool has_converged(struct rate_heuristic *h, double deviation)
{
	double least = INFINITY, most = -INFINITY;
	uint32_t i;

	memmove(h->deviations, h->deviations + 1, 2 * sizeof(h->deviations[0]));
	h->deviations[2] = deviation;
	if (h->deviation_count < 3 && ++h->deviation_count < 3)
		return false;
	h->filtered[h->filtered_count++ % RATE_HEURISTIC_WINDOW] =
		laplacian_gaussian(1) * (h->deviations[0] + h->deviations[2]) +
		laplacian_gaussian(0) * h->deviations[1];
	if (h->filtered_count < RATE_HEURISTIC_WINDOW)
		return false;
	for (i = 0; i < RATE_HEURISTIC_WINDOW; i++) {
		least = fmin(least, h->filtered[i]);
		most = fmax(most, h->filtered[i]);
	}
	return most - least <= TOLERANCE;
}

bool rate_heuristic__add(struct rate_heuristic *h, double tc, bool is_blocked, double *converged)
{
	double q, delta, error;

	if (is_blocked)
		return false;
	h->samples[h->next] = tc;
	h->next = (h->next + 1) % h->window;
	if (h->sample_count < h->window && ++h->sample_count < h->window)
		return false;
	q = find_q(h);
	delta = q - h->q_mean;
	h->q_mean += delta / (double)++h->q_count;
	h->q_squares += delta * (q - h->q_mean);
	if (h->q_count < 2 || !(h->q_mean > 0))
		return false;
	error = sqrt(h->q_squares / (double)(h->q_count - 1) / (double)h->q_count);
	if (!has_converged(h, error / h->q_mean))
		return false;
	*converged = h->q_mean;
	h->q_count = h->deviation_count = 0;
	h->filtered_count = 0;
	h->q_mean = h->q_squares = 0;
	return true;
}

double rate_heuristic__mean(const struct rate_heuristic *h)
{
	return h->q_count != 0 ? h->q_mean : NAN;
}
