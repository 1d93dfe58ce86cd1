// SPDX-License-Identifier: MIT
/* agents.c - pem page-size, explore, rates: run the agent's program, which lies beside this one */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* needs: the libraries without which the program is not built. */
static int run_program(const char *program, const char *needs, char **argv)
{
	char path[PATH_MAX];
	int rc = cli_program_folder(path, sizeof(path) - strlen(program));

	if (rc < 0)
		return cli_error(CLI_FAILED, "cannot find this program's folder: %s",
				 strerror(-rc));
	strcat(path, program);
	execv(path, argv);
	if (errno == ENOENT)
		return cli_error(CLI_NOT_HERE, "there is no %s: it is built if %s are installed",
				 path, needs);
	return cli_error(CLI_FAILED, "cannot run %s: %s", path, strerror(errno));
}

static int run_page_size(const struct cli_verb *verb, int argc, char **argv)
{
	(void)verb;
	(void)argc;
	return run_program("/pem-page-size", "SQLite and libelf", argv);
}

static int run_explore(const struct cli_verb *verb, int argc, char **argv)
{
	(void)verb;
	(void)argc;
	return run_program("/pem-explore", "SQLite, libxml2, OpenBLAS, LAPACKE, NLopt and XGBoost",
			   argv);
}

static int run_rates(const struct cli_verb *verb, int argc, char **argv)
{
	(void)verb;
	(void)argc;
	return run_program("/pem-rates", "json-c", argv);
}

/* Their options and their help are the programs'. */
const struct cli_verb cli_page_size = {
	.name = "page-size",
	.summary = "give a program's hottest memory large pages, and prove that it pays",
	.run = run_page_size,
};

const struct cli_verb cli_explore = {
	.name = "explore",
	.summary = "find out how a program performs as a function of its settings",
	.run = run_explore,
};

const struct cli_verb cli_rates = {
	.name = "rates",
	.summary = "find out what each stage of a running pipeline could do",
	.run = run_rates,
};
