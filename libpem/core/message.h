/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* message.h - taking a message with a file descriptor from a socket, whoever sent it */
#ifndef PEM_CONSUMER_MESSAGE_H
#define PEM_CONSUMER_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Take the next message of a SOCK_SEQPACKET socket, without waiting. Returns its bytes, at most
 * those there is room for; 0: the other end is closed; or -errno. *fd is the caller's: the one
 * descriptor that came with it. -1: none came, or several, which are closed, or the message was too
 * long.
 */
ssize_t pem_message__receive(int socket, void *data, size_t bytes, int *fd);

#endif
