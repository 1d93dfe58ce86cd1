/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gone.c - processes that have ended: their last records, their account, their files */
#include "chunks/chunks.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "cost/cost.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "util.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define SCAN_NS 20000000u /* time between two scans for new and gone processes */
/*
 * The pause after gathering losses, as a multiple of the time that it took. Programs may have
 * thousands of files to read.
 */
#define GATHER_PAUSE 50

/*
 * Remove the control file of a producer whose owner can't do so: it was killed, or another image
 * with another file has replaced it.
 */
static void remove_control(struct pem_session *s, const struct pem_producer *p)
{
	if (!p->member)
		return;
	pem_dir__remove_control(p->dir, p->member->name, p->member->inode);
	pem_session__forget_member(s, p->member);
}

static void say_cut(struct pem_session *s, const struct pem_producer *p)
{
	pem_session__say(
		s, PEM_LOG_WARNING,
		"process %u (%s) has cut off its shared memory: what was still in there is "
		"lost, and it is observed no more",
		p->pid, p->comm);
}

static bool is_gone(const struct pem_producer *p)
{
	struct pollfd pollfd = {.fd = p->pidfd, .events = POLLIN};

	if (p->pidfd >= 0)
		return poll(&pollfd, 1, 0) == 1;
	return p->is_found && kill((pid_t)p->pid, 0) && errno == ESRCH;
}

/*
 * Take a producer's last records and counts, and remove its files. False: its directory has had its
 * turn, and the next turn goes on here.
 */
static bool take_leave(struct pem_session *s, struct pem_producer *p)
{
	uint64_t began_ns = pem_dir__begin(s, p->dir);

	if (pem_dir__had_turn(p->dir))
		return false;
	pem_session__count_producer(s, p);
	pem_dir__charge(s, p->dir, began_ns);
	/* pem_session__drain_producer charges its time itself. */
	if (!pem_session__drain_producer(s, p, true))
		return false;
	began_ns = pem_dir__begin(s, p->dir);
	pem_session__account(s, p);
	pem_session__note_pool(s, p);
	pem_session__retire(s, p);
	remove_control(s, p);
	pem_dir__remove_pool(p->dir, p->file);
	pem_dir__charge(s, p->dir, began_ns);
	return true;
}

void pem_session__release_gone(struct pem_session *s)
{
	struct pem_producer **link = &s->processes->producers, *p;
	uint64_t now = pem_monotonic_ns();
	bool done;

	/* fb */
	if (__atomic_load_n(&s->page_cut, __ATOMIC_ACQUIRE) && !s->page_cut_said) {
		s->page_cut_said = 1;
		pem_session__say(s, PEM_LOG_WARNING,
				 "'%s/config' was cut off: processes that start now are not "
				 "observed",
				 s->directory);
	}
	while ((p = *link)) {
		if (!p->dead && is_gone(p))
			p->dead = true;
		/* fb */
		if (__atomic_load_n(&p->cut, __ATOMIC_ACQUIRE) && !p->cut_said) {
			p->cut_said = p->dead = true;
			say_cut(s, p);
		}
		done = p->dead && take_leave(s, p);
		if (!p->dead)
			pem_producer__watch_filter(s, p, now);
		if (!done) {
			link = &p->next;
			continue;
		}
		pem_session__remove_producer(s, link);
		pem_producer__free(p);
	}
}

void pem_session__update_processes(struct pem_session *s, uint64_t now)
{
	uint64_t began_ns;

	pem_session__find_producers(s);
	if (now >= s->dirs->next_gather_ns) {
		began_ns = pem_monotonic_ns();
		pem_session__gather_losses(s);
		s->dirs->next_gather_ns = now + GATHER_PAUSE * (pem_monotonic_ns() - began_ns);
	}
	pem_session__release_gone(s);
	s->chunks->next_scan_ns = now + SCAN_NS;
	pem_session__say_refused(s);
}
