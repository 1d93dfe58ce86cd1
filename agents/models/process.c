/* SPDX-License-Identifier: MIT */
/*
 * process.c - a Gaussian process: values of configurations that were not tried
 *
 * Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), chapters 2 and 5. The
 * correlation of two configurations is a product over parameters of exp(-weight * distance), and
 * with an additive part a weighted mean of that and of the mean over parameters. The parameters of
 * the model are those of the greatest posterior probability; the mean and the variance of the
 * process are integrated out.
 */
#include "models/models.h"

#include <cblas.h>
#include <errno.h>
#include <lapacke.h>
#include <math.h>
#include <nlopt.h>
#include <stdlib.h>
#include <string.h>

#define FITTED 100u /* points by which the model's parameters are found */
#define SEARCH_STEPS 300
#define BATCH 64u /* configurations that are predicted together */
/* Prior normal distributions of the logarithms of weights and of the share of noise. */
#define WEIGHT_MEAN (-1.0)
#define WEIGHT_DEVIATION 1.5
#define NOISE_MEAN (-4.0)
#define NOISE_DEVIATION 1.0
#define SHARE_DEVIATION 1.5 /* of the logit of the additive part's share */
/* Prior of the variance: as if this many values of variance 1 were known. */
#define VARIANCE_VALUES 2.0
#define JITTER 1e-8
#define LEVELS_LOOKED_UP 16u /* of parameters with more, factors are computed again each time */
#define DRAW_JITTER 1e-7
#define VARIANCE_LEAST 1e-12

struct model_process {
	const struct pem_explore_space *space;
	struct model_process_options options;
	uint32_t dimensions; /* of the model's parameters: weights, noise, additive share */
	double *model;
	double *weights; /* exp of the model's */
	double *shares; /* of the additive part, by parameter */
	double (*factors)[LEVELS_LOOKED_UP][LEVELS_LOOKED_UP]; /* by parameter and two levels */
	double share; /* of the additive part */
	/* Points: configurations and their scores. */
	const uint32_t **points;
	double *scores;
	uint32_t count;
	double *factor; /* Cholesky factor of their correlations, by rows */
	double *residuals; /* solved by the factor */
	double *ones; /* the same of ones */
	double mean, variance;
	double *batch; /* a row for each point, BATCH columns */
};

struct model_process *model_process__new(const struct pem_explore_space *space,
					 const struct model_process_options *options)
{
	struct model_process *process = calloc(1, sizeof(*process));
	size_t limit = options->points;
	uint32_t i;

	if (!process)
		return NULL;
	process->space = space;
	process->options = *options;
	process->dimensions = space->parameter_count + 1 + options->additive;
	process->model = calloc(process->dimensions, sizeof(double));
	process->weights = calloc((size_t)space->parameter_count * 2, sizeof(double));
	process->factors = calloc(space->parameter_count, sizeof(*process->factors));
	process->points = calloc(limit, sizeof(*process->points));
	process->scores = calloc(limit * 3, sizeof(double));
	process->factor = calloc(limit * limit, sizeof(double));
	process->batch = calloc(limit * BATCH, sizeof(double));
	if (!process->model || !process->weights || !process->factors || !process->points ||
	    !process->scores || !process->factor || !process->batch) {
		model_process__free(process);
		return NULL;
	}
	process->shares = process->weights + space->parameter_count;
	process->residuals = process->scores + limit;
	process->ones = process->residuals + limit;
	for (i = 0; i < space->parameter_count; i++)
		process->model[i] = WEIGHT_MEAN;
	process->model[space->parameter_count] = NOISE_MEAN;
	openblas_set_num_threads(1);
	return process;
}

void model_process__free(struct model_process *process)
{
	if (!process)
		return;
	free(process->model);
	free(process->weights);
	free(process->factors);
	free(process->points);
	free(process->scores);
	free(process->factor);
	free(process->batch);
	free(process);
}

/* How far two levels are from each other, from 0 to 1: 1 for any two without an order. */
static double distance(const struct pem_explore_parameter *parameter, uint32_t a, uint32_t b)
{
	if (a == b || !parameter->is_ordered)
		return a != b;
	return fabs(parameter->positions[a] - parameter->positions[b]);
}

/* The factor that one parameter has in the correlation of two configurations. */
static double factor_of(const struct model_process *process, uint32_t parameter, uint32_t a,
			uint32_t b)
{
	return exp(-process->weights[parameter] *
		   distance(&process->space->parameters[parameter], a, b));
}

/* Take weights: factors of parameters with few levels are looked up from here on. */
static void take_weights(struct model_process *process, const double *model)
{
	double parts = 0;
	uint32_t i, a, b;

	for (i = 0; i < process->space->parameter_count; i++) {
		uint32_t levels = process->space->parameters[i].levels;

		process->weights[i] = exp(model[i]);
		process->shares[i] = 1 - exp(-process->weights[i]);
		parts += process->shares[i];
		for (a = 0; levels <= LEVELS_LOOKED_UP && a < levels; a++) {
			for (b = 0; b < levels; b++)
				process->factors[i][a][b] = factor_of(process, i, a, b);
		}
	}
	for (i = 0; i < process->space->parameter_count && parts > 0; i++)
		process->shares[i] /= parts;
}

