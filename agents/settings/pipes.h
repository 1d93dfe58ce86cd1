/* SPDX-License-Identifier: MIT */
/*
 * pipes.h - the pipes of processes that run: how many bytes they have space for, and more of it
 *
 * The descriptors of a process, and of all that descend from it, are looked at in /proc: often at
 * first, and then ten times a second, or less often if a look takes long. A pipe is resized through
 * a descriptor that this process opens for a moment. Nothing else of the processes is touched, and
 * they do not notice.
 *
 * Not here: which size is good for a pipe, which is its agent's to say.
 */
#ifndef PEM_SETTINGS_PIPES_H
#define PEM_SETTINGS_PIPES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SETTINGS_NAME_BYTES 64u

/* A size for all pipes between processes of these names. Longer pipes stay as they are. */
struct settings_pipe_wish {
	char from[SETTINGS_NAME_BYTES], to[SETTINGS_NAME_BYTES];
	uint32_t bytes;
	/* Written by settings_pipes__look: */
	uint32_t was_bytes; /* the size that the first one had; 0: none was found */
	int error; /* -errno: one has the size that it had */
};

struct settings_pipes;

#define SETTINGS_ROOTS_MAX 64u

/*
 * The pipes of processes, at most SETTINGS_ROOTS_MAX, and of those that descend from them; of this
 * process, only of those. wishes: may be NULL; used until settings_pipes__free. NULL: no memory.
 */
struct settings_pipes *settings_pipes__new(const pid_t *roots, size_t root_count,
					   struct settings_pipe_wish *wishes, size_t count);
/* NULL is accepted. */
void settings_pipes__free(struct settings_pipes *pipes);
/* Look at them if it is time. Returns after how many ns it is time again. */
uint64_t settings_pipes__look(struct settings_pipes *pipes);

/* The size in bytes that a pipe was last seen to have, by its inode. 0: unknown, or pipes is NULL.
 */
uint32_t settings_pipes__bytes(const struct settings_pipes *pipes, uint64_t inode);

#endif
