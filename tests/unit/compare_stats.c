/* SPDX-License-Identifier: MIT */
/*
 * compare_stats.c - the arithmetic of pem report --correlate and pem diff, by answers that are
 * known
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/compare/stats.h"
#include "student.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 256

static uint64_t seed;

/* Uniform, by splitmix64 (Vigna). */
static double uniform(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

/* Normal, by Box and Muller. */
static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979323846 * uniform());
}

/* A series of which each value keeps so much of the one before. */
static void remember(double *x, size_t n, double keep)
{
	size_t i;

	x[0] = normal();
	for (i = 1; i < n; i++)
		x[i] = keep * x[i - 1] + sqrt(1 - keep * keep) * normal();
}

static struct compare_correlation correlate(const double *x, const double *y, size_t n,
					    unsigned int lag_max)
{
	struct compare_correlation c;
	struct compare_sequence a, b;

	assert_int_equal(compare_sequence__set(&a, x, n), 0);
	assert_int_equal(compare_sequence__set(&b, y, n), 0);
	compare__correlate(&a, &b, lag_max, &c);
	compare_sequence__clear(&a);
	compare_sequence__clear(&b);
	return c;
}

static void near(double value, double wanted, double within)
{
	if (!(fabs(value - wanted) <= within))
		fail_msg("%.9g is not %.9g within %g", value, wanted, within);
}

static void student(void **state)
{
	(void)state;
	/* Closed forms for 1 and 2 degrees of freedom. */
	near(pem_student__p(3, 1), 1 - 2 / 3.14159265358979323846 * atan(3), 1e-12);
	near(pem_student__p(-3, 2), 1 - 3 / sqrt(2 + 9), 1e-12);
	/* Tables: Abramowitz and Stegun 26.10. */
	near(pem_student__p(2.776445, 4), 0.05, 1e-6);
	near(pem_student__p(2.042272, 30), 0.05, 1e-6);
	near(pem_student__p(1.959964, 1e7), 0.05, 1e-6);
	near(pem_student__p(0, 7), 1, 1e-12);
	assert_true(pem_student__p(INFINITY, 7) <= 0);
	near(pem_student__quantile(0.05, 4), 2.776445, 1e-5);
	near(pem_student__quantile(0.001, 2), 31.599055, 1e-4);
	near(pem_student__p(pem_student__quantile(1e-9, 3.5), 3.5), 1e-9, 1e-12);
}

static void ranks_share_their_mean(void **state)
{
	static const double x[] = {5, 1, NAN, 5, 9, INFINITY, 5};
	struct compare_sequence s;

	(void)state;
	assert_int_equal(compare_sequence__set(&s, x, 7), 0);
	assert_int_equal(s.known, 5);
	near(s.rank[1], 0, 0);
	near(s.rank[0], 2, 0);
	near(s.rank[3], 2, 0);
	near(s.rank[6], 2, 0);
	near(s.rank[4], 4, 0);
	assert_true(isnan(s.rank[2]) && isnan(s.rank[5]));
	compare_sequence__clear(&s);
}

/* How often two series that have nothing to do with each other are taken for related, at 5 %. */
static double false_positives(size_t n, double keep, unsigned int lag_max, unsigned int times)
{
	unsigned int i, found = 0;
	double x[N], y[N];

	for (i = 0; i < times; i++) {
		remember(x, n, keep);
		remember(y, n, keep);
		found += correlate(x, y, n, lag_max).p <= 0.05;
	}
	printf("# %zu windows, memory %.2f, lags up to %u: %.1f %% false\n", n, keep, lag_max,
	       100.0 * found / times);
	return (double)found / times;
}

static void unrelated_series_are_found_unrelated(void **state)
{
	(void)state;
	seed = 1;
	near(false_positives(N, 0, 0, 2000), 0.05, 0.015);
	assert_true(false_positives(N, 0, 16, 1000) < 0.065);
	assert_true(false_positives(N, 0.5, 0, 2000) < 0.075);
	assert_true(false_positives(N, 0.9, 0, 2000) < 0.085);
	assert_true(false_positives(N, 0.9, 16, 1000) < 0.085);
	assert_true(false_positives(64, 0.7, 8, 1000) < 0.085);
	assert_true(false_positives(16, 0, 0, 2000) < 0.075);
}

