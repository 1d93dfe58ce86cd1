/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace_writer.h - a trace directory while it is being written: stream files, metadata, '.pem'
 *
 * When the disk is full, the writer stops writing packets and goes on counting. It counts records
 * that it can't write as discarded in their stream. It reserves space for the closing files when
 * the trace begins.
 */
#ifndef PEM_TRACE_WRITER_H
#define PEM_TRACE_WRITER_H

#include "util.h"

#include <pem/trace.h>

#include <stdbool.h>

struct pem_model;
struct pem_packer;

struct pem_balance_entry;
struct pem_trace_writer;

/* Is the folder that fd is open on empty? Returns false also if the folder can't be read. */
bool pem_folder_is_empty(int fd);

/*
 * Begin a trace in a directory that does not exist or is empty. info has command, host, clock and
 * start set. The model is borrowed and may grow; call __model_changed then. NULL with errno and
 * error.
 */
struct pem_trace_writer *pem_trace_writer__new(const char *directory, const struct pem_model *model,
					       const struct pem_trace_info *info,
					       struct pem_error *error);
/* Write the run's info again, as the command is known now. Returns 0, or -errno. */
int pem_trace_writer__set_info(struct pem_trace_writer *writer, const struct pem_trace_info *info);
/* Write the model and the metadata again, because the model has grown. Returns 0, or -errno. */
int pem_trace_writer__model_changed(struct pem_trace_writer *writer);

/*
 * Append a packet. Its records are checked. Its header holds timestamps, content_size, sequence,
 * pid, tid, cpu, source, record_count and events_discarded. events_discarded does not include what
 * this writer lost. bytes: how many bytes are readable from packet on. Returns 0, or -errno:
 * nothing of the packet was written, and its records count as lost in the stream. There is no
 * stream to count them in after -ENOMEM, or after -EINVAL because stream is no stream's name.
 */
int pem_trace_writer__packet(struct pem_trace_writer *writer, const char *stream,
			     struct pem_packet *packet, size_t bytes);
/*
 * Append packets of one stream by one write. They lie one after the other; each takes its content
 * size, rounded up to 8 bytes. Returns 0, or -errno: none of them was written, and their records
 * count as lost as above. After -EINVAL, which one wrong packet is enough for, the packets are
 * unchanged, and the records of those behind the wrong one are not counted.
 */
int pem_trace_writer__packets(struct pem_trace_writer *writer, const char *stream, void *packets,
			      size_t bytes);
/*
 * State records that were discarded in a stream after its last packet. Writes an empty packet, if
 * the disk allows.
 */
void pem_trace_writer__discarded(struct pem_trace_writer *writer, const char *stream,
				 uint64_t events_discarded, uint64_t clock);
/*
 * Go on with a trace that was cut off. The writer reads the trace's files and does not change them.
 * It writes to the folder stage_fd (trace_stage.h); packets go to stream files of their own there.
 * trace_fd: the trace's folder. The writer duplicates both descriptors. NULL with errno and error.
 */
struct pem_trace_writer *pem_trace_writer__resume(int trace_fd, int stage_fd,
						  const struct pem_model *model,
						  const struct pem_trace_info *info,
						  struct pem_error *error);
/*
 * Call see for each whole packet, with its sizes checked, of the streams that wants accepts. The
 * streams are those of the trace that __resume goes on with. They come in the order of their names,
 * so that the streams of one process follow each other.
 */
void pem_trace_writer__walk(struct pem_trace_writer *writer,
			    bool (*wants)(const void *arg, const char *stream),
			    void (*see)(void *arg, const char *stream,
					const struct pem_packet *packet, size_t content_bytes),
			    void *arg);
/*
 * Return the clock at the end of a stream's last packet; 0: there is no such stream. __last_clock
 * returns the last one of all streams.
 */
uint64_t pem_trace_writer__stream_clock(struct pem_trace_writer *writer, const char *stream);
uint64_t pem_trace_writer__last_clock(const struct pem_trace_writer *writer);
/*
 * Functions that take packets and accounts instead of files. Each does what the function of
 * pem_trace_writer with its name does.
 */
struct pem_packet_store {
	void *arg;
	int (*packet)(void *arg, const char *stream, const struct pem_packet *packet, size_t bytes);
	int (*balance)(void *arg, uint32_t pid, const char *name, uint64_t start_clock,
		       const struct pem_balance_entry *entries, size_t count);
	uint64_t (*stream_clock)(const void *arg, const char *stream);
};
/*
 * Send packets and accounts to a store from now on. The store is borrowed. NULL: send them to files
 * again.
 */
void pem_trace_writer__keep_in(struct pem_trace_writer *writer,
			       const struct pem_packet_store *store);
/* Compress packets from now on. No packet was written before. The packer is borrowed; NULL: none.
 */
void pem_trace_writer__compress(struct pem_trace_writer *writer, struct pem_packer *packer);
/* The trace's records begin now. What was written so far only tells what was before. */
void pem_trace_writer__begin_span(struct pem_trace_writer *writer);
/*
 * Return the clock at which the first packet with records since __begin_span begins; 0: none came.
 */
uint64_t pem_trace_writer__span_clock(const struct pem_trace_writer *writer);
/*
 * Note in the trace which session records it, for pem_trace__recover. NULL: remove the note.
 * Returns 0, or -errno.
 */
int pem_trace_writer__note_session(struct pem_trace_writer *writer, const char *session_directory);

/*
 * Keep a copy of a file with this build id, of 2 to 20 bytes, for pem_code__keep (pem/code.h). fd
 * is open for reading. Returns 0, also if there is one already, or -errno. Blocks on files.
 */
int pem_trace_writer__keep_file(struct pem_trace_writer *writer, const uint8_t *build_id,
				size_t build_id_bytes, int fd, uint64_t file_bytes);

/* Return the failure that stopped the writing of packets (-errno), or 0. */
int pem_trace_writer__failed(const struct pem_trace_writer *writer);

struct pem_balance_entry {
	uint32_t event_id; /* 0: unknown */
	struct pem_balance balance;
};
/*
 * Add one producer's balances to what becomes .pem/balance. start_clock: as in struct
 * pem_trace_producer. Returns 0, or -ENOMEM.
 */
int pem_trace_writer__balance(struct pem_trace_writer *writer, uint32_t pid, const char *name,
			      uint64_t start_clock, const struct pem_balance_entry *entries,
			      size_t count);

/* names.c: write .pem/names, if there are any names. Returns 0, or -errno. */
int pem_trace_writer__write_names(struct pem_trace_writer *writer);
/* Add the names that another writer has. */
void pem_trace_writer__copy_names(struct pem_trace_writer *writer, struct pem_trace_writer *from);
/* Write .pem/names, .pem/run and, last, .pem/balance. Returns 0, or -errno. */
int pem_trace_writer__finish(struct pem_trace_writer *writer, const struct pem_trace_info *info);
void pem_trace_writer__free(struct pem_trace_writer *writer);

#endif
