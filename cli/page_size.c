// SPDX-License-Identifier: MIT
/* page_size.c - pem page-size: runs the agent's program, which lies beside this one */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "/pem-page-size"

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	char path[PATH_MAX];
	int rc = cli_program_folder(path, sizeof(path) - sizeof(PROGRAM));

	(void)verb;
	(void)argc;
	if (rc < 0)
		return cli_error(CLI_FAILED, "cannot find this program's folder: %s",
				 strerror(-rc));
	strcat(path, PROGRAM);
	execv(path, argv);
	if (errno == ENOENT)
		return cli_error(CLI_NOT_HERE,
				 "there is no %s: it is built if SQLite and libelf are installed",
				 path);
	return cli_error(CLI_FAILED, "cannot run %s: %s", path, strerror(errno));
}

/* Its options and its help are the program's. */
const struct cli_verb cli_page_size = {
	.name = "page-size",
	.summary = "give a program's hottest memory large pages, and prove that it pays",
	.run = run,
};
