/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * distribution.c - variance, histogram and most frequent values: asking for them, and adding up
 * what producers and sources keep
 *
 * Other files: accumulating them (pem/distribution.h, producer/accumulate.c), adding two of them up
 * (libpem/distribution.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "statistics/statistics.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

PEM_STATIC_ASSERT(PEM_STATISTIC_VARIANCE == PEM_DISTRIBUTION_VARIANCE &&
			  PEM_STATISTIC_HISTOGRAM == PEM_DISTRIBUTION_HISTOGRAM &&
			  PEM_STATISTIC_TOP == PEM_DISTRIBUTION_VALUES &&
			  PEM_DISTRIBUTION_EVENTS_MAX == PEM_DISTRIBUTION_COUNT,
		  "what the API and the ABI call the same");
PEM_STATIC_ASSERT(sizeof(((struct pem_histogram *)0)->bucket) ==
			  sizeof(((struct pem_distribution *)0)->bucket),
		  "a histogram's buckets");

/* --- asking for it --- */

static int give_distribution(struct pem_session *s, struct pem_demand *demand, unsigned what)
{
	uint32_t index = demand->distribution ? PEM_DISTRIBUTION_INDEX(demand->distribution) : 0;

	if (!demand->distribution) {
		while (index < PEM_DISTRIBUTION_COUNT &&
		       s->statistics->distributions_used >> index & 1)
			index++;
		if (index == PEM_DISTRIBUTION_COUNT)
			return -ENOSPC;
		demand->retired_distribution = calloc(1, sizeof(*demand->retired_distribution));
		if (!demand->retired_distribution)
			return -ENOMEM;
		s->statistics->distributions_used |= 1u << index;
	}
	if (!++s->statistics->distribution_generation)
		s->statistics->distribution_generation = 1;
	demand->distribution =
		PEM_DISTRIBUTION(index, what, s->statistics->distribution_generation);
	return 0;
}

void pem_demand__release_distribution(struct pem_session *s, struct pem_demand *demand)
{
	if (demand->distribution)
		s->statistics->distributions_used &=
			~(1u << PEM_DISTRIBUTION_INDEX(demand->distribution));
	demand->distribution = 0;
	free(demand->retired_distribution);
	demand->retired_distribution = NULL;
}

/* Can a distribution of this event be kept? Counters cannot: their events have no values. */
static bool can_keep(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_STUB || pem_event__is_of_kernel(event);
}

int pem_statistics__keep(struct pem_statistics *st, unsigned what)
{
	struct pem_session *s;
	size_t i, given = 0;
	int result = 0;

	if (!st || !st->attribute[0] || !what ||
	    what & ~(PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM | PEM_STATISTIC_TOP))
		return -EINVAL;
	s = st->session;
	pem_session__lock(s);
	if (st->was_enabled)
		result = -EBUSY;
	for (i = 0; !result && i < st->count; i++) {
		if (!can_keep(st->demands[i]->event))
			continue;
		result = give_distribution(s, st->demands[i], what);
		given += !result;
	}
	if (!result && !given)
		result = -ENOTSUP;
	for (i = 0; result && result != -EBUSY && !st->keeps && i < st->count; i++)
		pem_demand__release_distribution(s, st->demands[i]);
	st->keeps |= !result;
	pem_session__unlock(s);
	return result;
}

/* --- adding it up --- */

struct reading {
	const struct pem_demand *demand;
	uint64_t tag;
	struct pem_distribution_total total;
};

static int read_lanes(struct pem_producer *p, uint32_t event_index, void *arg)
{
	struct reading *reading = arg;
	uint32_t index = PEM_DISTRIBUTION_INDEX(reading->demand->distribution), lane;
	struct pem_distribution copy;

	(void)event_index;
	memset(&reading->total, 0, sizeof(reading->total));
	for (lane = 0; lane < p->ring.lane_count; lane = pem_producer__next_lane(p, lane)) {
		/* lc: a lane without this bit has no memory for it */
		if (__atomic_load_n(&p->ring.lanes[lane].distributions, __ATOMIC_ACQUIRE) >> index &
			    1 &&
		    pem_distribution_read(pem_pool__distribution(&p->ring, index, lane), &copy,
					  reading->tag, 1000))
			pem_distribution_total__add(&reading->total, &copy);
	}
	return 0;
}

/* Is the field of floating type? */
static bool is_floating(const struct pem_demand *demand)
{
	unsigned type = demand->event->fields[demand->field].type;

	return type == PEM_TYPE_FLOAT32 || type == PEM_TYPE_FLOAT64;
}

static void add_total(struct pem_distribution_total *to, const struct pem_distribution_total *from)
{
	pem_distribution__add(&to->sum, &from->sum);
	pem_distribution__merge_top(to->top, &to->missed, from->top, PEM_TOP_MERGED, from->missed);
}

void pem_producer__distribution(struct pem_producer *p, const struct pem_demand *demand,
				struct pem_distribution_total *total)
{
	struct reading reading = {.demand = demand};
	uint64_t action =
		PEM_ACTION_OF_INCARNATION(PEM_ACTION(0, 0, 0, 0, demand->epoch), p->incarnation);

	reading.tag = PEM_DISTRIBUTION_TAG(demand->distribution, action) |
		      (is_floating(demand) ? PEM_CELL_FLOAT : 0);
	pem_producer__steady(p, demand, read_lanes, &reading);
	add_total(total, &reading.total);
}

void pem_demand__retire_distribution(struct pem_demand *demand, struct pem_producer *p)
{
	if (!demand->distribution)
		return;
	if (demand->retired_epoch != demand->epoch)
		memset(demand->retired_distribution, 0, sizeof(*demand->retired_distribution));
	pem_producer__distribution(p, demand, demand->retired_distribution);
}

static void add_of_cpu(const struct pem_statistic *part,
		       const struct pem_distribution *distribution, uint32_t cpu, void *arg)
{
	(void)part;
	(void)cpu;
	if (distribution)
		pem_distribution_total__add(arg, distribution);
}

/* Add up the distributions that a source keeps, one for each CPU. */
static int read_source(struct pem_session *s, const struct pem_demand *demand,
		       struct pem_distribution_total *total)
{
	const struct pem_instance *instance = &s->sources->instances[demand->instance];
	int result;

	if (!instance->ops->each_statistic || !instance->ops->keep)
		return -ENOTSUP;
	result = instance->ops->each_statistic(instance->source, demand->instance_index, add_of_cpu,
					       total);
	return result < 0 ? result : 0;
}

int pem_demand__read_distribution(struct pem_session *s, const struct pem_demand *demand,
				  struct pem_distribution_total *total)
{
	struct pem_producer *p;

	memset(total, 0, sizeof(*total));
	if (demand->unavailable)
		return demand->unavailable;
	if (demand->instance >= 0)
		return read_source(s, demand, total);
	if (demand->retired_epoch == demand->epoch)
		add_total(total, demand->retired_distribution);
	for (p = s->processes->producers; p; p = p->next) {
		pem_producer__refresh_events(s, p);
		pem_producer__distribution(p, demand, total);
	}
	return 0;
}

/* --- handing it out --- */

/*
 * Read all that a handle keeps of event i. Returns 0, or -errno: -ENODATA where the handle was not
 * asked to keep this. The session is locked.
 */
static int read_kept(struct pem_statistics *st, size_t i, unsigned what,
		     struct pem_distribution_total *total)
{
	if (i >= st->count)
		return -EINVAL;
	if (!(PEM_DISTRIBUTION_KEEP(st->demands[i]->distribution) & what))
		return -ENODATA;
	pem_session__scan_producers(st->session);
	return pem_demand__read_distribution(st->session, st->demands[i], total);
}

int pem_statistics__histogram(struct pem_statistics *st, size_t i, struct pem_histogram *histogram)
{
	struct pem_histogram whole = {0};
	struct pem_distribution_total total;
	int result;

	if (!st || pem_sized__check(histogram))
		return -EINVAL;
	pem_session__lock(st->session);
	result = read_kept(st, i, PEM_STATISTIC_HISTOGRAM, &total);
	pem_session__unlock(st->session);
	if (result)
		return result;
	memcpy(whole.bucket, total.sum.bucket, sizeof(whole.bucket));
	pem_sized__write(histogram, 0, &whole, sizeof(whole));
	return 0;
}

int pem_statistics__top(struct pem_statistics *st, size_t i, struct pem_top *top, size_t count)
{
	struct pem_distribution_total total;
	struct pem_top one = {0};
	size_t k;
	int result;

	if (!st || pem_sized__check_array(top, count))
		return -EINVAL;
	pem_session__lock(st->session);
	result = read_kept(st, i, PEM_STATISTIC_TOP, &total);
	pem_session__unlock(st->session);
	if (result)
		return result;
	for (k = 0; k < count && k < PEM_TOP_MERGED && total.top[k].count; k++) {
		one.value = total.top[k].value;
		one.count = total.top[k].count;
		one.error = total.top[k].error;
		pem_sized__write(top, k, &one, sizeof(one));
	}
	return (int)k;
}
