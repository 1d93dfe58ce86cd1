/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * notify.c - the general path of an event: whatever the inlines of stub.h decline
 *
 * Several sessions, filters, callbacks, what statistics stubs decline, a full chunk, a thread's
 * first event, an event inside an event. What cannot be recorded is counted: in the lane's cell, in
 * lane 0, or beside the pools (joined.counts).
 */
#include "producer/producer.h"

#include <errno.h>
#include <pthread.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Count an event that has no lane: one to be logged in lane 0 if there is a pool, else beside the
 * pools; one that a statistic lacks beside the pools.
 */
static void count_lost(unsigned session_index, uint32_t event_index, uint32_t flags,
		       uint32_t incarnation)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	/* jb */
	struct pem_session_page *counts = __atomic_load_n(&joined->counts, __ATOMIC_ACQUIRE);
	struct pem_ring ring;
	struct pem_cell *s;

	/* ja */
	if (__atomic_load_n(&joined->state, __ATOMIC_ACQUIRE) == PEM_JOINED_NOT || !counts)
		return;
	/* jc: The session index became another session's just now, and the action's has left. */
	if (__atomic_load_n(&joined->incarnation, __ATOMIC_ACQUIRE) != incarnation)
		return;
	if (pem_restricted())
		__atomic_fetch_add(&counts->lost_filtered, 1, __ATOMIC_RELAXED);
	if (flags & PEM_ACTION_STAT)
		__atomic_fetch_add(&counts->lost_statistics, 1, __ATOMIC_RELAXED);
	if (!(flags & PEM_ACTION_LOG))
		return;
	if (!pem_joined__ring(joined, incarnation, &ring)) {
		__atomic_fetch_add(&counts->lost, 1, __ATOMIC_RELAXED);
		return;
	}
	s = &ring.cells[event_index];
	__atomic_fetch_add(&s->discarded, 1, __ATOMIC_RELAXED); /* first: see log_record */
	__atomic_fetch_add(&s->produced, 1, __ATOMIC_RELAXED);
}

/* --- logging --- */

/*
 * Once there are many lanes each uses half of its chunks, while its records are small: a thousand
 * threads that raise an event now and then would hold 8 MiB of chunks.
 */
#define CROWD_LANES 256u

static uint32_t chunk_part(struct pem_joined *joined, const struct pem_ring *ring,
			   const struct pem_writer *w, uint32_t bytes)
{
	uint32_t half = ring->chunk_bytes / 2;

	if (w->lane_index >= CROWD_LANES)
		__atomic_store_n(&joined->crowded, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&joined->crowded, __ATOMIC_RELAXED) &&
			       bytes <= half - PEM_PACKET_HEADER_BYTES
		       ? half
		       : ring->chunk_bytes;
}

/*
 * Make the first bytes of a chunk exist. Whole chunks are populated eight at a time: one system
 * call for 64 KiB the first time through a pool. The very first is so alone: many a process needs
 * no second.
 */
static bool populate_chunk(const struct pem_ring *ring, uint32_t index, uint32_t bytes)
{
	uint32_t halves = bytes < ring->chunk_bytes ? 1 : 3, bits = halves << (index % 16 * 2);
	uint32_t *populated = pem_pool__populated(ring);
	uint32_t first = index, last = index + 1, i;

	if ((__atomic_load_n(&populated[index / 16], __ATOMIC_RELAXED) & bits) == bits)
		return true;
	if (halves == 3 && index) {
		first = index & ~7u;
		last = first + 8 < ring->chunk_count ? first + 8 : ring->chunk_count;
		bytes = (last - first) * ring->chunk_bytes;
	}
	if (!pem_populate(ring->chunks + (uint64_t)first * ring->chunk_bytes, bytes))
		return false;
	for (i = first; i < last; i++)
		__atomic_fetch_or(&populated[i / 16], halves << (i % 16 * 2), __ATOMIC_RELAXED);
	return true;
}

