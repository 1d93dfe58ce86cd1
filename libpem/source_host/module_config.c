/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * module_config.c - settings for the kernel module alone: counters read at events, and page
 * sampling
 *
 * Passing them to the module is in libpem/sources/module/sampling.c.
 */
#include "core/core.h"
#include "source_host/source_host.h"
#include "model_internal.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNTERS_MAX 8u
#define NAME_BYTES PEM_EDIT_DISTANCE_MAX
#define INTERVAL_US_MIN 1000u
#define REGION_BYTES_MIN 4096u
#define REGION_BYTES_MAX (1ull << 40)

/* A counter of the simulated machine. Its name says so: "Simulated::Cycles". */
static const char *simulated_source(const struct pem_session *s, const char *name,
				    const char **shown)
{
	const struct pem_event *event;
	size_t i;

	for (i = 0; s->options.hardware && i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		if (event->source_kind == PEM_SOURCE_SIMULATED &&
		    (!strcasecmp(name, event->specifier) || !strcmp(name, event->name))) {
			*shown = event->name + strlen(event->layer) + 2;
			return event->source_name;
		}
	}
	return NULL;
}

/*
 * Find a counter in the catalogue, by libpfm4's name or the catalogue's. Returns libpfm4's names
 * for it, and sets *shown to the catalogue's specifier. Returns NULL where the catalogue does not
 * have it, with *shown as name.
 */
static const char *counter_source(const struct pem_session *s, const char *name, const char **shown)
{
	const struct pem_event *event;
	size_t i;

	for (i = 0; i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		if (event->source_kind == PEM_SOURCE_PERF &&
		    (!strcasecmp(name, event->specifier) || !strcmp(name, event->name) ||
		     pem_event__is_counter(event, name))) {
			*shown = event->specifier;
			return event->source_name;
		}
	}
	*shown = name;
	return NULL;
}

/* Take a candidate as the best one if it is nearer to the written name than all before. */
static void consider(const char *name, const char *candidate, size_t length, char *best,
		     size_t bytes, unsigned *edits)
{
	char text[NAME_BYTES];
	unsigned distance;

	snprintf(text, sizeof(text), "%.*s", (int)length, candidate);
	distance = pem_edit_distance(name, text);
	if (distance >= *edits || distance > (strlen(name) < 8 ? 1 : strlen(name) / 4))
		return;
	*edits = distance;
	pem_copy_text(best, bytes, text);
}

/*
 * Report that no source knows a counter. The message has the nearest name of the catalogue or of
 * its libpfm4 names, or where to look names up. Returns -ENOENT.
 */
static int say_unknown(const struct pem_session *s, const char *name, const char *said,
		       struct pem_error *error)
{
	const struct pem_event *event;
	char best[NAME_BYTES] = "";
	unsigned edits = ~0u;
	const char *at;
	size_t i;

	for (i = 0; i < pem_model__count(s->model); i++) {
		event = pem_model__event(s->model, i);
		if (event->source_kind != PEM_SOURCE_PERF)
			continue;
		consider(name, event->specifier, strlen(event->specifier), best, sizeof(best),
			 &edits);
		for (at = event->source_name; *at; at += strcspn(at, "|"), at += *at == '|')
			consider(name, at, strcspn(at, "|"), best, sizeof(best), &edits);
	}
	if (*best)
		return pem_error__set(error, -ENOENT, "%s; did you mean '%s'?", said, best);
	return pem_error__set(error, -ENOENT,
			      "%s; 'pem list hw' shows the catalogue's, and showevtinfo libpfm4's",
			      said);
}

/* The source name of a counter. Returns NULL with error where no source knows the counter. */
static const char *find_counter(struct pem_session *s, const char *name, const char **shown,
				struct pem_error *error)
{
	const char *source = simulated_source(s, name, shown);
	struct pem_error said = {""};

	if (!source)
		source = counter_source(s, name, shown);

	if (source)
		return source;
	if (pem_session__knows_counter(s, name, &said) == 1)
		return name;
	say_unknown(s, name, said.text, error);
	return NULL;
}

/*
 * Append a name to a list with commas. Where there is no memory the text is freed, and NULL is
 * returned.
 */
static char *append(char *text, const char *name)
{
	size_t used = text ? strlen(text) : 0, bytes = strlen(name);
	char *grown = realloc(text, used + bytes + 2);

	if (!grown) {
		free(text);
		return NULL;
	}
	if (used)
		grown[used++] = ',';
	memcpy(grown + used, name, bytes + 1);
	return grown;
}

/* Fail a setting that comes too late. The session's mutex need not be held: nothing resets it. */
int pem_session__is_too_late(const struct pem_session *s, const char *function,
			     struct pem_error *error)
{
	if (!s->was_enabled)
		return 0;
	return pem_error__set(error, -EBUSY,
			      "a handle of the session was enabled already: call %s() before "
			      "anything is enabled, or open another session",
			      function);
}

int pem_session__set_counters(struct pem_session *s, const char *names, struct pem_error *error)
{
	char *copy, *rest, *name, *text = NULL, *shown_all = NULL;
	const char *source, *shown;
	unsigned count = 0;
	int rc;

	if (!s || !names)
		return pem_error__lacks(error, s ? "name of a counter" : "session");
	rc = pem_session__is_too_late(s, "pem_session__set_counters", error);
	if (rc)
		return rc;
	rest = copy = strdup(names);
	rc = copy ? 0 : -ENOMEM;
	while (!rc && (name = strsep(&rest, ","))) {
		if (!*name)
			rc = pem_error__set(error, -EINVAL, "counters '%.100s': a name is empty",
					    names);
		else if (++count > COUNTERS_MAX)
			rc = pem_error__set(error, -E2BIG,
					    "counters '%.100s': %u can be read at an event", names,
					    COUNTERS_MAX);
		if (rc)
			break;
		source = find_counter(s, name, &shown, error);
		if (!source) {
			rc = -ENOENT;
			break;
		}
		text = append(text, source);
		shown_all = append(shown_all, shown);
		rc = text && shown_all ? 0 : -ENOMEM;
	}
	free(copy);
	if (!rc && strlen(shown_all) >= sizeof(((struct pem_trace_info *)0)->counters))
		rc = pem_error__set(error, -E2BIG,
				    "counters '%.100s...': a trace has room for %zu bytes of names",
				    names, sizeof(((struct pem_trace_info *)0)->counters) - 1);
	if (rc == -ENOMEM)
		pem_error__set(error, rc, "out of memory");
	if (rc) {
		free(text);
		free(shown_all);
		return rc;
	}
	free(s->sources->counters);
	free(s->sources->counter_names);
	s->sources->counters = text;
	s->sources->counter_names = shown_all;
	return 0;
}

int pem_session__set_page_sampling(struct pem_session *s, uint32_t interval_us,
				   uint64_t region_bytes)
{
	if (!s || interval_us < INTERVAL_US_MIN || region_bytes < REGION_BYTES_MIN ||
	    region_bytes > REGION_BYTES_MAX || (region_bytes & (region_bytes - 1)))
		return -EINVAL;
	if (s->was_enabled)
		return -EBUSY;
	s->sources->pages_interval_us = interval_us;
	s->sources->pages_region_bytes = region_bytes;
	return 0;
}
