/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cpu_time.c - CPU time of the observed programs
 *
 * The time of a living process has two parts. The first is its own clock, which counts its threads
 * to the nanosecond, also those that have ended. The second comes from /proc, in ticks: the time of
 * children that it has waited for. So a child's time moves to its parent when the child ends. Where
 * the whole machine is observed, all of its time that is not idle counts.
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"
#include "source_host/source_host.h"

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

/*
 * The values cutime and cstime: fields 16 and 17, after the name. The name may contain any
 * character.
 */
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

/*
 * The time of all that runs, from the first line of /proc/stat: user, nice, system, idle, iowait,
 * irq, softirq, steal.
 */
uint64_t pem_machine_cpu_ns(void)
{
	unsigned long long t[8] = {0};
	long hz = sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");
	int n = 0;

	if (f) {
		n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3],
			   &t[4], &t[5], &t[6]);
		fclose(f);
	}
	if (n < 3 || hz <= 0)
		return 0;
	return (t[0] + t[1] + t[2] + t[5] + t[6]) * (1000000000u / (uint64_t)hz);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * List the observed processes that live. A process may come more than once: as an earlier image, as
 * the command, as a target.
 */
static size_t list_processes(const struct pem_session *s, uint32_t *pids)
{
	const struct pem_producer *p;
	const struct pem_member *m;
	size_t count = 0;

	if (s->command.pid && !s->command.done && !s->command.failed)
		pids[count++] = (uint32_t)s->command.pid;
	if (s->sources->root && s->sources->root != s->command.pid)
		pids[count++] = (uint32_t)s->sources->root;
	for (p = s->processes->producers; p; p = p->next) {
		if (!p->dead && p->pidfd >= 0)
			pids[count++] = p->pid;
	}
	for (m = s->processes->members; m; m = m->next) {
		if (m->pid && m->session_index >= 0)
			pids[count++] = m->pid;
	}
	return count;
}

uint64_t pem_session__program_cpu_ns(const struct pem_session *s)
{
	const struct pem_producer *p;
	const struct pem_member *m;
	size_t count = 2, i;
	uint64_t sum = 0;
	uint32_t *pids;

	if (s->sources->whole_machine)
		return pem_machine_cpu_ns();
	for (p = s->processes->producers; p; p = p->next)
		count++;
	for (m = s->processes->members; m; m = m->next)
		count++;
	pids = calloc(count, sizeof(*pids));
	if (!pids)
		return 0;
	count = list_processes(s, pids);
	qsort(pids, count, sizeof(*pids), by_number);
	for (i = 0; i < count; i++) {
		if (!i || pids[i] != pids[i - 1])
			sum += own_ns(pids[i]) + children_ns(pids[i]);
	}
	free(pids);
	return sum;
}
