/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread.c - the thread of a session's asynchronous callbacks: when it reads events, and how it
 * waits
 *
 * While events flow, the thread reads them by the clock, and producers do not know of it. After
 * PEM_QUIET_TURNS turns without any event it goes to sleep: by then reading has cost as much as
 * going to sleep and being woken does.
 *
 *	thread						producer, in notify, of an event with
 *							PEM_ACTION_WAKE
 *	  PEM_ACTION_WAKE to the action words		  commit the record
 *	  page->wake becomes odd			  fence WA
 *	  fence WA					  page->wake is odd? one of those who find
 *							  it so adds 1,
 *	  look at the lanes				     and wakes the thread
 *	  futex wait, unless page->wake has changed
 *
 * The fences are a pair: the producer sees the odd word, or the thread sees the record. A producer
 * may have loaded its action word before the thread changed it. Then the producer commits without
 * reading page->wake. It is in the middle of an event, so it is running or preempted there. For
 * such a record the thread reads again after 1, 4, 16 ms and so on, up to a second.
 *
 * The wait by the clock uses two timers that are due in turn. Setting a timer while an earlier one
 * is pending does not write the processor's timer. Writing it is most of the cost of a short sleep
 * in a virtual machine.
 */
#include "core/demand.h"
#include "callbacks/callbacks.h"
#include "chunks/chunks.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "delivery/delivery.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "util.h"

#include <pem/clock.h>

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define QUIET_TURNS 20u
#define PERIOD_NS_MAX 10000000u /* a default pool lasts for 68 ms at full speed */
#define PERIOD_NS_MIN 10000u
/* The time from a record's clock to its commit, unless its thread is preempted in between. */
#define SLACK_NS 1000u
/* The time between searches for new and ended processes, if no thread polls the session. */
#define UPDATE_NS 100000000u
#define SCAN_NS_FIRST 1000000u
#define SCAN_NS_LAST 1000000000u
#define SLICE_NS 100000u

uint64_t pem_async__period_ns(uint64_t max_delay_us)
{
	uint64_t ns;

	if (max_delay_us > PERIOD_NS_MAX / 750)
		return PERIOD_NS_MAX;
	ns = max_delay_us * 750; /* a quarter is left for waking up */
	return ns < PERIOD_NS_MIN ? PERIOD_NS_MIN : ns;
}

/* --- the thread among others --- */

/*
 * Ask for a short time slice. Linux 6.12 and later give it to ordinary threads: on a busy CPU a
 * thread that asks for less time gets it sooner. Other kernels ignore this.
 */
static void ask_for_short_slices(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {0};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || attr.policy != SCHED_OTHER)
		return;
	attr.flags = 0;
	attr.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void set_up_thread(struct pem_async *a)
{
	prctl(PR_SET_NAME, "pem-callback");
	prctl(PR_SET_TIMERSLACK, 1ul);
	ask_for_short_slices();
	pem_session__lock(a->session);
	a->tid = (uint32_t)syscall(SYS_gettid);
	pem_session__unlock(a->session);
}

/* --- waiting --- */

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

static void set_timers(struct pem_async *a, uint64_t period_ns)
{
	uint64_t now = pem_monotonic_ns();
	struct itimerspec due = {.it_interval = to_timespec(2 * period_ns)};
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (a->timer[i] < 0)
			a->timer[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		due.it_value = to_timespec(now + (i + 1) * period_ns);
		timerfd_settime(a->timer[i], TFD_TIMER_ABSTIME, &due, NULL);
	}
	a->turn = 0;
	a->timer_period_ns = period_ns;
}

static void wait_period(struct pem_async *a, uint64_t period_ns)
{
	struct timespec pause = to_timespec(period_ns);
	uint64_t times;

	if (a->timer_period_ns != period_ns)
		set_timers(a, period_ns);
	if (read(a->timer[a->turn], &times, sizeof(times)) != sizeof(times))
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL); /* no descriptors left */
	a->turn ^= 1;
}

static void futex_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	struct timespec timeout = to_timespec(timeout_ns);

	syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

/* --- working --- */

uint64_t pem_async__slack(const struct pem_session *s)
{
	uint64_t ns = SLACK_NS;

	if (s->async->follows_sources)
		ns += pem_clock_sync__error_ns(&s->clock);
	return ns * pem_clock__hz() / 1000000000u;
}

/* Find new and ended processes. */
static void update(struct pem_session *s, struct pem_async *a)
{
	/* pe */
	uint32_t ready = __atomic_load_n(&s->page->pools_ready, __ATOMIC_ACQUIRE);
	uint64_t now = pem_monotonic_ns();

	if (ready != a->pools_seen)
		pem_session__scan_producers(s);
	a->pools_seen = ready;
	if (now < a->next_update_ns)
		return;
	a->next_update_ns = now + UPDATE_NS;
	if (now > s->chunks->next_scan_ns)
		pem_session__update_processes(s, now);
	/* Processes that read the rules meanwhile may have set PEM_ACTION_WAKE again. */
	if (!a->asleep)
		pem_session__set_wake(s, false);
}

/* Read all records and call the functions for them. Returns the number of records handled. */
static size_t take_turn(struct pem_async *a)
{
	struct pem_session *s = a->session;
	uint64_t horizon;
	size_t count;

	pem_session__lock(s);
	horizon = pem_clock(); /* read first: an older record is committed by now, or late */
	update(s, a);
	pem_async__collect_all(s);
	if (a->follows_sources)
		pem_session__drain_sources(s, false);
	horizon -= pem_async__slack(s);
	/* Collected records are lost where no callback is enabled. They need no order. */
	if (!a->enabled_count)
		horizon = UINT64_MAX;
	pem_async__swap(a);
	pem_session__unlock(s);
	count = pem_async__call(a, horizon);
	/* YB */
	if (!a->closed && horizon != UINT64_MAX)
		__atomic_store_n(&a->called_before, horizon, __ATOMIC_RELEASE);
	return count;
}

