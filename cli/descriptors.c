// SPDX-License-Identifier: MIT
/*
 * descriptors.c - as many open files as pem may have, and as many for its command as that was to
 * have
 *
 * A pattern such as 'syscalls:*' names hundreds of probes, each with descriptors of its own, and
 * the usual limit is 1024. Programs that use select() depend on that, so whatever pem forks has the
 * limit that pem was started with.
 */
#include "cli.h"

#include <pthread.h>
#include <sys/resource.h>

static struct rlimit as_started; /* read in the child of a fork */

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
	/* Without a way back the command would have it, too. */
	if (pthread_atfork(NULL, NULL, restore) == 0)
		setrlimit(RLIMIT_NOFILE, &most);
}
