/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * start_cost.c - measure how much dearer a process's start and end become when it is recorded, for
 * the overhead ledger
 *
 * A shell that starts programs which do nothing runs alternately plain and recorded. The recorded
 * run loads libpem, and the adapter of the C library if this is used; it joins a session and makes
 * a pool. The session is made for this alone, and its records are never drained.
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"
#include "util.h"

#include <pem/event.h>

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 7
#define STARTS 5 /* of the shell, and of what it starts */

/* The CPU time of one run in ns. 0: the program cannot be run here. */
static double run_once(char *const environment[])
{
	static char shell[] = "sh", option[] = "-c";
	static char script[] = "/bin/true; /bin/true; /bin/true; /bin/true; :";
	char *const argv[] = {shell, option, script, NULL};
	struct rusage usage;
	int status;
	/* This is not posix_spawn, which has no attribute for capabilities. */
	pid_t child = vfork();

	if (!child) {
		if (!pem_run__drop_capabilities())
			execve("/bin/sh", argv, environment);
		_exit(1);
	}
	if (child < 0 || wait4(child, &status, 0, &usage) != child || status)
		return 0;
	return ((double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec) * 1e9 +
	       ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) * 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double pem_start_ns(bool adapters)
{
	const struct pem_run_options options = {.size = sizeof(options), .preload_libc = adapters};
	struct pem_session *own = pem_session__open(NULL, NULL);
	struct pem_environment *environment = NULL;
	double plain[ROUNDS], recorded[ROUNDS], more = 0;
	unsigned i;

	if (!own)
		return 0;
	own->page->rules[0] =
		(struct pem_rule){.event_id = PEM_RULE_ANY_EVENT,
				  .action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1),
				  .max_level = PEM_LEVEL_INFO};
	/* UI */
	__atomic_store_n(&own->page->rule_count, 1, __ATOMIC_RELEASE);
	environment = pem_environment__new(own, own->directory, NULL, &options);
	if (!environment)
		goto out;
	for (i = 0; i < ROUNDS; i++) {
		plain[i] = run_once(environ);
		recorded[i] = run_once(pem_environment__variables(environment));
	}
	qsort(plain, ROUNDS, sizeof(*plain), by_value);
	qsort(recorded, ROUNDS, sizeof(*recorded), by_value);
	if (plain[0] > 0 && recorded[ROUNDS / 2] > plain[ROUNDS / 2])
		more = (recorded[ROUNDS / 2] - plain[ROUNDS / 2]) / STARTS;
out:
	pem_environment__free(environment);
	pem_session__close(own);
	return more;
}
