/* SPDX-License-Identifier: MIT */
/*
 * layout.c - where each field of a record lies: the only place that computes offsets
 *
 *	header (8) | numbers, arrays, and each list's u32 length, in the spec's order, aligned to their size | tail
 *
 * The tail holds lists and strings in the spec's order: a list's elements start at the next multiple of their size,
 * also when there are none (CTF readers align before an empty sequence too); a string at the next byte.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

static uint64_t align_up(uint64_t n, uint32_t align)
{
	return (n + align - 1) / align * align;
}

/* What a field takes in the fixed part, and the multiple it starts at; a list there is its length. 0: nothing. */
static uint32_t fixed_size(const struct pem_spec_field *field, uint32_t *align)
{
	*align = field->type == PEM_TYPE_LIST    ? (uint32_t)sizeof(uint32_t)
		 : field->type == PEM_TYPE_ARRAY ? pem_type__size(field->element_type)
						 : pem_type__size(field->type);
	return field->type == PEM_TYPE_ARRAY ? *align * field->max_count : *align;
}

/* Bytes of the name up to and with its nth dot: the n outermost structures it lies in; 0 if it lies in fewer. */
static size_t prefix_bytes(const char *name, unsigned n)
{
	const char *p = name;

	while (n && (p = strchr(p, '.')) != NULL) {
		p++;
		n--;
	}
	return n ? 0 : (size_t)(p - name);
}

/*
 * Where the structures that begin with this field must start: a structure, as in CTF, is aligned like its widest member.
 */
static uint32_t structure_align(const struct pem_spec_event *event, size_t index)
{
	const char *name = event->fields[index].name;
	uint32_t align = 1, member;
	unsigned depth;
	size_t bytes, i;

	for (depth = 1; name && (bytes = prefix_bytes(name, depth)) != 0; depth++) {
		if (index && event->fields[index - 1].name &&
		    !strncmp(event->fields[index - 1].name, name, bytes))
			continue;
		for (i = index; i < event->field_count && event->fields[i].name &&
				!strncmp(event->fields[i].name, name, bytes);
		     i++) {
			if (fixed_size(&event->fields[i], &member) && member > align)
				align = member;
		}
	}
	return align;
}

/* Fields before the tail. Returns their end. */
static uint64_t place_fixed(struct pem_spec_event *event)
{
	uint32_t size, align, structure;
	uint64_t end = sizeof(struct pem_record_header), offset;
	struct pem_spec_field *field;
	size_t i;

	event->has_tail = 0;
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		field->offset = field->padding = 0;
		event->has_tail |= field->type == PEM_TYPE_LIST || field->type == PEM_TYPE_STRING;
		size = fixed_size(field, &align);
		if (!size)
			continue;
		structure = structure_align(event, i);
		offset = align_up(end, structure > align ? structure : align);
		field->padding = (uint32_t)(offset - end);
		field->offset = (uint32_t)offset;
		end = offset + size;
	}
	return end;
}

/* The longest tail's end. Alignment grows with position, so the longest parts give the longest whole. */
static uint64_t end_of_tail(const struct pem_spec_event *event, uint64_t fixed)
{
	const struct pem_spec_field *field;
	uint64_t end = fixed;
	uint32_t size;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			end += field->max_count;
		if (field->type != PEM_TYPE_LIST)
			continue;
		size = pem_type__size(field->element_type);
		if (size)
			end = align_up(end, size) + (uint64_t)size * field->max_count;
	}
	return align_up(end, PEM_RECORD_ALIGN);
}

static void lay_out(struct pem_spec_set *set, const struct pem_spec *spec,
		    struct pem_spec_event *event)
{
	uint64_t fixed, bytes;

	if (event->field_count > PEM_SPEC_FIELDS_MAX)
		return; /* check.c said so */
	fixed = place_fixed(event);
	bytes = end_of_tail(event, fixed);
	event->fixed_bytes = (uint32_t)fixed;
	event->max_bytes = (uint32_t)bytes;
	if (bytes > PEM_RECORD_BYTES_MAX)
		pem_spec_set__error(
			set, spec->path, event->at,
			"a record of this event may take %llu bytes: expected at most %u; "
			"lower max='' of its lists and strings, or count='' of its arrays",
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
