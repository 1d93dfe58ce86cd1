/* SPDX-License-Identifier: MIT */
/*
 * backend_ctf.c - CTF 1.8 declarations (TSDL) of events: DIR/<provider>.tsdl, and the text that models carry
 *
 * Each declaration stands alone: it names no stream and uses no type alias, so a trace's metadata is the preamble
 * that libpem writes, and then these in any order. A leading '_' keeps a field's name apart from TSDL's words;
 * readers strip it.
 */
#include "backend.h"

#include <stdlib.h>

static void put_number(FILE *f, unsigned type, unsigned base)
{
	unsigned bits = pem_type__size(type) * 8;

	if (pem_type__is_float(type))
		fprintf(f, "floating_point { exp_dig = %u; mant_dig = %u; align = %u; }",
			type == PEM_TYPE_FLOAT32 ? 8u : 11u, type == PEM_TYPE_FLOAT32 ? 24u : 53u,
			bits);
	else
		fprintf(f, "integer { size = %u; align = %u; signed = %s; base = %u; }", bits, bits,
			pem_type__is_signed(type) ? "true" : "false", base);
}

static void put_fixed(FILE *f, const struct pem_spec_field *field)
{
	if (field->type == PEM_TYPE_STRING)
		return;
	fprintf(f, "        ");
	if (field->type == PEM_TYPE_LIST) {
		put_number(f, PEM_TYPE_UINT32, 10);
		fprintf(f, " _%s_length;\n", field->name);
		return;
	}
	put_number(f, field->type, field->base);
	fprintf(f, " _%s;\n", field->name);
}

static void put_tail(FILE *f, const struct pem_spec_field *field)
{
	if (field->type == PEM_TYPE_STRING) {
		fprintf(f, "        string { encoding = UTF8; } _%s;\n", field->name);
	} else if (field->type == PEM_TYPE_LIST) {
		fprintf(f, "        ");
		put_number(f, field->element_type, field->base);
		fprintf(f, " _%s[_%s_length];\n", field->name, field->name);
	}
}

void pem_put_tsdl(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	fprintf(f, "event {\n    name = \"%s\";\n    id = %u;\n", event->name, event->id);
	if (event->field_count) {
		fprintf(f, "    fields := struct {\n");
		for (i = 0; i < event->field_count; i++)
			put_fixed(f, &event->fields[i]);
		for (i = 0; i < event->field_count; i++)
			put_tail(f, &event->fields[i]);
		fprintf(f, "    } align(64);\n");
	}
	fprintf(f, "};\n");
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
