/* SPDX-License-Identifier: MIT */
/*
 * models_series.h - series of service intervals whose true rate is known: for tests and benchmarks
 *
 * Each kind has a mean of 1 for an item's time.
 */
#ifndef TESTS_MODELS_SERIES_H
#define TESTS_MODELS_SERIES_H

#include "models/models.h"

#include <math.h>

enum series_kind {
	SERIES_EXPONENTIAL,
	SERIES_DETERMINISTIC,
	SERIES_JITTER, /* deterministic, but for 1 % */
	SERIES_BIMODAL, /* a tenth of the items takes ten times as long */
	SERIES_AR1, /* lognormal, with a coefficient of 0.5 between the logarithms */
	SERIES_BATCHES, /* 1 to 20 exponential items in an interval */
	SERIES_GAMMA4,
	SERIES_OUTLIERS, /* 1 in 1,000 takes ten times as long, others are alike */
	SERIES_KINDS
};

static const char *const series_names[SERIES_KINDS] = {
	"exponential", "deterministic",    "1 % of jitter", "bimodal",
	"AR(1)",       "batches of items", "gamma 4",       "outliers"};

struct series {
	enum series_kind kind;
	uint64_t random;
	double state; /* of SERIES_AR1 */
};

static inline double series_exponential(uint64_t *random)
{
	return -log(1 - model_random__share(random));
}

static inline double series_normal(uint64_t *random)
{
	double radius = sqrt(2 * series_exponential(random));

	return radius * cos(2 * M_PI * model_random__share(random));
}

static inline double series_gamma(uint64_t *random, uint64_t shape)
{
	double sum = 0;

	while (shape-- != 0)
		sum += series_exponential(random);
	return sum;
}

/* The next interval: its items, and their time. */
static inline double series_next(struct series *s, uint64_t *items)
{
	uint64_t *random = &s->random;

	*items = 1;
	switch (s->kind) {
	case SERIES_EXPONENTIAL:
		return series_exponential(random);
	case SERIES_JITTER:
		return 1 + 0.01 * series_normal(random);
	case SERIES_BIMODAL:
		return (model_random__share(random) < 0.1 ? 10 : 1) / 1.9;
	case SERIES_AR1:
		s->state = 0.5 * s->state + sqrt(0.75) * series_normal(random);
		return exp(0.5 * s->state - 0.125);
	case SERIES_BATCHES:
		*items = 1 + model_random__below(random, 20);
		return series_gamma(random, *items);
	case SERIES_GAMMA4:
		return series_gamma(random, 4) / 4;
	case SERIES_OUTLIERS:
		return (model_random__share(random) < 1e-3 ? 10 : 1) / 1.009;
	default:
		return 1;
	}
}

#endif
