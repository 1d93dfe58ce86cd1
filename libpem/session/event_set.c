/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * event_set.c - events by patterns, and a helpful sentence when a pattern matches none
 */
#define _GNU_SOURCE
#include "core/core.h"
#include "core/demand.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "model_internal.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES PEM_EDIT_DISTANCE_MAX

/* What the writer of a pattern that matches nothing may have meant, best guess first. */
enum nearness { SAME_CLASS, SAME_NAME, IN_CLASS, IN_NAME, MISSPELT, MISSPELT_CLASS, FAR };

static bool holds(const char *text, const char *word)
{
	return strlen(word) > 2 && strcasestr(text, word);
}

/* How near an event is to a pattern. *edits orders misspelt ones. */
static enum nearness nearness(const struct pem_event *event, const char *pattern, unsigned *edits)
{
	size_t layer = strlen(event->layer), class = strlen(event->class_name), i;
	/* A word with more edits than one in four letters is another word and not a misspelling. */
	unsigned most = strlen(pattern) < 8 ? 1 : (unsigned)strlen(pattern) / 4, d[5];
	char class_on[NAME_MAX_BYTES];

	snprintf(class_on, sizeof(class_on), "%.*s", (int)(layer + 2 + class), event->name);
	*edits = 0;
	if (!strcasecmp(pattern, event->class_name) || !strcasecmp(pattern, class_on))
		return SAME_CLASS;
	if (!strcasecmp(pattern, event->specifier) || !strcasecmp(pattern, event->name))
		return SAME_NAME;
	if (holds(event->class_name, pattern))
		return IN_CLASS;
	if (holds(event->name, pattern))
		return IN_NAME;
	d[0] = pem_edit_distance(pattern, event->name);
	d[1] = pem_edit_distance(pattern, event->name + layer + 2);
	d[2] = pem_edit_distance(pattern, event->specifier);
	d[3] = pem_edit_distance(pattern, class_on);
	d[4] = pem_edit_distance(pattern, event->class_name);
	for (i = 0; i < PEM_ARRAY_SIZE(d); i++) {
		if (d[i] <= most && d[i] + 1 < strlen(pattern)) {
			*edits = d[i];
			return i < 3 ? MISSPELT : MISSPELT_CLASS;
		}
	}
	return FAR;
}

/* "; did you mean 'OS::Block::*'?", or ";" if nothing is near. */
static void suggest(const struct pem_model *model, const char *pattern, char *text, size_t bytes)
{
	unsigned best_edits = ~0u, edits;
	const struct pem_event *event, *found = NULL;
	enum nearness best = FAR, near;
	char class_of[NAME_MAX_BYTES];
	size_t i, length = strlen(pattern);

	snprintf(text, bytes, ";");
	if (length > 3 && length < sizeof(class_of) && !strcmp(pattern + length - 3, "::*")) {
		snprintf(class_of, sizeof(class_of), "%.*s", (int)(length - 3), pattern);
		pattern = class_of; /* the pattern names all events of a class; search for the class
				     */
	}
	for (i = 0; i < pem_model__count(model); i++) {
		event = pem_model__event(model, i);
		near = nearness(event, pattern, &edits);
		if (near < best || (near == best && near != FAR && edits < best_edits)) {
			best = near;
			best_edits = edits;
			found = event;
		}
	}
	if (best == SAME_CLASS || best == MISSPELT_CLASS || best == IN_CLASS)
		snprintf(text, bytes, "; did you mean '%s::%s::*'?", found->layer,
			 found->class_name);
	else if (best != FAR)
		snprintf(text, bytes, "; did you mean '%s'?", found->name);
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

/*
 * Does a pattern choose an event that it matches? A pattern for a whole layer chooses only what
 * most people record. Events of a finer level must be named.
 */
static bool chooses(const char *pattern, const struct pem_event *event)
{
	if (!pem_event__matches(event, pattern))
		return false;
	return event->level <= PEM_LEVEL_INFO || strcasecmp(pattern, event->layer) != 0;
}

static bool is_layer(const struct pem_model *model, const char *name)
{
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		if (!strcasecmp(pem_model__event(model, i)->layer, name))
			return true;
	}
	return false;
}

