/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * apply.c - apply a session's rules to this process's events: enable bytes, action words, filters
 *
 * A filter is a private copy of what a rule requires of thread, CPU and fields. Threads read
 * filters without a lock, so a filter is never changed or freed. A changed rule gets another
 * filter. Rules with equal filters share one.
 */
#include "membership.h"
#include "producer/producer.h"

#include <pem/counted.h>

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

/*
 * The memory for all filters of one process in its whole life: some thousand different filters of
 * two tests.
 */
#define FILTER_BYTES (512u << 10)

static struct {
	uint8_t *memory;
	size_t used;
} filters; /* under the process lock; a child of fork continues with its copy */

static size_t filter_bytes(uint32_t test_count)
{
	return sizeof(struct pem_filter) + (test_count ? test_count : 1) * sizeof(struct pem_test);
}

/* Find or store the filter that equals wanted. NULL: no memory. */
static const struct pem_filter *intern(const struct pem_filter *wanted)
{
	size_t bytes = filter_bytes(wanted->test_count), at;
	struct pem_filter *filter;

	if (!filters.memory) {
		if (pem_restricted())
			return NULL;
		filters.memory = mmap(NULL, FILTER_BYTES, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (filters.memory == MAP_FAILED) {
			filters.memory = NULL;
			return NULL;
		}
	}
	for (at = 0; at < filters.used; at += filter_bytes(filter->test_count)) {
		filter = (struct pem_filter *)(filters.memory + at);
		if (filter->test_count == wanted->test_count && !memcmp(filter, wanted, bytes))
			return filter;
	}
	if (filters.used + bytes > FILTER_BYTES)
		return NULL;
	filter = (struct pem_filter *)(filters.memory + filters.used);
	memcpy(filter, wanted, bytes);
	filters.used += bytes;
	return filter;
}

/*
 * Set the members that only stubs use. A stub compares the thread in any case, and follows at least
 * one test.
 */
static void prepare_for_stubs(struct pem_filter *filter, struct pem_test *test)
{
	uint32_t i;

	filter->stub_mask = filter->tid ? ~0u : 0;
	filter->stub_tid = filter->tid;
	if (filter->cpu != PEM_NO_CPU) { /* fits no thread, so the library checks the CPU */
		filter->stub_mask = 0;
		filter->stub_tid = 1;
	}
	if (!filter->test_count)
		test[0] = (struct pem_test){
			.span = ~0ull, .on_true = PEM_TEST_PASS, .on_false = PEM_TEST_PASS};
	for (i = 0; i < filter->test_count; i++)
		test[i].is_followed = test[i].on_true == i + 1;
}

/*
 * Return a rule's filter. NULL and *ok true: the rule needs none. NULL and *ok false: the filter
 * cannot be made, and the event must stay off.
 */
static const struct pem_filter *filter_of(const struct pem_session_page *page,
					  const struct pem_rule *rule, bool *ok)
{
	struct {
		struct pem_filter filter;
		struct pem_test test[PEM_TESTS_MAX];
	} wanted = {0};
	const struct pem_filter *filter;
	uint32_t first = __atomic_load_n(&rule->test_first, __ATOMIC_RELAXED);
	uint32_t count = __atomic_load_n(&rule->test_count, __ATOMIC_RELAXED);

	*ok = true;
	wanted.filter.tid = page->contexts[rule->context % PEM_CONTEXTS_MAX].tid;
	wanted.filter.cpu = page->contexts[rule->context % PEM_CONTEXTS_MAX].cpu;
	wanted.filter.distribution = rule->distribution;
	wanted.filter.test_count = count;
	if (!(PEM_ACTION_FLAGS(rule->action) & (PEM_ACTION_FILTER | PEM_ACTION_DISTRIBUTION)))
		return NULL;
	*ok = false;
	if (count > PEM_TESTS_MAX || first > PEM_SESSION_TESTS_MAX - count)
		return NULL;
	memcpy(wanted.test, &page->tests[first], count * sizeof(struct pem_test));
	if (!pem_tests__valid(wanted.test, count, PEM_RECORD_BYTES_MAX))
		return NULL;
	prepare_for_stubs(&wanted.filter, &wanted.test[0]);
	filter = intern(&wanted.filter);
	*ok = filter != NULL;
	return filter;
}

static uint8_t *page_enable(const struct pem_provider *provider)
{
	return (uint8_t *)provider->page + sizeof(struct pem_control_header);
}

static uint64_t *page_actions(const struct pem_provider *provider)
{
	return (uint64_t *)(page_enable(provider) + PEM_EVENT_CAPACITY(provider->event_count));
}

/* Store what a rule asks for. A thread never uses an action with the filter of another one. */
static void set_part(struct pem_part *part, uint64_t action, const struct pem_filter *filter,
		     uint32_t event_index, uint32_t gates)
{
	if (part->filter != filter || part->event_index != event_index || part->gates != gates) {
		__atomic_fetch_or(&part->action, PEM_ACTION_CHECK, __ATOMIC_RELAXED);
		/* UH */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		__atomic_store_n(&part->event_index, event_index, __ATOMIC_RELAXED);
		__atomic_store_n(&part->filter, filter, __ATOMIC_RELAXED);
		__atomic_store_n(&part->gates, gates, __ATOMIC_RELAXED);
	}
	/* UF */
	__atomic_store_n(&part->action, action, __ATOMIC_RELEASE);
}

/*
 * Store the parts of an event that have further cells. Cells that the event had before stay as they
 * are: no event leads to them any more.
 */
static void set_further(struct pem_joined *joined, uint32_t event_index,
			const struct pem_rule *const *rules, uint32_t count)
{
	const struct pem_filter *filter;
	uint64_t cells = 0;
	uint32_t i, cell;
	bool ok, has_gates;

	for (i = 0; i < count; i++) {
		cell = PEM_RULE_CELL(rules[i]->flags);
		has_gates = cell >= PEM_RULE_GATED_CELLS;
		cell -= has_gates ? PEM_RULE_GATED_CELLS - 1 : 0;
		if (!cell || cell > PEM_FURTHER_CELLS)
			continue;
		filter = filter_of(joined->page, rules[i], &ok);
		if (!ok)
			continue;
		set_part(&joined->further[cell - 1],
			 PEM_ACTION_OF_INCARNATION(rules[i]->action, joined->incarnation), filter,
			 event_index, has_gates ? rules[i]->max_level : 0);
		cells |= 1ull << (cell - 1);
	}
	/* UJ */
	__atomic_store_n(&joined->further_of[event_index], cells, __ATOMIC_RELEASE);
}

static void set_counted(struct pem_joined *joined, uint32_t event_index,
			const struct pem_rule *const *rules, uint32_t count)
{
	uint64_t *word = &joined->counted[event_index / 64], bit = 1ull << event_index % 64;
	uint32_t i;

	for (i = 0; i < count && !(rules[i]->flags & PEM_RULE_COUNTERS); i++)
		;
	if (i < count)
		__atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
}

/* Store an event's own filter for stubs and for the library. at is the event's action word. */
static void set_filter(struct pem_provider *provider, uint32_t i, unsigned session_index,
		       uint64_t *at, const struct pem_filter *filter)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	uint32_t event_index = provider->event_base + i;

	if (!(filter || joined->has_filters) || filter == joined->filter[event_index])
		return;
	joined->has_filters = true;
	/*
	 * A thread that sees the new filter also sees these bits or a later word: pem_filter_begin.
	 */
	__atomic_fetch_or(at, PEM_ACTION_FILTER | PEM_ACTION_CHECK, __ATOMIC_RELAXED);
	if (joined->has_parts)
		__atomic_fetch_or(&joined->own_action[event_index], PEM_ACTION_CHECK,
				  __ATOMIC_RELAXED);
	/* UH */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	/* UH */
	__atomic_store_n(&joined->filter[event_index], filter, __ATOMIC_RELEASE);
	/* UH */
	if (provider->filters)
		__atomic_store_n(&provider->filters[i * PEM_SESSIONS_MAX + session_index], filter,
				 __ATOMIC_RELEASE);
}

