/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* runtime_dir.h - names of runtime directories, and of files in them */
#ifndef PEM_RUNTIME_DIR_H
#define PEM_RUNTIME_DIR_H

#include <pem/pem.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/*
 * Do what secure_getenv does. secure_getenv itself may be the program's own function, which may
 * wait for a lock that a thread held when this process was forked; and a probe on it counts its
 * calls. Async-signal-safe.
 */
static inline char *pem_variable(const char *name)
{
	size_t length = strlen(name);
	char **v;

	if (getauxval(AT_SECURE) || !environ)
		return NULL;
	for (v = environ; *v; v++) {
		if (!strncmp(*v, name, length) && (*v)[length] == '=')
			return *v + length + 1;
	}
	return NULL;
}

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

/*
 * As pem_runtime_dir, but false where the directory would have to be made, or where finding it
 * takes calls that a program's loader does not make: path is then of no use.
 */
bool pem_runtime_dir__is_there(char *path, size_t bytes);

/*
 * Append text to a path of *used bytes, or the last digits of a number; digits 0: all of them.
 * Return false where it does not fit. Unlike snprintf they touch few pages. Async-signal-safe.
 */
bool pem_path__append(char *path, size_t bytes, size_t *used, const char *text);
bool pem_path__append_number(char *path, size_t bytes, size_t *used, uint64_t number, unsigned base,
			     unsigned digits);
/*
 * Read a decimal number, with blanks or line ends before it, and move *at behind it. Unlike strtoul
 * it touches no page of the C library, which costs a process that starts.
 */
uint64_t pem_take_number(const char **at);

#endif
