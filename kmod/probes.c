// SPDX-License-Identifier: GPL-2.0
/*
 * probes.c - the generated probes, compiled and checked against this kernel's tracepoints
 *
 * The compiler checks each probe's parameters against the tracepoint's own, if the kernel's headers declare it. This
 * module registers no probe and makes no session.
 */
#include "pem_kmod.h"

#include <linux/module.h>

#include "pem_kmod_headers.h"
#include "pem_kmod_checks.h"

uint8_t *pem_kmod_next_chunk(struct pem_kevent *e, uint32_t bytes)
{
	const struct pem_ring *ring = &e->session->ring;
	struct pem_writer *w = e->writer;
	struct pem_lane *lane = &ring->lanes[w->lane_index];
	uint8_t *record = NULL;
	int64_t index;

	pem_ring_retire(ring, w);
	index = pem_ring_find(ring);
	if (index >= 0) {
		pem_ring_start(ring, w, (uint32_t)index, e->now, 0, 0);
		w->packet->cpu = smp_processor_id();
		w->packet->source = PEM_PACKET_KERNEL;
		record = pem_ring_reserve(w, e->now, bytes);
	}
	if (!record) {
		/* Produced after discarded, so that no reader ever finds more delivered than produced. */
		WRITE_ONCE(lane->discarded, lane->discarded + 1);
		WRITE_ONCE(e->slot->discarded, e->slot->discarded + 1);
		WRITE_ONCE(e->slot->produced, e->slot->produced + 1);
	}
	return record;
}

#include "pem_kmod_events.h"

MODULE_DESCRIPTION("Performance and Environment Monitoring: probes of tracepoints");
MODULE_LICENSE("GPL");
