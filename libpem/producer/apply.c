/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * apply.c - what a session's rules say of this process's events: enable bytes, action words,
 * filters
 *
 * A filter is a private copy of what a rule asks of thread, CPU and fields. Threads read it without
 * a lock, so that it is never changed or freed: another rule gets another one, and equal ones are
 * one.
 */
#include "membership.h"
#include "producer/producer.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

/* Of one process and its life: some thousand different filters of two tests. */
#define FILTER_BYTES (512u << 10)

static struct {
	uint8_t *memory;
	size_t used;
} filters; /* under the process lock; a child of fork goes on in its copy */

static size_t filter_bytes(uint32_t test_count)
{
	return sizeof(struct pem_filter) + (test_count ? test_count : 1) * sizeof(struct pem_test);
}

/* The filter that equals this one; NULL: no memory. */
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

/* Stubs compare without asking whether to, and go by one test at least. */
static void prepare_for_stubs(struct pem_filter *filter, struct pem_test *test)
{
	uint32_t i;

	filter->stub_mask = filter->tid ? ~0u : 0;
	filter->stub_tid = filter->tid;
	if (filter->cpu != PEM_NO_CPU) { /* fits no thread: the library asks for the CPU */
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
 * A rule's filter; NULL with *ok: it needs none; NULL without: it can't be had, and so can't the
 * event.
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

static void apply_to_event(struct pem_provider *provider, uint32_t i, unsigned session_index,
			   const struct pem_rule *rule)
{
	uint64_t *action = &page_actions(provider)[i * PEM_SESSIONS_MAX + session_index];
	struct pem_joined *joined = &pem_process.joined[session_index];
	const struct pem_filter *filter = NULL;
	uint8_t bit = (uint8_t)(1u << session_index);
	bool ok = false;

	if (pem_process.borrows_pages)
		return;
	if (rule && PEM_ACTION_FLAGS(rule->action))
		filter = filter_of(joined->page, rule, &ok);
	if (!ok) {
		/* UG */
		__atomic_fetch_and(&page_enable(provider)[i], (uint8_t)~bit, __ATOMIC_RELEASE);
		__atomic_store_n(action, 0, __ATOMIC_RELAXED);
		return;
	}
	if (filter != joined->filter[provider->event_base + i]) {
		/* Who sees the new filter sees this, or what follows: pem_filter_begin. */
		__atomic_fetch_or(action, PEM_ACTION_FILTER | PEM_ACTION_CHECK, __ATOMIC_RELAXED);
		/* UH */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		/* UH */
		__atomic_store_n(&joined->filter[provider->event_base + i], filter,
				 __ATOMIC_RELEASE);
		/* UH */
		if (provider->filters)
			__atomic_store_n(&provider->filters[i * PEM_SESSIONS_MAX + session_index],
					 filter, __ATOMIC_RELEASE);
	}
	/* UF */
	__atomic_store_n(action, PEM_ACTION_OF_INCARNATION(rule->action, joined->incarnation),
			 __ATOMIC_RELEASE);
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

static const struct pem_rule *rule_of(const struct pem_joined *joined, uint32_t count,
				      const struct pem_provider *provider, uint32_t i)
{
	const struct pem_rule *rule =
		pem_rule__find(joined->page, count, joined->contexts, provider->event_ids[i]);

	if (rule && rule->event_id == PEM_RULE_ANY_EVENT && rule->max_level &&
	    pem_provider__level(provider, i) > rule->max_level)
		return NULL;
	return rule;
}

void pem_process__apply_to(struct pem_provider *provider, unsigned session_index)
{
	struct pem_joined *joined = &pem_process.joined[session_index];
	const struct pem_session_page *page = joined->page;
	const uint64_t *told = &pem_process__table()[session_index].contexts;
	uint32_t generation, count, i, tries;
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
		/* What is not known yet is read from files. */
		joined->contexts = pem_contexts__holding(
			page,
			pem_restricted() ? 1
					 : __atomic_load_n(&page->context_count, __ATOMIC_RELAXED),
			pem_process.pid, joined->inherited | contexts);
		if (!pem_joined__is_member(joined))
			count = 0;
		for (i = 0; i < provider->event_count; i++)
			apply_to_event(provider, i, session_index,
				       rule_of(joined, count, provider, i));
		/*
		 * UE, ub, ue: The actions before the generation and what the consumer says of
		 * contexts, and in rules.c these before the actions: either this sees that they
		 * have changed, or what the consumer stored is not overwritten here.
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
	 * uc: Before the rules: should they change now, they are applied once more than they need
	 * be.
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
	/* the entry may have become another's meanwhile */
	pem_process__join_offered(session_index);
}

void pem_process__switch_off(unsigned session_index)
{
	struct pem_provider *provider;
	uint32_t i;

	for (provider = pem_process.providers; provider; provider = provider->next) {
		for (i = 0; i < provider->event_count; i++)
			apply_to_event(provider, i, session_index, NULL);
	}
}
