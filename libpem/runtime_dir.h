/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * runtime_dir.h - names of the runtime folder, for those who look for that of others
 */
#ifndef PEM_RUNTIME_DIR_H
#define PEM_RUNTIME_DIR_H

#include <pem/pem.h>

#include <stdbool.h>

/*
 * Is it, in /dev/shm or /tmp, the name of a runtime folder of this user's: pem-UID, or pem-UID- and
 * 16 hexadecimal digits? Such a folder counts only if it is the user's. Async-signal-safe.
 */
bool pem_is_runtime_name(const char *name, uid_t uid);

/*
 * Does an absolute path lie in a folder of this user's, of root's, or of one outside this user
 * namespace with the sticky bit? In another ordinary user's folder that user can exchange it at any
 * time. The text is cut while the function works, and whole again afterwards. Async-signal-safe.
 */
bool pem_parent_is_trusted(char *path);

#endif
