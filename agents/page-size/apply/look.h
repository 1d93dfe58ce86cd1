/* SPDX-License-Identifier: MIT */
/*
 * look.h - when the memory of listed sites is looked at, for chunks that can be large pages
 * (large.h)
 *
 * The library has no thread of its own. It looks as the program calls a function that the library
 * stands in front of. Some programs do nothing but compute once their tables are filled: it looks
 * as the main thread uses processor time, too (wake.h). After each look it waits for a multiple of
 * the time that the look took, so that looks cost little.
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
/* The same in a handler of a signal. Returns after how many ns to look again; 0: never. */
uint64_t look__expired(void);
void look__after_fork_child(void);

/* The program calls one of the library's functions. Keeps errno. */
static inline void look__call(void)
{
	if (__builtin_expect(!look__calls--, 0))
		look__now();
}

#endif
