// SPDX-License-Identifier: MIT
/* stats.c - the arithmetic of comparing (contract: stats.h) */
#include "stats.h"
#include "student.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- series --- */

struct ranked {
	double value;
	size_t at;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

static int set_ranks(struct compare_sequence *s)
{
	struct ranked *sorted = calloc(s->known + 1, sizeof(*sorted));
	size_t i, k = 0, end;

	if (sorted == NULL)
		return -ENOMEM;
	for (i = 0; i < s->count; i++) {
		s->rank[i] = NAN;
		if (!isnan(s->value[i]))
			sorted[k++] = (struct ranked){s->value[i], i};
	}
	qsort(sorted, k, sizeof(*sorted), by_value);
	for (i = 0; i < k; i = end) {
		for (end = i + 1; end < k && sorted[end].value <= sorted[i].value; end++)
			;
		for (size_t j = i; j < end; j++)
			s->rank[sorted[j].at] = (double)(i + end - 1) / 2;
	}
	s->is_constant = k < 3 || sorted[0].value >= sorted[k - 1].value;
	free(sorted);
	return 0;
}

/* Autocorrelation of the ranks up to a fifth of the series, as Pyper and Peterman advise. */
static void set_memory(struct compare_sequence *s)
{
	double mean = (double)(s->known - 1) / 2, variance = 0;
	size_t i, lag;

	for (i = 0; i < s->count; i++)
		if (!isnan(s->rank[i]))
			variance += (s->rank[i] - mean) * (s->rank[i] - mean);
	variance /= (double)s->known;
	for (lag = 1; lag <= s->memory_count; lag++) {
		double sum = 0;
		size_t pairs = 0;

		for (i = lag; i < s->count; i++) {
			double product = (s->rank[i] - mean) * (s->rank[i - lag] - mean);

			if (isnan(product))
				continue;
			sum += product;
			pairs++;
		}
		s->memory[lag - 1] = pairs != 0 ? sum / (double)pairs / variance : 0;
	}
}

int compare_sequence__set(struct compare_sequence *s, const double *values, size_t count)
{
	size_t i;
	int rc;

	memset(s, 0, sizeof(*s));
	s->count = count;
	s->memory_count = count / 5;
	s->value = calloc(count + 1, sizeof(*s->value));
	s->rank = calloc(count + 1, sizeof(*s->rank));
	s->memory = calloc(s->memory_count + 1, sizeof(*s->memory));
	if (s->value == NULL || s->rank == NULL || s->memory == NULL) {
		compare_sequence__clear(s);
		return -ENOMEM;
	}
	for (i = 0; i < count; i++) {
		s->value[i] = isfinite(values[i]) ? values[i] : NAN;
		s->known += !isnan(s->value[i]);
	}
	rc = set_ranks(s);
	if (rc < 0)
		compare_sequence__clear(s);
	else if (!s->is_constant)
		set_memory(s);
	return rc;
}

void compare_sequence__clear(struct compare_sequence *s)
{
	free(s->value);
	free(s->rank);
	free(s->memory);
	memset(s, 0, sizeof(*s));
}

/*
 * Pearson's coefficient of a[i] and b[i + lag], from begin to end (of a). NAN: one is constant, or
 * there are fewer than 3 pairs. *pairs: how many there are.
 */
static double coefficient(const double *a, const double *b, size_t begin, size_t end, size_t count,
			  long lag, size_t *pairs)
{
	double mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0;
	size_t i, n = 0;

	if (lag < 0 && begin < (size_t)-lag)
		begin = (size_t)-lag;
	if (lag > 0 && end + (size_t)lag > count)
		end = count > (size_t)lag ? count - (size_t)lag : 0;
	/* Means are updated by each pair (Welford), so that great values do not cancel. */
	for (i = begin; i < end; i++) {
		double x = a[i], y = b[(size_t)((long)i + lag)], dx, dy;

		if (isnan(x) || isnan(y))
			continue;
		n++;
		dx = x - mean_a;
		dy = y - mean_b;
		mean_a += dx / (double)n;
		mean_b += dy / (double)n;
		aa += dx * (x - mean_a);
		bb += dy * (y - mean_b);
		ab += dx * (y - mean_b);
	}
	*pairs = n;
	if (n < 3 || aa <= 0 || bb <= 0)
		return NAN;
	ab /= sqrt(aa) * sqrt(bb);
	return ab > 1 ? 1 : ab < -1 ? -1 : ab;
}

/* How many independent pairs say as much as n of these series. */
static double independent(const struct compare_sequence *a, const struct compare_sequence *b,
			  size_t n)
{
	double sum = 0, share;
	size_t lag, last = a->memory_count < n / 5 ? a->memory_count : n / 5;

	for (lag = 1; lag <= last; lag++)
		sum += (double)(n - lag) / (double)n * a->memory[lag - 1] * b->memory[lag - 1];
	share = 1 + 2 * sum;
	/* Series that alternate could tell more than n. That is not relied on. */
	return share > 1 ? (double)n / share : (double)n;
}

static double probability(double rho, double n)
{
	if (isnan(rho) || n < COMPARE_INDEPENDENT_MIN)
		return 1;
	if (fabs(rho) >= 1)
		return 0;
	return pem_student__p(rho * sqrt((n - 2) / (1 - rho * rho)), n - 2);
}

/*
 * Judge each part of the series by itself. The threshold is corrected for the number of parts. A
 * turn takes a part on either side, and the weaker one tells how sure it is.
 */
static void judge_parts(const struct compare_sequence *a, const struct compare_sequence *b,
			struct compare_correlation *result)
{
	double share = result->pairs != 0 ? result->independent / (double)result->pairs : 0;
	double p, with = 1, against = 1;
	size_t i, pairs;

