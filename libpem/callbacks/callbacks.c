/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * callbacks.c - asynchronous callbacks: their handles, and the events that they lost
 *
 * The thread that calls them is in callbacks/thread.c.
 */
#include "callbacks/callbacks.h"
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "delivery/delivery.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "producer/producer.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_NS 1000000u /* between two looks at the thread's progress */

/* --- what was lost --- */

static void settle_source(struct pem_session *s, struct pem_demand *demand)
{
	struct pem_balance balance = {0};

	s->sources->instances[demand->instance].ops->balance(
		s->sources->instances[demand->instance].source, demand->instance_index, &balance);
	if (demand->async && balance.discarded > demand->source_lost)
		demand->first->async_lost += balance.discarded - demand->source_lost;
	demand->source_lost = balance.discarded;
}

/* Bring a demand's count of lost events up to date. */
static void settle_demand(struct pem_session *s, struct pem_demand *demand)
{
	const struct pem_event_entry *entry;
	struct pem_producer *p;
	uint64_t before, after;

	if (demand->instance >= 0) {
		settle_source(s, demand);
		return;
	}
	for (p = s->processes->producers; p; p = p->next) {
		entry = pem_producer__entry_of(p, demand->event);
		if (!entry)
			continue;
		before = pem_producer__produced(p, entry->event_index);
		pem_async__collect(s, p, false);
		/*
		 * A thread may have committed a record and not counted it yet. So when the callback
		 * is enabled the count from before the collection is used: it rather counts too
		 * many events as lost.
		 */
		after = pem_demand__async(demand->first)
				? before
				: pem_producer__produced(p, entry->event_index);
		if (p->async)
			pem_async__settle(p, demand->first, entry->event_index, after);
	}
}

static uint64_t lost_so_far(const struct pem_callback *cb)
{
	uint64_t lost = 0;
	size_t i;

	for (i = 0; i < cb->count; i++)
		lost += cb->entry[i].demand->first->async_lost;
	return lost;
}

static void settle_all(struct pem_callback *cb)
{
	size_t i;

	for (i = 0; i < cb->count; i++)
		settle_demand(cb->session, cb->entry[i].demand);
}

void pem_async__counts(struct pem_callback *cb, struct pem_callback_counts *counts)
{
	struct pem_async *a = cb->session->async;

	/* A process with a short life may have ended before the thread noticed it. */
	pem_session__scan_producers(cb->session);
	pem_async__collect_all(cb->session);
	if (a->active && a->follows_sources)
		pem_session__drain_sources(cb->session, false);
	if (cb->async->enabled)
		settle_all(cb);
	pem_async__lock(a);
	counts->called = cb->async->called;
	counts->late = cb->async->late;
	/* ya */
	counts->waiting = a->incoming.wanted + __atomic_load_n(&a->batch_left, __ATOMIC_ACQUIRE);
	counts->lost =
		cb->async->lost + (cb->async->enabled ? lost_so_far(cb) - cb->async->lost_from : 0);
	pem_async__unlock(a);
}

