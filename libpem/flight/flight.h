/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flight.h - what a flight recorder keeps in its own memory: the last packets of sources, and of
 * processes that ended
 *
 * Not here: pools of processes that live, which keep their last records themselves (snapshot.c
 * copies them).
 *
 * Bounded for days: two rings of packets of a fixed size, at most PEM_FLIGHT_PROCESSES_MAX ended
 * processes, the last context switch of each CPU, PEM_FLIGHT_NAMES_MAX names. What is pushed out is
 * counted as overwritten; the accounts of processes none of whose records are left become one.
 */
#ifndef PEM_FLIGHT_H
#define PEM_FLIGHT_H

#include "writer/trace_writer.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pem_session;

#define PEM_FLIGHT_PROCESSES_MAX 1000u
#define PEM_FLIGHT_NAMES_MAX 4096u
#define PEM_FLIGHT_BYTES_MIN (1u << 20)

struct pem_flight;

/*
 * Each ring has that many bytes (at least PEM_FLIGHT_BYTES_MIN), taken as they are needed. The
 * model, borrowed, describes what packets hold. overwritten is told of each record of a source that
 * is pushed out. NULL: out of memory.
 */
struct pem_flight *pem_flight__new(const struct pem_model *model, uint64_t bytes,
				   void (*overwritten)(void *arg, const struct pem_event *event),
				   void *arg);
void pem_flight__free(struct pem_flight *flight);
/* For pem_trace_writer__keep_in; it lasts as long as the flight does. */
const struct pem_packet_store *pem_flight__store(const struct pem_flight *flight);

/*
 * Keep a copy of a packet, as pem_trace_writer__packet takes it. Packets of source PEM_PACKET_USER
 * are those of an ended process, whose account follows its last one. 0, or -EINVAL.
 */
int pem_flight__packet(struct pem_flight *flight, const char *stream,
		       const struct pem_packet *packet, size_t bytes);
int pem_flight__balance(struct pem_flight *flight, uint32_t pid, const char *name,
			uint64_t start_clock, const struct pem_balance_entry *entries,
			size_t count);
/* Clock at which the stream that a packet was last added to ends; 0: it is another. */
uint64_t pem_flight__stream_clock(const struct pem_flight *flight, const char *stream);

/* Has anything been pushed out? */
bool pem_flight__has_overwritten(const struct pem_flight *flight);
/*
 * Write all of it to a trace; it stays here. 0, or the first -errno of the writer, which counts
 * what is lost.
 */
int pem_flight__write(const struct pem_flight *flight, struct pem_trace_writer *writer);

/* --- serve.c: requests for snapshots (pem_recorder__snapshot) --- */

struct pem_session_flight {
	struct pem_flight *store; /* of a flight recorder with a log; else NULL */
	char trace[PATH_MAX]; /* of its log */
	/* Its socket, and who asks for a snapshot; -1: none. */
	int serve_fd, asking_fd;
	uint64_t asking_since_ns;
};

/* Make the socket in the session's folder. 0, or -errno: it is recorded all the same. */
int pem_session__serve(struct pem_session *session);
/* Tell who looks what is recorded, and where to (NULL: as before). */
void pem_session__describe_flight(struct pem_session *session, const char *trace);
/*
 * Answer at most one request, if there is one. Writes a snapshot, and does not wait for the other
 * side.
 */
void pem_session__answer_requests(struct pem_session *session);
void pem_session__stop_serving(struct pem_session *session);

/* --- trace_end.c --- */

/*
 * What is the session's as a whole: lost events, costs, times. In flight the trace begins with its
 * first record.
 */
void pem_log__close_account(struct pem_session *session, struct pem_trace_info *info);

#endif
