/* SPDX-License-Identifier: MIT */
/* actions.h - a program of its own that does several things, such as pem explore: which, its
 * options */
#ifndef CLI_ACTIONS_H
#define CLI_ACTIONS_H

#include "cli.h"

struct cli_action {
	const char *name; /* NULL ends a table */
	const char *options; /* letters of those that it takes */
	bool runs_command; /* which follows after "--", with options of its own */
};

/* Where the value of an option goes: one of text, flag, number and take is not NULL. */
struct cli_place {
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
 * Find the action that argv[1] names and put its options in their places; optind is then the first
 * word after them. Each option of help has a place. Returns the action's index, or -1 after a
 * sentence. --help ends the program.
 */
int cli_actions__read(const struct cli_verb *help, const struct cli_action *actions,
		      const struct cli_place *places, int argc, char **argv);

#endif
