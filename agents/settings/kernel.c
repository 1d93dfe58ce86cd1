/* SPDX-License-Identifier: MIT */
/* kernel.c - sysctl, and a control group of version 2 for the command */
#include "ways.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Suffixes that the kernel's memparse() takes. */
static const struct settings_unit units[] = {
	{"K", 1024.0}, {"M", 1048576.0}, {"G", 1073741824.0}, {"T", 1099511627776.0}, {NULL, 1},
};

/* A session is the path of a folder, with a slash at its end. */
static int path_of(char path[PATH_MAX], const char *folder, const char *key, bool dots,
		   struct pem_error *error)
{
	char *c;

	if (strstr(key, "..") || *key == '/' || (!dots && strchr(key, '/')))
		return settings_fail(error, -EINVAL, "'%s' is not the name of a setting", key);
	snprintf(path, PATH_MAX, "%s%s", folder, key);
	for (c = path + strlen(folder); dots && !strchr(key, '/') && *c; c++)
		*c = *c == '.' ? '/' : *c;
	return 0;
}

static bool is_sysctl(const void *session)
{
	return !strcmp(session, "/proc/sys/");
}

static int get(void *session, const char *key, char *value, struct pem_error *error)
{
	char path[PATH_MAX], text[SETTINGS_VALUE_BYTES * 2];
	int rc = path_of(path, session, key, is_sysctl(session), error), fd;
	ssize_t bytes;

	if (rc)
		return rc;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bytes = fd < 0 ? -1 : read(fd, text, sizeof(text));
	rc = bytes < 0 ? settings_fail(error, -errno, "%s can't be read: %m", path)
		       : settings_take(value, text, (size_t)bytes, error);
	if (fd >= 0)
		close(fd);
	return rc;
}

static int put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int rc = fd < 0 || write(fd, value, strlen(value)) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int set(void *session, const char *key, const char *value, struct pem_error *error)
{
	char path[PATH_MAX];
	int rc = path_of(path, session, key, is_sysctl(session), error);

	if (!rc)
		rc = put(path, value);
	if (rc == -EINVAL || rc == -ERANGE || rc == -EDOM)
		return settings_fail(error, 1, "the kernel says: %s", strerror(-rc));
	return rc ? settings_fail(error, rc, "%s can't be written: %s", path, strerror(-rc)) : 0;
}

/* White space is alike, numbers may have a suffix, and cpu.max a period that was not given. */
static bool same(void *session, const char *key, const char *given, const char *taken)
{
	double a, b;

	if (!is_sysctl(session) && settings_number(given, units, &a) &&
	    settings_number(taken, units, &b))
		return a == b;
	while (*given && *taken) {
		if (isspace((unsigned char)*given) && isspace((unsigned char)*taken)) {
			given += strspn(given, " \t");
			taken += strspn(taken, " \t");
		} else if (*given++ != *taken++) {
			return false;
		}
	}
	return !*given && (!*taken || (*taken == ' ' && !strcmp(key, "cpu.max")));
}

static int open_sysctl(struct settings_agent *agent, char *in, void **session,
		       struct pem_error *error)
{
	(void)agent;
	(void)error;
	*in = '\0';
	*session = strdup("/proc/sys/");
	return *session ? 0 : -ENOMEM;
}

/* --- control groups --- */

/* The folder of this process's group of version 2. */
static int own_group(char path[PATH_MAX])
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re"),
	     *groups = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX * 2], root[PATH_MAX], mount[PATH_MAX] = "";
	bool found = false;

	while (mounts && !found && fgets(line, sizeof(line), mounts))
		found = strstr(line, " - cgroup2 ") &&
			sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) == 2;
	while (found && groups && fgets(line, sizeof(line), groups)) {
		if (strncmp(line, "0::/", 4))
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(path, PATH_MAX, "%.2000s%.2000s", mount,
			 strcmp(line + 3, "/") ? line + 3 : "");
		found = true;
	}
	if (mounts)
		fclose(mounts);
	if (groups)
		fclose(groups);
	return found ? 0 : -ENOENT;
}

static int open_cgroup(struct settings_agent *agent, char *in, void **session,
		       struct pem_error *error)
{
	char path[PATH_MAX];
	int rc = 0;

	if (!agent->cgroup) {
		if (own_group(path))
			return settings_fail(error, -ENOENT,
					     "there are no control groups of version 2");
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/pem-explore-%d",
			 (int)getpid());
		if (!settings_journal__find(agent, SETTINGS_CGROUP, "", path))
			rc = settings_journal__add(agent, SETTINGS_CGROUP, "", path, NULL, error);
		if (rc)
			return rc;
		if (mkdir(path, 0755) && errno != EEXIST)
			return settings_fail(error, -errno,
					     "the control group %s can't be made: %m", path);
		agent->cgroup = strdup(path);
		if (!agent->cgroup)
			return -ENOMEM;
	}
	snprintf(in, PATH_MAX, "%s", agent->cgroup);
	*session = malloc(strlen(in) + 2);
	if (*session)
		sprintf(*session, "%s/", in);
	return *session ? 0 : -ENOMEM;
}

/* Read a setting, after the controller that has it was switched on for the group. */
static int get_cgroup(void *session, const char *key, char *value, struct pem_error *error)
{
	char path[PATH_MAX], word[64];
	int rc = get(session, key, value, error);

	if (rc != -ENOENT)
		return rc;
	snprintf(path, sizeof(path), "%s../cgroup.subtree_control", (const char *)session);
	snprintf(word, sizeof(word), "+%.*s", (int)strcspn(key, "."), key);
	rc = put(path, word);
	if (rc)
		return settings_fail(error, rc,
				     "the control group of pem can't hand on the controller '%s' "
				     "(%s): start pem in a group whose controllers are delegated",
				     word + 1, strerror(-rc));
	return get(session, key, value, error);
}

static int remove_group(struct settings_agent *agent, const struct settings_change *change,
			struct pem_error *error)
{
	if (!rmdir(change->in) || errno == ENOENT) {
		free(agent->cgroup); /* there is one at most */
		agent->cgroup = NULL;
		return 0;
	}
	return settings_fail(error, -errno, "the control group %s can't be removed: %m",
			     change->in);
}

const struct settings_way_of settings_sysctl = {
	.phase = SETTINGS_BEFORE_START,
	.open = open_sysctl,
	.get = get,
	.set = set,
	.same = same,
	.close = free,
};

const struct settings_way_of settings_cgroup = {
	.phase = SETTINGS_BEFORE_START,
	.open = open_cgroup,
	.get = get_cgroup,
	.set = set,
	.same = same,
	.close = free,
	.restore = remove_group,
};
