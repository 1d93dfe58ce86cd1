/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* files.h - what readers and writers of traces do with files; no producer does */
#ifndef PEM_FILES_H
#define PEM_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Read bytes bytes at an offset, or as many as there are. Returns how many, or -errno. */
ssize_t pem_read_at(int fd, void *to, size_t bytes, uint64_t offset);

/*
 * Move a file or folder; from and to are names in the folders from_fd and to_fd, as those of
 * renameat. Returns 0, or -errno: -EEXIST where there is something of the new name. On a file
 * system that can't look and rename in one step, one that is made at that moment may be replaced.
 */
int pem_move_without_replacing(int from_fd, const char *from, int to_fd, const char *to);

#endif
