/* SPDX-License-Identifier: MIT */
/*
 * effects.c - which parameter matters: shares of the variance, means by level, intervals
 *
 * Functional analysis of variance (Hutter, Hoos and Leyton-Brown, ICML 2014) of functions that are
 * drawn from a Gaussian process of the trials. Each of them is taken as a space that was measured,
 * and an interval lies between quantiles over all of them.
 */
#include "models/effects.h"
#include "models/models.h"
#include "student.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_LEAST 8u
#define POINTS_MAX 1500u
#define RESAMPLED_MAX 300u /* trials */
#define FITS 4u
#define POPULATION_MAX 3001u /* a prime */
#define LINES_MAX 600u
#define PAIRED_MAX 24u /* pairs of the parameters with the greatest effects are examined */
#define SURE 4.0 /* variance of an effect's mean by that of its doubt: two deviations */
#define CELLS_MAX (EXPLORE_GROUPS_MAX * EXPLORE_GROUPS_MAX)

struct explore_estimate explore_estimate_of(double *draws, size_t count)
{
	struct explore_estimate estimate = {.value = 0};
	size_t i;

	model_sort(draws, count);
	for (i = 0; i < count; i++)
		estimate.value += draws[i] / (double)count;
	estimate.low = draws[count / 40];
	estimate.high = draws[count - 1 - count / 40];
	return estimate;
}

uint32_t explore_groups(const struct pem_explore_parameter *parameter)
{
	return parameter->levels < EXPLORE_GROUPS_MAX ? parameter->levels : EXPLORE_GROUPS_MAX;
}

uint32_t explore_group_of(const struct pem_explore_parameter *parameter, uint32_t level)
{
	return (uint32_t)((uint64_t)level * explore_groups(parameter) / parameter->levels);
}

uint32_t explore_level_of(const struct pem_explore_parameter *parameter, uint32_t group)
{
	uint32_t groups = explore_groups(parameter);

	return (group * parameter->levels + groups - 1) / groups;
}

/* --- configurations --- */

/* Write the next one of the whole space, or of a sample with all levels equally often. */
static int next(const struct pem_explore_space *space, uint64_t *random, uint64_t k,
		uint32_t *levels)
{
	uint64_t generator = 1;
	uint32_t i;

	if (space->count <= POPULATION_MAX) {
		space->at(space, k, levels);
		return 1;
	}
	for (i = 0; i < space->parameter_count; i++)
		levels[i] =
			(uint32_t)(k * (1 + model_random__below(&generator, POPULATION_MAX - 1)) %
				   POPULATION_MAX * space->parameters[i].levels / POPULATION_MAX);
	return space->allows(space, levels) ? 1 : model_any(space, random, levels);
}

/* Values that were refused in some trial and measured in none: nothing is told of them. */
static bool *find_refused(const struct explore_results *r)
{
	const struct pem_explore_parameter *parameters = r->space->parameters;
	uint32_t count = r->space->parameter_count, i;
	size_t all = 0, first, t, trial;
	bool *refused, *taken;

	for (i = 0; i < count; i++)
		all += parameters[i].levels;
	refused = calloc(2 * all, sizeof(*refused));
	taken = refused ? refused + all : NULL;
	for (trial = 0; refused && trial < r->count; trial++) {
		for (first = i = 0; i < count; first += parameters[i++].levels) {
			t = first + r->trials[trial].levels[i];
			refused[t] |= r->trials[trial].outcome == PEM_EXPLORE_REFUSED;
			taken[t] |= r->trials[trial].values != NULL;
		}
	}
	for (t = 0; refused && t < all; t++)
		refused[t] = refused[t] && !taken[t];
	return refused;
}

static bool has_refused(const struct pem_explore_space *space, const bool *refused,
			const uint32_t *levels)
{
	uint32_t i;

	for (i = 0; refused && i < space->parameter_count; i++) {
		if (refused[levels[i]])
			return true;
		refused += space->parameters[i].levels;
	}
	return false;
}

