/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * binding.c - predicates of event sets, and the handles that are bound to them
 *
 * A demand tests an event by one predicate, where the event happens. Handles with other predicates
 * have demands of their own.
 */
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "predicate.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct pem_predicate *pem_session__intern_predicate(struct pem_session *s, const char *text,
							  const struct pem_test *test,
							  uint32_t count,
							  const struct pem_named_gates *gates)
{
	static const struct pem_named_gates none;
	size_t bytes = count * sizeof(*test);
	struct pem_predicate *p;

	gates = gates ? gates : &none;
	for (p = s->predicates; p; p = p->next) {
		if (!memcmp(&p->gates, gates, sizeof(*gates)) && p->test_count == count &&
		    !memcmp(p->test, test, bytes))
			return p;
	}
	p = malloc(sizeof(*p) + bytes);
	if (!p)
		return NULL;
	p->text = strdup(text);
	if (!p->text) {
		free(p);
		return NULL;
	}
	p->gates = *gates;
	p->test_count = count;
	memcpy(p->test, test, bytes);
	p->next = s->predicates;
	s->predicates = p;
	return p;
}

void pem_session__forget_predicates(struct pem_session *s)
{
	struct pem_predicate *p;

	while ((p = s->predicates)) {
		s->predicates = p->next;
		free(p->text);
		free(p);
	}
	pem_session__forget_gates(s);
}

uint32_t pem_predicate__gates(const struct pem_predicate *predicate)
{
	return predicate ? pem_gates__mask(&predicate->gates) : 0;
}

/*
 * Compile an expression for one event of the set. Expression NULL: the event has no predicate from
 * now on.
 */
static int compile_one(const struct pem_event_set *set, const struct pem_event *event,
		       const struct pem_expression *expression,
		       const struct pem_predicate **predicate, struct pem_error *error)
{
	struct pem_test test[PEM_TESTS_MAX];
	struct pem_named_gates gates;
	int n, result;

	*predicate = NULL;
	if (!expression)
		return 0;
	if (event->source_kind != PEM_SOURCE_STUB && event->source_kind != PEM_SOURCE_PROC &&
	    !pem_event__is_of_kernel(event))
		return pem_error__set(
			error, -ENOTSUP,
			"%s is read from a %s, where nothing can be tested: take it without a "
			"predicate",
			event->name,
			pem_source_kind__name((enum pem_source_kind)event->source_kind));
	n = pem_expression__compile(expression, event, test, error);
	if (n < 0)
		return n;
	result = pem_session__find_gates(set->session, event, expression, &gates, error);
	if (result)
		return result;
	*predicate = pem_session__intern_predicate(set->session, expression->text, test,
						   (uint32_t)n, &gates);
	return *predicate ? 0 : pem_error__set(error, -ENOMEM, "out of memory");
}

/*
 * Compile for all events that pattern matches, or fail for the first event that can't be tested;
 * error says why.
 */
static int compile_all(const struct pem_event_set *set, const char *pattern,
		       const struct pem_expression *expression,
		       const struct pem_predicate **predicates, struct pem_error *error)
{
	int result = pattern ? -ENOENT : 0;
	size_t i;

	for (i = 0; i < set->count; i++) {
		if (pattern && !pem_event__matches(set->events[i], pattern)) {
			predicates[i] = set->predicates ? set->predicates[i] : NULL;
			continue;
		}
		result = compile_one(set, set->events[i], expression, &predicates[i], error);
		if (result)
			return result;
	}
	return result;
}

int pem_event_set__check(const struct pem_session *session, const struct pem_event_set *set,
			 struct pem_error *error)
{
	if (!session)
		return pem_error__lacks(error, "session");
	if (!set)
		return pem_error__lacks(error, "set of events");
	if (set->session != session)
		return pem_error__set(error, -EINVAL,
				      "the set of events is another session's: make one of this "
				      "session");
	return 0;
}

/* pattern NULL: all events of the set. */
static int set_predicate(struct pem_event_set *set, const char *pattern, const char *predicate,
			 struct pem_error *error)
{
	const struct pem_predicate **predicates = NULL;
	struct pem_expression *expression = NULL;
	int result = -ENOMEM;

