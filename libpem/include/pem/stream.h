/* SPDX-License-Identifier: MIT */
/*
 * stream.h - a queue between two threads that can be observed while it works
 *
 *	struct pem_stream *words = pem_stream__make("words", 1024, sizeof(struct word));
 *
 *	// one thread				// another thread
 *	pem_stream_stage("read");		pem_stream_stage("count");
 *	while (read_word(&word))		while (!pem_stream__pop(words, &word))
 *		pem_stream__push(words, &word);		count(&word);
 *	pem_stream__close(words);
 *
 * One thread pushes at a time, and one pops. Both copy items of a fixed size through a ring.
 * Neither takes a lock. A thread that finds no space, or no item, spins for some microseconds and
 * then sleeps.
 *
 * A consumer of pem (agents/rates) sees each queue of a running process: items pushed and popped,
 * how often and how long each end was blocked, and by which thread's name. Nothing else is needed:
 * no call at the program's start, and no library. An operation that finds space or an item stores
 * its count for the observer and does nothing else for pem. A consumer may also lower the number of
 * items with which a queue counts as full. Programs need the C library alone, and are linked by
 * -ldl -lpthread. Whatever fails on pem's side, the queue works and is not observed.
 *
 * If somebody records APP::Stream::* (pem record -e Stream), these events are raised: Made,
 * BlockBegin, BlockEnd, StageBegin, StageEnd; and Push and Pop at each operation, if their names
 * are given. An event that is off costs a load, a test and a branch.
 *
 * An item is given by a pointer, and its type has to have the size that the queue was made for:
 * else -EINVAL. pem/stream.hpp is the queue of a type in C++.
 *
 * Define PEM_STREAM_UNOBSERVED before including this header for queues without counters and events.
 */
#ifndef PEM_STREAM_H
#define PEM_STREAM_H

#include "stubs/streams.h"

#include <pem/stream_shown.h>
#include <pem/stub.h>

#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the interface --- */

/*
 * Make a queue. name: of at most 31 bytes; longer ones are cut; the caller keeps it. capacity: the
 * least number of items that fit; the queue has the next power of two. item_bytes: size of an item.
 * Returns the queue, which pem_stream__free releases; NULL: errno is EINVAL for a number that is 0
 * or too large, or ENOMEM. Any thread may call it.
 */
static struct pem_stream *pem_stream__make(const char *name, size_t capacity, size_t item_bytes);
/* Release a queue, which no thread uses any more. Accepts NULL. */
static void pem_stream__free(struct pem_stream *stream);

/*
 * pem_stream__push(stream, item): copy *item into the queue. Waits while the queue is full: a
 * thread that sleeps goes on once half of the queue is free, or 100 ms after it went to sleep if
 * there is any space. Returns 0; -EPIPE: the queue was closed.
 *
 * pem_stream__try_push(stream, item): the same, but returns -EAGAIN if the queue is full.
 *
 * pem_stream__push_many(stream, items, count): copy an array, in parts if need be. Returns the
 * number of items pushed: count, or fewer if the queue was closed. -EINVAL: the size is wrong.
 *
 * pem_stream__try_push_many(stream, items, count): push as many as there is space for. Returns
 * their number, 0 if the queue is full; -EPIPE; -EINVAL.
 *
 * pem_stream__pop(stream, item): move the oldest item to *item. Waits while the queue is empty.
 * Returns 0; -EPIPE: the queue was closed and has no item.
 *
 * pem_stream__try_pop(stream, item): the same, but returns -EAGAIN if the queue is empty.
 *
 * pem_stream__pop_many(stream, items, count): move up to count items, at least 1. Returns their
 * number; -EPIPE; -EINVAL.
 *
 * pem_stream__try_pop_many(stream, items, count): the same, but returns 0 if the queue is empty.
 *
 * The end may move to another thread, if the program orders the two threads' calls. None of these
 * is for signal handlers. None writes errno.
 */
#define pem_stream__push(stream, item) pem_stream_push(stream, item, sizeof(*(item)), 1)
#define pem_stream__try_push(stream, item) pem_stream_push(stream, item, sizeof(*(item)), 0)
#define pem_stream__push_many(stream, items, count)                                                \
	pem_stream_push_many(stream, items, count, sizeof(*(items)), 1)
#define pem_stream__try_push_many(stream, items, count)                                            \
	pem_stream_push_many(stream, items, count, sizeof(*(items)), 0)
