/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confined.h - what the files of the program pem-confined share
 *
 * The program has one thread, no heap, and no library but the C library's. The session trusts
 * nothing that the program says (protocol.h).
 */
#ifndef PEM_CONFINED_H
#define PEM_CONFINED_H

#include "confined/protocol.h"

#include <stdbool.h>
#include <stdint.h>

/* rights.c: each returns 0, or -errno. */
/*
 * Become the user for good: with no other user, group or capability, and without anything that exec
 * could give.
 */
int pem_confined__drop_rights(const struct pem_confined_setup *setup);
/* Allow no file outside the folder. A kernel without Landlock allows what the user may do. */
int pem_confined__allow_only(int folder_fd);
/*
 * Allow only the system calls of the two roles. A kernel without seccomp filters allows all calls.
 */
int pem_confined__filter_calls(void);

/*
 * Open a file below a folder, on the folder's file system, without following a link. Returns a
 * descriptor, or -errno.
 */
int pem_confined__open_beneath(int folder_fd, const char *name, uint64_t flags, uint64_t mode);

/* Send a reply, with descriptor fd; -1: without one. Returns false if the session is gone. */
bool pem_confined__reply(const struct pem_confined_reply *reply, int fd);
bool pem_confined__done(uint32_t number, int32_t value);

/*
 * Run a role until the session is gone. Returns the program's exit status. user_mounts: the user
 * may have made the process's mounts.
 */
int pem_confined__find(const struct pem_confined_setup *setup, bool user_mounts);
int pem_confined__keep(const struct pem_confined_setup *setup);

#endif
