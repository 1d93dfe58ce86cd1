/* SPDX-License-Identifier: MIT */
/*
 * flight.h - the flight recorder that benchmarks log into: this process's own events, overwritten,
 * never drained
 */
#ifndef BENCH_FLIGHT_H
#define BENCH_FLIGHT_H

#include "core/core.h"
#include "core/demand.h"
#include "writer/log.h"
#include <pem/pem.h>

#include <stdint.h>

#define FLIGHT_CHUNK_BYTES 8192u
#define FLIGHT_CHUNK_COUNT 1024u
#define FLIGHT_BYTES ((uint64_t)FLIGHT_CHUNK_BYTES * FLIGHT_CHUNK_COUNT)

struct flight {
	/* the caller may register more with it, and unregisters that before flight__stop */
	struct pem_session *session;
	struct pem_event_set *events;
	struct pem_log *log;
	char directory[64];
};

/*
 * Log the event of this name into a recorder of FLIGHT_BYTES. 0, or -1 with the reason in error;
 * then, too, stop it.
 */
int flight__start(struct flight *flight, const char *event, struct pem_error *error);
/*
 * End the log: was each of the raised records made, and none discarded? 0, or -1 with what it says
 * instead.
 */
int flight__check(struct flight *flight, uint64_t raised, struct pem_error *error);
/* Close all, and remove the log. */
void flight__stop(struct flight *flight);

#endif
