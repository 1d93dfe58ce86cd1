// SPDX-License-Identifier: GPL-2.0
/*
 * supply.c - how many free blocks of each size a zone of memory has: what huge pages can be made of without compaction
 *
 * The numbers are those of /proc/buddyinfo, which root alone may read; zones without memory have none. They are read one by
 * one without the zone's lock, which every allocation wants: blocks that are split or merged meanwhile may be counted twice
 * or not at all. Free pages that a CPU keeps for itself count nowhere.
 *
 * Not here: pages set aside for hugetlbfs, which anybody reads in /sys/devices/system/node/node<N>/hugepages.
 */
#include "own.h"

#include <linux/mmzone.h>
#include <linux/nodemask.h>

#include "pem_kmod_own.h"

#define INTERVAL_US_MIN 1000u

static void look_at_zone(struct pem_kmod_session *session, struct zone *zone, int node)
{
	unsigned int order;

	for (order = 0; order < ARRAY_SIZE(zone->free_area); order++) {
		preempt_disable_notrace();
		pem_emit_pages_free(session, node, order, READ_ONCE(zone->free_area[order].nr_free),
				    zone->name);
		preempt_enable_notrace();
	}
}

/* A node that goes leaves its structure, with zones that have no memory. */
static void look(struct pem_kmod_session *session)
{
	struct zone *zone;
	int node, i;

	for_each_online_node(node)
	{
		for (i = 0; i < MAX_NR_ZONES; i++) {
			zone = &NODE_DATA(node)->node_zones[i];
			if (populated_zone(zone))
				look_at_zone(session, zone, node);
		}
	}
}

static bool tick(struct pem_ticker *ticker)
{
	look(container_of(ticker, struct pem_own, supply.ticker)->supply.session);
	return true;
}

int pem_supply__start(struct pem_own *own)
{
	if (!own->supply.ticker.interval_ns || own->supply.ticker.thread)
		return 0;
	own->supply.ticker.tick = tick;
	return pem_ticker__start(&own->supply.ticker, "pem/supply");
}

void pem_supply__stop(struct pem_own *own)
{
	pem_ticker__stop(&own->supply.ticker);
}

int pem_supply__set(struct pem_own *own, const struct pem_kmod_supply *asked, bool runs)
{
	if ((asked->flags & ~PEM_KMOD_NOW) || asked->reserved ||
	    (asked->interval_us && asked->interval_us < INTERVAL_US_MIN))
		return -EINVAL;
	if (asked->flags & PEM_KMOD_NOW) {
		if (asked->interval_us)
			return -EINVAL;
		if (!runs)
			return -EBUSY;
		look(own->supply.session);
		return 0;
	}
	pem_supply__stop(own);
	own->supply.ticker.interval_ns = (u64)asked->interval_us * NSEC_PER_USEC;
	return runs ? pem_supply__start(own) : 0;
}
