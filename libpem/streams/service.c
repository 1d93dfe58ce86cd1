/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* service.c - what a thread did between two readings of its queues: items, and time for them */
#include "streams/streams.h"

#include <pem/stream_page.h>

/* A thread spins for 4000 ns in a block (PEM_STREAM_SPIN_NS), and then calls the kernel. */
#define SPIN_MAX_NS 5000u

/* Time of a thread in blocks, of which late_ns is the part in which it was ready. */
struct blocks {
	uint64_t blocked_ns[2], late_ns[2]; /* in pushes, in pops */
	uint64_t spun_ns; /* at most so long the thread had a CPU in them */
	uint64_t short_ns; /* at most so long it waited for one unnoticed */
	uint64_t items[2];
	uint64_t sleeps; /* in blocks that are over */
	uint64_t going_on; /* at most so many sleeps are in the last ones */
};

static const struct pem_streams_end *end_of(const struct pem_streams_queue *queue, int pops)
{
	return pops ? &queue->pop : &queue->push;
}

/* The same queue in another reading, where it usually has the same index. */
static const struct pem_streams_queue *find(const struct pem_streams_reading *reading,
					    const struct pem_streams_queue *queue, size_t i)
{
	size_t k;

	for (k = 0; k <= reading->count; k++, i = k - 1)
		if (i < reading->count && reading->list[i].id == queue->id &&
		    reading->list[i].part == queue->part)
			return &reading->list[i];
	return NULL;
}

/* Has a thread used an end all the time? */
static int keeps(const struct pem_streams_end *from, const struct pem_streams_end *to, uint32_t tid)
{
	return from->tid == tid && to->tid == tid && from->threads == to->threads;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Sum up the thread's blocks in all its queues. Returns 0: it gave an end away, or took one. */
static int add_blocks(const struct pem_streams_reading *before,
		      const struct pem_streams_reading *after, uint32_t tid, struct blocks *blocks)
{
	static const struct pem_streams_end none;
	const struct pem_streams_end *from, *to;
	const struct pem_streams_queue *other;
	size_t i;
	int k;

	for (i = 0; i < before->count; i++) {
		if (before->list[i].push.tid != tid && before->list[i].pop.tid != tid)
			continue;
		other = find(after, &before->list[i], i);
		for (k = 0; k < 2; k++)
			if (end_of(&before->list[i], k)->tid == tid &&
			    (!other || !keeps(end_of(&before->list[i], k), end_of(other, k), tid)))
				return 0;
	}
	for (i = 0; i < after->count; i++) {
		if (after->list[i].push.tid != tid && after->list[i].pop.tid != tid)
			continue;
		other = find(before, &after->list[i], i);
		for (k = 0; k < 2; k++) {
			to = end_of(&after->list[i], k);
			from = other ? end_of(other, k) : &none;
			if (to->tid != tid)
				continue;
			if (from->tid && from->tid != tid)
				return 0;
			blocks->items[k] += to->items - from->items;
			blocks->sleeps += to->sleeps - from->sleeps;
			/* Timers end sleeps after 1 ms, 10 ms, and then each 100 ms. */
			if (to->since_ns)
				blocks->going_on +=
					3 + less(after->list[i].at_ns, to->since_ns) / 100000000;
			blocks->blocked_ns[k] += less(to->blocked_ns, from->blocked_ns);
			blocks->late_ns[k] += less(to->late_ns, from->late_ns);
			blocks->spun_ns += (to->blocks - from->blocks + to->sleeps - from->sleeps) *
					   SPIN_MAX_NS;
			blocks->short_ns += (to->sleeps - from->sleeps) * PEM_STREAM_LATE_NS +
					    (to->expired - from->expired) * PEM_STREAM_SLACK_NS;
		}
	}
	return 1;
}

/*
 * Add times. What is read later than at_ns makes open_ns too short, never too long, and the next
 * reading sets that right: at_ns, the blocks, is_ready, and the kernel's times are read in this
 * order.
 */
static void add_times(struct pem_streams_service *s, const struct pem_streams_end *from,
		      const struct pem_streams_end *to, const struct blocks *blocks,
		      uint64_t wall_ns)
{
	uint64_t run_ns = less(to->run_ns, from->run_ns),
		 wait_ns = less(to->wait_ns, from->wait_ns);
	uint64_t blocked_ns = blocks->blocked_ns[0] + blocks->blocked_ns[1];
	uint64_t late_ns = blocks->late_ns[0] + blocks->late_ns[1];
	/* It was busy at least for as long as it had a CPU outside of blocks. */
	uint64_t ran_ns = least(less(run_ns, blocks->spun_ns), less(wall_ns, blocked_ns));
	uint64_t most_ns, rest_ns;

	s->wall_ns += wall_ns;
	s->run_ns += run_ns;
	s->low_ns += ran_ns;
	s->busy_ns += ran_ns;
	s->doubt_ns += least(blocks->short_ns, wait_ns);
	s->open_ns += (int64_t)(wall_ns - blocked_ns - (wait_ns - late_ns) - ran_ns);
	s->other_sleeps +=
		(int64_t)(uint32_t)(to->switches - from->switches) - (int64_t)blocks->sleeps;
	most_ns = s->other_sleeps > (int64_t)blocks->going_on ? s->wall_ns : s->run_ns;
	most_ns = less(least(most_ns, s->wall_ns), s->busy_ns);
	if (!to->is_ready && s->open_ns > 0) {
		rest_ns = least((uint64_t)s->open_ns, most_ns);
		s->busy_ns += rest_ns;
		most_ns -= rest_ns;
		s->open_ns = 0;
	}
	s->high_ns = s->busy_ns +
		     least(s->doubt_ns + (s->open_ns > 0 ? (uint64_t)s->open_ns : 0), most_ns);
	rest_ns = s->wall_ns - s->busy_ns;
	s->blocked_in_ns =
		least(less(s->blocked_in_ns + blocks->blocked_ns[1], blocks->late_ns[1]), rest_ns);
	rest_ns -= s->blocked_in_ns;
	s->blocked_out_ns =
		least(less(s->blocked_out_ns + blocks->blocked_ns[0], blocks->late_ns[0]), rest_ns);
	s->for_cpu_ns = rest_ns - s->blocked_out_ns;
}

int pem_streams__between(const struct pem_streams_reading *before,
			 const struct pem_streams_reading *after, size_t i, int pops,
			 struct pem_streams_service *service)
{
	const struct pem_streams_queue *new = &after->list[i], *old = find(before, new, i);
	const struct pem_streams_end *from, *to;
	struct blocks blocks = {.spun_ns = 0};

	if (!old || new->at_ns <= old->at_ns)
		return 0;
	from = end_of(old, pops);
	to = end_of(new, pops);
	if (!from->tid || !keeps(from, to, from->tid) || !from->has_times || !to->has_times ||
	    !add_blocks(before, after, to->tid, &blocks))
		return 0;
	service->items += to->items - from->items;
	service->pushed += blocks.items[0];
	service->popped += blocks.items[1];
	add_times(service, from, to, &blocks, new->at_ns - old->at_ns);
	return 1;
}
