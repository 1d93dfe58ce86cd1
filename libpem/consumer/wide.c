/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wide.c - variance, histogram and most frequent values: asking for them, and adding up what producers and sources keep
 *
 * Not here: how it is accumulated (pem/wide.h, producer/accumulate.c) and added up (libpem/wide.c).
 */
#include "consumer/session.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

PEM_STATIC_ASSERT(PEM_STATISTIC_VARIANCE == PEM_WIDE_VARIANCE &&
			  PEM_STATISTIC_HISTOGRAM == PEM_WIDE_HISTOGRAM &&
			  PEM_STATISTIC_TOP == PEM_WIDE_VALUES &&
			  PEM_WIDE_EVENTS_MAX == PEM_WIDE_COUNT,
		  "what the API and the ABI call the same");
PEM_STATIC_ASSERT(sizeof(((struct pem_histogram *)0)->bucket) ==
			  sizeof(((struct pem_wide *)0)->bucket),
		  "a histogram's buckets");

/* --- asking for it --- */

static int give_wide(struct pem_session *s, struct pem_wish *wish, unsigned what)
{
	uint32_t index = wish->wide ? PEM_WIDE_INDEX(wish->wide) : 0;

	if (!wish->wide) {
		while (index < PEM_WIDE_COUNT && s->wides_used >> index & 1)
			index++;
		if (index == PEM_WIDE_COUNT)
			return -ENOSPC;
		wish->retired_wide = calloc(1, sizeof(*wish->retired_wide));
		if (!wish->retired_wide)
			return -ENOMEM;
		s->wides_used |= 1u << index;
	}
	if (!++s->wide_generation)
		s->wide_generation = 1;
	wish->wide = PEM_WIDE(index, what, s->wide_generation);
	return 0;
}

void pem_wish__release_wide(struct pem_session *s, struct pem_wish *wish)
{
	if (wish->wide)
		s->wides_used &= ~(1u << PEM_WIDE_INDEX(wish->wide));
	wish->wide = 0;
	free(wish->retired_wide);
	wish->retired_wide = NULL;
}

/* Counters are no events with values: there is nothing to distribute. */
static bool can_keep(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_STUB || pem_event__is_of_kernel(event);
}

int pem_statistics__keep(struct pem_statistics *st, unsigned what)
{
	struct pem_session *s = st->session;
	size_t i, given = 0;
	int result = 0;

	if (!st->attribute[0] || !what ||
	    what & ~(PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM | PEM_STATISTIC_TOP))
		return -EINVAL;
	pem_session__lock(s);
	if (st->was_enabled)
		result = -EBUSY;
	for (i = 0; !result && i < st->count; i++) {
		if (!can_keep(st->wishes[i]->event))
			continue;
		result = give_wide(s, st->wishes[i], what);
		given += !result;
	}
	if (!result && !given)
		result = -ENOTSUP;
	for (i = 0; result && result != -EBUSY && !st->keeps && i < st->count; i++)
		pem_wish__release_wide(s, st->wishes[i]);
	st->keeps |= !result;
	pem_session__unlock(s);
	return result;
}

/* --- adding it up --- */

struct reading {
	const struct pem_wish *wish;
	uint64_t tag;
	struct pem_wide_total total;
};

static int read_lanes(struct pem_producer *p, uint32_t slot, void *arg)
{
	struct reading *reading = arg;
	uint32_t index = PEM_WIDE_INDEX(reading->wish->wide), lane;
	struct pem_wide copy;

	(void)slot;
	memset(&reading->total, 0, sizeof(reading->total));
	for (lane = 0; lane < p->ring.lane_count; lane = pem_producer__next_lane(p, lane)) {
		/* Else it has no memory. */
		if (__atomic_load_n(&p->ring.lanes[lane].wides, __ATOMIC_ACQUIRE) >> index & 1 &&
		    pem_wide_read(pem_pool__wide(&p->ring, index, lane), &copy, reading->tag, 1000))
			pem_wide_total__add(&reading->total, &copy);
	}
	return 0;
}

/* Is the field of floating type? */
static bool is_floating(const struct pem_wish *wish)
{
	unsigned type = wish->event->fields[wish->field].type;

	return type == PEM_TYPE_FLOAT32 || type == PEM_TYPE_FLOAT64;
}

