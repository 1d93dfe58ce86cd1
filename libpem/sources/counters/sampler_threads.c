// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * sampler_threads.c - samples of the other threads of a process that runs already
 *
 * An event follows one thread and what that starts. So each other thread gets an event of its own
 * for each CPU, which writes into that CPU's ring. Its samples have the clock alone as a value.
 */
#include "sampler.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SCAN_PASSES 8 /* threads may start meanwhile */

static int is_known(const struct sampler *sampler, pid_t tid)
{
	size_t i;

	for (i = 0; i < sampler->thread_count; i++)
		if (sampler->threads[i].tid == tid)
			return 1;
	return tid == sampler->pid;
}

static int keep(struct sampler *sampler, pid_t tid, int fd)
{
	struct sampled_thread *grown =
		realloc(sampler->threads, (sampler->thread_count + 1) * sizeof(*grown));

	if (!grown) {
		close(fd);
		return -ENOMEM;
	}
	sampler->threads = grown;
	grown[sampler->thread_count++] = (struct sampled_thread){tid, fd};
	return 0;
}

int sampler__join_ring(const struct cpu_ring *ring, const int beside[PRECISE_BESIDE])
{
	if (beside[PRECISE_STORES] < 0)
		return 0;
	return ioctl(beside[PRECISE_STORES], PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0 ? -errno : 0;
}

/* Returns 0, also if the thread has ended, or -errno. */
static int add_to_ring(struct sampler *sampler, const struct cpu_ring *ring, pid_t tid)
{
	struct perf_event_attr attr = ring->attr;
	int beside[PRECISE_BESIDE], rc, kept, i;
	int fd = precise__open(&sampler->precise, &attr, -1, tid, (int)ring->cpu, beside);

	if (fd < 0)
		return fd == -ESRCH ? 0 : fd;
	rc = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0 ? -errno : 0;
	if (!rc)
		rc = sampler__join_ring(ring, beside);
	kept = keep(sampler, tid, fd);
	for (i = 0; i < PRECISE_BESIDE; i++)
		if (beside[i] >= 0 && keep(sampler, tid, beside[i]) < 0)
			kept = -ENOMEM;
	return rc ? rc : kept;
}

static int add_thread(struct sampler *sampler, pid_t tid)
{
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && i < sampler->ring_count; i++)
		rc = add_to_ring(sampler, &sampler->rings[i], tid);
	return rc;
}

int sampler__add_threads(struct sampler *sampler)
{
	int rc = 0, pass, added = 1;
	struct dirent *entry;
	char path[40];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)sampler->pid);
	for (pass = 0; !rc && added && pass < SCAN_PASSES; pass++) {
		added = 0;
		tasks = opendir(path);
		if (!tasks)
			return errno == ENOENT ? -ESRCH : -errno;
		while (!rc && (entry = readdir(tasks))) {
			pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

			if (tid <= 0 || is_known(sampler, tid))
				continue;
			rc = add_thread(sampler, tid);
			added = 1;
		}
		closedir(tasks);
	}
	return rc;
}
