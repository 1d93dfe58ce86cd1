/* SPDX-License-Identifier: MIT */
/*
 * layout.c - where each field of a record lies: the only place that computes offsets
 *
 *	header (8) | numbers, and each list's u32 length, in the spec's order, aligned to their size | tail
 *
 * The tail holds lists and strings in the spec's order: a list's elements start at the next multiple of their size,
 * also when there are none (CTF readers align before an empty sequence too); a string at the next byte.
 */
#include "model.h"

#include <stdlib.h>

static uint32_t align_up(uint32_t n, uint32_t align)
{
	return (n + align - 1) / align * align;
}

/* Fields before the tail. Returns their end. */
static uint32_t place_fixed(struct pem_spec_event *event)
{
	uint32_t end = sizeof(struct pem_record_header), size, offset;
	struct pem_spec_field *field;
	size_t i;

	event->has_tail = 0;
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		field->offset = field->padding = 0;
		event->has_tail |= field->type == PEM_TYPE_LIST || field->type == PEM_TYPE_STRING;
		size = field->type == PEM_TYPE_LIST ? (uint32_t)sizeof(uint32_t)
						    : pem_type__size(field->type);
		if (!size)
			continue;
		offset = align_up(end, size);
		field->padding = offset - end;
		field->offset = offset;
		end = offset + size;
	}
	return end;
}

/* The longest tail's end. Alignment grows with position, so the longest parts give the longest whole. */
static uint64_t end_of_tail(const struct pem_spec_event *event, uint32_t fixed)
{
	const struct pem_spec_field *field;
	uint64_t end = fixed, size;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			end += field->max_count;
		if (field->type != PEM_TYPE_LIST)
			continue;
		size = pem_type__size(field->element_type);
		if (size)
			end = (end + size - 1) / size * size + size * field->max_count;
	}
	return (end + PEM_RECORD_ALIGN - 1) / PEM_RECORD_ALIGN * PEM_RECORD_ALIGN;
}

static void lay_out(struct pem_spec_set *set, const struct pem_spec *spec,
		    struct pem_spec_event *event)
{
	uint64_t bytes;

	if (event->field_count > PEM_SPEC_FIELDS_MAX)
		return; /* check.c said so */
	event->fixed_bytes = place_fixed(event);
	bytes = end_of_tail(event, event->fixed_bytes);
	event->max_bytes = (uint32_t)bytes;
	if (bytes > PEM_RECORD_BYTES_MAX)
		pem_spec_set__error(
			set, spec->path, event->line,
			"a record of this event may take %llu bytes: expected at most %u; "
			"lower max='' of its lists and strings",
			(unsigned long long)bytes, PEM_RECORD_BYTES_MAX);
}

void pem_spec_set__layout(struct pem_spec_set *set)
{
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		for (k = 0; k < set->specs[i].event_count; k++)
			lay_out(set, &set->specs[i], &set->specs[i].events[k]);
	}
}