static void memory_leaves_fewer_independent_windows(void **state)
{
	double x[N], y[N], sum = 0;
	int i;

	(void)state;
	seed = 2;
	/* Of series with memory 0.8 both: (1 - 0.64) / (1 + 0.64) of 256. */
	for (i = 0; i < 200; i++) {
		remember(x, N, 0.8);
		remember(y, N, 0.8);
		sum += 1 / correlate(x, y, N, 0).independent;
	}
	near(200 / sum, N * 0.36 / 1.64, 10);
}

static void a_copy_is_found_with_its_lag(void **state)
{
	static const double keeps[] = {0, 0.5, 0.9};
	struct compare_correlation c;
	double x[N + 20], y[N];
	size_t k, i;
	long lag;

	(void)state;
	seed = 3;
	for (k = 0; k < 3; k++)
		for (lag = -5; lag <= 5; lag += 5) {
			remember(x, N + 20, keeps[k]);
			/* y[i] = x[i - lag] of the series that starts at x + 10 */
			for (i = 0; i < N; i++)
				y[i] = -x[(size_t)((long)i + 10 - lag)] + 0.1 * normal();
			c = correlate(x + 10, y, N, 16);
			assert_int_equal(c.lag, lag);
			assert_true(c.p < 1e-6 && c.rho < -0.9 && c.r < -0.9);
		}
	/* Without a search there is no lag. */
	assert_int_equal(correlate(x + 10, y, N, 0).lag, 0);
}

static void known_coefficients(void **state)
{
	/* Spearman sees a curve as rising; Pearson is sums by hand. */
	static const double x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	static const double y[] = {1, 8, 27, 64, 125, 216, 343, 512, 729, 1000};
	struct compare_correlation c = correlate(x, y, 10, 0);

	(void)state;
	near(c.rho, 1, 1e-12);
	near(c.r, 8695.5 / sqrt(82.5 * 1063342.5), 1e-12);
	assert_int_equal(c.pairs, 10);
}

static void little_is_too_little(void **state)
{
	static const double constant[N] = {0};
	double x[N];
	size_t i;

	(void)state;
	seed = 4;
	remember(x, N, 0);
	/* Constant series, and series without values. */
	near(correlate(x, constant, N, 8).p, 1, 0);
	assert_true(isnan(correlate(x, constant, N, 8).rho));
	near(correlate(x, x, 0, 8).p, 1, 0);
	near(correlate(x, x, 5, 0).p, 1, 0);
	/* A line is one single movement, however many windows it has. */
	for (i = 0; i < N; i++)
		x[i] = (double)i;
	assert_true(correlate(x, x, N, 0).independent < COMPARE_INDEPENDENT_MIN);
	near(correlate(x, x, N, 0).p, 1, 0);
	near(compare__detectable(3, 0.05), 1, 0);
	/* 1.9837 is the quantile of Student's distribution with 101 degrees of freedom. */
	near(compare__detectable(103, 0.05), tanh((1.9837310 + 0.841621) / 10), 1e-6);
}

static void missing_values_are_left_out(void **state)
{
	struct compare_correlation c;
	double x[N], y[N];
	size_t i;

	(void)state;
	seed = 5;
	remember(x, N, 0.5);
	for (i = 0; i < N; i++)
		y[i] = i % 3 == 0 ? NAN : x[i];
	c = correlate(x, y, N, 8);
	assert_int_equal(c.pairs, N - (N + 2) / 3);
	assert_int_equal(c.lag, 0);
	near(c.rho, 1, 0.001);
}

static void a_relation_that_turns_is_seen_in_the_parts(void **state)
{
	struct compare_correlation c;
	double x[N], y[N];
	size_t i;

	(void)state;
	seed = 6;
	remember(x, N, 0);
	for (i = 0; i < N; i++)
		y[i] = (i < N / 2 ? x[i] : -x[i]) + 0.2 * normal();
	c = correlate(x, y, N, 0);
	assert_int_equal(c.parts, 8);
	assert_int_equal(c.parts_with, 4);
	assert_int_equal(c.parts_against, 4);
	assert_true(c.p > 0.05);
	assert_true(c.p_turns < 1e-6);
}

