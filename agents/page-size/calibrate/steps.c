// SPDX-License-Identifier: MIT
/*
 * steps.c - the steps of a curve, by monotone regression and then the best flat pieces
 *
 * Sources: Ayer, Brunk, Ewing, Reid, Silverman, An empirical distribution function for sampling
 * with incomplete information, Annals of Mathematical Statistics 26(4), 1955, for pooling
 * neighbours that do not ascend; Bellman, On the approximation of curves by line segments using
 * dynamic programming, CACM 4(6), 1961. Both work on logarithms: a step of 1 to 3 ns counts as much
 * as one of 10 to 30.
 */
#include "steps.h"

#include <math.h>
#include <string.h>

#define RISE_MIN 1.25
#define PIECES_MAX (STEPS_MAX + 1)
/* A piece of a step has this many points or more: one alone is a disturbance. */
#define PIECE_POINTS_MIN 2u
/* A cyclic chase in a TLB that is not quite LRU misses little at first. */
#define RISE_AT 0.25

/* Each becomes the middle one of itself and its neighbours: a disturbance is of one point. */
static void drop_single_points(double *y, size_t count)
{
	double before[STEP_POINTS_MAX];
	size_t i, first;

	memcpy(before, y, count * sizeof(*y));
	for (i = 0; count > 2 && i < count; i++) {
		first = i ? i - 1 : 0;
		if (first + 3 > count)
			first = count - 3;
		y[i] = fmax(fmin(before[first], before[first + 1]),
			    fmin(fmax(before[first], before[first + 1]), before[first + 2]));
	}
}

/* The nearest values that do not descend, by least squares. */
static void make_monotone(double *y, size_t count)
{
	double mean[STEP_POINTS_MAX];
	size_t weight[STEP_POINTS_MAX], blocks = 0, i, j = 0;

	for (i = 0; i < count; i++) {
		mean[blocks] = y[i];
		weight[blocks++] = 1;
		while (blocks > 1 && mean[blocks - 2] > mean[blocks - 1]) {
			size_t a = weight[blocks - 2], b = weight[blocks - 1];

			mean[blocks - 2] =
				(mean[blocks - 2] * (double)a + mean[blocks - 1] * (double)b) /
				(double)(a + b);
			weight[--blocks - 1] = a + b;
		}
	}
	for (i = 0; i < blocks; i++) {
		while (weight[i]--)
			y[j++] = mean[i];
	}
}

/* Squared distance of the points from first to before end to their mean. */
static double piece_error(const double *y, size_t first, size_t end)
{
	double sum = 0, squares = 0;
	size_t i;

	for (i = first; i < end; i++) {
		sum += y[i];
		squares += y[i] * y[i];
	}
	return squares - sum * sum / (double)(end - first);
}

/* Where the best flat pieces begin. starts has pieces + 1 elements: the last is count. */
static void cut(const double *y, size_t count, size_t pieces, size_t *starts)
{
	double best[PIECES_MAX + 1][STEP_POINTS_MAX + 1], error;
	size_t from[PIECES_MAX + 1][STEP_POINTS_MAX + 1], p, i, j;

	for (p = 0; p <= pieces; p++) {
		for (i = 0; i <= count; i++) {
			best[p][i] = p || i ? HUGE_VAL : 0;
			from[p][i] = 0;
			for (j = 0; p && j + PIECE_POINTS_MIN <= i; j++) {
				if (best[p - 1][j] == HUGE_VAL)
					continue;
				error = best[p - 1][j] + piece_error(y, j, i);
				if (error < best[p][i]) {
					best[p][i] = error;
					from[p][i] = j;
				}
			}
		}
	}
	for (starts[pieces] = count, p = pieces; p; p--)
		starts[p - 1] = from[p][starts[p]];
}

/* Where the curve has risen by a part of the step, between two points. */
static double rise_at(const double *pages, const double *y, size_t count, const struct step *step)
{
	double level = log(step->below + RISE_AT * (step->above - step->below)), part;
	size_t i;

	for (i = 0; i < count && y[i] < level; i++)
		;
	if (!i || i == count)
		return pages[i ? count - 1 : 0];
	part = (level - y[i - 1]) / (y[i] - y[i - 1]);
	return exp(log(pages[i - 1]) + part * (log(pages[i]) - log(pages[i - 1])));
}

size_t steps__find(const double *pages, const double *ns, size_t count, struct step *steps)
{
	double y[STEP_POINTS_MAX];
	size_t starts[PIECES_MAX + 1], pieces, i;

	if (count > STEP_POINTS_MAX)
		count = STEP_POINTS_MAX;
	for (i = 0; i < count; i++)
		y[i] = log(ns[i]);
	drop_single_points(y, count);
	make_monotone(y, count);
	for (pieces = PIECES_MAX; pieces > 1; pieces--) {
		if (count < pieces * PIECE_POINTS_MIN)
			continue;
		cut(y, count, pieces, starts);
		for (i = 0; i + 1 < pieces; i++) {
			size_t next = starts[i + 2] - starts[i + 1];

			/* The middle of the lower piece, and the upper quarter of the next. */
			steps[i].below = exp(y[(starts[i] + starts[i + 1]) / 2]);
			steps[i].above = exp(y[starts[i + 1] + next * 3 / 4]);
			if (steps[i].above < steps[i].below * RISE_MIN)
				break;
			steps[i].at = rise_at(pages, y, count, &steps[i]);
		}
		if (i + 1 == pieces)
			return i;
	}
	return 0;
}
