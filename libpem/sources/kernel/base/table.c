/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* table.c - the events that have BPF programs */
#include "base.h"

#include "pem_kernel_events.h"

#include <string.h>

_Static_assert(PEM_KERNEL_EVENT_COUNT <= PEM_KRING_EVENTS_MAX, "a slot for each kernel event");

unsigned pem_kernel__event_count(void)
{
	return PEM_KERNEL_EVENT_COUNT;
}

const struct pem_kernel_event *pem_kernel__event(unsigned index)
{
	return index < PEM_KERNEL_EVENT_COUNT ? &pem_kernel_events[index] : NULL;
}

const struct pem_kernel_joint *pem_kernel__joints(void)
{
	return pem_kernel_joints;
}

/*
 * This is called for each drained record. The generated hash table is at least twice as long as the
 * table of events.
 */
int pem_kernel__find(uint32_t id)
{
	uint32_t i = id;
	uint16_t index;

	if (!id)
		return -1;
	for (;; i++) {
		index = pem_kernel_by_id[i % PEM_KERNEL_BY_ID_SIZE];
		if (index == PEM_KERNEL_NO_EVENT)
			return -1;
		if (pem_kernel_events[index].id == id)
			return index;
	}
}

int pem_kernel__sets_thread(void)
{
	unsigned i;

	for (i = 0; i < PEM_KERNEL_EVENT_COUNT; i++) {
		if (pem_kernel_events[i].sets_thread)
			return (int)i;
	}
	return -1;
}

void pem_kernel__thread_of(const uint8_t *record, uint32_t *pid, uint32_t *tid)
{
	memcpy(pid, record + PEM_KERNEL_SWITCH_PROCESS_OFFSET, sizeof(*pid));
	memcpy(tid, record + PEM_KERNEL_SWITCH_THREAD_OFFSET, sizeof(*tid));
}

const struct pem_kernel_static *pem_kernel__static(uint32_t id)
{
	const struct pem_kernel_static *row;

	for (row = pem_kernel_statics; row->id; row++) {
		if (row->id == id)
			return row;
	}
	return NULL;
}
