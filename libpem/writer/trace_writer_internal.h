/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_writer_internal.h - a trace writer from the inside, for trace_writer.c and trace_resume.c
 */
#ifndef PEM_TRACE_WRITER_INTERNAL_H
#define PEM_TRACE_WRITER_INTERNAL_H

#include <stdio.h>

struct pem_packet_store;

struct pem_flight;
struct pem_model;

/* A stream file of a trace that is gone on with, as its recorder left it. */
struct pem_earlier_stream {
	char name[PEM_STREAM_NAME_BYTES];
	uint64_t bytes; /* of whole packets, from its beginning */
	uint64_t last_clock; /* of the last of these */
	uint64_t discarded, overwritten; /* as that one states them */
};

struct pem_stream {
	char name[PEM_STREAM_NAME_BYTES];
	int fd; /* -1: not open now */
	uint64_t bytes; /* all of it whole packets */
	uint64_t packets;
	uint64_t last_clock;
	uint64_t lost; /* records that could not be written */
	uint64_t stated; /* events_discarded of the last packet */
	uint64_t overwritten; /* events_overwritten of the last packet */
	uint64_t used; /* when, for closing the one least used */
	uint64_t instance; /* stream_instance_id */
	/* stated by the earlier stream of the same name */
	uint64_t discarded_before, overwritten_before;
};

struct pem_trace_writer {
	int earlier_fd; /* folder of the trace that is gone on with, for reading; -1: a new trace */
	struct pem_earlier_stream *earlier;
	size_t earlier_count, earlier_capacity;
	int directory_fd;
	int private_fd; /* .pem */
	const struct pem_model *model;
	uint8_t uuid[16];
	struct pem_trace_info info;
	struct pem_stream *streams;
	size_t stream_count, stream_capacity;
	size_t last_stream;
	uint64_t next_instance;
	unsigned open_count;
	uint64_t ticks;
	int failed;
	/* takes packets and accounts instead of files; NULL: none */
	const struct pem_packet_store *store;
	uint64_t span_clock; /* first one of records since __begin_span; 0: none yet */
	FILE *balance; /* memory stream */
	char *balance_text;
	size_t balance_bytes;
	FILE *names; /* the same for .pem/names; NULL: there are none */
	char *names_text;
	size_t names_bytes;
};

/*
 * The stream of a name, new if need be; valid until the next call. NULL: out of memory, or it is no
 * stream's name.
 */
struct pem_stream *pem_trace_writer__stream(struct pem_trace_writer *writer, const char *name);

/*
 * trace_resume.c: the stream of that name in the trace that is gone on with; NULL: there was none.
 */
const struct pem_earlier_stream *pem_trace_writer__earlier(const struct pem_trace_writer *writer,
							   const char *name);

#endif
