// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * thread.c - a thread's life, from pthread_create to pthread_join, with its events
 *
 * Not here: the kernel's own view of threads (its events come from tracepoints), thrd_create.
 *
 * The end is raised by a destructor of thread-specific data, so it also comes after pthread_exit and after
 * cancellation. Destructors run in rounds; in the first ours asks for a second, so as to come after those of
 * the program, which free memory. It does not wait for the last round: libpem's own destructor gives back the
 * thread's lane and needs a round after our event.
 */
#include "libc/next.h"

#include "stubs/libc.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

struct start {
	void *(*routine)(void *);
	void *argument;
};

static pthread_key_t end_key;
static int end_key_made;

static uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void at_end(void *round)
{
	if ((uintptr_t)round == 1 && pthread_setspecific(end_key, (void *)2) == 0)
		return;
	pem_notify_libc_thread_end(thread_id());
}

__attribute__((constructor(101))) static void make_end_key(void)
{
	end_key_made = pthread_key_create(&end_key, at_end) == 0;
}

/* The new thread. What it was given is released before anything can end it: no cancellation point comes first. */
static void *run(void *given)
{
	struct start start = *(struct start *)given;

	PEM_LIBC_REAL(free)(given);
	if (end_key_made)
		pthread_setspecific(end_key, (void *)1);
	pem_notify_libc_thread_start((uintptr_t)start.routine, thread_id());
	return start.routine(start.argument);
}

PEM_LIBC_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
				   void *(*routine)(void *), void *argument)
{
	struct start *start = PEM_LIBC_REAL(malloc)(sizeof(*start));
	int rc;

	if (!start) /* no memory for two pointers: the thread starts unseen */
		return PEM_LIBC_REAL(pthread_create)(thread, attributes, routine, argument);
	start->routine = routine;
	start->argument = argument;
	rc = PEM_LIBC_REAL(pthread_create)(thread, attributes, run, start);
	if (rc)
		PEM_LIBC_REAL(free)(start);
	if (pem_enabled_libc_thread_create())
		pem_notify_libc_thread_create(rc ? 0 : (uint64_t)*thread, (uintptr_t)routine, rc);
	return rc;
}

PEM_LIBC_EXPORT int pthread_join(pthread_t thread, void **result)
{
	int rc;

	if (PEM_LIBC_UNWANTED(pem_enabled_libc_thread_join_begin() |
			      pem_enabled_libc_thread_join_end()))
		return PEM_LIBC_NEXT(pthread_join)(thread, result);
	pem_notify_libc_thread_join_begin((uint64_t)thread, PEM_LIBC_SITE);
	rc = PEM_LIBC_NEXT(pthread_join)(thread, result);
	pem_notify_libc_thread_join_end((uint64_t)thread, rc);
	return rc;
}

PEM_LIBC_EXPORT int pthread_detach(pthread_t thread)
{
	pem_notify_libc_thread_detach((uint64_t)thread);
	return PEM_LIBC_NEXT(pthread_detach)(thread);
}

PEM_LIBC_EXPORT int pthread_cancel(pthread_t thread)
{
	pem_notify_libc_thread_cancel((uint64_t)thread);
	return PEM_LIBC_NEXT(pthread_cancel)(thread);
}

PEM_LIBC_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	pem_notify_libc_thread_name((uint64_t)thread, name);
	return PEM_LIBC_NEXT(pthread_setname_np)(thread, name);
}