static void choose(struct explore_effects *e, uint64_t *random)
{
	const struct explore_results *r = e->results;
	const struct pem_explore_space *space = r->space;
	uint32_t count = space->parameter_count, i, k, *levels = e->levels;
	const uint32_t *best = r->trials[e->best].levels;
	bool *refused = find_refused(r);

	for (k = 0; k < POPULATION_MAX && k < space->count; k++) {
		if (next(space, random, k, levels) && !has_refused(space, refused, levels))
			levels += count;
	}
	e->population = (size_t)(levels - e->levels) / count;
	memcpy(levels, best, count * sizeof(*levels));
	levels += count;
	memcpy(levels, e->has_reference ? r->trials[r->reference].levels : best,
	       count * sizeof(*levels));
	levels += count;
	e->count = e->population + 2;
	for (i = 0; i < count; i++) {
		const struct pem_explore_parameter *parameter = &space->parameters[i];
		uint32_t groups = explore_groups(parameter);
		const double **rows = e->rows[EXPLORE_AT_BEST] + i * EXPLORE_GROUPS_MAX;

		rows[explore_group_of(parameter, best[i])] = e->values + e->population * e->draws;
		for (k = 0; k < groups && e->count < e->population + LINES_MAX; k++) {
			uint32_t level = explore_level_of(parameter, k);

			memcpy(levels, best, count * sizeof(*levels));
			levels[i] = level;
			if (rows[k] || !space->allows(space, levels) || levels[i] != level ||
			    has_refused(space, refused, levels))
				continue;
			rows[k] = e->values + e->count++ * e->draws;
			levels += count;
		}
	}
	free(refused);
}

/* --- values --- */

struct model {
	struct model_process *process;
	uint32_t *levels; /* of the trials that were measured, which the process knows */
	double *scores;
	uint64_t random;
	bool logarithm; /* of values, where all have one */
	double centre, scale; /* by which they become scores */
};

static double value_of(const struct explore_effects *e, const struct model *model, size_t i)
{
	double value = e->results->trials[e->measured[i]].values[0];

	return model->logarithm ? log(value) : value;
}

static int add_trials(const struct explore_effects *e, struct model *model)
{
	size_t count = e->measured_count, parameters = e->results->space->parameter_count, i;

	model->levels = calloc(count * parameters, sizeof(*model->levels));
	model->scores = calloc(count, sizeof(*model->scores));
	if (!model->levels || !model->scores)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		model->centre += value_of(e, model, i) / (double)count;
	for (i = 0; i < count; i++)
		model->scale += pow(value_of(e, model, i) - model->centre, 2) / (double)count;
	model->scale = sqrt(model->scale);
	for (i = 0; i < count; i++) {
		model->scores[i] = (value_of(e, model, i) - model->centre) / model->scale;
		memcpy(model->levels + i * parameters, e->results->trials[e->measured[i]].levels,
		       parameters * sizeof(*model->levels));
	}
	return 0;
}

/* Write part of the functions: by one fit of the process. */
static int draw(struct explore_effects *e, struct model *model, size_t first, size_t draws,
		double *scores)
{
	size_t members = e->population * draws, i;
	double mean = 0, square = 0;
	int rc = model_process__fit(model->process, model->levels, model->scores, e->measured_count,
				    &model->random);

	if (!rc)
		rc = model_process__draw(model->process, e->levels, e->count, draws, scores,
					 &model->random);
	for (i = 0; i < e->count * draws && !rc; i++) {
		double value = model->centre + model->scale * scores[i];

		e->values[i / draws * e->draws + first + i % draws] =
			model->logarithm ? exp(value) : value;
		mean += i < members ? scores[i] / (double)members : 0;
		square += i < members ? scores[i] * scores[i] / (double)members : 0;
	}
	e->noise += model_process__noise(model->process) / (square - mean * mean) * (double)draws /
		    (double)e->draws;
	return rc;
}

static int draw_all(struct explore_effects *e, struct model *model)
{
	/* Parameters of the process that few trials leave open are found several times. */
	size_t fits = e->measured_count > RESAMPLED_MAX ? 1 : FITS, i, d;
	size_t draws = e->draws / fits;
	double *scores = calloc(e->count * draws, sizeof(*scores));
	int rc = scores ? 0 : -ENOMEM;

	for (i = 0; i < fits && !rc; i++)
		rc = draw(e, model, i * draws, draws, scores);
	free(scores);
	/* The last function is the mean of the others. */
	for (i = 0; i < e->count; i++) {
		double *row = e->values + i * e->draws, sum = 0;

		for (d = 0; d < e->draws - 1; d++)
			sum += row[d] / (double)(e->draws - 1);
		row[d] = sum;
	}
	return rc;
}

static int evaluate(struct explore_effects *e, bool logarithm)
{
	const struct model_process_options options = {
		.points = POINTS_MAX, .evenly = true, .additive = true, .resampled = true};
	struct model model = {.logarithm = logarithm,
			      .process = model_process__new(e->results->space, &options),
			      .random = 1};
	int rc = model.process ? add_trials(e, &model) : -ENOMEM;

	/* Seeds that are small numbers begin alike otherwise. */
	model.random = model_random(&model.random);
	if (!rc) {
		choose(e, &model.random);
		rc = draw_all(e, &model);
	}
	free(model.levels);
	free(model.scores);
	model_process__free(model.process);
	return rc;
}

/* --- shares --- */

