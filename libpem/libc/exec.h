// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * exec.h - the environment of a program that is started where pem's libraries are not to be had
 */
#ifndef PEM_LIBC_EXEC_H
#define PEM_LIBC_EXEC_H

#include <stddef.h>

/*
 * How many bytes pem_libc_exec__copy needs for a program's environment; 0: it can stay as it is. program: its path, NULL: not
 * known. Neither allocates, so that a child of vfork may call them. Keeps errno.
 */
size_t pem_libc_exec__bytes(const char *program, char *const environment[]);
/* The environment without pem's libraries, in memory, aligned for pointers. Counts a program that is not observed. */
char **pem_libc_exec__copy(void *memory, char *const environment[]);

/* For the caller's own frame. */
#define PEM_LIBC_EXEC_ENVIRONMENT(program, environment)                                            \
	({                                                                                         \
		size_t bytes_ = pem_libc_exec__bytes(program, environment);                        \
		bytes_ ? pem_libc_exec__copy(__builtin_alloca(bytes_), environment)                \
		       : (char **)(environment);                                                   \
	})

#endif
