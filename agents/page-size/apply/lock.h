/* SPDX-License-Identifier: MIT */
/*
 * lock.h - a lock for code inside an allocator: no C library lock, and it survives fork
 *
 * A thread that forks holds all locks. Handlers that the program registered with pthread_atfork may
 * run meanwhile, in that thread, and may allocate: for this one thread the locks are open.
 *
 * A handler of a signal may allocate while the thread that it interrupted holds a lock, or leave by
 * longjmp, so that the lock is never released. With one thread that is noticed: the lock is not
 * taken, and the caller does without.
 */
#ifndef PAGE_APPLY_LOCK_H
#define PAGE_APPLY_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/single_threaded.h>

struct lock {
	uint32_t state; /* 0: free, 1: held, 2: held, and others wait */
	bool is_forks; /* the thread that forks has taken it */
};

/* What tells the thread that forks; 0: none does. Written with all locks held. */
extern uintptr_t lock__forking;

bool lock__wait(struct lock *lock);
void lock__wake(struct lock *lock);
/* Different for each thread, and the same in a forked child. */
uintptr_t lock__self(void);

/* false: this thread holds it already, further down its stack; it is not to be released then. */
static inline bool lock__take(struct lock *lock)
{
	uint32_t none = 0;

	/* While there is one thread, an atomic operation would be most of the cost. */
	if (__libc_single_threaded && !lock->state) {
		lock->state = 1;
		return true;
	}
	/* The acquire pairs with the release in lock__release. */
	return __atomic_compare_exchange_n(&lock->state, &none, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED) ||
	       lock__wait(lock);
}

/* The same, but false also if another thread holds it. A handler of a signal may call it. */
static inline bool lock__try(struct lock *lock)
{
	uint32_t none = 0;

	return __atomic_compare_exchange_n(&lock->state, &none, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static inline void lock__release(struct lock *lock)
{
	if (__atomic_load_n(&lock__forking, __ATOMIC_RELAXED))
		return; /* the thread that forks is the only one that can be here */
	if (__libc_single_threaded) {
		lock->state = 0;
		return;
	}
	if (__atomic_exchange_n(&lock->state, 0, __ATOMIC_RELEASE) == 2)
		lock__wake(lock);
}

/*
 * Allocating is no point where a thread may be cancelled, but opening and reading a file is: a
 * thread that were cancelled there would leave locks held. Returns what ends it.
 */
static inline int lock__begin_files(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void lock__end_files(int state)
{
	pthread_setcancelstate(state, NULL);
}

/* Around fork, which a handler of a signal may call, too. */
static inline void lock__before_fork(struct lock *lock)
{
	lock->is_forks = lock__take(lock);
}

static inline void lock__after_fork(struct lock *lock, bool is_child)
{
	if (!lock->is_forks)
		return;
	if (is_child)
		lock->state = 0;
	else
		lock__release(lock);
}

#endif
