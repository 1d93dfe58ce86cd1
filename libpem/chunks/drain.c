/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * drain.c - from pools to the log: full chunks in each lane's order, checked record by record, then
 * counted
 *
 * Everything in a pool is hostile. A chunk is copied first, and members of its header are loaded
 * once. A record that does not fit its event ends the packet there, and the rest is counted as
 * discarded.
 *
 * Order within a lane: a scan of chunk states may find a chunk before an earlier chunk of the same
 * lane becomes full. So chunks are taken only in the order of packet_seq_num. At the end, and in
 * pools that overwrite, a gap stays a gap.
 */
#include "core/demand.h"
#include "chunks/chunks.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "delivery/delivery.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "processes/record_walk.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "util.h"

#include <pem/clock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many producers are drained together, by several threads. */
#define WAITING_MOST 64u

void pem_producer__stream(const struct pem_producer *p, uint32_t lane, char *name, size_t bytes)
{
	char *c;

	snprintf(name, bytes, "u_%s_%u", p->name, lane);
	for (c = name; *c; c++) {
		if (*c == '-')
			*c = '_';
	}
}

bool pem_producer__owns_stream(const struct pem_producer *p, const char *name)
{
	char lane_0[96];

	pem_producer__stream(p, 0, lane_0, sizeof(lane_0));
	return !strncmp(name, lane_0, strlen(lane_0) - 1);
}

uint64_t pem_session__stream_clock(struct pem_session *s, const struct pem_producer *p,
				   uint32_t lane)
{
	char stream[96];

	pem_producer__stream(p, lane, stream, sizeof(stream));
	return pem_trace_writer__stream_clock(s->log->writer, stream);
}

/*
 * Count the records at 'at' that are like the one before them: of the same event, which has records
 * of one size. Most records are, and each takes a nanosecond here. Returns how many, and sets
 * *clock to the clock of the last one.
 */
static uint32_t count_alike(const uint8_t *base, size_t at, size_t content,
			    const struct pem_event_entry *entry, uint64_t latest, uint64_t *clock)
{
	size_t bytes = entry->fixed_bytes, step = (bytes + 7) & ~(size_t)7;
	const struct pem_record_header *header;
	uint64_t now = *clock, next;
	uint32_t count = 0;

	for (; at + bytes <= content; at += step, count++) {
		header = (const struct pem_record_header *)(base + at);
		next = now + (uint32_t)(header->clock_low - (uint32_t)now);
		if (header->event_id != entry->id || next > latest)
			break;
		now = next;
	}
	*clock = now;
	return count;
}

/* Is each record of the event tested for the log by itself? */
static bool is_tested(const struct pem_event_entry *entry)
{
	return entry->demand && (entry->demand->async_ever || entry->demand->records_differ);
}

/* Is a record the log's? tid: of its thread, as the process knows it. */
static bool is_logged(struct pem_session *s, struct pem_producer *p,
		      const struct pem_event_entry *entry, const uint8_t *record, size_t bytes,
		      uint64_t clock, uint32_t tid)
{
	const struct pem_demand *demand;

	if (!pem_log__wants(s->log, entry->demand, clock))
		return false;
	if (!entry->demand || !entry->demand->records_differ)
		return true;
	demand = pem_demand__of_log(entry->demand);
	return !demand || pem_demand__takes(demand, record, bytes, tid, pem_producer__contexts(p));
}

/*
 * What becomes of a record that can be true. Events of a refused provider are lost, and what no
 * demand of the log takes was read by callbacks alone.
 */
static bool keep(struct pem_session *s, struct pem_producer *p, const struct pem_record_walk *w,
		 size_t skip, uint32_t tid)
{
	if (w->entry->refused) {
		__atomic_fetch_add(&p->lost[w->entry->event_index], 1, __ATOMIC_RELAXED);
		return false;
	}
	/* It was counted as callback-only before the log began. */
	if (w->at < skip)
		return false;
	if (is_logged(s, p, w->entry, w->base + w->at, w->bytes, w->clock, tid))
		return true;
	__atomic_fetch_add(&p->callback_only[w->entry->event_index], 1, __ATOMIC_RELAXED);
	return false;
}

