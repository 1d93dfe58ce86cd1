// SPDX-License-Identifier: LGPL-2.1-or-later
/* program_file.h - does a program's file allow libraries to be preloaded into the program? */
#ifndef PEM_PRODUCER_PROGRAM_FILE_H
#define PEM_PRODUCER_PROGRAM_FILE_H

#include "producer/rights.h"

enum pem_program_kind {
	PEM_PROGRAM_MISSING, /* there is no such program */
	PEM_PROGRAM_USUAL, /* libraries are loaded, or nothing is known */
	PEM_PROGRAM_32_BIT, /* its loader would complain of each library */
	PEM_PROGRAM_MUSL, /* its loader ends it if a library needs another C library */
	PEM_PROGRAM_STATIC, /* it has no loader */
	PEM_PROGRAM_PRIVILEGED, /* it gains rights, and its loader ignores preloaded libraries */
};

/* What is asked of a program's file. */
enum pem_program_question {
	PEM_PROGRAM_KIND,
	/*
	 * Whether its loader can load libraries: no program is PEM_PROGRAM_PRIVILEGED then, and
	 * none that is a path PEM_PROGRAM_MISSING. A path is opened, read and closed, and no other
	 * call is made.
	 */
	PEM_PROGRAM_LOADER,
};

/*
 * Find the kind of a program by its file. name: a path, or a name that is looked for in folders, a
 * value of PATH, as execvp does. folders NULL: name is a path in any case, which only the kernel
 * reads. Opens and reads the file, and does no more than that if the file has no set-id bits and
 * the process is root's. A child of vfork and a signal handler may call it. Does not keep errno.
 */
PEM_RIGHTS_EXPORT enum pem_program_kind
pem_program_file__kind(const char *name, const char *folders, enum pem_program_question question);

#endif
