// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * counters_quick.c - the quick way of an event with counters
 *
 * It serves an event that one session logs, with counters that are all in registers, in a thread
 * that has opened them and is in no other event. It logs the reading and the event at once. All
 * else goes the general way (notify.c), whose log_record calls pem_counted__log (counters.c).
 */
#define PEM_REGISTERS_ITSELF
#include "producer/counters.h"
#include "producer/producer.h"

#include <stubs/hw_thread.h>

PEM_STATIC_ASSERT(offsetof(struct pem_hw_perf_hpms_in_thread_record, eventId) == 8 &&
			  offsetof(struct pem_hw_perf_hpms_in_thread_record, missing) == 12 &&
			  offsetof(struct pem_hw_perf_hpms_in_thread_record, counterValues_count) ==
				  16,
		  "log_both() writes words");

/* Returns false if one of them is in no register just then. */
static inline bool read_pages(const struct pem_opened *opened, uint64_t *values)
{
	const struct perf_event_mmap_page *const *page = opened->page;
	uint64_t *const end = values + opened->count;

	do {
		if (__builtin_expect(!pem_read_page(*page++, values), 0))
			return false;
	} while (++values < end);
	return true;
}

static inline void count_one(struct pem_cell *cell)
{
	/* Only this lane's thread writes the cell. */
	__atomic_store_n(&cell->produced, cell->produced + 1, __ATOMIC_RELAXED);
}

/*
 * Publish a reading and the event behind it, whose fields are there, as two calls of
 * pem_ring_commit would: both at once. bytes: of the event.
 */
static inline void commit_both(struct pem_writer *w, struct pem_record_header *reading,
			       struct pem_record_header *event, uint32_t event_id, uint64_t now,
			       uint32_t bytes)
{
	struct pem_packet *packet = w->packet;

	reading->clock_low = event->clock_low = (uint32_t)now;
	reading->event_id = PEM_EVENT_HW_PERF_HPMS_IN_THREAD_ID;
	event->event_id = event_id;
	w->cursor = (uint8_t *)event + ((bytes + (PEM_RECORD_ALIGN - 1)) & ~(PEM_RECORD_ALIGN - 1));
	w->last_clock = now;
	w->record_count += 2;
	/* RA */
	__atomic_store_n(&packet->content_size,
			 (uint64_t)((uint8_t *)event + bytes - (uint8_t *)packet) * 8,
			 __ATOMIC_RELEASE);
}

/* Log both. Returns false, and does nothing, if there is no room or a counter is in no register. */
static inline bool log_both(struct pem_writer *w, const struct pem_opened *opened,
			    uint32_t event_id, const void *record, uint32_t bytes)
{
	uint64_t now = pem_clock();
	uint64_t *to = (void *)w->cursor;
	struct pem_record_header *event = (void *)((uint8_t *)to + opened->record_bytes);

	if (!pem_ring_has_room(w, now, opened->record_bytes + bytes + 7) ||
	    !read_pages(opened, to + 3))
		return false;
	to[1] = event_id; /* and none is missing */
	to[2] = opened->count;
	pem_copy_record(event + 1, (const struct pem_record_header *)record + 1,
			bytes - (uint32_t)sizeof(*event));
	commit_both(w, (void *)to, event, event_id, now, bytes);
	return true;
}

void pem_notify_counted(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes,
			uint64_t action, struct pem_thread_full *thread)
{
	const struct pem_opened *opened = &thread->counters->session[0];
	struct pem_writer *w = &thread->shared.writer[0];
	struct pem_cell *cells;
	bool logged;

	/*
	 * From here on a signal handler's event opens no counters in place of these (opened_in).
	 * Never a constant: see struct pem_thread.
	 */
	PEM_BARRIER();
	thread->shared.depth++;
	PEM_BARRIER();
	logged = action == opened->action &&
		 __atomic_load_n(&w->incarnation, __ATOMIC_RELAXED) == opened->incarnation &&
		 log_both(w, opened, provider->event_ids[index], record, bytes);
	if (__builtin_expect(logged, 1)) {
		cells = w->cells;
		count_one(&cells[opened->event_index]);
		count_one(&cells[provider->event_base + index]);
	}
	PEM_BARRIER();
	thread->shared.depth--;
	if (__builtin_expect(!logged, 0))
		pem_notify_all(provider, index, record, bytes);
}
