// SPDX-License-Identifier: MIT
/*
 * run.c - pem run: starts a program so that it can be attached to later
 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>

static const struct cli_option options[] = {
	{'n', "no-libc", NULL,
	 "Do not preload the adapters that show the C library, OpenMP, MPI and SQLite."},
	{0},
};

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct pem_run_options run_options = {.size = sizeof(run_options), .preload_libc = 1};
	struct pem_error error = {{0}};
	char file[PATH_MAX];
	int code, status, rc;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code != 'n')
			return CLI_WRONG_INPUT;
		run_options.preload_libc = 0;
	}
	if (optind == argc)
		return cli_usage_error(verb, "no command to run: put it after --");
	status = cli_command__check(argv[optind], file, sizeof(file));
	if (status != CLI_DONE)
		return status;
	rc = pem_run__exec(argv + optind, &run_options, &error);
	return cli_error(rc == -ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE, "%s", error.text);
}

const struct cli_verb cli_launch = {
	.name = "run",
	.summary = "start a command that can be attached to later",
	.usage = "run [-n] -- COMMAND [ARG...]",
	.text = "Becomes COMMAND, with libpem and its adapters preloaded into it and what it "
		"starts. "
		"Nothing is recorded and nothing else runs: an event that nobody observes costs "
		"less "
		"than a nanosecond. pem record -p, pem stat -p and others attach whenever they "
		"like, "
		"and detach again.",
	.examples = "pem run -- redis-server\n"
		    "                            a server that can be looked into\n"
		    "pem record -p $(pidof redis-server)\n"
		    "                            later, for as long as you like",
	.options = options,
	.status = "The command's own; 127 command not found, 126 not executable; 1 wrong usage.",
	.runs_command = true,
	.run = run,
};
