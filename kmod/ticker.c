// SPDX-License-Identifier: GPL-2.0
/*
 * ticker.c - a thread that looks at something now and then
 *
 * It keeps to the clock: a tick that comes late or takes long makes no later one later, and those that it took the time of
 * are left out. But it rests at least as long as it has worked, so that no rate asked for takes more than half a CPU.
 */
#include "own.h"

#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched.h>

static void sleep_until(ktime_t when)
{
	/* Before the question, so that who stops the thread wakes it (kthread_stop). */
	set_current_state(TASK_IDLE);
	if (!kthread_should_stop())
		schedule_hrtimeout_range(&when, 0, HRTIMER_MODE_ABS);
	__set_current_state(TASK_RUNNING);
}

static void sleep_until_stopped(void)
{
	set_current_state(TASK_IDLE);
	while (!kthread_should_stop()) {
		schedule();
		set_current_state(TASK_IDLE);
	}
	__set_current_state(TASK_RUNNING);
}

static int run(void *arg)
{
	struct pem_ticker *ticker = arg;
	u64 next = ktime_get_ns(), begun, rested;

	while (!kthread_should_stop()) {
		begun = ktime_get_ns();
		if (begun < next) {
			sleep_until(ns_to_ktime(next));
			continue;
		}
		if (!ticker->tick(ticker)) {
			sleep_until_stopped();
			break;
		}
		rested = 2 * ktime_get_ns() - begun;
		next += ticker->interval_ns;
		if (next < rested)
			next += DIV64_U64_ROUND_UP(rested - next, ticker->interval_ns) *
				ticker->interval_ns;
	}
	return 0;
}

int pem_ticker__start(struct pem_ticker *ticker, const char *name)
{
	struct task_struct *thread = kthread_run(run, ticker, "%s", name);

	if (IS_ERR(thread))
		return PTR_ERR(thread);
	ticker->thread = thread;
	return 0;
}

bool pem_ticker__is_stopping(void)
{
	return kthread_should_stop();
}

void pem_ticker__stop(struct pem_ticker *ticker)
{
	if (ticker->thread)
		kthread_stop(ticker->thread);
	ticker->thread = NULL;
}
