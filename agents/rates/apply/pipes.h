/* SPDX-License-Identifier: MIT */
/*
 * pipes.h - the pipes of processes that run: how many bytes they have space for, and more of it
 *
 * A thread looks at the descriptors of a process and of all that descend from it, in /proc: often
 * at first, and then ten times a second, or less often if a look takes long. A pipe is resized
 * through a descriptor that this process opens for a moment. Nothing else of the processes is
 * touched, and they do not notice.
 *
 * Not here: which size is good for a pipe (program/tune.c).
 */
#ifndef PEM_RATES_PIPES_H
#define PEM_RATES_PIPES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RATE_NAME_BYTES 64u

/*
 * A size for a pipe, which is found by the names of the processes at its ends. Of several pipes
 * between processes of these names, it is number "number", from 1, in the order in which their
 * writers were started. It is set once as many as "of" are there. A longer pipe stays as it is.
 */
struct rate_pipe_wish {
	char from[RATE_NAME_BYTES], to[RATE_NAME_BYTES];
	uint32_t number, of;
	uint32_t bytes;
	/* Written by rate_pipes__end: */
	uint32_t was_bytes; /* its size before; 0: it was not found */
	int error; /* -errno: it has the size that it had */
};

struct rate_pipes;

#define RATE_ROOTS_MAX 64u

/*
 * Follow the pipes of processes, at most RATE_ROOTS_MAX, and of those that descend from them; of
 * this process, only of those. wishes: may be NULL; written until rate_pipes__end. Returns NULL
 * with errno: ENOMEM, or EAGAIN, no thread.
 */
struct rate_pipes *rate_pipes__follow(const pid_t *roots, size_t root_count,
				      struct rate_pipe_wish *wishes, size_t count);
/* The thread ends. Blocks for a look that goes on. NULL is accepted. */
void rate_pipes__end(struct rate_pipes *pipes);
void rate_pipes__free(struct rate_pipes *pipes);

/* The size in bytes that a pipe was last seen to have, by its inode. 0: unknown. Any thread may
 * ask. */
uint32_t rate_pipes__bytes(struct rate_pipes *pipes, uint64_t inode);

/* The greatest size in bytes that an ordinary user may give to a pipe (pipe(7)). */
uint32_t rate_pipes__limit(void);

#endif
