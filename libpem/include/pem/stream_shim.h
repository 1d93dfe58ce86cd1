/* SPDX-License-Identifier: MIT */
/*
 * stream_shim.h - queues of other libraries, shown to observers as the queues of pem/stream.h are
 *
 *	struct pem_stream *shown = pem_stream_adopt("jobs", 100);
 *
 *	pem_stream_wake(shown, PEM_STREAM_PUSHES);	// the thread that pushes
 *	if (!try_push(queue, job)) {
 *		pem_stream_wait(shown, PEM_STREAM_PUSHES);
 *		push(queue, job);
 *		pem_stream_go_on(shown, PEM_STREAM_PUSHES, 1);
 *	}
 *	pem_stream_pass(shown, PEM_STREAM_PUSHES, 1);
 *
 * The other end is the same with pops. libpem/gstreamer and pem/stream_tbb.hpp are users. The
 * queue itself, with its items, is the library's. Here are counters: no function waits, takes a
 * lock or allocates, but for pem_stream_adopt and pem_stream_release. None writes errno.
 *
 * One thread at a time uses an end. Any thread may call pem_stream_wake and pem_stream_count.
 */
#ifndef PEM_STREAM_SHIM_H
#define PEM_STREAM_SHIM_H

#include <pem/stream_shown.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An end that waited for less than this worked. */
#define PEM_STREAM_WAIT_MIN_NS 5000u
/* Values of pem_stream_side.waits: no; yes; yes, and the other end wakes it; and has woken it. */
enum { PEM_STREAM_WORKS, PEM_STREAM_WAITS, PEM_STREAM_STIRRED, PEM_STREAM_WOKEN };

/*
 * Show a queue. name: of at most 31 bytes; longer ones are cut. capacity: the items that fit, or 0:
 * unknown. Returns what pem_stream_release takes; NULL: errno is ENOMEM. A queue that finds no
 * space in the memory that is shown is counted there, and otherwise not shown. A capacity above
 * PEM_STREAM_CAPACITY_MAX counts as unknown.
 */
PEM_STREAM_RARE struct pem_stream *pem_stream_adopt(const char *name, uint64_t capacity)
{
	int error = errno;
	struct pem_stream *stream = pem_stream_new(name);

	if (!stream)
		return NULL;
	stream->mask = (capacity > PEM_STREAM_CAPACITY_MAX ? 0 : capacity) - 1;
	pem_stream_show_queue(stream);
	errno = error;
	return stream;
}

/* Show a queue no more. No thread uses it. Accepts NULL. */
PEM_STREAM_RARE void pem_stream_release(struct pem_stream *stream)
{
	if (stream)
		pem_stream_hide_queue(stream);
	free(stream);
}

/* Items in the queue, as far as they are counted. */
PEM_STREAM_RARE uint64_t pem_stream_queued(const struct pem_stream *stream)
{
	uint64_t pushed = PEM_STREAM_LOAD(&stream->side[PEM_STREAM_PUSHES].count);
	uint64_t gone = PEM_STREAM_LOAD(&stream->side[PEM_STREAM_POPS].count);

	gone += stream->entry ? PEM_STREAM_LOAD(&stream->entry->dropped) : 0;
	return (int64_t)(pushed - gone) < 0 ? 0 : pushed - gone;
}

/* An end is about to do what the other end may wait for. */
PEM_INLINE void pem_stream_wake(struct pem_stream *stream, int which)
{
	struct pem_stream_side *other = &stream->side[!which];

	if (__builtin_expect(PEM_STREAM_LOAD(&other->waits) == PEM_STREAM_WAITS, 0))
		PEM_STREAM_STORE(&other->waits, PEM_STREAM_STIRRED);
}

/* The calling thread, which uses an end, begins to wait, or may do so. */
PEM_STREAM_RARE void pem_stream_wait(struct pem_stream *stream, int which)
{
	struct pem_stream_side *side = &stream->side[which];

	if (side->own.since_ns)
		return;
	pem_stream_show_thread(side, PEM_STREAM_LOAD(&side->count));
	pem_stream_show_begin(side, pem_stream_clock());
	PEM_STREAM_STORE(&side->waits, PEM_STREAM_WAITS);
}

