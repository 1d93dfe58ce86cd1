/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* pools.h - files and memory of this process's pools, made before they are used */
#ifndef PEM_PRODUCER_POOLS_H
#define PEM_PRODUCER_POOLS_H

#include <pem/ring.h>

#include <stdbool.h>
#include <stddef.h>

struct pem_joined;

/*
 * May this process make a file of so many bytes? Beyond RLIMIT_FSIZE the kernel would raise SIGXFSZ
 * in the program.
 */
bool pem_file_size_allowed(uint64_t bytes);

/* Write the path DIRECTORY/KIND-PID-NUMBER. False: it does not fit. */
bool pem_process__name_file(char *path, size_t bytes, const char *directory, const char *kind,
			    uint32_t number);
/*
 * Make a new file "<kind>-<pid>-<number>" in a session's folder. Its path is left in path. numbers:
 * a counter that goes up for each name; NULL: the number comes from the clock, so that nobody knows
 * it before. Returns a descriptor, or -errno.
 */
int pem_create_file(const char *directory, const char *kind, uint32_t *numbers, char *path,
		    size_t bytes);

/* Give memory to a range of a pool. False: there is none, and a touch would raise SIGBUS. */
bool pem_populate(void *start, uint64_t bytes);
/*
 * Give memory to the cells of events that are registered after the pool was made, in the lanes that
 * a thread has had, as far as there is any. Lane 0 has memory for all events.
 */
void pem_ring__populate_events(const struct pem_ring *ring, uint32_t first, uint32_t count);
/* Get access to a chunk that the consumer has allowed since the pool was made. False: no access. */
bool pem_joined__open_chunk(struct pem_joined *joined, const struct pem_ring *ring, uint32_t index);

/*
 * Reserve what a pool of this process will need while it still can be had. spares: make pools for
 * children: restricted children, or children that can't make a file. ready: make memory for threads
 * and chunks to come. Lock held; the session has a pool.
 */
void pem_process__reserve(unsigned session_index, bool spares, bool ready);
/*
 * Give this process a pool that its parent reserved for a child. Lock held. Returns 0, or -errno:
 * none is left.
 */
int pem_process__take_spare(unsigned session_index);

#endif