/* Has the thread no work: does it stop, or is no callback enabled? */
static bool is_idle(struct pem_async *a)
{
	bool idle;

	pem_async__lock(a);
	idle = a->stop || !a->enabled_count;
	pem_async__unlock(a);
	return idle;
}

static uint64_t period_of(struct pem_async *a)
{
	uint64_t period;

	pem_session__lock(a->session);
	period = a->period_ns;
	pem_session__unlock(a->session);
	return period;
}

static void set_asleep(struct pem_session *s, bool asleep)
{
	struct pem_demand *demand;
	size_t i;

	s->async->asleep = asleep;
	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand; demand = demand->next)
			demand->wake = asleep && demand->async;
	}
}

/*
 * Is there more than one directory? Processes of further directories do not wake this thread. They
 * change a word on their directory's own page, and before Linux 5.16 a thread can wait for one
 * futex only.
 */
static bool is_spread(struct pem_async *a)
{
	bool spread;

	pem_session__lock(a->session);
	spread = a->session->dirs->first && a->session->dirs->first->next;
	pem_session__unlock(a->session);
	return spread;
}

/*
 * Let events wake the thread from here on. Returns false where some event cannot. *value is the
 * value of page->wake while the thread sleeps.
 */
static bool lie_down(struct pem_async *a, uint32_t *value)
{
	struct pem_session *s = a->session;
	bool all;

	pem_session__lock(s);
	set_asleep(s, true);
	all = pem_session__set_wake(s, true) && !a->follows_sources;
	/* WB */
	if (all)
		*value = __atomic_or_fetch(&s->page->wake, 1, __ATOMIC_SEQ_CST);
	/* WA, wa */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	pem_session__unlock(s);
	return all;
}

static void get_up(struct pem_async *a)
{
	struct pem_session *s = a->session;
	uint32_t value;

	pem_session__lock(s);
	set_asleep(s, false);
	value = __atomic_load_n(&s->page->wake, __ATOMIC_RELAXED);
	/* WB */
	if (value & 1)
		__atomic_compare_exchange_n(&s->page->wake, &value, value + 1, 0, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED);
	pem_session__set_wake(s, false);
	pem_session__unlock(s);
	a->timer_period_ns = 0; /* their times are long past */
}

static void sleep_until_woken(struct pem_async *a)
{
	uint64_t search_ns = SCAN_NS_FIRST;
	uint32_t *wake = &a->session->page->wake, value;

	if (lie_down(a, &value)) {
		/*
		 * wb: take_turn runs once more for records from before WAKE was set; later turns
		 * are for records that woke the thread, or whose thread was preempted
		 */
		while (!take_turn(a) && !is_idle(a) && !is_spread(a) &&
		       __atomic_load_n(wake, __ATOMIC_SEQ_CST) == value) {
			futex_wait(wake, value, search_ns);
			search_ns = search_ns * 4 < SCAN_NS_LAST ? search_ns * 4 : SCAN_NS_LAST;
			/*
			 * wb: new providers may have come, and sources that wake nobody; their kick
			 * may have come just before
			 */
			if (__atomic_load_n(wake, __ATOMIC_SEQ_CST) == value &&
			    !lie_down(a, &value))
				break;
		}
	}
	if (!a->closed)
		get_up(a);
}

/*
 * No callback is enabled. Wait until one is, or until collected records have to be counted as lost.
 * Returns false where the session ends.
 */
static bool wait_for_work(struct pem_async *a)
{
	bool stop;

	pem_async__lock(a);
	while (!a->stop && !a->enabled_count && !a->left_over)
		pthread_cond_wait(&a->changed, &a->lock);
	a->left_over = false;
	stop = a->stop;
	pem_async__unlock(a);
	return !stop;
}

static void *run(void *arg)
{
	struct pem_async *a = arg;
	unsigned quiet = 0;

	set_up_thread(a);
	while (wait_for_work(a)) {
		quiet = take_turn(a) ? 0 : quiet + 1;
		if (a->closed)
			break;
		if (quiet < QUIET_TURNS || is_spread(a)) {
			wait_period(a, period_of(a));
		} else {
			sleep_until_woken(a);
			quiet = 0;
		}
	}
	if (a->closed)
		pem_async__destroy(a);
	return NULL;
}

int pem_async__start(struct pem_async *a)
{
	/*
	 * Signals that the thread itself may raise: in shared memory that its owner truncated
	 * (fault.c), or in a function.
	 */
	static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t held, before;
	int result;
	size_t i;

	if (a->started)
		return 0;
	sigfillset(&held);
	for (i = 0; i < PEM_ARRAY_SIZE(synchronous); i++)
		sigdelset(&held, synchronous[i]);
	pthread_sigmask(SIG_SETMASK, &held, &before);
	result = -pthread_create(&a->thread, NULL, run, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	a->started = !result;
	return result;
}

void pem_async__stop(struct pem_async *a)
{
	if (!a->started)
		return;
	pem_async__lock(a);
	a->stop = true;
	pthread_cond_broadcast(&a->changed);
	pem_async__unlock(a);
	pem_session__lock(a->session);
	pem_async__kick(a->session);
	pem_session__unlock(a->session);
	pthread_join(a->thread, NULL);
	a->started = false;
}
