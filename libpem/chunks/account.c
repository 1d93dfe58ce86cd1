/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * account.c - the account of each event that a producer counted: delivered, discarded or
 * overwritten
 *
 * The counts in a producer's pool are hostile, as the whole pool is. Not here: counting what is
 * delivered (drain.c).
 */
#include "dirs/dirs.h"
#include "core/demand.h"
#include "chunks/chunks.h"
#include "core/core.h"
#include "cost/cost.h"
#include "delivery/delivery.h"
#include "dirs/limits.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "writer/trace_writer.h"

#include <pem/clock.h>

#include <stdlib.h>
#include <string.h>

void pem_producer__sum_cells(struct pem_producer *p)
{
	const struct pem_ring *ring = &p->ring;
	uint32_t lane, i;

	memset(p->produced, 0, ring->event_capacity * sizeof(*p->produced));
	memset(p->discarded, 0, ring->event_capacity * sizeof(*p->discarded));
	for (lane = 0; lane < ring->lane_count; lane = pem_producer__next_lane(p, lane)) {
		const struct pem_cell *cells = &ring->cells[(uint64_t)lane * ring->event_capacity];

		for (i = 0; i < p->table_events; i++) {
			p->produced[i] += __atomic_load_n(&cells[i].produced, __ATOMIC_RELAXED);
			p->discarded[i] += __atomic_load_n(&cells[i].discarded, __ATOMIC_RELAXED);
		}
	}
	/* none: a producer stores its count after the commit, without a release */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/*
 * State in each lane's stream what was discarded after its last packet. Returns the number of
 * records that were overwritten.
 */
static uint64_t close_lanes(struct pem_session *s, struct pem_producer *p)
{
	uint32_t events = pem_pool__event_count(&p->ring), lane, i;
	uint64_t overwritten = 0, discarded;
	char stream[96];

	for (lane = 0; lane < p->ring.lane_count; lane = pem_producer__next_lane(p, lane)) {
		const struct pem_lane *l = &p->ring.lanes[lane];

		overwritten += __atomic_load_n(&l->overwritten, __ATOMIC_RELAXED);
		discarded = __atomic_load_n(&l->discarded, __ATOMIC_RELAXED);
		for (i = 0; !lane && i < events; i++)
			discarded += __atomic_load_n(&p->ring.cells[i].discarded, __ATOMIC_RELAXED);
		pem_producer__stream(p, lane, stream, sizeof(stream));
		pem_trace_writer__discarded(s->log->writer, stream, discarded, pem_clock());
	}
	return overwritten;
}

/*
 * Return the number of records in chunks that are claimed and not begun. A thread claims a full
 * chunk first and then counts its records as overwritten. In between, the thread may be killed or
 * still be running.
 */
static uint64_t half_reclaimed(const struct pem_ring *ring)
{
	uint64_t records = 0, count;
	uint32_t i;

	for (i = 0; ring->overwrite && i < ring->chunk_count; i++) {
		/* rf */
		if (__atomic_load_n(&ring->chunk_state[i], __ATOMIC_ACQUIRE) !=
		    PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 0))
			continue;
		count = __atomic_load_n(&pem_ring__chunk(ring, i)->record_count, __ATOMIC_RELAXED);
		if (count <= ring->chunk_bytes / sizeof(struct pem_record_header))
			records += count;
	}
	return records;
}

/* Return the id by which the trace knows an event; 0: its kind is unknown. */
static uint32_t id_in_trace(struct pem_log *log, const struct pem_event_entry *entry)
{
	uint32_t id = entry->event ? entry->event->id : entry->id;

	if (entry->event && !entry->refused)
		pem_log__describe(log, entry->event);
	return pem_model__by_id(log->model, id) ? id : 0;
}

static void retire_statistic(struct pem_demand *demand, struct pem_producer *p)
{
	struct pem_statistic gone;

	memset(&gone, 0, sizeof(gone));
	pem_producer__statistic(p, demand, &gone);
	pem_demand__retire_distribution(demand, p);
	if (demand->retired_epoch != demand->epoch)
		memset(&demand->retired, 0, sizeof(gone));
	demand->retired_epoch = demand->epoch;
	pem_statistic__add(&demand->retired, &gone);
}

void pem_session__retire(struct pem_session *s, struct pem_producer *p)
{
	struct pem_demand *demand;
	size_t i;

	pem_async__account(s, p);
	/* A library that the process loaded late may have brought events that were not read yet. */
	pem_producer__refresh_events(s, p);
	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if (demand->want_statistic)
				retire_statistic(demand, p);
		}
	}
}

