/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * chunks.h - the way of a chunk: found, copied, checked, handed to callbacks and log, freed,
 * accounted for
 */
#ifndef PEM_CHUNKS_H
#define PEM_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pem_producer;
struct pem_session;

#define PEM_BATCH_BYTES (256u << 10) /* at least one chunk; half of a second-level cache */

struct pem_session_chunks {
	/* Private copies of chunks while they are checked, and until they are written. */
	uint8_t *batch;
	size_t batch_bytes;
	/* When to look for new and gone processes next. */
	uint64_t next_scan_ns;
};

/* --- drain.c --- */

/*
 * Move full chunks to the log. final: all committed records. False: the turn of the producer's
 * directory was over before all were moved.
 */
bool pem_session__drain_producer(struct pem_session *session, struct pem_producer *producer,
				 bool final);

/* Write the name of a lane's stream file to name. */
void pem_producer__stream(const struct pem_producer *producer, uint32_t lane, char *name,
			  size_t bytes);

bool pem_producer__owns_stream(const struct pem_producer *producer, const char *name);
/* Return the clock of the last record written to a lane's stream; 0: none was written. */
uint64_t pem_session__stream_clock(struct pem_session *session, const struct pem_producer *producer,
				   uint32_t lane);

/* --- account.c --- */

/*
 * Add up what each event's cells say was produced and discarded. The caller does so before the last
 * drain. A record that a thread commits in between is delivered and not counted; there is at most
 * one for each thread. No record is counted and not delivered.
 */
void pem_producer__sum_cells(struct pem_producer *producer);
/* Account for a producer that will produce no more, or no more for this session. */
void pem_session__account(struct pem_session *session, struct pem_producer *producer);

/* Add the statistics of a producer that goes away to what its demands keep. */
void pem_session__retire(struct pem_session *session, struct pem_producer *producer);

/* --- gone.c --- */

/* Look for new and gone processes, and set next_scan_ns to some milliseconds after now_ns. */
void pem_session__update_processes(struct pem_session *session, uint64_t now_ns);

/*
 * Release each producer whose process has ended, or cut off its pool: drain it, account for it,
 * remove its files and free it. A producer whose directory's turn is over waits for the next call.
 */
void pem_session__release_gone(struct pem_session *session);

#endif
