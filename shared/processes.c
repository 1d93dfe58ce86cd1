// SPDX-License-Identifier: MIT
/* processes.c - see processes.h */
#include "processes.h"

#include "grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROCESSES_MAX 1024u /* whose pipes are found */
#define PIPES_MAX 16384u
#define LIMIT_BYTES 1048576u /* of a pipe, if the kernel does not show it */

bool pem_proc__read(pid_t pid, struct pem_proc_stat *stat)
{
	char path[64], text[512], *end;
	unsigned long long began;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		close(fd);
	if (got <= 0)
		return false;
	text[got] = '\0';
	/* A name may have ')' in it. */
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1,
			   " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			   "%*s %*s %llu",
			   &stat->state, &stat->parent, &began) != 3)
		return false;
	*end = '\0';
	stat->pid = pid;
	stat->began_ticks = began;
	snprintf(stat->name, sizeof(stat->name), "%s",
		 strchr(text, '(') ? strchr(text, '(') + 1 : "?");
	return true;
}

void pem_proc__name(pid_t pid, char *name, size_t bytes)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(name, (int)bytes, file))
		*name = '\0';
	name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
}

/* --- pipes --- */

bool pem_proc__is_pipe(pid_t pid, int descriptor, struct pem_proc_pipe *pipe)
{
	char path[64], target[64];
	struct stat status;
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, descriptor);
	bytes = readlink(path, target, sizeof(target) - 1);
	target[bytes > 0 ? bytes : 0] = '\0';
	if (sscanf(target, "pipe:[%" SCNu64 "]", &pipe->inode) != 1 || lstat(path, &status))
		return false;
	pipe->pid = pid;
	pipe->descriptor = descriptor;
	pipe->writes = status.st_mode & S_IWUSR;
	pem_proc__name(pid, pipe->name, sizeof(pipe->name));
	return true;
}

/*
 * The process may put any file there at any time, which opening may change or wait for. So a
 * descriptor by which nothing is opened finds the pipe.
 */
static int open_pipe(const struct pem_proc_pipe *pipe)
{
	struct stat status;
	char path[64];
	int found, fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pipe->pid, pipe->descriptor);
	found = open(path, O_PATH | O_CLOEXEC);
	if (found < 0)
		return -errno;
	fd = -ESTALE;
	if (!fstat(found, &status) && S_ISFIFO(status.st_mode) && status.st_ino == pipe->inode) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
		fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		fd = fd < 0 ? -errno : fd;
	}
	close(found);
	return fd;
}

int pem_proc__pipe_bytes(const struct pem_proc_pipe *pipe, uint32_t wanted, int *set)
{
	int fd = open_pipe(pipe), bytes;

	if (fd < 0)
		return fd;
	bytes = *set = fcntl(fd, F_GETPIPE_SZ);
	if (bytes >= 0 && (uint32_t)bytes < wanted)
		*set = fcntl(fd, F_SETPIPE_SZ, (int)wanted);
	if (*set < 0)
		*set = -errno;
	close(fd);
	return bytes < 0 ? *set : bytes;
}

uint32_t pem_proc__pipe_limit(void)
{
	FILE *file = fopen("/proc/sys/fs/pipe-max-size", "re");
	unsigned bytes = 0;

	if (file && fscanf(file, "%u", &bytes) != 1)
		bytes = 0;
	if (file)
		fclose(file);
	return bytes ? bytes : LIMIT_BYTES;
}

/* --- visits --- */

static void visit_numbers(const char *path, pem_proc_visit *visit, void *arg)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (*entry->d_name >= '0' && *entry->d_name <= '9' &&
		    !visit(atoi(entry->d_name), arg))
			break;
	if (folder)
		closedir(folder);
}

void pem_proc__all(pem_proc_visit *visit, void *arg)
{
	visit_numbers("/proc", visit, arg);
}

void pem_proc__threads(pid_t pid, pem_proc_visit *visit, void *arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	visit_numbers(path, visit, arg);
}

void pem_proc__descriptors(pid_t pid, pem_proc_visit *visit, void *arg)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	visit_numbers(path, visit, arg);
}

/* --- children --- */

struct family {
	pid_t parent;
	pem_proc_visit *visit;
	void *arg;
};

static bool visit_children_of_thread(int tid, void *arg)
{
	const struct family *family = arg;
	bool goes_on = true;
	char path[64];
	FILE *file;
	int child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)family->parent, tid);
	file = fopen(path, "re");
	while (goes_on && file && fscanf(file, "%d", &child) == 1)
		goes_on = family->visit(child, family->arg);
	if (file)
		fclose(file);
	return goes_on;
}

static bool visit_if_child(int pid, void *arg)
{
	const struct family *family = arg;
	struct pem_proc_stat stat;

	return !pem_proc__read(pid, &stat) || stat.parent != family->parent ||
	       family->visit(pid, family->arg);
}

void pem_proc__children(pid_t pid, bool by_parents, pem_proc_visit *visit, void *arg)
{
	struct family family = {pid, visit, arg};

	if (by_parents)
		pem_proc__all(visit_if_child, &family);
	else
		pem_proc__threads(pid, visit_children_of_thread, &family);
}

/* --- descendants --- */

struct walk {
	struct {
		pid_t pid;
		unsigned depth; /* generations that may follow */
	} * found;
	size_t count, capacity, root_count;
	unsigned depth; /* of processes that are being added */
};

static bool add(int pid, void *arg)
{
	struct walk *walk = arg;
	size_t i;

	/* A root may descend from another one. */
	for (i = 0; i < walk->root_count; i++)
		if (walk->found[i].pid == pid)
			return true;
	if (pem_grow(&walk->found, sizeof(*walk->found), walk->count + 1, &walk->capacity))
		return false;
	walk->found[walk->count].pid = pid;
	walk->found[walk->count++].depth = walk->depth;
	return true;
}

void pem_proc__walk(const pid_t *roots, size_t count, unsigned depth, pem_proc_visit *visit,
		    void *arg)
{
	bool by_parents = access("/proc/thread-self/children", F_OK) != 0;
	struct walk walk = {.depth = depth};
	size_t i;

	for (i = 0; i < count; i++)
		add(roots[i], &walk);
	walk.root_count = walk.count;
	for (i = 0; i < walk.count && visit(walk.found[i].pid, arg); i++) {
		if (!walk.found[i].depth)
			continue;
		walk.depth = walk.found[i].depth - 1;
		pem_proc__children(walk.found[i].pid, by_parents, add, &walk);
	}
	free(walk.found);
}

static bool add_pipe(int descriptor, void *arg)
{
	struct pem_proc_pipes *found = arg;

	if (pem_grow(&found->pipes, sizeof(*found->pipes), found->count + 1, &found->capacity))
		return false;
	found->count += pem_proc__is_pipe(found->pid, descriptor, &found->pipes[found->count]);
	return found->count < PIPES_MAX;
}

static bool add_pipes(int pid, void *arg)
{
	struct pem_proc_pipes *found = arg;

	found->pid = pid;
	if (pid != getpid())
		pem_proc__descriptors(pid, add_pipe, found);
	return ++found->processes < PROCESSES_MAX && found->count < PIPES_MAX;
}

void pem_proc__find_pipes(const pid_t *roots, size_t count, struct pem_proc_pipes *found)
{
	found->count = found->processes = 0;
	pem_proc__walk(roots, count, UINT_MAX, add_pipes, found);
}