/* A whole chunk that has memory, for a thread that gets none. */
static bool claim_ready(struct pem_joined *joined, const struct pem_ring *ring,
			struct pem_writer *w, uint64_t now, uint32_t tid, uint32_t freed)
{
	const uint32_t *populated = pem_pool__populated(ring);
	uint32_t first =
		ring->overwrite ? __atomic_load_n(&ring->header->chunk_hint, __ATOMIC_RELAXED) : 0;
	uint32_t tries, i, bits;

	if (!ring->overwrite && __atomic_load_n(&joined->ready_full, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&joined->ready_full_at, __ATOMIC_RELAXED) == freed)
		return false;
	__atomic_store_n(&joined->ready_full, false, __ATOMIC_RELAXED);
	for (tries = 0; tries < ring->chunk_count; tries++) {
		i = (first + tries) % ring->chunk_count;
		bits = __atomic_load_n(&populated[i / 16], __ATOMIC_RELAXED) >> (i % 16 * 2);
		if ((bits & 3) != 3 || !pem_ring_try(ring, i))
			continue;
		if (ring->overwrite) /* the next one is the oldest */
			__atomic_store_n(&ring->header->chunk_hint, i + 1, __ATOMIC_RELAXED);
		pem_ring_start(ring, w, i, now, pem_process.pid, tid);
		return true;
	}
	__atomic_store_n(&joined->ready_full_at, freed, __ATOMIC_RELAXED);
	__atomic_store_n(&joined->ready_full, true, __ATOMIC_RELAXED);
	return false;
}

/* A new chunk with room for a record of bytes. */
static bool claim_chunk(unsigned session, const struct pem_ring *ring, struct pem_writer *w,
			uint64_t now, uint32_t tid, uint32_t bytes)
{
	struct pem_joined *joined = &pem_process.joined[session];
	uint32_t part = chunk_part(joined, ring, w, bytes);
	/* rh */
	uint32_t freed = __atomic_load_n(&ring->header->freed, __ATOMIC_ACQUIRE);
	int64_t index;

	pem_ring_retire(ring, w);
	if (pem_restricted())
		return claim_ready(joined, ring, w, now, tid, freed);
	if (ring->overwrite || __atomic_load_n(&joined->full, __ATOMIC_RELAXED))
		pem_process__check_consumer(session, now);
	/*
	 * Where chunks are reclaimed, one that was just retired is to be had, and nobody frees any.
	 */
	if (!ring->overwrite && __atomic_load_n(&joined->full, __ATOMIC_RELAXED) &&
	    __atomic_load_n(&joined->full_at, __ATOMIC_RELAXED) == freed)
		return false;
	index = pem_ring_find(ring);
	if (index < 0) {
		__atomic_store_n(&joined->full_at, freed, __ATOMIC_RELAXED);
		__atomic_store_n(&joined->full, 1, __ATOMIC_RELAXED);
		return false;
	}
	__atomic_store_n(&joined->full, 0, __ATOMIC_RELAXED);
	if (!populate_chunk(ring, (uint32_t)index, part)) {
		pem_ring_give_back(ring, (uint32_t)index);
		return false;
	}
	pem_ring_start(ring, w, (uint32_t)index, now, pem_process.pid, tid);
	w->end -= ring->chunk_bytes - part;
	return true;
}

/*
 * A thread cancelled in there would leave a chunk that is nobody's, and what it held uncounted. It
 * has no cancellation points; the type is what the C library's handler looks at, the state it may
 * have looked at before.
 */
static bool claim_whole(unsigned session, const struct pem_ring *ring, struct pem_writer *w,
			uint64_t now, uint32_t tid, uint32_t bytes)
{
	bool claimed;
	int type;

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
	claimed = claim_chunk(session, ring, w, now, tid, bytes);
	pthread_setcanceltype(type, NULL);
	return claimed;
}

/*
 * The ring that a writer's lane is of; false: its session has left, or this is a copy, after fork,
 * of the parent's event.
 */
static bool ring_of(unsigned session, const struct pem_writer *w, struct pem_ring *ring)
{
	return pem_joined__ring(&pem_process.joined[session],
				__atomic_load_n(&w->incarnation, __ATOMIC_RELAXED), ring) &&
	       w->cells == &ring->cells[(uint64_t)w->lane_index * ring->event_capacity];
}

