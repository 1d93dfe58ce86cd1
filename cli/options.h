/* SPDX-License-Identifier: MIT */
/*
 * options.h - verbs and their options (options.c); programs of several actions (actions.c)
 *
 * Part of cli.h, which includes it.
 */
#ifndef PEM_CLI_OPTIONS_H
#define PEM_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct cli_option {
	/* The short letter. From 256 on: the option has a long name only. 0 ends a table. */
	int code;
	const char *name;
	/* Name of its argument in the help. NULL: it takes none. */
	const char *argument;
	const char *help;
};

struct cli_verb {
	const char *name;
	const char *summary; /* one line, for the overview */
	const char *usage; /* lines, each printed after "pem " */
	const char *text; /* a paragraph */
	const char *examples; /* lines: command, two spaces, what it does */
	const struct cli_option *options;
	const char *status; /* Exit statuses, where they differ from those of other verbs. */
	/* Options end at the first word that is not an option. */
	bool runs_command;
	int (*run)(const struct cli_verb *verb, int argc, char **argv);
};

extern const struct cli_verb cli_launch, cli_list, cli_record, cli_stat, cli_report, cli_export,
	cli_doctor, cli_mark, cli_gen, cli_spec, cli_snapshot, cli_top, cli_db, cli_page_size,
	cli_explore, cli_rates, cli_diff, cli_lab;

#define CLI_OPTION_BAD '?'
/*
 * Read the next option of argv, where argv[0] is the verb's name. Returns its code with optarg set.
 * Returns -1 if no option is left; optind is then the first word after them. Returns CLI_OPTION_BAD
 * if the option is wrong, after printing a sentence. -h and --help print the help and end the
 * program.
 */
int cli_option__next(const struct cli_verb *verb, int argc, char **argv);
void cli_verb__help(const struct cli_verb *verb, FILE *out);
/* Print what is wrong with the usage and where the help is. Returns CLI_WRONG_INPUT. */
int cli_usage_error(const struct cli_verb *verb, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Find the name most similar to word among count names. NULL: none is similar. */
const char *cli_nearest(const char *word, const char *const *names, size_t count);

/* --- programs that do several things, such as pem explore (actions.c) --- */

struct cli_action {
	const char *name; /* NULL ends a table */
	const char *options; /* letters of those that it takes */
	bool runs_command; /* which follows after "--", with options of its own */
};

/* Where the value of an option goes: one of text, flag, number and take is not NULL. */
struct cli_value {
	int code; /* 0 ends a table */
	const char **text;
	bool *flag; /* becomes true */
	uint32_t *number; /* from 1 to most */
	uint32_t most;
	const char *of; /* what is counted: "trials" */
	/* Take optarg. Returns whether it is fine; if not, after a sentence. */
	bool (*take)(void *arg);
	void *arg;
};

/*
 * Find the action that argv[1] names and store the values of its options; optind is then the first
 * word after them. values has each option of help. Returns the action's index, or -1 after a
 * sentence. --help ends the program.
 */
int cli_actions__read(const struct cli_verb *help, const struct cli_action *actions,
		      const struct cli_value *values, int argc, char **argv);

#endif
