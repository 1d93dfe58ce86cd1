/* SPDX-License-Identifier: MIT */
/*
 * ctf.c - CTF 1.8 declarations (TSDL) of events: DIR/<provider>.tsdl, and the text that models
 * carry
 *
 * pem/tsdl.h writes a declaration.
 */
#include "backend.h"

#include <pem/tsdl.h>

#include <stdlib.h>

static struct pem_label *labels_of(const struct pem_spec_field *field)
{
	const struct pem_spec_labels *from = field->labels;
	struct pem_label *labels;
	size_t i;

	if (!from)
		return NULL;
	labels = pem_xrealloc(NULL, from->count + 1, sizeof(*labels));
	for (i = 0; i < from->count; i++)
		labels[i] = (struct pem_label){.name = from->labels[i].name,
					       .description = from->labels[i].description,
					       .value = from->labels[i].value};
	return labels;
}

void pem_put_tsdl(FILE *f, const struct pem_spec_event *event)
{
	struct pem_field *fields = pem_xrealloc(NULL, event->field_count + 1, sizeof(*fields));
	const struct pem_event as_event = {.name = event->name,
					   .id = event->id,
					   .level = event->level,
					   .fields = fields,
					   .field_count = (uint16_t)event->field_count};
	const struct pem_spec_field *field;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		fields[i] = (struct pem_field){
			.name = field->name,
			.type = field->type,
			.element_type = field->element_type,
			.base = field->base,
			.max_count = (uint16_t)field->max_count,
			.label_kind = field->labels ? field->labels->kind : PEM_LABELS_NONE,
			.label_count = field->labels ? (uint16_t)field->labels->count : 0,
			.labels = labels_of(field)};
	}
	pem_tsdl_put(f, &as_event);
	for (i = 0; i < event->field_count; i++)
		free((void *)(uintptr_t)fields[i].labels);
	free(fields);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	size_t i, k;
	char *name;
	FILE *f;

	for (i = 0; i < set->count; i++) {
		name = pem_xprintf("%s.tsdl", set->specs[i].provider);
		f = pem_output__file(out, name);
		free(name);
		pem_banner(f, set, &set->specs[i]);
		for (k = 0; k < set->specs[i].event_count; k++)
			pem_put_tsdl(f, &set->specs[i].events[k]);
	}
}

const struct pem_backend pem_backend_ctf = {
	.name = "ctf",
	.description = "PROVIDER.tsdl: the events' CTF 1.8 declarations",
	.emit = emit,
};
