/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_stage.h - what a recovery adds to a trace, beside the trace until all of it is there
 *
 * The order of steps, and why the trace survives an end after any of them, is at the head of
 * trace_stage.c.
 */
#ifndef PEM_TRACE_STAGE_H
#define PEM_TRACE_STAGE_H

#include <pem/trace.h>

#include <stdbool.h>
#include <sys/stat.h>

/* trace_stage.c; private_fd is the trace's folder '.pem'. */

/*
 * A new, empty stage, open for files to be put in. What an interrupted recovery had put there is
 * removed. -errno.
 */
int pem_stage__begin(int private_fd);
/* Remove the stage: the trace stays as it was. */
void pem_stage__discard(int private_fd);
/* The stage is whole: from now on it is published, and not made anew. 0, or -errno. */
int pem_stage__commit(int private_fd);
/* Is there a stage that is whole, and not published yet? */
bool pem_stage__is_whole(int private_fd);
/*
 * Move what the stage holds into the trace; may be repeated. 0, or -errno: call it again once the
 * cause is mended.
 */
int pem_stage__publish(int trace_fd, int private_fd);

/* trace_resume.c */

/* The trace's uuid, by its metadata. 0, or -errno. */
int pem_trace__read_uuid(int trace_fd, uint8_t uuid[16]);
/*
 * Open what may be a stream: a regular file, by a stream's name. st is filled. -ENOENT: it is none;
 * or -errno.
 */
int pem_stream_file__open(int trace_fd, const char *name, int access, struct stat *st);

struct pem_stream_extent {
	uint64_t bytes, packets; /* whole ones of this trace, from the file's beginning */
	bool torn; /* what follows, to the file's end, is the beginning of one more */
	struct pem_packet last; /* header of the last whole one, if there is one */
};
void pem_stream_file__measure(int fd, uint64_t file_bytes, const uint8_t uuid[16],
			      struct pem_stream_extent *extent);

#endif
