/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stall.c - users whose files keep the session waiting
 *
 * The session maps files of other users, and a touch of that memory may wait. While a user punches
 * a hole into a file, each touch of a page there waits until the kernel has taken the hole out of
 * every mapping of the file. The user may have made tens of thousands of mappings. Nothing ends
 * such a wait early. A helper that its user stops and continues answers late, too.
 *
 * The session measures how long it waits for each user, and leaves out a user for whom it has
 * waited too long. Waiting is time in which the thread neither ran nor was ready to run, by
 * /proc/thread-self/schedstat. If that file can't be read, no user is left out.
 *
 * Not here: cutting memory off (fault.c), limits and shares of time (limits.c).
 */
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/fault.h"
#include "dirs/dirs.h"
#include "dirs/helpers.h"
#include "dirs/limits.h"
#include "util.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Shorter waits do not count. They happen on any busy machine: a page was swapped out, a lock was
 * held.
 */
#define STALL_NS 20000000u
/*
 * A user may keep the session waiting for one STALL_SHARE-th of the time, and for STALLED_NS_MAX
 * besides.
 */
#define STALL_SHARE 20u
#define STALLED_NS_MAX 1000000000u
/*
 * One wait is not enough to leave a user out: a recorder that is stopped in the middle of a user's
 * turn waits once, through no fault of the user.
 */
#define STALLS_MIN 2u

/* Return how long this thread has run or was ready to run, in ns; 0: not known. */
static uint64_t ran_ns(struct pem_stall_clock *clock)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char text[96], *end;
	ssize_t got;

	if (clock->tid != tid) {
		if (clock->tid)
			close(clock->fd);
		clock->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
		clock->tid = clock->fd < 0 ? 0 : tid;
	}
	got = clock->tid ? pread(clock->fd, text, sizeof(text) - 1, 0) : 0;
	if (got <= 0)
		return 0;
	text[got] = 0;
	return strtoull(text, &end, 10) + strtoull(end, NULL, 10);
}

uint64_t pem_dir__begin(struct pem_session *s, const struct pem_dir *dir)
{
	struct pem_stall_clock *clock = &s->dirs->stall_clock;

	if (!dir->number)
		return pem_monotonic_ns();
	clock->ran_ns = ran_ns(clock);
	clock->written_ns = s->dirs->written_ns;
	return clock->began_ns = pem_monotonic_ns();
}

void pem_session__close_stall_clock(struct pem_session *s)
{
	if (s->dirs->stall_clock.tid)
		close(s->dirs->stall_clock.fd);
	s->dirs->stall_clock.tid = 0;
}

/*
 * Replace all memory mapped from the user by zeroes, so that no touch of it waits. It then counts
 * as cut off (fault.c). Returns the number of processes that this concerns.
 */
static uint64_t cut_all(struct pem_session *s, const struct pem_user *user)
{
	struct pem_dir *dir;

	for (dir = s->dirs->first; dir; dir = dir->next) {
		if (pem_dir__user(s, dir) == user && dir->page)
			pem_fault__cut(dir->page);
	}
	return s->hooks->cut_user(s, user);
}

/* Forget waiting in the past that was within the user's share. */
static void forgive(struct pem_user *user, uint64_t now)
{
	uint64_t share = (now - user->stalled_at_ns) / STALL_SHARE;

	user->stalled_ns = user->stalled_ns > share ? user->stalled_ns - share : 0;
	user->stalled_at_ns = now;
	if (!user->stalled_ns)
		user->stalls = 0;
}

void pem_dir__note_wait(struct pem_session *s, struct pem_dir *dir, uint64_t now)
{
	struct pem_stall_clock *clock = &s->dirs->stall_clock;
	struct pem_user *user = pem_dir__user(s, dir);
	uint64_t taken = now - clock->began_ns, before = clock->ran_ns, ran;

	if (!user || user->is_left_out || !before || taken < STALL_NS)
		return;
	clock->ran_ns = ran_ns(clock);
	ran = clock->ran_ns - before + s->dirs->written_ns - clock->written_ns;
	/* The next call does not charge this time again. */
	clock->written_ns = s->dirs->written_ns;
	clock->began_ns = now;
	if (ran + STALL_NS > taken)
		return;
	forgive(user, now);
	user->stalled_ns += taken - ran;
	if (++user->stalls < STALLS_MIN || user->stalled_ns <= STALLED_NS_MAX)
		return;
	user->is_left_out = true;
	pem_dir__exceed(s, dir, PEM_EXCESS_STALLS, cut_all(s, user));
	pem_session__end_keepers(s, user);
}
