/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* helper.h - starting a program that works for this library, with few descriptors and variables */
#ifndef PEM_CORE_HELPER_H
#define PEM_CORE_HELPER_H

#include <stdbool.h>
#include <sys/types.h>

#define PEM_HELPER_DESCRIPTORS 3

struct pem_helper {
	const char *path; /* of its file */
	char *const *argv, *const *environment; /* NULL at their ends */
	/* -1: /dev/null, to read. The helper has them from the number first on, in this order. */
	int descriptors[PEM_HELPER_DESCRIPTORS], first;
	/* A terminal's ^C ends its whole process group. In a session of its own a helper lives. */
	bool has_own_session;
};

/*
 * Start a helper. Its signals are not blocked. The descriptors stay the caller's. It has the rights
 * of the calling thread. Returns 0, or -errno. Any thread may call it; it waits for the exec.
 */
int pem_helper__start(const struct pem_helper *helper, pid_t *pid);

#endif
