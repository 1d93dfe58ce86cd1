/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pool_read.c - read a pool: its lanes, its chunks, and the event of a record
 *
 * Everything in a pool is hostile: each value is loaded once and checked.
 */
#include "dirs/dirs.h"
#include "core/core.h"
#include "core/demand.h"
#include "processes/processes.h"
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t pem_producer__next_lane(const struct pem_producer *p, uint32_t lane)
{
	const struct pem_lane *l;
	uint32_t tid;

	while (++lane < p->ring.lane_count) {
		l = &p->ring.lanes[lane];
		/* lb */
		tid = __atomic_load_n(&l->tid, __ATOMIC_ACQUIRE);
		if (tid && tid != PEM_LANE_NO_MEMORY)
			return lane;
		if (!tid && __atomic_load_n(&l->state, __ATOMIC_RELAXED) == PEM_LANE_FREE)
			break;
	}
	return p->ring.lane_count;
}

static int by_lane_and_seq(const void *a, const void *b)
{
	const struct pem_found_chunk *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

size_t pem_producer__find_chunks(const struct pem_producer *p, bool owned_too,
				 struct pem_found_chunk *found)
{
	const struct pem_ring *ring = &p->ring;
	uint32_t i, word, state;
	size_t count = 0;

	for (i = 0; i < p->chunk_limit; i++) {
		/* rb, rd, rf */
		word = __atomic_load_n(&ring->chunk_state[i], __ATOMIC_ACQUIRE);
		state = PEM_CHUNK_STATE(word);
		/*
		 * READING: the recorder whose trace is being recovered died while it copied this
		 * chunk.
		 */
		if ((state != PEM_CHUNK_FULL && !(state == PEM_CHUNK_OWNED && owned_too) &&
		     !(state == PEM_CHUNK_READING && p->recovering)) ||
		    !PEM_CHUNK_LANE(word) || PEM_CHUNK_LANE(word) >= ring->lane_count)
			/* Lane 0: a producer has claimed the chunk and not begun it. */
			continue;
		found[count].lane = PEM_CHUNK_LANE(word);
		found[count].index = i;
		found[count].full = state == PEM_CHUNK_FULL;
		found[count].held = state == PEM_CHUNK_READING;
		found[count].seq = __atomic_load_n(&pem_ring__chunk(ring, i)->packet_seq_num,
						   __ATOMIC_RELAXED);
		count++;
	}
	qsort(found, count, sizeof(*found), by_lane_and_seq);
	return count;
}

void pem_producer__free_chunk(const struct pem_producer *p, uint32_t index)
{
	const struct pem_ring *ring = &p->ring;

	/*
	 * A thread may be killed after it claimed this chunk and before it began it. The size 0
	 * says that such a chunk is empty.
	 */
	__atomic_store_n(&pem_ring__chunk(ring, index)->content_size, 0, __ATOMIC_RELAXED);
	/* RC */
	__atomic_store_n(&ring->chunk_state[index], PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0),
			 __ATOMIC_RELEASE);
	if (index < __atomic_load_n(&ring->header->chunk_hint, __ATOMIC_RELAXED) &&
	    !ring->overwrite)
		__atomic_store_n(&ring->header->chunk_hint, index, __ATOMIC_RELAXED);
}

/* Look for an entry's demand, if it has none. False: the entry's event is unknown. */
static bool complete_entry(struct pem_session *s, struct pem_event_entry *entry)
{
	if (!entry || !entry->event)
		return false;
	if (!entry->demand && !entry->refused)
		entry->demand = pem_session__demand(s, entry->event);
	return true;
}

struct pem_event_entry *pem_producer__find_event(struct pem_session *s, struct pem_producer *p,
						 uint32_t id)
{
	struct pem_event_entry *entry = pem_producer__event(p, id);

	if (p->events_fixed)
		return entry && entry->event ? entry : NULL;
	if (!entry) {
		pem_producer__refresh_events(s, p);
		entry = pem_producer__event(p, id);
	}
	return complete_entry(s, entry) ? entry : NULL;
}

void pem_producer__fix_events(struct pem_session *s, struct pem_producer *p, bool fixed)
{
	uint32_t i;

	for (i = 0; fixed && i < PEM_EVENT_TABLE; i++) {
		if (p->table[i].id)
			complete_entry(s, &p->table[i]);
	}
	p->events_fixed = fixed;
}

int pem_event_entry__record_bytes(const struct pem_event_entry *entry, const uint8_t *record,
				  size_t bytes)
{
	return entry->fixed_bytes && entry->fixed_bytes <= bytes
		       ? (int)entry->fixed_bytes
		       : pem_event__record_bytes(entry->event, record, bytes);
}

uint64_t pem_producer__contexts(const struct pem_producer *p)
{
	uint64_t found = p->member ? p->member->contexts : p->contexts;

	return __atomic_load_n(&p->ring.header->contexts, __ATOMIC_RELAXED) | found | 1;
}

uint64_t pem_producer__produced(const struct pem_producer *p, uint32_t event_index)
{
	uint64_t sum = 0;
	uint32_t lane;

	/* none: a producer stores its count after the commit, without a release */
	for (lane = 0; lane < p->ring.lane_count; lane = pem_producer__next_lane(p, lane))
		sum += __atomic_load_n(
			&p->ring.cells[(uint64_t)lane * p->ring.event_capacity + event_index]
				 .produced,
			__ATOMIC_ACQUIRE);
	return sum;
}

uint32_t pem_session__unknown_pid(struct pem_session *s)
{
	return PEM_PID_UNKNOWN +
	       __atomic_fetch_add(&s->processes->unknown_count, 1, __ATOMIC_RELAXED) %
		       PEM_PID_UNKNOWN;
}

/* Find a thread of a process that lives. 0: it is gone. */
static uint32_t living_tid(const struct pem_producer *p, uint32_t tid)
{
	char path[300], name[300];
	struct dirent *entry;
	unsigned namespaces;
	uint32_t found = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", p->pid);
	tasks = opendir(path);
	while (tasks && !found && (entry = readdir(tasks))) {
		snprintf(name, sizeof(name), "%u/task/%.200s", p->pid, entry->d_name);
		if (entry->d_name[0] != '.' && pem_inner_pid(name, &namespaces) == tid)
			found = (uint32_t)strtoul(entry->d_name, NULL, 10);
	}
	if (tasks)
		closedir(tasks);
	return found;
}

uint32_t pem_producer__tid(struct pem_session *s, struct pem_producer *p, uint32_t lane,
			   uint32_t tid, uint64_t clock)
{
	struct pem_inner_tid *last;
	uint32_t found = 0;

	if (!p->is_inner)
		return tid;
	if (tid == p->inner_pid)
		return p->pid;
	last = &p->tids[lane];
	if (last->outer && last->inner == tid)
		return last->outer;
	if (p->is_found)
		found = living_tid(p, tid);
	if (!found)
		found = s->hooks->outer_tid(s, p->pid_namespace, tid, p->dir->owner, clock);
	*last = (struct pem_inner_tid){tid, found ? found : pem_session__unknown_pid(s)};
	return last->outer;
}