	for (i = 0; i < COMPARE_PARTS; i++) {
		double rho = coefficient(a->rank, b->rank, a->count * i / COMPARE_PARTS,
					 a->count * (i + 1) / COMPARE_PARTS, a->count, result->lag,
					 &pairs);
		double n = (double)pairs * share;

		if (n < COMPARE_INDEPENDENT_MIN || isnan(rho))
			continue;
		result->parts++;
		p = probability(rho, n) * COMPARE_PARTS;
		if (rho > 0) {
			result->parts_with += p <= 0.05;
			with = fmin(with, p);
		} else {
			result->parts_against += p <= 0.05;
			against = fmin(against, p);
		}
	}
	result->p_turns = fmax(with, against);
}

void compare__correlate(const struct compare_sequence *a, const struct compare_sequence *b,
			unsigned int lag_max, struct compare_correlation *result)
{
	double rho, best_rho = 0, p, best_p = 1, share;
	long lag, best = 0;
	size_t pairs;

	memset(result, 0, sizeof(*result));
	result->p = result->p_turns = 1;
	result->r = result->rho = NAN;
	if (a->is_constant || b->is_constant || a->count != b->count)
		return;
	rho = coefficient(a->rank, b->rank, 0, a->count, a->count, 0, &result->pairs);
	result->independent = independent(a, b, result->pairs);
	share = result->pairs != 0 ? result->independent / (double)result->pairs : 0;
	result->p = probability(rho, result->independent);
	result->rho = rho;
	for (lag = -(long)lag_max; lag <= (long)lag_max; lag++) {
		rho = coefficient(a->rank, b->rank, 0, a->count, a->count, lag, &pairs);
		p = probability(rho, (double)pairs * share);
		if (lag == 0 || isnan(rho) || (double)pairs < (double)result->pairs / 2)
			continue;
		if (p < best_p || (p <= best_p && fabs(rho) > fabs(best_rho))) {
			best_p = p;
			best_rho = rho;
			best = lag;
		}
	}
	/*
	 * Half of the error probability is for lag 0, and half for all others together
	 * (Bonferroni). Where both vanish, the greater coefficient wins.
	 */
	best_p *= 2 * lag_max;
	if (best != 0 &&
	    (best_p < result->p || (best_p <= 0 && fabs(best_rho) > fabs(result->rho)))) {
		result->lag = best;
		result->p = best_p;
		result->rho = best_rho;
	}
	if (lag_max != 0)
		result->p = fmin(1, 2 * result->p);
	result->r =
		coefficient(a->value, b->value, 0, a->count, a->count, result->lag, &result->pairs);
	judge_parts(a, b, result);
}

/* By Fisher's transformation; 0.84 is for 80 % power. */
double compare__detectable(double n, double error)
{
	return n > 3 ? tanh((pem_student__quantile(error, n - 2) + 0.841621) / sqrt(n - 3)) : 1;
}

/* Sort the probabilities that are known, and set all q to NAN. NULL: no memory. *known: how many.
 */
static struct ranked *sort_known(const double *p, double *q, size_t count, size_t *known)
{
	struct ranked *sorted = calloc(count + 1, sizeof(*sorted));
	size_t i;

