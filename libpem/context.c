/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * context.c - see context.h
 */
#include "context.h"
#include "sized.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The kernel's numbers of processes and threads are below this one (its PID_MAX_LIMIT). */
#define PIDS_MAX (4u << 20)

/* The greatest number that a CPU of this machine can have. UINT32_MAX: unknown. */
static uint32_t last_cpu(void)
{
	FILE *file = fopen("/sys/devices/system/cpu/possible", "re");
	uint32_t first = 0, last = UINT32_MAX;
	int parts = 0;

	/* Ranges, in rising order: "0-3", or "0-3,8-11". */
	while (file && (parts = fscanf(file, "%u-%u", &first, &last)) > 0) {
		if (parts == 1)
			last = first;
		if (fgetc(file) != ',')
			break;
	}
	if (file)
		fclose(file);
	return last;
}

/* Refuse numbers that nothing here can have. A process or thread may start later. */
static int check_numbers(const struct pem_context *c, struct pem_error *error)
{
	uint32_t last;

	if (c->pid >= PIDS_MAX || c->tid >= PIDS_MAX)
		return pem_error__set(error, -ESRCH,
				      "there is no %s %u: Linux has none above %u; name one that "
				      "'ps -eL' shows",
				      c->pid >= PIDS_MAX ? "process" : "thread",
				      c->pid >= PIDS_MAX ? c->pid : c->tid, PIDS_MAX - 1);
	last = c->one_cpu ? last_cpu() : UINT32_MAX;
	if (c->cpu > last)
		return pem_error__set(error, -EINVAL,
				      "a context names CPU %u: this machine's last one is %u",
				      c->cpu, last);
	return 0;
}

int pem_context__copy(struct pem_context *copy, const struct pem_context *given,
		      struct pem_error *error)
{
	static const struct pem_context any = {0};
	struct pem_context c;
	int result = PEM_READ_SIZED(pem_context, &c, given ? given : &any, program, error);

	if (result)
		return result;
	if (c.one_cpu > 1)
		return pem_error__set(error, -EINVAL,
				      "a context's one_cpu is %u: it is 1 for the CPU that 'cpu' "
				      "names alone, and 0 for all",
				      c.one_cpu);
	if (c.cpu && !c.one_cpu)
		return pem_error__set(error, -EINVAL,
				      "a context names CPU %u, and its one_cpu is 0: set it to 1 "
				      "for that CPU alone",
				      c.cpu);
	if (c.follow > 1)
		return pem_error__set(error, -EINVAL,
				      "a context's follow is %u: it is 1 for processes that 'pid' "
				      "starts, and 0 for that one alone",
				      c.follow);
	if (c.follow && !c.pid)
		return pem_error__set(error, -EINVAL,
				      "a context follows a process, and its pid is 0: name the "
				      "process, or set follow to 0 for all processes");
	if (!memchr(c.program, 0, sizeof(c.program)))
		return pem_error__set(
			error, -EINVAL,
			"a context's program has no end: a name has at most %zu bytes",
			sizeof(c.program) - 1);
	result = check_numbers(&c, error);
	if (result)
		return result;
	/* Bytes behind the name's end mean nothing, so they become 0. */
	memset(c.program + strlen(c.program), 0, sizeof(c.program) - strlen(c.program));
	*copy = c;
	return 0;
}
