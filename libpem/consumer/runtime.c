/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * runtime.c - keeping the runtime folder clean of what dead processes left there
 */
#include "consumer/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REMOVE_TRIES                                                                               \
	100 /* of 1 ms: a process on its way into the session may make a file between looking and removing */

void pem_runtime__remove(int fd, const char *path)
{
	const struct timespec pause = {0, 1000000};
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned tries;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (tries = 0; tries < REMOVE_TRIES; tries++) {
		rewinddir(directory);
		while ((entry = readdir(directory))) {
			if (entry->d_name[0] != '.')
				unlinkat(dirfd(directory), entry->d_name, 0);
		}
		if (!rmdir(path) || (errno != ENOTEMPTY && errno != EEXIST))
			break;
		nanosleep(&pause, NULL);
	}
	closedir(directory);
}

void pem_runtime__sweep(const char *runtime)
{
	DIR *directory = opendir(runtime);
	char path[PATH_MAX];
	struct dirent *entry;
	struct stat st;
	int pid;

	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		if ((sscanf(entry->d_name, "control-%d-", &pid) != 1 &&
		     sscanf(entry->d_name, "session-%d-", &pid) != 1) ||
		    pid <= 0 || !kill(pid, 0) || errno != ESRCH)
			continue;
		if (entry->d_name[0] == 'c') {
			unlinkat(dirfd(directory), entry->d_name, 0);
		} else if (!fstatat(dirfd(directory), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) &&
			   st.st_mtime + 24 * 3600 < time(NULL)) {
			snprintf(path, sizeof(path), "%s/%s", runtime, entry->d_name);
			pem_runtime__remove(openat(dirfd(directory), entry->d_name,
						   O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW),
					    path);
		}
	}
	closedir(directory);
}
