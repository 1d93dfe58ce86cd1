/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* trace_writer_internal.h - the members of a trace writer, for writer/ and flight/ */
#ifndef PEM_TRACE_WRITER_INTERNAL_H
#define PEM_TRACE_WRITER_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

struct pem_packer;
struct pem_packet_store;

struct pem_flight;
struct pem_model;

/* A stream file of a trace that a resumed writer goes on with, as its recorder left it. */
struct pem_earlier_stream {
	char name[PEM_STREAM_FILE_BYTES];
	uint64_t bytes; /* bytes of whole packets, from the file's beginning */
	uint64_t last_clock; /* end of the last whole packet */
	uint64_t discarded, overwritten; /* as the last whole packet states them */
};

#define PEM_STREAM_BUCKETS 1024u

struct pem_stream {
	struct pem_stream *next_by_name;
	char name[PEM_STREAM_FILE_BYTES];
	int fd; /* -1: not open now */
	uint64_t device, inode; /* of the file, since it was made */
	uint64_t bytes; /* bytes of the file, all of whole packets or blocks */
	uint64_t packets;
	uint64_t last_clock;
	uint64_t lost; /* records that could not be written */
	uint64_t stated; /* events_discarded of the last packet */
	uint64_t overwritten; /* events_overwritten of the last packet */
	uint64_t used; /* tick of the last use: the stream least recently used is closed */
	bool writing; /* a thread writes packets to it: fd stays open */
	uint64_t instance; /* stream_instance_id */
	/* Counts that the earlier stream of this name states. */
	uint64_t discarded_before, overwritten_before;
};

struct pem_trace_writer {
	/*
	 * The folder of the trace that this writer goes on with, for reading; -1: the trace is new.
	 */
	int earlier_fd;
	struct pem_earlier_stream *earlier;
	size_t earlier_count, earlier_capacity;
	int directory_fd;
	int private_fd; /* .pem */
	const struct pem_model *model;
	uint8_t uuid[16];
	struct pem_trace_info info;
	/*
	 * Protects the members below up to span_clock, and a stream's fd, used and writing. Between
	 * lock and unlock of a write, the other members of its stream belong to the thread that
	 * writes.
	 */
	pthread_mutex_t lock;
	struct pem_stream **streams;
	size_t stream_count, stream_capacity;
	struct pem_stream *by_name[PEM_STREAM_BUCKETS];
	uint64_t next_instance;
	unsigned open_count;
	uint64_t ticks;
	int failed;
	uint64_t span_clock; /* clock of the first records since __begin_span; 0: none yet */
	struct pem_packer *packer; /* borrowed; NULL: packets are not compressed */
	/* The store that takes packets and accounts instead of files; NULL: none. */
	const struct pem_packet_store *store;
	FILE *balance; /* memory stream */
	char *balance_text;
	size_t balance_bytes;
	FILE *names; /* memory stream for .pem/names; NULL: there are no names */
	char *names_text;
	size_t names_bytes;
};

/*
 * Find the stream of a name, or make it. The caller holds the writer's lock. The pointer is valid
 * as long as the writer. NULL: out of memory, or name can't be a stream's name.
 */
struct pem_stream *pem_trace_writer__stream(struct pem_trace_writer *writer, const char *name);

/*
 * trace_resume.c: find the stream of that name in the trace that the writer goes on with. NULL:
 * there is none.
 */
const struct pem_earlier_stream *pem_trace_writer__earlier(const struct pem_trace_writer *writer,
							   const char *name);

/* run.c: write .pem/run. 0, or -errno. */
int pem_trace_writer__write_run(struct pem_trace_writer *writer, const struct pem_trace_info *info);

#endif
