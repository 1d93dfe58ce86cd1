/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * flight.h - what a flight recorder keeps in its own memory: the last packets of sources, and of
 * processes that ended
 *
 * Not here: pools of processes that live. Such a pool itself keeps the last records; snapshot.c
 * copies it.
 *
 * The memory is bounded, so that a recorder may run for days: two rings of packets of a fixed size,
 * at most PEM_FLIGHT_PROCESSES_MAX ended processes, the last context switch of each CPU, and
 * PEM_FLIGHT_NAMES_MAX names. A record that is pushed out is counted as overwritten. Processes of
 * which no record is left share one account.
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
 * Make a flight recorder's memory. Each ring has bytes bytes (at least PEM_FLIGHT_BYTES_MIN); a
 * page is taken when it is needed. The model is borrowed and describes the records in packets.
 * overwritten is called with the event of each record of a source that is pushed out. NULL: out of
 * memory.
 */
struct pem_flight *pem_flight__new(const struct pem_model *model, uint64_t bytes,
				   void (*overwritten)(void *arg, const struct pem_event *event),
				   void *arg);
void pem_flight__free(struct pem_flight *flight);
/* Return a store for pem_trace_writer__keep_in. It lasts as long as the flight does. */
const struct pem_packet_store *pem_flight__store(const struct pem_flight *flight);

/*
 * Keep a copy of a packet, given as to pem_trace_writer__packet. Packets of source PEM_PACKET_USER
 * belong to one ended process, whose account (__balance) comes after its last packet. Returns 0;
 * -EINVAL: the packet is not sound or too large; -ENOMEM.
 */
int pem_flight__packet(struct pem_flight *flight, const char *stream,
		       const struct pem_packet *packet, size_t bytes);
int pem_flight__balance(struct pem_flight *flight, uint32_t pid, const char *name,
			uint64_t start_clock, const struct pem_balance_entry *entries,
			size_t count);
/* Return the clock at which a stream ends, if the last packet was added to it; else 0. */
uint64_t pem_flight__stream_clock(const struct pem_flight *flight, const char *stream);

/* Has anything been pushed out? */
bool pem_flight__has_overwritten(const struct pem_flight *flight);
/*
 * Write all packets and accounts to a trace. They stay in memory. Returns 0, or the first -errno of
 * the writer, which counts what is lost.
 */
int pem_flight__write(const struct pem_flight *flight, struct pem_trace_writer *writer);

/* --- serve.c: requests for snapshots (pem_recorder__snapshot) --- */

struct pem_session_flight {
	struct pem_flight *store; /* memory of a flight recorder with a log; else NULL */
	char trace[PATH_MAX]; /* path of its log's trace */
	/* The socket, and the connection of a program that asks for a snapshot; -1: none. */
	int serve_fd, asking_fd;
	uint64_t asking_since_ns;
};

/* Make the socket in the session's folder. Returns 0, or -errno: the session records even so. */
int pem_session__serve(struct pem_session *session);
/*
 * Write the file that tells other programs what is recorded, and where to. trace NULL: as before.
 */
void pem_session__describe_flight(struct pem_session *session, const char *trace);
/*
 * Answer at most one request for a snapshot, if there is one. Writes the snapshot, and does not
 * wait for the other side.
 */
void pem_session__answer_requests(struct pem_session *session);
void pem_session__stop_serving(struct pem_session *session);

/* --- trace_end.c --- */

/*
 * Complete info with what concerns the session as a whole: lost events, costs, times. The time of a
 * flight recorder's trace begins with its first record.
 */
void pem_log__close_account(struct pem_session *session, struct pem_trace_info *info);

#endif
