/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * groups.h - which hardware counters are counted together
 *
 * The kernel counts all counters of a group at once or none of them. So the members of a group have
 * the same enabled and running times, and a ratio of two of them is that of the same times.
 *
 * Invariant: the counters of one metric are in one group, or they are in groups of different
 * numbers, and what shows the metric says that they were not counted at the same times
 * (pem_statistic.together).
 */
#ifndef PEM_COUNTERS_GROUPS_H
#define PEM_COUNTERS_GROUPS_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_MEMBERS_MAX 32u

/* A counter to be put into a group. */
struct group_item {
	/* Items of different contexts, such as other processes, are never in one group. */
	uint32_t context;
	/* Items of one metric have the same number, which groups__join made. */
	uint32_t metric;
	uint32_t group; /* result: from 0 on */
	struct perf_event_attr attr; /* for groups__fit */
};

/* Let each item be of a metric of its own. */
void groups__part(struct group_item *items, size_t count);
/* Items a and b are of one metric. */
void groups__join(struct group_item *items, size_t count, size_t a, size_t b);

/*
 * Choose groups, as large as fits accepts them. fits: can items[members[0]], ... be counted
 * together? It is not asked about a single one. Items of one metric stay together where fits
 * accepts them alone. Returns the number of groups.
 */
uint32_t groups__plan(struct group_item *items, size_t count,
		      int (*fits)(const struct group_item *items, const size_t *members,
				  size_t count, void *arg),
		      void *arg);

/*
 * As fits: does the kernel count them together on the calling thread, just now? It refuses a group
 * of more counters than the processor has. A group that could never run because the kernel itself
 * keeps a counter, as for its NMI watchdog, is not refused, but gets no time.
 */
int groups__fit(const struct group_item *items, const size_t *members, size_t count, void *arg);

#endif
