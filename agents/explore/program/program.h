/* SPDX-License-Identifier: MIT */
/*
 * program.h - pem explore, in parts
 *
 *	main.c		which verb, and its options
 *	replay.c	replay: a policy on a space that was measured before
 *	init.c		init: an experiment to begin with
 *	check.c		check: what a trial would do, and what it would miss; its commands
 *	run.c		run: trials
 *	best.c		best: the best configuration; reproduce: does its figure hold?
 *	show.c		show: what is known of a space
 *	report.c	results as text, as JSON, as a page (page/)
 *
 * Functions that return an int return an exit status (enum cli_status) after printing a sentence,
 * where nothing else is said.
 */
#ifndef EXPLORE_PROGRAM_H
#define EXPLORE_PROGRAM_H

#include "cli.h"

struct exploration;
/* What was asked for. */
struct explore_request {
	const char *policy; /* name or file; NULL: the experiment's, or the usual one */
	const char *output; /* file to write; NULL: the usual one */
	uint32_t trial; /* number of a trial; 0: none */
	uint32_t budget; /* trials; 0: the verb's own */
	uint32_t seeds;
	uint32_t runs; /* of each configuration */
	uint32_t race_runs; /* see trial/races.h */
	double noise_share, noise_most; /* of runs that are slower, and by how much */
	bool maximize;
	bool json;
	bool apply;
	bool pairs; /* the command may run twice at the same time */
	const char *page; /* file to write; NULL: none */
	char **words; /* after the options; ended by NULL */
	/* What the verb does with an experiment, and whether that changes settings. */
	int (*act)(struct exploration *exploration);
	bool changes;
};

/* For sentences about a wrong usage. */
extern const struct cli_verb explore_help;

/* Verbs. */
int explore_replay(const struct explore_request *request);
int explore_init(const struct explore_request *request);
int explore_show_table(const struct explore_request *request);
int explore_check(struct exploration *exploration);
int explore_run(struct exploration *exploration);
int explore_best(struct exploration *exploration);
int explore_reproduce(struct exploration *exploration);
int explore_show(struct exploration *exploration);

struct trial_experiment;
/*
 * Add the commands of an experiment with a configuration's values to an object, or print them
 * (NULL). A word stands for a run's folder; if a command has it, that is told.
 */
void explore_commands__tell(const struct trial_experiment *experiment, const uint32_t *levels,
			    struct json_object *object);
/* A configuration as JSON, by the texts of its values. Those that are NULL mean nothing in it. */
struct pem_explore_space;
struct json_object *explore_configuration(const struct pem_explore_space *space,
					  const char *const *values);
struct explore_results;
/*
 * Print the results to out: the best configuration, which parameter matters, where it collapses,
 * the Pareto front, and what was refused. json: as one object with all trials. page: write a page
 * to this file, which must not exist, in their place. Takes up to some seconds. Returns an exit
 * status (enum cli_status), after a sentence where it is not 0.
 */
int explore_results__report(const struct explore_results *results, const char *page, bool json,
			    FILE *out);
/* Print the best configuration, as text or as JSON. */
int explore_print_best(struct exploration *exploration);

#endif
