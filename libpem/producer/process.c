/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * process.c - the process lock, fork, the begin and end of a process
 *
 * Other files: providers (providers.c), the control file (control.c), sessions (join.c), applying
 * rules to events (apply.c), making pools (pools.c), threads (thread.c), events (notify.c).
 */
#include "producer/producer.h"
#include "producer/rights.h"
#include "producer/standby.h"
#include "early.h"
#include "runtime_dir.h"
#include "util.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct pem_process pem_process __attribute__((aligned(PEM_PAGE_ALIGN)));
static __thread int cancel_state __attribute__((tls_model("initial-exec")));
static __thread int cancel_type __attribute__((tls_model("initial-exec")));
static sigset_t signal_mask; /* of the lock's holder, before it took the lock */
static bool signals_held; /* by the lock's holder; a restricted holder holds none */

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

/* A child of fork or clone finds all this zero, where wiped_on_fork is true. */
static union {
	struct {
		uint32_t lock; /* tid of the holder, with LOCK_FORKS while it forks; 0: free */
		/*
		 * Not 0: this process has made the state of its joined sessions its own. 0: it is a
		 * new child.
		 */
		uint32_t here;
	};
	uint8_t page[PEM_PAGE_ALIGN];
} life __attribute__((aligned(PEM_PAGE_ALIGN)));
static bool wiped_on_fork PEM_EARLY; /* the kernel zeroes life in a child */
static bool has_begun PEM_EARLY;

#define QUIET_TRIES 20000 /* tries of a restricted thread to take the lock: some 0.1 ms */
/* Tries of any other thread to take the lock from one that forks: a hundred naps, some 10 ms. */
#define FORK_TRIES 6400
#define LOCK_FORKS (1u << 30) /* no thread id has this bit, nor has pem_rights__thread_id() */

bool pem_wipe_on_fork(void *start, size_t bytes)
{
	return !pem_restricted() && !madvise(start, bytes, MADV_WIPEONFORK);
}

uint32_t pem_process__id(void)
{
	return pem_restricted() ? pem_rights__thread_id() : (uint32_t)getpid();
}

/* The id of a process that has one thread and has just started, or was forked. */
static uint32_t started_id(void)
{
	uint32_t id = pem_process__first_id();

	return id ? id : (uint32_t)getpid();
}

void pem_process__begin(void)
{
	if (__atomic_load_n(&has_begun, __ATOMIC_RELAXED))
		return;
	pem_process__find_filter();
	if (!pem_process.pid)
		pem_process.pid = pem_process__id();
	life.here = 1;
	if (!pem_restricted())
		wiped_on_fork = pem_wipe_on_fork(&life, sizeof(life));
	__atomic_store_n(&has_begun, true, __ATOMIC_RELAXED);
}

/*
 * Block signals while the lock is held. A signal handler that forked now would leave a child in the
 * middle of making its parent's pool. The child would then appear as the owner of this pool.
 * Signals that the thread raises by its own instructions cannot be blocked.
 */
static void hold_signals(sigset_t *before)
{
	static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t held;
	size_t i;

	sigfillset(&held);
	for (i = 0; i < PEM_ARRAY_SIZE(synchronous); i++)
		sigdelset(&held, synchronous[i]);
	pthread_sigmask(SIG_BLOCK, &held, before);
}

/*
 * Wait for the lock. Returns false where this thread holds it already. Also returns false in a
 * restricted thread after QUIET_TRIES: waiting longer takes system calls.
 *
 * A thread that forks does not keep the lock for ever. Its fork takes locks of the program and of
 * malloc while it holds this one. A thread that holds one of those locks may wait here, in an
 * event. So the waiting thread takes the lock after a while. If the fork is only slow, its child
 * may see a half-done change of the thread that took the lock. A child of _Fork may see the same.
 */