/*
 * The rule that gives the event its own filter: the rule of its own cell, or the only rule. NULL:
 * the event has further parts alone.
 */
static const struct pem_rule *first_of(const struct pem_rule *const *rules, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!PEM_RULE_CELL(rules[i]->flags))
			return rules[i];
	}
	return count && !pem_rules__need_parts(rules, count) ? rules[0] : NULL;
}

static void apply_to_event(struct pem_provider *provider, uint32_t i, unsigned session_index,
			   const struct pem_rule *const *rules, uint32_t count)
{
	uint64_t *action = &page_actions(provider)[i * PEM_SESSIONS_MAX + session_index];
	struct pem_joined *joined = &pem_process.joined[session_index];
	uint64_t wanted = pem_rules__action(rules, count), own = 0;
	const struct pem_rule *first = first_of(rules, count);
	uint32_t event_index = provider->event_base + i;
	const struct pem_filter *filter = NULL;
	uint8_t bit = (uint8_t)(1u << session_index);
	bool several = PEM_ACTION_FLAGS(wanted) & PEM_ACTION_MORE, ok = several;

	if (pem_process.borrows_pages)
		return;
	if (first && PEM_ACTION_FLAGS(first->action)) {
		filter = filter_of(joined->page, first, &ok);
		own = ok ? PEM_ACTION_OF_INCARNATION(first->action, joined->incarnation) : 0;
	}
	if (!ok && !several) {
		/* UG */
		__atomic_fetch_and(&page_enable(provider)[i], (uint8_t)~bit, __ATOMIC_RELEASE);
		__atomic_store_n(action, 0, __ATOMIC_RELAXED);
		return;
	}
	set_counted(joined, event_index, rules, count);
	pem_gates__apply(session_index, event_index, rules, count, joined->asked);
	joined->has_parts |= several;
	if (several)
		set_further(joined, event_index, rules, count);
	set_filter(provider, i, session_index, action, filter);
	/*
	 * Store it also without further parts: a thread that saw an earlier action word reads it.
	 */
	/* UF */
	if (joined->has_parts)
		__atomic_store_n(&joined->own_action[event_index], own, __ATOMIC_RELEASE);
	/* UF */
	__atomic_store_n(action, PEM_ACTION_OF_INCARNATION(wanted, joined->incarnation),
			 __ATOMIC_RELEASE);
	if (!several && joined->has_parts)
		__atomic_store_n(&joined->further_of[event_index], 0, __ATOMIC_RELAXED);
	/* UG */
	__atomic_fetch_or(&page_enable(provider)[i], bit, __ATOMIC_RELEASE);
}

