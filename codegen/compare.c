/* SPDX-License-Identifier: MIT */
/*
 * compare.c - compares specs with an older version of them
 *
 * An event's name and version fix what a record means. Descriptions, levels, meanings, roles and
 * sources may change at any time, because readers take them from the model that travels with the
 * records.
 */
#include "catalogue.h"
#include "compare.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* An event and its older version. */
struct pair {
	struct pem_spec_set *set;
	const struct pem_spec_event *now, *was;
};

#define LOCATION "%s:%d:%d"
#define WAS(p, at) (p)->was->spec->path, (at).line, (at).column

/*
 * Note an error at a location of the new event. The advice is one for all such errors, and is added
 * here.
 */
static void differs(const struct pair *p, struct pem_spec_location at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void differs(const struct pair *p, struct pem_spec_location at, const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = pem_xstrdup("out of memory");
	va_end(ap);
	pem_spec_set__error(p->set, p->now->spec->path, at,
			    "%s: expected version='%u' on event '%s', or the record as it was",
			    text, p->was->version + 1u, p->now->name);
	free(text);
}

static size_t find_field(const struct pem_spec_event *event, const char *name)
{
	size_t i = 0;

	while (i < event->field_count && strcmp(event->fields[i].name, name))
		i++;
	return i;
}

static int has_field(const struct pem_spec_event *event, const char *name)
{
	return find_field(event, name) < event->field_count;
}

static int same_shape(const struct pem_spec_field *a, const struct pem_spec_field *b)
{
	return a->type == b->type && a->element_type == b->element_type &&
	       a->max_count == b->max_count;
}

/* The type in a readable form. The caller frees it. */
static char *type_text(const struct pem_spec_field *f)
{
	if (f->type == PEM_TYPE_LIST || f->type == PEM_TYPE_ARRAY)
		return pem_xprintf("%s of %u %s", pem_word__type(f->type), f->max_count,
				   pem_word__type(f->element_type));
	if (f->type == PEM_TYPE_STRING)
		return pem_xprintf("string of %u bytes", f->max_count);
	return pem_xstrdup(pem_word__type(f->type));
}

static const struct pem_spec_label *label_of_name(const struct pem_spec_labels *labels,
						  const char *name)
{
	size_t i;

	for (i = 0; i < labels->count; i++) {
		if (!strcmp(labels->labels[i].name, name))
			return &labels->labels[i];
	}
	return NULL;
}

static const struct pem_spec_label *label_of_value(const struct pem_spec_labels *labels,
						   uint64_t value)
{
	size_t i;

	for (i = 0; i < labels->count; i++) {
		if (labels->labels[i].value == value)
			return &labels->labels[i];
	}
	return NULL;
}

static void compare_label(const struct pair *p, const struct pem_spec_field *now,
			  const struct pem_spec_label *was)
{
	const struct pem_spec_label *named = label_of_name(now->labels, was->name);
	const struct pem_spec_label *valued = label_of_value(now->labels, was->value);

	if (named && named->value != was->value)
		differs(p, named->at,
			"label '%s' of field '%s' has another value than in " LOCATION, was->name,
			now->name, WAS(p, was->at));
	else if (!named && valued &&
		 !label_of_name(p->was->fields[find_field(p->was, now->name)].labels, valued->name))
		differs(p, valued->at,
			"the value of label '%s' of field '%s' was '%s' in " LOCATION, valued->name,
			now->name, was->name, WAS(p, was->at));
	else if (!named && !valued)
		pem_spec_set__warn(p->set, p->now->spec->path, now->at,
				   "field '%s' has label '%s' (" LOCATION
				   ") no more: expected it, as values of it may still come",
				   now->name, was->name, WAS(p, was->at));
}

static void compare_labels(const struct pair *p, const struct pem_spec_field *now,
			   const struct pem_spec_field *was)
{
	size_t i;

	if (!was->labels)
		return;
	if (!now->labels) {
		pem_spec_set__warn(p->set, p->now->spec->path, now->at,
				   "field '%s' has no labels any more, unlike in " LOCATION
				   ": expected them",
				   now->name, WAS(p, was->at));
		return;
	}
	if (now->labels->kind != was->labels->kind) {
		differs(p, now->at, "labels of field '%s' were '%s', not '%s', in " LOCATION,
			now->name, pem_word__label_kind(was->labels->kind),
			pem_word__label_kind(now->labels->kind), WAS(p, was->at));
		return;
	}
	for (i = 0; i < was->labels->count; i++)
		compare_label(p, now, &was->labels->labels[i]);
}

static void compare_field(const struct pair *p, const struct pem_spec_field *now,
			  const struct pem_spec_field *was)
{
	char *type = type_text(now), *old_type = type_text(was);

	if (!same_shape(now, was))
		differs(p, now->at, "field '%s' is %s, and was %s in " LOCATION, now->name, type,
			old_type, WAS(p, was->at));
	if (strcmp(now->unit, was->unit))
		differs(p, now->at, "field '%s' has unit '%s', and had '%s' in " LOCATION,
			now->name, *now->unit ? now->unit : "none", *was->unit ? was->unit : "none",
			WAS(p, was->at));
	compare_labels(p, now, was);
	free(type);
	free(old_type);
}

/* Returns 1 if an old field without successor was renamed to the new field in its place. */
static int is_renamed(const struct pair *p, size_t i)
{
	const struct pem_spec_field *now, *was;

	if (i >= p->now->field_count || i >= p->was->field_count)
		return 0;
	now = &p->now->fields[i];
	was = &p->was->fields[i];
	return !has_field(p->now, was->name) && !has_field(p->was, now->name) &&
	       same_shape(now, was);
}

/*
 * Compare the order of the fields that both versions have. The first field that moved is reported.
 * Returns 1 if there is one.
 */
static int compare_order(const struct pair *p)
{
	size_t i = 0, k = 0;

	for (;; i++, k++) {
		while (i < p->now->field_count && !has_field(p->was, p->now->fields[i].name))
			i++;
		while (k < p->was->field_count && !has_field(p->now, p->was->fields[k].name))
			k++;
		if (i >= p->now->field_count || k >= p->was->field_count)
			return 0;
		if (strcmp(p->now->fields[i].name, p->was->fields[k].name)) {
			differs(p, p->now->fields[i].at,
				"field '%s' stands where '%s' stood in " LOCATION,
				p->now->fields[i].name, p->was->fields[k].name,
				WAS(p, p->was->fields[k].at));
			return 1;
		}
	}
}

static void compare_fields(const struct pair *p)
{
	size_t before = p->set->error_count, i, k;
	const struct pem_spec_field *f;

	for (i = 0; i < p->was->field_count; i++) {
		f = &p->was->fields[i];
		k = find_field(p->now, f->name);
		if (k < p->now->field_count)
			compare_field(p, &p->now->fields[k], f);
		else if (is_renamed(p, i))
			differs(p, p->now->fields[i].at, "field '%s' was called '%s' in " LOCATION,
				p->now->fields[i].name, f->name, WAS(p, f->at));
		else
			differs(p, p->now->at, "field '%s' (" LOCATION ") is gone", f->name,
				WAS(p, f->at));
	}
	for (i = 0; i < p->now->field_count; i++) {
		f = &p->now->fields[i];
		if (!has_field(p->was, f->name) && !is_renamed(p, i))
			differs(p, f->at, "field '%s' is new since " LOCATION, f->name,
				WAS(p, p->was->at));
	}
	compare_order(p);
	if (p->set->error_count == before &&
	    (p->now->fixed_bytes != p->was->fixed_bytes || p->now->max_bytes != p->was->max_bytes))
		differs(p, p->now->at, "the record is laid out otherwise than that of " LOCATION,
			WAS(p, p->was->at));
}

static void compare_event(const struct pair *p)
{
	if (p->now->version < p->was->version)
		pem_spec_set__error(p->set, p->now->spec->path, p->now->at,
				    "event '%s' has version %u, and had %u in " LOCATION
				    ": expected at least that",
				    p->now->name, p->now->version, p->was->version,
				    WAS(p, p->was->at));
	else if (p->now->version == p->was->version)
		compare_fields(p);
}

/* --- events by name --- */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct pem_spec_event *const *)a)->name,
		      (*(const struct pem_spec_event *const *)b)->name);
}