static bool acquire(uint32_t self, bool restricted)
{
	const struct timespec pause = {0, 50000};
	uint32_t holder = 0;
	unsigned tries = 0;

	/* ka */
	while (!__atomic_compare_exchange_n(&life.lock, &holder, self, 0, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if ((holder & ~LOCK_FORKS) == self || (restricted && tries == QUIET_TRIES))
			return false;
		if (!(holder & LOCK_FORKS) || tries < FORK_TRIES)
			holder = 0;
		tries++;
		if (restricted)
			continue;
		/* A thread that only yields would starve a holder of lower real-time priority. */
		if (tries % 64)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
	return true;
}

void pem_process__defer_cancellation(int *type)
{
	static const struct timespec none;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, type);
	/*
	 * Another thread may have sent the signal that cancels already. Its handler looks only at
	 * the type, and glibc before 2.41 makes the type asynchronous within every cancellation
	 * point, even where cancellation is disabled. The thread would end in the next one, with
	 * the lock. glibc leaves no cancellation point before that signal has come, so here is one.
	 */
	if (*type == PTHREAD_CANCEL_ASYNCHRONOUS && !pem_restricted())
		nanosleep(&none, NULL);
}

bool pem_process__lock(void)
{
	bool restricted;
	sigset_t mask;
	int state, type;

	pem_process__begin();
	restricted = pem_restricted();
	if (!restricted)
		hold_signals(&mask);
	/*
	 * Opening and closing files are cancellation points, but a program must not be cancelled
	 * inside its malloc.
	 */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pem_process__defer_cancellation(&type);
	if (!acquire(pem_rights__thread_id(), restricted)) {
		if (!restricted)
			pthread_sigmask(SIG_SETMASK, &mask, NULL);
		pthread_setcancelstate(state, NULL);
		pthread_setcanceltype(type, NULL);
		return false;
	}
	cancel_state = state;
	cancel_type = type;
	signals_held = !restricted;
	if (!restricted)
		signal_mask = mask;
	if (__builtin_expect(wiped_on_fork && !life.here, 0))
		pem_process__become_child();
	return true;
}

void pem_process__unlock(void)
{
	sigset_t mask = signal_mask;
	int state = cancel_state, type = cancel_type;
	bool held = signals_held;

	/* KA */
	__atomic_store_n(&life.lock, 0, __ATOMIC_RELEASE);
	if (held)
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
	/* This comes last: the thread may be cancelled here. */
	pthread_setcancelstate(state, NULL);
	pthread_setcanceltype(type, NULL);
}

/* --- process life --- */

/*
 * What fork has to restore in this thread. The state of the lock's holder does not serve here:
 * another thread may have taken the lock meanwhile. In the child, another library's handler may
 * take the lock first.
 */
static __thread struct {
	uint64_t signals; /* signals 1 to 64, all that the kernel has */
	/* The lock's word; 0 where a signal handler forked in the middle of the library. */
	uint32_t lock;
	int cancel_state, cancel_type;
	bool signals_held;
	/* The library's state is as it was when the process came on standby: no lock is taken. */
	bool is_unchanged;
	bool child_waits; /* the child can begin on standby */
} at_fork __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
	int saved_errno = errno;
	bool locked, unchanged;

	/* The child may take a filter and then have its first event. */
	if (pem_standby__is_woken())
		pem_standby__leave();
	unchanged = pem_standby__is_alone() && (!__atomic_load_n(&has_begun, __ATOMIC_RELAXED) ||
						!__atomic_load_n(&life.lock, __ATOMIC_RELAXED));
	/* Each page that is written here is copied, in each fork. */
	if (at_fork.is_unchanged != unchanged)
		at_fork.is_unchanged = unchanged;
	if (unchanged) {
		if (at_fork.lock)
			at_fork.lock = 0;
		return;
	}
	locked = pem_process__lock();
	/* A thread that waits for the lock tries to change the word. */
	at_fork.lock = locked ? __atomic_load_n(&life.lock, __ATOMIC_RELAXED) | LOCK_FORKS : 0;
	errno = saved_errno;
	if (!locked)
		return;
	at_fork.child_waits = wiped_on_fork && pem_standby__before_fork();
	errno = saved_errno;
	at_fork.cancel_state = cancel_state;
	at_fork.cancel_type = cancel_type;
	at_fork.signals_held = signals_held;
	memcpy(&at_fork.signals, &signal_mask, sizeof(at_fork.signals));
	/* KA: this comes last, since another thread may take the lock from here on */
	__atomic_store_n(&life.lock, at_fork.lock, __ATOMIC_RELEASE);
}

