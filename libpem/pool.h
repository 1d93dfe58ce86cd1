/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pool.h - a pool file: sizes, making one (producer), mapping one safely (consumer)
 */
#ifndef PEM_POOL_H
#define PEM_POOL_H

#include <pem/layout.h>
#include <pem/predicate.h>

#include <stdbool.h>
#include <stddef.h>

#define PEM_CHUNK_BYTES_DEFAULT 8192u
/*
 * Only touched when the consumer lags: 32 MiB, a tenth of a second of a thread that does nothing
 * but raise events.
 */
#define PEM_CHUNK_COUNT_DEFAULT 4096u
#define PEM_LANE_COUNT_DEFAULT 2048u
#define PEM_EVENT_CAPACITY_DEFAULT 512u

struct pem_pool_geometry {
	uint32_t flags; /* PEM_POOL_* */
	uint32_t chunk_bytes; /* a power of two, 4 KiB to 16 MiB */
	uint32_t chunk_count; /* 2 to 2^20 */
	uint32_t lane_count; /* 2 to 2^16 */
	uint32_t event_capacity; /* 64 to 2^16, a multiple of 64 */
};

bool pem_pool_geometry__valid(const struct pem_pool_geometry *geometry);

/*
 * Point ring into a mapping of bytes bytes that starts with a pool header. Its magic (acquire) says
 * that the rest is there. Everything read from the header is checked against bytes; afterwards only
 * the copies in ring are to be used. 0, or -EINVAL.
 */
int pem_pool__open_ring(void *mapping, uint64_t bytes, struct pem_ring *ring);

/*
 * The rule of a page's first count that holds for an event, or NULL; bit i of contexts says that
 * the page's context i does (membership.h).
 */
const struct pem_rule *pem_rule__find(const struct pem_session_page *page, uint32_t count,
				      uint64_t contexts, uint32_t event_id);

/* Of a session's distributions, index below PEM_DISTRIBUTION_COUNT, the part of a lane. */
struct pem_distribution *pem_pool__distribution(const struct pem_ring *ring, uint32_t index,
						uint32_t lane);

/* The ids of the events behind slot indexes: uint32_t[event_capacity] inside the mapping. */
uint32_t *pem_pool__event_ids(const struct pem_ring *ring);
/* The hashes of the models that describe them, of the same form. */
uint32_t *pem_pool__event_models(const struct pem_ring *ring);
/*
 * The producer's own: two bits of word i / 16, from i % 16 * 2 on, say that the memory of chunk i's
 * halves exists.
 */
uint32_t *pem_pool__populated(const struct pem_ring *ring);

#endif