#define pem_stream__pop(stream, item) pem_stream_pop(stream, item, sizeof(*(item)), 1)
#define pem_stream__try_pop(stream, item) pem_stream_pop(stream, item, sizeof(*(item)), 0)
#define pem_stream__pop_many(stream, items, count)                                                 \
	pem_stream_pop_many(stream, items, count, sizeof(*(items)), 1)
#define pem_stream__try_pop_many(stream, items, count)                                             \
	pem_stream_pop_many(stream, items, count, sizeof(*(items)), 0)

/*
 * End the stream: pushes fail from now on, and pops once the queue is empty. Threads that are
 * blocked return. Any thread may call it; items of a push that runs at that moment in another
 * thread may stay in the queue.
 */
static void pem_stream__close(struct pem_stream *stream);

/*
 * Name the stage of a program that the calling thread is; NULL: none. name: of at most 31 bytes;
 * longer ones are cut. Observers see it once the thread next uses a queue and finds no item or no
 * space. A thread without a name is shown by the name of the thread (pthread_setname_np).
 */
static void pem_stream_stage(const char *name);

/* --- parts of the implementation --- */

/*
 * Synchronization. P: the producer, C: the consumer, W: one of them that is about to sleep. Each
 * line is a pair: its second part sees all that was done before its first.
 *
 *	P stores items, then its count (release)	C loads that (acquire)
 *	C loads items, then stores its count (release)	P loads that (acquire)
 *	P or C stores its count, then loads waits	W exchanges waits, then loads counts
 *
 * No fence separates the two accesses of P or C in the last pair, since a locked instruction would
 * cost more than all else that an operation does. So one of them may miss a thread that goes to
 * sleep at that moment. Its next operation finds the thread. If there is none, W goes on all the
 * same: it sleeps for 1 ms at first, and never for more than 100 ms, before it looks again.
 */

#ifndef PEM_STREAM_SPIN_NS
#define PEM_STREAM_SPIN_NS 4000u
#endif
#define PEM_STREAM_COST_MAX_NS 1000

/* --- the slow paths --- */

/* The number of items with which the queue is full: an observer's choice, if that is valid. */
PEM_STREAM_RARE uint64_t pem_stream_limit(const struct pem_stream *stream)
{
	uint64_t capacity = stream->mask + 1, limit;

	if (!PEM_STREAM_IS_OBSERVED || !stream->entry)
		return capacity;
	limit = PEM_STREAM_LOAD(&stream->entry->limit);
	return limit && limit < capacity ? limit : capacity;
}

/* Look for space, or items. Returns 0; -EAGAIN: there is none; -EPIPE. */
PEM_STREAM_RARE int pem_stream_check(struct pem_stream *stream, int which)
{
	struct pem_stream_side *side = &stream->side[which], *other = &stream->side[!which];
	uint32_t closed;
	uint64_t count, limit;

	/* qb */
	closed = __atomic_load_n(&side->closed, __ATOMIC_ACQUIRE);
	/* qa */
	count = __atomic_load_n(&other->count, __ATOMIC_ACQUIRE);
	if (which == PEM_STREAM_POPS) {
		side->until = count;
		return count != side->count ? 0 : closed ? -EPIPE : -EAGAIN;
	}
	limit = pem_stream_limit(stream);
	side->until = side->count;
	if (closed)
		return -EPIPE;
	if (side->count - count >= limit)
		return -EAGAIN;
	side->until = count + limit;
	return 0;
}

/* Wake the thread at an end that sleeps, or is about to, if it is time. */
PEM_STREAM_RARE void pem_stream_wake(struct pem_stream *stream, int which)
{
	struct pem_stream_side *side = &stream->side[which], *other = &stream->side[!which];
	int error = errno;

	if (which == PEM_STREAM_PUSHES && !PEM_STREAM_LOAD(&side->closed) &&
	    (int64_t)(PEM_STREAM_LOAD(&other->count) - PEM_STREAM_LOAD(&side->wake_at)) < 0)
		return;
	/* qc */
	if (!__atomic_exchange_n(&side->waits, 0, __ATOMIC_SEQ_CST))
		return;
	if (PEM_STREAM_IS_OBSERVED)
		PEM_STREAM_STORE(&side->woken_ns, pem_stream_clock());
	syscall(SYS_futex, &side->waits, PEM_STREAM_FUTEX_WAKE, 1, NULL, NULL, 0);
	errno = error;
}

