// SPDX-License-Identifier: MIT
/*
 * jit_names.c - code that programs made as they ran, by the list that they leave for perf
 *
 * A runtime that compiles (Node.js with --perf-basic-prof, CPython 3.12 with -X perf, and others)
 * writes a line "START BYTES NAME" for each function, numbers in hexadecimal, to /tmp/perf-PID.map
 * (Linux, tools/perf/Documentation/jit-interface.txt). The file stays behind. Only a file of
 * the user who reads the trace is taken, and its names are only printed.
 */
#include "sites.h"
#include "symbol_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_BYTES_MAX (128u << 20)
#define SYMBOLS_MAX (2u << 20) /* 64 MiB */

static bool is_of_program(const struct report_site *site)
{
	return site->object == NO_OBJECT && site->offset >> 63 == 0 && site->name_count == 0;
}

/*
 * Open the list of a process, if it is one of the recording: the process numbers of a command are
 * given out while it is recorded, so an older file is another process's.
 */
static FILE *open_list(uint32_t pid, const struct pem_trace_info *info)
{
	int fd = open(cli_format("/tmp/perf-%u.map", pid),
		      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
	struct stat st;
	FILE *f;

	if (fd < 0)
		return NULL;
	/* Another user's list could say anything of a process, to root as well. */
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > LIST_BYTES_MAX ||
	    st.st_uid != geteuid() ||
	    (info->command[0] != '\0' &&
	     (uint64_t)st.st_mtim.tv_sec + 1 < info->start_time_ns / 1000000000)) {
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

static int name_process(struct report_sites *s, uint32_t pid, const struct pem_trace_info *info)
{
	struct symbol_list list = {0};
	char *line = NULL;
	size_t room = 0, i;
	int rc = 0;
	FILE *f = open_list(pid, info);

	if (f == NULL)
		return 0;
	while (rc == 0 && list.count < SYMBOLS_MAX && getline(&line, &room, f) > 0)
		rc = take_line(&list, line);
	fclose(f);
	free(line);
	symbol_list__sort(&list);
	for (i = 0; rc == 0 && i < s->count; i++)
		if (s->sites[i].pid == pid && is_of_program(&s->sites[i]))
			rc = symbol_list__name(&list, &s->sites[i]);
	symbol_list__free(&list);
	return rc;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

int report_sites__name_jit(struct report_sites *s, const struct pem_trace_info *info)
{
	uint32_t *pids = calloc(s->count + 1, sizeof(*pids));
	size_t i, count = 0;
	int rc = 0;

	if (pids == NULL)
		return -ENOMEM;
	for (i = 0; i < s->count; i++)
		if (is_of_program(&s->sites[i]))
			pids[count++] = s->sites[i].pid;
	qsort(pids, count, sizeof(*pids), by_number);
	for (i = 0; rc == 0 && i < count; i++)
		if (i == 0 || pids[i] != pids[i - 1])
			rc = name_process(s, pids[i], info);
	free(pids);
	return rc;
}
