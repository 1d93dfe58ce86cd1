/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * glimpse.c - state and system call of each thread of a process
 *
 * The kernel tells them by several files. The counts of context switches, read before and after,
 * show that a thread did not run in between: then all of it holds at its clock.
 */
#include "threads.h"
#include "grow.h"

#include <pem/clock.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES 3
#define STATUS_BYTES 4096u
#define PROCESSOR_FIELD 39 /* of stat, see proc_pid_stat(5) */

/* What /proc/PID/task/TID/status tells. */
struct status {
	char state;
	uint32_t inner_tid;
	unsigned users[4];
	uint64_t switches; /* of both kinds */
};

/* Read a file of a thread as text. False: it is gone, or this user may not read it. */
static bool read_file(uint32_t pid, uint32_t tid, const char *name, char *text, size_t bytes)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/%s", pid, tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, bytes - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The text behind a name at the begin of a line, or NULL. */
static const char *line_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

static bool read_status(uint32_t pid, uint32_t tid, struct status *status)
{
	const char *state, *users, *inner, *own, *forced;
	char text[STATUS_BYTES];

	if (!read_file(pid, tid, "status", text, sizeof(text)))
		return false;
	/* A newline in a thread's name is escaped there, so that a name is no line. */
	state = line_of(text, "\nState:\t");
	users = line_of(text, "\nUid:\t");
	inner = line_of(text, "\nNSpid:\t");
	own = line_of(text, "\nvoluntary_ctxt_switches:\t");
	forced = line_of(text, "\nnonvoluntary_ctxt_switches:\t");
	if (!state || !users || !own || !forced ||
	    sscanf(users, "%u %u %u %u", &status->users[0], &status->users[1], &status->users[2],
		   &status->users[3]) != 4)
		return false;
	status->state = *state;
	status->switches = strtoull(own, NULL, 10) + strtoull(forced, NULL, 10);
	status->inner_tid = tid;
	/* The last number is that in its own namespace. Without namespaces there is no line. */
	while (inner && *inner >= '0' && *inner <= '9') {
		status->inner_tid = (uint32_t)strtoul(inner, (char **)&inner, 10);
		inner += *inner == '\t';
	}
	return true;
}

/* The kernel's task state by its letter; -1: the thread has ended, or the letter is unknown. */
static int state_of(char letter)
{
	static const char letters[] = "RSDTtPI";
	static const int states[] = {0, 1, 2, 4, 8, 0x40, 0x80};
	const char *at = letter ? strchr(letters, letter) : NULL;

	return at ? states[at - letters] : -1;
}

static uint32_t cpu_of(uint32_t pid, uint32_t tid)
{
	char text[1024];
	const char *at;
	int field;

	if (!read_file(pid, tid, "stat", text, sizeof(text)))
		return 0;
	at = strrchr(text, ')'); /* a name may have any characters */
	for (field = 2; at && field < PROCESSOR_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? (uint32_t)strtoul(at + 1, NULL, 10) : 0;
}

/*
 * Read the system call of a thread that does not run. A program for 32 bits has other numbers,
 * which would be taken for those of this machine: its calls are unknown.
 */
static void read_call(uint32_t pid, struct glimpse *glimpse)
{
	uint64_t counter;
	char text[256];
	int64_t call;
	int at = 0;

	glimpse->call = -1;
	glimpse->stack = 0;
	if (!read_file(pid, glimpse->tid, "syscall", text, sizeof(text)))
		return;
	if (sscanf(text, "%" SCNd64 "%n", &call, &at) != 1)
		return;
	if (call < 0) {
		sscanf(text + at, " %" SCNx64, &glimpse->stack);
		return;
	}
	if (sscanf(text + at,
		   " %" SCNx64 " %" SCNx64 " %" SCNx64 " %*x %*x %*x %" SCNx64 " %" SCNx64,
		   &glimpse->arguments[0], &glimpse->arguments[1], &glimpse->arguments[2],
		   &glimpse->stack, &counter) != 5)
		return;
	if (sizeof(long) == 4 || glimpse->stack > UINT32_MAX || counter > UINT32_MAX)
		glimpse->call = call;
}

/* Returns whether the glimpse holds at its clock. */
static bool see(const struct glimpses *glimpses, struct glimpse *glimpse, struct status *before)
{
	struct status after;
	int state, i;

	for (i = 0; i < TRIES; i++) {
		state = read_status(glimpses->pid, glimpse->tid, before) ? state_of(before->state)
									 : -1;
		if (state < 0)
			return false;
		glimpse->state = (uint32_t)state;
		glimpse->inner_tid = before->inner_tid;
		glimpse->switches = before->switches;
		glimpse->call = -1;
		if (state && glimpses->may_read)
			read_call(glimpses->pid, glimpse);
		glimpse->clock = pem_clock();
		/* One that ran, and sleeps now, has left a CPU: then there is a record of that. */
		if (!state)
			return true;
		if (read_status(glimpses->pid, glimpse->tid, &after) &&
		    after.state == before->state && after.switches == before->switches)
			return true;
	}
	return false;
}

static int add(struct glimpses *glimpses, uint32_t tid)
{
	struct glimpse glimpse = {.pid = glimpses->pid, .tid = tid};
	struct status status;

	if (!see(glimpses, &glimpse, &status))
		return 0;
	if (pem_grow(&glimpses->threads, sizeof(glimpse), glimpses->count + 1, &glimpses->capacity))
		return -ENOMEM;
	glimpse.cpu = cpu_of(glimpses->pid, tid);
	glimpses->threads[glimpses->count++] = glimpse;
	return 0;
}

static bool is_own(const struct status *status)
{
	unsigned i, own = (unsigned)geteuid();

	for (i = 0; i < 4; i++)
		if (status->users[i] != own)
			return false;
	return true;
}

int glimpses__take(struct glimpses *glimpses, uint32_t pid, bool is_named)
{
	struct status status;
	struct dirent *entry;
	char path[48];
	int rc = 0;
	DIR *tasks;

	*glimpses = (struct glimpses){.pid = pid};
	if (!read_status(pid, pid, &status))
		return -ESRCH;
	glimpses->is_own = is_own(&status);
	glimpses->may_read = glimpses->is_own || is_named;
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	while (tasks && !rc && (entry = readdir(tasks)))
		if (*entry->d_name >= '0' && *entry->d_name <= '9')
			rc = add(glimpses, (uint32_t)strtoul(entry->d_name, NULL, 10));
	if (tasks)
		closedir(tasks);
	return rc;
}

void glimpses__free(struct glimpses *glimpses)
{
	free(glimpses->threads);
	glimpses->threads = NULL;
	glimpses->count = glimpses->capacity = 0;
}