static void count_restricted(unsigned session)
{
	/* jb */
	struct pem_session_page *counts =
		__atomic_load_n(&pem_process.joined[session].counts, __ATOMIC_ACQUIRE);

	if (counts && pem_restricted())
		__atomic_fetch_add(&counts->lost_filtered, 1, __ATOMIC_RELAXED);
}

static void log_record(unsigned session, struct pem_writer *w, uint32_t event_index, uint32_t tid,
		       const uint8_t *record, uint32_t bytes)
{
	struct pem_cell *cell = &w->cells[event_index];
	uint64_t now = pem_clock();
	uint8_t *to = pem_ring_reserve(w, now, bytes);
	struct pem_lane *lane;
	struct pem_ring ring;

	if (!to) {
		if (!ring_of(session, w, &ring))
			return;
		lane = &ring.lanes[w->lane_index];
		if (bytes <= ring.chunk_bytes - PEM_PACKET_HEADER_BYTES &&
		    claim_whole(session, &ring, w, now, tid, bytes))
			to = pem_ring_reserve(w, now, bytes);
	}
	if (!to) {
		count_restricted(session);
		/*
		 * Produced last, as in pem_ring_commit: a thread killed in between is one ahead of
		 * its count.
		 */
		__atomic_store_n(&lane->discarded, lane->discarded + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&cell->discarded, cell->discarded + 1, __ATOMIC_RELAXED);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(&cell->produced, cell->produced + 1, __ATOMIC_RELAXED);
		return;
	}
	memcpy(to + sizeof(struct pem_record_header), record + sizeof(struct pem_record_header),
	       bytes - sizeof(struct pem_record_header));
	pem_ring_commit(w, cell, now, pem_process.event_id[event_index], bytes);
}

/* --- callbacks --- */

static void call_one(struct pem_sync_callback *cb, uint32_t tid, uint8_t *record, uint32_t bytes)
{
	struct pem_record_header *header = (struct pem_record_header *)record;
	struct pem_record r = {.size = sizeof(r)};

	r.clock = pem_clock();
	header->clock_low = (uint32_t)r.clock;
	header->event_id = cb->event->id;
	r.event = cb->event;
	r.data = record;
	r.bytes = bytes;
	r.pid = pem_process.pid;
	r.tid = tid;
	r.cpu = (uint32_t)sched_getcpu();
	cb->function(&r, cb->arg);
}

static void call_back(struct pem_joined *joined, struct pem_thread_full *thread,
		      uint32_t event_index, uint8_t *record, uint32_t bytes)
{
	/* hb */
	uint32_t count = __atomic_load_n(&joined->callback_count, __ATOMIC_ACQUIRE), i;
	uint32_t event_id = pem_process.event_id[event_index];

	if (thread->in_callback)
		return;
	for (i = 0; i < count; i++) {
		struct pem_sync_callback *cb = &joined->callback[i];

		if (__atomic_load_n(&cb->event_id, __ATOMIC_RELAXED) != event_id)
			continue;
		thread->in_callback = cb;
		/* HC: Before enabled: see pem_callback__unregister. */
		__atomic_fetch_add(&cb->running, 1, __ATOMIC_SEQ_CST);
		/*
		 * hc, ha: Read again: the entry may have become another callback's before 'running'
		 * held it.
		 */
		if (__atomic_load_n(&cb->enabled, __ATOMIC_SEQ_CST) &&
		    __atomic_load_n(&cb->event_id, __ATOMIC_SEQ_CST) == event_id &&
		    (!cb->tid || cb->tid == thread->shared.tid) &&
		    (cb->cpu == PEM_NO_CPU || cb->cpu == (uint32_t)sched_getcpu())) {
			if (pem_thread_inside)
				__atomic_fetch_add(&cb->missed, 1, __ATOMIC_RELAXED);
			else
				call_one(cb, thread->shared.tid, record, bytes);
		}
		/* HD */
		__atomic_fetch_sub(&cb->running, 1, __ATOMIC_RELEASE);
		thread->in_callback = NULL;
	}
}

/* --- the consumer --- */

