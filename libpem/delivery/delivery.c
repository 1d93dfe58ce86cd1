/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * delivery.c - what asynchronous callbacks want, from pools and sources' packets into the session's
 * batch
 *
 * A lane is read behind its thread: the committed part of the chunk that the lane owns, then the
 * rest once the chunk is full, then the next chunk. Everything in a pool is hostile, so bytes are
 * copied first and checked in the copy, as in drain.c. In a pool that overwrites, another lane may
 * own the chunk by the time it is copied. So the chunk's state and number are read again after the
 * copy, and the copy counts only if they have not changed.
 *
 * Without a log, chunks are freed here after they were read. With a log, drain.c takes them after
 * they were read here.
 */
#include "core/core.h"
#include "core/demand.h"
#include "delivery/delivery.h"
#include "processes/processes.h"
#include "processes/record_walk.h"
#include "writer/log.h"
#include "util.h"
#include "grow.h"

#include <pem/clock.h>

#include <stdlib.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- batches --- */

bool pem_async_batch__add(struct pem_async_batch *batch, size_t limit, uint64_t clock,
			  const struct pem_async_item *item, const uint8_t *data)
{
	size_t bytes = (sizeof(*item) + item->bytes + 7) & ~(size_t)7;
	struct pem_async_item *copy;

	if (batch->used + bytes > limit)
		return false;
	if (pem_grow(&batch->bytes, 1, batch->used + bytes, &batch->capacity) ||
	    pem_grow(&batch->keys, sizeof(*batch->keys), batch->count + 1, &batch->key_capacity))
		return false;
	copy = (struct pem_async_item *)(batch->bytes + batch->used);
	*copy = *item;
	if (item->bytes)
		memcpy(copy->data, data, item->bytes);
	batch->sorted =
		!batch->count || (batch->sorted && clock >= batch->keys[batch->count - 1].clock);
	batch->keys[batch->count++] = (struct pem_async_key){clock, 1, batch->used};
	batch->used += bytes;
	batch->wanted += item->callbacks != 0;
	return true;
}

void pem_async_batch__free(struct pem_async_batch *batch)
{
	free(batch->bytes);
	free(batch->keys);
	memset(batch, 0, sizeof(*batch));
}

/* --- producers --- */

/*
 * Everything is in one block of memory, because processes/producers.c frees it and knows nothing of
 * what is in it.
 */
static struct pem_async_producer *make_producer(const struct pem_producer *p)
{
	size_t lanes = p->ring.lane_count, events = p->ring.event_capacity;
	struct pem_async_producer *ap = calloc(1, sizeof(*ap) + lanes * sizeof(*ap->lanes) +
							  2 * lanes * sizeof(*ap->log_skip) +
							  2 * events * sizeof(*ap->read) +
							  p->ring.chunk_count * sizeof(*ap->found));

	if (!ap)
		return NULL;
	ap->lanes = (struct pem_async_lane *)(ap + 1);
	ap->log_skip = (uint64_t *)(ap->lanes + lanes);
	ap->read = ap->log_skip + 2 * lanes;
	ap->missed = ap->read + events;
	ap->found = (struct pem_found_chunk *)(ap->missed + events);
	return ap;
}

/* Return those of the callbacks that were enabled by a time. */
static uint64_t since(const struct pem_async *a, uint64_t all, uint64_t clock)
{
	uint64_t bits;

	for (bits = all; bits; bits &= bits - 1) {
		if (clock < a->callbacks[__builtin_ctzll(bits)]->since)
			all &= ~(bits & -bits);
	}
	return all;
}

/* Return the callbacks that a process's record is for, a bit for each. */
static uint64_t callbacks_of(const struct pem_async *a, const struct pem_demand *first,
			     const struct pem_producer *p, uint32_t tid, uint64_t clock,
			     const uint8_t *record, size_t bytes)
{
	const struct pem_demand *demand;
	uint64_t all = 0;

	if (!first->records_differ)
		return since(a, pem_demand__async(first), clock);
	for (demand = first; demand; demand = demand->next) {
		if (demand->async &&
		    pem_demand__takes(demand, record, bytes, tid, pem_producer__contexts(p)))
			all |= demand->async;
	}
	return since(a, all, clock);
}

/*
 * Is this the session's own callback thread? It is not called back for what it raises itself (no
 * recursion).
 */
static bool is_own(const struct pem_async *a, const struct pem_producer *p, uint32_t tid)
{
	return tid == a->tid && p->pid == (uint32_t)a->pid;
}

