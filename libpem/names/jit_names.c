// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * jit_names.c - code that programs made as they ran, by the list that they leave for perf
 *
 * A runtime that compiles (Node.js with --perf-basic-prof, CPython 3.12 with -X perf, and others)
 * writes a line "START BYTES NAME" for each function, numbers in hexadecimal, to /tmp/perf-PID.map
 * (Linux, tools/perf/Documentation/jit-interface.txt). The file stays behind. Only a file of
 * the user who reads the trace is taken, and its names are only printed.
 */
#include "code_map.h"
#include "symbol_list.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LIST_BYTES_MAX (128u << 20)
#define SYMBOLS_MAX (2u << 20) /* 64 MiB */
#define SLACK_S 2 /* times of files and clocks differ by less */

static bool is_of_program(const struct code_location *location)
{
	return location->told.object == PEM_CODE_NONE && !location->told.is_kernel &&
	       !location->told.name_count;
}

/* Times in seconds of CLOCK_REALTIME. */
struct life {
	double start; /* nothing is older that is of the process */
	double end; /* nothing is younger */
};

static double seconds_of(clockid_t clock)
{
	struct timespec now = {0};

	clock_gettime(clock, &now);
	return (double)now.tv_sec;
}

/* When the process started that has the number now. 0: none has it. */
static double running_since(uint32_t pid)
{
	unsigned long long ticks = 0;
	char path[32], text[1024], *end;
	long hz = sysconf(_SC_CLK_TCK);
	size_t bytes = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (f != NULL) {
		bytes = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[bytes] = '\0';
	end = strrchr(text, ')'); /* the name's end: a name may have any characters */
	if (end == NULL || hz <= 0 ||
	    sscanf(end + 1, " %*c%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s%*s %llu",
		   &ticks) != 1)
		return 0;
	return seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) + (double)ticks / (double)hz;
}

/*
 * When a recorded process lived, as far as that is known. start_ns: as process_start_ns of a
 * location. A process that runs tells when it started. Of one that has ended the trace may tell; a
 * command's processes started while they were recorded, and others since the machine was booted. If
 * another process has the number now, the recorded one had ended before.
 */
static struct life life_of(uint32_t pid, uint64_t start_ns, const struct pem_trace_info *info)
{
	double begin = (double)info->start_time_ns / 1e9, running = running_since(pid);
	struct life life = {.start = seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME),
			    .end = INFINITY};

	if (running > 0 && running <= begin + (double)info->duration_ns / 1e9 + SLACK_S) {
		life.start = running;
		return life;
	}
	if (running > 0)
		life.end = running;
	if (start_ns && start_ns != PEM_TIME_UNKNOWN)
		life.start = begin + (double)start_ns / 1e9;
	else if (info->command[0] != '\0')
		life.start = begin;
	return life;
}

/* Open the list of a process, if it was written while the process lived. */
static FILE *open_list(uint32_t pid, uint64_t start_ns, const struct pem_trace_info *info)
{
	const struct life life = life_of(pid, start_ns, info);
	char path[40];
	struct stat st;
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	if (fd < 0)
		return NULL;
	/* Another user's list could say anything of a process, to root as well. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > LIST_BYTES_MAX ||
	    st.st_uid != geteuid() || (double)st.st_mtim.tv_sec + SLACK_S < life.start ||
	    (double)st.st_mtim.tv_sec - SLACK_S > life.end) {
		close(fd);
		return NULL;
	}
	f = fdopen(fd, "r");
	if (f == NULL)
		close(fd);
	return f;
}

static int take_line(struct symbol_list *list, char *line)
{
	char *end;
	uint64_t start, bytes;

	errno = 0;
	start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return 0;
	line = end;
	bytes = strtoull(line, &end, 16);
	end[strcspn(end, "\n")] = '\0';
	if (errno != 0 || end == line || *end != ' ' || end[1] == '\0' || bytes == 0)
		return 0;
	return symbol_list__add(list, start, bytes, end + 1);
}

static int name_process(struct pem_code *code, uint32_t pid, const struct pem_trace_info *info)
{
	struct symbol_list list = {0};
	uint64_t start_ns = PEM_TIME_UNKNOWN;
	char *line = NULL;
	size_t room = 0, i;
	int rc = 0;
	FILE *f;

	for (i = 0; i < code->location_count; i++)
		if (code->locations[i].told.pid == pid && is_of_program(&code->locations[i]) &&
		    code->locations[i].process_start_ns < start_ns)
			start_ns = code->locations[i].process_start_ns;
	f = open_list(pid, start_ns, info);
	if (!f)
		return 0;
	while (rc == 0 && list.count < SYMBOLS_MAX && getline(&line, &room, f) > 0)
		rc = take_line(&list, line);
	fclose(f);
	free(line);
	symbol_list__sort(&list);
	for (i = 0; rc == 0 && i < code->location_count; i++)
		if (code->locations[i].told.pid == pid && is_of_program(&code->locations[i]))
			rc = symbol_list__name(&list, code, &code->locations[i]);
	symbol_list__free(&list);
	return rc;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int code__name_jit(struct pem_code *code, const struct pem_trace_info *info)
{
	uint32_t *pids;
	size_t i, count = 0;
	bool may_be_here;
	int rc = 0;

	if (!info)
		return 0;
	/* What could be named as the recording ended is kept: a list of now may be another's. */
	may_be_here = !code->kept && code__is_this_boot(info);
	pids = calloc(code->location_count + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	for (i = 0; rc == 0 && i < code->location_count; i++) {
		struct code_location *location = &code->locations[i];

		if (is_of_program(location))
			rc = code__name_kept(code, location,
					     kept_owner(KEPT_PROCESS, location->told.pid));
		if (rc == 0 && may_be_here && is_of_program(location))
			pids[count++] = location->told.pid;
		rc = rc < 0 ? rc : 0;
	}
	qsort(pids, count, sizeof(*pids), by_number);
	for (i = 0; rc == 0 && i < count; i++)
		if (i == 0 || pids[i] != pids[i - 1])
			rc = name_process(code, pids[i], info);
	free(pids);
	return rc;
}
