/* SPDX-License-Identifier: MIT */
/*
 * resolve.c - replaces structures, labels and defaults, so that an event is complete in itself
 *
 * A structure's members replace the field with the structure. Their names are 'field.member'. So
 * layout, readers and predicates know only numbers, lists and strings. Not here: checks of the
 * result (check/check.c).
 */
#include "event_id.h"
#include "model.h"
#include "suggest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The fields of an event or structure while structures are replaced. */
struct expansion {
	struct pem_spec_set *set;
	const struct pem_spec *spec;
	struct pem_spec_field *fields;
	size_t count;
	/*
	 * Limits the work: structures may hold many empty ones, which is an error but takes time.
	 */
	unsigned steps;
	int failed; /* an error was reported; one is enough */
};

#define STEPS_MAX 1024u

static struct pem_spec_struct *find_struct(const struct pem_spec *spec, const char *name)
{
	size_t i;

	for (i = 0; name && i < spec->struct_count; i++) {
		if (spec->structs[i].name && !strcmp(spec->structs[i].name, name))
			return &spec->structs[i];
	}
	return NULL;
}

static const struct pem_spec_labels *find_labels(const struct pem_spec *spec, const char *name,
						 unsigned kind)
{
	size_t i;

	for (i = 0; i < spec->labels_count; i++) {
		if (spec->labels[i].name && spec->labels[i].kind == kind &&
		    !strcmp(spec->labels[i].name, name))
			return &spec->labels[i];
	}
	return NULL;
}

static char *copy_of(const char *text)
{
	return text ? pem_xstrdup(text) : NULL;
}

/*
 * Add a copy of a field with a name of its own. Its location is where the outermost structure is
 * used.
 */
static void append(struct expansion *e, const struct pem_spec_field *field, const char *prefix,
		   struct pem_spec_location at)
{
	struct pem_spec_field *to;

	e->fields = pem_xgrow(e->fields, e->count, sizeof(*e->fields));
	to = &e->fields[e->count++];
	*to = *field;
	to->at = at;
	to->name = field->name ? pem_xprintf("%s%s", prefix, field->name) : NULL;
	to->description = copy_of(field->description);
	to->unit = copy_of(field->unit);
	to->from = copy_of(field->from);
	to->of = copy_of(field->of);
	to->labels_name = copy_of(field->labels_name);
}

static void expand(struct expansion *e, const struct pem_spec_field *field, const char *prefix,
		   struct pem_spec_location at, unsigned depth)
{
	struct pem_spec_struct *structure;
	char *inner;
	size_t i;

	if (e->failed || ++e->steps > STEPS_MAX)
		return;
	if (field->is_struct && !field->has_of)
		pem_spec_set__error(e->set, e->spec->path, at,
				    "type='struct' lacks of='': expected the name of a <struct>");
	if (!field->is_struct || !field->name || !field->of) {
		append(e, field, prefix, at);
		return;
	}
	structure = find_struct(e->spec, field->of);
	if (structure)
		structure->is_used = 1;
	if (!structure && e->spec->lacks_parts) {
		e->failed = 1;
		return;
	}
	if (!structure || depth == PEM_SPEC_STRUCT_DEPTH_MAX) {
		pem_spec_set__error(e->set, e->spec->path, at,
				    structure
					    ? "structure '%s' holds structures more than %u "
					      "deep: expected less"
					    : "there is no structure '%s': expected a <struct> of "
					      "that name in this file",
				    field->of, PEM_SPEC_STRUCT_DEPTH_MAX);
		e->failed = 1;
		return;
	}
	inner = pem_xprintf("%s%s.", prefix, field->name);
	for (i = 0;
	     i < structure->field_count && e->count <= PEM_SPEC_FIELDS_MAX && e->steps <= STEPS_MAX;
	     i++)
		expand(e, &structure->fields[i], inner, at, depth + 1);
	free(inner);
}

static void free_fields(struct pem_spec_field *fields, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		pem_spec_field__free(&fields[i]);
	free(fields);
}

/* An error about too many fields was already reported. */
static void drop_fields(struct pem_spec_event *event)
{
	free_fields(event->fields, event->field_count);
	event->fields = NULL;
	event->field_count = 0;
}

static void no_labels(struct pem_spec_set *set, const struct pem_spec *spec,
		      const struct pem_spec_field *field)
{
	struct pem_suggestion near = {.meant = field->labels_name};
	const struct pem_spec_labels *labels;
	char *meant;
	size_t i;

	for (i = 0; i < spec->labels_count; i++) {
		labels = &spec->labels[i];
		if (labels->name && labels->kind == field->labels_kind)
			pem_suggestion__try(&near, labels->name, strlen(labels->name));
	}
	meant = pem_suggestion__text(&near, "'", "'");
	pem_spec_set__error(set, spec->path, field->at,
			    "there is no <%s name='%s'> in this file: expected one%s",
			    pem_word__label_kind(field->labels_kind), field->labels_name, meant);
	free(meant);
}

static void resolve_labels(struct pem_spec_set *set, const struct pem_spec *spec,
			   struct pem_spec_field *field)
{
	if (!field->labels_name)
		return;
	field->labels = find_labels(spec, field->labels_name, field->labels_kind);
	if (!field->labels && !spec->lacks_parts)
		no_labels(set, spec, field);
}

static char *with_underscores(const char *name)
{
	char *copy = pem_xstrdup(name), *p;

	for (p = copy; *p; p++)
		*p = *p == '.' ? '_' : *p;
	return copy;
}