static void noise_turns_no_oftener_than_it_is_said_to(void **state)
{
	/* Two parts of eight, each at 5 %, are there in some 7 of 10,000 series of noise. */
	enum { TIMES = 20000, COUNT = 200 };
	unsigned int i, looks = 0, claimed = 0;
	struct compare_correlation c;
	double x[COUNT], y[COUNT];

	(void)state;
	seed = 9;
	for (i = 0; i < TIMES; i++) {
		remember(x, COUNT, 0);
		remember(y, COUNT, 0);
		c = correlate(x, y, COUNT, 0);
		looks += c.parts_with && c.parts_against;
		claimed += c.p_turns <= 0.001;
	}
	assert_true(looks >= 5);
	assert_true(claimed <= TIMES / 1000);
}

static void corrected_for_many_tries(void **state)
{
	/* Benjamini and Hochberg's own example of 15 p-values: four of them hold at 5 %. */
	static const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, NAN,
				   0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0};
	double q[16];
	int i, hold = 0;

	(void)state;
	assert_int_equal(compare__correct(p, q, 16), 0);
	for (i = 0; i < 16; i++)
		hold += q[i] <= 0.05;
	assert_int_equal(hold, 4);
	assert_true(isnan(q[7]));
	near(q[0], 0.0015, 1e-12);
	near(q[3], 0.0095 * 15 / 4, 1e-12);
	near(q[15], 1, 0);
}

static void not_one_of_all_claims_is_wrong(void **state)
{
	/* 20 relations that exist, and 10 by chance, in each of 4,000 reports. */
	enum { REPORTS = 4000, TRUE_ONES = 20, ALL = 30 };
	double p[ALL], q[ALL];
	int i, report, wrong = 0, missed = 0, is_wrong;

	(void)state;
	seed = 8;
	for (report = 0; report < REPORTS; report++) {
		for (i = 0; i < ALL; i++)
			p[i] = i < TRUE_ONES ? 1e-6 : uniform();
		assert_int_equal(compare__correct_each(p, q, ALL), 0);
		for (i = 0, is_wrong = 0; i < TRUE_ONES; i++)
			missed += q[i] > 0.01;
		for (; i < ALL; i++)
			is_wrong |= q[i] <= 0.01;
		wrong += is_wrong;
	}
	assert_int_equal(missed, 0);
	assert_true(wrong <= REPORTS / 50);
}

static void holm(void **state)
{
	/* Multiplied by 4, 3, 2 and 1, and no less than one before. */
	static const double p[] = {0.03, 0.005, NAN, 0.04, 0.01};
	double q[5];

	(void)state;
	assert_int_equal(compare__correct_each(p, q, 5), 0);
	near(q[1], 0.02, 1e-12);
	near(q[4], 0.03, 1e-12);
	near(q[0], 0.06, 1e-12);
	near(q[3], 0.06, 1e-12);
	assert_true(isnan(q[2]));
}

static void estimates(void **state)
{
	static const double runs[] = {10, 12, 14}, equal[] = {7, 7, 7};
	static const double sums[] = {2, 4, 6, 8}, ones[] = {1, 1, 1, 1}, none[] = {0, 0, 0, 0};
	struct compare_estimate e;

	(void)state;
	e = compare__of_runs(runs, 3, false);
	near(e.value, 12, 1e-12);
	near(e.error, 2 / sqrt(3), 1e-12);
	near(e.df, 2, 0);
	assert_true(isnan(compare__of_runs(runs, 1, false).error));
	near(compare__of_runs(equal, 3, false).error, 0, 0);
	near(compare__of_runs(equal, 3, true).error, 1.0 / 6, 1e-12);
	/* With equal weights the jackknife is the standard error of the mean. */
	e = compare__of_blocks(sums, ones, 4);
	near(e.value, 5, 1e-12);
	near(e.error, sqrt(20.0 / 3 / 4), 1e-12);
	assert_true(isnan(compare__of_blocks(sums, none, 4).value));
}

