/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* gate.c - the gates of a session: named by predicates, found among the model's events */
#include "core/core.h"
#include "core/demand.h"
#include "core/gate.h"
#include "model_internal.h"
#include "predicate.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 128

static bool is_interval(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_INTERVAL_BEGIN ||
	       event->meaning == PEM_MEANS_INTERVAL_END;
}

static int add(const struct pem_event **events, size_t *count, const struct pem_event *event,
	       struct pem_error *error)
{
	if (*count == PEM_GATE_EVENTS_MAX)
		return pem_error__set(error, -E2BIG,
				      "more than %u events like %s open or close a gate",
				      PEM_GATE_EVENTS_MAX, event->name);
	events[(*count)++] = event;
	return 0;
}

/* Add the events of a name, in all versions. Returns 0, or -errno with error. */
static int add_named(const struct pem_session *s, const struct pem_event **events, size_t *count,
		     const char *name, struct pem_error *error)
{
	const struct pem_event *event;
	int result = 0;
	size_t i;

	for (i = 0; !result && i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		if (!strcmp(event->name, name))
			result = add(events, count, event, error);
	}
	if (!result && !*count)
		result = pem_error__set(
			error, -EINVAL,
			"no event is named '%s' ('inside' and 'from' take a whole name, which "
			"'pem list' shows)",
			name);
	return result;
}

/* Is it the begin of the interval that a name stands for: of its event, or of its group? */
static bool begins(const struct pem_event *event, const char *name)
{
	return event->meaning == PEM_MEANS_INTERVAL_BEGIN &&
	       (!strcmp(event->name, name) || !strcmp(event->group, name));
}

/* Add the events that begin and end an interval. Returns 0, or -errno with error. */
static int add_interval(const struct pem_session *s, struct pem_gate *gate, const char *name,
			struct pem_error *error)
{
	const struct pem_event *event, *begin = NULL;
	int result = 0;
	size_t i;

	for (i = 0; !begin && i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		begin = begins(event, name) ? event : NULL;
	}
	if (!begin)
		return pem_error__set(
			error, -EINVAL,
			"'%s' names neither an event that begins an interval nor a group of such "
			"events; 'from EVENT to EVENT' takes any two events",
			name);
	for (i = 0; !result && i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		if (!is_interval(event) || strcmp(event->group, begin->group) != 0)
			continue;
		if (event->meaning == PEM_MEANS_INTERVAL_BEGIN)
			result = add(gate->open, &gate->open_count, event, error);
		else
			result = add(gate->close, &gate->close_count, event, error);
	}
	if (!result && !gate->close_count)
		result = pem_error__set(error, -EINVAL, "no event ends the interval of '%s'", name);
	return result;
}

/* Only programs keep gates. */
static int check_events(const struct pem_event *const *events, size_t count,
			struct pem_error *error)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (events[i]->source_kind != PEM_SOURCE_STUB)
			return pem_error__set(error, -ENOTSUP,
					      "%s is not an event of a program, and only those "
					      "open and close what 'inside' and 'from' name",
					      events[i]->name);
	}
	return 0;
}

static int choose_scope(struct pem_gate *gate, const struct pem_gate_term *term,
			struct pem_error *error)
{
	const struct pem_event *event = gate->open[0];
	uint32_t scope = term->scope;

	if (!scope)
		scope = is_interval(event) ? event->scope : PEM_SCOPE_THREAD;
	if (scope != PEM_SCOPE_THREAD && scope != PEM_SCOPE_PROCESS)
		return pem_error__set(error, -EINVAL,
				      "intervals of %s belong to no thread or process; append 'per "
				      "thread' or 'per process'",
				      event->name);
	gate->flags |= scope == PEM_SCOPE_PROCESS ? PEM_GATE_OF_PROCESS : 0;
	return 0;
}

static int describe(struct pem_session *s, const struct pem_expression *e,
		    const struct pem_gate_term *term, struct pem_gate *gate,
		    struct pem_error *error)
{
	char name[NAME_BYTES], end[NAME_BYTES];
	int result;

	memset(gate, 0, sizeof(*gate));
	snprintf(name, sizeof(name), "%.*s", term->bytes, e->text + term->at);
	snprintf(end, sizeof(end), "%.*s", term->to_bytes, e->text + term->to_at);
	if (term->is_from && !strcmp(name, end))
		return pem_error__set(error, -EINVAL,
				      "'from %s to %s': counting begins and ends at two events",
				      name, end);
	if (term->is_from) {
		result = add_named(s, gate->open, &gate->open_count, name, error);
		if (!result)
			result = add_named(s, gate->close, &gate->close_count, end, error);
	} else {
		gate->flags = PEM_GATE_COUNTS;
		result = add_interval(s, gate, name, error);
	}
	if (!result)
		result = check_events(gate->open, gate->open_count, error);
	if (!result)
		result = check_events(gate->close, gate->close_count, error);
	return result ? result : choose_scope(gate, term, error);
}

/* The session's gate like this one, made if need be. NULL: out of memory. */
static struct pem_gate *intern(struct pem_session *s, const struct pem_gate *gate)
{
	struct pem_gate *known;

