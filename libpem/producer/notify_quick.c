// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * notify_quick.c - the entry of what stubs do not do by themselves, and the quick way of an event
 * that one session counts with its distribution, where all is as at the last one
 *
 * Not here: the quick way of an event with counters (counters_quick.c), the general way (notify.c),
 * the steps on a distribution (pem/distribution.h).
 */
#include "producer/notify_quick.h"
#include "producer/producer.h"

#include <pem/distribution.h>
#include <pem/record_layout.h>

static struct pem_quick_distribution *entry_of(struct pem_thread_full *thread, uint32_t event_index)
{
	return &thread->quick[event_index % PEM_QUICK_DISTRIBUTIONS];
}

void pem_quick_distribution__keep(struct pem_thread_full *thread, uint64_t action,
				  uint32_t event_index, const struct pem_filter *filter,
				  const struct pem_ring *ring, uint32_t bytes)
{
	const struct pem_writer *w = &thread->shared.writer[0];
	struct pem_quick_distribution *q = entry_of(thread, event_index);
	uint32_t type = PEM_ACTION_TYPE(action), word = filter->distribution;
	uint32_t end = PEM_ACTION_OFFSET(action) + pem_layout_type_bytes(type);

	/* The action comes from shared memory. Without such a field nothing was added. */
	if (PEM_ACTION_FLAGS(action) != (PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION) ||
	    PEM_ACTION_FIELD(action) == PEM_NO_FIELD || type < PEM_TYPE_UINT8 ||
	    type > PEM_TYPE_INT64 || end > bytes ||
	    PEM_DISTRIBUTION_INDEX(word) >= PEM_DISTRIBUTION_COUNT)
		return;
	q->action = 0;
	/* A signal handler's event finds none, or all of it. */
	PEM_BARRIER();
	q->filter = filter;
	q->cell = &w->cells[event_index];
	q->distribution = pem_pool__distribution(ring, PEM_DISTRIBUTION_INDEX(word), w->lane_index);
	q->tag = PEM_DISTRIBUTION_TAG(word, action);
	q->least_bytes = end;
	q->incarnation = PEM_ACTION_INCARNATION(action);
	PEM_BARRIER();
	q->action = action;
}

void pem_quick_distribution__forget(struct pem_thread_full *thread)
{
	unsigned i;

	for (i = 0; i < PEM_QUICK_DISTRIBUTIONS; i++)
		if (thread->quick[i].action)
			thread->quick[i].action = 0;
}

/*
 * Is what the thread keeps still the event's? filter: the one that it has since action was loaded.
 * Another event may have got the distribution, and its tag, a moment before this one lost it.
 */
static inline bool is_kept(const struct pem_quick_distribution *q, uint64_t action,
			   const struct pem_filter *filter, uint32_t incarnation, uint32_t bytes)
{
	return q->action == action && q->filter == filter && q->incarnation == incarnation &&
	       bytes >= q->least_bytes && q->cell->tag == PEM_ACTION_TAG(action) &&
	       q->distribution->tag == q->tag;
}

static void notify_distributed(struct pem_provider *provider, uint32_t index, void *record,
			       uint32_t bytes, uint64_t action, struct pem_thread_full *thread)
{
	const struct pem_quick_distribution *q = entry_of(thread, provider->event_base + index);
	uint32_t type = PEM_ACTION_TYPE(action), incarnation;
	uint64_t value, is_signed = type >= PEM_TYPE_INT8;
	const struct pem_filter *filter;
	bool added;

	/* uh */
	filter = __atomic_load_n(&provider->filters[index * PEM_SESSIONS_MAX], __ATOMIC_ACQUIRE);
	incarnation = __atomic_load_n(&thread->shared.writer[0].incarnation, __ATOMIC_RELAXED);
	/*
	 * From here on a signal handler's event keeps nothing in place of this. Never a constant:
	 * see struct pem_thread.
	 */
	PEM_BARRIER();
	thread->shared.depth++;
	PEM_BARRIER();
	added = is_kept(q, action, filter, incarnation, bytes);
	if (__builtin_expect(added, 1)) {
		value = pem_load_integer((const uint8_t *)record + PEM_ACTION_OFFSET(action), type);
		pem_cell_update(q->cell, value, value ^ is_signed << 63);
		pem_distribution_add(q->distribution, PEM_DISTRIBUTION_KEEP(filter->distribution),
				     value, is_signed);
	}
	PEM_BARRIER();
	thread->shared.depth--;
	if (__builtin_expect(!added, 0))
		pem_notify_all(provider, index, record, bytes);
}

/* Each way is the last call, so that this function saves no registers. */
void pem_notify(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
{
	struct pem_thread_full *thread = (void *)pem_thread_self(provider);
	const uint8_t *enable = (const uint8_t *)provider->page + sizeof(struct pem_control_header);
	const uint64_t *actions =
		(const uint64_t *)(enable + PEM_EVENT_CAPACITY(provider->event_count));
	uint64_t action;

	/* The depth of a thread without a state of its own is 0. */
	if (thread->shared.depth != PEM_DEPTH_IDLE || !pem_enable_is(&enable[index], 1)) {
		pem_notify_all(provider, index, record, bytes);
		return;
	}
	/* uf */
	action = __atomic_load_n(&actions[index * PEM_SESSIONS_MAX], __ATOMIC_ACQUIRE);
	if (PEM_ACTION_FLAGS(action) == (PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION) &&
	    provider->filters)
		notify_distributed(provider, index, record, bytes, action, thread);
	else if (thread->counters)
		pem_notify_counted(provider, index, record, bytes, action, thread);
	else
		pem_notify_all(provider, index, record, bytes);
}
