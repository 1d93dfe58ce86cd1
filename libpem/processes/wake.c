/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * wake.c - set PEM_ACTION_WAKE for events that asynchronous callbacks want, in the rules, in this
 * process and in all others
 *
 * Only this bit of each word changes. A change of any other bit would make a process that reads the
 * rules at the moment read them again; this one does not. If such a process then puts an older word
 * into its page, the next call mends it.
 */
#include "core/demand.h"
#include "core/core.h"
#include "processes/processes.h"
#include "producer/producer.h"

#include <stdlib.h>
#include <unistd.h>

/* Ids of events that callbacks want, open-addressed. An id of 0 is free. */
#define SET_SIZE (2 * PEM_DEMANDS_MAX)
struct id_set {
	uint32_t id[SET_SIZE];
};

static uint32_t *dir(struct id_set *set, uint32_t id)
{
	uint32_t i = id % SET_SIZE;

	while (set->id[i] && set->id[i] != id)
		i = (i + 1) % SET_SIZE;
	return &set->id[i];
}

static void set_wake(uint64_t *action, uint32_t incarnation, bool wake)
{
	uint64_t word = __atomic_load_n(action, __ATOMIC_RELAXED), wanted;

	do {
		/* A word that is empty or belongs to another session stays as it is. */
		if (!(word & PEM_ACTION_LOG) || PEM_ACTION_INCARNATION(word) != incarnation)
			return;
		wanted = wake ? word | PEM_ACTION_WAKE : word & ~(uint64_t)PEM_ACTION_WAKE;
	} while (wanted != word &&
		 !__atomic_compare_exchange_n(action, &word, wanted, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
}

static void set_in_page(struct id_set *set, struct pem_control_header *header, const uint32_t *ids,
			uint32_t count, uint32_t session_index, uint32_t incarnation, bool wake)
{
	uint64_t *actions =
		(uint64_t *)((uint8_t *)(header + 1) + PEM_EVENT_CAPACITY(count)) + session_index;
	uint32_t i, id;

	for (i = 0; i < count; i++) {
		/* pb */
		id = __atomic_load_n(&ids[i], __ATOMIC_ACQUIRE);
		if (id && *dir(set, id))
			set_wake(&actions[(size_t)i * PEM_SESSIONS_MAX], incarnation, wake);
	}
}

static void set_in_member(struct id_set *set, struct pem_member *m, bool wake)
{
	const uint32_t *ids = pem_member__event_ids(m);
	struct pem_member_page page;
	uint32_t i;

	if (!ids || !pem_member__is_served(m))
		return;
	for (i = 0; i < PEM_PROVIDERS_MAX; i++) {
		if (pem_member__page(m, i, &page))
			set_in_page(set, page.header, ids + page.event_base, page.event_count,
				    (uint32_t)m->session_index, m->incarnation, wake);
	}
}

static void set_in_self(struct id_set *set, uint32_t session_index, bool wake)
{
	const struct pem_provider *provider;

	if (!pem_process__lock())
		return;
	for (provider = pem_process.providers; provider; provider = provider->next)
		set_in_page(set, provider->page, provider->event_ids, provider->event_count,
			    session_index, pem_process.joined[session_index].incarnation, wake);
	pem_process__unlock();
}

bool pem_session__set_wake(struct pem_session *s, bool wake)
{
	struct id_set *set = calloc(1, sizeof(*set)); /* too large for a small stack */
	const struct pem_producer *p;
	struct pem_member *m;
	bool all = true;
	size_t i;

	if (!set)
		return false;
	for (i = 0; i < s->demand_count; i++) {
		if (pem_demand__async(&s->demands[i]))
			*dir(set, s->demands[i].event->id) = s->demands[i].event->id;
	}
	for (i = 0; i < s->rule_count; i++) {
		if (*dir(set, s->page->rules[i].event_id))
			set_wake(&s->page->rules[i].action, 0, wake);
	}
	if (s->self_index >= 0)
		set_in_self(set, (uint32_t)s->self_index, wake);
	for (m = s->processes->members; m; m = m->next)
		set_in_member(set, m, wake);
	for (p = s->processes->producers; p; p = p->next)
		all &= p->member || p->dead || p->pid == (uint32_t)getpid();
	free(set);
	return all;
}
