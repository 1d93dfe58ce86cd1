/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * free_memory.c - what is free for an observed process: in the machine, a file system, its control
 * groups
 *
 * Control groups of version 1 and of version 2: cgroups(7), and cgroup-v1/memory.rst and
 * cgroup-v2.rst of the kernel's documentation.
 */
#include "chunks/free_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FREE_SHARE 8u

/* Read the start of a file as text. False: it can't be read, or is empty. */
static bool read_text(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, bytes - 1);

	if (fd >= 0)
		close(fd);
	text[length < 0 ? 0 : length] = 0;
	return length > 0;
}

bool pem_memory__allows(uint64_t bytes)
{
	static const char name[] = "MemAvailable:";
	char text[1024], *line;

	if (!read_text("/proc/meminfo", text, sizeof(text)))
		return false;
	line = strstr(text, name);
	return line && strtoull(line + strlen(name), NULL, 10) * 1024 / FREE_SHARE >= bytes;
}

bool pem_file_system__allows(int folder_fd, uint64_t bytes)
{
	struct statvfs fs;

	return !fstatvfs(folder_fd, &fs) &&
	       (uint64_t)fs.f_bavail * fs.f_frsize / FREE_SHARE >= bytes;
}

/* --- control groups --- */

/* How the files of a version are called. The third one is a limit of which version 1 has none. */
struct group_files {
	const char *used, *limit, *high;
};

static const struct group_files version_1 = {"memory.usage_in_bytes", "memory.limit_in_bytes",
					     NULL};
static const struct group_files version_2 = {"memory.current", "memory.max", "memory.high"};

/* Does one limit of a group allow it? "max" is none, and so is a file that is not there. */
static bool limit_allows(const char *group, const char *limit_name, const char *used_name,
			 uint64_t bytes)
{
	char path[PATH_MAX + 64], text[32];
	uint64_t limit, used;

	snprintf(path, sizeof(path), "%s/%s", group, limit_name);
	if (!read_text(path, text, sizeof(text)))
		return access(path, F_OK) != 0;
	if (!strncmp(text, "max", 3))
		return true;
	limit = strtoull(text, NULL, 10);
	snprintf(path, sizeof(path), "%s/%s", group, used_name);
	if (!read_text(path, text, sizeof(text)))
		return false;
	used = strtoull(text, NULL, 10);
	return limit > used && (limit - used) / FREE_SHARE >= bytes;
}

/* Do a group and those that it is in, up to the mounted folder, allow so many bytes? */
static bool groups_allow(const char *mounted, const char *group, const struct group_files *files,
			 uint64_t bytes)
{
	char path[PATH_MAX], *slash;
	int length = snprintf(path, sizeof(path), "%s%s", mounted, group);

	/* A group outside this process's cgroup namespace, "/..", is not known. */
	if (length >= (int)sizeof(path) || strstr(group, "/../") ||
	    (strlen(group) >= 3 && !strcmp(group + strlen(group) - 3, "/..")) || access(path, F_OK))
		return false;
	for (;;) {
		if (!limit_allows(path, files->limit, files->used, bytes) ||
		    (files->high && !limit_allows(path, files->high, files->used, bytes)))
			return false;
		slash = strrchr(path, '/');
		if (!slash || slash < path + strlen(mounted))
			return true;
		*slash = 0;
	}
}

/* Is a name one of a list that commas part? */
static bool is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);
	const char *at;

	for (at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
		if (!strncmp(at, name, length) && (!at[length] || at[length] == ','))
			return true;
	}
	return false;
}

/*
 * Find the groups of version 1 that account for memory, and of version 2. A line is
 * "ID:CONTROLLERS:PATH".
 */
static void find_groups(char *text, const char **memory, const char **unified)
{
	char *line, *rest = text, *controllers, *path;

	while ((line = strsep(&rest, "\n"))) {
		controllers = strchr(line, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		controllers++;
		if (is_listed(controllers, "memory"))
			*memory = path;
		else if (!*controllers && !strncmp(line, "0:", 2))
			*unified = path;
	}
}

bool pem_groups__allow(char *text, const char *mounted, uint64_t bytes)
{
	const char *memory = NULL, *unified = NULL;
	char folder[PATH_MAX];

	find_groups(text, &memory, &unified);
	if (memory) {
		snprintf(folder, sizeof(folder), "%s/memory", mounted);
		return groups_allow(folder, memory, &version_1, bytes);
	}
	/* Beside groups of version 1, those of version 2 are mounted in a folder of theirs. */
	snprintf(folder, sizeof(folder), "%s/unified", mounted);
	return unified &&
	       groups_allow(access(folder, F_OK) ? mounted : folder, unified, &version_2, bytes);
}

bool pem_process_groups__allow(uint32_t pid, uint64_t bytes)
{
	char name[64], text[4096];

	snprintf(name, sizeof(name), "/proc/%u/cgroup", pid);
	return read_text(name, text, sizeof(text)) &&
	       pem_groups__allow(text, "/sys/fs/cgroup", bytes);
}