struct shares {
	double *sums; /* of deviations from the mean: a row of draws for each cell */
	double counts[CELLS_MAX]; /* configurations of each cell */
	double *means, *squares; /* of each draw: its mean, and the sum of squares with noise */
	double unit; /* the greatest value */
	double *share, *own; /* of each draw; the latter in a row for each parameter */
};

/* Write which share of each draw's variance lies between the groups of a, or of a and b. */
static void share_out(const struct explore_effects *e, struct shares *s, uint32_t a, uint32_t b,
		      double *share)
{
	const struct pem_explore_parameter *parameters = e->results->space->parameters;
	uint32_t columns = a == b ? 1 : explore_groups(&parameters[b]);
	size_t cells = explore_groups(&parameters[a]) * columns, cell, d, k;
	double n = (double)e->population, used = 0;

	memset(s->counts, 0, sizeof(s->counts));
	memset(s->sums, 0, cells * e->draws * sizeof(double));
	for (k = 0; k < e->population; k++) {
		const uint32_t *levels = e->levels + k * e->results->space->parameter_count;

		cell = explore_group_of(&parameters[a], levels[a]) * columns;
		cell += a == b ? 0 : explore_group_of(&parameters[b], levels[b]);
		used += s->counts[cell]++ == 0;
		for (d = 0; d < e->draws; d++)
			s->sums[cell * e->draws + d] +=
				(e->values[k * e->draws + d] - s->means[d]) / s->unit;
	}
	for (d = 0; d < e->draws; d++) {
		double between = 0;

		for (cell = 0; cell < cells; cell++)
			between += pow(s->sums[cell * e->draws + d], 2) / fmax(s->counts[cell], 1);
		/* Cells of a sample differ by chance, too (Kelley, PNAS 21, 1935). */
		if (e->results->space->count > e->population && n > used)
			between -= (used - 1) * fmax(s->squares[d] - between, 0) / (n - used);
		share[d] = between / s->squares[d];
	}
}

static void add_effect(struct explore_effects *e, uint32_t a, uint32_t b, double *share)
{
	double of_mean = share[e->draws - 1];
	struct explore_estimate estimate = explore_estimate_of(share, e->draws);

	/* Functions that vary differ by chance: their mean does not, unless there is an effect. */
	if (of_mean < SURE * (estimate.value - of_mean))
		estimate.low = 0;

	estimate.value = fmax(estimate.value, 0);
	estimate.low = fmax(estimate.low, 0);
	estimate.high = fmax(estimate.high, 0);
	e->effects[e->effect_count++] = (struct explore_effect){a, b, estimate};
}

static int by_share(const void *a, const void *b)
{
	const struct explore_effect *x = a, *y = b;

	return x->share.value > y->share.value ? -1 : x->share.value < y->share.value;
}

static void find_effects(struct explore_effects *e, struct shares *s)
{
	uint32_t parameters = e->results->space->parameter_count, i, k, group;
	size_t draws = e->draws, cells = e->population * draws, d, cell;

	for (cell = 0; cell < cells; cell++)
		s->unit = fmax(s->unit, fabs(e->values[cell]));
	for (cell = 0; cell < cells; cell++)
		s->means[cell % draws] += e->values[cell] / (double)e->population;
	for (cell = 0; cell < cells; cell++)
		s->squares[cell % draws] +=
			pow((e->values[cell] - s->means[cell % draws]) / s->unit, 2) *
			(1 + e->noise);
	for (s->squares[draws - 1] = d = 0; d < draws - 1; d++)
		s->squares[draws - 1] += s->squares[d] / (double)(draws - 1);
	for (i = 0; i < parameters; i++) {
		share_out(e, s, i, i, s->own + i * draws);
		for (group = 0; group < EXPLORE_GROUPS_MAX; group++) {
			size_t row = i * EXPLORE_GROUPS_MAX + group;

			if (group >= explore_groups(&e->results->space->parameters[i]) ||
			    !s->counts[group])
				continue;
			e->rows[EXPLORE_ON_AVERAGE][row] = e->means + row * draws;
			for (d = 0; d < draws; d++)
				e->means[row * draws + d] =
					s->means[d] +
					s->sums[group * draws + d] / s->counts[group] * s->unit;
		}
		memcpy(s->share, s->own + i * draws, draws * sizeof(double));
		add_effect(e, i, i, s->share);
	}
	qsort(e->effects, parameters, sizeof(*e->effects), by_share);
	for (i = 0; i < parameters && i < PAIRED_MAX; i++) {
		for (k = 0; k < i; k++) {
			uint32_t a = e->effects[k].a, b = e->effects[i].a;

			share_out(e, s, a, b, s->share);
			for (d = 0; d < draws; d++)
				s->share[d] -= s->own[a * draws + d] + s->own[b * draws + d];
			add_effect(e, a, b, s->share);
		}
	}
	qsort(e->effects, e->effect_count, sizeof(*e->effects), by_share);
}

