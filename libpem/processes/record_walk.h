/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record_walk.h - the records of a chunk's copy, one after the other, as far as they can be true
 *
 * Both readers of a pool use it: the log, which takes whole chunks, and asynchronous callbacks,
 * which read behind the thread and earlier. A record whose event the process did not describe,
 * whose bytes do not fit the event or the chunk, or whose clock is in the future ends the walk.
 */
#ifndef PEM_RECORD_WALK_H
#define PEM_RECORD_WALK_H

#include "processes/processes.h"

#include <pem/clock.h>

struct pem_record_walk {
	/* Set by the caller: the private copy, where its first record is and where it ends. */
	uint8_t *base;
	size_t at, content;
	uint64_t clock; /* clock before the first record; then that of the record */
	uint64_t latest; /* a later clock is in the future */
	/* Of the record at 'at': its event, and its bytes without padding. 0: before the first one
	 */
	struct pem_event_entry *entry;
	uint32_t bytes;
};

static inline size_t pem_record_step(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* Go on to the next record. False: there is none, or it can't be true; nothing else has changed. */
static inline bool pem_record_walk__next(struct pem_record_walk *w, struct pem_session *s,
					 struct pem_producer *p)
{
	size_t at = w->at + pem_record_step(w->bytes);
	const struct pem_record_header *header;
	struct pem_event_entry *entry = w->entry;
	uint64_t clock;
	int bytes;

	if (at + sizeof(*header) > w->content)
		return false;
	header = (const struct pem_record_header *)(w->base + at);
	if (!entry || entry->id != header->event_id)
		entry = pem_producer__find_event(s, p, header->event_id);
	if (!entry)
		return false;
	bytes = pem_event_entry__record_bytes(entry, w->base + at, w->content - at);
	clock = w->clock + (uint32_t)(header->clock_low - (uint32_t)w->clock);
	if (bytes < 0 || clock > w->latest)
		return false;
	w->at = at;
	w->entry = entry;
	w->bytes = (uint32_t)bytes;
	w->clock = clock;
	return true;
}

#endif
