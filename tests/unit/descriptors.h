/* SPDX-License-Identifier: MIT */
/*
 * descriptors.h - file descriptors of this process: how many are open, and sending some with a
 * message
 */
#ifndef DESCRIPTORS_H
#define DESCRIPTORS_H

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DESCRIPTORS_MAX 253u /* that the kernel passes with a message */

static inline unsigned count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	if (!directory)
		abort();
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Send a message with count descriptors, which stay the caller's. As sendmsg, which takes flags. */
static inline ssize_t send_descriptors(int to, const void *data, size_t bytes, const int *fds,
				       unsigned count, int flags)
{
	union {
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec part = {(void *)(uintptr_t)data, bytes};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *header;

	if (count) {
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, count * sizeof(int));
	}
	return sendmsg(to, &message, flags);
}

#endif
