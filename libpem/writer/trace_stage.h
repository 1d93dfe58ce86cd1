/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_stage.h - the stage: a folder beside the trace's files where a recovery puts new files
 *
 * The stage is published once it holds everything. The head of trace_stage.c has the order of
 * steps, and says why the trace survives if the process ends after any of them.
 */
#ifndef PEM_TRACE_STAGE_H
#define PEM_TRACE_STAGE_H

#include <pem/trace.h>

#include <stdbool.h>
#include <sys/stat.h>

/* trace_stage.c; private_fd is the trace's folder '.pem' */

/*
 * Make a new, empty stage and remove what an interrupted recovery had put there. Returns its
 * descriptor, which the caller closes, or -errno.
 */
int pem_stage__begin(int private_fd);
/* Remove the stage that is being filled: the trace stays as it was. */
void pem_stage__discard(int private_fd);
/*
 * Mark the stage as whole. From now on recoveries publish it, and none makes it anew. Returns 0, or
 * -errno.
 */
int pem_stage__commit(int private_fd);
/* Is there a whole stage that is not published yet? */
bool pem_stage__is_whole(int private_fd);
/*
 * Move what the stage holds into the trace. Returns 0, or -errno: mend the cause and call it again;
 * the second call goes on where the first one stopped.
 */
int pem_stage__publish(int trace_fd, int private_fd);

/* trace_resume.c */

/* Read the trace's uuid from its metadata. Returns 0, or -errno. */
int pem_trace__read_uuid(int trace_fd, uint8_t uuid[16]);
/*
 * Open a file that may be a stream: it has a stream's name and is a regular file. Fills st. Returns
 * a descriptor, which the caller closes; -ENOENT: the file is no stream; or -errno.
 */
int pem_stream_file__open(int trace_fd, const char *name, int access, struct stat *st);

struct pem_stream_extent {
	uint64_t bytes, packets; /* whole packets of this trace, from the stream's beginning */
	/*
	 * The rest of the file is the beginning of one more packet, or one more block of a
	 * compressed file. It begins at whole_bytes of the file.
	 */
	bool torn;
	uint64_t whole_bytes;
	struct pem_packet last; /* header of the last whole packet, if there is one */
};
/* Returns 0, or -errno: a compressed file can't be read. */
int pem_stream_file__measure(int fd, uint64_t file_bytes, const uint8_t uuid[16],
			     struct pem_stream_extent *extent);

#endif
