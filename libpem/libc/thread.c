// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * thread.c - a thread's life, from pthread_create to pthread_join, with its events
 *
 * Not here: the kernel's own view of threads (its events come from tracepoints), thrd_create.
 *
 * A destructor of thread-specific data raises the thread's end, so the event also comes after
 * pthread_exit and after cancellation. Destructors run in rounds. In the first round ours asks for
 * a second, so that it runs after the destructors of the program, which free memory. It does not
 * wait for the last round: libpem's own destructor gives the thread's lane back, and needs a round
 * after our event.
 */
#include "libc/next.h"

#include "early.h"
#include "producer/rights.h"
#include "stubs/libc.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

/*
 * The function that a new thread is to call. It is kept from pthread_create until the thread has
 * read it. It does not come from malloc, which may be the program's. A child of fork inherits the
 * elements that threads of its parent had not read yet. These elements are lost to the child.
 */
struct start {
	void *(*routine)(void *);
	void *argument;
	uint32_t is_taken;
	uint32_t creator; /* thread id; 0: no session wants it */
	bool filtered; /* the creator's seccomp filter is the thread's too */
};

static struct start starts[64];

/*
 * The C library keeps the values of this many keys in the thread's own structure. For other keys it
 * calls calloc.
 */
#define KEYS_WITHOUT_MEMORY 32u

static pthread_key_t end_key PEM_EARLY;
static bool has_end_key PEM_EARLY;

/* Take an element. NULL: there is none, and no memory. Keeps errno. */
static struct start *take_start(void)
{
	int saved_errno = errno;
	struct start *start;
	uint32_t is_taken;
	size_t i;

	for (i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		is_taken = 0;
		/* xa: ACQUIRE pairs with RELEASE in give_back_start */
		if (!__atomic_load_n(&starts[i].is_taken, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&starts[i].is_taken, &is_taken, 1, 0,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return &starts[i];
	}
	/* Without a filter, which the thread would have to be told of, it can start without. */
	if (pem_rights__restricted() && !pem_rights__filtered())
		return NULL;
	start = PEM_LIBC_REAL(mmap)(NULL, sizeof(*start), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved_errno;
	return start == MAP_FAILED ? NULL : start;
}

static void give_back_start(struct start *start)
{
	/* XA */
	if ((uintptr_t)start - (uintptr_t)starts < sizeof(starts))
		__atomic_store_n(&start->is_taken, 0, __ATOMIC_RELEASE);
	else
		PEM_LIBC_REAL(munmap)(start, sizeof(*start));
}

static void at_end(void *round)
{
	if ((uintptr_t)round == 1 && pthread_setspecific(end_key, (void *)2) == 0)
		return;
	if (pem_enabled_libc_thread_end())
		pem_notify_libc_thread_end(pem_rights__thread_id());
}

__attribute__((constructor(101))) static void make_end_key(void)
{
	if (pthread_key_create(&end_key, at_end))
		return;
	has_end_key = end_key < KEYS_WITHOUT_MEMORY;
	if (!has_end_key)
		pthread_key_delete(end_key);
}

/*
 * For a program that took the first keys before any constructor ran. The end is then raised before
 * the thread's destructors run.
 */
static void *call_without_key(const struct start *start)
{
	void *result;

	pthread_cleanup_push(at_end, NULL);
	result = start->routine(start->argument);
	pthread_cleanup_pop(1);
	return result;
}

/*
 * The new thread. Its element is given back before anything can end the thread: no cancellation
 * point comes first.
 */
static void *run(void *given)
{
	struct start start = *(struct start *)given;

	pem_rights__inherit(start.filtered);
	give_back_start(given);
	if (has_end_key)
		pthread_setspecific(end_key, (void *)1);
	if (pem_enabled_libc_thread_start())
		pem_notify_libc_thread_start((uintptr_t)start.routine, (uint64_t)pthread_self(),
					     pem_rights__thread_id(), start.creator);
	return has_end_key ? start.routine(start.argument) : call_without_key(&start);
}

/*
 * *thread is not read after the call: the new thread may have freed it. So the new thread itself
 * raises its handle.
 */
PEM_LIBC_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
				   void *(*routine)(void *), void *argument)
{
	struct start *start = take_start();
	int rc;

	if (!start) /* no memory for two pointers: the thread starts without events */
		return PEM_LIBC_REAL(pthread_create)(thread, attributes, routine, argument);
	start->routine = routine;
	start->argument = argument;
	start->creator = pem_enabled_libc_thread_start() ? pem_rights__thread_id() : 0;
	start->filtered = pem_rights__filtered();
	rc = PEM_LIBC_REAL(pthread_create)(thread, attributes, run, start);
	if (rc)
		give_back_start(start);
	if (pem_enabled_libc_thread_create())
		pem_notify_libc_thread_create((uintptr_t)routine, rc);
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
