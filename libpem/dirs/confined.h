/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confined.h - the session's side of its confined helpers: starting them, messages, ending them
 *
 * Nothing here waits for a helper without a limit. A helper has the rights of the user whose
 * folders it works in, and that user may stop or kill it.
 */
#ifndef PEM_CONSUMER_CONFINED_H
#define PEM_CONSUMER_CONFINED_H

#include "confined/protocol.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct pem_confined_reply;
struct pem_confined_setup;

struct pem_confined {
	int socket;
	pid_t pid;
	uint32_t number; /* of the last request that asked for a reply */
};

/*
 * Start the program pem-confined. folder_fd and process_fd (-1: none) stay the caller's. NULL with
 * errno: it could not be started, or pem-confined is not installed beside libpem (ENOENT).
 */
struct pem_confined *pem_confined__start(const struct pem_confined_setup *setup, int folder_fd,
					 int process_fd);

/* Send a request; asks: a reply DONE with its number is wanted. Never waits. 0, or -errno. */
int pem_confined__send(struct pem_confined *helper, enum pem_confined_request_kind kind,
		       const char *name, uint64_t inode, bool asks);

/*
 * Take the next message, if there is one: then the caller has *fd, -1 if none came with it. 1: a
 * message, 0: none yet, -EPIPE: the helper is gone, or says what no helper says.
 */
int pem_confined__receive(struct pem_confined *helper, struct pem_confined_reply *reply, int *fd);

/* Wait for a message until a time of pem_monotonic_ns. False: none came. */
bool pem_confined__wait(const struct pem_confined *helper, uint64_t deadline_ns);

/*
 * Let it remove what it made, and free helper. After a time of pem_monotonic_ns, 0: at once, it is
 * killed, and what it made stays. NULL is accepted.
 */
void pem_confined__end(struct pem_confined *helper, uint64_t deadline_ns);

#endif
