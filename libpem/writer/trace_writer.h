/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_writer.h - a trace directory while it is being written: packets to stream files, metadata,
 * .pem/
 *
 * A full disk stops the writing of packets, not the counting: what is not written is counted as
 * discarded in its stream, and space for the closing files is reserved when the trace is begun.
 */
#ifndef PEM_TRACE_WRITER_H
#define PEM_TRACE_WRITER_H

#include "util.h"

#include <pem/trace.h>

#include <stdbool.h>

struct pem_model;

struct pem_balance_entry;
struct pem_trace_writer;

/* Is nothing in the folder that fd is open on? False also if it cannot be read. */
bool pem_folder_is_empty(int fd);

/*
 * Begin a trace in a directory that does not exist or is empty; info has command, host, clock and
 * start set. The model is borrowed and may grow; call __model_changed then. NULL with errno and
 * error.
 */
struct pem_trace_writer *pem_trace_writer__new(const char *directory, const struct pem_model *model,
					       const struct pem_trace_info *info,
					       struct pem_error *error);
/* The command has become known: write it down. 0, or -errno. */
int pem_trace_writer__set_info(struct pem_trace_writer *writer, const struct pem_trace_info *info);
/* Write the metadata again, as the model has grown. 0, or -errno. */
int pem_trace_writer__model_changed(struct pem_trace_writer *writer);

/*
 * Append a packet whose records are checked and whose header holds timestamps, content_size,
 * sequence, pid, tid, cpu, source, record_count and events_discarded (without what this writer
 * lost). bytes: readable from packet on. 0, or -errno: nothing of it was written, its records count
 * as lost in the stream.
 */
int pem_trace_writer__packet(struct pem_trace_writer *writer, const char *stream,
			     struct pem_packet *packet, size_t bytes);
/*
 * The same for packets of one stream that lie one after the other, each in its content rounded up
 * to 8 bytes; one write. 0, or -errno: none of them was written.
 */
int pem_trace_writer__packets(struct pem_trace_writer *writer, const char *stream, void *packets,
			      size_t bytes);
/*
 * Records discarded in a stream after its last packet: state them in an empty packet, if the disk
 * allows.
 */
void pem_trace_writer__discarded(struct pem_trace_writer *writer, const char *stream,
				 uint64_t events_discarded, uint64_t clock);
/*
 * Go on with a trace that was cut off, beside it: what is there is read and not changed, and all
 * that is written goes to the folder stage_fd (trace_stage.h), packets to stream files of their
 * own. trace_fd: the trace's folder. Both are duplicated. NULL with errno and error.
 */
struct pem_trace_writer *pem_trace_writer__resume(int trace_fd, int stage_fd,
						  const struct pem_model *model,
						  const struct pem_trace_info *info,
						  struct pem_error *error);
/*
 * Show each packet of the wanted streams of the trace that is gone on with, whole and with its
 * sizes checked; streams come in the order of their names, so that those of one process follow each
 * other.
 */
void pem_trace_writer__walk(struct pem_trace_writer *writer,
			    bool (*wants)(const void *arg, const char *stream),
			    void (*see)(void *arg, const char *stream,
					const struct pem_packet *packet, size_t content_bytes),
			    void *arg);
/* Clock at the end of a stream's last packet; 0: no such stream. Of all streams: __last_clock. */
uint64_t pem_trace_writer__stream_clock(const struct pem_trace_writer *writer, const char *stream);
uint64_t pem_trace_writer__last_clock(const struct pem_trace_writer *writer);
/*
 * Where packets and accounts go instead of files. Its functions do what those of pem_trace_writer
 * of these names do.
 */
struct pem_packet_store {
	void *arg;
	int (*packet)(void *arg, const char *stream, const struct pem_packet *packet, size_t bytes);
	int (*balance)(void *arg, uint32_t pid, const char *name, uint64_t start_clock,
		       const struct pem_balance_entry *entries, size_t count);
	uint64_t (*stream_clock)(const void *arg, const char *stream);
};
/* From now on packets and accounts go to a store, which is borrowed; NULL: to files again. */
void pem_trace_writer__keep_in(struct pem_trace_writer *writer,
			       const struct pem_packet_store *store);
/* The trace's records begin here: what was written so far only tells what was before. */
void pem_trace_writer__begin_span(struct pem_trace_writer *writer);
/* Clock at which the first packet with records since then begins; 0: none came. */
uint64_t pem_trace_writer__span_clock(const struct pem_trace_writer *writer);
/*
 * Note in the trace which session records it, for pem_trace__recover; NULL: none any more. 0, or
 * -errno.
 */
int pem_trace_writer__note_session(struct pem_trace_writer *writer, const char *session_directory);

/* First failure of a packet, or 0. */
int pem_trace_writer__failed(const struct pem_trace_writer *writer);

struct pem_balance_entry {
	uint32_t event_id; /* 0: unknown */
	struct pem_balance balance;
};
/*
 * One producer's balances, for .pem/balance; start_clock as in struct pem_trace_producer. 0, or
 * -ENOMEM.
 */
int pem_trace_writer__balance(struct pem_trace_writer *writer, uint32_t pid, const char *name,
			      uint64_t start_clock, const struct pem_balance_entry *entries,
			      size_t count);

/* names.c: write .pem/names, if there are any. 0, or -errno. */
int pem_trace_writer__write_names(struct pem_trace_writer *writer);
/* Add another's. */
void pem_trace_writer__copy_names(struct pem_trace_writer *writer, struct pem_trace_writer *from);
/* Write .pem/run, .pem/names and .pem/balance. 0, or -errno. */
int pem_trace_writer__finish(struct pem_trace_writer *writer, const struct pem_trace_info *info);
void pem_trace_writer__free(struct pem_trace_writer *writer);

#endif
