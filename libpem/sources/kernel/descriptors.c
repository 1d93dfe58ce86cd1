/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * descriptors.c - how many probes a process has descriptors for
 *
 * A probe takes two or more, and patterns name hundreds of probes. The recorder needs some for itself, later: a pipe to its
 * command, the streams of its trace, the pools of processes that come. So probes leave it a share, and those that find
 * none are left out before the recorder is.
 */
#include "kernel.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define RESERVE_MOST 256u

size_t pem_kernel__spare_descriptors(void)
{
	struct rlimit its;
	size_t limit = getrlimit(RLIMIT_NOFILE, &its) ? 0 : (size_t)its.rlim_cur;
	size_t reserve = limit / 4 < RESERVE_MOST ? limit / 4 : RESERVE_MOST;
	int fd = eventfd(0, EFD_CLOEXEC); /* the least that is free: few below it are */

	if (fd < 0)
		return 0;
	close(fd);
	return limit > (size_t)fd + reserve ? limit - (size_t)fd - reserve : 0;
}
