/* SPDX-License-Identifier: MIT */
/* call_kinds.h - what the arguments and results of Linux system calls are, by their names */
#ifndef PEM_CALL_KINDS_H
#define PEM_CALL_KINDS_H

#include <stdbool.h>

/* What a system call does with its first descriptor, or with several. */
enum pem_call_kind {
	PEM_CALL_OTHER,
	PEM_CALL_READS,
	PEM_CALL_WRITES,
	PEM_CALL_POLLS, /* it waits until one of several is ready */
	PEM_CALL_SPLICES, /* it takes from one descriptor, and gives to another one */
};

enum pem_call_kind pem_call__kind(const char *name);

/*
 * Is the first argument of the system call of this name a file descriptor? Not of the calls that
 * take a folder's descriptor and a path, such as openat: the path decides what they are on.
 */
bool pem_call__takes_descriptor(const char *name);
/* Which argument is the path of the file that it is on: 0, 1, or -1: none. */
int pem_call__path_argument(const char *name);
/* Is it on its first argument, a descriptor, where the path behind that is empty? */
bool pem_call__takes_empty_path(const char *name);
/* Is what it returns, if it is not an error, how many bytes it has moved? */
bool pem_call__returns_bytes(const char *name);

#endif
