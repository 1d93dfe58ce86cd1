/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* descriptor_calls.h - the system calls whose first argument is a file descriptor */
#ifndef PEM_DESCRIPTOR_CALLS_H
#define PEM_DESCRIPTOR_CALLS_H

#include <stdbool.h>

/*
 * Is the first argument of the system call of this name a file descriptor? Not of the calls that
 * take a folder's descriptor and a path, such as openat: the path decides what they are on.
 */
bool pem_call__takes_descriptor(const char *name);

#endif
