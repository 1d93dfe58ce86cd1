// SPDX-License-Identifier: MIT
/* temporary.c - a folder for files of one run that other programs open by their paths */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whom the kernel names as owner where a user namespace lacks the real one: of "/", root outside.
 */
#define OVERFLOW_UID 65534u

/* Nobody but root and this user can put another file in place of one in the folder. */
static bool keeps_apart(const char *folder)
{
	struct stat st;

	if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (st.st_mode & S_ISVTX) == 0)
		return false;
	return st.st_uid == 0 || st.st_uid == geteuid() ||
	       (st.st_uid == OVERFLOW_UID &&
		((st.st_mode & S_ISVTX) != 0 || strcmp(folder, "/") == 0));
}

/*
 * Resolve a folder's path, and check it and each folder above it. No newline: it ends a path in the
 * files that programs are given.
 */
static bool is_safe(const char *folder, char path[PATH_MAX])
{
	char above[PATH_MAX];
	char *end;

	if (folder == NULL || *folder != '/' || access(folder, W_OK) < 0 ||
	    realpath(folder, path) == NULL || strchr(path, '\n') != NULL)
		return false;
	strcpy(above, path);
	while ((end = strrchr(above, '/')) != NULL && end[1] != '\0') {
		if (!keeps_apart(above))
			return false;
		end[end == above] = '\0';
	}
	return keeps_apart("/");
}

int cli_temporary__folder(const char *name, char *path, size_t bytes)
{
	const char *const folders[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
	char real[PATH_MAX];
	int length, rc;
	size_t i = 0;

	*path = '\0';
	while (i < sizeof(folders) / sizeof(folders[0]) && !is_safe(folders[i], real))
		i++;
	if (i == sizeof(folders) / sizeof(folders[0]))
		return -EPERM;
	length = snprintf(path, bytes, "%s/%s-XXXXXX", strcmp(real, "/") != 0 ? real : "", name);
	rc = length >= 0 && (size_t)length < bytes ? 0 : -ENAMETOOLONG;
	if (rc == 0 && mkdtemp(path) == NULL)
		rc = -errno;
	if (rc != 0)
		*path = '\0';
	return rc;
}