static void restore_after_fork(void)
{
	sigset_t mask;

	if (at_fork.signals_held) {
		memset(&mask, 0, sizeof(mask));
		memcpy(&mask, &at_fork.signals, sizeof(at_fork.signals));
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
	}
	/* The thread may be cancelled here. */
	pthread_setcancelstate(at_fork.cancel_state, NULL);
	pthread_setcanceltype(at_fork.cancel_type, NULL);
}

static void after_fork_in_parent(void)
{
	uint32_t word = at_fork.lock;

	if (!word)
		return;
	/* KA: nothing is stored where another thread took the lock */
	__atomic_compare_exchange_n(&life.lock, &word, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	restore_after_fork();
}

/*
 * Make this process's state its own, in a child. A child has its own address space but its parent's
 * shared mappings. So it gets copies of the control pages in a control file of its own. Its first
 * event makes its own pool. Lock held. A child of fork comes here at once. A child of _Fork or
 * clone comes here with its first event that reaches the library. The parent's threads may have
 * been anywhere when such a child was made.
 */
void pem_process__become_child(void)
{
	bool published = pem_process.control != NULL;

	if (pem_standby__start_over()) {
		life.here = 1;
		return;
	}
	pem_process.parent_pid = pem_restricted() ? pem_process.pid : 0;
	__atomic_store_n(&pem_process.pid, pem_process__id(), __ATOMIC_RELAXED);
	pem_process.pid_namespace = 0; /* it may have one of its own */
	pem_thread__after_fork();
	pem_process__unshare_control();
	pem_process__inherit();
	if (published)
		pem_process__publish();
	life.here = 1;
}

static void after_fork_in_child(void)
{
	bool is_own; /* is the state the child's already, after another library's handler? */
	int saved_errno;

	pem_rights__end_dispatch();
	/* Another library's handler of fork may have had an event that woke the process. */
	if (at_fork.is_unchanged && pem_process__on_standby()) {
		__atomic_store_n(&pem_process.pid, started_id(), __ATOMIC_RELAXED);
		if (pem_process.pid_namespace) /* the page is not copied otherwise */
			pem_process.pid_namespace = 0;
		return;
	}
	saved_errno = errno;
	is_own = wiped_on_fork && life.here;
	if (at_fork.lock && at_fork.child_waits && !is_own &&
	    pem_standby__begin_child(started_id())) {
		restore_after_fork();
		return;
	}
	life.lock = pem_rights__thread_id();
	if (!is_own)
		pem_process__become_child();
	life.lock = 0;
	if (at_fork.lock)
		restore_after_fork();
	errno = saved_errno;
}

__attribute__((constructor(101))) static void start(int argc, char **argv, char **environment)
{
	const char *session;
	int saved_errno = errno;

	(void)argc, (void)argv;
	/* The C library sets it in its own constructor, which may run later: to the same. */
	if (!environ)
		environ = environment;
	session = pem_variable("PEM_SESSION");
	pem_process__read_known_filters();
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
	pem_process.pid = pem_process__had_one_thread() ? started_id() : (uint32_t)getpid();
	if (session && session[0] == '/')
		pem_standby__defer(session);
	if (pem_process.providers)
		pem_standby__join_deferred();
	errno = saved_errno;
}

/* After attach (libc/attach.c), which knows whether the process can be on standby. */
__attribute__((constructor(103))) static void join(void)
{
	int saved_errno = errno;

	pem_standby__join_deferred();
	errno = saved_errno;
}

void pem_rights__ends(void)
{
	int saved_errno;

	/* A child of clone has another pid. It may have no thread-local memory, so no errno. */
	if (!pem_process.control || !pem_process.control_path[0] || pem_restricted() ||
	    pem_process.pid != (uint32_t)getpid())
		return;
	saved_errno = errno;
	unlink(pem_process.control_path);
	errno = saved_errno;
}

__attribute__((destructor(101))) static void finish(void)
{
	pem_rights__ends();
}
