// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * lock.c - mutexes, reader-writer locks, condition variables, barriers and semaphores, with their
 * events
 *
 * While a lock's events are wanted, the wrapper tries the lock first. If that fails with EBUSY, the
 * call will wait, and only this is shown as a wait. For every type of mutex, trying and then
 * locking has the same result as locking, also if the owner locks again.
 *
 * Not here: spin locks (a wrapper would cost more than the lock), thread joins (thread.c), C11's
 * mtx_ and cnd_, which the C library serves without its symbol table.
 */
#include "libc/next.h"

#include "stubs/libc_lock.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

/* Return whether the caller has the lock now. The owner before may have died with it. */
static int is_got(int rc)
{
	return rc == 0 || rc == EOWNERDEAD;
}

/* --- mutexes --- */

static int mutex_enabled(void)
{
	return pem_enabled_lock_mutex_wait_begin() | pem_enabled_lock_mutex_wait_end() |
	       pem_enabled_lock_mutex_acquire();
}

static int mutex_begin(pthread_mutex_t *mutex, uintptr_t site)
{
	int rc = PEM_LIBC_NEXT(pthread_mutex_trylock)(mutex);

	if (rc == EBUSY)
		pem_notify_lock_mutex_wait_begin((uintptr_t)mutex, site);
	return rc;
}

static int mutex_end(pthread_mutex_t *mutex, uintptr_t site, int waited, int rc)
{
	if (waited)
		pem_notify_lock_mutex_wait_end((uintptr_t)mutex, rc);
	if (is_got(rc))
		pem_notify_lock_mutex_acquire((uintptr_t)mutex, site);
	return rc;
}

PEM_LIBC_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int rc, waits;

	if (PEM_LIBC_UNWANTED(mutex_enabled()))
		return PEM_LIBC_NEXT(pthread_mutex_lock)(mutex);
	rc = mutex_begin(mutex, PEM_LIBC_SITE);
	waits = rc == EBUSY;
	if (waits)
		rc = PEM_LIBC_NEXT(pthread_mutex_lock)(mutex);
	return mutex_end(mutex, PEM_LIBC_SITE, waits, rc);
}

PEM_LIBC_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
	int rc, waits;

	if (PEM_LIBC_UNWANTED(mutex_enabled()))
		return PEM_LIBC_NEXT(pthread_mutex_timedlock)(mutex, until);
	rc = mutex_begin(mutex, PEM_LIBC_SITE);
	waits = rc == EBUSY;
	if (waits)
		rc = PEM_LIBC_NEXT(pthread_mutex_timedlock)(mutex, until);
	return mutex_end(mutex, PEM_LIBC_SITE, waits, rc);
}

PEM_LIBC_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
					    const struct timespec *until)
{
	int rc, waits;

	if (PEM_LIBC_UNWANTED(mutex_enabled()))
		return PEM_LIBC_NEXT(pthread_mutex_clocklock)(mutex, clock, until);
	rc = mutex_begin(mutex, PEM_LIBC_SITE);
	waits = rc == EBUSY;
	if (waits)
		rc = PEM_LIBC_NEXT(pthread_mutex_clocklock)(mutex, clock, until);
	return mutex_end(mutex, PEM_LIBC_SITE, waits, rc);
}

PEM_LIBC_EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	int rc = PEM_LIBC_NEXT(pthread_mutex_trylock)(mutex);

	if (PEM_LIBC_UNWANTED(pem_enabled_lock_mutex_acquire() | pem_enabled_lock_mutex_busy()))
		return rc;
	if (is_got(rc))
		pem_notify_lock_mutex_acquire((uintptr_t)mutex, PEM_LIBC_SITE);
	else if (rc == EBUSY)
		pem_notify_lock_mutex_busy((uintptr_t)mutex, PEM_LIBC_SITE);
	return rc;
}

PEM_LIBC_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_lock_mutex_release()))
		pem_notify_lock_mutex_release((uintptr_t)mutex);
	return PEM_LIBC_NEXT(pthread_mutex_unlock)(mutex);
}

/* --- reader-writer locks --- */

static int rwlock_enabled(void)
{
	return pem_enabled_lock_rwlock_wait_begin() | pem_enabled_lock_rwlock_wait_end() |
	       pem_enabled_lock_rwlock_acquire();
}

static int rwlock_begin(pthread_rwlock_t *rwlock, uintptr_t site, uint8_t access)
{
	int rc = access == PEM_LIBC_LOCK_ACCESS_READ
			 ? PEM_LIBC_NEXT(pthread_rwlock_tryrdlock)(rwlock)
			 : PEM_LIBC_NEXT(pthread_rwlock_trywrlock)(rwlock);

	if (rc == EBUSY)
		pem_notify_lock_rwlock_wait_begin((uintptr_t)rwlock, site, access);
	return rc;
}