/*
 * Numbers of fields and labels of a file's events so far. With structures and enums a small file
 * could ask for a huge output.
 */
struct total {
	size_t fields;
	size_t labels;
};

static void add_to_total(struct pem_spec_set *set, const struct pem_spec_event *event,
			 struct total *total)
{
	int was_small = total->fields <= PEM_SPEC_ALL_FIELDS_MAX &&
			total->labels <= PEM_SPEC_LABEL_USES_MAX;
	size_t i;

	total->fields += event->field_count;
	for (i = 0; i < event->field_count; i++)
		total->labels += event->fields[i].labels ? event->fields[i].labels->count : 0;
	if (was_small && total->fields > PEM_SPEC_ALL_FIELDS_MAX)
		pem_spec_set__error(set, event->spec->path, event->at,
				    "the events up to here have %zu fields, those of structures "
				    "counted where they are used: expected at most %u in a file",
				    total->fields, PEM_SPEC_ALL_FIELDS_MAX);
	else if (was_small && total->labels > PEM_SPEC_LABEL_USES_MAX)
		pem_spec_set__error(set, event->spec->path, event->at,
				    "the fields up to here have %zu labels, those of an <enum> or "
				    "<flags> counted for each: expected at most %u in a file",
				    total->labels, PEM_SPEC_LABEL_USES_MAX);
}

static void resolve_fields(struct pem_spec_set *set, struct pem_spec *spec,
			   struct pem_spec_event *event)
{
	struct expansion e = {.set = set, .spec = spec};
	size_t i;

	/* One field more than allowed is enough for check/check.c to report it. */
	for (i = 0; i < event->field_count && e.count <= PEM_SPEC_FIELDS_MAX; i++) {
		e.failed = 0;
		expand(&e, &event->fields[i], "", event->fields[i].at, 0);
	}
	free_fields(event->fields, event->field_count);
	event->fields = e.fields;
	event->field_count = e.count;
	for (i = 0; i < event->field_count; i++) {
		resolve_labels(set, spec, &event->fields[i]);
		if (event->fields[i].name)
			event->fields[i].c_name = with_underscores(event->fields[i].name);
	}
}

static unsigned default_scope(const struct pem_spec_event *event)
{
	switch (event->meaning) {
	case PEM_MEANS_INTERVAL_BEGIN:
	case PEM_MEANS_INTERVAL_END:
		return PEM_SCOPE_THREAD;
	case PEM_MEANS_ALLOCATION:
	case PEM_MEANS_RELEASE:
		return event->layer && !strcmp(event->layer, "APP") ? PEM_SCOPE_PROCESS
								    : PEM_SCOPE_SYSTEM;
	case PEM_MEANS_SEND:
	case PEM_MEANS_RECEIVE:
		return PEM_SCOPE_SYSTEM;
	default:
		return PEM_SCOPE_NONE;
	}
}

static void resolve_meaning(struct pem_spec_event *event)
{
	unsigned scope = default_scope(event);

	if (!event->scope)
		event->scope = (uint8_t)scope;
	if (event->group)
		return;
	event->group = scope && event->layer && event->class_name
			       ? pem_xprintf("%s::%s", event->layer, event->class_name)
			       : pem_xstrdup("");
}

static void resolve_source(struct pem_spec *spec, struct pem_spec_event *event)
{
	if (!event->source_count) {
		event->sources = pem_xgrow(event->sources, 0, sizeof(*event->sources));
		memset(event->sources, 0, sizeof(*event->sources));
		event->sources[0].name = pem_xstrdup("");
		event->sources[0].at = event->at;
		event->source_count = 1;
	}
	event->source_kind = event->sources[0].kind;
	if (event->source_kind == PEM_SOURCE_STUB)
		event->stub_index = spec->stub_count++;
}

/* Compute names and numbers from others. */
static void resolve_names(struct pem_spec_event *event)
{
	char *class_name, *specifier, *p;

	if (event->name)
		event->id = pem_event_id(event->name, event->version);
	if (!event->class_name || !event->specifier)
		return;
	class_name = pem_snake_case(event->class_name);
	specifier = pem_snake_case(event->specifier);
	event->c_name = pem_xprintf("%s_%s", class_name, specifier);
	event->c_upper = pem_xstrdup(event->c_name);
	for (p = event->c_upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	free(class_name);
	free(specifier);
}

void pem_spec_set__resolve(struct pem_spec_set *set)
{
	struct pem_spec_event *event;
	struct pem_spec *spec;
	struct total total;
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		spec = &set->specs[i];
		memset(&total, 0, sizeof(total));
		for (k = 0; k < spec->event_count; k++) {
			event = &spec->events[k];
			event->spec = spec;
			if (!event->level)
				event->level = PEM_LEVEL_INFO;
			if (total.fields > PEM_SPEC_ALL_FIELDS_MAX)
				drop_fields(event);
			resolve_fields(set, spec, event);
			add_to_total(set, event, &total);
			resolve_meaning(event);
			resolve_source(spec, event);
			resolve_names(event);
		}
	}
}

const char *pem_spec_event__from(const struct pem_spec_event *event, size_t source,
				 const struct pem_spec_field *field)
{
	const struct pem_spec_source *alternative = &event->sources[source];
	size_t i;

	for (i = 0; i < alternative->from_count; i++) {
		if (alternative->froms[i].field && field->name &&
		    !strcmp(alternative->froms[i].field, field->name))
			return alternative->froms[i].value;
	}
	return field->from;
}