/*
 * Check the records of a private copy and hand on those that are wanted. Records behind one that
 * can't be true are not read, and thereby lost.
 */
static void read_records(struct pem_session *s, struct pem_producer *p, struct pem_async_lane *l,
			 uint8_t *copy, size_t bytes)
{
	struct pem_record_walk w = {.base = copy,
				    .content = bytes,
				    .clock = l->clock,
				    .latest = pem_clock() + PEM_CLOCK_SLACK};
	struct pem_async_item item = {
		.pid = p->pid, .tid = l->tid, .cpu = PEM_NO_CPU, .source = PEM_PACKET_USER};
	bool own = is_own(s->async, p, l->tid), logging = pem_session__is_logging(s);

	while (pem_record_walk__next(&w, s, p)) {
		item.event = w.entry->event;
		item.demand = w.entry->demand;
		item.bytes = w.bytes;
		item.callbacks = own || !item.demand
					 ? 0
					 : callbacks_of(s->async, item.demand, p, l->tid, w.clock,
							copy + w.at, w.bytes);
		if (!item.callbacks || pem_async_batch__add(&s->async->incoming, s->async->limit,
							    w.clock, &item, copy + w.at))
			p->async->read[w.entry->event_index]++;
		if (!logging)
			p->callback_only[w.entry->event_index]++;
	}
	l->clock = w.clock;
}

/* Does the chunk in hand still belong to the lane, with the same number? */
static bool is_still(const struct pem_producer *p, uint32_t lane, const struct pem_async_lane *l)
{
	/* rf */
	uint32_t word = __atomic_load_n(&p->ring.chunk_state[l->index], __ATOMIC_ACQUIRE);

	return PEM_CHUNK_LANE(word) == lane &&
	       (PEM_CHUNK_STATE(word) == PEM_CHUNK_OWNED ||
		PEM_CHUNK_STATE(word) == PEM_CHUNK_FULL) &&
	       __atomic_load_n(&pem_ring__chunk(&p->ring, l->index)->packet_seq_num,
			       __ATOMIC_RELAXED) == l->seq;
}

static void leave_chunk(struct pem_async_lane *l)
{
	l->offset = 0;
	l->seq++;
	l->gap = false;
}

/* The chunk in hand is full and read to its end: free it unless there is a log, and leave it. */
static void finish_chunk(struct pem_session *s, struct pem_producer *p, uint32_t lane)
{
	struct pem_async_lane *l = &p->async->lanes[lane];
	uint32_t word = PEM_CHUNK_WORD(PEM_CHUNK_FULL, lane);

	/* rb, rd */
	if (!pem_session__is_logging(s) && !p->ring.overwrite &&
	    __atomic_compare_exchange_n(&p->ring.chunk_state[l->index], &word,
					PEM_CHUNK_WORD(PEM_CHUNK_READING, lane), 0,
					__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		pem_producer__free_chunk(p, l->index);
		p->next_seq[lane] = l->seq + 1;
		p->async->full++;
	}
	leave_chunk(l);
}

/* Read on in the chunk in hand of a lane. */
static void read_chunk(struct pem_session *s, struct pem_producer *p, uint32_t lane)
{
	struct pem_async_lane *l = &p->async->lanes[lane];
	const struct pem_packet *shared = pem_ring__chunk(&p->ring, l->index);
	/* rb, rd, rf */
	uint32_t word = __atomic_load_n(&p->ring.chunk_state[l->index], __ATOMIC_ACQUIRE);
	/* In a full chunk the content is final. */
	bool full = PEM_CHUNK_STATE(word) == PEM_CHUNK_FULL;
	/* ra */
	uint64_t bits = __atomic_load_n(&shared->content_size, __ATOMIC_ACQUIRE);
	size_t content = (size_t)(bits / 8), bytes;

	if (bits % 8 || content > p->ring.chunk_bytes)
		content = 0;
	if (content > l->offset) {
		bytes = content - l->offset;
		memcpy(s->async->chunk, (const uint8_t *)shared + l->offset, bytes);
		/* re: the copy comes before the state is read again */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!is_still(p, lane, l)) {
			leave_chunk(l);
			return;
		}
		read_records(s, p, l, s->async->chunk, bytes);
		l->offset = (uint32_t)((content + 7) & ~(size_t)7);
	}
	if (!is_still(p, lane, l))
		leave_chunk(l);
	else if (full)
		finish_chunk(s, p, lane);
}