/* Make sure that the trace's model has the event of a record. */
static void describe(struct pem_session *s, struct pem_event_entry *entry)
{
	if (__atomic_load_n(&entry->described, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&s->chunks->describing);
	if (!entry->described)
		pem_log__describe(s->log, entry->event);
	__atomic_store_n(&entry->described, true, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&s->chunks->describing);
}

/*
 * Check the records of a private copy of content bytes and count them. Sets timestamp_end and
 * record_count, and cuts content_size before the first record that does not fit. Takes out records
 * of a refused provider and callback-only records.
 *
 * No record may lie before floor, where the lane's stream ends. Two threads that had the lane one
 * after the other may have read counters that differ by a few ticks; the later record then gets
 * floor as its clock. A record from the future does not fit.
 */
static void check_records(struct pem_session *s, struct pem_producer *p, struct pem_packet *packet,
			  size_t content, size_t skip, uint64_t floor, uint32_t tid,
			  uint32_t *counts)
{
	struct pem_record_walk w = {.base = (uint8_t *)packet,
				    .at = PEM_PACKET_HEADER_BYTES,
				    .content = content,
				    .clock = packet->timestamp_begin,
				    .latest = pem_clock() + PEM_CLOCK_SLACK};
	struct pem_record_header *header;
	uint64_t last = floor;
	size_t to = w.at, end = to, step;
	uint32_t more;

	packet->record_count = 0;
	while (pem_record_walk__next(&w, s, p)) {
		header = (struct pem_record_header *)(w.base + w.at);
		if (w.clock < floor)
			header->clock_low = (uint32_t)floor;
		else
			last = w.clock;
		if (!keep(s, p, &w, skip, tid))
			continue;
		describe(s, w.entry);
		header->event_id = w.entry->event->id;
		more = 0;
		step = pem_record_step(w.bytes);
		if (w.entry->fixed_bytes && w.clock >= floor && w.entry->id == w.entry->event->id &&
		    !is_tested(w.entry))
			more = count_alike(w.base, w.at + step, content, w.entry, w.latest,
					   &w.clock);
		if (more)
			last = w.clock;
		if (to != w.at)
			memmove(w.base + to, w.base + w.at, more * step + w.bytes);
		counts[w.entry->event_index] += more + 1;
		packet->record_count += more + 1;
		end = to + more * step + w.bytes;
		to += (more + 1) * step;
		w.at += more * step;
	}
	if (w.at + w.bytes < content)
		__atomic_fetch_add(&p->damaged, 1, __ATOMIC_RELAXED);
	if (packet->timestamp_begin < floor)
		packet->timestamp_begin = floor;
	packet->timestamp_end = last;
	packet->content_size = (uint64_t)end * 8;
}

static void write_batch(struct pem_session *s, struct pem_producer *p,
			struct pem_drain_thread *thread)
{
	struct pem_batch *batch = &thread->batch;
	char stream[96];
	uint64_t began_ns;
	uint32_t i;
	int result;

	if (!batch->used)
		return;
	began_ns = pem_monotonic_ns();
	pem_producer__stream(p, batch->lane, stream, sizeof(stream));
	result = pem_trace_writer__packets(s->log->writer, stream, batch->memory, batch->used);
	/* Other threads write only what is of no directory whose time is accounted for. */
	if (thread == &s->chunks->own)
		s->dirs->written_ns += pem_monotonic_ns() - began_ns;
	for (i = 0; i < p->table_events; i++) {
		if (batch->counts[i])
			__atomic_fetch_add(result ? &p->lost[i] : &p->delivered[i],
					   batch->counts[i], __ATOMIC_RELAXED);
		batch->counts[i] = 0;
	}
	if (!result)
		__atomic_fetch_add(&s->log->delivered, batch->records, __ATOMIC_RELAXED);
	batch->used = 0;
	batch->records = 0;
}

/* Make room for a chunk of a lane. Its packet goes to the end of the batch. */
static struct pem_packet *next_in_batch(struct pem_session *s, struct pem_producer *p,
					struct pem_drain_thread *thread, uint32_t lane)
{
	struct pem_batch *batch = &thread->batch;

	if (batch->used &&
	    (batch->lane != lane || batch->bytes - batch->used < p->ring.chunk_bytes))
		write_batch(s, p, thread);
	if (batch->lane != lane)
		batch->missing = 0;
	if (!batch->used) {
		batch->lane = lane;
		batch->clock = pem_session__stream_clock(s, p, lane);
	}
	return (struct pem_packet *)(batch->memory + batch->used);
}

/* Packets are joined up to this size: a header for each chunk would be a seventieth of a trace. */
#define JOINED_BYTES (64u << 10)

/*
 * May packet's records be put behind those of last? They may if last's header is true of them, and
 * if the 32 bits of clock in the first of them are enough behind last's end.
 */
static bool joins(const struct pem_packet *last, const struct pem_packet *packet)
{
	const struct pem_record_header *header = (const struct pem_record_header *)(packet + 1);
	uint64_t begin = packet->timestamp_begin;
	uint64_t first = begin + (uint32_t)(header->clock_low - (uint32_t)begin);

	return last->tid == packet->tid && last->pid == packet->pid &&
	       last->events_discarded == packet->events_discarded &&
	       last->events_overwritten == packet->events_overwritten &&
	       begin >= last->timestamp_end && !((first - last->timestamp_end) >> 32);
}

/*
 * Put a checked packet with records behind the packets of its lane in the batch. If possible, its
 * records go into the last packet.
 */
static void append(struct pem_batch *batch, struct pem_packet *packet)
{
	struct pem_packet *last = (struct pem_packet *)(batch->memory + batch->last);
	size_t content = packet->content_size / 8, records = content - PEM_PACKET_HEADER_BYTES;
	size_t end = batch->used - batch->last, padding;

	batch->clock = packet->timestamp_end;
	batch->records += packet->record_count;
	if (batch->used && end + records <= JOINED_BYTES && joins(last, packet)) {
		padding = end - last->content_size / 8;
		memset((uint8_t *)packet - padding, 0, padding);
		last->record_count += packet->record_count;
		last->timestamp_end = packet->timestamp_end;
		last->content_size = (uint64_t)(end + records) * 8;
		memmove(packet, packet + 1, records);
		batch->used += (records + 7) & ~(size_t)7;
		return;
	}
	batch->last = batch->used;
	batch->used += (content + 7) & ~(size_t)7;
}

/*
 * Take a full chunk for the consumer. False: a producer of a pool that overwrites has reclaimed it.
 */
static bool hold(const struct pem_ring *ring, const struct pem_found_chunk *c)
{
	uint32_t word = PEM_CHUNK_WORD(PEM_CHUNK_FULL, c->lane);

	/* rb, rd */
	if (!__atomic_compare_exchange_n(&ring->chunk_state[c->index], &word,
					 PEM_CHUNK_WORD(PEM_CHUNK_READING, c->lane), 0,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	if (__atomic_load_n(&pem_ring__chunk(ring, c->index)->packet_seq_num, __ATOMIC_RELAXED) ==
	    c->seq)
		return true;
	/*
	 * RD: The chunk was begun, filled and retired since it was found. It is a later one now,
	 * and not to be taken in this scan.
	 */
	__atomic_store_n(&ring->chunk_state[c->index], PEM_CHUNK_WORD(PEM_CHUNK_FULL, c->lane),
			 __ATOMIC_RELEASE);
	return false;
}

/*
 * Free a full chunk that was copied. In a recovery it becomes full again: nothing may be lost
 * before the trace is finished, so that the recovery after an interrupted one finds the same
 * chunks.
 */
static void let_go(const struct pem_producer *p, const struct pem_found_chunk *c)
{
	/* RD */
	if (p->recovering)
		__atomic_store_n(&p->ring.chunk_state[c->index],
				 PEM_CHUNK_WORD(PEM_CHUNK_FULL, c->lane), __ATOMIC_RELEASE);
	else
		pem_producer__free_chunk(p, c->index);
}

/*
 * Copy the committed bytes of a chunk, and free it if it is full. Returns how many bytes, or 0: the
 * chunk was reclaimed.
 */
static uint64_t copy(struct pem_producer *p, struct pem_found_chunk *c, struct pem_packet *packet)
{
	const struct pem_ring *ring = &p->ring;
	struct pem_packet *shared = pem_ring__chunk(ring, c->index);
	uint64_t bits;

	/* In a pool that overwrites, the owner may lose this chunk meanwhile. */
	if (!c->full && !c->held && ring->overwrite) {
		if (pem_chunk__copy_owned(ring, c->index, c->lane, packet))
			return packet->content_size / 8;
		c->full = true;
	}
	if (c->full && !hold(ring, c)) {
		c->full = false;
		return 0;
	}
	/* ra */
	bits = __atomic_load_n(&shared->content_size, __ATOMIC_ACQUIRE);
	if (bits % 8 || bits / 8 < PEM_PACKET_HEADER_BYTES || bits / 8 > ring->chunk_bytes)
		bits = PEM_PACKET_HEADER_BYTES * 8;
	memcpy(packet, shared, bits / 8);
	if (c->full)
		let_go(p, c);
	return bits / 8;
}

/* Copy a chunk and free it, then check the copy. */
static void take(struct pem_session *s, struct pem_producer *p, struct pem_found_chunk *c,
		 struct pem_drain_thread *thread)
{
	const struct pem_ring *ring = &p->ring;
	struct pem_packet *packet = next_in_batch(s, p, thread, c->lane);
	uint64_t bytes;
	uint32_t tid;

	/* Let callbacks read what came since they last read this chunk. */
	if (c->full)
		pem_async__collect_lane(s, p, c->lane);
	bytes = copy(p, c, packet);
	if (!bytes)
		return;
	/* Packets that were reclaimed between others are a loss in the stream there. */
	if (p->next_seq[c->lane])
		thread->batch.missing += c->seq - p->next_seq[c->lane];
	p->next_seq[c->lane] = c->seq + 1;
	packet->source = PEM_PACKET_USER;
	packet->cpu = PEM_NO_CPU;
	/* pid and tid are those of this pid namespace, whatever the chunk says. */
	packet->pid = p->pid;
	tid = packet->tid;
	packet->tid = pem_producer__tid(s, p, c->lane, tid, packet->timestamp_begin);
	packet->events_overwritten =
		__atomic_load_n(&ring->lanes[c->lane].overwritten, __ATOMIC_RELAXED) +
		thread->batch.missing;
	check_records(s, p, packet, bytes, pem_async__callback_only_before(p, c->lane, c->seq),
		      thread->batch.clock, tid, thread->batch.counts);
	if (packet->record_count)
		append(&thread->batch, packet);
}

/*
 * Charge the directory for the time since *began_ns, and check whether it has had its time: the
 * time of the recording's end, if that is reached, else the time of the turn. *began_ns becomes
 * now.
 */
static bool is_over(struct pem_session *s, struct pem_producer *p, uint64_t *began_ns)
{
	bool at_end = p->is_copy || s->log->finished;

	if (!p->dir->number)
		return false;
	if (at_end)
		pem_dir__charge_end(s, p->dir, *began_ns);
	else
		pem_dir__charge(s, p->dir, *began_ns);
	*began_ns = pem_monotonic_ns();
	return at_end ? pem_dir__had_end(s, p->dir) : pem_dir__had_turn(p->dir);
}

bool pem_drain__run(struct pem_session *s, struct pem_drain *d, size_t from, size_t to,
		    struct pem_drain_thread *thread)
{
	struct pem_producer *p = d->producer;
	bool over = false, freed = false;
	struct pem_found_chunk *c;
	size_t i;

	thread->batch.missing = 0;

	for (i = from; i < to && !over; i++) {
		c = &d->found[i];
		if (c->seq < p->next_seq[c->lane] ||
		    (!d->any_order && c->seq != p->next_seq[c->lane]))
			continue;
		take(s, p, c, thread);
		freed |= c->full && !p->recovering;
		over = is_over(s, p, &d->began_ns);
	}
	write_batch(s, p, thread);
	/* RH */
	if (freed)
		__atomic_fetch_add(&p->ring.header->freed, 1, __ATOMIC_RELEASE);
	return !over;
}

/*
 * May several threads move the producer's chunks? final: all committed records are moved, and a
 * process that lives may bring new events meanwhile. What a flight recorder keeps goes to one
 * memory.
 */
static bool is_shared_out(const struct pem_session *s, const struct pem_producer *p, bool final)
{
	return !p->dir->number && !s->async && !p->async && !p->recovering && !p->is_copy &&
	       !p->ring.overwrite && (!final || p->dead);
}

/*
 * Find the chunks of a producer that can be moved now. True: the caller moves and then frees what
 * was found. False: nothing is to be moved; *over says whether the turn of the producer's directory
 * is over.
 */
static bool begin(struct pem_session *s, struct pem_producer *p, bool final, struct pem_drain *d,
		  bool *over)
{
	struct pem_found_chunk *less;

	*d = (struct pem_drain){.producer = p,
				.is_shared_out = is_shared_out(s, p, final),
				.any_order = final || p->ring.overwrite,
				.began_ns = pem_dir__begin(s, p->dir)};
	*over = false;
	pem_async__collect(s, p, p->dead);
	if (!pem_session__is_logging(s) || (p->ring.overwrite && !final)) {
		pem_dir__charge(s, p->dir, d->began_ns);
		return false;
	}
	if (final) {
		pem_producer__refresh_events(s, p);
		pem_producer__sum_cells(p);
	}
	*over = is_over(s, p, &d->began_ns);
	if (*over)
		return false;
	d->found = malloc(p->chunk_limit * sizeof(*d->found));
	if (!d->found)
		return false;
	d->count = pem_producer__find_chunks(p, final, d->found);
	if (!final)
		pem_producer__grow(s, p, d->count);
	less = realloc(d->found, (d->count + 1) * sizeof(*d->found));
	if (less)
		d->found = less;
	/*
	 * Charge the search. One chunk is taken even if the time is over: a slow search would else
	 * use up every turn.
	 */
	is_over(s, p, &d->began_ns);
	/*
	 * The records of these chunks can't be told apart before their events are described. By now
	 * it is known which events they may be of.
	 */
	if (!final && d->count && !pem_producer__refresh_events(s, p))
		d->count = 0;
	return true;
}

bool pem_session__drain_producer(struct pem_session *s, struct pem_producer *p, bool final)
{
	struct pem_drain drain;
	bool over;

	if (!begin(s, p, final, &drain, &over))
		return !over;
	over = !pem_session__run_drains(s, &drain, 1);
	free(drain.found);
	return !over;
}

/* Drains of producers that are shared out, until there are enough to begin. */
struct waiting {
	struct pem_drain drains[WAITING_MOST];
	size_t count;
};

static void run_waiting(struct pem_session *s, struct waiting *waiting)
{
	size_t i;

	pem_session__run_drains(s, waiting->drains, waiting->count);
	for (i = 0; i < waiting->count; i++)
		free(waiting->drains[i].found);
	waiting->count = 0;
}

/* Returns whether nothing was left in the producer's pool. */
static bool drain_or_wait(struct pem_session *s, struct pem_producer *p, struct waiting *waiting)
{
	struct pem_drain *drain = &waiting->drains[waiting->count];
	bool over;

	if (!is_shared_out(s, p, false))
		return pem_session__drain_producer(s, p, false);
	if (begin(s, p, false, drain, &over) && ++waiting->count == WAITING_MOST)
		run_waiting(s, waiting);
	return true;
}

bool pem_session__drain_producers(struct pem_session *s)
{
	struct waiting waiting = {.count = 0};
	struct pem_producer *p;
	bool all = true;
	int i;

	s->dirs->turn++;
	for (i = 0; i < 2; i++) {
		for (p = s->processes->producers; p; p = p->next) {
			if (p->turn == s->dirs->turn || (i == 0 && !p->waits))
				continue;
			p->turn = s->dirs->turn;
			p->waits = !drain_or_wait(s, p, &waiting);
			all &= !p->waits;
		}
	}
	run_waiting(s, &waiting);
	return all;
}