static double correlation(const struct model_process *process, const uint32_t *a, const uint32_t *b)
{
	const struct pem_explore_parameter *parameters = process->space->parameters;
	double product = 1, sum = 0;
	uint32_t i;

	for (i = 0; i < process->space->parameter_count; i++) {
		double factor = parameters[i].levels <= LEVELS_LOOKED_UP
					? process->factors[i][a[i]][b[i]]
					: factor_of(process, i, a[i], b[i]);

		product *= factor;
		if (process->options.additive)
			sum += process->shares[i] * factor;
	}
	return process->options.additive ? process->share * sum + (1 - process->share) * product
					 : product;
}

/*
 * Take the model's parameters, and solve for the points. Returns the logarithm of their posterior
 * probability, but for a constant; -INFINITY: they are impossible.
 */
static double solve(struct model_process *process, const double *model)
{
	uint32_t parameters = process->space->parameter_count, n = process->count, i, k;
	double *ones = process->ones, *residuals = process->residuals;
	double square, determinant = 0, prior = 0;
	double noise = exp(model[parameters]);

	take_weights(process, model);
	for (i = 0; i < parameters; i++)
		prior += pow((model[i] - WEIGHT_MEAN) / WEIGHT_DEVIATION, 2);
	prior += pow((model[parameters] - NOISE_MEAN) / NOISE_DEVIATION, 2);
	if (process->options.additive) {
		process->share = 1 / (1 + exp(-model[parameters + 1]));
		prior += pow(model[parameters + 1] / SHARE_DEVIATION, 2);
	}
	for (i = 0; i < n; i++) {
		for (k = 0; k < i; k++)
			process->factor[i * n + k] =
				correlation(process, process->points[i], process->points[k]);
		process->factor[i * n + i] = 1 + noise + JITTER;
		ones[i] = 1;
		residuals[i] = process->scores[i];
	}
	if (LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', (lapack_int)n, process->factor, (lapack_int)n))
		return -INFINITY;
	cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, process->factor,
		    (int)n, ones, 1);
	cblas_dtrsv(CblasRowMajor, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, process->factor,
		    (int)n, residuals, 1);
	/* Scores have a mean of 0, which weighs a little. */
	process->mean = cblas_ddot((int)n, ones, 1, residuals, 1) /
			(cblas_ddot((int)n, ones, 1, ones, 1) + 0.05);
	cblas_daxpy((int)n, -process->mean, ones, 1, residuals, 1);
	square = cblas_ddot((int)n, residuals, 1, residuals, 1);
	process->variance = (square + VARIANCE_VALUES) / (n + VARIANCE_VALUES);
	for (i = 0; i < n; i++)
		determinant += log(process->factor[i * n + i]);
	return -0.5 * (n + VARIANCE_VALUES) * log(square + VARIANCE_VALUES) - determinant -
	       0.5 * prior;
}

static double objective(unsigned int dimensions, const double *model, double *gradient, void *arg)
{
	double value = solve(arg, model);

	(void)dimensions;
	(void)gradient;
	return isfinite(value) ? value : -1e300;
}

/* --- points --- */

static void take_point(struct model_process *process, const uint32_t *levels, const double *scores,
		       size_t which)
{
	process->points[process->count] = levels + which * process->space->parameter_count;
	process->scores[process->count++] = scores[which];
}

/* Take limit points, any of count, or all. */
static void take_any(struct model_process *process, const uint32_t *levels, const double *scores,
		     size_t count, size_t limit, uint64_t *random)
{
	size_t i;

	process->count = 0;
	for (i = 0; i < count; i++) {
		if (count <= limit ||
		    model_random__below(random, count - i) < limit - process->count)
			take_point(process, levels, scores, i);
	}
}

/*
 * Take limit points of more: half of them have the least scores, and the others lie at equal
 * distances among the rest. Returns 0 or -ENOMEM.
 */
static int take_least(struct model_process *process, const uint32_t *levels, const double *scores,
		      size_t count, size_t limit)
{
	double *sorted = calloc(count, sizeof(*sorted)), bar;
	double step = (double)(count - limit / 2) / (double)(limit - limit / 2);
	size_t rest = 0, taken = 0, i;

	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, scores, count * sizeof(*sorted));
	model_sort(sorted, count);
	bar = limit > 1 ? sorted[limit / 2 - 1] : -INFINITY;
	free(sorted);
	process->count = 0;
	for (i = 0; i < count && process->count < limit; i++) {
		bool wanted = scores[i] <= bar && taken < limit / 2;

		if (wanted)
			taken++;
		else
			wanted = rest++ >= (size_t)((double)(process->count - taken) * step);
		if (wanted)
			take_point(process, levels, scores, i);
	}
	return 0;
}

static int take(struct model_process *process, const uint32_t *levels, const double *scores,
		size_t count, size_t limit, uint64_t *random)
{
	if (count > limit && !process->options.evenly)
		return take_least(process, levels, scores, count, limit);
	take_any(process, levels, scores, count, limit, random);
	return 0;
}

