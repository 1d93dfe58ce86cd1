/* SPDX-License-Identifier: MIT */
/*
 * interval.c - finds the begin and end events of a guard: an object that raises the begin when it
 * is made and the end when it is destroyed
 *
 * For backends of languages with such objects. Not here: their text.
 */
#include "backends/backend.h"

#include <stdlib.h>
#include <string.h>

static int is_of(const struct pem_spec_event *event, const struct pem_spec_event *begin,
		 unsigned meaning)
{
	return event->source_kind == PEM_SOURCE_STUB && event->meaning == meaning &&
	       event->scope == begin->scope && !strcmp(event->group, begin->group);
}

/* The only stub event of this provider with this meaning in begin's group, or NULL. */
static const struct pem_spec_event *only_one(const struct pem_spec_event *begin, unsigned meaning)
{
	const struct pem_spec_event *found = NULL;
	size_t i;

	for (i = 0; i < begin->spec->event_count; i++) {
		if (!is_of(&begin->spec->events[i], begin, meaning))
			continue;
		if (found)
			return NULL;
		found = &begin->spec->events[i];
	}
	return found;
}

const struct pem_spec_field *pem_spec_event__field(const struct pem_spec_event *event,
						   const char *c_name)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (!strcmp(event->fields[i].c_name, c_name))
			return &event->fields[i];
	}
	return NULL;
}

const struct pem_spec_event *pem_interval__end(const struct pem_spec_event *begin)
{
	const struct pem_spec_event *end;
	const struct pem_spec_field *field, *same;
	size_t i;

	if (begin->source_kind != PEM_SOURCE_STUB || begin->meaning != PEM_MEANS_INTERVAL_BEGIN ||
	    only_one(begin, PEM_MEANS_INTERVAL_BEGIN) != begin)
		return NULL;
	end = only_one(begin, PEM_MEANS_INTERVAL_END);
	for (i = 0; end && i < end->field_count; i++) {
		field = &end->fields[i];
		same = pem_spec_event__field(begin, field->c_name);
		if (same &&
		    (same->type != field->type || same->element_type != field->element_type))
			return NULL;
	}
	return end;
}

static size_t length_without(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && !strcmp(name + n - m, suffix) ? n - m : 0;
}

/* Length of the stem: shop_serve_begin -> shop_serve. A name without "_begin" is used whole. */
static size_t stem(const char *c_name)
{
	static const char *const suffixes[] = {"_begin", "_start", "_enter"};
	size_t i, n;

	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		n = length_without(c_name, suffixes[i]);
		if (n)
			return n;
	}
	return strlen(c_name);
}

char *pem_interval__name(const struct pem_spec_event *begin)
{
	size_t n = stem(begin->c_name), i;
	const struct pem_spec_event *other;

	for (i = 0; i < begin->spec->event_count; i++) {
		other = &begin->spec->events[i];
		/* Another begin may have the stem, or it may be its whole name. */
		if (other != begin && other->meaning == PEM_MEANS_INTERVAL_BEGIN &&
		    (stem(other->c_name) == n || strlen(other->c_name) == n) &&
		    !strncmp(other->c_name, begin->c_name, n))
			return pem_xstrdup(begin->c_name);
	}
	return pem_xprintf("%.*s", (int)n, begin->c_name);
}