/*
 * The level up to which a pattern covers all stub events, also ones that are not known yet. 0: the
 * pattern does not cover them.
 */
static uint8_t any_level(const char *pattern)
{
	if (!strcmp(pattern, "*") || !strcasecmp(pattern, "APP::*"))
		return PEM_LEVEL_DEBUG;
	return strcasecmp(pattern, "APP") == 0 ? PEM_LEVEL_INFO : 0;
}

/* Explain why a pattern chooses nothing, and what would match. */
static void explain(const struct pem_model *model, const char *pattern, struct pem_error *error)
{
	char near[2 * NAME_MAX_BYTES];

	if (is_layer(model, pattern)) {
		pem_error__set(error, 0,
			       "all events of layer %s are of level detail or debug, which have to "
			       "be asked for: '%s::*' takes them",
			       pattern, pattern);
		return;
	}
	suggest(model, pattern, near, sizeof(near));
	pem_error__set(error, 0,
		       "no event matches '%.120s'%s events of a program or a spec have to be added "
		       "first",
		       pattern, near);
}

static bool matches_any(const struct pem_model *model, const char *pattern)
{
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		if (pem_event__matches(pem_model__event(model, i), pattern))
			return true;
	}
	return false;
}

static bool names_counter(const struct pem_model *model, const char *name)
{
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		if (pem_event__is_counter(pem_model__event(model, i), name))
			return true;
	}
	return false;
}

/* Is the pattern this event's whole name, with or without its version? */
static bool is_name_of(const struct pem_event *event, const char *pattern)
{
	size_t n = strlen(event->name);

	return !strncmp(pattern, event->name, n) && (!pattern[n] || pattern[n] == '@') &&
	       pem_event__matches(event, pattern);
}

/*
 * Is the pattern the whole name of an event? Then it chooses no event of another name, and no
 * counter is called so. A verb names hundreds of events, so they are not searched among counters'
 * names.
 */
static bool names_event(const struct pem_model *model, const char *pattern)
{
	size_t i;

	if (pem_pattern__is_probe(pattern))
		return false;
	for (i = 0; i < pem_model__count(model); i++) {
		if (is_name_of(pem_model__event(model, i), pattern))
			return true;
	}
	return false;
}

/* Is what stands in front of the first colon the name of a counter? */
static bool names_part(const struct pem_model *model, const char *pattern)
{
	char name[NAME_MAX_BYTES];

	return snprintf(name, sizeof(name), "%.*s", (int)strcspn(pattern, ":"), pattern) <
		       (int)sizeof(name) &&
	       names_counter(model, name);
}

/*
 * Let sources search the events that are named by their place (such as ad-hoc probes), and counters
 * of other names than the model's. Where no source can search, only the events that are known
 * already are left. A place that does not exist is an error, even if an event is known that would
 * come from it. found gets, for each pattern, the events that exist here. Returns 0, or -errno with
 * error.
 */
static int find_probes(struct pem_session *session, const char *const *patterns, size_t count,
		       struct pem_found *found, struct pem_error *error)
{
	struct pem_error why;
	int rc = 0, one;
	size_t i;

	for (i = 0; i < count && !rc; i++) {
		if (names_event(session->model, patterns[i]) ||
		    names_counter(session->model, patterns[i]))
			continue;
		if (!pem_pattern__is_probe(patterns[i])) {
			one = matches_any(session->model, patterns[i])
				      ? 0
				      : pem_session__find_counter(session, patterns[i], &why);
			if (one < 0 && one != -ENOENT)
				rc = pem_error__set(error, one, "%s", why.text);
			continue;
		}
		one = pem_session__find_probes(session, patterns[i], &found[i], &why);
		if (one >= 0)
			continue;
		if (one == -ENOENT && names_part(session->model, patterns[i]))
			pem_error__set(&why, 0,
				       "'%.100s': of a counter there are, where the kernel can "
				       "tell them apart, :u, the program alone, and :k, the kernel "
				       "alone, behind a name of perf or libpfm4",
				       patterns[i]);
		if (one == -ENOENT || one == -E2BIG || one == -EOPNOTSUPP ||
		    !matches_any(session->model, patterns[i]))
			rc = pem_error__set(error, one, "%s", why.text);
		else
			pem_session__say(session, PEM_LOG_WARNING,
					 "'%.100s': only events of the catalogue: %s", patterns[i],
					 why.text);
	}
	return rc;
}

