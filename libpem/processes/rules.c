/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rules.c - publish the demands of a session: to its page for later processes, and to the processes
 * that it observes already
 */
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "core/gate.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "writer/log.h"
#include "producer/producer.h"
#include "util.h"

#include <pem/counted.h>

#include <string.h>
#include <unistd.h>

/*
 * Return the page's index of a context, -1 where there are too many. Contexts are never removed, so
 * what a process found out about a context stays true.
 */
int pem_session__context(struct pem_session *s, const struct pem_context *context, uint32_t pid,
			 uint32_t flags)
{
	struct pem_session_page *page = s->page;
	struct pem_session_context c = {.flags = flags |
						 (pid && context->follow ? PEM_CONTEXT_FOLLOW : 0),
					.pid = pid,
					.pid_namespace = pid ? pem_pid_namespace() : 0,
					.tid = context->tid,
					.cpu = pem_context__cpu(context),
					.in_namespace = context->in_namespace,
					.cgroup = context->cgroup};
	uint32_t i;

	memcpy(c.program, context->program, sizeof(c.program));
	for (i = 0; i < s->context_count; i++) {
		if (!memcmp(&page->contexts[i], &c, sizeof(c)))
			return (int)i;
	}
	if (i == PEM_CONTEXTS_MAX)
		return -1;
	page->contexts[i] = c;
	s->context_count = i + 1;
	/* UD */
	__atomic_store_n(&page->context_count, s->context_count, __ATOMIC_RELEASE);
	return (int)i;
}

/*
 * The page's index of a predicate's tests, -1 where there are too many. Equal tests of earlier
 * rules are shared.
 */
static int find_tests(struct pem_session *s, const struct pem_predicate *predicate)
{
	uint32_t count = predicate->test_count, i;
	struct pem_test *tests = s->page->tests;

	for (i = 0; i + count <= s->test_count; i++) {
		if (!memcmp(&tests[i], predicate->test, count * sizeof(*tests)))
			return (int)i;
	}
	if (s->test_count + count > PEM_SESSION_TESTS_MAX)
		return -1;
	memcpy(&tests[s->test_count], predicate->test, count * sizeof(*tests));
	s->test_count += count;
	return (int)(s->test_count - count);
}

/*
 * Does the log get no record of this event? The page must say so, since it is all that a recovery
 * has.
 */
static bool is_callback_only(const struct pem_session *s, struct pem_demand *first)
{
	return s->log && first->async_ever && !pem_log__takes(s->log, first);
}

/* What names a demand's cell in its rule. */
static uint32_t cell_of(const struct pem_demand *demand)
{
	if (!pem_predicate__gates(demand->predicate))
		return demand->cell;
	return demand->cell - 1u + PEM_RULE_GATED_CELLS;
}

/* flags: PEM_RULE_OF_LOG, or 0. */
static void add_rule(struct pem_session *s, const struct pem_demand *demand, uint32_t pid,
		     uint64_t action, uint32_t flags)
{
	int context = pem_session__context(s, &demand->context, pid, 0);
	int tests = demand->predicate ? find_tests(s, demand->predicate) : 0;
	struct pem_session_page *page = s->page;
	struct pem_rule *rule;

	if (context < 0 || tests < 0) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "more than %u contexts or %u tests of predicates at once: %s is "
				 "not observed",
				 PEM_CONTEXTS_MAX - 1, PEM_SESSION_TESTS_MAX, demand->event->name);
		return;
	}

	if (s->rule_count == PEM_RULES_MAX) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "more than %u stub events at once: %s is not observed",
				 PEM_RULES_MAX, demand->event->name);
		return;
	}
	rule = &page->rules[s->rule_count++];
	memset(rule, 0, sizeof(*rule));
	rule->event_id = demand->event->id;
	rule->context = (uint16_t)context;
	rule->test_first = (uint32_t)tests;
	rule->test_count = demand->predicate ? (uint16_t)demand->predicate->test_count : 0;
	rule->distribution = demand->distribution;
	rule->action = action;
	rule->max_level = pem_predicate__gates(demand->predicate);
	rule->flags = flags | PEM_RULE_OF_CELL(cell_of(demand)) |
		      (demand->first->counters ? PEM_RULE_COUNTERS : 0) |
		      (is_callback_only(s, demand->first) ? PEM_RULE_CALLBACK_ONLY : 0);
}

/*
 * Callbacks run in this process only. So a demand with a callback becomes two rules. The first of
 * them names this process and is applied here (pem_rule__find).
 */
