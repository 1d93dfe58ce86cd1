/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * notify_quick.h - what a thread keeps of the events that it counts with a distribution
 *
 * The general way looks up session, rule, filter, lane and memory of each event. What it found is
 * kept here, so that the thread's next event of this kind needs to find only that none has changed.
 */
#ifndef PEM_PRODUCER_NOTIFY_QUICK_H
#define PEM_PRODUCER_NOTIFY_QUICK_H

#include <pem/event.h>
#include <pem/stub.h>

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct pem_thread_full;

/* An event of the first session. All memory that is pointed to stays mapped. */
struct pem_quick_distribution {
	uint64_t action; /* 0: none */
	const struct pem_filter
		*filter; /* names the distribution, which is one event's; tests nothing */
	struct pem_cell *cell;
	struct pem_distribution *distribution;
	uint64_t tag; /* of the distribution */
	uint32_t incarnation; /* of the session, in whose lane cell and distribution are */
	uint32_t least_bytes; /* of a record that has the field: the field's end */
};
/* A thread keeps the last event of those whose index has the same remainder. */
#define PEM_QUICK_DISTRIBUTIONS 8u

/*
 * Return the value of an integer field in a record, sign-extended. type: enum pem_type. Each size
 * has a load of its own: a copy into a larger variable would make the load wait for it.
 */
static inline uint64_t pem_load_integer(const uint8_t *at, uint32_t type)
{
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (type) {
	case PEM_TYPE_UINT8:
		return *at;
	case PEM_TYPE_INT8:
		return (uint64_t)(int64_t)(int8_t)*at;
	case PEM_TYPE_UINT16:
		memcpy(&u16, at, sizeof(u16));
		return u16;
	case PEM_TYPE_INT16:
		memcpy(&u16, at, sizeof(u16));
		return (uint64_t)(int64_t)(int16_t)u16;
	case PEM_TYPE_UINT32:
		memcpy(&u32, at, sizeof(u32));
		return u32;
	case PEM_TYPE_INT32:
		memcpy(&u32, at, sizeof(u32));
		return (uint64_t)(int64_t)(int32_t)u32;
	default:
		memcpy(&u64, at, sizeof(u64));
		return u64;
	}
}

/*
 * Keep what the general way found for an event that the first session counts with a distribution
 * and without tests, at the thread's first level. Does nothing for other events, and where a record
 * of so many bytes has no such field.
 */
void pem_quick_distribution__keep(struct pem_thread_full *thread, uint64_t action,
				  uint32_t event_index, const struct pem_filter *filter,
				  const struct pem_ring *ring, uint32_t bytes);
/* The thread gets another lane in the first session. */
void pem_quick_distribution__forget(struct pem_thread_full *thread);

#endif