/*
 * The most that a process's count of one event may be. A larger count would take months, and a sum
 * of many counts must not overflow.
 */
#define COUNT_MAX (1ull << 52)

static uint64_t believable(uint64_t count)
{
	return count < COUNT_MAX ? count : COUNT_MAX;
}

/*
 * Make a balance of another user's process add up by what was recorded, because that process may
 * count what it likes. Returns whether that made a difference.
 */
static bool believe_records(struct pem_balance *b)
{
	uint64_t known = b->delivered + b->discarded + b->overwritten;

	if (b->produced < known)
		b->produced = known;
	else if (b->produced > known)
		b->discarded += b->produced - known;
	else
		return false;
	return true;
}

/* Are its records readings of counters, which have a cost of their own (cost/calibrate.c)? */
static bool is_reading(const struct pem_event_entry *e)
{
	return e->event && !strcmp(e->event->name, PEM_THREAD_COUNTERS_EVENT);
}

/* Count events that have a cost of their own. */
static void count_special(struct pem_session *s, const struct pem_event_entry *e, uint64_t produced)
{
	if (is_reading(e))
		s->log->readings += produced;
	if (e->event && pem_session__cost_kind(s, e->event) == PEM_COST_LIBC)
		s->log->of_libc += produced;
}

/* Are all of an event's records callback-only? */
static bool is_callback_only(const struct pem_session *s, const struct pem_event_entry *e)
{
	return e->demand && e->demand->async_ever && !pem_log__takes(s->log, e->demand);
}

void pem_session__account(struct pem_session *s, struct pem_producer *p)
{
	struct pem_balance_entry *entries;
	const struct pem_event_entry *e;
	uint64_t overwritten, rest, in_flight = 0;
	struct pem_balance *b;
	bool of_another = p->dir->number, is_false = false;
	size_t count = 0, i;
	uint32_t lane;

	if (!pem_session__is_logging(s))
		return;
	entries = calloc(PEM_EVENT_TABLE, sizeof(*entries));
	if (!entries)
		return;
	overwritten = close_lanes(s, p) + half_reclaimed(&p->ring);
	for (lane = 0; lane < p->ring.lane_count; lane = pem_producer__next_lane(p, lane))
		in_flight += !lane || __atomic_load_n(&p->ring.lanes[lane].state,
						      __ATOMIC_RELAXED) == PEM_LANE_OWNED;
	in_flight += __atomic_load_n(&p->ring.header->cut_short, __ATOMIC_RELAXED);
	for (i = 0; i < PEM_EVENT_TABLE; i++) {
		e = &p->table[i];
		if (!e->id || is_callback_only(s, e))
			continue;
		b = &entries[count].balance;
		b->delivered = p->delivered[e->event_index];
		b->discarded = believable(p->discarded[e->event_index]) + p->lost[e->event_index];
		b->produced = believable(p->produced[e->event_index]);
		b->produced -= b->produced > p->callback_only[e->event_index]
				       ? p->callback_only[e->event_index]
				       : b->produced;
		/* A copy may end at a record that its thread had not counted yet (pool_copy.c). */
		if (p->is_copy && b->produced < b->delivered + b->discarded)
			b->produced = b->delivered + b->discarded;
		/*
		 * A thread ended after it had committed a record and before it had counted it. That
		 * can be one record for each lane at most (ring.h).
		 */
		while (in_flight && b->produced < b->delivered + b->discarded) {
			b->produced++;
			in_flight--;
		}
		rest = b->produced > b->delivered + b->discarded
			       ? b->produced - b->delivered - b->discarded
			       : 0;
		b->overwritten = rest < overwritten ? rest : overwritten;
		overwritten -= b->overwritten;
		/* What was cut off was never read. */
		if (p->recovering || p->damaged || p->unread)
			b->discarded += rest - b->overwritten;
		if (of_another)
			is_false |= believe_records(b);
		s->log->produced += b->produced;
		s->log->overwritten += b->overwritten;
		count_special(s, e, b->produced);
		/* An event that never happened is not listed. */
		if (!b->produced && !b->discarded)
			continue;
		entries[count++].event_id = id_in_trace(s->log, e);
	}
	pem_trace_writer__balance(s->log->writer, p->pid, p->comm, p->start_clock, entries, count);
	if (is_false)
		pem_dir__exceed(s, p->dir, PEM_EXCESS_COUNTS, 1);
	if (p->damaged)
		pem_session__say(s, PEM_LOG_WARNING,
				 "%llu packets of process %u (%s) held records that do not match "
				 "its event descriptions; "
				 "they were cut there",
				 (unsigned long long)p->damaged, p->pid, p->comm);
	free(entries);
}
