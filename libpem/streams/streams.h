/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * streams.h - what the files of this room share: two readings of the queues of a process
 *
 *	streams.c	finds the memory in which a process shows its queues, and reads it
 *	service.c	what a thread did between two readings
 *	process.c	facts about a process from its files in /proc
 *
 * The contract is pem/streams.h.
 */
#ifndef PEM_STREAMS_ROOM_H
#define PEM_STREAMS_ROOM_H

#include <pem/streams.h>

#include <stdbool.h>

/* Queues at one moment. */
struct pem_streams_reading {
	struct pem_streams_queue *list;
	size_t count, capacity;
};

/* pem_streams__service between any two readings; the queue is number i of the second. */
int pem_streams__between(const struct pem_streams_reading *before,
			 const struct pem_streams_reading *after, size_t i, int pops,
			 struct pem_streams_service *service);

/* The innermost of the ids that a process or thread has in nested namespaces. 0: unknown. */
unsigned long pem_streams__own_id(const char *status_path);
/* Has the process mapped the library of GStreamer? */
bool pem_streams__uses_gstreamer(uint32_t pid);
/*
 * Open the memory that a link of the process leads to. Returns a descriptor, or -1 with errno.
 * ENOENT: the link leads to another file now. That file is not opened, because its file system
 * might not answer.
 */
int pem_streams__open_memory(const char *link, int flags);

#endif