	if (!s->gates)
		s->gates = calloc(1, sizeof(*s->gates));
	if (!s->gates)
		return NULL;
	for (known = s->gates->known; known; known = known->next) {
		if (known->flags == gate->flags &&
		    !memcmp(known->open, gate->open, sizeof(gate->open)) &&
		    !memcmp(known->close, gate->close, sizeof(gate->close)))
			return known;
	}
	known = malloc(sizeof(*known));
	if (!known)
		return NULL;
	*known = *gate;
	known->number = -1;
	known->next = s->gates->known;
	s->gates->known = known;
	return known;
}

void pem_session__forget_gates(struct pem_session *s)
{
	struct pem_gate *gate;

	while (s->gates && (gate = s->gates->known)) {
		s->gates->known = gate->next;
		free(gate);
	}
	free(s->gates);
	s->gates = NULL;
}

static int check_counted(const struct pem_event *event, struct pem_error *error)
{
	if (event->source_kind == PEM_SOURCE_STUB ||
	    (event->source_kind == PEM_SOURCE_TRACEPOINT &&
	     event->meaning != PEM_MEANS_SETS_THREAD && event->meaning != PEM_MEANS_THREAD_START))
		return 0;
	return pem_error__set(error, -ENOTSUP,
			      "%s can't be counted 'inside' or 'from': only events of programs and "
			      "tracepoints of the catalogue can, and of those no context switches "
			      "and starts of threads; take a predicate without them",
			      event->name);
}

int pem_session__find_gates(struct pem_session *s, const struct pem_event *event,
			    const struct pem_expression *expression, struct pem_named_gates *gates,
			    struct pem_error *error)
{
	struct pem_gate gate;
	int result;
	uint32_t i;

	memset(gates, 0, sizeof(*gates));
	if (!expression->gate_count)
		return 0;
	result = check_counted(event, error);
	for (i = 0; !result && i < expression->gate_count; i++) {
		result = describe(s, expression, &expression->gate[i], &gate, error);
		if (result)
			break;
		gates->gate[i] = intern(s, &gate);
		if (!gates->gate[i])
			return pem_error__set(error, -ENOMEM, "out of memory");
		gates->negated |= (uint32_t)(expression->gate[i].negated != 0) << i;
		gates->count++;
	}
	return result;
}

uint32_t pem_gates__mask(const struct pem_named_gates *gates)
{
	uint32_t inside = 0, outside = 0, i;

	for (i = 0; i < gates->count; i++) {
		if (gates->gate[i]->number < 0)
			continue;
		if (gates->negated >> i & 1)
			outside |= 1u << gates->gate[i]->number;
		else
			inside |= 1u << gates->gate[i]->number;
	}
	return PEM_GATES(inside, outside);
}

/*
 * A log that takes events by their level takes each by a rule for any event. An event of a gate has
 * a rule of its own, and so the log needs one for it.
 */
static int come_to(struct pem_session *s, const struct pem_event *const *events, size_t count,
		   struct pem_error *error)
{
	struct pem_demand *first;
	int result = 0;
	size_t i;

	for (i = 0; !result && i < count; i++) {
		first = pem_session__demand(s, events[i]);
		result = first ? s->hooks->handle_comes(s, first, error)
			       : pem_error__set(error, -ENOMEM, "out of memory");
	}
	return result;
}

/* Is there a number for each gate that has none? */
static int check_room(const struct pem_session *s, const struct pem_named_gates *gates,
		      struct pem_error *error)
{
	uint32_t more = 0, i, k;

	for (i = 0; i < gates->count; i++) {
		for (k = 0; k < i && gates->gate[k] != gates->gate[i]; k++)
			;
		more += k == i && gates->gate[i]->number < 0;
	}
	if (s->gates->count + more <= PEM_GATES_MAX)
		return 0;
	return pem_error__set(error, -E2BIG,
			      "the statistics of a session have at most %u different 'inside' and "
			      "'from'; open a second session",
			      PEM_GATES_MAX);
}

int pem_session__use_gates(struct pem_session *s, const struct pem_named_gates *gates,
			   struct pem_error *error)
{
	int result = check_room(s, gates, error);
	struct pem_gate *gate;
	uint32_t i;

	for (i = 0; !result && i < gates->count; i++) {
		gate = gates->gate[i];
		if (gate->number >= 0)
			continue;
		result = come_to(s, gate->open, gate->open_count, error);
		if (!result)
			result = come_to(s, gate->close, gate->close_count, error);
	}
	for (i = 0; !result && i < gates->count; i++) {
		gate = gates->gate[i];
		if (gate->number >= 0)
			continue;
		gate->number = (int)s->gates->count;
		s->gates->gate[s->gates->count++] = gate;
	}
	return result;
}

static bool contains(const struct pem_event *const *events, size_t count,
		     const struct pem_event *event)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (events[i] == event)
			return true;
	}
	return false;
}

bool pem_session__gates_use(const struct pem_session *s, const struct pem_event *event)
{
	const struct pem_gate *gate;
	uint32_t i;

	for (i = 0; s->gates && i < s->gates->count; i++) {
		gate = s->gates->gate[i];
		if (contains(gate->open, gate->open_count, event) ||
		    contains(gate->close, gate->close_count, event))
			return true;
	}
	return false;
}

uint32_t pem_session__used_gates(const struct pem_session *s)
{
	return s->gates ? s->gates->count : 0;
}
