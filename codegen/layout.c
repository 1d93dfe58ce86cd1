/* SPDX-License-Identifier: MIT */
/*
 * layout.c - lays out the records of a set's events by pem/record_layout.h, and reports records
 * that are too long
 */
#include "model.h"

#include <pem/record_layout.h>

#include <stdlib.h>

static void location(struct pem_spec_event *event, struct pem_layout *layout)
{
	struct pem_layout_field *fields =
		pem_xrealloc(NULL, event->field_count + 1, sizeof(*fields));
	const struct pem_spec_field *field;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		fields[i] = (struct pem_layout_field){.name = field->name,
						      .type = field->type,
						      .element_type = field->element_type,
						      .max_count = field->max_count};
	}
	pem_layout_append(fields, event->field_count, layout);
	for (i = 0; i < event->field_count; i++) {
		event->fields[i].offset = fields[i].offset;
		event->fields[i].padding = fields[i].padding;
	}
	free(fields);
}

static void lay_out(struct pem_spec_set *set, const struct pem_spec *spec,
		    struct pem_spec_event *event)
{
	struct pem_layout layout;

	/* check/check.c has reported this */
	if (event->field_count > PEM_SPEC_FIELDS_MAX)
		return;
	location(event, &layout);
	event->has_tail = layout.has_tail;
	event->fixed_bytes = (uint32_t)layout.fixed_bytes;
	event->max_bytes = (uint32_t)layout.max_bytes;
	if (layout.max_bytes > PEM_RECORD_BYTES_MAX)
		pem_spec_set__error(
			set, spec->path, event->at,
			"a record of this event may take %llu bytes: expected at most %u; "
			"lower max='' of its lists and strings, or count='' of its arrays",
			(unsigned long long)layout.max_bytes, PEM_RECORD_BYTES_MAX);
}

void pem_spec_set__layout(struct pem_spec_set *set)
{
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		for (k = 0; k < set->specs[i].event_count; k++)
			lay_out(set, &set->specs[i], &set->specs[i].events[k]);
	}
}
