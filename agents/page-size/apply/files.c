// SPDX-License-Identifier: MIT
/* files.c - open, and move the descriptor up */
#include "files.h"

#include <fcntl.h>
#include <unistd.h>

/* Each process has a table for descriptors below 64 from its start. */
#define LOWEST 48

int files__open(const char *path, int flags, mode_t mode)
{
	int fd = open(path, flags | O_CLOEXEC, mode), moved;

	if (fd < 0 || fd >= LOWEST)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST);
	if (moved < 0)
		return fd;
	close(fd);
	return moved;
}
