/* SPDX-License-Identifier: MIT */
/*
 * forest.c - a random forest: values of configurations that were not tried
 *
 * Sequential model-based configuration (Hutter, Hoos and Leyton-Brown, LION 5, 2011): a random
 * forest of regression trees predicts the logarithm of a configuration's value. XGBoost grows the
 * trees and says in which leaf of each a configuration lies; a leaf's mean and variance are those
 * of the trials in it.
 */
#include "policy/policy.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xgboost/c_api.h>

#define TREES 50u
#define VARIANCE_LEAST 1e-4

struct explore_forest {
	const struct pem_explore_space *space;
	uint64_t seed;
	size_t columns; /* of a row: one for an ordered parameter, one for each level otherwise */
	double target; /* the best score */
	double *scores; /* of the trials */
	struct leaf *known; /* sums of the trials in each leaf, leaf_limit for each tree */
	size_t leaf_limit;
};

struct leaf {
	double sum, square;
	uint32_t count;
};

static size_t columns_of(const struct pem_explore_space *space)
{
	size_t columns = 0;
	uint32_t i;

	for (i = 0; i < space->parameter_count; i++)
		columns += space->parameters[i].is_ordered ? 1 : space->parameters[i].levels;
	return columns;
}

static void encode(const struct pem_explore_space *space, const uint32_t *levels, float *row)
{
	uint32_t i, k;

	for (i = 0; i < space->parameter_count; i++) {
		const struct pem_explore_parameter *parameter = &space->parameters[i];

		if (parameter->is_ordered)
			*row++ = (float)parameter->positions[levels[i]];
		for (k = 0; !parameter->is_ordered && k < parameter->levels; k++)
			*row++ = levels[i] == k;
	}
}

/* A matrix of count configurations. NULL: it could not be made. */
static DMatrixHandle matrix_of(const struct explore_forest *forest, const uint32_t *levels,
			       size_t count)
{
	const struct pem_explore_space *space = forest->space;
	float *rows = calloc(count * forest->columns + 1, sizeof(*rows));
	DMatrixHandle matrix = NULL;
	size_t i;

	if (!rows)
		return NULL;
	for (i = 0; i < count; i++)
		encode(space, levels + i * space->parameter_count, rows + i * forest->columns);
	if (XGDMatrixCreateFromMat(rows, count, forest->columns, NAN, &matrix))
		matrix = NULL;
	free(rows);
	return matrix;
}

static int set_options(BoosterHandle booster, uint64_t seed)
{
	char text[24];
	const char *const options[][2] = {
		{"booster", "gbtree"},  {"tree_method", "exact"},  {"num_parallel_tree", "50"},
		{"learning_rate", "1"}, {"subsample", "0.8"},      {"colsample_bynode", "0.7"},
		{"max_depth", "20"},    {"min_child_weight", "1"}, {"lambda", "0"},
		{"base_score", "0"},    {"nthread", "1"},          {"verbosity", "0"},
		{"seed", text},
	};
	size_t i;

	_Static_assert(TREES == 50, "as num_parallel_tree says");
	snprintf(text, sizeof(text), "%u", (unsigned int)(seed & INT32_MAX));
	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (XGBoosterSetParam(booster, options[i][0], options[i][1]))
			return -EDOM;
	}
	return 0;
}

/* The leaf of each tree that each row is in. The result is the booster's. NULL: it failed. */
static const float *leaves_of(BoosterHandle booster, DMatrixHandle matrix, size_t count)
{
	const char *config = "{\"type\": 6, \"training\": false, \"iteration_begin\": 0, "
			     "\"iteration_end\": 0, \"strict_shape\": true}";
	const bst_ulong *shape;
	bst_ulong dimensions, cells = 1, i;
	const float *leaves;

	if (XGBoosterPredictFromDMatrix(booster, matrix, config, &shape, &dimensions, &leaves))
		return NULL;
	for (i = 0; i < dimensions; i++)
		cells *= shape[i];
	return cells == count * TREES ? leaves : NULL;
}

static int score(struct explore_forest *forest, const struct explore_history *history)
{
	size_t i;

	free(forest->scores);
	forest->scores = calloc(history->count * 2 + 1, sizeof(*forest->scores));
	if (!forest->scores)
		return -ENOMEM;
	explore_scores(history, false, forest->scores);
	forest->target = INFINITY;
	for (i = 0; i < history->count; i++)
		forest->target = fmin(forest->target, forest->scores[i]);
	return 0;
}

