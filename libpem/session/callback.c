/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * callback.c - synchronous callbacks: a function called in the producing thread, in this process
 *
 * Asynchronous callbacks are in callbacks/callbacks.c; the parts common to both are here.
 *
 * Notify runs against enabling and unregistering (Dekker's pattern, both sides sequentially
 * consistent). Notify raises 'running' and then reads 'enabled'. Unregister clears 'enabled' and
 * then waits until 'running' is 0. At least one of the two sees the other.
 */
#include "callbacks/callbacks.h"
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "processes/processes.h"
#include "producer/producer.h"
#include "util.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pem_sync_callback *cell(const struct pem_callback *cb, size_t i)
{
	return &pem_process.joined[cb->session->self_index].callback[cb->entry[i].index];
}

/*
 * Find a free cell of this process's table. Returns -1 where there is none. The session's mutex is
 * held.
 */
static int find_cell(struct pem_joined *joined)
{
	uint32_t i;

	for (i = 0; i < PEM_CALLBACKS_MAX; i++) {
		/*
		 * he: pairs with unregister's release; all that a running callback read of the cell
		 * was read before
		 */
		if (!__atomic_load_n(&joined->callback[i].event_id, __ATOMIC_ACQUIRE))
			return (int)i;
	}
	return -1;
}

static int add_entry(struct pem_callback *cb, const struct pem_event_set *set, size_t i,
		     const struct pem_context *context,
		     void (*function)(const struct pem_record *, void *), void *arg,
		     struct pem_error *error)
{
	struct pem_joined *joined = &pem_process.joined[cb->session->self_index];
	const struct pem_event *event = set->events[i];
	int index = find_cell(joined), result;
	struct pem_demand *demand;
	struct pem_sync_callback *c;

	if (event->source_kind != PEM_SOURCE_STUB)
		return pem_error__set(
			error, -ENOTSUP,
			"%s is not raised by a stub: no thread of this process could call back",
			event->name);
	if (index < 0)
		return pem_error__set(error, -ENOMEM, "more than %u callbacks in one session",
				      PEM_CALLBACKS_MAX);
	result = pem_session__bind(cb->session, set, i, context, PEM_USE_CALLBACK, &demand, error);
	if (result)
		return result;
	c = &joined->callback[index];
	c->event = event;
	c->function = function;
	c->arg = arg;
	c->tid = context->tid;
	c->cpu = pem_context__cpu(context);
	c->tests = demand->predicate ? demand->predicate->test : NULL;
	c->test_count = demand->predicate ? demand->predicate->test_count : 0;
	__atomic_store_n(&c->missed, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&c->enabled, 0, __ATOMIC_RELAXED);
	/* HA */
	__atomic_store_n(&c->event_id, event->id, __ATOMIC_RELEASE);
	/* HB */
	if ((uint32_t)index >= joined->callback_count)
		__atomic_store_n(&joined->callback_count, (uint32_t)index + 1, __ATOMIC_RELEASE);
	cb->entry[cb->count].demand = demand;
	cb->entry[cb->count++].index = (unsigned)index;
	return 0;
}

/* Store whether an enabled synchronous handle calls back on this demand. */
static void update_demand(struct pem_session *s, struct pem_demand *demand)
{
	const struct pem_callback *cb;
	size_t i;

	demand->callback = false;
	for (cb = s->callbacks; cb; cb = cb->next) {
		for (i = 0; !cb->async && i < cb->count; i++) {
			if (cb->entry[i].demand == demand && cb->enabled)
				demand->callback = true;
		}
	}
}

static void set_enabled(struct pem_callback *cb, uint32_t enabled)
{
	size_t i;

	pem_session__lock(cb->session);
	cb->session->was_enabled |= enabled != 0;
	if (cb->async) {
		pem_async__set_enabled(cb, enabled);
		pem_session__unlock(cb->session);
		return;
	}
	cb->enabled = enabled;
	for (i = 0; i < cb->count; i++) {
		/* HC */
		__atomic_store_n(&cell(cb, i)->enabled, enabled, __ATOMIC_SEQ_CST);
		update_demand(cb->session, cb->entry[i].demand);
	}
	pem_session__publish(cb->session);
	pem_session__unlock(cb->session);
}

