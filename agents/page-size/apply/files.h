/* SPDX-License-Identifier: MIT */
/*
 * files.h - files that the library opens inside the program, which does not know of them
 *
 * Another thread of the program may close all descriptors, and open files of its own. These have
 * the lowest numbers. The library's descriptors have higher ones: what it does with a number that
 * was closed fails, and is not done to a file of the program's.
 */
#ifndef PAGE_APPLY_FILES_H
#define PAGE_APPLY_FILES_H

#include <sys/types.h>

/* open(), and the descriptor does not outlive an exec. The number is low if RLIMIT_NOFILE is. */
int files__open(const char *path, int flags, mode_t mode);

#endif
