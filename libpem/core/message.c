/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* message.c - taking a message with a file descriptor from a socket; the sender is not trusted */
#include "core/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The most descriptors of a message: SCM_MAX_FD, which the kernel's headers for programs lack. */
#define DESCRIPTORS_MAX 253

static int take_descriptor(struct msghdr *message)
{
	struct cmsghdr *header;
	unsigned count = 0;
	int fd, only = -1;
	size_t at;

	for (header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (at = 0; CMSG_LEN(at + sizeof(fd)) <= header->cmsg_len; at += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(header) + at, sizeof(fd));
			if (count++)
				close(fd);
			else
				only = fd;
		}
	}
	if (count == 1 && !(message->msg_flags & (MSG_CTRUNC | MSG_TRUNC)))
		return only;
	if (count)
		close(only);
	return -1;
}

ssize_t pem_message__receive(int socket, void *data, size_t bytes, int *fd)
{
	union {
		char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {data, bytes};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (got < 0)
		return -errno;
	*fd = take_descriptor(&message);
	return got;
}
