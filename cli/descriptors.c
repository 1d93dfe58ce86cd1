// SPDX-License-Identifier: MIT
/*
 * descriptors.c - raises pem's limit of open files, and restores it for pem's command
 *
 * A pattern such as 'syscalls:*' names hundreds of probes with descriptors of their own, and the
 * usual limit is 1024. Programs that use select() depend on the usual limit. So a process that pem
 * forks gets the limit that pem was started with.
 */
#include "cli.h"

#include <pthread.h>
#include <sys/resource.h>

static struct rlimit as_started; /* the child of a fork reads it */

static void restore(void)
{
	setrlimit(RLIMIT_NOFILE, &as_started);
}

void cli_descriptors__raise(void)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &as_started) < 0 || as_started.rlim_cur == as_started.rlim_max)
		return;
	most = as_started;
	most.rlim_cur = most.rlim_max;
	/* Without this handler the command would get the raised limit, too. */
	if (pthread_atfork(NULL, NULL, restore) == 0)
		setrlimit(RLIMIT_NOFILE, &most);
}