/* Sum up the trials in each leaf. */
static int fill_leaves(struct explore_forest *forest, const float *leaves, size_t trials)
{
	size_t cells = trials * TREES, i;

	forest->leaf_limit = 0;
	for (i = 0; i < cells; i++) {
		if (!(leaves[i] >= 0 && leaves[i] < 1e6f))
			return -EDOM;
		if ((size_t)leaves[i] >= forest->leaf_limit)
			forest->leaf_limit = (size_t)leaves[i] + 1;
	}
	free(forest->known);
	forest->known = calloc(forest->leaf_limit * TREES, sizeof(*forest->known));
	if (!forest->known)
		return -ENOMEM;
	for (i = 0; i < cells; i++) {
		struct leaf *leaf =
			&forest->known[(i % TREES) * forest->leaf_limit + (size_t)leaves[i]];
		double value = forest->scores[i / TREES];

		leaf->sum += value;
		leaf->square += value * value;
		leaf->count++;
	}
	return 0;
}

/* The expected improvement of a configuration whose leaves these are. */
static double improvement_of(const struct explore_forest *forest, const float *leaves)
{
	double sum = 0, square = 0, within = 0, mean;
	uint32_t trees = 0, i;

	for (i = 0; i < TREES; i++) {
		const struct leaf *leaf;

		if (!(leaves[i] >= 0 && (size_t)leaves[i] < forest->leaf_limit))
			continue;
		leaf = &forest->known[i * forest->leaf_limit + (size_t)leaves[i]];
		if (!leaf->count)
			continue;
		mean = leaf->sum / leaf->count;
		sum += mean;
		square += mean * mean;
		within += fmax(leaf->square / leaf->count - mean * mean, 0);
		trees++;
	}
	if (!trees)
		return 0;
	mean = sum / trees;
	return explore_improvement(
		forest->target, mean,
		sqrt(fmax(within / trees + square / trees - mean * mean, VARIANCE_LEAST)));
}

/* Grow the trees, and write improvements. trials and candidates are matrices. */
static int grow(struct explore_forest *forest, BoosterHandle booster, DMatrixHandle trials,
		size_t trial_count, DMatrixHandle candidates, size_t count, double *improvements)
{
	float *labels = calloc(trial_count, sizeof(*labels));
	const float *leaves;
	int rc = labels ? set_options(booster, forest->seed + trial_count) : -ENOMEM;
	size_t i;

	for (i = 0; !rc && i < trial_count; i++)
		labels[i] = (float)forest->scores[i];
	if (!rc && (XGDMatrixSetFloatInfo(trials, "label", labels, trial_count) ||
		    XGBoosterUpdateOneIter(booster, 0, trials)))
		rc = -EDOM;
	free(labels);
	if (rc)
		return rc;
	leaves = leaves_of(booster, trials, trial_count);
	rc = leaves ? fill_leaves(forest, leaves, trial_count) : -EDOM;
	if (rc)
		return rc;
	leaves = leaves_of(booster, candidates, count);
	for (i = 0; leaves && i < count; i++)
		improvements[i] = improvement_of(forest, leaves + i * TREES);
	return leaves ? 0 : -EDOM;
}

int explore_forest__improvements(struct explore_forest *forest,
				 const struct explore_history *history, const uint32_t *levels,
				 size_t count, double *improvements)
{
	DMatrixHandle trials = NULL, candidates = NULL;
	BoosterHandle booster = NULL;
	int rc = score(forest, history);

	if (rc)
		return rc;
	trials = matrix_of(forest, history->levels, history->count);
	candidates = matrix_of(forest, levels, count);
	rc = -ENOMEM;
	if (trials && candidates && !XGBoosterCreate(&trials, 1, &booster))
		rc = grow(forest, booster, trials, history->count, candidates, count, improvements);
	if (booster)
		XGBoosterFree(booster);
	if (candidates)
		XGDMatrixFree(candidates);
	if (trials)
		XGDMatrixFree(trials);
	return rc;
}

void explore_forest__free(struct explore_forest *forest)
{
	if (!forest)
		return;
	free(forest->scores);
	free(forest->known);
	free(forest);
}

struct explore_forest *explore_forest__new(const struct pem_explore_space *space, uint64_t seed)
{
	struct explore_forest *forest = calloc(1, sizeof(*forest));

	if (!forest)
		return NULL;
	forest->space = space;
	forest->seed = seed * 1000003;
	forest->columns = columns_of(space);
	return forest;
}