/*
 * The usual level of the counters that perf or libpfm4 call so: what they count may have further
 * events of a finer level, which count the same. PEM_LEVEL_DEBUG: there are none.
 */
static uint8_t level_of_counters(const struct pem_model *model, const char *name)
{
	uint8_t level = PEM_LEVEL_DEBUG;
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		const struct pem_event *event = pem_model__event(model, i);

		if (event->level < level && pem_event__is_counter(event, name))
			level = event->level;
	}
	return level;
}

/*
 * Add the events that a pattern chooses. A pattern with a wildcard in a place takes the events that
 * exist here: those in found, if they were searched. Returns how many it chooses.
 */
static size_t add_matches(struct pem_event_set *set, const char *pattern,
			  const struct pem_found *found)
{
	const struct pem_model *model = set->session->model;
	size_t i, count = pem_model__count(model), matches = 0;
	bool is_name = names_event(model, pattern);
	uint8_t counters = is_name ? PEM_LEVEL_DEBUG : level_of_counters(model, pattern);
	const struct pem_event *event;

	if (any_level(pattern) > set->any_level)
		set->any_level = any_level(pattern);
	for (i = 0; i < count; i++) {
		event = pem_model__event(model, i);
		if (is_name && !is_name_of(event, pattern))
			continue;
		if (!chooses(pattern, event) || (found->count && !pem_found__has(found, event)) ||
		    (event->level > counters && pem_event__is_counter(event, pattern)))
			continue;
		matches++;
		if (!contains(set, event))
			set->events[set->count++] = event;
	}
	return matches;
}

static int check_patterns(const struct pem_session *session, const char *const *patterns,
			  size_t count, struct pem_error *error)
{
	size_t i;

	if (!session)
		return pem_error__lacks(error, "session");
	if (!patterns || !count)
		return pem_error__set(error, -EINVAL,
				      "no pattern of events was given: name an event, a class or a "
				      "layer; '*' takes all");
	for (i = 0; i < count; i++) {
		if (!patterns[i] || !*patterns[i])
			return pem_error__set(
				error, -EINVAL,
				"pattern %zu of %zu is %s: name an event, a class or a "
				"layer",
				i + 1, count, patterns[i] ? "empty" : "NULL");
	}
	return 0;
}

struct pem_event_set *pem_event_set__new(struct pem_session *session, const char *const *patterns,
					 size_t count, struct pem_error *error)
{
	struct pem_found *found;
	struct pem_event_set *set = NULL;
	size_t i;
	int rc = check_patterns(session, patterns, count, error);

	if (rc) {
		errno = -rc;
		return NULL;
	}
	found = calloc(count + 1, sizeof(*found));
	pem_session__lock(session);
	pem_session__load_own_models(session);
	rc = found ? find_probes(session, patterns, count, found, error)
		   : pem_error__set(error, -ENOMEM, "out of memory");
	if (rc) {
		errno = rc == -E2BIG ? ENOENT : -rc; /* the pattern finds too many */
		goto out;
	}
	set = malloc(sizeof(*set) + pem_model__count(session->model) * sizeof(set->events[0]));
	if (!set) {
		pem_error__set(error, 0, "out of memory");
		goto out;
	}
	set->session = session;
	set->predicates = NULL;
	set->count = 0;
	set->any_level = 0;
	for (i = 0; i < count; i++) {
		if (add_matches(set, patterns[i], &found[i]))
			continue;
		explain(session->model, patterns[i], error);
		free(set);
		set = NULL;
		errno = ENOENT;
		goto out;
	}
out:
	pem_session__unlock(session);
	for (i = 0; found && i < count; i++)
		pem_found__free(&found[i]);
	free(found);
	return set;
}

void pem_event_set__free(struct pem_event_set *set)
{
	if (set)
		free(set->predicates);
	free(set);
}

size_t pem_event_set__count(const struct pem_event_set *set)
{
	return set ? set->count : 0;
}

const struct pem_event *pem_event_set__event(const struct pem_event_set *set, size_t i)
{
	return set && i < set->count ? set->events[i] : NULL;
}
