/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tracepoint.c - tracepoints of the running kernel, by tracefs
 *
 * If tracefs is not mounted, it is mounted for this process alone and on no folder. A user who may
 * trace usually may do that. The kernel's types (BTF) describe a tracepoint's fields, too, but not
 * its number, which is needed to attach.
 */
#define _GNU_SOURCE
#include "probes.h"

#include "kernel_types.h"
#include "sources/kernel/base/base.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/mount.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FORMAT_BYTES_MAX (256u << 10)

static pthread_mutex_t folder_lock = PTHREAD_MUTEX_INITIALIZER;
static int folder_fd = -1; /* events folder of tracefs; -1: not open */

__attribute__((destructor)) static void forget_folder(void)
{
	if (folder_fd >= 0)
		close(folder_fd);
	folder_fd = -1;
}

/* Open the events folder of a tracefs that no path leads to. Returns -errno on failure. */
static int open_unmounted(void)
{
	int context, mount = -1, fd = -1, rc;

	context = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	if (context < 0)
		return -errno;
	if (!syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	if (mount >= 0)
		fd = openat(mount, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = fd >= 0 ? fd : -errno;
	if (mount >= 0)
		close(mount);
	close(context);
	return rc;
}

/* Open the folder of all tracepoints, and keep it open. Returns -errno with error on failure. */
static int open_folder(struct pem_error *error)
{
	static const char *const paths[] = {"/sys/kernel/tracing/events",
					    "/sys/kernel/debug/tracing/events"};
	int fd = -1, rc;
	size_t i;

	pthread_mutex_lock(&folder_lock);
	for (i = 0; folder_fd < 0 && i < PEM_ARRAY_SIZE(paths); i++)
		folder_fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = folder_fd;
	if (folder_fd < 0) {
		fd = open_unmounted();
		rc = folder_fd = fd >= 0 ? fd : -1;
	}
	pthread_mutex_unlock(&folder_lock);
	if (rc >= 0)
		return rc;
	return pem_error__set(
		error, fd,
		"tracepoints outside the catalogue are described by tracefs, which is "
		"not mounted where this user can read it (%s): run as root, or mount "
		"-t tracefs -o gid=GROUP,mode=750 none /sys/kernel/tracing, GROUP being one of "
		"this user's",
		strerror(-fd));
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t count)
{
	while (count)
		free(names[--count]);
	free(names);
}

/*
 * List the folders in a folder of dir that match the pattern, sorted. Returns how many, or -errno.
 */
static ssize_t list(int dir, const char *path, const char *pattern, struct pem_probe_near *near,
		    char ***result)
{
	int fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
	char **names = NULL, **grown;
	struct dirent *entry;
	size_t count = 0;

	if (!directory)
		return -errno;
	while ((entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
			continue;
		pem_probe_near__offer(near, entry->d_name);
		if (fnmatch(pattern, entry->d_name, FNM_NOESCAPE) != 0)
			continue;
		grown = realloc(names, (count + 1) * sizeof(*names));
		if (grown)
			names = grown;
		if (!grown || !(names[count] = strdup(entry->d_name))) {
			closedir(directory);
			free_names(names, count);
			return -ENOMEM;
		}
		count++;
	}
	closedir(directory);
	if (count)
		qsort(names, count, sizeof(*names), compare);
	*result = names;
	return (ssize_t)count;
}

/* Read a format file. tracefs does not tell its size in advance. Returns 0 or -errno. */
static int read_format(int dir, const char *name, char **result)
{
	char path[512], *text = NULL, *colon;
	size_t bytes = 0;
	FILE *file;
	int fd, rc = 0;

	if (snprintf(path, sizeof(path), "%s/format", name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	colon = strchr(path, ':');
	*colon = '/';
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	file = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!file)
		return -errno;
	if (getdelim(&text, &bytes, '\0', file) < 0)
		rc = ferror(file) ? -EIO : -EINVAL;
	else if (strlen(text) > FORMAT_BYTES_MAX)
		rc = -EINVAL;
	if (rc)
		free(text);
	else
		*result = text;
	fclose(file);
	return rc;
}

static int say_no_format(struct pem_error *error, const char *name, int rc)
{
	switch (rc) {
	case -E2BIG:
		return pem_error__set(error, rc, "the tracepoint %s has more than %u fields", name,
				      PEM_PROBE_FIELDS_MAX);
	case -EINVAL:
		return pem_error__set(error, rc, "the tracepoint %s is not described as expected",
				      name);
	case -EACCES:
	case -EPERM:
		return pem_error__set(
			error, rc,
			"the format of the tracepoint %s can't be read (%s): run as root, or mount "
			"tracefs with -o gid=GROUP, GROUP being one of this user's",
			name, strerror(-rc));
	default:
		return pem_error__set(error, rc,
				      "the format of the tracepoint %s can't be read: %s", name,
				      strerror(-rc));
	}
}

/* Returns 0 with *result, or -errno with error. */
static int describe(int dir, const char *system, const char *event, struct pem_probe **result,
		    struct pem_error *error)
{
	char name[256], *text = NULL;
	struct pem_probe *probe;
	int rc;

	if (snprintf(name, sizeof(name), "%s:%s", system, event) >= (int)sizeof(name))
		return pem_error__set(error, -ENAMETOOLONG,
				      "the tracepoint %s:%s has too long a name", system, event);
	probe = pem_probe__new(PEM_PROBE_TRACEPOINT, name, "OS", system, event);
	rc = probe ? read_format(dir, name, &text) : -ENOMEM;
	if (!rc)
		rc = pem_format__parse(probe, text);
	if (!rc && asprintf(&probe->description, "the kernel's tracepoint %s", name) < 0) {
		probe->description = NULL;
		rc = -ENOMEM;
	}
	free(text);
	if (rc) {
		pem_probe__free(probe);
		return say_no_format(error, name, rc);
	}
	*result = probe;
	return 0;
}

struct search {
	int dir;
	const char *event; /* a pattern */
	bool literal;
	pem_probe_found found;
	void *arg;
	struct pem_error *error;
	struct pem_probe_near near;
	int count;
};

/*
 * Search the events of a system. tracefs lists a few folders there that are not events and have no
 * format file.
 */
static int search_system(struct search *s, const char *system)
{
	struct pem_probe *probe = NULL;
	char **events = NULL;
	ssize_t count, i;
	int rc = 0, one;

	count = list(s->dir, system, s->event, &s->near, &events);
	for (i = 0; i < count && !rc; i++) {
		if (s->count == (int)PEM_PROBES_MAX) {
			rc = pem_error__set(s->error, -E2BIG,
					    "that names more than %u tracepoints: expected fewer, "
					    "such as those of one system, 'sched:*'",
					    PEM_PROBES_MAX);
			break;
		}
		one = describe(s->dir, system, events[i], &probe, s->error);
		if (one) {
			/*
			 * No folder of an event's, or one that can't be understood: a pattern's
			 * others do.
			 */
			if (s->literal || (one != -ENOENT && one != -EINVAL && one != -E2BIG))
				rc = one; /* the error has a sentence already */
			continue;
		}
		s->count++;
		rc = s->found(s->arg, probe);
	}
	if (count >= 0)
		free_names(events, (size_t)count);
	return rc;
}

/* Has the kernel a tracepoint of this name, "system:event", of which it describes types only? */
static bool is_bare(const char *pattern)
{
	struct pem_kernel_btf *btf = pem_kernel_btf__open(PEM_KERNEL_BTF_FOLDER);
	uint32_t proto;
	bool is = btf && pem_kernel_btf__tracepoint(btf, pattern, &proto);

	pem_kernel_btf__close(btf);
	return is;
}

static int say_none(struct search *s, const char *pattern, const char *system, ssize_t systems,
		    struct pem_probe_near *near)
{
	char did_you[160], full[160];
	const char *said;

	if (strpbrk(pattern, "*?[") == NULL && is_bare(pattern))
		return pem_error__set(s->error, -ENOENT,
				      "the tracepoint '%.100s' has no format in "
				      "/sys/kernel/tracing/events, since it is for code in the "
				      "kernel only: of those, pem has what its catalogue names",
				      pattern);
	if (s->near.edits && systems == 1 && strpbrk(system, "*?[") == NULL) {
		snprintf(full, sizeof(full), "%.30s:%.100s", system, s->near.best);
		memcpy(s->near.best, full, sizeof(s->near.best) - 1);
	}
	if (!systems && near->edits) {
		snprintf(full, sizeof(full), "%.30s:%.100s", near->best, s->event);
		memcpy(near->best, full, sizeof(near->best) - 1);
	}
	said = pem_probe_near__say(systems ? &s->near : near, did_you, sizeof(did_you));
	return pem_error__set(s->error, -ENOENT, "this kernel has no tracepoint '%.100s'%s",
			      pattern,
			      *said || systems ? said
					       : "; /sys/kernel/tracing/events has what comes in "
						 "front of the colon");
}

int pem_probe__find_tracepoints(const char *pattern, pem_probe_found found, void *arg,
				struct pem_error *error)
{
	const char *colon = strchr(pattern, ':');
	struct search s = {.found = found, .arg = arg, .error = error, .event = colon + 1};
	struct pem_probe_near near = {.wanted = ""};
	char **systems = NULL, *system;
	ssize_t count, i;
	int rc = 0;

	s.dir = open_folder(error);
	if (s.dir < 0)
		return s.dir;
	system = strndup(pattern, (size_t)(colon - pattern));
	if (!system)
		return pem_error__set(error, -ENOMEM, "out of memory");
	s.literal = !strpbrk(pattern, "*?[");
	s.near.wanted = s.event;
	near.wanted = system;
	count = list(s.dir, ".", system, &near, &systems);
	for (i = 0; i < count && !rc; i++)
		rc = search_system(&s, systems[i]);
	if (!rc && !s.count)
		rc = say_none(&s, pattern, system, count, &near);
	if (count >= 0)
		free_names(systems, (size_t)count);
	free(system);
	return rc ? rc : s.count;
}