struct pem_callback *
pem_session__register_callback(struct pem_session *session, const struct pem_event_set *set,
			       const struct pem_context *given,
			       void (*function)(const struct pem_record *record, void *arg),
			       void *arg, struct pem_error *error)
{
	struct pem_context own, *context = &own;
	struct pem_callback *cb;
	int result;
	size_t i;

	result = pem_event_set__check(session, set, error);
	if (!result && !function)
		result = pem_error__lacks(error, "function to call back");
	if (!result)
		result = pem_context__copy(context, given, error);
	if (result) {
		errno = -result;
		return NULL;
	}
	cb = calloc(1, sizeof(*cb) + set->count * sizeof(cb->entry[0]));
	if (!cb) {
		pem_error__set(error, 0, "out of memory");
		return NULL;
	}
	pem_session__lock(session);
	cb->session = session;
	cb->pid = pem_process.pid;
	if (context->pid != PEM_ANY && context->pid != (uint32_t)getpid())
		result = pem_error__set(error, -ENOTSUP,
					"process %u is not this one: a synchronous callback runs "
					"in the producing thread; for other processes, use "
					"pem_session__register_async_callback()",
					context->pid);
	else
		result = pem_session__join_self(session, error);
	for (i = 0; !result && i < set->count; i++)
		result = add_entry(cb, set, i, context, function, arg, error);
	cb->next = session->callbacks;
	session->callbacks = cb;
	if (result) {
		pem_callback__unregister(cb);
		cb = NULL;
		errno = -result;
	}
	pem_session__unlock(session);
	return cb;
}

void pem_callback__enable(struct pem_callback *callback)
{
	if (callback)
		set_enabled(callback, 1);
}

void pem_callback__disable(struct pem_callback *callback)
{
	if (callback)
		set_enabled(callback, 0);
}

int pem_callback__counts(struct pem_callback *callback, struct pem_callback_counts *out)
{
	struct pem_callback_counts counts = {0};
	size_t i;

	if (!callback || pem_sized__check(out))
		return -EINVAL;
	pem_session__lock(callback->session);
	for (i = 0; !callback->async && i < callback->count; i++)
		counts.lost += __atomic_load_n(&cell(callback, i)->missed, __ATOMIC_RELAXED);
	if (callback->async)
		pem_async__counts(callback, &counts);
	pem_session__unlock(callback->session);
	pem_sized__write(out, 0, &counts, sizeof(counts));
	return 0;
}

int pem_callback__settle(struct pem_callback *callback)
{
	if (!callback)
		return -EINVAL;
	return callback->async ? pem_async__catch_up(callback) : 0;
}

void pem_callback__unregister(struct pem_callback *cb)
{
	const struct pem_thread_full *self = (const struct pem_thread_full *)pem_thread_current;
	const struct pem_sync_callback *inside =
		pem_thread_current != &pem_thread_none ? self->in_callback : NULL;
	struct pem_callback **link;
	struct pem_session *s;
	size_t i;

	if (!cb)
		return;
	if (cb->async) {
		pem_async__unregister(cb);
		return;
	}
	s = cb->session;
	if (cb->count)
		set_enabled(cb, 0);
	/*
	 * Inside the callback one of the running calls is this thread's own. In a child none of the
	 * others exists.
	 */
	for (i = 0; i < cb->count; i++) {
		/* hc, hd */
		while (cb->pid == pem_process.pid &&
		       __atomic_load_n(&cell(cb, i)->running, __ATOMIC_SEQ_CST) >
			       (inside == cell(cb, i) ? 1u : 0u))
			sched_yield();
		/* HE */
		__atomic_store_n(&cell(cb, i)->event_id, 0, __ATOMIC_RELEASE);
	}
	pem_session__lock(s);
	for (i = 0; i < cb->count; i++)
		pem_demand__unbind(cb->entry[i].demand);
	for (link = &s->callbacks; *link; link = &(*link)->next) {
		if (*link == cb) {
			*link = cb->next;
			break;
		}
	}
	pem_session__unlock(s);
	free(cb);
}
