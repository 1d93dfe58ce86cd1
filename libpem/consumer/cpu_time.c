/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cpu_time.c - CPU time of the observed programs
 *
 * Of a process that lives: its own clock, which counts its threads to the nanosecond, those that ended too, and, from
 * /proc, in ticks, what its children had had that it waited for. So a child's time moves to its parent when it ends.
 */
#include "consumer/detail.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t own_ns(uint32_t pid)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid((pid_t)pid, &clock) || clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* cutime and cstime: fields 16 and 17, after the name, which may hold anything. */
static uint64_t children_ns(uint32_t pid)
{
	char path[40], text[1024], *at;
	unsigned long long user = 0, system = 0;
	long hz = sysconf(_SC_CLK_TCK);
	ssize_t n;
	int fd, i;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0 || hz <= 0)
		return 0;
	text[n] = 0;
	at = strrchr(text, ')');
	for (i = 0; at && i < 14; i++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, "%llu %llu", &user, &system) != 2)
		return 0;
	return (user + system) * (1000000000u / (uint64_t)hz);
}

/* A process that replaced its image is there twice, and so may the command be. */
static bool is_counted(const struct pem_session *s, const struct pem_producer *p)
{
	const struct pem_producer *other;

	if (p->dead || p->pidfd < 0 || p->pid == (uint32_t)s->command)
		return true;
	for (other = s->producers; other != p; other = other->next) {
		if (other->pid == p->pid && !other->dead)
			return true;
	}
	return false;
}

uint64_t pem_session__program_cpu_ns(const struct pem_session *s)
{
	const struct pem_producer *p;
	uint64_t sum = 0;

	if (s->command && !s->command_done)
		sum = own_ns((uint32_t)s->command) + children_ns((uint32_t)s->command);
	for (p = s->producers; p; p = p->next) {
		if (!is_counted(s, p))
			sum += own_ns(p->pid) + children_ns(p->pid);
	}
	return sum;
}