static void begin_chunk(struct pem_session *s, struct pem_producer *p,
			const struct pem_found_chunk *found)
{
	struct pem_async_lane *l = &p->async->lanes[found->lane];
	const struct pem_packet *shared = pem_ring__chunk(&p->ring, found->index);

	l->seq = found->seq;
	l->index = found->index;
	l->clock = shared->timestamp_begin;
	l->tid = shared->tid;
	l->offset = PEM_PACKET_HEADER_BYTES;
	if (is_still(p, found->lane, l))
		read_chunk(s, p, found->lane);
	else
		leave_chunk(l);
}

/*
 * Is this chunk the lane's next? There may be a gap because the scan missed a chunk, because chunks
 * were overwritten, or because the log took them while no callback was enabled. So a gap counts
 * only when it is found a second time.
 */
static bool is_next(const struct pem_producer *p, struct pem_async_lane *l,
		    const struct pem_found_chunk *found, bool final)
{
	if (l->offset || found->seq < l->seq)
		return false;
	if (found->seq == l->seq || final)
		return true;
	if (l->gap && (p->ring.overwrite || l->seq < p->next_seq[found->lane]))
		return true;
	l->gap = true;
	return false;
}

/* Read on in the chunks in hand of all lanes. True: some lanes have another chunk. */
static bool read_on(struct pem_session *s, struct pem_producer *p)
{
	bool more = false;
	uint32_t lane;

	for (lane = pem_producer__next_lane(p, 0); lane < p->ring.lane_count;
	     lane = pem_producer__next_lane(p, lane)) {
		const struct pem_async_lane *l = &p->async->lanes[lane];

		if (l->offset)
			read_chunk(s, p, lane);
		/* rg */
		if (!l->offset &&
		    __atomic_load_n(&p->ring.lanes[lane].packet_seq, __ATOMIC_ACQUIRE) > l->seq)
			more = true;
	}
	return more;
}

void pem_async__collect(struct pem_session *s, struct pem_producer *p, bool final)
{
	struct pem_async_producer *ap;
	size_t count, i;

	if (!s->async || !s->async->active || p->is_copy)
		return;
	if (!p->async)
		p->async = make_producer(p);
	ap = p->async;
	if (!ap)
		return;
	if (read_on(s, p) || final) {
		count = pem_producer__find_chunks(p, true, ap->found);
		for (i = 0; i < count; i++) {
			if (is_next(p, &ap->lanes[ap->found[i].lane], &ap->found[i], final))
				begin_chunk(s, p, &ap->found[i]);
		}
	}
	/* RH */
	if (ap->full)
		__atomic_fetch_add(&p->ring.header->freed, 1, __ATOMIC_RELEASE);
	ap->full = 0;
	if (s->async->asleep && s->async->incoming.count)
		pem_async__kick(s);
}

void pem_async__collect_lane(struct pem_session *s, struct pem_producer *p, uint32_t lane)
{
	if (!s->async || !s->async->active || !p->async)
		return;
	if (p->async->lanes[lane].offset)
		read_chunk(s, p, lane);
}

void pem_async__collect_all(struct pem_session *s)
{
	struct pem_producer *p;

	for (p = s->processes->producers; p; p = p->next)
		pem_async__collect(s, p, false);
}

size_t pem_async__callback_only_before(const struct pem_producer *p, uint32_t lane, uint64_t seq)
{
	if (!p->async || !p->async->log_began || p->async->log_skip[2 * lane] != seq)
		return 0;
	return p->async->log_skip[2 * lane + 1];
}

void pem_async__log_begins(struct pem_session *s)
{
	struct pem_producer *p;
	uint32_t lane;

	pem_async__collect_all(s);
	for (p = s->processes->producers; p; p = p->next) {
		if (!p->async || p->async->log_began)
			continue;
		p->async->log_began = true;
		for (lane = 0; lane < p->ring.lane_count; lane++) {
			p->async->log_skip[2 * lane] = p->async->lanes[lane].seq;
			p->async->log_skip[2 * lane + 1] = p->async->lanes[lane].offset;
		}
	}
}

/* --- sources --- */

/* Return the entry of a stream, made if need be with no losses. NULL: out of memory. */
static struct pem_async_stream *stream_of(struct pem_async *a, const char *name)
{
	struct pem_async_stream *larger;
	size_t i;

