// SPDX-License-Identifier: LGPL-2.1-or-later
/* groups.c - see groups.h */
#include "groups.h"

#include "counters.h"

#include <errno.h>
#include <unistd.h>

#define NO_GROUP UINT32_MAX
/* So many groups are tried for room: trying all of many would open each counter too often. */
#define LAST_GROUPS 4u

void groups__part(struct group_item *items, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		items[i].metric = (uint32_t)i;
}

void groups__join(struct group_item *items, size_t count, size_t a, size_t b)
{
	const uint32_t from = items[b].metric, to = items[a].metric;
	size_t i;

	for (i = 0; i < count; i++)
		if (items[i].metric == from)
			items[i].metric = to;
}

struct planning {
	struct group_item *items;
	size_t count;
	int (*fits)(const struct group_item *items, const size_t *members, size_t count, void *arg);
	void *arg;
	uint32_t first_group; /* of the context whose items are being put into groups */
	uint32_t group_count;
};

/* Add items to a group, all of them or none. Returns whether they fit. */
static int add_to(struct planning *p, uint32_t group, const size_t *more, size_t more_count)
{
	size_t members[GROUP_MEMBERS_MAX], i, count = 0;

	for (i = 0; i < p->count; i++)
		if (p->items[i].group == group)
			members[count++] = i;
	if (count + more_count > GROUP_MEMBERS_MAX)
		return 0;
	for (i = 0; i < more_count; i++)
		members[count++] = more[i];
	if (count > 1 && !p->fits(p->items, members, count, p->arg))
		return 0;
	for (i = 0; i < more_count; i++)
		p->items[more[i]].group = group;
	return 1;
}

/*
 * Add items to one of the last groups, or to a new one. The last one comes first, as it has those
 * that were asked for just before. Returns whether they fit.
 */
static int add(struct planning *p, const size_t *more, size_t count)
{
	uint32_t tries, group = p->group_count;

	for (tries = 0; tries < LAST_GROUPS && group > p->first_group; tries++)
		if (add_to(p, --group, more, count))
			return 1;
	if (!add_to(p, p->group_count, more, count))
		return 0;
	p->group_count++;
	return 1;
}

/* Add the items of a metric: together, or where no group can hold them one by one. */
static void add_metric(struct planning *p, const size_t *more, size_t count)
{
	size_t i;

	if (add(p, more, count))
		return;
	for (i = 0; i < count; i++)
		add(p, &more[i], 1); /* it always fits into a new group */
}

/* Find the items of the metric of item first, which have no group yet. Returns how many. */
static size_t find_metric(const struct planning *p, size_t first, size_t *found)
{
	size_t i, count = 0;

	for (i = first; i < p->count && count < GROUP_MEMBERS_MAX; i++)
		if (p->items[i].group == NO_GROUP &&
		    p->items[i].context == p->items[first].context &&
		    p->items[i].metric == p->items[first].metric)
			found[count++] = i;
	return count;
}

uint32_t groups__plan(struct group_item *items, size_t count,
		      int (*fits)(const struct group_item *items, const size_t *members,
				  size_t count, void *arg),
		      void *arg)
{
	struct planning p = {.items = items, .count = count, .fits = fits, .arg = arg};
	size_t found[GROUP_MEMBERS_MAX], i, k;

	for (i = 0; i < count; i++)
		items[i].group = NO_GROUP;
	for (i = 0; i < count; i++) {
		if (items[i].group != NO_GROUP)
			continue;
		/* The first item of a context: all of this context, metric by metric. */
		p.first_group = p.group_count;
		for (k = i; k < count; k++)
			if (items[k].group == NO_GROUP && items[k].context == items[i].context)
				add_metric(&p, found, find_metric(&p, k, found));
	}
	return p.group_count;
}

/*
 * Open a group on the calling thread. Returns 1; 0: it got no time in the hardware; -errno: the
 * kernel refuses it.
 */
static int try_group(const struct group_item *items, const size_t *members, size_t count)
{
	struct reading reading = {0};
	int fds[GROUP_MEMBERS_MAX], rc = 0;
	size_t opened = 0;

	while (opened < count && rc >= 0) {
		struct perf_event_attr attr = items[members[opened]].attr;

		attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
		rc = counter__open(&attr, 0, -1, opened ? fds[0] : -1);
		if (rc >= 0)
			fds[opened++] = rc;
	}
	/* The group was counting as its last member came, and goes on if it can. */
	if (rc >= 0 && read(fds[count - 1], &reading, sizeof(reading)) != (ssize_t)sizeof(reading))
		rc = -EIO;
	while (opened)
		close(fds[--opened]);
	return rc < 0 ? rc : reading.running_ns != 0;
}

/* Does the kernel say that there are too few counters? Another failure is told by opening them. */
static int is_refusal(int rc)
{
	return rc == -EINVAL || rc == -ENOSPC || rc == -EBUSY || rc == -EOPNOTSUPP || rc == -ENOENT;
}

int groups__fit(const struct group_item *items, const size_t *members, size_t count, void *arg)
{
	int rc = try_group(items, members, count);

	(void)arg;
	/* If one alone gets no time either, others have the counters just now: that tells nothing.
	 */
	if (rc < 0)
		return !is_refusal(rc);
	return rc > 0 || try_group(items, members, 1) == 0;
}