	if (!set)
		return pem_error__lacks(error, "set of events");
	pem_session__lock(set->session);
	predicates = calloc(set->count + 1, sizeof(*predicates));
	if (predicate)
		expression = malloc(sizeof(*expression));
	if (!predicates || (predicate && !expression)) {
		pem_error__set(error, 0, "out of memory");
		goto out;
	}
	result = expression ? pem_expression__parse(expression, predicate, error) : 0;
	if (!result)
		result = compile_all(set, pattern, expression, predicates, error);
	if (result == -ENOENT)
		pem_error__set(error, 0, "no event of the set matches '%.200s'", pattern);
	if (result)
		goto out;
	free(set->predicates);
	set->predicates = predicates;
	predicates = NULL;
	if (!predicate && !pattern) {
		free(set->predicates);
		set->predicates = NULL;
	}
out:
	free(predicates);
	free(expression);
	pem_session__unlock(set->session);
	return result;
}

int pem_event_set__where(struct pem_event_set *set, const char *predicate, struct pem_error *error)
{
	return set_predicate(set, NULL, predicate, error);
}

int pem_event_set__where_of(struct pem_event_set *set, const char *pattern, const char *predicate,
			    struct pem_error *error)
{
	if (set && !pattern)
		return pem_error__set(
			error, -EINVAL,
			"no pattern of events was given: pem_event_set__where() takes "
			"all events of the set");
	return set_predicate(set, pattern, predicate, error);
}

const char *pem_event_set__predicate(const struct pem_event_set *set, size_t i)
{
	return set && set->predicates && i < set->count && set->predicates[i]
		       ? set->predicates[i]->text
		       : NULL;
}

PEM_STATIC_ASSERT(PEM_FURTHER_HANDLES_MAX == PEM_FURTHER_CELLS,
		  "what the API and the ABI call the same");

static bool is_free(const struct pem_demand *demand)
{
	return !demand->bound && demand->instance < 0 && !demand->want_log && !demand->want_async;
}

static bool has_gates(const struct pem_predicate *predicate)
{
	return predicate && predicate->gates.count;
}

/* Synchronous callbacks are this process's, whether the context names it or any process. */
static bool is_of_this_process(const struct pem_context *context)
{
	return (context->pid == PEM_ANY || context->pid == (uint32_t)getpid()) &&
	       !context->program[0] && !context->cgroup && !context->in_namespace;
}

static bool has_context(const struct pem_demand *demand, const struct pem_context *context,
			enum pem_use use)
{
	if (use == PEM_USE_CALLBACK)
		return is_of_this_process(&demand->context) &&
		       demand->context.tid == context->tid &&
		       pem_context__cpu(&demand->context) == pem_context__cpu(context);
	return !memcmp(&demand->context, context, sizeof(*context));
}

static bool fits(const struct pem_demand *demand, const struct pem_context *context,
		 const struct pem_predicate *predicate, enum pem_use use)
{
	if (is_free(demand))
		return true;
	return demand->predicate == predicate && has_context(demand, context, use) &&
	       (use != PEM_USE_STATISTIC || !demand->statistics);
}

/* A demand of the event that fits, or a further one. NULL: there is no room. */
static struct pem_demand *find(struct pem_session *s, struct pem_demand *first,
			       const struct pem_context *context,
			       const struct pem_predicate *predicate, enum pem_use use)
{
	struct pem_demand *demand;

	for (demand = first; demand; demand = demand->next) {
		if (!is_free(demand) && fits(demand, context, predicate, use))
			return demand;
	}
	/* Libraries that know no gates would take a rule of an event's own cell for one without. */
	for (demand = first; demand; demand = demand->next) {
		if (is_free(demand) && !(has_gates(predicate) && demand == first))
			return demand;
	}
	return pem_session__further_demand(s, first);
}

static bool wants_records(const struct pem_demand *demand)
{
	return demand->want_log || demand->want_async;
}

/*
 * May a demand want records beside the event's others? Those of programs are tested again by the
 * consumer, which can't know what CPU they are of. Those of sources come from an instance for each
 * demand. But one instance alone delivers the event that tells which thread runs on a CPU.
 */
static int check_records(const struct pem_demand *demand, const struct pem_context *context,
			 struct pem_error *error)
{
	const struct pem_demand *other;