static void write_rules_of(struct pem_session *s, const struct pem_demand *demand)
{
	uint64_t action = pem_demand__action(demand);
	bool of_log = demand->want_log && demand->first->records_differ;

	if (PEM_ACTION_FLAGS(action) & PEM_ACTION_CALLBACK)
		add_rule(s, demand, (uint32_t)getpid(), action, 0);
	action &= ~(uint64_t)PEM_ACTION_CALLBACK;
	/*
	 * An event that the overhead budget turned off still needs a rule. This rule comes before
	 * the rule for any event. A recovery needs the log's rule as long as there is a log.
	 */
	if (PEM_ACTION_FLAGS(action) & (PEM_ACTION_LOG | PEM_ACTION_STAT) ||
	    (demand->log && demand->first->detail == PEM_DETAIL_OFF) || of_log ||
	    (!demand->cell && is_callback_only(s, demand->first)))
		add_rule(s, demand, demand->context.pid, action, of_log ? PEM_RULE_OF_LOG : 0);
}

/* The rules of events that open, or close, a gate. use: what they do to it. */
static void write_gate_rules(struct pem_session *s, const struct pem_gate *gate,
			     const struct pem_event *const *events, size_t count, uint32_t use)
{
	size_t i;

	for (i = 0; i < count && s->rule_count < PEM_RULES_MAX; i++)
		s->page->rules[s->rule_count++] = (struct pem_rule){
			.event_id = events[i]->id,
			.action = PEM_ACTION(PEM_ACTION_MORE, PEM_NO_FIELD, 0, 0, 1),
			.max_level = gate->flags,
			.flags = PEM_RULE_OF_CELL(use)};
}

/* They come first: a gate that is not kept would make statistics wrong. */
static void write_gates(struct pem_session *s)
{
	uint32_t used = pem_session__used_gates(s), i;
	const struct pem_gate *gate;

	for (i = 0; i < used; i++) {
		gate = s->gates->gate[i];
		write_gate_rules(s, gate, gate->open, gate->open_count,
				 PEM_RULE_GATE_EVENTS + 2 * i);
		write_gate_rules(s, gate, gate->close, gate->close_count,
				 PEM_RULE_GATE_EVENTS + 2 * i + 1);
	}
}

/* The rule for events that no handle names: those that an enabled log takes by their level. */
static void write_rule_of_level(struct pem_session *s)
{
	const struct pem_log *log = s->log;
	uint32_t flags = PEM_ACTION_LOG;
	int context;

	if (!log || !log->enabled || !log->any_level || s->rule_count == PEM_RULES_MAX)
		return;
	context = pem_session__context(s, &log->context, log->context.pid, 0);
	if (context < 0) {
		pem_session__say(s, PEM_LOG_WARNING,
				 "more than %u contexts at once: events that come later are not "
				 "logged",
				 PEM_CONTEXTS_MAX - 1);
		return;
	}
	if (log->context.tid != PEM_ANY || log->context.one_cpu)
		flags |= PEM_ACTION_FILTER;
	s->page->rules[s->rule_count++] = (struct pem_rule){
		.event_id = PEM_RULE_ANY_EVENT,
		.context = (uint16_t)context,
		.action = PEM_ACTION(flags, PEM_NO_FIELD, 0, 0, 1),
		.max_level = log->any_level,
	};
}

static void write_rules(struct pem_session *s)
{
	struct pem_session_page *page = s->page;
	const struct pem_demand *demand;
	size_t i;

	__atomic_store_n(&page->generation, ++s->generation, __ATOMIC_RELAXED);
	/* UB */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	s->rule_count = s->test_count = 0;
	write_gates(s);
	for (i = 0; i < s->demand_count; i++) {
		if (s->demands[i].event->source_kind != PEM_SOURCE_STUB)
			continue;
		for (demand = &s->demands[i]; demand; demand = demand->next)
			write_rules_of(s, demand);
	}
	write_rule_of_level(s);
	page->rule_count = s->rule_count;
	page->test_count = s->test_count;
	/* UC */
	__atomic_store_n(&page->generation, ++s->generation, __ATOMIC_RELEASE);
	/* UK */
	__atomic_store_n(&page->gates, (1u << pem_session__used_gates(s)) - 1, __ATOMIC_RELEASE);
	pem_session__update_standby(s);
}

/* The action word for an event in a process; 0: the session does not want the event there. */
static uint64_t wanted_of(struct pem_session *s, const struct pem_member *m, uint32_t id)
{
	const struct pem_rule *rules[PEM_EVENT_RULES_MAX];
	uint32_t count = pem_rule__find(s->page, s->rule_count, m->contexts, id, rules);
	const struct pem_event *event;

	if (!count || s->page->closed)
		return 0;
	event = pem_dir__event(s, m->dir, id);
	if (rules[0]->event_id == PEM_RULE_ANY_EVENT && rules[0]->max_level && event &&
	    event->level > rules[0]->max_level)
		return 0;
	return pem_rules__action(rules, count) & ~(uint64_t)PEM_ACTION_CALLBACK;
}

/*
 * Does the process itself decide on this event? It does where the session does not know the event's
 * level yet: the process knows the level and has begun to apply the rules of levels.
 */
