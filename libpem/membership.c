/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * membership.c - which of a session's contexts a process is in
 */
#include "membership.h"
#include "util.h"

#include <pem/pem.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Ancestors that are tested, at most: a /proc that goes in circles must not hold the search up. */
#define GENERATIONS_MAX 64

/* Read the first bytes of a file of /proc into text, NUL-terminated. Returns their number, or 0. */
static size_t read_proc(uint32_t pid, const char *name, char *text, size_t bytes)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, bytes - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

uint32_t pem_parent_of(uint32_t pid)
{
	char text[256], *c;

	if (!read_proc(pid, "stat", text, sizeof(text)))
		return 0;
	c = strrchr(text, ')'); /* the name before it may contain any character */
	return c && strlen(c) > 4 ? (uint32_t)strtoul(c + 4, NULL, 10) : 0;
}

static bool is_process(const struct pem_session_context *c, uint32_t pid)
{
	int i;

	if (c->pid == 0)
		return true;
	if (c->pid_namespace && c->pid_namespace != pem_pid_namespace())
		return false;
	if (c->pid == pid || !(c->flags & PEM_CONTEXT_FOLLOW))
		return c->pid == pid;
	for (i = 0; pid && i < GENERATIONS_MAX; i++) {
		pid = pem_parent_of(pid);
		if (pid == c->pid)
			return true;
	}
	return false;
}

static bool has_name(const struct pem_session_context *c, uint32_t pid)
{
	char name[PEM_NAME_BYTES + 1] = "";
	size_t n;

	if (!c->program[0])
		return true;
	n = read_proc(pid, "comm", name, sizeof(name));
	if (n && name[n - 1] == '\n')
		name[n - 1] = 0;
	return !strncmp(name, c->program, sizeof(c->program) - 1);
}

/* --- control groups --- */

/* Where version 2 groups are mounted: alone, or beside those of version 1. */
static const char *const group_roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
#define ROOT_BYTES sizeof("/sys/fs/cgroup/unified")

/*
 * Return a version 2 group's id, which is its folder's inode number; 0: there is none, or it is no
 * such group.
 */
static uint64_t group_id(const char *path)
{
	struct statfs fs;
	struct stat st;

	if (statfs(path, &fs) || (uint64_t)fs.f_type != CGROUP2_SUPER_MAGIC || stat(path, &st) ||
	    !S_ISDIR(st.st_mode))
		return 0;
	return (uint64_t)st.st_ino;
}

int pem_cgroup_id(const char *path, uint64_t *found)
{
	char whole[PATH_MAX];
	uint64_t id = 0;
	size_t i;

	if (!path || !found)
		return -EINVAL;
	errno = 0;
	for (i = 0; !id && i < PEM_ARRAY_SIZE(group_roots); i++) {
		if (snprintf(whole, sizeof(whole), "%s%s%s", *path == '/' ? "" : group_roots[i],
			     *path == '/' ? "" : "/", path) >= (int)sizeof(whole))
			return -ENAMETOOLONG;
		id = group_id(whole);
	}
	if (!id)
		return errno ? -errno : -EINVAL;
	*found = id;
	return 0;
}

/*
 * Return whether the group of a path has this id, or one of its parents has. The shortest parent
 * tested has a path of length bytes. The path is the same again afterwards.
 */
static bool is_below(char *path, size_t length, uint64_t id)
{
	char *end, cut;
	bool found;

	for (end = path + strlen(path);; end--) {
		if (*end && *end != '/')
			continue;
		cut = *end;
		*end = 0;
		found = group_id(path) == id;
		*end = cut;
		if (found || end <= path + length)
			return found;
	}
}

/*
 * Return whether the process is in the group or below. The process's own group is in the line
 * '0::PATH' of /proc/PID/cgroup, as seen from this process's cgroup namespace. PATH's parent
 * folders are the parent groups. There is only one buffer, because this also runs on small stacks.
 */
static bool is_in_group(const struct pem_session_context *c, uint32_t pid)
{
	char text[ROOT_BYTES + 4096], *lines = text + ROOT_BYTES, *group;
	size_t length, i;

	if (!c->cgroup)
		return true;
	if (!read_proc(pid, "cgroup", lines, sizeof(text) - ROOT_BYTES))
		return false;
	group = strncmp(lines, "0::", 3) ? strstr(lines, "\n0::") : lines;
	if (!group)
		return false;
	group = strchr(group, '/');
	if (!group)
		return false;
	group[strcspn(group, "\n")] = 0;
	for (i = 0; i < PEM_ARRAY_SIZE(group_roots); i++) {
		length = strlen(group_roots[i]);
		memcpy(group - length, group_roots[i], length); /* there is room in front of it */
		if (is_below(group - length, length, c->cgroup))
			return true;
	}
	return false;
}

/* --- namespaces --- */

static bool is_in_namespace(const struct pem_session_context *c, uint32_t pid)
{
	static const char *const kinds[] = {
		"pid", "mnt", "net", "user", "uts", "ipc", "time", "cgroup", "pid_for_children"};
	char path[64];
	struct stat st;
	size_t i;

	for (i = 0; c->in_namespace && i < PEM_ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), "/proc/%u/ns/%s", pid, kinds[i]);
		if (!stat(path, &st) && (uint32_t)st.st_ino == c->in_namespace)
			return true;
	}
	return !c->in_namespace;
}

bool pem_context__holds(const struct pem_session_context *context, uint32_t pid)
{
	/*
	 * Shared memory, loaded once: volatile makes sure that the value tested is the value
	 * loaded.
	 */
	const struct pem_session_context c = *(const volatile struct pem_session_context *)context;

	return is_process(&c, pid) && has_name(&c, pid) && is_in_group(&c, pid) &&
	       is_in_namespace(&c, pid);
}

uint64_t pem_contexts__holding(const struct pem_session_page *page, uint32_t count, uint32_t pid,
			       uint64_t known)
{
	uint64_t holding = known | 1;
	uint32_t i;

	for (i = 1; i < count && i < PEM_CONTEXTS_MAX; i++) {
		if (!(known >> i & 1) && pem_context__holds(&page->contexts[i], pid))
			holding |= 1ull << i;
	}
	return holding;
}
