// SPDX-License-Identifier: MIT
/*
 * version.c - is libpem of this program's version
 *
 * A program finds libpem beside it. LD_LIBRARY_PATH, LD_PRELOAD or a folder that has libraries of
 * several installations may lead to another libpem, which brings its own plugins.
 */
#include "cli.h"

#include <limits.h>
#include <string.h>

void cli_version__check(void)
{
	char folder[PATH_MAX];

	if (strcmp(pem_version(), PEM_VERSION) == 0)
		return;
	if (cli_library_folder(folder, sizeof(folder)) < 0)
		strcpy(folder, "an unknown folder");
	cli_say("this program is of version %s, but it has loaded libpem %s from %s; install both "
		"from one release, and look at LD_LIBRARY_PATH and LD_PRELOAD",
		PEM_VERSION, pem_version(), folder);
}
