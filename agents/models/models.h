/* SPDX-License-Identifier: MIT */
/*
 * models.h - models that predict values of configurations, or of any rows of numbers, from examples
 *
 *	random numbers, and scores.c	values on the scale on which models see them
 *	rows.c		configurations at random, and as rows of numbers
 *	configurations.c	those of a space that are known, and others
 *	process.c	a Gaussian process over configurations
 *	forest.c	a random forest over rows of numbers
 *	effects.h	what trials tell of a space, by such a process
 *	change.h	changes of a rate in a series of intervals
 *	service.h	service rates by such series
 *	pipeline.h	throughput of a pipeline by the service of its stages
 *
 * Not here: which configuration is worth a trial; that is the caller's.
 *
 * An object belongs to one thread. Nothing here prints, and nothing blocks. Arrays that are given
 * stay the caller's. Arrays of configurations have, for each one, a level for each parameter of the
 * space.
 */
#ifndef AGENTS_MODELS_H
#define AGENTS_MODELS_H

#include <pem/explore.h>

#include "number_map.h"

#include <stdbool.h>

/* --- random numbers: splitmix64, by Steele, Lea and Flood (OOPSLA 2014) --- */

static inline uint64_t model_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A number below limit, which is not 0. */
static inline uint64_t model_random__below(uint64_t *state, uint64_t limit)
{
	return (uint64_t)(((unsigned __int128)model_random(state) * limit) >> 64);
}

/* A number from 0 to below 1. */
static inline double model_random__share(uint64_t *state)
{
	return (double)(model_random(state) >> 11) * 0x1p-53;
}

/* --- scores.c --- */

/* Sort values in ascending order. None is NAN. */
void model_sort(double *values, size_t count);

/*
 * Write the scores of count finite values, at least one, with a mean of 0 and a deviation of 1: of
 * their ranks, as normal scores; else of the logarithms of values, if all have one sign. scores has
 * space for twice as many. Returns the deviation before, in logarithms, or in normal scores.
 */
double model_scores(const double *values, size_t count, bool ranks, double *scores);

/* --- rows.c --- */

/* Write any allowed configuration. Returns 1, or 0: none was found. */
int model_any(const struct pem_explore_space *space, uint64_t *random, uint32_t *levels);

/* Numbers in a row: one for an ordered parameter, one for each level of another. */
size_t model_columns(const struct pem_explore_space *space);
/* Write the rows of count configurations, model_columns() numbers each. */
void model_rows(const struct pem_explore_space *space, const uint32_t *levels, size_t count,
		float *rows);

/* --- configurations.c --- */

/* Configurations, each once. Begin with the space alone, the rest 0. */
struct model_configurations {
	const struct pem_explore_space *space;
	uint32_t *levels; /* of each, one after the other, in the order in which they were added */
	size_t count, capacity;
	struct pem_number_map numbers; /* by hashes of levels */
};

/* The number of a configuration, from 0. SIZE_MAX: it was not added. */
size_t model_configurations__find(const struct model_configurations *set, const uint32_t *levels);
/* Add a configuration, if it is new. Returns its number; SIZE_MAX: no memory. */
size_t model_configurations__add(struct model_configurations *set, const uint32_t *levels);
static inline const uint32_t *model_configurations__levels(const struct model_configurations *set,
							   size_t number)
{
	return set->levels + number * set->space->parameter_count;
}
/* Write an allowed configuration that is not among them. Returns 1, or 0: none was found. */
int model_configurations__draw(const struct model_configurations *set, uint64_t *random,
			       uint32_t *levels);
void model_configurations__free(struct model_configurations *set);

/* --- process.c --- */

struct model_process_options {
	uint32_t points; /* used at most, at least 1: a fit takes points^3 / 3 operations */
	/* If more are given: any of them. Otherwise half of points is for the least scores. */
	bool evenly;
	bool additive; /* a part of the covariance is a sum over parameters, not their product */
	bool resampled; /* each fit finds the process's parameters by two thirds of the points */
};

struct model_process;

/* Make a model of a space, which lives until free. NULL: no memory. */
struct model_process *model_process__new(const struct pem_explore_space *space,
					 const struct model_process_options *options);
/* NULL does nothing. */
void model_process__free(struct model_process *process);
/*
 * Fit the model to count configurations, at least one, and their scores, of a mean near 0 and a
 * deviation near 1. levels are used until the next fit or free. The parameters of the fit before
 * are where the search for new ones begins. Returns 0, -ENOMEM, or -EDOM: the scores can't be
 * modelled.
 */
int model_process__fit(struct model_process *process, const uint32_t *levels, const double *scores,
		       size_t count, uint64_t *random);
/* Write the mean and the variance of the score of each of count configurations, after a fit. */
void model_process__predict(struct model_process *process, const uint32_t *levels, size_t count,
			    double *means, double *variances);
/*
 * Draw functions that the points allow, after a fit, and write the score of each at count
 * configurations: a row of draws scores for each. Returns 0, -ENOMEM or -EDOM.
 */
int model_process__draw(const struct model_process *process, const uint32_t *levels, size_t count,
			size_t draws, double *scores, uint64_t *random);
/* The variance by which a measured score differs from that of its configuration, after a fit. */
double model_process__noise(const struct model_process *process);

/* --- forest.c --- */

struct model_forest;

/*
 * Grow a forest of count rows of numbers, at least one, and their values. Equal seeds and rows grow
 * equal forests. NULL with errno: ENOMEM, or EDOM: no forest grew.
 */
struct model_forest *model_forest__new(const float *rows, size_t columns, const double *values,
				       size_t count, uint64_t seed);
/* NULL does nothing. */
void model_forest__free(struct model_forest *forest);
/*
 * Write the mean and the variance of the value of each of count rows: variance within leaves and
 * between trees. Returns 0, -ENOMEM or -EDOM.
 */
int model_forest__predict(const struct model_forest *forest, const float *rows, size_t count,
			  double *means, double *variances);
/*
 * Grow a forest of configurations, at least one, and their values, and predict count others:
 * levels. Returns 0, -ENOMEM or -EDOM.
 */
int model_forest__of(const struct model_configurations *known, const double *values, uint64_t seed,
		     const uint32_t *levels, size_t count, double *means, double *variances);

#endif
