// SPDX-License-Identifier: MIT
/* folder.c - makes folders for traces without a given name: PREFIX-COMMAND-N */
#include "cli.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDERS_MOST 99999u

int cli_folder__make(const char *prefix, const char *command, char *path, size_t bytes)
{
	const char *slash = strrchr(command, '/');
	char name[64];
	unsigned int n;
	char *p;

	snprintf(name, sizeof(name), "%.60s", slash != NULL ? slash + 1 : command);
	for (p = name; *p != '\0'; p++)
		if (strchr(" \t\n'\"\\$*?[]&;|<>()", *p) != NULL || (unsigned char)*p < 0x20)
			*p = '_';
	for (n = 1; n <= FOLDERS_MOST; n++) {
		snprintf(path, bytes, "%s-%s-%u", prefix, name, n);
		if (mkdir(path, 0777) == 0)
			return CLI_DONE;
		if (errno != EEXIST)
			return cli_error(cli_status_of_errno(errno),
					 "cannot make %s in the current folder: %s; -o DIR puts "
					 "the trace elsewhere",
					 path, strerror(errno));
	}
	return cli_error(CLI_WRONG_INPUT,
			 "there are 99,999 traces named %s-%s-N here: remove some or name a folder "
			 "with -o",
			 prefix, name);
}

void cli_folder__given(const char *given, char *path, size_t bytes)
{
	char *real = NULL;
	struct stat st;

	if (lstat(given, &st) == 0 && S_ISLNK(st.st_mode))
		real = realpath(given, NULL);
	snprintf(path, bytes, "%s", real != NULL ? real : given);
	free(real);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void cli_folder__remove(const char *path)
{
	nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
