/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* runtime_dir.h - names of runtime directories, for searches of other users' directories */
#ifndef PEM_RUNTIME_DIR_H
#define PEM_RUNTIME_DIR_H

#include <pem/pem.h>

#include <stdbool.h>

/*
 * Return whether name is that of a runtime directory of user uid in /dev/shm or /tmp: pem-UID, or
 * pem-UID- and 16 hexadecimal digits. The caller checks that the directory belongs to the user.
 * Async-signal-safe.
 */
bool pem_is_runtime_name(const char *name, uid_t uid);

/*
 * Return whether the folder that contains an absolute path is trusted. It is if it belongs to this
 * user or to root, or if its owner is outside this user namespace and it has the sticky bit. In a
 * folder of another ordinary user, that user can exchange the path at any time. The function cuts
 * the text while it works, and makes it whole again. Async-signal-safe.
 */
bool pem_parent_is_trusted(char *path);

#endif
