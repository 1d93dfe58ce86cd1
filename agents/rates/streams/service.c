/* SPDX-License-Identifier: MIT */
/* service.c - what a thread did between two readings of its queues: items, and time for them */
#include "streams/streams.h"

/* A thread's time in blocks of all queues of a reading, up to the time of the reading. */
static void add_blocks(const struct rate_stream *list, size_t count, pid_t tid,
		       uint64_t *blocked_ns, uint64_t *late_ns)
{
	const struct rate_stream_end *ends[2];
	size_t i, k;

	*blocked_ns = *late_ns = 0;
	for (i = 0; i < count; i++) {
		ends[0] = &list[i].push;
		ends[1] = &list[i].pop;
		for (k = 0; k < 2; k++) {
			if (ends[k]->tid != tid)
				continue;
			*blocked_ns += ends[k]->blocked_ns;
			*late_ns += ends[k]->late_ns;
		}
	}
}

static const struct rate_stream *find(const struct rate_stream *list, size_t count,
				      const struct rate_stream *stream)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (list[i].id == stream->id && list[i].part == stream->part)
			return &list[i];
	return NULL;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

bool rate_streams__service(const struct rate_stream *before, size_t before_count,
			   const struct rate_stream *after, size_t after_count, size_t index,
			   bool pops, struct rate_service *service)
{
	const struct rate_stream *old = &before[index], *new = find(after, after_count, old);
	uint64_t wall_ns, blocked_ns, late_ns, wait_ns, old_blocked_ns, old_late_ns;
	const struct rate_stream_end *from, *to;

	if (!new)
		return false;
	from = pops ? &old->pop : &old->push;
	to = pops ? &new->pop : &new->push;
	if (!from->tid || to->tid != from->tid || !from->has_times || !to->has_times)
		return false;
	if (from->stamp_ns && to->stamp_ns > from->stamp_ns) {
		/* From the end of a block to the end of a block: no item is cut in two. */
		wall_ns = to->stamp_ns - from->stamp_ns;
		blocked_ns = less(to->stamp_blocked_ns, from->stamp_blocked_ns);
		late_ns = less(to->stamp_late_ns, from->stamp_late_ns);
		service->items = to->stamp_items - from->stamp_items;
	} else {
		wall_ns = less(new->at_ns, old->at_ns);
		add_blocks(before, before_count, from->tid, &old_blocked_ns, &old_late_ns);
		add_blocks(after, after_count, from->tid, &blocked_ns, &late_ns);
		blocked_ns = less(blocked_ns, old_blocked_ns);
		late_ns = less(late_ns, old_late_ns);
		service->items = to->items - from->items;
	}
	wait_ns = less(to->wait_ns, from->wait_ns);
	service->high_ns = less(wall_ns, blocked_ns);
	service->low_ns = less(service->high_ns, wait_ns);
	service->busy_ns = less(service->high_ns, less(wait_ns, late_ns));
	return service->high_ns > 0;
}