static bool is_theirs(struct pem_session *s, const struct pem_member *m, uint32_t id)
{
	const struct pem_rule *rules[PEM_EVENT_RULES_MAX];

	if (s->page->closed || pem_dir__event(s, m->dir, id))
		return false;
	return pem_rule__find(s->page, s->rule_count, m->contexts, id, rules) &&
	       rules[0]->event_id == PEM_RULE_ANY_EVENT && rules[0]->max_level;
}

static bool has_applied(const struct pem_member *m, const uint8_t *enable, uint32_t events)
{
	uint32_t i;

	/* ce */
	if (__atomic_load_n(&m->control->session[m->session_index].joined, __ATOMIC_ACQUIRE) !=
	    m->incarnation)
		return false;
	for (i = 0; i < events; i++) {
		/* ug */
		if (__atomic_load_n(&enable[i], __ATOMIC_ACQUIRE) & 1u << m->session_index)
			return true;
	}
	return false;
}

static void apply_to_page(struct pem_session *s, struct pem_member *m, const uint32_t *ids,
			  const struct pem_member_page *page)
{
	uint32_t capacity = PEM_EVENT_CAPACITY(page->event_count), i;
	bool refused = page->event_count && m->producer &&
		       pem_producer__is_misfit(s, m->producer, page->event_base);
	uint8_t *enable = (uint8_t *)page->header + sizeof(*page->header);
	uint64_t *action = (uint64_t *)(enable + capacity) + m->session_index, wanted;
	uint8_t bit = (uint8_t)(1u << m->session_index);
	bool applied = has_applied(m, enable, page->event_count);

	ids += page->event_base;
	for (i = 0; i < page->event_count; i++) {
		/* pb */
		if (applied && !refused &&
		    is_theirs(s, m, __atomic_load_n(&ids[i], __ATOMIC_ACQUIRE)))
			continue;
		/* pb */
		wanted = refused ? 0 : wanted_of(s, m, __atomic_load_n(&ids[i], __ATOMIC_ACQUIRE));
		/*
		 * The process has filters and parts of the earlier rules. It must read the rules
		 * again.
		 */
		if (PEM_ACTION_FLAGS(wanted) &
		    (PEM_ACTION_FILTER | PEM_ACTION_DISTRIBUTION | PEM_ACTION_MORE))
			wanted |= PEM_ACTION_CHECK;
		if (PEM_ACTION_FLAGS(wanted) & ~(PEM_ACTION_FILTER | PEM_ACTION_CHECK)) {
			/* UF */
			__atomic_store_n(&action[i * PEM_SESSIONS_MAX],
					 PEM_ACTION_OF_INCARNATION(wanted, m->incarnation),
					 __ATOMIC_RELEASE);
			/* UG */
			__atomic_fetch_or(&enable[i], bit, __ATOMIC_RELEASE);
			m->was_wanted = true;
		} else {
			/* UG */
			__atomic_fetch_and(&enable[i], (uint8_t)~bit, __ATOMIC_RELEASE);
		}
	}
}

void pem_session__apply_to(struct pem_session *s, struct pem_member *m)
{
	const uint32_t *ids = pem_member__event_ids(m);
	struct pem_member_page page;
	uint32_t i;

	/* The process may have joined by itself since it was asked. */
	if (m->session_index < 0) {
		pem_member__find_index(s, m);
		pem_member__find_contexts(s, m);
	}
	if (!ids || !pem_member__is_served(m))
		return;
	/* UE, ue: contexts come before actions, see pem_process__apply_to. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (i = 0; i < PEM_PROVIDERS_MAX; i++) {
		if (pem_member__page(m, i, &page))
			apply_to_page(s, m, ids, &page);
	}
}

/* Tell the processes their contexts before there are rules for these contexts. */
static void publish_contexts(struct pem_session *s)
{
	struct pem_demand *demand;
	struct pem_member *m;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		if (s->demands[i].event->source_kind != PEM_SOURCE_STUB)
			continue;
		for (demand = &s->demands[i]; demand; demand = demand->next)
			demand->page_context =
				pem_session__context(s, &demand->context, demand->context.pid, 0);
	}
	if (s->log && s->log->any_level)
		pem_session__context(s, &s->log->context, s->log->context.pid, 0);
	for (m = s->processes->members; m; m = m->next)
		pem_member__find_contexts(s, m);
}

void pem_session__publish(struct pem_session *s)
{
	struct pem_member *m;

	publish_contexts(s);
	write_rules(s);
	/* UE, ue: contexts come before actions, see pem_process__apply_to */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (s->self_index >= 0 && pem_process__lock()) {
		pem_process__apply((unsigned)s->self_index);
		pem_process__unlock();
	}
	for (m = s->processes->members; m; m = m->next)
		pem_session__apply_to(s, m);
}
