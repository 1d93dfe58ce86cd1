/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * chunks.h - the way of a chunk: found, copied, checked, handed to callbacks and log, freed,
 * accounted for
 */
#ifndef PEM_CHUNKS_H
#define PEM_CHUNKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pem_producer;
struct pem_session;

struct pem_drain;
struct pem_drain_team;

#define PEM_DRAIN_THREADS_MAX 64u
#define PEM_BATCH_BYTES (256u << 10) /* at least one chunk; half of a second-level cache */

/* Packets of one lane, checked and not yet written: they go to the file in one system call. */
struct pem_batch {
	uint8_t *memory; /* private copies of chunks while they are checked, and until written */
	size_t bytes; /* bytes of memory */
	size_t used; /* bytes used of it */
	size_t last; /* offset of the last packet, if any bytes are used */
	uint32_t lane;
	uint64_t clock; /* clock at which the lane's stream will end */
	uint64_t records;
	uint64_t missing; /* packets of the lane that were not found between others */
	uint32_t *counts; /* records by event; zeroes in an empty batch */
};

/* What a thread that moves chunks has for itself. */
struct pem_drain_thread {
	struct pem_batch batch;
	struct pem_drain_team *team;
	pthread_t thread; /* not of the session's own */
};

struct pem_session_chunks {
	struct pem_drain_thread own; /* of whichever thread has the session's lock */
	/* Further threads for moments with much to move; NULL: there has been no such moment. */
	struct pem_drain_team *team;
	bool alone; /* there are to be no further threads */
	uint64_t next_start_ns; /* none is started before: the last try failed */
	/* Guards the log's model, while several threads move chunks. */
	pthread_mutex_t describing;
	/* When to look for new and gone processes next. */
	uint64_t next_scan_ns;
	uint64_t next_growth_ns; /* no pool grows before this time: the machine had no memory */
};

/* --- drain.c --- */

/* Chunks of a producer that are to be moved to the log. */
struct pem_drain {
	struct pem_producer *producer;
	struct pem_found_chunk *found; /* by lane, and in each lane's order */
	size_t count;
	bool any_order; /* a gap in a lane's chunks stays one */
	bool is_shared_out; /* several threads may move the producer's chunks */
	uint64_t began_ns; /* since when the producer's directory was not charged */
};

/*
 * Move full chunks to the log. final: all committed records. False: the turn of the producer's
 * directory was over before all were moved.
 */
bool pem_session__drain_producer(struct pem_session *session, struct pem_producer *producer,
				 bool final);

/*
 * Do so for all producers. Each directory has its turn. Producers for which the time of their
 * directory was too short come first in its next turn. False: there are such producers.
 */
bool pem_session__drain_producers(struct pem_session *session);

/*
 * Move the found chunks from 'from' to before 'to', which begin and end with a lane where they are
 * not all. Several threads may do so at once for other chunks of the drain, if its producer's
 * events are fixed. False: the turn of the producer's directory was over before all were moved.
 */
bool pem_drain__run(struct pem_session *session, struct pem_drain *drain, size_t from, size_t to,
		    struct pem_drain_thread *thread);

/* --- team.c --- */

/* Make memory for one thread. Returns 0, or -ENOMEM. */
int pem_chunks__begin(struct pem_session *session);
/* End all further threads, and free what the chunks' room has. */
void pem_chunks__end(struct pem_session *session);

/*
 * Run the drains whole: by several threads if that is worth it. If there is more than one, each is
 * shared out. False: the turn of a directory was over before all was moved.
 */
bool pem_session__run_drains(struct pem_session *session, struct pem_drain *drains, size_t count);

/* --- grow.c --- */

/*
 * Let the pool grow if that many full chunks are a large part of it, and memory allows. Blocks on
 * files of /proc and /sys.
 */
void pem_producer__grow(struct pem_session *session, struct pem_producer *producer, size_t full);

/* --- drain.c: streams --- */

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
