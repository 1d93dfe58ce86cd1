// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * older.c - older versions of functions, with today's events
 *
 * They serve programs and libraries that were linked with the older versions. Only the C library of
 * x86-64 has older versions of functions that pem stands in front of. Condition variables of
 * version GLIBC_2.2.5 have another layout: if the old function initialized one, the old function
 * has to wait for it. The old posix_spawn starts a script without a first line "#!" in a shell. The
 * loader also gives the old versions to libraries that name no version. Such libraries were linked
 * without the C library.
 */
#include "libc/next.h"
#include "libc/spawn.h"

#include "stubs/libc_lock.h"

#include <pthread.h>

#if defined(__x86_64__)

/* The next definition of the old version. */
#define OLDER(name) ((__typeof__(&name))pem_libc_next__get(PEM_LIBC_NEXT_older_##name))

/* Only the versioned name is exported: see libpem-libc-x86_64.map. */
#define VERSION(name) __asm__(".symver pem_libc_older__" #name ", " #name "@GLIBC_2.2.5")

int pem_libc_older__pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int pem_libc_older__pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
					   const struct timespec *until);
int pem_libc_older__pthread_cond_signal(pthread_cond_t *condition);
int pem_libc_older__pthread_cond_broadcast(pthread_cond_t *condition);
int pem_libc_older__posix_spawn(pid_t *child, const char *path,
				const posix_spawn_file_actions_t *actions,
				const posix_spawnattr_t *attributes, char *const arguments[],
				char *const environment[]);
int pem_libc_older__posix_spawnp(pid_t *child, const char *name,
				 const posix_spawn_file_actions_t *actions,
				 const posix_spawnattr_t *attributes, char *const arguments[],
				 char *const environment[]);

static int condition_enabled(void)
{
	return pem_enabled_lock_condition_wait_begin() | pem_enabled_lock_condition_wait_end();
}

PEM_LIBC_EXPORT int pem_libc_older__pthread_cond_wait(pthread_cond_t *condition,
						      pthread_mutex_t *mutex)
{
	int rc;

	if (PEM_LIBC_UNWANTED(condition_enabled()))
		return OLDER(pthread_cond_wait)(condition, mutex);
	pem_notify_lock_condition_wait_begin((uintptr_t)condition, (uintptr_t)mutex, PEM_LIBC_SITE);
	rc = OLDER(pthread_cond_wait)(condition, mutex);
	pem_notify_lock_condition_wait_end((uintptr_t)condition, rc);
	return rc;
}
VERSION(pthread_cond_wait);

PEM_LIBC_EXPORT int pem_libc_older__pthread_cond_timedwait(pthread_cond_t *condition,
							   pthread_mutex_t *mutex,
							   const struct timespec *until)
{
	int rc;

	if (PEM_LIBC_UNWANTED(condition_enabled()))
		return OLDER(pthread_cond_timedwait)(condition, mutex, until);
	pem_notify_lock_condition_wait_begin((uintptr_t)condition, (uintptr_t)mutex, PEM_LIBC_SITE);
	rc = OLDER(pthread_cond_timedwait)(condition, mutex, until);
	pem_notify_lock_condition_wait_end((uintptr_t)condition, rc);
	return rc;
}
VERSION(pthread_cond_timedwait);

PEM_LIBC_EXPORT int pem_libc_older__pthread_cond_signal(pthread_cond_t *condition)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_lock_condition_signal()))
		pem_notify_lock_condition_signal((uintptr_t)condition, PEM_LIBC_SITE);
	return OLDER(pthread_cond_signal)(condition);
}
VERSION(pthread_cond_signal);

PEM_LIBC_EXPORT int pem_libc_older__pthread_cond_broadcast(pthread_cond_t *condition)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_lock_condition_broadcast()))
		pem_notify_lock_condition_broadcast((uintptr_t)condition, PEM_LIBC_SITE);
	return OLDER(pthread_cond_broadcast)(condition);
}
VERSION(pthread_cond_broadcast);

PEM_LIBC_EXPORT int pem_libc_older__posix_spawn(pid_t *child, const char *path,
						const posix_spawn_file_actions_t *actions,
						const posix_spawnattr_t *attributes,
						char *const arguments[], char *const environment[])
{
	return pem_libc_spawn(OLDER(posix_spawn), false, child, path, actions, attributes,
			      arguments, environment);
}
VERSION(posix_spawn);

PEM_LIBC_EXPORT int pem_libc_older__posix_spawnp(pid_t *child, const char *name,
						 const posix_spawn_file_actions_t *actions,
						 const posix_spawnattr_t *attributes,
						 char *const arguments[], char *const environment[])
{
	return pem_libc_spawn(OLDER(posix_spawnp), true, child, name, actions, attributes,
			      arguments, environment);
}
VERSION(posix_spawnp);

#endif
