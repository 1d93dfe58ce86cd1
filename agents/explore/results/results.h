/* SPDX-License-Identifier: MIT */
/*
 * results.h - what an exploration found: its trials, which parameters matter, where it collapses
 *
 *	effects.c	which parameter matters: shares of the variance, means by level, intervals
 *	curves.c	from which level on a metric stops improving or gets worse
 *	front.c		the trials that no other trial beats in all metrics
 *	report.c	the results as text and as JSON
 *	page.c		the results as an HTML page (page/)
 *
 * Not here: where trials come from; the caller fills struct explore_results.
 */
#ifndef EXPLORE_RESULTS_H
#define EXPLORE_RESULTS_H

#include <pem/explore.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct explore_metric {
	char *name, *unit; /* unit: "" if it has none */
	bool greater_is_better;
};

/* A configuration that was tried. Texts are not NULL, and may hold any bytes. */
struct explore_result {
	uint32_t number; /* of the trial, from 1 */
	const uint32_t *levels; /* parameter_count */
	uint32_t outcome; /* enum pem_explore_outcome */
	uint32_t runs;
	/*
	 * Mean of each metric, in its unit: of some, greater may be better. NAN: it never came.
	 * NULL if it failed or was refused.
	 */
	const double *values;
	const double *errors; /* standard error of each; 0: unknown. NULL: all are unknown */
	double seconds; /* that its runs took */
	const char *reason; /* why it was refused or failed; "" */
	const char *machine; /* where it ran; "" */
	const char *left; /* processes and files that it left; "" */
};

struct explore_results {
	const char *name; /* of the experiment */
	const struct pem_explore_space *space;
	const struct explore_metric *metrics; /* the first one is optimized */
	size_t metric_count; /* at least 1 */
	const struct explore_result *trials; /* in the order in which they were made */
	size_t count;
	/*
	 * Index of the trial that is called the best. At least count: the one whose first
	 * metric is the best of all that were measured.
	 */
	size_t best;
	/*
	 * Index of the trial that the best one is compared with, such as the defaults. At least
	 * count: the median of all trials that were measured.
	 */
	size_t reference;
};

/*
 * Print the results to out: the best configuration, which parameter matters, where it collapses,
 * the Pareto front, and what was refused. json: as one object with all trials. Takes up to some
 * seconds. Returns an exit status (enum cli_status), after a sentence where it is not 0.
 */
int explore_results__print(const struct explore_results *results, bool json, FILE *out);

/* Write the same as a page to a file that must not exist. Returns as explore_results__print. */
int explore_results__page(const struct explore_results *results, const char *path);

#endif