	for (other = demand->first; other; other = other->next) {
		if (other == demand || !wants_records(other))
			continue;
		if (pem_event__tells_context(other->event) &&
		    other->event->meaning == PEM_MEANS_SETS_THREAD)
			return pem_error__set(
				error, -EBUSY,
				"this session already takes records of %s in another context or "
				"with another predicate, and of this event a session can't do "
				"both; "
				"open a second session",
				other->event->name);
		if (other->event->source_kind == PEM_SOURCE_STUB &&
		    pem_context__cpu(&other->context) != pem_context__cpu(context))
			return pem_error__set(
				error, -EBUSY,
				"this session already takes records of %s on another CPU, which "
				"records do not tell; open a second session",
				other->event->name);
	}
	return 0;
}

/* What lies in pools is for those that wanted it when it was raised. */
static void note_difference(struct pem_demand *demand, bool changed)
{
	const struct pem_demand *other;

	demand->first->records_differ |= changed && demand->first->async_ever;
	for (other = demand->first; other; other = other->next)
		demand->first->records_differ |= other != demand && wants_records(other);
}

int pem_session__bind_event(struct pem_session *s, const struct pem_event *event,
			    const struct pem_predicate *predicate,
			    const struct pem_context *context, enum pem_use use,
			    struct pem_demand **demand, struct pem_error *error)
{
	struct pem_demand *first = pem_session__demand(s, event), *found;
	struct pem_context wanted = *context;
	bool changed;
	int result = 0;

	if (!first)
		return pem_error__set(error, -ENOMEM, "out of memory");
	if (has_gates(predicate) && use != PEM_USE_STATISTIC)
		return pem_error__set(error, -ENOTSUP,
				      "%s: 'inside' and 'from' choose events of statistics alone; "
				      "take a predicate without them for callbacks and logs",
				      first->event->name);
	if (use == PEM_USE_CALLBACK) {
		wanted.pid = PEM_ANY;
		wanted.follow = wanted.in_namespace = 0;
		wanted.cgroup = 0;
		memset(wanted.program, 0, sizeof(wanted.program));
	}
	found = find(s, first, &wanted, predicate, use);
	if (!found)
		return pem_error__set(
			error, -ENOSPC,
			"this session observes events in more than %u further ways, "
			"each with an attribute, a predicate or a context of its own; "
			"end handles, or open a second session for %s",
			PEM_FURTHER_HANDLES_MAX, first->event->name);
	if (use == PEM_USE_RECORDS)
		result = check_records(found, &wanted, error);
	else if (has_gates(predicate))
		result = pem_session__use_gates(s, &predicate->gates, error);
	if (result) {
		if (found->cell && is_free(found))
			pem_demand__remove_further(found);
		return result;
	}
	if (is_free(found)) {
		changed = found->predicate != predicate ||
			  memcmp(&found->context, &wanted, sizeof(wanted));
		found->predicate = predicate;
		found->context = wanted;
		found->page_context = -1;
	} else {
		changed = false;
	}
	if (use == PEM_USE_RECORDS)
		note_difference(found, changed);
	found->bound++;
	*demand = found;
	return 0;
}

int pem_session__bind(struct pem_session *s, const struct pem_event_set *set, size_t i,
		      const struct pem_context *context, enum pem_use use,
		      struct pem_demand **demand, struct pem_error *error)
{
	const struct pem_predicate *predicate = set->predicates ? set->predicates[i] : NULL;
	struct pem_demand *first = pem_session__demand(s, set->events[i]);
	int result = first ? s->hooks->handle_comes(s, first, error)
			   : pem_error__set(error, -ENOMEM, "out of memory");

	if (result)
		return result;
	return pem_session__bind_event(s, set->events[i], predicate, context, use, demand, error);
}

void pem_demand__note_predicate(const struct pem_demand *demand, struct pem_trace_info *info)
{
	struct pem_trace_predicate *to;
	char *c;

	if (!demand->predicate)
		return;
	if (info->predicate_count == PEM_ARRAY_SIZE(info->predicates)) {
		info->predicates_more++;
		return;
	}
	to = &info->predicates[info->predicate_count++];
	pem_copy_text(to->event, sizeof(to->event), demand->event->name);
	pem_copy_text(to->text, sizeof(to->text), demand->predicate->text);
	if (strlen(demand->predicate->text) >= sizeof(to->text))
		memcpy(to->text + sizeof(to->text) - sizeof("..."), "...", sizeof("..."));
	for (c = to->text; *c; c++) {
		if (*c == '\t' || *c == '\n' || *c == '\r')
			*c = ' ';
	}
}

void pem_demand__unbind(struct pem_demand *demand)
{
	demand->bound--;
	if (demand->cell && is_free(demand))
		pem_demand__remove_further(demand);
}