	*known = 0;
	for (i = 0; sorted != NULL && i < count; i++) {
		q[i] = NAN;
		if (!isnan(p[i]))
			sorted[(*known)++] = (struct ranked){p[i], i};
	}
	if (sorted != NULL)
		qsort(sorted, *known, sizeof(*sorted), by_value);
	return sorted;
}

int compare__correct_each(const double *p, double *q, size_t count)
{
	double most = 0;
	size_t i, k;
	struct ranked *sorted = sort_known(p, q, count, &k);

	if (sorted == NULL)
		return -ENOMEM;
	for (i = 0; i < k; i++) {
		most = fmax(most, sorted[i].value * (double)(k - i));
		q[sorted[i].at] = fmin(1, most);
	}
	free(sorted);
	return 0;
}

int compare__correct(const double *p, double *q, size_t count)
{
	double least = 1;
	size_t i, k;
	struct ranked *sorted = sort_known(p, q, count, &k);

	if (sorted == NULL)
		return -ENOMEM;
	for (i = k; i-- > 0;) {
		double value = sorted[i].value * (double)k / (double)(i + 1);

		least = value < least ? value : least;
		q[sorted[i].at] = least;
	}
	free(sorted);
	return 0;
}

/* --- differences --- */

struct compare_estimate compare__of_blocks(const double *sums, const double *weights, size_t count)
{
	struct compare_estimate e = {NAN, NAN, 0};
	double sum = 0, weight = 0, mean = 0, squares = 0;
	size_t i, n = 0;

	for (i = 0; i < count; i++) {
		sum += sums[i];
		weight += weights[i];
	}
	if (!(weight > 0))
		return e;
	e.value = sum / weight;
	for (i = 0; i < count; i++) {
		double rest = weight - weights[i], without, delta;

		if (!(rest > 0))
			return e;
		without = (sum - sums[i]) / rest;
		delta = without - mean;
		mean += delta / (double)++n;
		squares += delta * (without - mean);
	}
	if (n < 2)
		return e;
	e.error = sqrt(squares * (double)(n - 1) / (double)n);
	e.df = (double)(n - 1);
	return e;
}

struct compare_estimate compare__of_runs(const double *values, size_t count, bool is_count)
{
	struct compare_estimate e = {NAN, NAN, 0};
	double mean = 0, squares = 0;
	size_t i, n = 0;

	for (i = 0; i < count; i++) {
		double delta = values[i] - mean;

		if (isnan(values[i]))
			return e;
		mean += delta / (double)++n;
		squares += delta * (values[i] - mean);
	}
	if (n == 0)
		return e;
	e.value = mean;
	if (n < 2)
		return e;
	/* The variance of rounding to whole numbers is 1/12 (Sheppard). */
	e.error = sqrt((squares / (double)(n - 1) + (is_count ? 1.0 / 12 : 0)) / (double)n);
	e.df = (double)(n - 1);
	return e;
}

/* Degrees of freedom of a sum of two variances (Welch and Satterthwaite). */
static double joint_df(double va, double df_a, double vb, double df_b)
{
	double below = va * va / df_a + vb * vb / df_b;

	return below > 0 ? (va + vb) * (va + vb) / below : df_a + df_b;
}

/*
 * Bounds of b / a (Fieller, J. R. Stat. Soc. B 16 (1954), 175-185): all ratios r for which b - r *
 * a does not differ from 0. So they exclude 1 exactly where the test says that a and b differ.
 */
static void set_bounds(const struct compare_estimate *a, const struct compare_estimate *b, double t,
		       struct compare_change *c)
{
	double va = a->error * a->error, vb = b->error * b->error;
	double square = a->value * a->value - t * t * va, both = a->value * b->value, root;

	/* If a may be 0, any ratio is possible. */
	if (!(square > 0))
		return;
	root = both * both - square * (b->value * b->value - t * t * vb);
	root = root > 0 ? sqrt(root) : 0;
	c->low = (both - root) / square - 1;
	c->high = (both + root) / square - 1;
	/* What is not negative can't fall by more than all. */
	if (b->value >= 0 && c->low < -1)
		c->low = -1;
}

struct compare_change compare__change(const struct compare_estimate *a,
				      const struct compare_estimate *b)
{
	struct compare_change c = {NAN, NAN, NAN, NAN};
	double va = a->error * a->error, vb = b->error * b->error, df;

	if (isnan(a->value) || isnan(b->value))
		return c;
	if (a->value > 0)
		c.change = b->value / a->value - 1;
	if (isnan(va) || isnan(vb) || !(a->df > 0) || !(b->df > 0))
		return c;
	df = joint_df(va, a->df, vb, b->df);
	if (va + vb > 0)
		c.p = pem_student__p((b->value - a->value) / sqrt(va + vb), df);
	else
		c.p = b->value < a->value || b->value > a->value ? 0 : 1;
	if (a->value > 0)
		set_bounds(a, b, pem_student__quantile(0.05, df), &c);
	return c;
}
