/* SPDX-License-Identifier: MIT */
/*
 * spec.c - checks what a file says outside of events: unused or empty definitions, versions; and
 * what pem.ko is to sample
 *
 * All are warnings except the last. Not here: names of definitions that collide (check.c).
 */
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* A field whose labels were not found has its error, and may have meant any of these labels. */
static int uses(const struct pem_spec_field *fields, size_t count,
		const struct pem_spec_labels *labels, int resolved)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (fields[i].labels_name && fields[i].labels_kind == labels->kind &&
		    (!strcmp(fields[i].labels_name, labels->name) ||
		     (resolved && !fields[i].labels)))
			return 1;
	}
	return 0;
}

static int is_used(const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	size_t i;

	for (i = 0; i < spec->event_count; i++) {
		if (uses(spec->events[i].fields, spec->events[i].field_count, labels, 1))
			return 1;
	}
	for (i = 0; i < spec->struct_count; i++) {
		if (uses(spec->structs[i].fields, spec->structs[i].field_count, labels, 0))
			return 1;
	}
	return 0;
}

/* One warning for all labels of a list, because it may have hundreds. */
static void check_described(const struct check *c, const struct pem_spec_labels *labels)
{
	const char *kind = pem_word__label_kind(labels->kind);
	const struct pem_spec_label *first = NULL;
	size_t i, bare = 0;

	if (!labels->description[0])
		WARN(c, labels->at,
		     "<%s> '%s' has no description: expected what its labels tell apart", kind,
		     labels->name);
	for (i = 0; i < labels->count; i++) {
		if (labels->labels[i].is_damaged || labels->labels[i].description[0])
			continue;
		if (!bare++)
			first = &labels->labels[i];
	}
	if (bare)
		WARN(c, first->at,
		     "label '%s'%s of '%s' has no description: expected what it stands for",
		     first->name ? first->name : "", bare > 1 ? ", like others" : "", labels->name);
}

static int is_held(const struct pem_spec *spec, const struct pem_spec_struct *structure)
{
	const struct pem_spec_field *field;
	size_t i, k;

	for (i = 0; i < spec->struct_count; i++) {
		for (k = 0; k < spec->structs[i].field_count; k++) {
			field = &spec->structs[i].fields[k];
			if (field->of && !strcmp(field->of, structure->name))
				return 1;
		}
	}
	return structure->is_used;
}

static void check_structs(const struct check *c)
{
	const struct pem_spec_struct *structure;
	size_t i;

	for (i = 0; i < c->spec->struct_count; i++) {
		structure = &c->spec->structs[i];
		if (!structure->name)
			continue;
		if (!structure->description[0])
			WARN(c, structure->at,
			     "<struct> '%s' has no description: expected what it says",
			     structure->name);
		if (!c->spec->is_damaged && !is_held(c->spec, structure))
			WARN(c, structure->at,
			     "nothing uses <struct> '%s': expected a field with type='struct' "
			     "of='%s'",
			     structure->name, structure->name);
	}
}

static void check_since(const struct check *c)
{
	const struct pem_spec_event *event;
	size_t i;

	for (i = 0; i < c->spec->event_count && c->spec->version[0]; i++) {
		event = &c->spec->events[i];
		if (event->since[0] && pem_version__compare(event->since, c->spec->version) > 0)
			WARN(c, event->at,
			     "since='%s' is later than the provider's version, %s: expected at "
			     "most that",
			     event->since, c->spec->version);
	}
}

void pem_check_spec(const struct check *c)
{
	const struct pem_spec_labels *labels;
	size_t i;

	for (i = 0; i < c->spec->labels_count; i++) {
		labels = &c->spec->labels[i];
		if (!labels->name)
			continue;
		check_described(c, labels);
		if (!c->spec->is_damaged && !is_used(c->spec, labels))
			WARN(c, labels->at, "nothing uses <%s> '%s': expected a field with %s='%s'",
			     pem_word__label_kind(labels->kind), labels->name,
			     pem_word__label_kind(labels->kind), labels->name);
	}
	check_structs(c);
	check_since(c);
}

int pem_version__compare(const char *a, const char *b)
{
	unsigned long x, y;
	char *end;

	while (*a || *b) {
		x = strtoul(a, &end, 10);
		a = end + (*end == '.');
		y = strtoul(b, &end, 10);
		b = end + (*end == '.');
		if (x != y)
			return x < y ? -1 : 1;
		/* the schema has reported it */
		if (*a && (*a < '0' || *a > '9'))
			return 0;
		if (*b && (*b < '0' || *b > '9'))
			return 0;
	}
	return 0;
}

/* Each name is a file of kmod/. */
void pem_check_module(const struct check *c, const struct pem_spec_source *source)
{
	if (strcmp(source->name, "counters") != 0 && strcmp(source->name, "accessed") != 0 &&
	    strcmp(source->name, "supply") != 0)
		ERROR(c, source->at,
		      "source 'module' is called '%s': expected what the module looks at, "
		      "'counters', 'accessed' or 'supply'",
		      source->name);
}