struct index {
	const struct pem_spec_event **events;
	size_t count;
};

static struct index index_of(const struct pem_spec_set *set)
{
	struct index index = {NULL, 0};
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		for (k = 0; k < set->specs[i].event_count; k++) {
			index.events = pem_xgrow(index.events, index.count, sizeof(*index.events));
			index.events[index.count++] = &set->specs[i].events[k];
		}
	}
	if (index.count)
		qsort(index.events, index.count, sizeof(*index.events), by_name);
	return index;
}

static const struct pem_spec_event *lookup(const struct index *index,
					   const struct pem_spec_event *event)
{
	const struct pem_spec_event **found = NULL;

	if (index->count)
		found = bsearch(&event, index->events, index->count, sizeof(*index->events),
				by_name);
	return found ? *found : NULL;
}

static struct pem_spec *find_provider(const struct pem_spec_set *set, const char *provider)
{
	size_t i;

	for (i = 0; i < set->count; i++) {
		if (!strcmp(set->specs[i].provider, provider))
			return &set->specs[i];
	}
	return NULL;
}

/*
 * Compare what a provider's users notice besides records: its name, in all generated files, and its
 * version.
 */
static void compare_provider(struct pem_spec_set *set, const struct pem_spec *now,
			     const struct pem_spec *was)
{
	if (strcmp(now->provider, was->provider))
		pem_spec_set__warn(set, now->path, now->at,
				   "provider '%s' has events that '%s' had in " LOCATION
				   ": expected them there, or programs must be changed to use '%s'",
				   now->provider, was->provider, was->path, was->at.line,
				   was->at.column, now->provider);
	else if (was->version[0] && pem_version__compare(now->version, was->version) < 0)
		pem_spec_set__error(set, now->path, now->at,
				    "the provider has %s%s, and had %s in " LOCATION
				    ": expected at least that",
				    now->version[0] ? "version " : "no version", now->version,
				    was->version, was->path, was->at.line, was->at.column);
}

