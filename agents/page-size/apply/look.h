/* SPDX-License-Identifier: MIT */
/*
 * look.h - when the memory of listed sites is looked at, for chunks that can be large pages
 *(large.h)
 *
 * The library has no thread of its own. It looks
 *	- as the program calls a function that the library stands in front of,
 *	- in a handler of SIGURG, as the main thread uses processor time. A program may do nothing
 *but compute once its tables are filled. After each look it waits for a multiple of the time that
 *the look took, so that looks cost little.
 *
 * SIGURG is ignored by default, so a program that resets it misses nothing. It is used only while
 *the program has no handler for it and does not block it, and is raised by a timer of the thread's
 *own processor time, which expires once for each time it is set. The kernel sends it as the thread
 * returns to the program, so it never interrupts a system call.
 */
#ifndef PAGE_APPLY_LOOK_H
#define PAGE_APPLY_LOOK_H

#include <stdint.h>

/* Calls of this thread until the clock is read. */
extern __thread uint32_t look__calls __attribute__((tls_model("initial-exec")));

void look__init(void);
/* Sites have new memory. */
void look__grown(void);
void look__now(void);
void look__after_fork_child(void);

/* The program calls one of the library's functions. Keeps errno. */
static inline void look__call(void)
{
	if (__builtin_expect(!look__calls--, 0))
		look__now();
}

#endif
