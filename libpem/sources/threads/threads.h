/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * threads.h - what the threads of a process do at a moment, read from /proc
 *
 *	glimpse.c	state and system call of each thread
 *	waits.c		what a thread waits for in a futex, and who holds it
 *	threads.c	the source: when to look, and records
 *
 * Rights. status and stat of another user's process are read at any time. syscall, maps and memory
 * are the recording user's own processes' only, and those of a process that the user named:
 * reading them waits for an exec, which another user can hold up (docs/security.md).
 */
#ifndef PEM_SOURCES_THREADS_H
#define PEM_SOURCES_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJECT_BYTES 128u /* of the text that names what a thread waits for, with its NUL */

/* One thread, at the time of its clock. */
struct glimpse {
	uint64_t clock; /* pem_clock() */
	uint32_t pid, tid;
	uint32_t inner_tid; /* its number in its own pid namespace */
	uint32_t state; /* the kernel's task state; 0: it runs, or waits for a CPU */
	uint32_t cpu; /* it ran on this one last */
	int64_t call; /* number of the system call that it is in; -1: none, or unknown */
	uint64_t arguments[3]; /* of the call */
	uint64_t stack; /* its stack pointer; 0: unknown */
	uint64_t switches; /* how often it left a CPU so far */
	/* Of a call that waits for a word of memory. address 0: it is no such call. */
	uint64_t address;
	uint32_t holder; /* tid of the thread that holds the lock; 0: unknown */
	char object[OBJECT_BYTES]; /* what the word is of; "": address is 0 */
};

struct glimpses {
	uint32_t pid;
	bool may_read; /* syscall, maps and memory */
	bool is_own; /* all its users are the recording user */
	struct glimpse *threads;
	size_t count, capacity;
};

/*
 * Look at all threads of a process. is_named: the user named it. A blocked thread did not run
 * between the reading of its state, its system call and its clock. One that did run each time is
 * left out: its own records tell. Threads that have ended are left out. Returns 0; -ENOMEM; -ESRCH:
 * there is no such process. Blocks on /proc alone.
 */
int glimpses__take(struct glimpses *glimpses, uint32_t pid, bool is_named);
void glimpses__free(struct glimpses *glimpses);

/* Find out what each thread waits for. For glimpses of processes that may be read. */
void glimpses__explain(struct glimpses *glimpses);

#endif
