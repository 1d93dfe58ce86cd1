// SPDX-License-Identifier: MIT
/* lock.c - waiting for a lock: after U. Drepper, "Futexes Are Tricky" (2011), mutex2 */
#include "lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

uintptr_t lock__forking;

uintptr_t lock__self(void)
{
	return (uintptr_t)__errno_location();
}

bool lock__wait(struct lock *lock)
{
	int saved = errno;

	if (__atomic_load_n(&lock__forking, __ATOMIC_RELAXED) == lock__self())
		return true;
	if (__libc_single_threaded)
		return false;
	while (__atomic_exchange_n(&lock->state, 2, __ATOMIC_ACQUIRE) != 0)
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
	errno = saved;
	return true;
}

void lock__wake(struct lock *lock)
{
	int saved = errno;

	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}
