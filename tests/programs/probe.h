/* SPDX-License-Identifier: MIT */
/*
 * probe.h - what the test programs have in common: raising ticks, telling how many, running one of
 * several modes
 *
 * A raiser is a process, a thread or a handler. It raises ticks numbered from 1, and then tells so
 * in one line of standard output, 'PID TID WHO COUNT', which the test compares with the trace.
 */
#ifndef PROBE_H
#define PROBE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "programs/probe.h"

static inline void probe_tell(uint64_t who, uint64_t count)
{
	char line[96];
	int bytes = snprintf(line, sizeof(line), "%d %ld %" PRIu64 " %" PRIu64 "\n", (int)getpid(),
			     syscall(SYS_gettid), who, count);

	if (write(STDOUT_FILENO, line, (size_t)bytes) != bytes)
		abort();
}

/* Raise ticks first to last. */
static inline void probe_raise(uint64_t who, uint64_t first, uint64_t last)
{
	uint64_t i;

	for (i = first; i <= last; i++)
		pem_notify_probe_tick(who, i);
}

struct probe_mode {
	const char *name;
	int (*run)(uint64_t count, char **argv);
};

/* argv: MODE COUNT ... */
static inline int probe_main(const struct probe_mode *modes, int argc, char **argv)
{
	for (; argc >= 3 && modes->name; modes++) {
		if (!strcmp(modes->name, argv[1]))
			return modes->run(strtoul(argv[2], NULL, 10), argv);
	}
	fprintf(stderr, "usage: %s MODE COUNT\n", argv[0]);
	return 64;
}

#endif
