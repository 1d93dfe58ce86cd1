/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * leave_behind.c - closes perf events, and links of many places, without waiting
 *
 * When a program is detached from a perf event and the event is closed, the kernel waits until no
 * CPU can be in it any more. That takes some tens of milliseconds for each. The waits come one
 * after the other, in whatever thread or process, so hundreds of events take a minute. Nothing
 * depends on them, because a program without a demand returns at once. So the descriptors are
 * handed to helper processes that hold nothing else and then end. Links of many places (multi.c)
 * end in parallel. Perf events end one by one in any process.
 *
 * The helpers are not made by fork(). Handlers of fork, also this library's, would treat them as
 * processes of the program. A helper makes only system calls and runs no signal handler, because
 * all signals are blocked. Helpers are grandchildren, so the program gets no notice of their end.
 * All helpers share the child's copy of the program's memory. A copy for each would take some
 * twenty milliseconds more each in a program of a gigabyte. If a helper shared the program's own
 * memory, that memory would be kept as long as the helper lives.
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
 * Close all descriptors except these (and descriptor 0 if from is 1). Others would keep a pipe open
 * that another process reads to its end, or a lock that says that this process lives.
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
 * The helper process. It holds these descriptors. It ends when its read returns: after the pipe's
 * write end is closed everywhere.
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
	return 0; /* ends the helper and runs no code of the program */
}

/*
 * Runs in the child: start the helpers, each with a share of the descriptors. Their data stays on
 * this stack.
 */
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
