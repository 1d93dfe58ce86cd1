// SPDX-License-Identifier: MIT
/* json.c - pem list --json: all data of each event */
#include "list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static struct json_object *labels_json(const struct pem_field *f)
{
	struct json_object *labels = json_object_new_array();
	unsigned int i;

	for (i = 0; i < f->label_count; i++) {
		struct json_object *label = json_object_new_object();

		cli_json__text(label, "name", f->labels[i].name);
		if (f->type >= PEM_TYPE_INT8 && f->type <= PEM_TYPE_INT64)
			json_object_object_add(label, "value",
					       json_object_new_int64((int64_t)f->labels[i].value));
		else
			cli_json__count(label, "value", f->labels[i].value);
		cli_json__text(label, "description", f->labels[i].description);
		json_object_array_add(labels, label);
	}
	return labels;
}

static struct json_object *field_json(const struct pem_field *f)
{
	struct json_object *field = json_object_new_object();

	cli_json__text(field, "name", f->name);
	if (f->type == PEM_TYPE_LIST || f->type == PEM_TYPE_ARRAY)
		cli_json__text(field, "type",
			       cli_format("%s of %s", pem_type__name(f->type),
					  pem_type__name(f->element_type)));
	else
		cli_json__text(field, "type", pem_type__name(f->type));
	cli_json__count(field, "max", f->max_count);
	cli_json__text(field, "unit", f->unit);
	cli_json__text(field, "role", f->role != PEM_ROLE_NONE ? pem_role__name(f->role) : "");
	cli_json__count(field, "base", f->base);
	cli_json__text(field, "description", f->description);
	if (f->label_kind != PEM_LABELS_NONE) {
		cli_json__text(field, "labelKind",
			       f->label_kind == PEM_LABELS_ENUM ? "enum" : "flags");
		json_object_object_add(field, "labels", labels_json(f));
	}
	return field;
}

/* The alternative sources, best first. */
static struct json_object *sources_json(const struct pem_event *event)
{
	struct json_object *sources = json_object_new_array();
	const char *p = event->source_name, *name;
	size_t n;

	while ((n = list_next_source(event, &p, &name)) != 0)
		json_object_array_add(sources, json_object_new_string_len(name, (int)n));
	return sources;
}

/* null: nothing of this processor. turn 0: it is counted at any time, or not at all. */
static struct json_object *counted_as_json(const struct list_entry *entry)
{
	struct json_object *object;

	if (!entry->is_counted)
		return NULL;
	object = json_object_new_object();
	cli_json__text(object, "name", entry->as.name);
	cli_json__count(object, "type", entry->as.type);
	cli_json__text(object, "config", cli_format("0x%" PRIx64, entry->as.config));
	cli_json__flag(object, "takesCounter", entry->as.takes_counter);
	cli_json__count(object, "counters", entry->as.counters);
	cli_json__count(object, "fixedCounters", entry->as.fixed_counters);
	cli_json__count(object, "turn", entry->turn);
	return object;
}

static struct json_object *entry_json(const struct list_entry *entry)
{
	const struct pem_event *e = entry->event;
	struct json_object *object = json_object_new_object();
	struct json_object *fields = json_object_new_array();
	unsigned int i;

	cli_json__text(object, "name", e->name);
	cli_json__text(object, "layer", e->layer);
	cli_json__text(object, "class", e->class_name);
	cli_json__text(object, "specifier", e->specifier);
	cli_json__text(object, "id", cli_format("%08" PRIx32, e->id));
	cli_json__count(object, "version", e->version);
	cli_json__text(object, "level", pem_level__name(e->level));
	cli_json__text(object, "since", e->since);
	cli_json__text(object, "deprecated", e->deprecated);
	cli_json__text(object, "description", e->description);
	cli_json__text(object, "meaning", e->meaning != 0 ? pem_meaning__name(e->meaning) : "");
	cli_json__text(object, "group", e->group);
	cli_json__text(object, "scope", e->scope != 0 ? pem_scope__name(e->scope) : "");
	cli_json__text(object, "source", pem_source_kind__name(e->source_kind));
	json_object_object_add(object, "sources", sources_json(e));
	cli_json__flag(object, "available", entry->available);
	cli_json__text(object, "path", entry->path);
	cli_json__text(object, "availability", list_here(entry));
	cli_json__text(object, "reason", entry->available ? "" : entry->reason.text);
	if (entry->is_counter)
		json_object_object_add(object, "countedAs", counted_as_json(entry));
	for (i = 0; i < e->field_count; i++)
		json_object_array_add(fields, field_json(&e->fields[i]));
	json_object_object_add(object, "fields", fields);
	return object;
}

void list_print_json(const struct list *list)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < list->count; i++)
		json_object_array_add(array, entry_json(&list->entries[i]));
	cli_json__print(array, stdout, false);
}
