// SPDX-License-Identifier: MIT
/* report.c - the lines, at the end of a file */
#include "report.h"

#include "arena.h"
#include "counts.h"
#include "extents.h"
#include "files.h"
#include "lock.h"
#include "maps.h"
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static pid_t process;
/* It is what the agent has started, whose extents the report has. */
static bool is_command;

void report__set_process(void)
{
	process = getpid();
	is_command = false;
}

bool report__is_process(void)
{
	return getpid() == process;
}

/* The user's own file; -1: there is none. */
static int open_report(const char *path)
{
	struct stat st;
	int fd = files__open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		close(fd);
		return -1;
	}
	return fd;
}

/* One write, so that lines of several processes don't mix. */
static void append(int fd, const char *line, int length)
{
	struct rlimit limit;
	struct stat st;

	/* A file that may not grow so far would end the program by SIGXFSZ. */
	if (fstat(fd, &st) || getrlimit(RLIMIT_FSIZE, &limit) ||
	    (limit.rlim_cur != RLIM_INFINITY &&
	     (uint64_t)st.st_size + (uint64_t)length > limit.rlim_cur))
		return;
	while (write(fd, line, (size_t)length) < 0 && errno == EINTR)
		continue;
}

void report__error(const char *sentence)
{
	char line[512], path[PATH_MAX + 8];
	int fd = -1, length, saved = errno;

	if (apply__directives.report[0])
		fd = open_report(apply__directives.report);
	if (fd < 0 && apply__directives.path[0]) {
		snprintf(path, sizeof(path), "%s.report", apply__directives.path);
		fd = open_report(path);
	}
	if (fd >= 0) {
		length = snprintf(line, sizeof(line), "{\"pid\": %d, \"error\": \"%s\"}\n", process,
				  sentence);
		append(fd, line, length);
		close(fd);
	}
	errno = saved;
}

static void report_site(int fd, const struct directive *directive, const struct counts *counts,
			bool ended)
{
	uint64_t refused = counts->wanted > counts->large ? counts->wanted - counts->large : 0;
	const char *reason = counts->reason ? counts->reason : "";
	char line[512];
	int length;

	length =
		snprintf(line, sizeof(line),
			 "{\"pid\": %d, \"site\": \"%s\", \"page_size\": %llu, \"requests\": %llu, "
			 "\"bytes\": %llu, \"granted_bytes\": %llu, \"large_bytes\": %llu, "
			 "\"refused_bytes\": %llu, \"reason\": \"%s\", \"ended\": %s}\n",
			 process, directive->text, (unsigned long long)directive->page_size,
			 (unsigned long long)counts->requests, (unsigned long long)counts->peak,
			 (unsigned long long)counts->granted, (unsigned long long)counts->large,
			 (unsigned long long)refused, reason, ended ? "true" : "false");
	append(fd, line, length);
}

static void report_extents(int fd, uint32_t i)
{
	const struct extents *extents = extents__of(i);
	/* Pairs with extents__add: the extents before are written. */
	uint32_t count = __atomic_load_n(&extents->count, __ATOMIC_ACQUIRE), n;
	char line[256];
	int length;

	for (n = 0; n < count; n++) {
		length = snprintf(line, sizeof(line),
				  "{\"pid\": %d, \"extent\": %u, \"start\": %llu, \"end\": %llu}\n",
				  process, i, (unsigned long long)extents->list[n].start,
				  (unsigned long long)extents->list[n].end);
		append(fd, line, length);
	}
}

/* Mappings are known at the end only. */
static void report_all_extents(int fd, bool of_maps)
{
	uint32_t i;

	for (i = 0; i < apply__directives.count; i++) {
		if ((apply__directives.list[i].site.kind == PAGE_SITE_MAP) == of_maps)
			report_extents(fd, i);
	}
}

void report__begin(void)
{
	char line[96];
	int fd;

	if (!apply__directives.agent || (uint64_t)getppid() != apply__directives.agent ||
	    !apply__directives.report[0])
		return;
	fd = open_report(apply__directives.report);
	if (fd < 0)
		return;
	is_command = true;
	append(fd, line,
	       snprintf(line, sizeof(line), "{\"pid\": %d, \"command\": true, \"maps\": %s}\n",
			process, maps__active ? "true" : "false"));
	report_all_extents(fd, false);
	close(fd);
}

static void report_end(int fd)
{
	char line[64];

	if (!is_command || !maps__active)
		return;
	report_all_extents(fd, true);
	append(fd, line,
	       snprintf(line, sizeof(line), "{\"pid\": %d, \"complete\": true}\n", process));
}

static bool is_used(const struct counts *counts)
{
	return counts->requests != 0;
}

static bool is_any_used(void)
{
	uint32_t i = 0;

	while (i < apply__directives.count && !is_used(&counts__all[i]))
		i++;
	return i < apply__directives.count;
}

void report__sites(bool goes_on)
{
	const struct directives *all = &apply__directives;
	int saved = errno, fd, state;
	uint32_t i;

	if (!apply__active || apply__confined || !all->report[0] || !is_any_used() ||
	    !report__is_process())
		return;
	state = lock__begin_files();
	fd = open_report(all->report);
	if (fd >= 0) {
		for (i = 0; i < all->count; i++) {
			if (is_used(&counts__all[i]))
				report_site(fd, &all->list[i], &counts__all[i], true);
		}
		if (!goes_on)
			report_end(fd);
		close(fd);
	}
	lock__end_files(state);
	errno = saved;
}

void counts__tell(struct counts *counts)
{
	const struct directives *all = &apply__directives;
	uint32_t i = (uint32_t)(counts - counts__all);
	int saved = errno, fd, state;

	if (!apply__active || apply__confined || !all->report[0] || !report__is_process())
		return;
	counts->told = counts->wanted;
	counts->told_refused = counts->wanted > counts->large;
	state = lock__begin_files();
	fd = open_report(all->report);
	if (fd >= 0) {
		report_site(fd, &all->list[i], counts, false);
		close(fd);
	}
	lock__end_files(state);
	errno = saved;
}
