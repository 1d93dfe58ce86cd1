// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * program_file.h - what the file of a program says of libraries that are to be preloaded into it
 */
#ifndef PEM_PRODUCER_PROGRAM_FILE_H
#define PEM_PRODUCER_PROGRAM_FILE_H

#include "producer/rights.h"

enum pem_program_kind {
	PEM_PROGRAM_MISSING, /* there is no such program */
	PEM_PROGRAM_USUAL, /* they are loaded, or nothing is known */
	PEM_PROGRAM_32_BIT, /* its loader would complain of each */
	PEM_PROGRAM_MUSL, /* its loader ends it if it can't load one that needs another C library */
	PEM_PROGRAM_STATIC, /* it has no loader */
	PEM_PROGRAM_PRIVILEGED, /* it gains rights, and its loader ignores them */
};

/*
 * name: a path, or what execvp looks for in folders, the value of PATH; folders NULL: a path in any
 * case. Opens and reads the program, and no more where it has no set-id bits and the process is
 * root's. May be called by a child of vfork and by handlers of signals. Does not keep errno.
 */
PEM_RIGHTS_EXPORT enum pem_program_kind pem_program_file__kind(const char *name,
							       const char *folders);

#endif