/* A thread that is blocked. Between two readings of the clock it may have lost its CPU. */
struct pem_stream_wait {
	uint64_t seen_ns; /* the last reading */
	uint64_t late_ns;
	uint64_t sleeps, expired;
};

/* Read the clock. ready_ns: since when the thread has been ready to run, at least. */
PEM_STREAM_RARE uint64_t pem_stream_see(struct pem_stream_wait *wait, uint64_t ready_ns)
{
	uint64_t now = pem_stream_clock();

	if (now - ready_ns > PEM_STREAM_LATE_NS && now > ready_ns)
		wait->late_ns += now - ready_ns;
	wait->seen_ns = now;
	return now;
}

/* Spin until there is space or an item. */
PEM_STREAM_RARE int pem_stream_spin(struct pem_stream *stream, int which,
				    struct pem_stream_wait *wait)
{
	uint64_t end = wait->seen_ns + PEM_STREAM_SPIN_NS;
	int i, rc;

	do {
		for (i = 0; i < 8; i++) {
			rc = pem_stream_check(stream, which);
			if (rc != -EAGAIN)
				return rc;
#if defined(__x86_64__)
			__builtin_ia32_pause();
#else
			__asm__ __volatile__("yield");
#endif
		}
	} while (pem_stream_see(wait, wait->seen_ns) < end);
	return -EAGAIN;
}

/* Sleep until there is space or an item. */
PEM_STREAM_RARE int pem_stream_sleep(struct pem_stream *stream, int which,
				     struct pem_stream_wait *wait)
{
	struct pem_stream_side *side = &stream->side[which], *other = &stream->side[!which];
	struct timespec pause = {0, 1000000};
	uint64_t begin, ready;
	int rc;

	do {
		PEM_STREAM_STORE(&side->wake_at, side->count - pem_stream_limit(stream) / 2);
		/* QC */
		__atomic_exchange_n(&side->waits, 1, __ATOMIC_SEQ_CST);
		rc = pem_stream_check(stream, which);
		if (rc != -EAGAIN)
			break;
		if (PEM_STREAM_LOAD(&other->waits))
			pem_stream_wake(stream, !which);
		begin = pem_stream_see(wait, wait->seen_ns);
		if (!syscall(SYS_futex, &side->waits, PEM_STREAM_FUTEX_WAIT, 1, &pause, NULL, 0) ||
		    errno != EAGAIN)
			wait->sleeps++;
		ready = PEM_STREAM_LOAD(&side->woken_ns);
		if (ready < begin) { /* nobody woke the thread: time is over, or a signal came */
			ready = begin + (uint64_t)pause.tv_nsec + PEM_STREAM_SLACK_NS;
			wait->expired++;
		}
		pem_stream_see(wait, ready);
		pause.tv_nsec = pause.tv_nsec < 10000000 ? pause.tv_nsec * 10 : 100000000;
		rc = pem_stream_check(stream, which);
	} while (rc == -EAGAIN);
	PEM_STREAM_STORE(&side->waits, 0);
	return rc;
}

PEM_STREAM_RARE void pem_stream_begin_block(struct pem_stream *stream, int which, uint64_t begin)
{
	struct pem_stream_side *side = &stream->side[which];

	if (pem_enabled_stream_block_begin())
		pem_notify_stream_block_begin(side->count, side->count * stream->item_bytes,
					      stream->id, (uint8_t)which);
	side->own.blocks++;
	pem_stream_show_begin(side, begin);
}

PEM_STREAM_RARE void pem_stream_end_block(struct pem_stream *stream, int which,
					  struct pem_stream_wait *wait)
{
	struct pem_stream_side *side = &stream->side[which];
	uint64_t found = side->until - side->count, now;
	int64_t cost;

	if (pem_enabled_stream_block_end())
		pem_notify_stream_block_end(found, found * stream->item_bytes, stream->id,
					    (uint8_t)which);
	/* Fetch memory that other threads had last before the reading: all that follows is work. */
	if (which == PEM_STREAM_POPS && found)
		(void)*(volatile uint8_t *)(stream->ring +
					    (side->count & stream->mask) * stream->item_bytes);
	pem_stream_turn(side);
	now = pem_stream_see(wait, wait->seen_ns);
	side->own.sleeps += wait->sleeps;
	side->own.expired += wait->expired;
	pem_stream_show_end(side, now - side->own.since_ns + side->cost_ns, wait->late_ns);
	if (side->own.blocks % 16)
		return;
	/* From a reading to the next, with all that lies between: a mean without what interrupts.
	 */
	cost = (int64_t)(pem_stream_clock() - now);
	if (cost < PEM_STREAM_COST_MAX_NS)
		side->cost_ns = side->cost_ns
					? (uint32_t)(side->cost_ns + (cost - side->cost_ns) / 8)
					: (uint32_t)cost;
}

