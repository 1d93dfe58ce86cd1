/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * event_set.c - events by patterns, and a helpful sentence when a pattern matches none
 */
#include "consumer/session.h"
#include "util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 128

/* Levenshtein distance of two names, ignoring case, bounded to NAME_MAX_BYTES. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_BYTES + 1], diagonal, above, best;
	size_t n = strlen(a), m = strlen(b), i, j;

	if (n > NAME_MAX_BYTES || m > NAME_MAX_BYTES)
		return NAME_MAX_BYTES;
	for (j = 0; j <= m; j++)
		row[j] = (unsigned)j;
	for (i = 1; i <= n; i++) {
		diagonal = row[0];
		row[0] = (unsigned)i;
		for (j = 1; j <= m; j++) {
			above = row[j];
			best = diagonal + ((a[i - 1] | 32) != (b[j - 1] | 32));
			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = above;
			row[j] = best;
		}
	}
	return row[m];
}

/* The event whose name, or specifier, is nearest to a pattern. */
static const struct pem_event *nearest(const struct pem_model *model, const char *pattern)
{
	const struct pem_event *event, *found = NULL;
	unsigned best = ~0u, d, e;
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		event = pem_model__event(model, i);
		d = distance(pattern, event->name);
		e = distance(pattern, event->specifier);
		if (e < d)
			d = e;
		if (d < best) {
			best = d;
			found = event;
		}
	}
	return found && best <= strlen(pattern) / 2 ? found : NULL;
}

static bool contains(const struct pem_event_set *set, const struct pem_event *event)
{
	size_t i;

	for (i = 0; i < set->count; i++) {
		if (set->events[i] == event)
			return true;
	}
	return false;
}

/* A layer as a whole is what people record without asking for more: what is of a finer level has to be named. */
static bool chooses(const char *pattern, const struct pem_event *event)
{
	if (!pem_event__matches(event, pattern))
		return false;
	return event->level <= PEM_LEVEL_INFO || strcmp(pattern, event->layer) != 0;
}

static bool is_layer(const struct pem_model *model, const char *name)
{
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		if (!strcmp(pem_model__event(model, i)->layer, name))
			return true;
	}
	return false;
}

/* The level up to which a pattern covers all stub events there may be; 0: it does not. */
static uint8_t any_level(const char *pattern)
{
	if (!strcmp(pattern, "*") || !strcmp(pattern, "APP::*"))
		return PEM_LEVEL_DEBUG;
	return strcmp(pattern, "APP") == 0 ? PEM_LEVEL_INFO : 0;
}

struct pem_event_set *pem_event_set__new(struct pem_session *session, const char *const *patterns,
					 size_t count, struct pem_error *error)
{
	const struct pem_event *event, *near;
	struct pem_event_set *set;
	size_t events, i, j, matches;

	pem_session__lock(session);
	pem_session__load_own_models(session);
	events = pem_model__count(session->model);
	set = malloc(sizeof(*set) + events * sizeof(set->events[0]));
	if (!set) {
		pem_error__set(error, 0, "out of memory");
		goto out;
	}
	set->count = 0;
	set->any_level = 0;
	for (i = 0; i < count; i++) {
		matches = 0;
		if (any_level(patterns[i]) > set->any_level)
			set->any_level = any_level(patterns[i]);
		for (j = 0; j < events; j++) {
			event = pem_model__event(session->model, j);
			if (!chooses(patterns[i], event))
				continue;
			matches++;
			if (!contains(set, event))
				set->events[set->count++] = event;
		}
		if (matches)
			continue;
		near = nearest(session->model, patterns[i]);
		if (is_layer(session->model, patterns[i]))
			pem_error__set(error, 0,
				       "all events of layer %s are of level detail or debug, which "
				       "have to "
				       "be asked for: '%s::*' takes them",
				       patterns[i], patterns[i]);
		else
			pem_error__set(error, 0,
				       "no event matches '%s'%s%s%s; 'pem list' shows all",
				       patterns[i], near ? "; did you mean '" : "",
				       near ? near->name : "", near ? "'?" : "");
		free(set);
		set = NULL;
		errno = ENOENT;
		goto out;
	}
out:
	pem_session__unlock(session);
	return set;
}

void pem_event_set__free(struct pem_event_set *set)
{
	free(set);
}

size_t pem_event_set__count(const struct pem_event_set *set)
{
	return set->count;
}

const struct pem_event *pem_event_set__event(const struct pem_event_set *set, size_t i)
{
	return i < set->count ? set->events[i] : NULL;
}