static int rwlock_end(pthread_rwlock_t *rwlock, uintptr_t site, uint8_t access, int waited, int rc)
{
	if (waited)
		pem_notify_lock_rwlock_wait_end((uintptr_t)rwlock, rc);
	if (rc == 0)
		pem_notify_lock_rwlock_acquire((uintptr_t)rwlock, site, access);
	return rc;
}

PEM_LIBC_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
	int rc, waits;

	if (PEM_LIBC_UNWANTED(rwlock_enabled()))
		return PEM_LIBC_NEXT(pthread_rwlock_rdlock)(rwlock);
	rc = rwlock_begin(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_READ);
	waits = rc == EBUSY;
	if (waits)
		rc = PEM_LIBC_NEXT(pthread_rwlock_rdlock)(rwlock);
	return rwlock_end(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_READ, waits, rc);
}

PEM_LIBC_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *rwlock,
					       const struct timespec *until)
{
	int rc, waits;

	if (PEM_LIBC_UNWANTED(rwlock_enabled()))
		return PEM_LIBC_NEXT(pthread_rwlock_timedrdlock)(rwlock, until);
	rc = rwlock_begin(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_READ);
	waits = rc == EBUSY;
	if (waits)
		rc = PEM_LIBC_NEXT(pthread_rwlock_timedrdlock)(rwlock, until);
	return rwlock_end(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_READ, waits, rc);
}

PEM_LIBC_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *rwlock)
{
	int rc, waits;

	if (PEM_LIBC_UNWANTED(rwlock_enabled()))
		return PEM_LIBC_NEXT(pthread_rwlock_wrlock)(rwlock);
	rc = rwlock_begin(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_WRITE);
	waits = rc == EBUSY;
	if (waits)
		rc = PEM_LIBC_NEXT(pthread_rwlock_wrlock)(rwlock);
	return rwlock_end(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_WRITE, waits, rc);
}

PEM_LIBC_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *rwlock,
					       const struct timespec *until)
{
	int rc, waits;

	if (PEM_LIBC_UNWANTED(rwlock_enabled()))
		return PEM_LIBC_NEXT(pthread_rwlock_timedwrlock)(rwlock, until);
	rc = rwlock_begin(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_WRITE);
	waits = rc == EBUSY;
	if (waits)
		rc = PEM_LIBC_NEXT(pthread_rwlock_timedwrlock)(rwlock, until);
	return rwlock_end(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_WRITE, waits, rc);
}

PEM_LIBC_EXPORT int pthread_rwlock_tryrdlock(pthread_rwlock_t *rwlock)
{
	int rc = PEM_LIBC_NEXT(pthread_rwlock_tryrdlock)(rwlock);

	if (PEM_LIBC_UNWANTED(pem_enabled_lock_rwlock_acquire()))
		return rc;
	return rwlock_end(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_READ, 0, rc);
}

PEM_LIBC_EXPORT int pthread_rwlock_trywrlock(pthread_rwlock_t *rwlock)
{
	int rc = PEM_LIBC_NEXT(pthread_rwlock_trywrlock)(rwlock);

	if (PEM_LIBC_UNWANTED(pem_enabled_lock_rwlock_acquire()))
		return rc;
	return rwlock_end(rwlock, PEM_LIBC_SITE, PEM_LIBC_LOCK_ACCESS_WRITE, 0, rc);
}

PEM_LIBC_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_lock_rwlock_release()))
		pem_notify_lock_rwlock_release((uintptr_t)rwlock);
	return PEM_LIBC_NEXT(pthread_rwlock_unlock)(rwlock);
}

/* --- condition variables --- */

static int condition_enabled(void)
{
	return pem_enabled_lock_condition_wait_begin() | pem_enabled_lock_condition_wait_end();
}

PEM_LIBC_EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	int rc;

	if (PEM_LIBC_UNWANTED(condition_enabled()))
		return PEM_LIBC_NEXT(pthread_cond_wait)(condition, mutex);
	pem_notify_lock_condition_wait_begin((uintptr_t)condition, (uintptr_t)mutex, PEM_LIBC_SITE);
	rc = PEM_LIBC_NEXT(pthread_cond_wait)(condition, mutex);
	pem_notify_lock_condition_wait_end((uintptr_t)condition, rc);
	return rc;
}