int pem_async__catch_up(struct pem_callback *cb)
{
	const struct timespec pause = {.tv_nsec = SETTLE_NS};
	struct pem_session *s = cb->session;
	struct pem_async *a = s->async;
	struct pem_callback_counts counts;
	uint64_t end = pem_clock();
	bool is_done, is_own;

	/* A child has no such thread. */
	if (pem_process.pid != (uint32_t)a->pid)
		return 0;
	pem_session__lock(s);
	end += pem_async__slack(s); /* the clocks of the kernel's records are known less exactly */
	pem_session__unlock(s);
	for (;;) {
		pem_session__lock(s);
		is_own = a->tid == (uint32_t)syscall(SYS_gettid);
		is_done = is_own || !cb->async->enabled;
		/* This collects records as well, also those that wake nobody. */
		if (!is_done) {
			pem_async__counts(cb, &counts);
			is_done = !counts.waiting;
		}
		pem_session__unlock(s);
		/* yb */
		if (is_done || __atomic_load_n(&a->called_before, __ATOMIC_ACQUIRE) > end)
			return is_own ? -EDEADLK : 0;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

/* --- enabling --- */

/* Find out what the enabled callbacks need of the thread, and whether it has any work left. */
static void update_thread(struct pem_async *a)
{
	uint64_t least_us = UINT64_MAX;
	size_t i, n;

	a->follows_sources = false;
	for (i = 0; i < PEM_ASYNC_MAX; i++) {
		const struct pem_async_callback *cb = a->callbacks[i];

		if (!cb || !cb->enabled)
			continue;
		if (cb->max_delay_us < least_us)
			least_us = cb->max_delay_us;
		for (n = 0; n < cb->handle->count; n++)
			a->follows_sources |=
				cb->handle->entry[n].demand->event->source_kind != PEM_SOURCE_STUB;
	}
	a->active = a->enabled_count > 0;
	a->period_ns = pem_async__period_ns(least_us);
}

static void want_context(struct pem_session *s, struct pem_demand *demand)
{
	struct pem_demand *wanted = demand;

	(void)s;
	/* Records come from one demand of the event only. */
	while (wanted && !wanted->want_log && !wanted->want_async)
		wanted = wanted->next;
	if (!wanted)
		wanted = demand;
	wanted->async_context = true;
	wanted->want_async = true;
}

/* Follow the sources that tell which thread runs on a CPU: the kernel's records need them. */
static void follow_sources(struct pem_session *s)
{
	struct pem_async *a = s->async;

	if (!a->follows_sources)
		return;
	pem_session__each_context_event(s, want_context);
	if (a->contexts)
		return;
	if (pem_event_table__build(&a->events, s->model))
		return;
	a->contexts = pem_context_table__new();
}

/*
 * No callback is enabled any more: what waits is lost for each one that it was for, and makes room
 * for the next one. Records of the kernel stay, since they tell which thread runs. The session's
 * mutex and the async lock are held.
 */
static void drop_waiting(struct pem_async *a)
{
	struct pem_async_batch *batch = &a->incoming;
	const struct pem_async_item *item;
	struct pem_async_callback *cb;
	uint64_t bits;
	size_t i;

	for (i = 0; i < batch->count; i++) {
		item = (const struct pem_async_item *)(batch->bytes + batch->keys[i].at);
		for (bits = item->callbacks; bits; bits &= bits - 1) {
			cb = a->callbacks[__builtin_ctzll(bits)];
			if (cb && batch->keys[i].clock >= cb->born)
				cb->lost++;
		}
	}
	batch->count = batch->used = batch->wanted = 0;
}

static void set_bits(struct pem_callback *cb, bool enabled)
{
	struct pem_async *a = cb->session->async;
	uint64_t bit = 1ull << cb->async->index;
	size_t i;

	pem_async__lock(a);
	cb->async->enabled = enabled;
	if (enabled)
		cb->async->since = pem_clock();
	if (cb->async->born == UINT64_MAX)
		cb->async->born = cb->async->since;
	if (!enabled) {
		cb->async->lost += lost_so_far(cb) - cb->async->lost_from;
		a->left_over = true;
	}
	a->enabled_count += enabled ? 1u : -1u;
	for (i = 0; i < cb->count; i++) {
		struct pem_demand *demand = cb->entry[i].demand;

		demand->async = enabled ? demand->async | bit : demand->async & ~bit;
		demand->first->async_ever |= enabled;
		demand->wake = a->asleep && demand->async;
	}
	if (!a->enabled_count && !a->follows_sources)
		drop_waiting(a);
	update_thread(a);
	if (enabled)
		follow_sources(cb->session);
	pthread_cond_broadcast(&a->changed);
	pem_async__unlock(a);
}

void pem_async__set_enabled(struct pem_callback *cb, bool enabled)
{
	struct pem_session *s = cb->session;
	struct pem_error error;

	if (cb->async->enabled == enabled)
		return;
	if (enabled) {
		/*
		 * All processes that raise the events must know of the callback from the first
		 * event on.
		 */
		pem_session__scan_producers(s);
		/* Lanes are followed from now on. Records that are there already are too old. */
		s->async->active = true;
		settle_all(cb);
		cb->async->lost_from = lost_so_far(cb);
	} else {
		settle_all(cb);
	}
	set_bits(cb, enabled);
	if (enabled)
		pem_session__open_sources(s, &error);
	pem_session__publish(s);
	pem_session__update_sources(s);
	if (enabled)
		pem_async__kick(s);
}

/* --- life --- */

static struct pem_async *make(struct pem_session *s)
{
	struct pem_async *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->session = s;
	a->pid = getpid();
	a->timer[0] = a->timer[1] = -1;
	a->limit = (size_t)s->geometry.chunk_bytes * pem_pool_geometry__first_chunks(&s->geometry);
	a->chunk = malloc(s->geometry.chunk_bytes);
	if (!a->chunk) {
		free(a);
		return NULL;
	}
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	return a;
}

void pem_async__free(struct pem_async *a)
{
	if (!a)
		return;
	/* In a child: the parent's thread may have been in the middle of any change. */
	if (pem_process.pid != (uint32_t)a->pid)
		return;
	if (pem_async__is_self(a)) {
		a->closed = a->stop = true;
		pthread_detach(a->thread);
		return;
	}
	pem_async__stop(a);
	pem_async__destroy(a);
}

void pem_async__destroy(struct pem_async *a)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		if (a->timer[i] >= 0)
			close(a->timer[i]);
	}
	pem_async_batch__free(&a->batch);
	pem_async_batch__free(&a->incoming);
	pem_context_table__free(a->contexts);
	pem_event_table__free(&a->events);
	free(a->streams);
	free(a->chunk);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
	free(a);
}