static void add_total(struct pem_wide_total *to, const struct pem_wide_total *from)
{
	pem_wide__add(&to->sum, &from->sum);
	pem_wide__merge_top(to->top, &to->missed, from->top, PEM_TOP_MERGED, from->missed);
}

void pem_producer__wide(struct pem_producer *p, const struct pem_wish *wish,
			struct pem_wide_total *total)
{
	struct reading reading = {.wish = wish};
	uint64_t action =
		PEM_ACTION_OF_INCARNATION(PEM_ACTION(0, 0, 0, 0, wish->epoch), p->incarnation);

	reading.tag = PEM_WIDE_TAG(wish->wide, action) | (is_floating(wish) ? PEM_SLOT_FLOAT : 0);
	pem_producer__steady(p, wish, read_lanes, &reading);
	add_total(total, &reading.total);
}

void pem_wish__retire_wide(struct pem_wish *wish, struct pem_producer *p)
{
	if (!wish->wide)
		return;
	if (wish->retired_epoch != wish->epoch)
		memset(wish->retired_wide, 0, sizeof(*wish->retired_wide));
	pem_producer__wide(p, wish, wish->retired_wide);
}

static void add_of_cpu(const struct pem_statistic *part, const struct pem_wide *wide, uint32_t cpu,
		       void *arg)
{
	(void)part;
	(void)cpu;
	if (wide)
		pem_wide_total__add(arg, wide);
}

/* Those that a source serves: of its CPUs. */
static int read_source(struct pem_session *s, const struct pem_wish *wish,
		       struct pem_wide_total *total)
{
	const struct pem_instance *instance = &s->instances[wish->instance];
	int result;

	if (!instance->ops->each_statistic || !instance->ops->keep)
		return -ENOTSUP;
	result = instance->ops->each_statistic(instance->source, wish->instance_index, add_of_cpu,
					       total);
	return result < 0 ? result : 0;
}

int pem_wish__read_wide(struct pem_session *s, const struct pem_wish *wish,
			struct pem_wide_total *total)
{
	struct pem_producer *p;

	memset(total, 0, sizeof(*total));
	if (wish->unavailable)
		return wish->unavailable;
	if (wish->instance >= 0)
		return read_source(s, wish, total);
	if (wish->retired_epoch == wish->epoch)
		add_total(total, wish->retired_wide);
	for (p = s->producers; p; p = p->next) {
		pem_producer__refresh_events(s, p);
		pem_producer__wide(p, wish, total);
	}
	return 0;
}

/* --- handing it out --- */

/* All that a handle keeps of event i, if it was asked to keep this. 0, or -errno. The session is locked. */
static int read_kept(struct pem_statistics *st, size_t i, unsigned what,
		     struct pem_wide_total *total)
{
	if (i >= st->count)
		return -EINVAL;
	if (!(PEM_WIDE_KEEP(st->wishes[i]->wide) & what))
		return -ENODATA;
	pem_session__scan_producers(st->session);
	return pem_wish__read_wide(st->session, st->wishes[i], total);
}

int pem_statistics__histogram(struct pem_statistics *st, size_t i, struct pem_histogram *histogram)
{
	struct pem_wide_total total;
	int result;

	pem_session__lock(st->session);
	result = read_kept(st, i, PEM_STATISTIC_HISTOGRAM, &total);
	pem_session__unlock(st->session);
	if (!result)
		memcpy(histogram->bucket, total.sum.bucket, sizeof(histogram->bucket));
	return result;
}

int pem_statistics__top(struct pem_statistics *st, size_t i, struct pem_top *top, size_t count)
{
	struct pem_wide_total total;
	size_t k;
	int result;

	pem_session__lock(st->session);
	result = read_kept(st, i, PEM_STATISTIC_TOP, &total);
	pem_session__unlock(st->session);
	if (result)
		return result;
	for (k = 0; k < count && k < PEM_TOP_MERGED && total.top[k].count; k++)
		top[k] = (struct pem_top){total.top[k].value, total.top[k].count,
					  total.top[k].error};
	return (int)k;
}