/*
 * It waits no longer. is_sure: it did wait. Otherwise it did if the other end woke it after a
 * while: a thread without a CPU in the middle of an operation does not wait for its queue. Returns
 * 1 if it waited. Does nothing without pem_stream_wait.
 */
PEM_STREAM_RARE int pem_stream_go_on(struct pem_stream *stream, int which, int is_sure)
{
	struct pem_stream_side *side = &stream->side[which];
	uint64_t since_ns = side->own.since_ns, now_ns, ready_ns, late_ns;
	uint32_t waits = PEM_STREAM_LOAD(&side->waits);
	int has_waited;

	if (!since_ns)
		return 0;
	PEM_STREAM_STORE(&side->waits, PEM_STREAM_WORKS);
	pem_stream_turn(side);
	now_ns = pem_stream_clock();
	ready_ns = waits == PEM_STREAM_WOKEN ? PEM_STREAM_LOAD(&side->woken_ns) : now_ns;
	/* The other end woke it just now, and has not gone on. Or it did not. */
	if (waits == PEM_STREAM_WAITS && !is_sure)
		ready_ns = since_ns;
	if (ready_ns < since_ns || ready_ns > now_ns)
		ready_ns = now_ns;
	has_waited = (is_sure ? now_ns : ready_ns) - since_ns >= PEM_STREAM_WAIT_MIN_NS;
	late_ns = now_ns - ready_ns > PEM_STREAM_LATE_NS ? now_ns - ready_ns : 0;
	side->own.blocks += (uint64_t)has_waited;
	side->own.sleeps += (uint64_t)has_waited;
	pem_stream_show_end(side, has_waited ? now_ns - since_ns : 0, has_waited ? late_ns : 0);
	return has_waited;
}

/* Items have passed an end, after a call of pem_stream_wake. Any thread may call it. */
PEM_INLINE void pem_stream_count(struct pem_stream *stream, int which, uint64_t items)
{
	struct pem_stream_side *side = &stream->side[which], *other = &stream->side[!which];

	__atomic_fetch_add(&side->count, items, __ATOMIC_RELAXED);
	/* none: observers load it: A or B of stream_page.h */
	__atomic_fetch_add(&side->end->items, items, __ATOMIC_RELEASE);
	if (__builtin_expect(PEM_STREAM_LOAD(&other->waits) != PEM_STREAM_STIRRED, 1))
		return;
	PEM_STREAM_STORE(&other->woken_ns, pem_stream_clock());
	PEM_STREAM_STORE(&other->waits, PEM_STREAM_WOKEN);
}

/* The same, of the thread that uses the end. */
PEM_INLINE void pem_stream_pass(struct pem_stream *stream, int which, uint64_t items)
{
	struct pem_stream_side *side = &stream->side[which];

	pem_stream_show_thread(side, PEM_STREAM_LOAD(&side->count));
	pem_stream_count(stream, which, items);
}

/*
 * The consumer knows how many items are in the queue: the library has dropped the rest. counted:
 * from pem_stream_queued, which the consumer called before it asked the library. Items that are
 * pushed in the meantime are not taken for dropped ones.
 */
PEM_STREAM_RARE void pem_stream_drop(struct pem_stream *stream, uint64_t counted, uint64_t queued)
{
	if (stream->entry && counted > queued)
		PEM_STREAM_STORE(&stream->entry->dropped,
				 PEM_STREAM_LOAD(&stream->entry->dropped) + counted - queued);
}

/* The thread leaves an end: at the end of its stream, or as it is stopped. Another one may come. */
PEM_STREAM_RARE void pem_stream_leave(struct pem_stream *stream, int which)
{
	struct pem_stream_side *side = &stream->side[which];

	pem_stream_go_on(stream, which, 0);
	side->tid = 0;
	side->own.tid = 0;
	pem_stream_turn(side);
	PEM_STREAM_SHOW(tid);
	pem_stream_turn(side);
}

/* Several threads use an end: from now on it shows none of them. Any thread may call it. */
PEM_STREAM_RARE void pem_stream_share(struct pem_stream *stream, int which)
{
	/* none: observers load it */
	__atomic_fetch_or(&stream->side[which].end->threads, PEM_STREAM_SHARED, __ATOMIC_RELEASE);
}

#ifdef __cplusplus
}
#endif
#endif
