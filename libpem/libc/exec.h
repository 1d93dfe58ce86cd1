// SPDX-License-Identifier: LGPL-2.1-or-later
/* exec.h - started programs that can't be recorded, and the environment that they get */
#ifndef PEM_LIBC_EXEC_H
#define PEM_LIBC_EXEC_H

#include "producer/rights.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pem_libc_copy;

/* How the caller names a program. */
enum pem_libc_named {
	PEM_LIBC_BY_PATH,
	PEM_LIBC_BY_NAME, /* searched as execvp does */
	/*
	 * A path beneath a folder that is a descriptor, and too long for a path of the program in
	 * /proc/self/fd. Nothing is known of its file.
	 */
	PEM_LIBC_BENEATH,
};

/* A start of a program that is under way. */
struct pem_libc_start {
	uint8_t sessions[PEM_UNOBSERVED_COUNT]; /* bits of those that have counted it, by reason */
	struct pem_libc_copy *copy; /* memory of its environment; NULL: it has the caller's */
};

/*
 * Before a program is started: count it in each session that can't record it. program: its path or
 * name. Returns the environment for it: environment itself, or a copy without pem's libraries.
 * There is no copy of more than some 8,000 variables, none if there is no memory for it, and none
 * in a thread with a filter while eight other starts have one. A child of vfork may call it, and a
 * signal handler. Takes little of the stack. Keeps errno.
 */
char *const *pem_libc_exec__begin(struct pem_libc_start *start, const char *program,
				  enum pem_libc_named named, char *const environment[]);
/*
 * The call that was to start it has returned: its environment is not needed any more. If it was not
 * started, its counts are taken back. Makes no system call, keeps errno.
 */
void pem_libc_exec__end(const struct pem_libc_start *start, bool is_started);

#endif
