/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fault.c - shared memory that its owner cuts off while it is read here
 *
 * The owner of a file may truncate it at any time. Then a touch beyond its end raises SIGBUS in
 * each process that has it mapped. The handler replaces the whole mapping by zeroes and notes that,
 * and the read goes on. Every other SIGBUS goes to the handler that was there before. The handler
 * is installed only in processes that consume what others produce.
 */
#include "core/fault.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#define BLOCK_RANGES 1024

/*
 * start is stored last and cleared first, with release. 0: the range is free; 1: it is being
 * filled.
 */
struct range {
	uintptr_t start, end;
	int *cut;
};

/*
 * Blocks are added and never removed, so that the handler walks them without a lock. A new block is
 * added behind the last.
 */
struct block {
	struct range range[BLOCK_RANGES];
	struct block *next;
};

static struct block first;
static struct sigaction before;

static bool put_zeroes(uintptr_t address)
{
	struct block *block;
	struct range *r;
	uintptr_t start;

	/* fc */
	for (block = &first; block; block = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE)) {
		for (r = block->range; r < block->range + BLOCK_RANGES; r++) {
			/* fa */
			start = __atomic_load_n(&r->start, __ATOMIC_ACQUIRE);
			if (start <= 1 || address < start || address >= r->end)
				continue;
			if (mmap((void *)start, r->end - start, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
				 0) == MAP_FAILED)
				return false;
			/* FB */
			__atomic_store_n(r->cut, 1, __ATOMIC_RELEASE);
			return true;
		}
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
		/* The signal comes again at once, and then belongs to the program. */
		signal(SIGBUS, before.sa_handler);
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

/* Claim a free range of the block. NULL: there is none. */
static struct range *claim(struct block *block)
{
	struct range *r;
	uintptr_t none;

	for (r = block->range; r < block->range + BLOCK_RANGES; r++) {
		none = 0;
		/* fd */
		if (!__atomic_load_n(&r->start, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&r->start, &none, 1, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return r;
	}
	return NULL;
}

/* Return the block behind one, made if need be. NULL: out of memory. */
static struct block *next_block(struct block *block)
{
	/* fc */
	struct block *next = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE), *made;

	if (next)
		return next;
	made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (made == MAP_FAILED)
		return NULL;
	/* FC, fc */
	if (__atomic_compare_exchange_n(&block->next, &next, made, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return made;
	munmap(made, sizeof(*made)); /* another thread has made one */
	return next;
}

int pem_fault__watch(void *mapping, uint64_t bytes, int *cut)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct block *block = &first;
	struct range *r;

	pthread_once(&once, install);
	while (!(r = claim(block))) {
		block = next_block(block);
		if (!block)
			return -ENOMEM;
	}
	r->end = (uintptr_t)mapping + bytes;
	r->cut = cut;
	/* FA */
	__atomic_store_n(&r->start, (uintptr_t)mapping, __ATOMIC_RELEASE);
	return 0;
}

void pem_fault__cut(void *mapping)
{
	put_zeroes((uintptr_t)mapping);
}

void pem_fault__forget(void *mapping)
{
	struct block *block;
	struct range *r;

	/* fc */
	for (block = &first; block; block = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE)) {
		for (r = block->range; r < block->range + BLOCK_RANGES; r++) {
			if (__atomic_load_n(&r->start, __ATOMIC_RELAXED) != (uintptr_t)mapping)
				continue;
			/* FD */
			__atomic_store_n(&r->start, 0, __ATOMIC_RELEASE);
			return;
		}
	}
}
