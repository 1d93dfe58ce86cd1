/* SPDX-License-Identifier: MIT */
/*
 * program.h - pem explore, in parts
 *
 *	main.c		which verb, and its options
 *	replay.c	replay: a policy on a space that was measured before
 *
 * Functions that return an int return an exit status (enum cli_status) after printing a sentence,
 * where nothing else is said.
 */
#ifndef EXPLORE_PROGRAM_H
#define EXPLORE_PROGRAM_H

#include "cli.h"

/* What was asked for. */
struct explore_request {
	const char *policy; /* name or file */
	uint32_t budget; /* trials; 0: the verb's own */
	uint32_t seeds;
	uint32_t runs; /* of each configuration */
	uint32_t race_runs; /* see policy/search.h */
	double noise_share, noise_most; /* of runs that are slower, and by how much */
	bool maximize;
	bool json;
	char **words; /* after the options; ended by NULL */
};

int explore_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

int explore_replay(const struct explore_request *request);

#endif
