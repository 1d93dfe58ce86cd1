/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pool.h - a pool file: sizes, making one (producer), mapping one safely (consumer)
 */
#ifndef PEM_POOL_H
#define PEM_POOL_H

#include <pem/gate.h>
#include <pem/layout.h>
#include <pem/predicate.h>

#include <stdbool.h>
#include <stddef.h>

#define PEM_CHUNK_BYTES_DEFAULT 8192u
/*
 * 32 MiB of chunks. Most are used only when the consumer lags. They hold a tenth of a second of a
 * thread that does nothing but raise events.
 */
#define PEM_CHUNK_COUNT_DEFAULT 4096u
/* While the consumer can't keep up, and memory allows, such a pool grows to 128 MiB. */
#define PEM_CHUNK_COUNT_GROWN 16384u
#define PEM_LANE_COUNT_DEFAULT 2048u
#define PEM_LANE_COUNT_MAX 65536u
#define PEM_EVENT_CAPACITY_DEFAULT 512u

struct pem_pool_geometry {
	uint32_t flags; /* PEM_POOL_* */
	uint32_t chunk_bytes; /* a power of two, 4 KiB to 16 MiB */
	uint32_t chunk_count; /* 2 to 2^20 */
	uint32_t lane_count; /* 2 to PEM_LANE_COUNT_MAX */
	uint32_t event_capacity; /* 64 to 2^16, a multiple of 64 */
	/*
	 * Chunks that a new pool uses, a multiple of 8; 0: all. A process with limited address
	 * space or file sizes makes a pool that has no more.
	 */
	uint32_t chunk_limit;
};

/*
 * Make a geometry by a session page, which is read once. It may be wrong: see
 * pem_pool_geometry__valid.
 */
struct pem_pool_geometry pem_pool_geometry__of_page(const struct pem_session_page *page);

/* Return how many chunks a new pool uses. */
static inline uint32_t pem_pool_geometry__first_chunks(const struct pem_pool_geometry *g)
{
	return g->chunk_limit ? g->chunk_limit : g->chunk_count;
}

bool pem_pool_geometry__valid(const struct pem_pool_geometry *geometry);

/*
 * Point ring into a mapping of bytes bytes that starts with a pool header. The header's magic
 * (acquire) says that the rest is there. Everything read from the header is checked against bytes.
 * Afterwards the caller uses only the copies in ring. Returns 0, or -EINVAL.
 */
int pem_pool__open_ring(void *mapping, uint64_t bytes, struct pem_ring *ring);

/*
 * The rules of one event: one of its own cell, one of each further cell, and those by which it
 * opens and closes gates.
 */
#define PEM_EVENT_RULES_MAX (1 + PEM_FURTHER_CELLS + 2 * PEM_GATES_MAX)

/*
 * Find the rules that apply to an event, among the first count rules of a page: the first of each
 * cell and of each use of a gate, in the page's order. Bit i of contexts says that the page's
 * context i holds (membership.h). Returns how many; one alone may be for any event.
 */
uint32_t pem_rule__find(const struct pem_session_page *page, uint32_t count, uint64_t contexts,
			uint32_t event_id, const struct pem_rule *rules[PEM_EVENT_RULES_MAX]);

/*
 * What the first count rules may want of an event, in whatever context: PEM_ACTION_* flags; 0:
 * nothing. level: the event's enum pem_level; 0: unknown, so that a rule of levels may want it.
 */
uint32_t pem_rules__may_want(const struct pem_session_page *page, uint32_t count, uint32_t event_id,
			     uint32_t level);

/*
 * Do these rules of an event need parts (PEM_ACTION_MORE)? One that uses neither a further cell nor
 * a gate needs none.
 */
bool pem_rules__need_parts(const struct pem_rule *const *rules, uint32_t count);

/* The action word of an event with these rules, without an incarnation; 0: nothing is wanted. */
uint64_t pem_rules__action(const struct pem_rule *const *rules, uint32_t count);

/* A further cell of a lane, in a pool that has them. */
struct pem_cell *pem_pool__further(const struct pem_ring *ring, uint32_t lane, uint32_t cell);

/*
 * Return a lane's part of one of the session's distributions. index: below PEM_DISTRIBUTION_COUNT.
 */
struct pem_distribution *pem_pool__distribution(const struct pem_ring *ring, uint32_t index,
						uint32_t lane);

/*
 * Return the ids of events, by the index of their cell: uint32_t[event_capacity] inside the
 * mapping.
 */
uint32_t *pem_pool__event_ids(const struct pem_ring *ring);
/* Return how many events are registered there. */
uint32_t pem_pool__event_count(const struct pem_ring *ring);
/* Return the hashes of the models that describe these events: uint32_t[event_capacity]. */
uint32_t *pem_pool__event_models(const struct pem_ring *ring);
/*
 * Return the words in which the producer notes which chunks have memory. Chunk i has two bits of
 * word i / 16, from bit i % 16 * 2 on: one for each half.
 */
uint32_t *pem_pool__populated(const struct pem_ring *ring);

#endif
