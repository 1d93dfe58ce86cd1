/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fault.c - shared memory that its owner cuts off while it is read here
 *
 * Who has a file may truncate it at any time, and then a touch beyond its end is SIGBUS for whoever has it mapped. The
 * handler puts zeroes in the place of the whole mapping, says so, and the read goes on; every other SIGBUS is passed on to
 * the handler that was there before. It is there only in processes that consume what others produce.
 */
#include "consumer/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define RANGES_MAX 4096

/* start is stored last and cleared first, released; 0: free, 1: being filled. */
static struct range {
	uintptr_t start, end;
	int *cut;
} ranges[RANGES_MAX];
static uint32_t ranges_used;
static struct sigaction before;

static bool put_zeroes(uintptr_t address)
{
	uint32_t used = __atomic_load_n(&ranges_used, __ATOMIC_ACQUIRE), i;
	uintptr_t start;

	for (i = 0; i < used; i++) {
		start = __atomic_load_n(&ranges[i].start, __ATOMIC_ACQUIRE);
		if (start <= 1 || address < start || address >= ranges[i].end)
			continue;
		if (mmap((void *)start, ranges[i].end - start, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
			 0) == MAP_FAILED)
			return false;
		__atomic_store_n(ranges[i].cut, 1, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

static void handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;

	if (info->si_code > 0 && put_zeroes((uintptr_t)info->si_addr)) {
		errno = saved;
		return;
	}
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else {
		signal(SIGBUS,
		       before.sa_handler); /* it comes again at once, and is the program's */
		if (info->si_code <= 0)
			raise(SIGBUS);
	}
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = handle,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, &before);
}

int pem_fault__watch(void *mapping, uint64_t bytes, int *cut)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uintptr_t none;
	uint32_t i, used;

	pthread_once(&once, install);
	for (i = 0; i < RANGES_MAX; i++) {
		none = 0;
		if (!__atomic_compare_exchange_n(&ranges[i].start, &none, 1, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		ranges[i].end = (uintptr_t)mapping + bytes;
		ranges[i].cut = cut;
		__atomic_store_n(&ranges[i].start, (uintptr_t)mapping, __ATOMIC_RELEASE);
		used = __atomic_load_n(&ranges_used, __ATOMIC_RELAXED);
		while (used < i + 1 &&
		       !__atomic_compare_exchange_n(&ranges_used, &used, i + 1, 0, __ATOMIC_RELEASE,
						    __ATOMIC_RELAXED))
			;
		return 0;
	}
	return -ENOSPC;
}

void pem_fault__forget(void *mapping)
{
	uint32_t used = __atomic_load_n(&ranges_used, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < used; i++) {
		if (__atomic_load_n(&ranges[i].start, __ATOMIC_RELAXED) == (uintptr_t)mapping) {
			__atomic_store_n(&ranges[i].start, 0, __ATOMIC_RELEASE);
			return;
		}
	}
}
