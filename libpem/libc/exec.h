// SPDX-License-Identifier: LGPL-2.1-or-later
/* exec.h - started programs that can't be recorded, and the environment that they get */
#ifndef PEM_LIBC_EXEC_H
#define PEM_LIBC_EXEC_H

#include "producer/rights.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A start of a program that is under way: bits of the sessions that have counted it, by reason. */
struct pem_libc_start {
	uint8_t sessions[PEM_UNOBSERVED_COUNT];
};

/*
 * Before a program is started: count it in each session that can't record it. Returns the bytes
 * that pem_libc_exec__copy needs for its environment. 0: the environment can stay as it is, or has
 * more variables than a stack can hold. program: its path; with is_searched its name, which execvp
 * searches. Allocates nothing, so a child of vfork may call it. Keeps errno.
 */
size_t pem_libc_exec__bytes(struct pem_libc_start *start, const char *program, bool is_searched,
			    char *const environment[]);
/*
 * Return a copy of the environment without pem's libraries. It lies in memory, which is aligned for
 * pointers.
 */
char **pem_libc_exec__copy(void *memory, char *const environment[]);
/* The program was not started: take its counts back. Makes no system call, keeps errno. */
void pem_libc_exec__failed(const struct pem_libc_start *start);

/* The environment for a program. A copy of it lies in the caller's own stack frame. */
#define PEM_LIBC_EXEC_ENVIRONMENT(start, program, is_searched, environment)                        \
	({                                                                                         \
		size_t bytes_ = pem_libc_exec__bytes(start, program, is_searched, environment);    \
		bytes_ ? pem_libc_exec__copy(__builtin_alloca(bytes_), environment)                \
		       : (char **)(environment);                                                   \
	})

#endif
