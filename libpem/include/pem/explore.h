/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * explore.h - policies of pem explore: which configuration is tried next, and when to stop
 *
 * An exploration runs a program again and again, each time with another configuration, and a policy
 * steers it. The explorer asks the policy in this order:
 *
 *	begin
 *	process_trial ...		trials that an earlier exploration made, if there are any
 *	until is_done:
 *		next_config		a configuration to try
 *		process_record, stop_run ...	while it runs, for each value of its metric
 *		process_trial		what came of it
 *	end
 *
 * A policy is a shared object that defines one symbol, const struct pem_explore_policy
 * pem_explore_policy; 'pem explore --policy ./mine.so' loads it. share/doc/pem/examples/policy.c is
 * the smallest one. Of a file ./NAME.py, it runs a policy in Python (pemapi.explore).
 *
 * All functions of one exploration are called by one thread, and may block.
 *
 * Each parameter has a finite number of levels, so a configuration is one level for each parameter.
 * A range of numbers is given as a list of levels on its scale.
 *
 * Structs begin with their size and are read by the rules of <pem/sized.h>.
 */
#ifndef PEM_EXPLORE_H
#define PEM_EXPLORE_H

#include <pem/sized.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEM_EXPLORE_ABI_VERSION 1u

struct pem_explore_parameter {
	const char *name;
	uint32_t levels; /* number of its values, at least 1 */
	uint32_t is_ordered; /* 1: its values are numbers, in ascending order */
	const char *const *values; /* the text of each level */
	/*
	 * Where each level lies on the parameter's scale, from 0 to 1: of a logarithmic one, equal
	 * ratios are equal distances. NULL: it is not ordered.
	 */
	const double *positions;
};

/* The configurations that can be tried. It does not change, and lives until the policy's end. */
struct pem_explore_space {
	size_t size;
	const struct pem_explore_parameter *parameters;
	uint32_t parameter_count;
	uint32_t reserved; /* 0 */
	/* Number of configurations that are allowed. UINT64_MAX: too many to be counted. */
	uint64_t count;
	/*
	 * Write the levels of a configuration, by its number below count. Works if count is not
	 * UINT64_MAX. levels has parameter_count members, here and below. Does not fail.
	 */
	void (*at)(const struct pem_explore_space *space, uint64_t number, uint32_t *levels);
	/*
	 * Returns 1 if a configuration is allowed, else 0. The level of a parameter that has no
	 * meaning beside the others' becomes 0, so that equal configurations have equal levels. If
	 * trials of several kinds of machines are known, the last parameter is "(machine)":
	 * configurations of level 0 are this machine's and allowed, trials of others have other
	 * levels.
	 */
	int (*allows)(const struct pem_explore_space *space, uint32_t *levels);
	void *arg; /* the explorer's */
};

struct pem_explore_options {
	size_t size;
	uint64_t seed; /* the same seed, space and values lead to the same choices */
	uint32_t budget; /* trials that the exploration may make; 0: no limit */
	uint32_t objectives; /* number of values of a trial, at least 1 */
};

enum pem_explore_outcome {
	PEM_EXPLORE_MEASURED,
	PEM_EXPLORE_FAILED, /* the program crashed, hung, or its metric never came */
	PEM_EXPLORE_REFUSED, /* the program did not take a value as it was given */
	PEM_EXPLORE_STOPPED, /* stop_run ended it: the values are of its records up to then */
};

/* What came of a configuration. */
struct pem_explore_trial {
	size_t size;
	const uint32_t *levels;
	/* One for each objective: the smaller, the better. Not set if it failed or was refused. */
	const double *values;
	uint32_t outcome; /* enum pem_explore_outcome */
	uint32_t runs; /* values are medians of so many runs; of two: their mean */
	double error; /* standard error of values[0]; 0: unknown */
	double seconds; /* that the trial took */
};

/* A value of a metric, while the program runs. */
struct pem_explore_record {
	size_t size;
	uint64_t time_ns; /* since the run began */
	double value; /* the smaller, the better */
	uint32_t objective; /* which one, from 0 */
	uint32_t reserved; /* 0 */
};

struct pem_explore_policy {
	size_t size;
	uint32_t abi_version; /* PEM_EXPLORE_ABI_VERSION */
	uint32_t reserved; /* 0 */
	const char *name; /* what follows --policy */
	const char *summary; /* one line */
	/*
	 * Begin an exploration. space lives until end; options does not. Returns what the other
	 * functions get, or NULL with errno set.
	 */
	void *(*begin)(const struct pem_explore_space *space,
		       const struct pem_explore_options *options);
	/* Write the levels of the next configuration. Returns 1, or 0: none is left; or -errno. */
	int (*next_config)(void *policy, uint32_t *levels);
	/*
	 * Take what came of a configuration, which may be one that the policy never asked for. If
	 * it ran again, it comes again, with all of its runs. Returns 0 or -errno.
	 */
	int (*process_trial)(void *policy, const struct pem_explore_trial *trial);
	/* Take a value of the run that goes on. Returns 0 or -errno. NULL: it needs none. */
	int (*process_record)(void *policy, const struct pem_explore_record *record);
	/* Returns 1 if the run that goes on is not worth its time, else 0. NULL: never. */
	int (*stop_run)(void *policy);
	/* Returns 1 if no further trial is wanted, else 0. NULL: when next_config returns 0. */
	int (*is_done)(void *policy);
	/* Free what begin returned. NULL does nothing. */
	void (*end)(void *policy);
};

#ifdef __cplusplus
}
#endif

#endif
