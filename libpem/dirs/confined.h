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
	uint32_t number; /* number of the last request that asked for a reply */
};

/*
 * Start the program pem-confined. folder_fd and process_fd (-1: none) stay the caller's. NULL with
 * errno: the program could not be started; ENOENT: it is not installed beside libpem.
 */
struct pem_confined *pem_confined__start(const struct pem_confined_setup *setup, int folder_fd,
					 int process_fd);

/*
 * Send a request. asks: the helper is to reply DONE with the request's number. Never waits. Returns
 * 0, or -errno.
 */
int pem_confined__send(struct pem_confined *helper, enum pem_confined_request_kind kind,
		       const char *name, uint64_t inode, bool asks);

/*
 * Take the next message, if there is one. Returns 1: a message; the caller closes *fd, which is -1
 * if no descriptor came with it. 0: there is no message yet. -EPIPE: the helper has ended, or sent
 * something that no helper sends.
 */
int pem_confined__receive(struct pem_confined *helper, struct pem_confined_reply *reply, int *fd);

/* Wait for a message until deadline_ns, a time of pem_monotonic_ns. False: none came. */
bool pem_confined__wait(const struct pem_confined *helper, uint64_t deadline_ns);

/*
 * Let the helper remove what it made, wait for its end, and free helper. The helper is killed if it
 * has not ended at deadline_ns, a time of pem_monotonic_ns; 0: at once. The files of a killed
 * helper stay. NULL is accepted.
 */
void pem_confined__end(struct pem_confined *helper, uint64_t deadline_ns);

#endif
