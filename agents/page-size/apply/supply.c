// SPDX-License-Identifier: MIT
/* supply.c - free memory, limits of control groups, and who lives to have some of it */
#include "supply.h"

#include "files.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* A 16th of what there is stays free: of memory, and of a control group's limit. */
#define KEPT_SHARE 16u
/* More than any machine has: version 1 of control groups writes "no limit" as such a number. */
#define LIMIT_MAX (UINT64_C(1) << 60)
#define DEPTH_MAX 16u /* of control groups whose limits are read */

/* What is read of control groups: a thread's stack may be small. */
static struct {
	char groups[4096], group[1024], path[1200];
	char limited[1200]; /* the folder of the topmost group with a limit */
} reading;

static ssize_t read_file(const char *path, char *text, size_t bytes)
{
	int fd = files__open(path, O_RDONLY, 0);
	size_t length = 0;
	ssize_t got;

	if (fd < 0)
		return -1;
	do {
		got = read(fd, text + length, bytes - 1 - length);
		if (got > 0)
			length += (size_t)got;
	} while (got > 0 && length < bytes - 1);
	close(fd);
	text[length] = '\0';
	return got < 0 ? -1 : (ssize_t)length;
}

bool supply__read_number(const char *path, const char *word, uint64_t *number)
{
	char text[512], *at = text, *end;

	if (read_file(path, text, sizeof(text)) < 0)
		return false;
	while (at && strncmp(at, word, strlen(word))) {
		at = strchr(at, '\n');
		if (at)
			at++;
	}
	if (!at)
		return false;
	at += strlen(word);
	*number = strtoull(at, &end, 10);
	return end > at;
}

uint64_t supply__memory(void)
{
	uint64_t available, all;

	if (!supply__read_number("/proc/meminfo", "MemAvailable:", &available) ||
	    !supply__read_number("/proc/meminfo", "MemTotal:", &all))
		return 0;
	return available > all / KEPT_SHARE ? (available - all / KEPT_SHARE) * 1024 : 0;
}

/* A number in a file of reading.group; UINT64_MAX: "max", or no such file: the first group has
 * none. */
static uint64_t group_number(const char *root, const char *name)
{
	uint64_t number;

	snprintf(reading.path, sizeof(reading.path), "%s%s/%s", root, reading.group, name);
	return supply__read_number(reading.path, "", &number) ? number : UINT64_MAX;
}

/* What one control group leaves, reading.group; UINT64_MAX: it has no limit. */
static uint64_t group_left(const char *root, const char *limit_name, const char *used_name)
{
	uint64_t limit = group_number(root, limit_name), used = group_number(root, used_name);
	uint64_t high = group_number(root, "memory.high");

	if (high < limit)
		limit = high;
	if (limit > LIMIT_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	limit -= limit / KEPT_SHARE;
	return used < limit ? limit - used : 0;
}

/* The least that reading.group, and those above it, leave. It is changed. */
static uint64_t groups_left(const char *root, const char *limit_name, const char *used_name)
{
	uint64_t least = UINT64_MAX, left;
	unsigned depth;
	char *slash;

	for (depth = 0; depth < DEPTH_MAX; depth++) {
		left = group_left(root, limit_name, used_name);
		if (left != UINT64_MAX)
			snprintf(reading.limited, sizeof(reading.limited), "%s%s/", root,
				 reading.group);
		if (left < least)
			least = left;
		slash = strrchr(reading.group, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return least;
}

uint64_t supply__limit(void)
{
	char *line, *next, *path;
	uint64_t least = UINT64_MAX, left;

	if (read_file("/proc/self/cgroup", reading.groups, sizeof(reading.groups)) < 0)
		return UINT64_MAX;
	for (line = reading.groups; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		path = strchr(line, '/');
		if (!path || strlen(path) >= sizeof(reading.group))
			continue;
		strcpy(reading.group, path);
		left = UINT64_MAX;
		if (!strncmp(line, "0::", 3))
			left = groups_left("/sys/fs/cgroup", "memory.max", "memory.current");
		else if (strstr(line, ":memory:"))
			left = groups_left("/sys/fs/cgroup/memory", "memory.limit_in_bytes",
					   "memory.usage_in_bytes");
		if (left < least)
			least = left;
	}
	return least;
}

int supply__begin_turn(void)
{
	int fd = files__open(reading.limited, O_RDONLY | O_DIRECTORY, 0);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

uint64_t supply__started(uint32_t pid)
{
	char path[40], text[1024], *at;
	ssize_t got;
	int fd, field;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = files__open(path, O_RDONLY, 0);
	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	at = strrchr(text, ')'); /* the name before it may hold anything */
	/* Field 3 comes next. A dead process that nobody has waited for has no memory. */
	if (!at || !at[1] || at[2] == 'Z' || at[2] == 'X')
		return 0;
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoul(at + 1, NULL, 10) : 0;
}