static int search(struct model_process *process)
{
	nlopt_opt search = nlopt_create(NLOPT_LN_SBPLX, process->dimensions);
	double best;
	nlopt_result result;

	if (!search)
		return -ENOMEM;
	nlopt_set_max_objective(search, objective, process);
	nlopt_set_maxeval(search, SEARCH_STEPS);
	nlopt_set_ftol_abs(search, 1e-3);
	nlopt_set_initial_step1(search, 1);
	result = nlopt_optimize(search, process->model, &best);
	nlopt_destroy(search);
	if (result == NLOPT_OUT_OF_MEMORY)
		return -ENOMEM;
	return isfinite(best) && best > -1e300 ? 0 : -EDOM;
}

int model_process__fit(struct model_process *process, const uint32_t *levels, const double *scores,
		       size_t count, uint64_t *random)
{
	size_t most = process->options.points < FITTED ? process->options.points : FITTED;
	size_t fitted = process->options.resampled ? count * 2 / 3 + 1 : count;
	int rc = take(process, levels, scores, count, fitted < most ? fitted : most, random);

	if (!rc)
		rc = search(process);
	if (!rc)
		rc = take(process, levels, scores, count, process->options.points, random);
	if (!rc && !isfinite(solve(process, process->model)))
		rc = -EDOM;
	return rc;
}

static void predict(struct model_process *process, const uint32_t *levels, size_t count,
		    double *means, double *variances)
{
	uint32_t n = process->count, i;
	size_t k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < count; k++)
			process->batch[i * BATCH + k] =
				correlation(process, process->points[i],
					    levels + k * process->space->parameter_count);
	}
	cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)n,
		    (int)count, 1, process->factor, (int)n, process->batch, BATCH);
	for (k = 0; k < count; k++) {
		const double *column = process->batch + k;
		double rest = 1 + JITTER - cblas_ddot((int)n, column, BATCH, column, BATCH);

		means[k] = process->mean + cblas_ddot((int)n, column, BATCH, process->residuals, 1);
		variances[k] = fmax(process->variance * rest, VARIANCE_LEAST);
	}
}

void model_process__predict(struct model_process *process, const uint32_t *levels, size_t count,
			    double *means, double *variances)
{
	size_t done, part;

	for (done = 0; done < count; done += part) {
		part = count - done < BATCH ? count - done : BATCH;
		predict(process, levels + done * process->space->parameter_count, part,
			means + done, variances + done);
	}
}

/* --- functions --- */

/* A draw of the standard normal distribution (Box and Muller, 1958). */
static double draw_normal(uint64_t *random)
{
	double radius = 1 - model_random__share(random);
	double angle = model_random__share(random);

	return sqrt(-2 * log(radius)) * cos(2 * M_PI * angle);
}

/*
 * Write the means at configurations, and into factor that of their covariance, once the points are
 * known.
 */
static int condition(const struct model_process *process, const uint32_t *levels, size_t count,
		     double *means, double *factor)
{
	uint32_t parameters = process->space->parameter_count;
	int n = (int)process->count, m = (int)count;
	double *cross = calloc(process->count * count, sizeof(*cross));
	size_t i, k;

	if (!cross)
		return -ENOMEM;
	for (i = 0; i < process->count; i++) {
		for (k = 0; k < count; k++)
			cross[i * count + k] =
				correlation(process, process->points[i], levels + k * parameters);
	}
	for (i = 0; i < count; i++) {
		means[i] = process->mean;
		for (k = 0; k <= i; k++)
			factor[i * count + k] = correlation(process, levels + i * parameters,
							    levels + k * parameters);
		factor[i * count + i] += DRAW_JITTER;
	}
	cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, n, m, 1,
		    process->factor, n, cross, m);
	cblas_dgemv(CblasRowMajor, CblasTrans, n, m, 1, cross, m, process->residuals, 1, 1, means,
		    1);
	cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, m, n, -1, cross, m, 1, factor, m);
	free(cross);
	return LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', m, factor, m) ? -EDOM : 0;
}

int model_process__draw(const struct model_process *process, const uint32_t *levels, size_t count,
			size_t draws, double *scores, uint64_t *random)
{
	double *factor = calloc(count * count, sizeof(*factor));
	double *means = calloc(count, sizeof(*means));
	int rc = -ENOMEM;
	size_t i;

	if (factor && means)
		rc = condition(process, levels, count, means, factor);
	for (i = 0; i < count * draws && !rc; i++)
		scores[i] = draw_normal(random);
	if (!rc)
		cblas_dtrmm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit,
			    (int)count, (int)draws, sqrt(process->variance), factor, (int)count,
			    scores, (int)draws);
	for (i = 0; i < count * draws && !rc; i++)
		scores[i] += means[i / draws];
	free(factor);
	free(means);
	return rc;
}

double model_process__noise(const struct model_process *process)
{
	return process->variance * exp(process->model[process->space->parameter_count]);
}
