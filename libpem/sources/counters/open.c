// SPDX-License-Identifier: LGPL-2.1-or-later
/* open.c - opens a counter on the threads, processes or CPUs that it is about */
#include "open.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 4096u
#define SCAN_PASSES 8

static int add_fd(struct counter *counter, int fd)
{
	int *grown;

	if (fd < 0)
		return fd;
	grown = realloc(counter->fds, (counter->fd_count + 1) * sizeof(*grown));
	if (!grown) {
		close(fd);
		return -ENOMEM;
	}
	counter->fds = grown;
	counter->fds[counter->fd_count++] = fd;
	return 0;
}

static int is_known(const pid_t *known, size_t count, pid_t tid)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (known[i] == tid)
			return 1;
	return 0;
}

/*
 * Open the counter on each thread of a process that is not yet in known. Returns how many were
 * opened, or -errno.
 */
static int open_new_threads(struct counter *counter, struct perf_event_attr *attr, int cpu,
			    pid_t *known, size_t *known_count)
{
	char path[48];
	struct dirent *entry;
	int rc, added = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", counter->pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(tasks)) && *known_count < THREADS_MAX) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || is_known(known, *known_count, tid))
			continue;
		rc = add_fd(counter, counter__open(attr, tid, cpu, -1));
		if (rc == -ESRCH) /* the thread has ended meanwhile */
			continue;
		if (rc < 0) {
			added = rc;
			break;
		}
		known[(*known_count)++] = tid;
		added++;
	}
	closedir(tasks);
	return added;
}

/*
 * Threads may start during the search, so it is repeated until no new thread is found. Threads that
 * start later inherit the counter, and so do processes if follow is set.
 */
static int open_process(struct counter *counter, struct perf_event_attr *attr, int cpu, int follow)
{
	pid_t *known = calloc(THREADS_MAX, sizeof(*known));
	size_t known_count = 0;
	int rc = 1, pass;

	if (!known)
		return -ENOMEM;
	attr->inherit = 1;
	attr->inherit_thread = !follow;
	for (pass = 0; rc > 0 && pass < SCAN_PASSES; pass++) {
		rc = open_new_threads(counter, attr, cpu, known, &known_count);
		if (rc == -EINVAL && attr->inherit_thread && !known_count) {
			/* Before Linux 5.13 child processes are counted, too. */
			attr->inherit_thread = 0;
			rc = 1;
		}
	}
	free(known);
	if (rc >= 0 && !known_count)
		return -ESRCH;
	return rc < 0 ? rc : 0;
}

static int open_machine(struct counter *counter, struct perf_event_attr *attr)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), i;
	int rc;

	for (i = 0; i < cpus; i++) {
		rc = add_fd(counter, counter__open(attr, -1, (int)i, -1));
		if (rc < 0 && rc != -ENODEV)
			return rc;
	}
	return counter->fd_count ? 0 : -ENODEV;
}

int counter__open_all(const struct pem_source *source, struct counter *counter,
		      struct perf_event_attr *attr)
{
	const struct pem_context *context = &counter->context;
	int cpu = context->one_cpu ? (int)context->cpu : -1;

	attr->disabled = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	counter->pid = context->pid;
	if (context->tid != PEM_ANY)
		return add_fd(counter, counter__open(attr, (pid_t)context->tid, cpu, -1));
	if (context->pid != PEM_ANY && context->pid != (uint32_t)source->root)
		return open_process(counter, attr, cpu, 0);
	if (source->root && source->root_runs) {
		counter->pid = (uint32_t)source->root;
		return open_process(counter, attr, cpu, !source->no_follow);
	}
	if (source->root) {
		counter->pid = (uint32_t)source->root;
		attr->inherit = 1;
		attr->inherit_thread = source->no_follow != 0;
		attr->enable_on_exec = 1;
		return add_fd(counter, counter__open(attr, source->root, cpu, -1));
	}
	if (cpu >= 0)
		return add_fd(counter, counter__open(attr, -1, cpu, -1));
	return open_machine(counter, attr);
}
