/* SPDX-License-Identifier: MIT */
/*
 * stats.h - the arithmetic of comparing: correlation of series that depend on their own past, and
 * differences of runs
 *
 * A value that is not known is NAN. Series are equally spaced. Nothing here knows of traces.
 */
#ifndef PEM_COMPARE_STATS_H
#define PEM_COMPARE_STATS_H

#include <stdbool.h>
#include <stddef.h>

/* --- series --- */

/*
 * A series, prepared for correlation. Its ranks are what is tested, because counts of events have
 * tails that no normal distribution has.
 */
struct compare_sequence {
	size_t count; /* values, known or not */
	size_t known;
	bool is_constant; /* all known values are equal, or there are fewer than 3 */
	double *value;
	double *rank; /* equal values have their mean rank */
	double *memory; /* autocorrelation of the ranks at lag 1 + index */
	size_t memory_count;
};

/* Prepare a series. values are copied. Returns 0 or -ENOMEM. */
int compare_sequence__set(struct compare_sequence *sequence, const double *values, size_t count);
/* Free what compare_sequence__set allocated. */
void compare_sequence__clear(struct compare_sequence *sequence);

struct compare_correlation {
	double r; /* of the values: Pearson */
	double rho; /* of the ranks: Spearman */
	/* How many windows later b follows a. Below 0: earlier. */
	long lag;
	size_t pairs; /* windows in which both values are known */
	double independent; /* so many independent windows would say as much */
	double p; /* corrected for the number of lags; 1 if nothing can be said */
	/* Of the parts of the series that can be judged: how many rise together, how many oppose.
	 */
	unsigned int parts, parts_with, parts_against;
	/*
	 * Of one part with and one against by chance, whatever holds of all: corrected for the
	 * number of parts. 1: there are not both.
	 */
	double p_turns;
};

/* With fewer independent windows nothing is said. */
#define COMPARE_INDEPENDENT_MIN 8.0
/* A correlation is looked for in so many consecutive parts, too. */
#define COMPARE_PARTS 8u

/*
 * Correlate two series of one count. The lag is searched from -lag_max to lag_max; it is 0 unless
 * another one is better by more than the search explains.
 *
 * Pairs of neighbouring windows are alike, so that they are fewer than they seem. Their effective
 * number: Pyper and Peterman, Comparison of methods to account for autocorrelation in correlation
 * analyses of fish data, Can. J. Fish. Aquat. Sci. 55 (1998), 2127-2140, after Bartlett (1946).
 */
void compare__correlate(const struct compare_sequence *a, const struct compare_sequence *b,
			unsigned int lag_max, struct compare_correlation *result);

/*
 * The weakest correlation that so many independent windows show in 4 of 5 cases, if a p of error or
 * less is believed; 1: none.
 */
double compare__detectable(double independent, double error);

/*
 * Replace probabilities p by q: claims whose q is at most 0.05 are wrong in 5 % of cases, however
 * many were tried. NAN: not tried. Benjamini and Hochberg, J. R. Stat. Soc. B 57 (1995), 289-300.
 * Returns 0 or -ENOMEM.
 */
int compare__correct(const double *p, double *q, size_t count);
/*
 * Replace probabilities p by q: of all claims whose q is at most 0.05 not one is wrong in 95 % of
 * cases, also if most of the others are right. NAN and errors as above. Holm, Scand. J. Stat. 6
 * (1979), 65-70.
 */
int compare__correct_each(const double *p, double *q, size_t count);

/* --- differences --- */

/* An estimate of a positive quantity. */
struct compare_estimate {
	double value;
	double error; /* standard error of value; NAN: unknown */
	double df; /* degrees of freedom of error */
};

/*
 * Estimate total(sums) / total(weights) from blocks of one run, with the error that the variation
 * between blocks implies: the jackknife, which leaves out one block at a time (Miller, Biometrika
 * 61 (1974), 1-15). Blocks of weight 0 count as blocks without a value.
 */
struct compare_estimate compare__of_blocks(const double *sums, const double *weights, size_t count);
/*
 * Estimate the mean of several runs. is_count: values are whole numbers, whose rounding is added to
 * the variance, so that runs which happen to be equal are not taken for certain.
 */
struct compare_estimate compare__of_runs(const double *values, size_t count, bool is_count);

struct compare_change {
	double change; /* b / a - 1; NAN: a is 0 */
	double low, high; /* bounds of change with 95 % confidence; NAN: unknown */
	double p; /* of a difference this great by chance; NAN: unknown */
};

/*
 * Compare two estimates: Welch's test, Biometrika 34 (1947), 28-35. The bounds are unknown where a
 * may be 0.
 */
struct compare_change compare__change(const struct compare_estimate *a,
				      const struct compare_estimate *b);

#endif
