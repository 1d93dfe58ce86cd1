/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hooks.h - what the files of the runtime for -fsanitize=thread share
 *
 * A program that is compiled with -fsanitize=thread calls a function before each of its references
 * to memory. Linked with this library in place of libtsan, it writes a profile of them
 * (../profile/format.h) when it is asked to, and else runs as if those functions were empty:
 *
 *	entry.c		the functions that compilers emit calls of: plain references
 *	atomics.c	those that replace atomic operations
 *	bursts.c	which references are kept, of each thread
 *	sites.c		who allocates
 *	heap.c		gives each site memory of its own
 *	maps.c		mmap and its kin
 *	objects.c	the objects that are mapped, for names of addresses
 *	output.c	the file
 *	start.c		options; how it begins and ends, and fork
 *
 * The allocation functions themselves are those of ../apply: front.c and operators.c are linked
 * with this library's sites.c and heap.c in place of callers.c and heap.c, with the same headers.
 * There, a call is under one of the agent's directives; here, each call is under one: its context.
 *
 *	PEM_PAGE_SIZE_PROFILE=FILE		write the profile there
 *	PEM_PAGE_SIZE_PROFILE_OPTIONS=...	burst=COUNT,keep=BYTES,limit=SECONDS: as of the
 *						tool for Valgrind
 *
 * Nothing here calls the program's allocator, or takes a lock of the C library's. All functions
 * keep errno. Locks, in the order in which they are taken: the loader's, heaps, output.
 */
#ifndef PAGE_HOOKS_H
#define PAGE_HOOKS_H

#include "apply/lock.h"
#include "profile/format.h"
#include "profile/ranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The functions of entry.c and atomics.c exist twice: in the shared library, and in an archive that
 * is linked into each object of the program, so that they are called without a detour.
 */
#ifdef HOOKS_ARCHIVE
#define HOOKS_EXPORT __attribute__((visibility("hidden")))
#else
#define HOOKS_EXPORT __attribute__((visibility("default")))
#endif
#define HOOKS_SHARED __attribute__((visibility("default")))
/* The library is loaded with the program: its thread-local variables need no call. */
#define HOOKS_TLS __thread __attribute__((tls_model("initial-exec")))
#define NO_SITE RANGES_NO_SITE
/* A context that asks for less has its memory among that of others, of no site. */
#define OWN_MEMORY_BYTES (64u << 10)
#define HOOKS_VARIABLE "PEM_PAGE_SIZE_PROFILE"
#define HOOKS_OPTIONS "PEM_PAGE_SIZE_PROFILE_OPTIONS"

/* --- start.c --- */

struct hooks_options {
	uint64_t burst; /* references */
	uint64_t keep; /* bytes of references */
	uint64_t limit; /* seconds; 0: none */
};
extern struct hooks_options hooks__options;
/* The process that writes the profile. A child of vfork has its memory, and another number. */
extern uint32_t hooks__pid;
bool hooks__is_process(void);
/* Children of fork, so far. */
uint64_t hooks__forks(void);
/* Memory that is zero; NULL: there is none. */
void *hooks__memory(size_t bytes);
/* Say a sentence to the user, on standard error. */
void hooks__say(const char *about, const char *sentence);

/* --- bursts.c --- */

enum bursts_state { BURSTS_OFF, BURSTS_ON, BURSTS_ENDED };
extern uint32_t bursts__state; /* enum bursts_state */

/*
 * References of this thread until the next one that is looked at. It is counted down by one
 * instruction, so that a handler of a signal can't come in between.
 */
extern HOOKS_SHARED HOOKS_TLS int64_t pem_page_size_left;

/*
 * The thread's references have come to one that is looked at. reference: an address with
 * PROFILE_STORE. bytes: of a load, 4 or 8, if what it loads may be the address of another; else 0.
 */
HOOKS_SHARED void pem_page_size_turn(uint64_t reference, uint32_t bytes, uintptr_t caller);
/* memmove and memset of the C library. */
HOOKS_SHARED void *pem_page_size_move(void *to, const void *from, size_t bytes);
HOOKS_SHARED void *pem_page_size_fill(void *to, int value, size_t bytes);
/* The references of this thread up to now stand in the file before what comes. */
void bursts__settle(void);
/* Write what all threads have, and the end. They keep nothing more. */
void bursts__end(void);
/* After an end that was none: exec failed. */
void bursts__resume(void);
/* No more is kept, and nothing written: in a child of fork. */
void bursts__leave(void);
/* Called once. False: threads would not be told of when they end. */
bool bursts__init(void);
/* Of a thread, for sites.c: zero at first. NULL: there is none, or it is in use. */
#define BURSTS_ROOM (48u << 10)
void *bursts__room(void);

static inline bool bursts__are_on(void)
{
	return __atomic_load_n(&bursts__state, __ATOMIC_RELAXED) == BURSTS_ON;
}

/* --- sites.c --- */

struct context {
	struct context *next;
	uint64_t hash;
	uintptr_t callers[PAGE_FRAMES_MAX];
	uint64_t requested;
	uint32_t number, count, kind;
	uint32_t age; /* how often objects had gone */
	uint32_t site; /* NO_SITE: none yet */
	struct heap *heap;
};

struct context *sites__context(uint32_t number);
/* The number of a context's site, which is made on the first call; NO_SITE: it can't have one. */
uint32_t sites__number(struct context *context);
/* With the output locked. */
uint32_t sites__add(const struct page_site *site);
/* Addresses of code have other meanings: an object is gone. */
void sites__forget(void);

/* --- heap.c, beside ../apply/heap.h --- */

void heap__start(uint64_t random);
/* Tell of calls, and of the most bytes that were in use in each range. With the output locked. */
void heap__tell(void);

/* --- objects.c --- */

/* Look for objects that came or went. */
void objects__scan(void);
/* Is the address in an object? Then *frame is where. With the output locked. */
bool objects__find(uintptr_t address, struct page_frame *frame);
/* In the data of an object: it has its site already. Takes no lock. */
bool objects__hold(uintptr_t address);
/* The main thread's stack is a site. Called once. */
void objects__tell_stack(void);

/* --- output.c --- */

/*
 * False: this thread has it already, further down its stack (a handler of a signal came in
 * between). Then nothing may be told, and output__unlock is not called.
 */
bool output__lock(void);
void output__unlock(void);
void output__before_fork(void);
void output__after_fork(bool is_child);

/* All that follows: with the output locked. */

/* False: the file can't be had. Says so, unless it is of a process that this one descends from. */
bool output__init(const char *path);
void output__object(const struct profile_object *object, const char *path);
uint32_t output__site(const struct page_site *site); /* NO_SITE: too many */
void output__range(uintptr_t start, uintptr_t end, uint32_t site, uint64_t requested);
/* So many blocks were had of a site. */
void output__calls(uint32_t site, uint64_t calls);
/* References of a window. False: it can't be written, and that was said. */
bool output__burst(const struct profile_burst *burst, uint64_t window, const uint64_t *references,
		   uint64_t count);
/* Bytes of references in the file. */
uint64_t output__burst_bytes(void);
/* Drop the windows that are no multiple of stride. */
bool output__thin(uint64_t stride);
/* What did not fit anywhere. */
void output__lose(void);
void output__end(struct profile_end *end);
/* Take the end off again. */
void output__reopen(void);

#endif