static void changes(void **state)
{
	struct compare_estimate a = {100, 2, 9}, b = {110, 2, 9}, sure = {120, 0, 2},
				zero = {0, 1, 9};
	struct compare_change c = compare__change(&a, &b);

	(void)state;
	near(c.change, 0.1, 1e-12);
	near(c.p, pem_student__p(10 / sqrt(8), 18), 1e-12);
	assert_true(c.low > 0.03 && c.low < 0.1 && c.high > 0.1 && c.high < 0.18);
	c = compare__change(&sure, &sure);
	near(c.p, 1, 0);
	c = compare__change(&zero, &b);
	assert_true(isnan(c.change) && isnan(c.low) && c.p < 0.001);
	a.error = NAN;
	c = compare__change(&a, &b);
	near(c.change, 0.1, 1e-12);
	assert_true(isnan(c.p));
}

/* The bounds exclude no change exactly where the test finds a change, and enclose the estimate. */
static void bounds_agree_with_the_test(void **state)
{
	int i, differ = 0;

	(void)state;
	seed = 8;
	for (i = 0; i < 1000; i++) {
		struct compare_estimate a = {100 + normal(), 20 * uniform(), 2 + 20 * uniform()};
		struct compare_estimate b = {a.value * exp(0.4 * normal()), 20 * uniform(),
					     2 + 20 * uniform()};
		struct compare_change c = compare__change(&a, &b);

		if (isnan(c.low))
			continue;
		differ += c.p < 0.05;
		if ((c.p < 0.05) != (c.low > 0 || c.high < 0))
			fail_msg("p is %g, the bounds are %g to %g", c.p, c.low, c.high);
		assert_true(c.low <= c.change && c.change <= c.high);
	}
	assert_true(differ > 200 && differ < 800);
}

/* How often two runs of the same law are taken for different ones, at 5 %. */
static void equal_runs_are_found_equal(void **state)
{
	struct compare_estimate a, b;
	unsigned int i, found = 0, several = 0;
	double x[64], w[64];

	(void)state;
	seed = 7;
	for (i = 0; i < 64; i++)
		w[i] = 1;
	for (i = 0; i < 2000; i++) {
		struct compare_estimate *e[] = {&a, &b};
		size_t side, k;

		for (side = 0; side < 2; side++) {
			/* Skewed, as durations are */
			for (k = 0; k < 16; k++)
				x[k] = exp(normal());
			*e[side] = compare__of_blocks(x, w, 16);
		}
		found += compare__change(&a, &b).p <= 0.05;
		for (side = 0; side < 2; side++) {
			for (k = 0; k < 3; k++)
				x[k] = 100 + normal();
			*e[side] = compare__of_runs(x, 3, false);
		}
		several += compare__change(&a, &b).p <= 0.05;
	}
	printf("# false: %.1f %% of blocks, %.1f %% of three runs\n", found / 20.0, several / 20.0);
	assert_true(found < 2000 * 0.065);
	assert_true(several < 2000 * 0.065);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(student),
		cmocka_unit_test(ranks_share_their_mean),
		cmocka_unit_test(unrelated_series_are_found_unrelated),
		cmocka_unit_test(memory_leaves_fewer_independent_windows),
		cmocka_unit_test(a_copy_is_found_with_its_lag),
		cmocka_unit_test(known_coefficients),
		cmocka_unit_test(little_is_too_little),
		cmocka_unit_test(missing_values_are_left_out),
		cmocka_unit_test(a_relation_that_turns_is_seen_in_the_parts),
		cmocka_unit_test(noise_turns_no_oftener_than_it_is_said_to),
		cmocka_unit_test(corrected_for_many_tries),
		cmocka_unit_test(not_one_of_all_claims_is_wrong),
		cmocka_unit_test(holm),
		cmocka_unit_test(estimates),
		cmocka_unit_test(changes),
		cmocka_unit_test(bounds_agree_with_the_test),
		cmocka_unit_test(equal_runs_are_found_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
