/* SPDX-License-Identifier: MIT */
/* perfetto_fields.c - fields of a record as annotations (contract: perfetto_fields.h) */
#include "perfetto_fields.h"

#include <errno.h>
#include <string.h>

#define WORDS_BYTES PEM_PERFETTO_WORDS_BYTES

typedef Perfetto__Protos__DebugAnnotation Annotation;

static void set_number(Annotation *a, enum pem_type type, unsigned base, const void *data)
{
	size_t bytes = pem_type__bytes(type);
	uint64_t bits = 0;
	float single;

	memcpy(&bits, data, bytes);
	switch (type) {
	case PEM_TYPE_FLOAT32:
		memcpy(&single, data, sizeof(single));
		a->value_case = PERFETTO__PROTOS__DEBUG_ANNOTATION__VALUE_DOUBLE_VALUE;
		a->double_value = (double)single;
		return;
	case PEM_TYPE_FLOAT64:
		a->value_case = PERFETTO__PROTOS__DEBUG_ANNOTATION__VALUE_DOUBLE_VALUE;
		memcpy(&a->double_value, data, sizeof(a->double_value));
		return;
	case PEM_TYPE_INT8:
	case PEM_TYPE_INT16:
	case PEM_TYPE_INT32:
	case PEM_TYPE_INT64:
		a->value_case = PERFETTO__PROTOS__DEBUG_ANNOTATION__VALUE_INT_VALUE;
		a->int_value = (int64_t)(bits << (64 - bytes * 8)) >> (64 - bytes * 8);
		return;
	default:
		a->value_case = base == 16 ? PERFETTO__PROTOS__DEBUG_ANNOTATION__VALUE_POINTER_VALUE
					   : PERFETTO__PROTOS__DEBUG_ANNOTATION__VALUE_UINT_VALUE;
		a->uint_value = bits; /* a union: pointer_value has the same place */
	}
}

static int set_list(struct pem_arena *arena, Annotation *a, const struct pem_record *record,
		    unsigned i)
{
	const struct pem_field *field = &record->event->fields[i];
	const uint8_t *data;
	const void *elements;
	uint32_t count = pem_record__list(record, i, &elements), k;
	Annotation *values = pem_arena__take(arena, count * sizeof(*values));

	a->array_values = pem_arena__take(arena, count * sizeof(*a->array_values));
	if (!values || !a->array_values)
		return -ENOMEM;
	a->n_array_values = count;
	for (k = 0, data = elements; k < count; k++) {
		perfetto__protos__debug_annotation__init(&values[k]);
		set_number(&values[k], field->element_type, field->base,
			   data + k * pem_type__bytes(field->element_type));
		a->array_values[k] = &values[k];
	}
	return 0;
}

int pem_perfetto__annotate(struct pem_arena *arena, Perfetto__Protos__TrackEvent *e,
			   const struct pem_record *record, int skip)
{
	const struct pem_event *event = record->event;
	char words[WORDS_BYTES];
	Annotation *a;
	unsigned i;

	e->debug_annotations = pem_arena__take(arena, event->field_count * sizeof(a));
	if (!e->debug_annotations)
		return -ENOMEM;
	for (i = 0; i < event->field_count; i++) {
		if ((int)i == skip)
			continue;
		a = pem_arena__take(arena, sizeof(*a));
		if (!a)
			return -ENOMEM;
		perfetto__protos__debug_annotation__init(a);
		e->debug_annotations[e->n_debug_annotations++] = a;
		a->name = (char *)event->fields[i].name;
		if (event->fields[i].type == PEM_TYPE_STRING) {
			a->value_case = PERFETTO__PROTOS__DEBUG_ANNOTATION__VALUE_STRING_VALUE;
			a->string_value = pem_arena__text(arena, pem_record__string(record, i));
			if (!a->string_value)
				return -ENOMEM;
		} else if (event->fields[i].label_count &&
			   pem_record__words(record, i, words, sizeof(words))) {
			a->value_case = PERFETTO__PROTOS__DEBUG_ANNOTATION__VALUE_STRING_VALUE;
			a->string_value = pem_arena__take(arena, sizeof(words));
			if (!a->string_value)
				return -ENOMEM;
			memcpy(a->string_value, words, sizeof(words));
		} else if (pem_type__bytes(event->fields[i].type)) {
			set_number(a, event->fields[i].type, event->fields[i].base,
				   record->data + event->fields[i].offset);
		} else if (set_list(arena, a, record, i)) {
			return -ENOMEM;
		}
	}
	return 0;
}
