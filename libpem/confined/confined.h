/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confined.h - the program pem-confined from the inside
 *
 * One thread, no heap, no library but the C library's. Nothing here is believed by the session
 * (protocol.h).
 */
#ifndef PEM_CONFINED_H
#define PEM_CONFINED_H

#include "confined/protocol.h"

#include <stdbool.h>
#include <stdint.h>

/* rights.c: each returns 0, or -errno. */
/*
 * Become the user for good: no other user, group or capability, and nothing that exec could give.
 */
int pem_confined__drop_rights(const struct pem_confined_setup *setup);
/* Allow no file outside the folder; a kernel without Landlock allows what the user may do. */
int pem_confined__allow_only(int folder_fd);
/* Allow the system calls of the two roles; a kernel without seccomp filters allows all. */
int pem_confined__filter_calls(void);

/* Open below a folder, on its file system, through no link. Returns a descriptor, or -errno. */
int pem_confined__open_beneath(int folder_fd, const char *name, uint64_t flags, uint64_t mode);

/* Send a reply; fd -1: none. False: the session is gone. */
bool pem_confined__reply(const struct pem_confined_reply *reply, int fd);
bool pem_confined__done(uint32_t number, int32_t value);

/* What the program ends with. user_mounts: the process's mounts may be the user's doing. */
int pem_confined__find(const struct pem_confined_setup *setup, bool user_mounts);
int pem_confined__keep(const struct pem_confined_setup *setup);

#endif
