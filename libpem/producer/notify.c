/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * notify.c - the general path of an event, for all that the inlines of stub.h decline
 *
 * This path handles several sessions, several rules of an event, filters, callbacks, statistics
 * that stubs decline, a full chunk, a thread's first event, and an event inside an event. An event
 * that cannot be recorded is counted: in the lane's cell, in lane 0, or beside the pools
 * (joined.counts).
 */
#include "producer/producer.h"
#include "producer/providers.h"
#include "producer/standby.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Count an event that has no lane. An event to be logged is counted in lane 0 if there is a pool,
 * else beside the pools. An event that a statistic lacks is counted beside the pools.
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
	/* jc: the entry has become another session's just now; the action's session has left */
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

/*
 * Does the callback want this event? Each callback is tested by itself: its demand may be one of
 * several of the event.
 */
static bool is_for(const struct pem_sync_callback *cb, uint32_t tid, const uint8_t *record,
		   uint32_t bytes)
{
	return (!cb->tid || cb->tid == tid) &&
	       (cb->cpu == PEM_NO_CPU || cb->cpu == (uint32_t)sched_getcpu()) &&
	       (!cb->test_count || (pem_tests__valid(cb->tests, cb->test_count, bytes) &&
				    pem_tests_pass(cb->tests, cb->test_count, record)));
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
		/* HC: before enabled is read, see pem_callback__unregister */
		__atomic_fetch_add(&cb->running, 1, __ATOMIC_SEQ_CST);
		/*
		 * hc, ha: read again, since the entry may have become another callback's before
		 * running held it
		 */
		if (__atomic_load_n(&cb->enabled, __ATOMIC_SEQ_CST) &&
		    __atomic_load_n(&cb->event_id, __ATOMIC_SEQ_CST) == event_id &&
		    is_for(cb, thread->shared.tid, record, bytes)) {
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

	if (pem_refused() & (PEM_SECCOMP_WAKE | PEM_SECCOMP_DISPATCH))
		return;
	/* WA, wa: the commit comes before this load, see callbacks/thread.c */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	word = __atomic_load_n(&counts->wake, __ATOMIC_RELAXED);
	/* WB */
	if (word & 1 && __atomic_compare_exchange_n(&counts->wake, &word, word + 1, 0,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		syscall(SYS_futex, &counts->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* --- the event --- */

/*
 * Does the action belong to the session that this process has joined in the entry? If the action is
 * of a newer session, this one is joined now. If the action's session has just left, the answer is
 * false.
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
 * Return the action word once it has the right filter. A consumer changes actions from outside, but
 * only this process can make filters. The result has PEM_ACTION_CHECK where that is not possible
 * now.
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
	/* Another thread may have applied the rules first. */
	if (__atomic_load_n(at, __ATOMIC_RELAXED) & PEM_ACTION_CHECK)
		pem_process__apply(session_index);
	pem_process__unlock();
	/* uf */
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/*
 * Return the filter of an action. NULL: the action has no filter, or the filter cannot be had now.
 * In the second case *action has PEM_ACTION_CHECK.
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

/* Does the session want the event of this thread and CPU, with these fields? */
static bool passes(const struct pem_filter *filter, uint32_t tid, const uint8_t *record,
		   uint32_t bytes)
{
	return filter && (!filter->tid || filter->tid == tid) &&
	       (filter->cpu == PEM_NO_CPU || filter->cpu == (uint32_t)sched_getcpu()) &&
	       (!filter->test_count ||
		(pem_tests__valid(pem_filter_tests(filter), filter->test_count, bytes) &&
		 pem_tests_pass(pem_filter_tests(filter), filter->test_count, record)));
}

static void add_distribution(struct pem_thread_full *thread, unsigned session_index,
			     const struct pem_writer *w, uint32_t event_index,
			     const struct pem_filter *filter, uint64_t action,
			     const uint8_t *record, uint32_t bytes)
{
	struct pem_ring ring;

	if (!filter || !pem_writer__ring(session_index, w, &ring))
		return;
	if (!pem_accumulate_distribution(&ring, w->lane_index, filter->distribution, action, record,
					 bytes))
		count_lost(session_index, event_index, PEM_ACTION_STAT, w->incarnation);
	else if (w == &thread->shared.writer[0])
		pem_quick_distribution__keep(thread, action, event_index, filter, &ring, bytes);
}

/* --- an event with several rules --- */

/* An event on its way through the parts of its rules in one session. */
struct delivery {
	struct pem_thread_full *thread;
	unsigned session_index, depth;
	uint32_t event_index, incarnation;
	uint8_t *record;
	uint32_t bytes;
	/* What the parts that passed ask for: LOG, CALLBACK. */
	uint32_t wanted;
	/* What of it failed: LOG, STAT. */
	uint32_t lost;
	/* The writer of the thread's lane, once has_asked is true. NULL then: there is none. */
	struct pem_writer *writer;
	bool has_asked;
	/* Is ring the writer's ring? False where the session has left. */
	bool has_ring;
	struct pem_ring ring;
};

/*
 * Copy a part, that is, the action and filter of one rule. Returns false where the part is of
 * another event or session, or cannot be had now. In the last case part->action has CHECK.
 */
static bool read_part(const struct delivery *d, const uint64_t *action,
		      const struct pem_filter *const *filter, const uint32_t *event_index,
		      const uint32_t *gates, struct pem_part *part)
{
	int tries;

	for (tries = 0; tries < 3; tries++) {
		/* uf */
		part->action = __atomic_load_n(action, __ATOMIC_ACQUIRE);
		part->filter = __atomic_load_n(filter, __ATOMIC_RELAXED);
		part->event_index = __atomic_load_n(event_index, __ATOMIC_RELAXED);
		part->gates = gates ? __atomic_load_n(gates, __ATOMIC_RELAXED) : 0;
		/* uh */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(part->action & PEM_ACTION_CHECK) &&
		    __atomic_load_n(action, __ATOMIC_RELAXED) == part->action)
			return part->event_index == d->event_index &&
			       PEM_ACTION_INCARNATION(part->action) == d->incarnation;
		/* Another thread is changing the part, under the lock. Wait for it. */
		if (pem_restricted() || !pem_process__lock())
			break;
		pem_process__unlock();
	}
	part->action |= PEM_ACTION_CHECK;
	return false;
}

static struct pem_writer *writer_of(struct delivery *d)
{
	if (!d->has_asked) {
		d->has_asked = true;
		d->writer =
			pem_thread__writer(d->thread, d->session_index, d->depth, d->incarnation);
		d->has_ring = d->writer && pem_writer__ring(d->session_index, d->writer, &d->ring);
	}
	return d->writer;
}

/* Count an event that the gates of a part left undecided. */
static void add_undecided(struct pem_cell *cell, uint64_t tag)
{
	if (cell->discarded != tag) {
		__atomic_store_n(&cell->produced, 0, __ATOMIC_RELAXED);
		/* SE */
		__atomic_store_n(&cell->discarded, tag, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&cell->produced, cell->produced + 1, __ATOMIC_RELAXED);
}

/*
 * Add to a part's statistic: to the event's own cell, or to a further one. Returns false where
 * there is no memory for it.
 */
static bool add_up(struct delivery *d, const struct pem_part *part, int further, bool is_decided)
{
	const struct pem_writer *w = writer_of(d);
	struct pem_cell *cell;

	if (!w)
		return false;
	if (!d->has_ring)
		return true;
	if (further >= 0 && !pem_further__exist(&d->ring, w->lane_index))
		return false;
	cell = further < 0 ? &w->cells[d->event_index]
			   : pem_pool__further(&d->ring, w->lane_index, (uint32_t)further);
	if (!is_decided) {
		add_undecided(cell, PEM_ACTION_TAG(part->action));
		return true;
	}
	pem_accumulate(cell, part->action, d->record, d->bytes);
	return !(part->action & PEM_ACTION_DISTRIBUTION) || !part->filter ||
	       pem_accumulate_distribution(&d->ring, w->lane_index, part->filter->distribution,
					   part->action, d->record, d->bytes);
}

static void deliver_part(struct delivery *d, const struct pem_part *part, int further)
{
	uint32_t flags = PEM_ACTION_FLAGS(part->action), verdict = PEM_GATE_PASSES;

	if (flags & PEM_ACTION_FILTER &&
	    !passes(part->filter, d->thread->shared.tid, d->record, d->bytes))
		return;
	if (part->gates)
		verdict = pem_gates__judge(d->session_index, d->thread, part->gates);
	if (verdict == PEM_GATE_REJECTS)
		return;
	d->wanted |= flags & (PEM_ACTION_LOG | PEM_ACTION_CALLBACK);
	if (flags & PEM_ACTION_STAT && !add_up(d, part, further, verdict == PEM_GATE_PASSES))
		d->lost |= PEM_ACTION_STAT;
}

static void try_part(struct delivery *d, const uint64_t *action,
		     const struct pem_filter *const *filter, const uint32_t *event_index,
		     const uint32_t *gates, int further)
{
	struct pem_part part;

	if (read_part(d, action, filter, event_index, gates, &part))
		deliver_part(d, &part, further);
	else if (part.action & PEM_ACTION_CHECK)
		d->lost |= PEM_ACTION_FLAGS(part.action) & (PEM_ACTION_LOG | PEM_ACTION_STAT);
}

/*
 * Deliver an event to each part of its rules. Each part is tested by itself. A record that several
 * parts want is logged once. action is the event's word.
 */
static void deliver_parts(struct pem_thread_full *thread, unsigned session_index, unsigned depth,
			  uint32_t event_index, uint64_t action, uint8_t *record, uint32_t bytes)
{
	uint32_t flags = PEM_ACTION_FLAGS(action), incarnation = PEM_ACTION_INCARNATION(action);
	struct delivery d;
	struct pem_joined *joined = &pem_process.joined[session_index];
	struct pem_session_page *counts;
	uint64_t cells;
	const struct pem_part *from;
	int i;

	d.thread = thread;
	d.session_index = session_index;
	d.depth = depth;
	d.event_index = event_index;
	d.incarnation = incarnation;
	d.record = record;
	d.bytes = bytes;
	d.wanted = d.lost = 0;
	d.writer = NULL;
	d.has_asked = d.has_ring = false;
	/* uj */
	cells = __atomic_load_n(&joined->further_of[event_index], __ATOMIC_ACQUIRE);
	try_part(&d, &joined->own_action[event_index], &joined->filter[event_index], &event_index,
		 NULL, -1);
	for (; cells; cells &= cells - 1) {
		i = __builtin_ctzll(cells);
		from = &joined->further[i];
		try_part(&d, &from->action, &from->filter, &from->event_index, &from->gates, i);
	}
	if (d.wanted & PEM_ACTION_LOG && writer_of(&d)) {
		if (__atomic_load_n(&joined->counted[event_index / 64], __ATOMIC_RELAXED) >>
			    event_index % 64 &
		    1)
			pem_counted__log(thread, session_index, d.writer, action,
					 pem_process.event_id[event_index]);
		pem_log_record(session_index, d.writer, event_index, thread->shared.tid, record,
			       bytes);
	} else {
		d.lost |= d.wanted & PEM_ACTION_LOG;
	}
	if (d.lost)
		count_lost(session_index, event_index, d.lost, incarnation);
	/* jb */
	counts = __atomic_load_n(&joined->counts, __ATOMIC_ACQUIRE);
	if (flags & PEM_ACTION_WAKE && d.wanted & PEM_ACTION_LOG && counts)
		pem_process__wake(counts);
	if (d.wanted & PEM_ACTION_CALLBACK)
		call_back(joined, thread, event_index, record, bytes);
}

/* Also an event that can't be delivered opens and closes its gates. */
static void pass_gates(struct pem_thread_full *thread, unsigned session_index, uint32_t event_index,
		       uint64_t action)
{
	uint32_t incarnation = PEM_ACTION_INCARNATION(action);
	struct pem_gate_use use = pem_gates__of(session_index, event_index, incarnation);

	if (!pem_gates__change(session_index, thread, use))
		count_lost(session_index, event_index, PEM_ACTION_STAT, incarnation);
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
	if (action & (PEM_ACTION_FILTER | PEM_ACTION_DISTRIBUTION | PEM_ACTION_MORE))
		filter = filter_of(session_index, event_index, at, &action);
	flags = PEM_ACTION_FLAGS(action);
	if (flags & PEM_ACTION_CHECK) {
		pass_gates(thread, session_index, event_index, action);
		count_lost(session_index, event_index, flags, PEM_ACTION_INCARNATION(action));
		return;
	}
	if (flags & PEM_ACTION_MORE) {
		deliver_parts(thread, session_index, depth, event_index, action, record, bytes);
		pass_gates(thread, session_index, event_index, action);
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
				add_distribution(thread, session_index, w, event_index, filter,
						 action, record, bytes);
			if (flags & PEM_ACTION_LOG)
				pem_log_record(session_index, w, event_index, thread->shared.tid,
					       record, bytes);
		}
	}
	/*
	 * jb: while it made its pool, the process may have joined another session, and found no
	 * page there
	 */
	counts = __atomic_load_n(&joined->counts, __ATOMIC_ACQUIRE);
	if (flags & PEM_ACTION_WAKE && counts)
		pem_process__wake(counts);
	if (flags & PEM_ACTION_CALLBACK)
		call_back(joined, thread, event_index, record, bytes);
}

void pem_notify_all(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
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
		if (depth < PEM_DEPTHS) {
			deliver(thread, session_index, depth, provider->event_base + index, at,
				action, record, bytes);
			continue;
		}
		pass_gates(thread, session_index, provider->event_base + index, action);
		count_lost(session_index, provider->event_base + index, PEM_ACTION_FLAGS(action),
			   PEM_ACTION_INCARNATION(action));
	}
	PEM_BARRIER();
	/*
	 * The depth is counted down and not restored: a callback may have returned in a child. See
	 * pem_log_commit.
	 */
	if (thread)
		thread->shared.depth--;
	PEM_BARRIER();
	if (__builtin_expect(depth != 0, 0) && thread)
		pem_thread__begin(thread, depth, outer);
	errno = saved_errno;
}

static void lose(const struct pem_provider *provider, uint32_t index)
{
	const uint8_t *enable =
		(const uint8_t *)((const struct pem_control_header *)provider->page + 1);
	const uint64_t *actions =
		(const uint64_t *)(enable + PEM_EVENT_CAPACITY(provider->event_count));
	uint32_t bits;
	uint64_t action;

	if (pem_standby__lose(provider->event_ids[index]))
		return;
	/* ug */
	bits = __atomic_load_n(&enable[index], __ATOMIC_ACQUIRE);
	for (; bits; bits &= bits - 1) {
		action = __atomic_load_n(
			&actions[index * PEM_SESSIONS_MAX + (unsigned)__builtin_ctz(bits)],
			__ATOMIC_RELAXED);
		count_lost((unsigned)__builtin_ctz(bits), provider->event_base + index,
			   PEM_ACTION_FLAGS(action), PEM_ACTION_INCARNATION(action));
	}
}

void pem_providers__lose(const struct pem_provider *provider, uint32_t event_id, uint32_t count)
{
	uint32_t index = 0;

	while (index < provider->event_count && provider->event_ids[index] != event_id)
		index++;
	while (index < provider->event_count && provider->registered && count--)
		lose(provider, index);
}
