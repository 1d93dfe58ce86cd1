/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* apart.h - work on files of other users in a process of its own, with limits (apart.c) */
#ifndef PEM_NAMES_APART_H
#define PEM_NAMES_APART_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct apart_user {
	uint32_t user;
	uint64_t cpu_ns; /* that work on the user's files took */
	uint64_t waits; /* ticks that it used no CPU in */
};

/* What was used of the limits. Zeroed: nothing. Free users. */
struct apart {
	struct apart_user *users;
	size_t count, capacity;
	uint64_t cpu_ns, waits; /* of all users */
};

/*
 * Run work(arg, out) in a child process, with the rights of the user who holds the files, if the
 * caller is root and the user exists here, and with no capabilities. What it writes to out becomes
 * *text, which the caller frees. work returns 0 or -errno; whatever it changes is lost. Blocks
 * until then, or until a limit is reached (docs/security.md, "Limits"), however the files make it
 * wait.
 *
 * Returns 0; -ENOMEM; or -ECANCELED, with why: the child did not complete its work. why has space
 * for APART_WHY_BYTES.
 */
#define APART_WHY_BYTES 128u
int apart__run(struct apart *apart, uint32_t holder, int (*work)(void *arg, FILE *out), void *arg,
	       char **text, char *why);

#endif
