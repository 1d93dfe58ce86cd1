/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* files.c - what readers and writers of traces do with files; no producer does */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t pem_read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	size_t done = 0;
	ssize_t n;

	while (done < bytes) {
		n = pread(fd, (uint8_t *)to + done, bytes - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

int pem_move_without_replacing(int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat st;

	if (!renameat2(from_fd, from, to_fd, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (!fstatat(to_fd, to, &st, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	return renameat(from_fd, from, to_fd, to) ? -errno : 0;
}
