/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * leave_behind.c - perf events, and links of many places, ended without waiting for it
 *
 * To take a program off a perf event, and to end that, the kernel waits until no CPU can be in it
 * any more: some tens of milliseconds each, and the ends one after the other, in whatever thread or
 * process: hundreds take a minute. Nothing depends on it, for a program of which nothing is wanted
 * ends at once. So processes that hold nothing else take them, and end: links of many places
 * (multi.c) end beside each other, perf events one by one whoever holds them.
 *
 * They are not forked as programs are, whose handlers, ours among them, would take them for one of
 * theirs; they run nothing but system calls, and no handler of a signal, for they have all blocked;
 * and they are grandchildren, so that nobody is told of their end. The child's copy of our memory
 * is theirs together: a copy for each would take a program of a gigabyte some twenty milliseconds
 * more each, and one that shared ours would keep it for as long as it takes them.
 */
#define _GNU_SOURCE
#include "attach.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOLDERS_MAX 16u
#define SHARE_LEAST 8u
#define STACK_BYTES 65536u

struct holder {
	const int *fds;
	size_t count;
	int reads;
};

static int compare(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

/*
 * Close all descriptors but these, of which the first may stay, too: pipes that others read to
 * their end, locks that say that we live.
 */
static void close_others(const int *fds, size_t count, unsigned from)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if ((unsigned)fds[i] > from)
			syscall(SYS_close_range, from, (unsigned)fds[i] - 1, 0);
		from = (unsigned)fds[i] + 1;
	}
	syscall(SYS_close_range, from, ~0u, 0);
}

/*
 * A process that holds these, and ends when nobody else does: when nothing can be written any more
 * to what it reads.
 */
static int hold(void *arg)
{
	const struct holder *h = arg;
	unsigned from = 0;
	char byte;

	syscall(SYS_prctl, PR_SET_NAME, "pem-detach");
	syscall(SYS_setsid);
	if (h->reads >= 0 && h->fds[0] != 0 &&
	    (h->reads == 0 || syscall(SYS_dup3, h->reads, 0, 0) == 0))
		from = 1;
	close_others(h->fds, h->count, from);
	if (from)
		syscall(SYS_read, 0, &byte, 1);
	return 0; /* which ends the process, and runs nothing of the program's */
}

/* The child: begin all that hold a share each. What is on its stack stays there for them. */
static void begin_holders(const int *fds, size_t count, size_t share, int reads)
{
	struct holder holders[HOLDERS_MAX];
	char *stacks = mmap(NULL, HOLDERS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	size_t at, i;

	for (at = i = 0; stacks != MAP_FAILED && at < count; at += share, i++) {
		holders[i] =
			(struct holder){&fds[at], count - at < share ? count - at : share, reads};
		clone(hold, stacks + (i + 1) * STACK_BYTES, CLONE_VM, &holders[i]);
	}
	for (;;)
		syscall(SYS_exit_group, 0);
}

int pem_leave_behind(int *fds, size_t count)
{
	size_t share = (count + HOLDERS_MAX - 1) / HOLDERS_MAX;
	sigset_t all, before;
	int ends[2];
	long child;

	if (!count)
		return -1;
	if (pipe2(ends, O_CLOEXEC))
		ends[0] = ends[1] = -1;
	if (share < SHARE_LEAST)
		share = SHARE_LEAST;
	qsort(fds, count, sizeof(*fds), compare);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (child == 0)
		begin_holders(fds, count, share, ends[0]);
	while (child > 0 && syscall(SYS_wait4, child, NULL, __WALL, NULL) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (ends[0] >= 0)
		close(ends[0]);
	return ends[1];
}
