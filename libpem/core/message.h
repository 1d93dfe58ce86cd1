/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* message.h - taking a message with a file descriptor from a socket; the sender is not trusted */
#ifndef PEM_CONSUMER_MESSAGE_H
#define PEM_CONSUMER_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Take the next message of a SOCK_SEQPACKET socket, without waiting. Returns the number of bytes
 * taken, at most bytes; 0: the other end is closed; or -errno. *fd is the one descriptor that came
 * with the message, and the caller closes it. *fd is -1 if none came. It is also -1 if several came
 * or the message was too long; the descriptors are closed then.
 */
ssize_t pem_message__receive(int socket, void *data, size_t bytes, int *fd);

#endif