/* Nothing more is known to be there. Returns 0: something is; -EAGAIN: waits is 0; -EPIPE. */
PEM_STREAM_RARE int pem_stream_find(struct pem_stream *stream, int which, int waits)
{
	struct pem_stream_side *side = &stream->side[which];
	struct pem_stream_wait wait = {0, 0, 0, 0};
	int error = errno, rc;

	rc = pem_stream_check(stream, which);
	if (waits && rc == -EAGAIN)
		wait.seen_ns = pem_stream_clock(); /* what was before counts as work */
	if (PEM_STREAM_IS_OBSERVED)
		/* Another thread may have moved items before this one found none. */
		pem_stream_show_thread(side, side->tid ? PEM_STREAM_BEFORE_UNKNOWN : side->count);
	if (rc != -EAGAIN)
		return rc;
	if (!waits) {
		__atomic_store_n(&side->end->refused, ++side->own.refused, __ATOMIC_RELAXED);
		return rc;
	}
	if (PEM_STREAM_IS_OBSERVED)
		pem_stream_begin_block(stream, which, wait.seen_ns);
	rc = pem_stream_spin(stream, which, &wait);
	if (rc == -EAGAIN)
		rc = pem_stream_sleep(stream, which, &wait);
	if (PEM_STREAM_IS_OBSERVED)
		pem_stream_end_block(stream, which, &wait);
	errno = error;
	return rc;
}

/* --- the fast paths --- */

/* Items have been copied: let the other end have them, or their space. */
PEM_INLINE void pem_stream_move(struct pem_stream *stream, int which, uint64_t items)
{
	struct pem_stream_side *side = &stream->side[which];
	uint64_t count = side->count + items;

	/* none: observers load it: A or B of stream_page.h */
	if (PEM_STREAM_IS_OBSERVED)
		__atomic_store_n(&side->end->items, count, __ATOMIC_RELEASE);
	/* QA */
	__atomic_store_n(&side->count, count, __ATOMIC_RELEASE);
	if (__builtin_expect(PEM_STREAM_LOAD(&stream->side[!which].waits) != 0, 0))
		pem_stream_wake(stream, !which);
	if (!PEM_STREAM_IS_OBSERVED)
		return;
	if (which == PEM_STREAM_PUSHES)
		pem_notify_stream_push(items, items * stream->item_bytes, stream->id);
	else
		pem_notify_stream_pop(items, items * stream->item_bytes, stream->id);
}

PEM_INLINE int pem_stream_push(struct pem_stream *stream, const void *item, size_t bytes, int waits)
{
	struct pem_stream_side *side = &stream->side[PEM_STREAM_PUSHES];
	int rc;

	if (__builtin_expect(bytes != stream->item_bytes, 0))
		return -EINVAL;
	if (__builtin_expect(PEM_STREAM_LOAD(&stream->side[PEM_STREAM_POPS].closed) != 0, 0))
		return -EPIPE;
	if (__builtin_expect(side->count == side->until, 0)) {
		rc = pem_stream_find(stream, PEM_STREAM_PUSHES, waits);
		if (rc)
			return rc;
	}
	memcpy(stream->ring + (side->count & stream->mask) * bytes, item, bytes);
	pem_stream_move(stream, PEM_STREAM_PUSHES, 1);
	return 0;
}

PEM_INLINE int pem_stream_pop(struct pem_stream *stream, void *item, size_t bytes, int waits)
{
	struct pem_stream_side *side = &stream->side[PEM_STREAM_POPS];
	int rc;

	if (__builtin_expect(bytes != stream->item_bytes, 0))
		return -EINVAL;
	if (__builtin_expect(side->count == side->until, 0)) {
		rc = pem_stream_find(stream, PEM_STREAM_POPS, waits);
		if (rc)
			return rc;
	}
	memcpy(item, stream->ring + (side->count & stream->mask) * bytes, bytes);
	pem_stream_move(stream, PEM_STREAM_POPS, 1);
	return 0;
}

/* The number of items up to count that are known to be there, or to fit, side by side. */
PEM_INLINE size_t pem_stream_part(const struct pem_stream *stream, int which, size_t count)
{
	const struct pem_stream_side *side = &stream->side[which];
	uint64_t ready = side->until - side->count;
	uint64_t to_end = stream->mask + 1 - (side->count & stream->mask);

	ready = ready < to_end ? ready : to_end;
	return ready < count ? (size_t)ready : count;
}

