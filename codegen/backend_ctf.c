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
#include <string.h>

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

/* The member's own name, without the structures that it lies in. */
static const char *leaf(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/* An enumeration's labels; readers that know bit flags show these too (babeltrace2 from 2.1 on). */
static void put_labels(FILE *f, const struct pem_spec_field *field)
{
	const struct pem_spec_label *label;
	size_t i;

	fprintf(f, "enum : ");
	put_number(f, field->type, field->base);
	fprintf(f, " { ");
	for (i = 0; i < field->labels->count; i++) {
		label = &field->labels->labels[i];
		fprintf(f, "%s\"%s\" = ", i ? ", " : "", label->name);
		if (pem_type__is_signed(field->type))
			fprintf(f, "%lld", (long long)label->value);
		else
			fprintf(f, "%llu", (unsigned long long)label->value);
	}
	fprintf(f, " }");
}

static void put_fixed(FILE *f, const struct pem_spec_field *field)
{
	if (field->type == PEM_TYPE_STRING)
		return;
	fprintf(f, "        ");
	if (field->type == PEM_TYPE_LIST) {
		put_number(f, PEM_TYPE_UINT32, 10);
		fprintf(f, " _%s_length;\n", leaf(field->name));
	} else if (field->type == PEM_TYPE_ARRAY) {
		put_number(f, field->element_type, field->base);
		fprintf(f, " _%s[%u];\n", leaf(field->name), field->max_count);
	} else if (field->labels && field->labels->kind == PEM_LABELS_ENUM) {
		put_labels(f, field);
		fprintf(f, " _%s;\n", leaf(field->name));
	} else {
		put_number(f, field->type, field->base);
		fprintf(f, " _%s;\n", leaf(field->name));
	}
}

/* How many structures both names lie in. */
static unsigned common_depth(const char *a, const char *b)
{
	unsigned depth = 0;
	size_t i;

	for (i = 0; a[i] && a[i] == b[i]; i++)
		depth += a[i] == '.';
	return depth;
}

static unsigned depth_of(const char *name)
{
	unsigned depth = 0;

	for (; *name; name++)
		depth += *name == '.';
	return depth;
}

/* End the structures that go deeper than depth; name is of the last field within. */
static void close_structures(FILE *f, const char *name, unsigned depth)
{
	const char *end = strrchr(name, '.'), *begin;
	unsigned open = depth_of(name);

	for (; open > depth; open--, end = begin - 1) {
		for (begin = end; begin > name && begin[-1] != '.'; begin--)
			;
		fprintf(f, "        } _%.*s;\n", (int)(end - begin), begin);
	}
}

static void put_all_fixed(FILE *f, const struct pem_spec_event *event)
{
	const char *name, *before = "";
	unsigned common, open;
	size_t i;

	for (i = 0; i < event->field_count; i++, before = name) {
		name = event->fields[i].name;
		common = common_depth(before, name);
		close_structures(f, before, common);
		for (open = depth_of(name); open > common; open--)
			fprintf(f, "        struct {\n");
		put_fixed(f, &event->fields[i]);
	}
	close_structures(f, before, 0);
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

/* LTTng's numbers for levels, which readers of CTF name: error, warning, info, system-wide and finest debugging. */
static const uint8_t loglevels[PEM_LEVEL_COUNT] = {
	[PEM_LEVEL_ERROR] = 3,  [PEM_LEVEL_WARNING] = 4, [PEM_LEVEL_INFO] = 6,
	[PEM_LEVEL_DETAIL] = 7, [PEM_LEVEL_DEBUG] = 14,
};

void pem_put_tsdl(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	fprintf(f, "event {\n    name = \"%s\";\n    id = %u;\n    loglevel = %u;\n", event->name,
		event->id, loglevels[event->level]);
	if (event->field_count) {
		fprintf(f, "    fields := struct {\n");
		put_all_fixed(f, event);
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
