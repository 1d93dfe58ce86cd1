/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * runtime.c - keeping the runtime folder clean of what dead processes left there
 */
#include "consumer/session.h"
#include "entry.h"
#include "util.h"

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
	100 /* of 1 ms: a process that had found the folder may make a file between looking and removing */

#define MAKING_S 60 /* what somebody makes is complete by then */

static bool is_old(const struct stat *st)
{
	return st->st_mtime + MAKING_S < time(NULL);
}

/* Has it been renamed by somebody who could not remove it? */
static bool is_gone(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot, ".gone");
}

void pem_runtime__remove(int fd, const char *path)
{
	const struct timespec pause = {0, 1000000};
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	char gone[PATH_MAX];
	unsigned tries;

	if (!directory) {
		if (fd >= 0)
			close(fd);
		return;
	}
	/* Under another name: processes on their way into it, which is closed by now, find it no more. */
	if (!is_gone(path) && snprintf(gone, sizeof(gone), "%s.gone", path) < (int)sizeof(gone) &&
	    !rename(path, gone))
		path = gone;
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

/*
 * Is a control file left by a process that died? The number in its name says so only in the pid namespace that it is of; a
 * container's processes may use the same folder. One without a head yet is being made, unless it has long been there.
 */
static bool is_left_control(int directory_fd, const char *name)
{
	const ssize_t bytes = offsetof(struct pem_control_file, reserved0);
	int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct pem_control_file head;
	struct stat st;
	ssize_t got;

	if (fd < 0)
		return false;
	got = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : read(fd, &head, (size_t)bytes);
	close(fd);
	if (got >= 0 && (got < bytes || !head.pid))
		return is_old(&st);
	return got == bytes && head.pid <= INT32_MAX && head.pid_namespace &&
	       head.pid_namespace == pem_pid_namespace() && kill((pid_t)head.pid, 0) &&
	       errno == ESRCH;
}

/*
 * Is there nothing to recover of a dead consumer's session: no log, a finished one, half of the folder removed, or one
 * where nobody ever made a pool?
 */
static bool has_nothing(int directory_fd, const struct stat *folder)
{
	struct pem_session_page head;
	size_t bytes = offsetof(struct pem_session_page, rules);
	int fd = openat(directory_fd, "config", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool none;

	if (fd < 0)
		return errno == ENOENT && is_old(folder);
	none = read(fd, &head, bytes) == (ssize_t)bytes && head.magic == PEM_SESSION_MAGIC &&
	       head.abi_version == PEM_ABI_VERSION && (!head.has_log || !head.pools);
	close(fd);
	return none;
}

/* Its process is dead; in another pid namespace its number says nothing, but its lock does. */
static void sweep_session(const char *runtime, const char *name)
{
	struct stat st;
	char path[PATH_MAX];
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", runtime, name) >= (int)sizeof(path) ||
	    pem_alive__check(path))
		return;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && (st.st_mtime + 24 * 3600 < time(NULL) || has_nothing(fd, &st)))
		pem_runtime__remove(fd, path);
	else
		close(fd);
}

void pem_runtime__sweep(const char *runtime)
{
	DIR *directory = opendir(runtime);
	struct dirent *entry;
	int pid;

	if (!directory)
		return;
	while ((entry = readdir(directory))) {
		if (sscanf(entry->d_name, "session-%d-", &pid) == 1 && pid > 0 && kill(pid, 0) &&
		    errno == ESRCH)
			sweep_session(runtime, entry->d_name);
		else if (sscanf(entry->d_name, "control-%d-", &pid) == 1 &&
			 is_left_control(dirfd(directory), entry->d_name))
			unlinkat(dirfd(directory), entry->d_name, 0);
	}
	closedir(directory);
}