void pem_process__wake(struct pem_session_page *counts)
{
	uint32_t word;

	if (pem_refused() & PEM_SECCOMP_WAKE)
		return;
	/* WA, wa: see callbacks/thread.c: what is committed, before the look */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	word = __atomic_load_n(&counts->wake, __ATOMIC_RELAXED);
	/* WB */
	if (word & 1 && __atomic_compare_exchange_n(&counts->wake, &word, word + 1, 0,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		syscall(SYS_futex, &counts->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* --- the event --- */

/*
 * Is the action one of the session that this process has joined in the entry? If not, another has
 * come, and is joined now; or the action is of one that has just left.
 */
static bool is_joined(unsigned session_index, uint64_t action)
{
	const struct pem_joined *joined = &pem_process.joined[session_index];
	uint32_t incarnation = PEM_ACTION_INCARNATION(action);

	if (__builtin_expect(incarnation != __atomic_load_n(&joined->incarnation, __ATOMIC_RELAXED),
			     0)) {
		if (!incarnation || pem_restricted() || !pem_process__lock())
			return false;
		pem_process__join_offered(session_index);
		pem_process__unlock();
	}
	/* jc, ja */
	return incarnation == __atomic_load_n(&joined->incarnation, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&joined->state, __ATOMIC_ACQUIRE) != PEM_JOINED_NOT;
}

/*
 * The action as it stands once its filter is the one that it came with: a consumer changes actions
 * from outside, but filters lie in here. PEM_ACTION_CHECK in it: that can't be had now.
 */
static uint64_t settle(unsigned session_index, const uint64_t *at, uint64_t action)
{
	/* jb */
	const struct pem_session_page *page =
		__atomic_load_n(&pem_process.joined[session_index].page, __ATOMIC_ACQUIRE);

	if (!(action & PEM_ACTION_CHECK) || !page)
		return action;
	/* uc */
	if (__atomic_load_n(&page->generation, __ATOMIC_ACQUIRE) & 1 || pem_restricted() ||
	    !pem_process__lock())
		return action;
	/* Another thread may have been first. */
	if (__atomic_load_n(at, __ATOMIC_RELAXED) & PEM_ACTION_CHECK)
		pem_process__apply(session_index);
	pem_process__unlock();
	/* uf */
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/*
 * The filter that an action came with; NULL: it has none, or can't be had, and then *action has
 * PEM_ACTION_CHECK.
 */
static const struct pem_filter *filter_of(unsigned session_index, uint32_t event_index,
					  const uint64_t *at, uint64_t *action)
{
	const struct pem_filter *filter = NULL;
	uint64_t before;
	int tries;

	for (tries = 0; tries < 3; tries++) {
		before = *action = settle(session_index, at, *action);
		/* uf */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		/* uh */
		filter = __atomic_load_n(&pem_process.joined[session_index].filter[event_index],
					 __ATOMIC_ACQUIRE);
		*action = __atomic_load_n(at, __ATOMIC_RELAXED);
		if (*action == before && !(*action & PEM_ACTION_CHECK))
			return filter;
		if (!is_joined(session_index, *action))
			break;
	}
	*action |= PEM_ACTION_CHECK;
	return NULL;
}

/* Is the event wanted of this thread and CPU, with these fields? */
static bool passes(const struct pem_filter *filter, uint32_t tid, const uint8_t *record,
		   uint32_t bytes)
{
	return filter && (!filter->tid || filter->tid == tid) &&
	       (filter->cpu == PEM_NO_CPU || filter->cpu == (uint32_t)sched_getcpu()) &&
	       (!filter->test_count ||
		(pem_tests__valid(pem_filter_tests(filter), filter->test_count, bytes) &&
		 pem_tests_pass(pem_filter_tests(filter), filter->test_count, record)));
}

static void add_distribution(unsigned session_index, const struct pem_writer *w,
			     uint32_t event_index, const struct pem_filter *filter, uint64_t action,
			     const uint8_t *record, uint32_t bytes)
{
	struct pem_ring ring;

	if (filter && ring_of(session_index, w, &ring) &&
	    !pem_accumulate_distribution(&ring, w->lane_index, filter->distribution, action, record,
					 bytes))
		count_lost(session_index, event_index, PEM_ACTION_STAT, w->incarnation);
}

static void deliver(struct pem_thread_full *thread, unsigned session_index, unsigned depth,
		    uint32_t event_index, const uint64_t *at, uint64_t action, uint8_t *record,
		    uint32_t bytes)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	const struct pem_filter *filter = NULL;
	struct pem_session_page *counts;
	struct pem_writer *w;
	uint32_t flags;

	if (!is_joined(session_index, action))
		return;
	if (action & (PEM_ACTION_FILTER | PEM_ACTION_DISTRIBUTION))
		filter = filter_of(session_index, event_index, at, &action);
	flags = PEM_ACTION_FLAGS(action);
	if (flags & PEM_ACTION_CHECK) {
		count_lost(session_index, event_index, flags, PEM_ACTION_INCARNATION(action));
		return;
	}
	if (flags & PEM_ACTION_FILTER && !passes(filter, thread->shared.tid, record, bytes))
		return;
	if (flags & (PEM_ACTION_LOG | PEM_ACTION_STAT)) {
		w = pem_thread__writer(thread, session_index, depth,
				       PEM_ACTION_INCARNATION(action));
		if (!w) {
			count_lost(session_index, event_index, flags,
				   PEM_ACTION_INCARNATION(action));
		} else {
			if (flags & PEM_ACTION_STAT)
				pem_accumulate(&w->cells[event_index], action, record, bytes);
			if (flags & PEM_ACTION_STAT && flags & PEM_ACTION_DISTRIBUTION)
				add_distribution(session_index, w, event_index, filter, action,
						 record, bytes);
			if (flags & PEM_ACTION_LOG)
				log_record(session_index, w, event_index, thread->shared.tid,
					   record, bytes);
		}
	}
	/* jb: Making its pool the process may have met another session, and found no page there. */
	counts = __atomic_load_n(&joined->counts, __ATOMIC_ACQUIRE);
	if (flags & PEM_ACTION_WAKE && counts)
		pem_process__wake(counts);
	if (flags & PEM_ACTION_CALLBACK)
		call_back(joined, thread, event_index, record, bytes);
}

void pem_notify(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
{
	const struct pem_control_header *page = provider->page;
	const uint8_t *enable = (const uint8_t *)(page + 1);
	uint32_t capacity = PEM_EVENT_CAPACITY(provider->event_count), bits, depth = PEM_DEPTHS;
	const uint64_t *actions = (const uint64_t *)(enable + capacity);
	struct pem_thread_full *thread;
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0), outer = 0;
	int saved_errno = errno;
	const uint64_t *at;
	uint64_t action;
	unsigned session_index;

	thread = pem_thread__get();
	/* ug */
	bits = __atomic_load_n(&enable[index], __ATOMIC_ACQUIRE);
	if (thread) {
		depth = thread->shared.depth - PEM_DEPTH_IDLE;
		if (__builtin_expect(depth != 0, 0)) {
			depth = pem_thread__level(thread, stack);
			outer = pem_thread__begin(thread, depth, stack);
		}
		PEM_BARRIER();
		thread->shared.depth++;
	}
	PEM_BARRIER();
	for (; bits; bits &= bits - 1) {
		session_index = (unsigned)__builtin_ctz(bits);
		at = &actions[index * PEM_SESSIONS_MAX + session_index];
		action = __atomic_load_n(at, __ATOMIC_RELAXED);
		if (depth >= PEM_DEPTHS)
			count_lost(session_index, provider->event_base + index,
				   PEM_ACTION_FLAGS(action), PEM_ACTION_INCARNATION(action));
		else
			deliver(thread, session_index, depth, provider->event_base + index, at,
				action, record, bytes);
	}
	PEM_BARRIER();
	/* Counted down, as a callback may have returned in a child: see pem_log_commit. */
	if (thread)
		thread->shared.depth--;
	PEM_BARRIER();
	if (__builtin_expect(depth != 0, 0) && thread)
		pem_thread__begin(thread, depth, outer);
	errno = saved_errno;
}
