/* SPDX-License-Identifier: MIT */
/*
 * forest.c - a random forest over rows of numbers
 *
 * Random forests of regression trees as in sequential model-based configuration (Hutter, Hoos and
 * Leyton-Brown, LION 5, 2011). XGBoost grows the trees and finds the leaf of each tree that a row
 * is in; a leaf's mean and variance are those of the examples in it.
 */
#include "models/models.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <xgboost/c_api.h>

#define TREES 50u
#define LEAVES_MAX 1e6f /* of one tree */

/* Sums over the examples in a leaf. */
struct leaf {
	double sum, square;
	uint32_t count;
};

struct model_forest {
	BoosterHandle booster;
	size_t columns;
	struct leaf *leaves; /* leaf_limit for each tree */
	size_t leaf_limit;
};

static DMatrixHandle matrix_of(const float *rows, size_t columns, size_t count)
{
	DMatrixHandle matrix;

	return XGDMatrixCreateFromMat(rows, count, columns, NAN, &matrix) ? NULL : matrix;
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

/* Sum up the examples in each leaf. */
static int fill_leaves(struct model_forest *forest, const float *leaves, const double *values,
		       size_t count)
{
	size_t cells = count * TREES, i;

	for (i = 0; i < cells; i++) {
		if (!(leaves[i] >= 0 && leaves[i] < LEAVES_MAX))
			return -EDOM;
		if ((size_t)leaves[i] >= forest->leaf_limit)
			forest->leaf_limit = (size_t)leaves[i] + 1;
	}
	forest->leaves = calloc(forest->leaf_limit * TREES, sizeof(*forest->leaves));
	if (!forest->leaves)
		return -ENOMEM;
	for (i = 0; i < cells; i++) {
		struct leaf *leaf =
			&forest->leaves[(i % TREES) * forest->leaf_limit + (size_t)leaves[i]];
		double value = values[i / TREES];

		leaf->sum += value;
		leaf->square += value * value;
		leaf->count++;
	}
	return 0;
}

static int grow(struct model_forest *forest, DMatrixHandle matrix, const double *values,
		size_t count, uint64_t seed)
{
	float *labels = calloc(count, sizeof(*labels));
	const float *leaves;
	int rc = -ENOMEM;
	size_t i;

	if (labels && !XGBoosterCreate(&matrix, 1, &forest->booster))
		rc = set_options(forest->booster, seed);
	for (i = 0; !rc && i < count; i++)
		labels[i] = (float)values[i];
	if (!rc && (XGDMatrixSetFloatInfo(matrix, "label", labels, count) ||
		    XGBoosterUpdateOneIter(forest->booster, 0, matrix)))
		rc = -EDOM;
	free(labels);
	if (rc)
		return rc;
	leaves = leaves_of(forest->booster, matrix, count);
	return leaves ? fill_leaves(forest, leaves, values, count) : -EDOM;
}

struct model_forest *model_forest__new(const float *rows, size_t columns, const double *values,
				       size_t count, uint64_t seed)
{
	struct model_forest *forest = calloc(1, sizeof(*forest));
	DMatrixHandle matrix = forest ? matrix_of(rows, columns, count) : NULL;
	int rc = matrix ? grow(forest, matrix, values, count, seed) : -ENOMEM;

	if (matrix)
		XGDMatrixFree(matrix);
	if (rc) {
		model_forest__free(forest);
		errno = -rc;
		return NULL;
	}
	forest->columns = columns;
	return forest;
}

void model_forest__free(struct model_forest *forest)
{
	if (!forest)
		return;
	if (forest->booster)
		XGBoosterFree(forest->booster);
	free(forest->leaves);
	free(forest);
}

/* Write what the leaves of one row predict. */
static void predict(const struct model_forest *forest, const float *leaves, double *mean,
		    double *variance)
{
	double sum = 0, square = 0, within = 0;
	uint32_t trees = 0, i;

	for (i = 0; i < TREES; i++) {
		const struct leaf *leaf;
		double own;

		if (!(leaves[i] >= 0 && (size_t)leaves[i] < forest->leaf_limit))
			continue;
		leaf = &forest->leaves[i * forest->leaf_limit + (size_t)leaves[i]];
		if (!leaf->count)
			continue;
		own = leaf->sum / leaf->count;
		sum += own;
		square += own * own;
		within += fmax(leaf->square / leaf->count - own * own, 0);
		trees++;
	}
	*mean = trees ? sum / trees : 0;
	*variance = trees ? fmax(within / trees + square / trees - *mean * *mean, 0) : 0;
}

int model_forest__predict(const struct model_forest *forest, const float *rows, size_t count,
			  double *means, double *variances)
{
	DMatrixHandle matrix = matrix_of(rows, forest->columns, count);
	const float *leaves = matrix ? leaves_of(forest->booster, matrix, count) : NULL;
	size_t i;

	for (i = 0; leaves && i < count; i++)
		predict(forest, leaves + i * TREES, &means[i], &variances[i]);
	if (matrix)
		XGDMatrixFree(matrix);
	return leaves ? 0 : matrix ? -EDOM : -ENOMEM;
}

int model_forest__of(const struct model_configurations *known, const double *values, uint64_t seed,
		     const uint32_t *levels, size_t count, double *means, double *variances)
{
	size_t columns = model_columns(known->space), most = known->count;
	float *rows = calloc((count > most ? count : most) * columns, sizeof(*rows));
	struct model_forest *forest;
	int rc;

	if (!rows)
		return -ENOMEM;
	model_rows(known->space, known->levels, known->count, rows);
	forest = model_forest__new(rows, columns, values, known->count, seed);
	rc = forest ? 0 : -errno;
	if (forest) {
		model_rows(known->space, levels, count, rows);
		rc = model_forest__predict(forest, rows, count, means, variances);
	}
	model_forest__free(forest);
	free(rows);
	return rc;
}