PEM_STREAM_RARE ptrdiff_t pem_stream_push_many(struct pem_stream *stream, const void *items,
					       size_t count, size_t bytes, int waits)
{
	struct pem_stream_side *side = &stream->side[PEM_STREAM_PUSHES];
	size_t done = 0, part;
	int rc;

	if (bytes != stream->item_bytes)
		return -EINVAL;
	while (done < count) {
		rc = PEM_STREAM_LOAD(&side->closed) ? -EPIPE
		     : side->count != side->until
			     ? 0
			     : pem_stream_find(stream, PEM_STREAM_PUSHES, waits);
		if (rc)
			return done || rc == -EAGAIN ? (ptrdiff_t)done : rc;
		part = pem_stream_part(stream, PEM_STREAM_PUSHES, count - done);
		memcpy(stream->ring + (side->count & stream->mask) * bytes,
		       (const uint8_t *)items + done * bytes, part * bytes);
		pem_stream_move(stream, PEM_STREAM_PUSHES, part);
		done += part;
	}
	return (ptrdiff_t)done;
}

PEM_STREAM_RARE ptrdiff_t pem_stream_pop_many(struct pem_stream *stream, void *items, size_t count,
					      size_t bytes, int waits)
{
	struct pem_stream_side *side = &stream->side[PEM_STREAM_POPS];
	size_t done = 0, part;
	int rc;

	if (bytes != stream->item_bytes)
		return -EINVAL;
	while (done < count) {
		/* Once there are items, look for more of them without waiting. */
		rc = side->count != side->until ? 0
		     : done                     ? pem_stream_check(stream, PEM_STREAM_POPS)
						: pem_stream_find(stream, PEM_STREAM_POPS, waits);
		if (rc)
			return done || rc == -EAGAIN ? (ptrdiff_t)done : rc;
		part = pem_stream_part(stream, PEM_STREAM_POPS, count - done);
		memcpy((uint8_t *)items + done * bytes,
		       stream->ring + (side->count & stream->mask) * bytes, part * bytes);
		pem_stream_move(stream, PEM_STREAM_POPS, part);
		done += part;
	}
	return (ptrdiff_t)done;
}

/* --- the life of a queue --- */

PEM_STREAM_RARE struct pem_stream *pem_stream__make(const char *name, size_t capacity,
						    size_t item_bytes)
{
	struct pem_stream *stream;
	size_t rounded = 1;

	while (rounded < capacity && rounded < PEM_STREAM_CAPACITY_MAX)
		rounded *= 2;
	if (!capacity || rounded < capacity || !item_bytes || item_bytes > INT32_MAX ||
	    rounded > (SIZE_MAX / 2 - sizeof(*stream)) / item_bytes) {
		errno = EINVAL;
		return NULL;
	}
	stream = pem_stream_new(name);
	if (!stream)
		return NULL;
	stream->ring = (uint8_t *)malloc(rounded * item_bytes);
	if (!stream->ring) {
		free(stream);
		errno = ENOMEM;
		return NULL;
	}
	stream->mask = rounded - 1;
	stream->item_bytes = item_bytes;
	if (PEM_STREAM_IS_OBSERVED) {
		pem_stream_show_queue(stream);
		pem_notify_stream_made(rounded, stream->id, (uint32_t)item_bytes, stream->name);
	}
	return stream;
}

PEM_STREAM_RARE void pem_stream__free(struct pem_stream *stream)
{
	if (!stream)
		return;
	pem_stream_hide_queue(stream);
	free(stream->ring);
	free(stream);
}

PEM_STREAM_RARE void pem_stream__close(struct pem_stream *stream)
{
	int i;

	/* QB */
	for (i = 0; i < 2; i++)
		__atomic_store_n(&stream->side[i].closed, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < 2; i++)
		pem_stream_wake(stream, i);
}

PEM_STREAM_RARE void pem_stream_stage(const char *name)
{
	struct pem_stream_thread *self = &pem_stream_thread;

	if (self->stage[0])
		pem_notify_stream_stage_end(self->stage);
	pem_stream_copy_name(self->stage, name);
	self->version++;
	if (self->stage[0])
		pem_notify_stream_stage_begin(self->stage);
}

#ifdef __cplusplus
}
#endif
#endif
