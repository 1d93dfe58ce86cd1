/* SPDX-License-Identifier: MIT */
/*
 * flight.h - the flight recorder that benchmarks log into. It records events of this process,
 * overwrites them, and never drains them.
 */
#ifndef BENCH_FLIGHT_H
#define BENCH_FLIGHT_H

#include "core/core.h"
#include "core/demand.h"
#include "writer/log.h"
#include <pem/clock.h>
#include <pem/pem.h>

#include <stdint.h>

#define FLIGHT_CHUNK_BYTES 8192u
#define FLIGHT_CHUNK_COUNT 1024u
#define FLIGHT_BYTES ((uint64_t)FLIGHT_CHUNK_BYTES * FLIGHT_CHUNK_COUNT)

struct flight {
	/*
	 * The caller may register more handles with it. The caller unregisters them before
	 * flight__stop.
	 */
	struct pem_session *session;
	struct pem_event_set *events;
	struct pem_log *log;
	char directory[64];
};

/*
 * Log the event of this name into a recorder of FLIGHT_BYTES. coarse_clock: as of a session.
 * Returns 0, or -1 with the reason in error. Call flight__stop in both cases.
 */
int flight__start(struct flight *flight, const char *event, uint32_t coarse_clock,
		  struct pem_error *error);
/*
 * End the log, and check that all raised records were produced and none discarded. Returns 0, or -1
 * with the actual numbers in error.
 */
int flight__check(struct flight *flight, uint64_t raised, struct pem_error *error);
/* Close everything and remove the log. */
void flight__stop(struct flight *flight);

/* --- the floor: a clock read, and 24 bytes stored --- */

struct floor_record {
	uint64_t clock, a, b;
};

struct floor_ring {
	struct floor_record *next, *start, *end;
};

/* Make memory like a pool's: shared, in files on tmpfs, all pages present. 0, or -1 with errno. */
int floor_ring__make(struct floor_ring *ring);

static inline void floor_ring__store(struct floor_ring *ring, uint64_t i)
{
	struct floor_record *r = ring->next;

	r->clock = pem_clock();
	r->a = i;
	r->b = ~i;
	ring->next = r + 1 < ring->end ? r + 1 : ring->start;
}

#endif
