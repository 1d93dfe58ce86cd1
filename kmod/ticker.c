// SPDX-License-Identifier: GPL-2.0-only
/*
 * ticker.c - periodic samples, taken in a thread that the session's user lends (PEM_KMOD_WORK)
 *
 * The module has no thread of its own. So the kernel accounts for the time of sampling, and limits
 * it, as for all else in that thread (control group, nice value, CPU affinity, resource limits). No
 * user gets more of the machine than the user's threads may have.
 *
 * A ticker keeps to the clock. A tick that comes late or takes long does not delay later ticks, and
 * the ticks that fall into its time are left out. But a ticker rests at least as long as it has
 * worked, so no interval makes it take more than half a CPU.
 *
 * Synchronization: the lock protects the list and the members that next_of() compares. One thread
 * works at a time. A ticker lives as long as it is in the list or its tick runs. No thread waits
 * for the working thread, because a target can block it as long as it likes (mmap_lock). STOP and
 * remove mark a tick as over. A tick checks this mark with preemption off before it writes a
 * record. Callers of STOP and remove wait for an RCU grace period. After that the tick writes no
 * record any more.
 */
#include "sampling.h"

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

static void put(struct pem_ticker *ticker)
{
	if (refcount_dec_and_test(&ticker->refs))
		ticker->free(ticker);
}

/* Wake the working thread. The caller holds the lock. */
static void tell_worker(struct pem_tickers *all)
{
	WRITE_ONCE(all->changes, all->changes + 1);
	wake_up_interruptible(&all->wait);
}

void pem_tickers__init(struct pem_tickers *all)
{
	spin_lock_init(&all->lock);
	INIT_LIST_HEAD(&all->list);
	init_waitqueue_head(&all->wait);
}

void pem_tickers__add(struct pem_tickers *all, struct pem_ticker *ticker)
{
	refcount_set(&ticker->refs, 1);
	ticker->all = all;
	spin_lock(&all->lock);
	list_add(&ticker->list, &all->list);
	tell_worker(all);
	spin_unlock(&all->lock);
}

void pem_tickers__remove(struct pem_ticker *ticker)
{
	struct pem_tickers *all = ticker->all;

	spin_lock(&all->lock);
	WRITE_ONCE(ticker->is_removed, true);
	list_del(&ticker->list);
	spin_unlock(&all->lock);
	put(ticker);
}

void pem_tickers__run(struct pem_tickers *all, bool on)
{
	spin_lock(&all->lock);
	all->is_running = on;
	WRITE_ONCE(all->run, all->run + 1);
	tell_worker(all);
	spin_unlock(&all->lock);
}

bool pem_ticker__is_over(const struct pem_ticker *ticker)
{
	return READ_ONCE(ticker->is_removed) || READ_ONCE(ticker->all->run) != ticker->run ||
	       fatal_signal_pending(current);
}

/* --- the thread that works --- */

/* The ticker whose tick is due next, or NULL. The caller holds the lock. */
static struct pem_ticker *next_of(struct pem_tickers *all)
{
	struct pem_ticker *ticker, *first = NULL;

	list_for_each_entry(ticker, &all->list, list) {
		if (ticker->run != all->run) {
			ticker->run = all->run;
			ticker->next_ns = 0;
			ticker->is_done = false;
		}
		if (!ticker->is_done && (!first || ticker->next_ns < first->next_ns))
			first = ticker;
	}
	return first;
}

static void tick(struct pem_tickers *all, struct pem_ticker *ticker)
{
	u64 begun = ktime_get_ns(), next = ticker->next_ns ? ticker->next_ns : begun, rested;
	bool is_done = !ticker->tick(ticker);

	rested = 2 * ktime_get_ns() - begun;
	next += ticker->interval_ns;
	if (next < rested)
		next += DIV64_U64_ROUND_UP(rested - next, ticker->interval_ns) *
			ticker->interval_ns;
	spin_lock(&all->lock);
	ticker->next_ns = next;
	ticker->is_done = is_done;
	spin_unlock(&all->lock);
	put(ticker);
}

/*
 * Run the next tick if it is due. Else wait until it is due, something changes, or a signal comes.
 */
static void work_once(struct pem_tickers *all)
{
	struct pem_ticker *ticker;
	u64 now = ktime_get_ns();
	ktime_t left = KTIME_MAX;
	unsigned int changes;
	bool is_due;

	spin_lock(&all->lock);
	changes = all->changes;
	ticker = next_of(all);
	is_due = ticker && ticker->next_ns <= now;
	if (is_due)
		refcount_inc(&ticker->refs);
	else if (ticker)
		left = ns_to_ktime(ticker->next_ns - now);
	spin_unlock(&all->lock);
	if (is_due)
		tick(all, ticker);
	else
		(void)wait_event_interruptible_hrtimeout(all->wait,
							 READ_ONCE(all->changes) != changes, left);
}

int pem_tickers__work(struct pem_tickers *all)
{
	unsigned int run;
	int rc = 0;

	spin_lock(&all->lock);
	run = all->run;
	if (!all->is_running || all->is_worked)
		rc = -EBUSY;
	else
		all->is_worked = true;
	spin_unlock(&all->lock);
	if (rc)
		return rc;
	while (READ_ONCE(all->run) == run && !signal_pending(current)) {
		work_once(all);
		cond_resched();
	}
	rc = READ_ONCE(all->run) == run ? -ERESTARTSYS : 0;
	spin_lock(&all->lock);
	all->is_worked = false;
	spin_unlock(&all->lock);
	return rc;
}
