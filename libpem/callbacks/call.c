/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * call.c - call the functions: order a batch by time, give the kernel's records their context, find
 * the callbacks of a record
 *
 * This runs on the callbacks' thread. It holds the async lock from record to record, and releases
 * it while a function runs. So the function may use the whole API, and so may other threads.
 */
#include "core/demand.h"
#include "callbacks/callbacks.h"
#include "delivery/delivery.h"
#include "producer/producer.h"

#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b)
{
	const struct pem_async_key *x = a, *y = b;

	if (x->clock != y->clock)
		return x->clock < y->clock ? -1 : 1;
	if (x->fresh != y->fresh)
		return x->fresh ? 1 : -1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * Find the process and thread of a kernel record. A record that tells which thread runs from now on
 * is noted.
 */
static void find_context(struct pem_async *a, struct pem_record *r)
{
	const struct pem_event_info *info;

	if (r->source == PEM_PACKET_KERNEL && a->contexts) {
		pem_context_table__get(a->contexts, r->cpu, &r->pid, &r->tid);
		info = pem_event_table__find(&a->events, r->event->id);
		if (info && info->sets_context)
			pem_context_table__learn(a->contexts, info, r);
	}
	/* The function sees one source, in whichever way the record came. */
	if (r->source == PEM_PACKET_KERNEL_THREAD)
		r->source = PEM_PACKET_KERNEL;
}

/* Call one function. The lock is held before and after. */
static void call(struct pem_async *a, struct pem_async_callback *cb, const struct pem_record *r)
{
	void (*function)(const struct pem_record *, void *) = cb->function;
	void *arg = cb->arg;

	cb->called++;
	cb->late += r->clock < cb->last_clock;
	if (r->clock > cb->last_clock)
		cb->last_clock = r->clock;
	a->running = cb;
	pem_async__unlock(a);
	function(r, arg);
	if (__atomic_load_n(&pem_process.pid, __ATOMIC_RELAXED) != (uint32_t)a->pid)
		pthread_exit(NULL); /* in a child that the function forked: it has no session */
	pem_async__lock(a);
	a->running = NULL;
	pthread_cond_broadcast(&a->changed);
}

/*
 * Give a record to its callbacks. Callbacks may be added, removed, enabled and disabled meanwhile.
 * So each one is read when its turn comes.
 */
static void hand_on(struct pem_async *a, const struct pem_record *r, uint64_t callbacks)
{
	struct pem_async_callback *cb;

	for (; callbacks; callbacks &= callbacks - 1) {
		cb = a->callbacks[__builtin_ctzll(callbacks)];
		/* The index may belong to another callback by now. */
		if (!cb || r->clock < cb->born)
			continue;
		if (cb->enabled)
			call(a, cb, r);
		else
			cb->lost++;
	}
}

void pem_async__swap(struct pem_async *a)
{
	struct pem_async_batch batch = a->batch;
	const struct pem_async_item *item;
	bool fresh = a->incoming.count > 0;
	size_t i;

	for (i = a->batch_done; i < batch.count; i++) {
		item = (const struct pem_async_item *)(batch.bytes + batch.keys[i].at);
		if (pem_async_batch__add(&a->incoming, SIZE_MAX, batch.keys[i].clock, item,
					 item->data))
			a->incoming.keys[a->incoming.count - 1].fresh = 0;
		else if (item->demand)
			item->demand->async_lost++;
	}
	/*
	 * Older records are behind newer ones of the same clock value, so the batch must be sorted.
	 */
	if (fresh && a->batch_done < batch.count)
		a->incoming.sorted = false;
	batch.count = batch.used = batch.wanted = a->batch_done = 0;
	a->batch = a->incoming;
	a->incoming = batch;
	/* YA */
	__atomic_store_n(&a->batch_left, a->batch.wanted, __ATOMIC_RELEASE);
}

size_t pem_async__call(struct pem_async *a, uint64_t horizon)
{
	struct pem_async_batch *batch = &a->batch;
	const struct pem_async_item *item;
	struct pem_record r = {.size = sizeof(r)};
	size_t count, i;

	if (!batch->sorted && batch->count) /* keys is NULL where count is 0 */
		qsort(batch->keys, batch->count, sizeof(*batch->keys), by_time);
	batch->sorted = true;
	pem_async__lock(a);
	for (i = a->batch_done; i < batch->count && batch->keys[i].clock <= horizon; i++) {
		item = (const struct pem_async_item *)(batch->bytes + batch->keys[i].at);
		/* YB */
		__atomic_store_n(&a->called_before, batch->keys[i].clock, __ATOMIC_RELEASE);
		if (!item->event) {
			if (a->contexts)
				pem_context_table__lose(a->contexts, item->cpu);
			continue;
		}
		r.clock = batch->keys[i].clock;
		r.event = item->event;
		r.data = item->data;
		r.bytes = item->bytes;
		r.pid = item->pid;
		r.tid = item->tid;
		r.cpu = item->cpu;
		r.source = item->source;
		find_context(a, &r);
		hand_on(a, &r, item->callbacks);
		/* YA */
		if (item->callbacks)
			__atomic_fetch_sub(&a->batch_left, 1, __ATOMIC_RELEASE);
		if (a->closed) { /* with the events of the remaining records */
			i++;
			break;
		}
	}
	pem_async__unlock(a);
	count = i - a->batch_done;
	a->batch_done = i;
	return count;
}
