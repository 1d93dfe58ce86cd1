// SPDX-License-Identifier: MIT
/* grants.c - the budget, free memory, and limits of control groups */
#include "grants.h"

#include "account.h"
#include "lock.h"
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A 16th of what there is stays free: of memory, and of a control group's limit. */
#define KEPT_SHARE 16u
/* After so many bytes free memory and limits are asked again. */
#define ASK_AGAIN (16u << 20)
#define DEPTH_MAX 16u /* of control groups whose limits are read */

static struct {
	struct lock lock;
	uint64_t budget;
	struct account account;
	uint64_t granted;
	uint64_t supply, limit; /* what is left of the last answers */
	uint64_t fresh; /* bytes until they are asked again */
	/* What is read of control groups: a thread's stack may be small. */
	char groups[4096], group[1024], path[1200];
} grants;

void grants__init(uint64_t budget, const char *path)
{
	grants.budget = budget;
	snprintf(grants.account.path, sizeof(grants.account.path), "%s.account", path);
}

static ssize_t read_file(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
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

bool grants__read_number(const char *path, const char *word, uint64_t *number)
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

static uint64_t free_memory(void)
{
	uint64_t available, all;

	if (!grants__read_number("/proc/meminfo", "MemAvailable:", &available) ||
	    !grants__read_number("/proc/meminfo", "MemTotal:", &all))
		return 0;
	return available > all / KEPT_SHARE ? (available - all / KEPT_SHARE) * 1024 : 0;
}

/* What one control group leaves, grants.group; UINT64_MAX: it has no limit. */
static uint64_t group_left(const char *root, const char *limit_name, const char *used_name)
{
	char *path = grants.path;
	uint64_t limit, used;

	snprintf(path, sizeof(grants.path), "%s%s/%s", root, grants.group, limit_name);
	if (!grants__read_number(path, "", &limit))
		return UINT64_MAX; /* "max", or no such file: the first group has none */
	snprintf(path, sizeof(grants.path), "%s%s/%s", root, grants.group, used_name);
	if (!grants__read_number(path, "", &used))
		return UINT64_MAX;
	limit -= limit / KEPT_SHARE;
	return used < limit ? limit - used : 0;
}

/* The least that grants.group, and those above it, leave. It is changed. */
static uint64_t groups_left(const char *root, const char *limit_name, const char *used_name)
{
	uint64_t least = UINT64_MAX, left;
	unsigned depth;
	char *slash;

	for (depth = 0; depth < DEPTH_MAX; depth++) {
		left = group_left(root, limit_name, used_name);
		if (left < least)
			least = left;
		slash = strrchr(grants.group, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return least;
}

static uint64_t limit_left(void)
{
	char *line, *next, *path;
	uint64_t least = UINT64_MAX, left;

	if (read_file("/proc/self/cgroup", grants.groups, sizeof(grants.groups)) < 0)
		return UINT64_MAX;
	for (line = grants.groups; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		path = strchr(line, '/');
		if (!path || strlen(path) >= sizeof(grants.group))
			continue;
		strcpy(grants.group, path);
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

static void ask_again(uint64_t bytes)
{
	int state;

	if (bytes <= grants.fresh && bytes <= grants.supply && bytes <= grants.limit)
		return;
	state = lock__begin_files();
	grants.supply = free_memory();
	grants.limit = limit_left();
	grants.fresh = bytes > ASK_AGAIN ? bytes : ASK_AGAIN;
	lock__end_files(state);
}

static void keep_within(uint64_t *bytes, uint64_t most, uint64_t unit, const char *word,
			const char **reason)
{
	if (*bytes > most) {
		*bytes = most / unit * unit;
		*reason = word;
	}
}

uint64_t grants__ask(uint64_t bytes, uint64_t unit, const char **reason)
{
	uint64_t asked;
	int64_t got = 0;

	if (apply__confined || !lock__take(&grants.lock)) {
		*reason = apply__confined ? "seccomp" : "signal";
		return 0;
	}
	keep_within(&bytes, grants.budget, unit, "budget", reason);
	if (bytes)
		ask_again(bytes);
	keep_within(&bytes, grants.supply, unit, "supply", reason);
	keep_within(&bytes, grants.limit, unit, "limit of the control group", reason);
	asked = bytes;
	if (bytes)
		got = account__change(&grants.account, (int64_t)bytes, unit, grants.budget);
	bytes = got > 0 ? (uint64_t)got : 0;
	if (bytes < asked)
		*reason = got < 0 ? "account" : "budget";
	grants.granted += bytes;
	grants.supply -= bytes;
	if (grants.limit != UINT64_MAX)
		grants.limit -= bytes;
	grants.fresh -= bytes < grants.fresh ? bytes : grants.fresh;
	lock__release(&grants.lock);
	return bytes;
}

void grants__give_back(uint64_t bytes)
{
	/* Whoever can't say so is counted with too many. */
	if (apply__confined || !lock__take(&grants.lock))
		return;
	account__change(&grants.account, -(int64_t)bytes, 1, grants.budget);
	grants.granted -= bytes;
	lock__release(&grants.lock);
}

void grants__before_fork(void)
{
	lock__before_fork(&grants.lock);
	if (grants.account.self.own && !apply__confined) {
		account__share(&grants.account);
		account__change(&grants.account, 0, 1, grants.budget);
	}
}

void grants__after_fork(bool is_child)
{
	if (is_child) {
		grants.granted = 0;
		account__fork(&grants.account);
		if (grants.account.self.inherited && !apply__confined)
			account__change(&grants.account, 0, 1, grants.budget);
	}
	lock__after_fork(&grants.lock, is_child);
}
