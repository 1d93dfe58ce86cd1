/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * membership.c - which of a session's contexts a process is in
 */
#include "membership.h"
#include "util.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GENERATIONS_MAX 64 /* of ancestors looked at: /proc is not to send anybody in circles */

/* The first bytes of a file of /proc, NUL-terminated. Their number, or 0. */
static size_t read_proc(uint32_t pid, const char *name, char *text, size_t bytes)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, bytes - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

/* 0: none, or unknown. */
static uint32_t parent_of(uint32_t pid)
{
	char text[256], *c;

	if (!read_proc(pid, "stat", text, sizeof(text)))
		return 0;
	c = strrchr(text, ')'); /* the name before it may hold anything */
	return c && strlen(c) > 4 ? (uint32_t)strtoul(c + 4, NULL, 10) : 0;
}

static bool is_process(const struct pem_session_context *c, uint32_t pid)
{
	int i;

	if (c->pid == 0)
		return true;
	if (c->pid_namespace && c->pid_namespace != pem_pid_namespace())
		return false;
	if (c->pid == pid || !(c->flags & PEM_CONTEXT_FOLLOW))
		return c->pid == pid;
	for (i = 0; pid && i < GENERATIONS_MAX; i++) {
		pid = parent_of(pid);
		if (pid == c->pid)
			return true;
	}
	return false;
}

static bool has_name(const struct pem_session_context *c, uint32_t pid)
{
	char name[PEM_NAME_BYTES + 1] = "";
	size_t n;

	if (!c->program[0])
		return true;
	n = read_proc(pid, "comm", name, sizeof(name));
	if (n && name[n - 1] == '\n')
		name[n - 1] = 0;
	return !strncmp(name, c->program, sizeof(c->program) - 1);
}

bool pem_context__holds(const struct pem_session_context *context, uint32_t pid)
{
	const struct pem_session_context c = *context; /* shared memory: loaded once */

	return is_process(&c, pid) && has_name(&c, pid);
}

uint64_t pem_contexts__holding(const struct pem_session_page *page, uint32_t count, uint32_t pid,
			       uint64_t known)
{
	uint64_t holding = known | 1;
	uint32_t i;

	for (i = 1; i < count && i < PEM_CONTEXTS_MAX; i++) {
		if (!(known >> i & 1) && pem_context__holds(&page->contexts[i], pid))
			holding |= 1ull << i;
	}
	return holding;
}
