/* SPDX-License-Identifier: MIT */
/*
 * effects.h - what trials tell of a space: which parameters matter, where a metric collapses
 *
 *	effects.c	which parameter matters: shares of the variance, means by level, intervals
 *	front.c		the Pareto front of several metrics
 *	curves.c	from which level on a metric stops improving or gets worse, in sentences
 *
 * Not here: where trials come from; the caller fills struct explore_results.
 */
#ifndef AGENTS_EFFECTS_H
#define AGENTS_EFFECTS_H

#include <pem/explore.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Half of the 95 % interval of a metric's mean; 0: unknown. */
double explore_result__half(const struct explore_result *result, size_t metric);

struct explore_estimate {
	double value, low, high; /* with the 95 % interval. NAN: unknown */
};

struct explore_results {
	const char *name; /* of the experiment */
	const struct pem_explore_space *space;
	const struct explore_metric *metrics; /* the first one is optimized */
	size_t metric_count; /* at least 1 */
	size_t aims; /* of the metrics, how many have an aim: the first ones. 0: all */
	const struct explore_result *trials; /* in the order in which they were made */
	size_t count;
	/*
	 * Index of the trial that is called the best. At least count: the one whose first
	 * metric is the best of all that were measured.
	 */
	size_t best;
	/*
	 * Index of the trial that the best one is compared with, such as the defaults. At least
	 * count: the median of all configurations.
	 */
	size_t reference;
	/* The gain of the best trial over the reference, as their runs tell it. NULL: by the model.
	 */
	const struct explore_estimate *gain;
	/*
	 * Write the text of each parameter's value in a configuration; NULL: it means nothing
	 * there. NULL: all mean something in each.
	 */
	void (*values)(const struct explore_results *results, const uint32_t *levels,
		       const char **values);
	const void *arg; /* for values */
};

/* A parameter with more levels has groups of neighbouring levels in their place. */
#define EXPLORE_GROUPS_MAX 32u
#define EXPLORE_DRAWS 400u

/* Of a parameter (a and b are equal), or of two beyond the sum of their own effects. */
struct explore_effect {
	uint32_t a, b;
	struct explore_estimate share; /* of the variance over all configurations */
};

enum { EXPLORE_ON_AVERAGE, EXPLORE_AT_BEST };

struct explore_effects {
	const struct explore_results *results;
	const char *unknown; /* why only the best trial is known; "" */
	size_t *measured, measured_count; /* indexes of the trials that have a value */
	size_t best; /* index of a trial; count: there is none */
	bool has_reference; /* and it was measured */
	struct explore_estimate gain; /* of the best trial, as a share of the reference */
	/* A sample of the space, or all; then the best trial, the reference, what is at_best. */
	uint32_t *levels;
	size_t population, count;
	/* Functions that the trials allow: a row of draws values for each configuration. */
	double *values, *means;
	size_t draws;
	double noise; /* its variance by that of the functions */
	/*
	 * Such rows for each group of each parameter, EXPLORE_GROUPS_MAX for each: means over the
	 * population, and where the others are as in the best trial. NULL: it is not allowed.
	 */
	const double **rows[2];
	struct explore_effect *effects; /* the greatest first */
	size_t effect_count;
};

/* Returns 0 or -errno. Free it in either case. */
int explore_effects__find(struct explore_effects *effects, const struct explore_results *results);
void explore_effects__free(struct explore_effects *effects);
/* Is a trial on the Pareto front of the metrics with an aim? With one such metric there is none. */
bool explore_effects__is_on_front(const struct explore_effects *effects, size_t trial);
/* Sort draws, and take them as an estimate. */
struct explore_estimate explore_estimate_of(double *draws, size_t count);
/* How many groups a parameter has, the one of a level, and the first level of one. */
uint32_t explore_groups(const struct pem_explore_parameter *parameter);
uint32_t explore_group_of(const struct pem_explore_parameter *parameter, uint32_t level);
uint32_t explore_level_of(const struct pem_explore_parameter *parameter, uint32_t group);

/*
 * Write a sentence on what a parameter does. Returns whether it has an effect that is not chance,
 * with a sentence of less than size bytes.
 */
bool explore_curve__tell(const struct explore_effects *effects, uint32_t parameter, char *sentence,
			 size_t size);

#endif