PEM_LIBC_EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
					   const struct timespec *until)
{
	int rc;

	if (PEM_LIBC_UNWANTED(condition_enabled()))
		return PEM_LIBC_NEXT(pthread_cond_timedwait)(condition, mutex, until);
	pem_notify_lock_condition_wait_begin((uintptr_t)condition, (uintptr_t)mutex, PEM_LIBC_SITE);
	rc = PEM_LIBC_NEXT(pthread_cond_timedwait)(condition, mutex, until);
	pem_notify_lock_condition_wait_end((uintptr_t)condition, rc);
	return rc;
}

PEM_LIBC_EXPORT int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
					   clockid_t clock, const struct timespec *until)
{
	int rc;

	if (PEM_LIBC_UNWANTED(condition_enabled()))
		return PEM_LIBC_NEXT(pthread_cond_clockwait)(condition, mutex, clock, until);
	pem_notify_lock_condition_wait_begin((uintptr_t)condition, (uintptr_t)mutex, PEM_LIBC_SITE);
	rc = PEM_LIBC_NEXT(pthread_cond_clockwait)(condition, mutex, clock, until);
	pem_notify_lock_condition_wait_end((uintptr_t)condition, rc);
	return rc;
}

PEM_LIBC_EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_lock_condition_signal()))
		pem_notify_lock_condition_signal((uintptr_t)condition, PEM_LIBC_SITE);
	return PEM_LIBC_NEXT(pthread_cond_signal)(condition);
}

PEM_LIBC_EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_lock_condition_broadcast()))
		pem_notify_lock_condition_broadcast((uintptr_t)condition, PEM_LIBC_SITE);
	return PEM_LIBC_NEXT(pthread_cond_broadcast)(condition);
}

/* --- barriers and semaphores --- */

PEM_LIBC_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	int rc;

	if (PEM_LIBC_UNWANTED(pem_enabled_lock_barrier_wait_begin() |
			      pem_enabled_lock_barrier_wait_end()))
		return PEM_LIBC_NEXT(pthread_barrier_wait)(barrier);
	pem_notify_lock_barrier_wait_begin((uintptr_t)barrier, PEM_LIBC_SITE);
	rc = PEM_LIBC_NEXT(pthread_barrier_wait)(barrier);
	pem_notify_lock_barrier_wait_end((uintptr_t)barrier, rc);
	return rc;
}

static int semaphore_enabled(void)
{
	return pem_enabled_lock_semaphore_wait_begin() | pem_enabled_lock_semaphore_wait_end();
}

/*
 * Begin to take a semaphore. Returns 1 if it was taken without a wait. A thread may be cancelled
 * here, whether it would wait or not.
 */
static int semaphore_begin(sem_t *semaphore, uintptr_t site)
{
	int saved_errno = errno;

	pthread_testcancel();
	if (PEM_LIBC_NEXT(sem_trywait)(semaphore) == 0)
		return 1;
	errno = saved_errno;
	pem_notify_lock_semaphore_wait_begin((uintptr_t)semaphore, site);
	return 0;
}

PEM_LIBC_EXPORT int sem_wait(sem_t *semaphore)
{
	int rc;

	if (PEM_LIBC_UNWANTED(semaphore_enabled()))
		return PEM_LIBC_NEXT(sem_wait)(semaphore);
	if (semaphore_begin(semaphore, PEM_LIBC_SITE))
		return 0;
	rc = PEM_LIBC_NEXT(sem_wait)(semaphore);
	pem_notify_lock_semaphore_wait_end((uintptr_t)semaphore, rc ? errno : 0);
	return rc;
}

PEM_LIBC_EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
	int rc;

	if (PEM_LIBC_UNWANTED(semaphore_enabled()))
		return PEM_LIBC_NEXT(sem_timedwait)(semaphore, until);
	if (semaphore_begin(semaphore, PEM_LIBC_SITE))
		return 0;
	rc = PEM_LIBC_NEXT(sem_timedwait)(semaphore, until);
	pem_notify_lock_semaphore_wait_end((uintptr_t)semaphore, rc ? errno : 0);
	return rc;
}

PEM_LIBC_EXPORT int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
	int rc;

	if (PEM_LIBC_UNWANTED(semaphore_enabled()))
		return PEM_LIBC_NEXT(sem_clockwait)(semaphore, clock, until);
	if (semaphore_begin(semaphore, PEM_LIBC_SITE))
		return 0;
	rc = PEM_LIBC_NEXT(sem_clockwait)(semaphore, clock, until);
	pem_notify_lock_semaphore_wait_end((uintptr_t)semaphore, rc ? errno : 0);
	return rc;
}

PEM_LIBC_EXPORT int sem_post(sem_t *semaphore)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_lock_semaphore_post()))
		pem_notify_lock_semaphore_post((uintptr_t)semaphore, PEM_LIBC_SITE);
	return PEM_LIBC_NEXT(sem_post)(semaphore);
}
