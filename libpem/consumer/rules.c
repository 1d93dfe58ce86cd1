/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rules.c - publish what a session wants: to its page for processes to come, to the processes that are there
 */
#include "consumer/session.h"
#include "producer/producer.h"
#include "util.h"

#include <string.h>
#include <unistd.h>

static void add_rule(struct pem_session *s, const struct pem_wish *wish, uint32_t pid,
		     uint64_t action)
{
	struct pem_session_page *page = s->page;
	struct pem_rule *rule;

	if (page->rule_count == PEM_RULES_MAX) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "more than %u stub events at once: %s is not observed",
				 PEM_RULES_MAX, wish->event->name);
		return;
	}
	rule = &page->rules[page->rule_count++];
	memset(rule, 0, sizeof(*rule));
	rule->event_id = wish->event->id;
	rule->pid = pid;
	rule->tid = wish->context.tid;
	rule->cpu = wish->context.cpu;
	rule->action = action;
}

/*
 * Callbacks run in this process only, so that a wish with one becomes two rules: the first that names a process
 * wins there (pem_rule__find).
 */
static void write_rules(struct pem_session *s)
{
	struct pem_session_page *page = s->page;
	uint32_t self = (uint32_t)getpid();
	const struct pem_wish *wish;
	uint64_t action;
	size_t i;

	__atomic_store_n(&page->generation, page->generation + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	page->rule_count = 0;
	for (i = 0; i < s->wish_count; i++) {
		wish = &s->wishes[i];
		if (wish->event->source_kind != PEM_SOURCE_STUB)
			continue;
		action = pem_wish__action(wish);
		if (PEM_ACTION_FLAGS(action) & PEM_ACTION_CALLBACK)
			add_rule(s, wish, self, action);
		action &= ~(uint64_t)PEM_ACTION_CALLBACK;
		if (PEM_ACTION_FLAGS(action) & (PEM_ACTION_LOG | PEM_ACTION_STAT))
			add_rule(s, wish, wish->context.pid, action);
	}
	if (s->log && s->log->enabled && s->log->any_event && page->rule_count < PEM_RULES_MAX)
		page->rules[page->rule_count++] = (struct pem_rule){
			.event_id = PEM_RULE_ANY_EVENT,
			.cpu = PEM_NO_CPU,
			.action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1),
		};
	__atomic_store_n(&page->generation, page->generation + 1, __ATOMIC_RELEASE);
}

/* One provider's page in another process's control file: hostile, so every number is checked against the mapping. */
static void apply_to_page(struct pem_session *s, struct pem_producer *p, uint64_t offset,
			  uint64_t bytes)
{
	uint8_t *base = (uint8_t *)p->control + offset, *enable;
	struct pem_control_header *header = (struct pem_control_header *)base;
	const uint32_t *ids = pem_pool__event_ids(&p->ring);
	uint32_t count, capacity, first, i;
	const struct pem_rule *rule;
	uint64_t *action, wanted;

	if (bytes < sizeof(*header))
		return;
	count = __atomic_load_n(&header->event_count, __ATOMIC_RELAXED);
	first = __atomic_load_n(&header->event_base, __ATOMIC_RELAXED);
	capacity = PEM_EVENT_CAPACITY(count);
	if (count > PEM_EVENTS_PER_PROVIDER_MAX || first > p->ring.event_capacity ||
	    count > p->ring.event_capacity - first ||
	    bytes < sizeof(*header) + capacity +
			    (uint64_t)capacity * PEM_SESSIONS_MAX * sizeof(*action))
		return;
	enable = base + sizeof(*header);
	action = (uint64_t *)(enable + capacity) + (uint64_t)p->slot * capacity;
	for (i = 0; i < count; i++) {
		rule = pem_rule__find(s->page, s->page->rule_count, p->pid,
				      __atomic_load_n(&ids[first + i], __ATOMIC_ACQUIRE));
		wanted = rule && !s->page->closed ? rule->action & ~(uint64_t)PEM_ACTION_CALLBACK
						  : 0;
		if (PEM_ACTION_FLAGS(wanted) & ~PEM_ACTION_FILTER) {
			__atomic_store_n(&action[i],
					 PEM_ACTION_OF_INCARNATION(wanted, p->incarnation),
					 __ATOMIC_RELEASE);
			__atomic_fetch_or(&enable[i], (uint8_t)(1u << p->slot), __ATOMIC_RELEASE);
		} else {
			__atomic_fetch_and(&enable[i], (uint8_t) ~(1u << p->slot),
					   __ATOMIC_RELEASE);
		}
	}
}

void pem_session__apply_to(struct pem_session *s, struct pem_producer *p)
{
	uint64_t offset, bytes;
	uint32_t count, i;

	if (!p->control || p->dead)
		return;
	count = __atomic_load_n(&p->control->provider_count, __ATOMIC_ACQUIRE);
	for (i = 0; i < count && i < PEM_PROVIDERS_MAX; i++) {
		offset = __atomic_load_n(&p->control->provider[i].offset, __ATOMIC_RELAXED);
		bytes = __atomic_load_n(&p->control->provider[i].bytes, __ATOMIC_RELAXED);
		if (offset % 64 == 0 && offset < p->control_bytes &&
		    bytes <= p->control_bytes - offset)
			apply_to_page(s, p, offset, bytes);
	}
}

void pem_session__publish(struct pem_session *s)
{
	struct pem_producer *p;

	write_rules(s);
	if (s->self_slot >= 0 && pem_process__lock()) {
		pem_process__apply((unsigned)s->self_slot);
		pem_process__unlock();
	}
	for (p = s->producers; p; p = p->next) {
		if (p->pid != (uint32_t)getpid())
			pem_session__apply_to(s, p);
	}
}