bool pem_joined__is_member(const struct pem_joined *joined)
{
	uint32_t i;

	for (i = 1; !joined->asked && i < PEM_CONTEXTS_MAX; i++) {
		if (joined->contexts >> i & 1 &&
		    joined->page->contexts[i].flags & PEM_CONTEXT_TARGET)
			return true;
	}
	return joined->asked;
}

/* Find the rules that apply to a provider's event. Returns how many there are. */
static uint32_t rules_of(const struct pem_joined *joined, uint32_t count,
			 const struct pem_provider *provider, uint32_t i,
			 const struct pem_rule *rules[PEM_EVENT_RULES_MAX])
{
	uint32_t found = pem_rule__find(joined->page, count, joined->contexts,
					provider->event_ids[i], rules);

	if (found && rules[0]->event_id == PEM_RULE_ANY_EVENT && rules[0]->max_level &&
	    pem_provider__level(provider, i) > rules[0]->max_level)
		return 0;
	return found;
}

/*
 * Tell the consumer for which contexts the rules are applied, before there are records of these
 * contexts.
 */
static void tell_contexts(const struct pem_joined *joined)
{
	if (joined->pool_bytes)
		__atomic_store_n(&joined->ring.header->contexts, joined->contexts,
				 __ATOMIC_RELAXED);
}

void pem_process__apply_to(struct pem_provider *provider, unsigned session_index)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	const struct pem_session_page *page = joined->page;
	const uint64_t *told = &pem_process__table()[session_index].contexts;
	const struct pem_rule *rules[PEM_EVENT_RULES_MAX];
	uint32_t generation, count, found, i, tries;
	uint64_t contexts;

	for (tries = 0; tries < 1000; tries++) {
		/* uc */
		generation = __atomic_load_n(&page->generation, __ATOMIC_ACQUIRE);
		if (generation & 1) {
			if (!pem_restricted())
				sched_yield();
			continue;
		}
		count = __atomic_load_n(&page->rule_count, __ATOMIC_RELAXED);
		if (count > PEM_RULES_MAX || __atomic_load_n(&page->closed, __ATOMIC_RELAXED))
			count = 0;
		contexts = __atomic_load_n(told, __ATOMIC_RELAXED);
		/*
		 * Contexts that are not known yet are looked up in files, which a restricted thread
		 * may not do.
		 */
		joined->contexts = pem_contexts__holding(
			page,
			pem_restricted() ? 1
					 : __atomic_load_n(&page->context_count, __ATOMIC_RELAXED),
			pem_process.pid, joined->inherited | contexts);
		if (!pem_joined__is_member(joined))
			count = 0;
		tell_contexts(joined);
		for (i = 0; i < provider->event_count; i++) {
			found = rules_of(joined, count, provider, i, rules);
			apply_to_event(provider, i, session_index, rules, found);
		}
		/*
		 * UE, ue, ub: here the actions are stored before the generation and the consumer's
		 * contexts are read. In rules.c the contexts and the generation are stored before
		 * the actions. So either this loop sees that they have changed, or the consumer's
		 * actions are not overwritten here.
		 */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(&page->generation, __ATOMIC_RELAXED) == generation &&
		    __atomic_load_n(told, __ATOMIC_RELAXED) == contexts)
			return;
	}
}

void pem_process__apply_rules(unsigned session_index)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	/*
	 * uc: loaded before the rules are applied. If the rules change now, they are only applied
	 * once more than needed.
	 */
	uint32_t generation = __atomic_load_n(&joined->page->generation, __ATOMIC_ACQUIRE);
	struct pem_provider *provider;

	for (provider = pem_process.providers; provider; provider = provider->next)
		pem_process__apply_to(provider, session_index);
	/* none: it is read under the process lock */
	__atomic_store_n(&joined->filter_generation, generation, __ATOMIC_RELEASE);
}

void pem_process__apply(unsigned session_index)
{
	pem_process__join_offered(session_index);
	if (pem_process.joined[session_index].state != PEM_JOINED_NOT)
		pem_process__apply_rules(session_index);
	/* The entry may have become another session's meanwhile. */
	pem_process__join_offered(session_index);
}

void pem_process__switch_off(unsigned session_index)
{
	struct pem_provider *provider;
	uint32_t i;

	for (provider = pem_process.providers; provider; provider = provider->next) {
		for (i = 0; i < provider->event_count; i++)
			apply_to_event(provider, i, session_index, NULL, 0);
	}
}
