// SPDX-License-Identifier: GPL-2.0-only
/*
 * supply.c - how many free blocks of each size a memory zone has, from which huge pages can be made
 * without compaction
 *
 * The numbers are those of /proc/buddyinfo, which only root may read. Zones without memory have no
 * numbers. The numbers are read one by one without the zone's lock, because every allocation wants
 * that lock. So blocks that are split or merged meanwhile may be counted twice or not at all. Free
 * pages that a CPU keeps for itself are not counted.
 *
 * Not here: pages reserved for hugetlbfs, which any user can read in
 * /sys/devices/system/node/node<N>/hugepages.
 */
#include "pem_kmod_tried.h"

#if PEM_KMOD_HAS_supply
#include "sampling.h"

#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "pem_kmod_emit.h"

#define INTERVAL_US_MIN 1000u

struct pem_supply {
	struct pem_ticker ticker;
	struct pem_kmod_probe_data *data;
};

/* ticker: the ticker that ticks. NULL: there is none. */
static void emit_zone(struct pem_kmod_probe_data *data, const struct pem_ticker *ticker,
		      struct zone *zone, int node)
{
	unsigned int order;

	for (order = 0; order < ARRAY_SIZE(zone->free_area); order++) {
		preempt_disable_notrace();
		if (!ticker || !pem_ticker__is_over(ticker))
			pem_emit_pages_free(data, node, order,
					    READ_ONCE(zone->free_area[order].nr_free), zone->name);
		preempt_enable_notrace();
	}
}

/* Emit all zones. A node that was removed leaves its structure, with zones that have no memory. */
static void emit_zones(struct pem_kmod_probe_data *data, const struct pem_ticker *ticker)
{
	struct zone *zone;
	int node, i;

	for_each_online_node(node) {
		for (i = 0; i < MAX_NR_ZONES; i++) {
			zone = &NODE_DATA(node)->node_zones[i];
			if (populated_zone(zone))
				emit_zone(data, ticker, zone, node);
		}
	}
}

static struct pem_supply *supply_of(struct pem_ticker *ticker)
{
	return container_of(ticker, struct pem_supply, ticker);
}

static bool tick(struct pem_ticker *ticker)
{
	emit_zones(supply_of(ticker)->data, ticker);
	return true;
}

static void free_supply(struct pem_ticker *ticker)
{
	kfree(supply_of(ticker));
}

void pem_supply__free(struct pem_kmod_sampling *sampling)
{
	if (sampling->supply)
		pem_tickers__remove(&sampling->supply->ticker);
	sampling->supply = NULL;
}

int pem_supply__set(struct pem_kmod_sampling *sampling, const struct pem_kmod_supply *asked,
		    bool runs)
{
	struct pem_supply *supply = NULL;

	if ((asked->flags & ~PEM_KMOD_NOW) || asked->reserved ||
	    (asked->interval_us && asked->interval_us < INTERVAL_US_MIN))
		return -EINVAL;
	if (asked->flags & PEM_KMOD_NOW) {
		if (asked->interval_us)
			return -EINVAL;
		if (!runs)
			return -EBUSY;
		emit_zones(sampling->data, NULL);
		return 0;
	}
	if (asked->interval_us) {
		supply = kzalloc(sizeof(*supply), GFP_KERNEL_ACCOUNT);
		if (!supply)
			return -ENOMEM;
	}
	if (sampling->supply) {
		pem_supply__free(sampling);
		synchronize_rcu(); /* wait for its last record */
	}
	if (!supply)
		return 0;
	supply->data = sampling->data;
	supply->ticker.tick = tick;
	supply->ticker.free = free_supply;
	supply->ticker.interval_ns = (u64)asked->interval_us * NSEC_PER_USEC;
	pem_tickers__add(&sampling->tickers, &supply->ticker);
	sampling->supply = supply;
	return 0;
}
#endif