/* By how much of the reference's value, or of the median's, the best trial is better. */
static void find_gain(struct explore_effects *e, double *gains, double *sorted)
{
	const struct explore_results *r = e->results;
	const double *best = e->values + e->population * e->draws, *reference = best + e->draws;
	double sign = r->metrics[0].greater_is_better ? 1 : -1, base;
	size_t d, k;

	for (d = 0; d < e->draws; d++) {
		for (k = 0; k < e->population; k++)
			sorted[k] = e->values[k * e->draws + d];
		model_sort(sorted, e->population);
		base = e->has_reference ? reference[d] : sorted[e->population / 2];
		gains[d] = base > 0 ? sign * (best[d] - base) / base : NAN;
	}
	e->gain = explore_estimate_of(gains, e->draws);
}

/* --- all --- */

static bool has_value(const struct explore_result *trial)
{
	return trial->values && isfinite(trial->values[0]) &&
	       trial->outcome != PEM_EXPLORE_FAILED && trial->outcome != PEM_EXPLORE_REFUSED;
}

/* Find which trials have a value, and the best one. Returns why no model is made, or "". */
static const char *take_trials(struct explore_effects *e, bool *all_positive)
{
	const struct explore_results *r = e->results;
	double sign = r->metrics[0].greater_is_better ? -1 : 1, best = INFINITY, least = INFINITY;
	double most = -INFINITY;
	size_t i;

	for (i = 0; i < r->count; i++) {
		const struct explore_result *trial = &r->trials[i];

		if (!has_value(trial))
			continue;
		e->measured[e->measured_count++] = i;
		least = fmin(least, trial->values[0]);
		most = fmax(most, trial->values[0]);
		if (trial->outcome == PEM_EXPLORE_MEASURED && sign * trial->values[0] < best) {
			best = sign * trial->values[0];
			e->best = i;
		}
	}
	if (r->best < r->count)
		e->best = r->best;
	e->has_reference = r->reference < r->count && has_value(&r->trials[r->reference]);
	*all_positive = least > 0;
	return e->best == r->count                ? "no trial was measured"
	       : least == most                    ? "all values that were measured are equal"
	       : e->measured_count < TRIALS_LEAST ? "fewer than 8 trials were measured"
						  : "";
}

int explore_effects__find(struct explore_effects *e, const struct explore_results *results)
{
	size_t parameters = results->space->parameter_count, limit = POPULATION_MAX + LINES_MAX;
	size_t rows = parameters * EXPLORE_GROUPS_MAX;
	struct shares s = {
		.sums = calloc((CELLS_MAX + 3 + parameters) * EXPLORE_DRAWS, sizeof(double))};
	bool all_positive;
	int rc = -ENOMEM;

	*e = (struct explore_effects){.results = results,
				      .draws = EXPLORE_DRAWS,
				      .best = results->count,
				      .gain = {NAN, NAN, NAN}};
	e->measured = calloc(results->count + 1, sizeof(*e->measured));
	e->levels = calloc((limit + 1) * parameters, sizeof(*e->levels));
	e->values = calloc(limit * EXPLORE_DRAWS, sizeof(*e->values));
	e->means = calloc(rows * EXPLORE_DRAWS, sizeof(*e->means));
	e->rows[0] = calloc(2 * rows, sizeof(*e->rows[0]));
	e->rows[1] = e->rows[0] + rows;
	e->effects = calloc(parameters + PAIRED_MAX * PAIRED_MAX, sizeof(*e->effects));
	if (s.sums && e->measured && e->levels && e->values && e->means && e->rows[0] &&
	    e->effects) {
		s.means = s.sums + CELLS_MAX * EXPLORE_DRAWS;
		s.squares = s.means + EXPLORE_DRAWS;
		s.share = s.squares + EXPLORE_DRAWS;
		s.own = s.share + EXPLORE_DRAWS;
		e->unknown = take_trials(e, &all_positive);
		rc = *e->unknown ? 0 : evaluate(e, all_positive);
	}
	if (!rc && !*e->unknown) {
		find_gain(e, s.share, s.sums);
		/* What runs tell comes before what a model tells. */
		if (results->gain)
			e->gain = *results->gain;
		find_effects(e, &s);
	}
	free(s.sums);
	return rc;
}

double explore_result__half(const struct explore_result *result, size_t metric)
{
	double error = result->errors && result->runs > 1 ? result->errors[metric] : 0;

	return error > 0 && isfinite(error) ? error * pem_student__quantile(0.05, result->runs - 1)
					    : 0;
}

void explore_effects__free(struct explore_effects *e)
{
	free(e->measured);
	free(e->levels);
	free(e->values);
	free(e->means);
	free(e->rows[0]);
	free(e->effects);
}
