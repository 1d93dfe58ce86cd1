/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * binding.c - predicates of event sets, and the handles that are bound to them
 *
 * A session tests an event by one predicate at a time: the predicate is evaluated once, where the
 * event happens. Another session may test the event by another predicate.
 */
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "predicate.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return the session's own copy of a predicate, made if need be. NULL: out of memory. */
static const struct pem_predicate *intern(struct pem_session *s, const char *text,
					  const struct pem_test *test, uint32_t count)
{
	size_t bytes = count * sizeof(*test);
	struct pem_predicate *p;

	for (p = s->predicates; p; p = p->next) {
		if (p->test_count == count && !memcmp(p->test, test, bytes))
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
	int n;

	*predicate = NULL;
	if (!expression)
		return 0;
	if (event->source_kind != PEM_SOURCE_STUB && !pem_event__is_of_kernel(event))
		return pem_error__set(
			error, -ENOTSUP,
			"%s is read from a %s, where nothing can be tested: take it without a "
			"predicate",
			event->name,
			pem_source_kind__name((enum pem_source_kind)event->source_kind));
	n = pem_expression__compile(expression, event, test, error);
	if (n < 0)
		return n;
	*predicate = intern(set->session, expression->text, test, (uint32_t)n);
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

int pem_event_set__where_of(struct pem_event_set *set, const char *pattern, const char *predicate,
			    struct pem_error *error)
{
	const struct pem_predicate **predicates = NULL;
	struct pem_expression *expression = NULL;
	int result = -ENOMEM;

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
	return pem_event_set__where_of(set, NULL, predicate, error);
}

const char *pem_event_set__predicate(const struct pem_event_set *set, size_t i)
{
	return set->predicates && i < set->count && set->predicates[i] ? set->predicates[i]->text
								       : NULL;
}

int pem_demand__bind(struct pem_demand *demand, const struct pem_event_set *set, size_t i,
		     struct pem_error *error)
{
	const struct pem_predicate *predicate = set->predicates ? set->predicates[i] : NULL;

	if ((demand->bound || demand->instance >= 0) && demand->predicate != predicate)
		return pem_error__set(error, -EBUSY,
				      "this session already observes %s %s%.100s%s; open a second "
				      "session",
				      demand->event->name, demand->predicate ? "where '" : "",
				      demand->predicate ? demand->predicate->text
							: "without a predicate",
				      demand->predicate ? "'" : "");
	demand->predicate = predicate;
	demand->bound++;
	return 0;
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
	if (!--demand->bound && demand->instance < 0)
		demand->predicate = NULL;
}