static int add_callback(struct pem_async *a, struct pem_async_callback *cb)
{
	unsigned i;

	pem_async__lock(a);
	for (i = 0; i < PEM_ASYNC_MAX && a->callbacks[i]; i++)
		;
	if (i < PEM_ASYNC_MAX) {
		cb->index = i;
		a->callbacks[i] = cb;
	}
	pem_async__unlock(a);
	return i < PEM_ASYNC_MAX ? 0 : -ENOSPC;
}

static int add_demands(struct pem_callback *cb, const struct pem_event_set *set,
		       const struct pem_context *context, struct pem_error *error)
{
	struct pem_demand *demand;
	int result = 0;
	size_t i;

	for (i = 0; !result && i < set->count; i++) {
		result = pem_session__bind(cb->session, set, i, context, PEM_USE_RECORDS, &demand,
					   error);
		if (result)
			return result;
		demand->want_async = true;
		cb->entry[cb->count++].demand = demand;
		if (pem_context__names_self(context))
			result = pem_session__join_self(cb->session, error);
	}
	return result;
}

static int register_in(struct pem_session *s, struct pem_callback *cb,
		       const struct pem_event_set *set, const struct pem_context *context,
		       struct pem_error *error)
{
	int result;

	if (!s->async)
		s->async = make(s);
	if (!s->async)
		return pem_error__set(error, -ENOMEM, "out of memory");
	cb->next = s->callbacks;
	s->callbacks = cb;
	result = add_callback(s->async, cb->async);
	if (result)
		return pem_error__set(error, result,
				      "more than %u asynchronous callbacks in one session",
				      PEM_ASYNC_MAX);
	result = add_demands(cb, set, context, error);
	if (!result)
		result = pem_async__start(s->async);
	return result;
}

struct pem_callback *
pem_session__register_async_callback(struct pem_session *session, const struct pem_event_set *set,
				     const struct pem_context *given,
				     void (*function)(const struct pem_record *record, void *arg),
				     void *arg, const struct pem_async_options *options,
				     struct pem_error *error)
{
	struct pem_context own, *context = &own;
	struct pem_async_options o = {0};
	struct pem_callback *cb;
	int result;

	result = pem_event_set__check(session, set, error);
	if (!result && !function)
		result = pem_error__lacks(error, "function to call back");
	if (!result)
		result = pem_context__copy(context, given, error);
	if (!result && options)
		result = PEM_READ_SIZED(pem_async_options, &o, options, max_delay_us, error);
	if (result) {
		errno = -result;
		return NULL;
	}
	cb = calloc(1, sizeof(*cb) + set->count * sizeof(cb->entry[0]));
	if (cb)
		cb->async = calloc(1, sizeof(*cb->async));
	if (!cb || !cb->async) {
		free(cb);
		pem_error__set(error, 0, "out of memory");
		return NULL;
	}
	cb->session = session;
	cb->async->handle = cb;
	cb->async->index = PEM_ASYNC_MAX;
	cb->async->born = UINT64_MAX;
	cb->async->function = function;
	cb->async->arg = arg;
	cb->async->max_delay_us = o.max_delay_us ? o.max_delay_us : PEM_ASYNC_DELAY_US_DEFAULT;
	pem_session__lock(session);
	result = register_in(session, cb, set, context, error);
	pem_session__unlock(session);
	if (!result)
		return cb;
	pem_async__unregister(cb);
	errno = -result;
	return NULL;
}

/* Does any callback still want an event? */
static bool is_wanted(const struct pem_session *s, const struct pem_demand *demand)
{
	const struct pem_callback *cb;
	size_t i;

	for (cb = s->callbacks; cb; cb = cb->next) {
		for (i = 0; cb->async && i < cb->count; i++) {
			if (cb->entry[i].demand == demand)
				return true;
		}
	}
	return false;
}

static void leave(struct pem_session *s, struct pem_callback *cb)
{
	struct pem_callback **link;
	size_t i;

	for (link = &s->callbacks; *link; link = &(*link)->next) {
		if (*link == cb) {
			*link = cb->next;
			break;
		}
	}
	for (i = 0; i < cb->count; i++) {
		cb->entry[i].demand->want_async = is_wanted(s, cb->entry[i].demand);
		pem_demand__unbind(cb->entry[i].demand);
	}
}

void pem_async__unregister(struct pem_callback *cb)
{
	struct pem_session *s = cb->session;
	struct pem_async *a = s->async;

	pem_session__lock(s);
	pem_async__set_enabled(cb, false);
	leave(s, cb);
	pem_session__unlock(s);
	if (a) {
		pem_async__lock(a);
		if (cb->async->index < PEM_ASYNC_MAX)
			a->callbacks[cb->async->index] = NULL;
		/*
		 * If this is the callbacks' thread, its own call goes on, and does not use the
		 * callback any more. A child has no such thread.
		 */
		while (a->running == cb->async && !pem_async__is_self(a) &&
		       pem_process.pid == (uint32_t)a->pid)
			pthread_cond_wait(&a->changed, &a->lock);
		pem_async__unlock(a);
	}
	free(cb->async);
	free(cb);
}
