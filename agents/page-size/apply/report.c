// SPDX-License-Identifier: MIT
/* report.c - the lines, at the end of a file */
#include "report.h"

#include "arena.h"
#include "counts.h"
#include "lock.h"
#include "places.h"
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WORK_NS 100000000

static pid_t process;

void report__set_process(void)
{
	process = getpid();
}

bool report__is_process(void)
{
	return getpid() == process;
}

/* The user's own file; -1: there is none. */
static int open_report(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

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
	const char *reason = counts->reason ? counts->reason : "";
	uint64_t refused = counts->refused;
	char line[512];
	int length;

	if (directive->page_size > ARENA_PAGE && !refused && counts->small) {
		refused = counts->small;
		reason = "kernel";
	}
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

/* Of one directive, with where its data are. */
static void report_directive(int fd, uint32_t i, bool ended)
{
	const struct directive *directive = &apply__directives.list[i];
	const struct places *places = places__of(i);
	char line[512];
	uint32_t n;
	int length;

	report_site(fd, directive, &counts__all[i], ended);
	for (n = 0; n < places->count; n++) {
		length = snprintf(
			line, sizeof(line),
			"{\"pid\": %d, \"place\": \"%s\", \"start\": %llu, \"end\": %llu}\n",
			process, directive->text, (unsigned long long)places->list[n].start,
			(unsigned long long)places->list[n].end);
		append(fd, line, length);
	}
}

static bool is_used(const struct counts *counts)
{
	return counts->requests || counts->refused;
}

static bool is_any_used(void)
{
	uint32_t i = 0;

	while (i < apply__directives.count && !is_used(&counts__all[i]))
		i++;
	return i < apply__directives.count;
}

/* Did this process work, and not only start another? */
static bool has_worked(void)
{
	struct timespec used;

	return !clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) &&
	       (used.tv_sec || used.tv_nsec >= WORK_NS);
}

static void report_unused(int fd)
{
	char line[64];

	append(fd, line,
	       snprintf(line, sizeof(line), "{\"pid\": %d, \"unused\": true}\n", process));
}

void report__sites(void)
{
	const struct directives *all = &apply__directives;
	int saved = errno, fd, state;
	uint32_t i;

	bool used = is_any_used();

	if (!apply__active || apply__confined || !all->report[0] || !(used || has_worked()) ||
	    !report__is_process())
		return;
	state = lock__begin_files();
	fd = open_report(all->report);
	if (fd >= 0) {
		if (used)
			counts__measure();
		else
			report_unused(fd);
		for (i = 0; i < all->count; i++) {
			if (is_used(&counts__all[i]))
				report_directive(fd, i, true);
		}
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
	/* What was granted before has been used by now, most likely. */
	if (counts->told)
		counts__measure();
	counts->told = counts->granted + counts->refused;
	counts->told_refused = counts->refused;
	state = lock__begin_files();
	fd = open_report(all->report);
	if (fd >= 0) {
		report_directive(fd, i, false);
		close(fd);
	}
	lock__end_files(state);
	errno = saved;
}
