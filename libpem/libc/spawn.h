/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* spawn.h - posix_spawn and posix_spawnp, of both versions (program.c, older.c) */
#ifndef PEM_LIBC_SPAWN_H
#define PEM_LIBC_SPAWN_H

#include <spawn.h>
#include <stdbool.h>

typedef int pem_libc_spawn_call(pid_t *child, const char *program,
				const posix_spawn_file_actions_t *actions,
				const posix_spawnattr_t *attributes, char *const arguments[],
				char *const environment[]);

/*
 * Start a program by the next definition, and raise its event. is_searched: program is a name, as
 * for posix_spawnp. The rest is the caller's. Returns its result.
 */
int pem_libc_spawn(pem_libc_spawn_call *next, bool is_searched, pid_t *child, const char *program,
		   const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		   char *const arguments[], char *const environment[]);

#endif