/* Once for each old spec, and for each spec that has its events now. */
static void compare_providers(struct pem_spec_set *set, const struct pem_spec_set *old,
			      const struct index *now)
{
	const struct pem_spec *told, *was;
	const struct pem_spec_event *event;
	size_t i, k;

	for (i = 0; i < old->count; i++) {
		was = &old->specs[i];
		told = NULL;
		for (k = 0; k < was->event_count; k++) {
			event = lookup(now, &was->events[k]);
			if (!event || event->spec == told)
				continue;
			told = event->spec;
			compare_provider(set, told, was);
		}
	}
}

/*
 * Find an event of the spec that the old specs lack and that has the fields of the missing event.
 * Probably this is the event with a new name.
 */
static const struct pem_spec_event *find_renamed(const struct pem_spec *spec,
						 const struct index *old,
						 const struct pem_spec_event *gone)
{
	const struct pem_spec_event *event;
	size_t i, k;

	for (i = 0; i < spec->event_count; i++) {
		event = &spec->events[i];
		if (lookup(old, event) || event->field_count != gone->field_count)
			continue;
		for (k = 0; k < event->field_count; k++) {
			if (strcmp(event->fields[k].name, gone->fields[k].name) ||
			    !same_shape(&event->fields[k], &gone->fields[k]))
				break;
		}
		if (k == event->field_count)
			return event;
	}
	return NULL;
}

static void note_gone(struct pem_spec_set *set, const struct index *old,
		      const struct pem_spec_event *gone, int whole)
{
	const struct pem_spec *spec = find_provider(set, gone->spec->provider);
	const struct pem_spec_event *renamed;

	if (!spec && !whole)
		return;
	renamed = spec ? find_renamed(spec, old, gone) : NULL;
	if (*gone->deprecated)
		pem_spec_set__warn(set, spec ? spec->path : gone->spec->path,
				   spec ? spec->at : gone->at,
				   "event '%s' (" LOCATION ", deprecated) is gone", gone->name,
				   gone->spec->path, gone->at.line, gone->at.column);
	else if (renamed)
		pem_spec_set__error(
			set, spec->path, renamed->at,
			"event '%s' is new, and '%s' (" LOCATION ") with the same fields is gone: "
			"expected the old name, or both and deprecated='' on the old one",
			renamed->name, gone->name, gone->spec->path, gone->at.line,
			gone->at.column);
	else
		pem_spec_set__error(
			set, spec ? spec->path : gone->spec->path, spec ? spec->at : gone->at,
			"event '%s' (" LOCATION ") is gone: expected it with deprecated='' for "
			"a version first",
			gone->name, gone->spec->path, gone->at.line, gone->at.column);
}

void pem_spec_set__compare(struct pem_spec_set *set, const struct pem_spec_set *old, int whole)
{
	struct index now = index_of(set), was = index_of(old);
	struct pair p = {.set = set};
	size_t i;

	compare_providers(set, old, &now);
	for (i = 0; i < was.count; i++) {
		p.was = was.events[i];
		p.now = lookup(&now, p.was);
		if (p.now)
			compare_event(&p);
		else
			note_gone(set, &was, p.was, whole);
	}
	free(now.events);
	free(was.events);
}

void pem_spec_set__compare_catalogue(struct pem_spec_set *set)
{
	int is_sound = set->error_count == set->warning_count;
	struct pair p = {.set = set};
	const struct pem_spec *spec;
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		spec = &set->specs[i];
		if (!spec->provider || pem_catalogue__has_file(spec))
			continue;
		for (k = 0; k < spec->event_count; k++) {
			p.now = &spec->events[k];
			p.was = p.now->name ? pem_catalogue__find(p.now->name, strlen(p.now->name))
					    : NULL;
			if (p.was && strcmp(p.was->spec->provider, spec->provider))
				pem_spec_set__error(
					set, spec->path, p.now->at,
					"event '%s' is one of pem's catalogue (" LOCATION
					"): expected another name",
					p.now->name, WAS(&p, p.was->at));
			else if (p.was && is_sound)
				compare_event(&p);
		}
	}
}