	for (i = 0; i < a->stream_count; i++) {
		if (!strcmp(a->streams[i].name, name))
			return &a->streams[i];
	}
	if (i == a->stream_capacity) {
		larger = realloc(a->streams, (i * 2 + 16) * sizeof(*larger));
		if (!larger)
			return NULL;
		a->streams = larger;
		a->stream_capacity = i * 2 + 16;
	}
	memset(&a->streams[i], 0, sizeof(a->streams[i]));
	pem_copy_text(a->streams[i].name, sizeof(a->streams[i].name), name);
	a->stream_count++;
	return &a->streams[i];
}

/*
 * Note if records of the packet's stream are missing before the packet. The thread that ran on its
 * CPU may not be the one that runs there now.
 */
static void note_loss(struct pem_async *a, const char *name, const struct pem_packet *packet)
{
	const struct pem_async_item lost = {.cpu = packet->cpu, .source = packet->source};
	struct pem_async_stream *stream;

	if (packet->source != PEM_PACKET_KERNEL || packet->cpu >= PEM_CPUS_MAX)
		return;
	stream = stream_of(a, name);
	if (stream && packet->events_discarded == stream->discarded)
		return;
	if (stream)
		stream->discarded = packet->events_discarded;
	pem_async_batch__add(&a->incoming, a->limit, packet->timestamp_begin, &lost, NULL);
}

void pem_async__take_packet(struct pem_session *s, const char *name, int instance,
			    const struct pem_packet *packet, size_t content)
{
	struct pem_async_item item = {.pid = packet->pid,
				      .tid = packet->tid,
				      .cpu = packet->cpu,
				      .source = packet->source};
	const uint8_t *base = (const uint8_t *)packet;
	const struct pem_record_header *header;
	struct pem_async *a = s->async;
	size_t at = PEM_PACKET_HEADER_BYTES;
	uint64_t clock = packet->timestamp_begin;
	int bytes;

	if (!a || !a->active || !a->follows_sources)
		return;
	if (packet->source == PEM_PACKET_KERNEL && packet->cpu >= PEM_CPUS_MAX)
		return;
	note_loss(a, name, packet);
	while (at + sizeof(*header) <= content) {
		header = (const struct pem_record_header *)(base + at);
		if (!item.event || item.event->id != header->event_id) {
			item.event = pem_model__by_id(s->model, header->event_id);
			item.demand = item.event ? pem_session__demand(s, item.event) : NULL;
		}
		bytes = item.event ? pem_event__record_bytes(item.event, base + at, content - at)
				   : -1;
		if (bytes < 0)
			break;
		clock += (uint32_t)(header->clock_low - (uint32_t)clock);
		item.bytes = (uint32_t)bytes;
		item.callbacks =
			item.demand
				? since(a, pem_demand__of_instance(item.demand, instance)->async,
					clock)
				: 0;
		if (item.demand && (item.callbacks || pem_event__tells_context(item.event)) &&
		    !pem_async_batch__add(&a->incoming, a->limit, clock, &item, base + at))
			item.demand->async_lost++;
		at += ((size_t)bytes + 7) & ~(size_t)7;
	}
}

/* --- what was lost --- */

void pem_async__settle(struct pem_producer *p, struct pem_demand *demand, uint32_t event_index,
		       uint64_t before)
{
	uint64_t read = p->async->read[event_index], missed = before > read ? before - read : 0;

	if (missed <= p->async->missed[event_index])
		return;
	if (pem_demand__async(demand))
		demand->async_lost += missed - p->async->missed[event_index];
	p->async->missed[event_index] = missed;
}

void pem_async__account(struct pem_session *s, struct pem_producer *p)
{
	struct pem_event_entry *entry;
	uint32_t i;

	if (!s->async || !s->async->active || !p->async)
		return;
	pem_async__collect(s, p, true);
	for (i = 0; i < PEM_EVENT_TABLE; i++) {
		entry = &p->table[i];
		if (entry->id && entry->demand && pem_demand__async(entry->demand))
			pem_async__settle(p, entry->demand, entry->event_index,
					  pem_producer__produced(p, entry->event_index));
	}
}

/* --- waking the thread --- */

void pem_async__kick(struct pem_session *s)
{
	struct pem_async *a = s->async;

	if (!a->asleep || pem_async__is_self(a))
		return;
	/* WB */
	__atomic_fetch_add(&s->page->wake, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &s->page->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}

bool pem_async__is_self(const struct pem_async *a)
{
	return a->started && pthread_equal(a->thread, pthread_self());
}
