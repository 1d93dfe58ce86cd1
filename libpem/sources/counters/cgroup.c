// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cgroup.c - finds the folder of a version 2 control group
 *
 * A group is known by its id, which is the inode number of its folder (pem_cgroup_id). Folders are
 * made by those to whom a part of the tree was given, and there are no links among them.
 */
#include "open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEPTH_MAX 64

/* Search a folder and those below it. Takes fd. Returns the descriptor found, or -ENOENT. */
static int search(int fd, uint64_t id, int depth)
{
	struct dirent *entry;
	struct stat st;
	int below, found = -ENOENT;
	DIR *folder;

	if (fstat(fd, &st) == 0 && (uint64_t)st.st_ino == id)
		return fd;
	folder = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
	if (!folder) {
		close(fd);
		return -ENOENT;
	}
	while (found < 0 && (entry = readdir(folder))) {
		if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") ||
		    !strcmp(entry->d_name, ".."))
			continue;
		below = openat(dirfd(folder), entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			found = search(below, id, depth + 1);
	}
	closedir(folder);
	return found;
}

int cgroup__open(uint64_t id)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;
	size_t i;
	int fd, found = -ENOENT;

	for (i = 0; found < 0 && i < sizeof(roots) / sizeof(roots[0]); i++) {
		fd = open(roots[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (fstatfs(fd, &fs) == 0 && (uint64_t)fs.f_type == CGROUP2_SUPER_MAGIC)
			found = search(fd, id, 0);
		else
			close(fd);
	}
	return found;
}
