/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * leave_behind.c - perf events ended without waiting for it
 *
 * To take a program off a perf event, and to end that, the kernel waits until no CPU can be in it any more: some tens of
 * milliseconds each, and the ends one after the other, in whatever thread or process: hundreds take a minute. Nothing depends on
 * it, for a program of which nothing is wanted ends at once. So a process that holds nothing else takes them, and ends.
 *
 * It is not forked as programs are, whose handlers, ours among them, would take it for one of theirs; it runs nothing but
 * system calls; and it is a grandchild, so that nobody is told of its end.
 */
#define _GNU_SOURCE
#include "kernel.h"

#include <errno.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/* Close all descriptors but these: pipes that others read to their end, locks that say that we live. */
static void close_others(const int *fds, size_t count)
{
	unsigned from = 0;
	size_t i;

	for (i = 0; i < count; i++) {
		if ((unsigned)fds[i] > from)
			syscall(SYS_close_range, from, (unsigned)fds[i] - 1, 0);
		from = (unsigned)fds[i] + 1;
	}
	syscall(SYS_close_range, from, ~0u, 0);
}

void pem_leave_behind(int *fds, size_t count)
{
	long child;

	if (!count)
		return;
	qsort(fds, count, sizeof(*fds), compare);
	child = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (child == 0) {
		if (syscall(SYS_clone, 0, 0, 0, 0, 0) == 0) {
			syscall(SYS_prctl, PR_SET_NAME, "pem-detach");
			syscall(SYS_setsid);
			close_others(fds, count);
		}
		for (;;)
			syscall(SYS_exit_group, 0);
	}
	while (child > 0 && syscall(SYS_wait4, child, NULL, __WALL, NULL) < 0 && errno == EINTR)
		;
}
