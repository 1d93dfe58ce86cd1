/* SPDX-License-Identifier: MIT */
/*
 * tsdl.h - an event's declaration in CTF 1.8 (TSDL), as models carry it
 *
 * Each declaration stands alone: it names no stream and uses no type alias. So a trace's metadata
 * is the preamble that libpem writes, and then the declarations in any order. A leading '_' keeps a
 * field's name apart from TSDL's words; readers remove it. User space only: for codegen, and for
 * libpem's events that no spec has.
 */
#ifndef PEM_TSDL_H
#define PEM_TSDL_H

#include <pem/event.h>
#include <pem/record_layout.h>

#include <stdio.h>
#include <string.h>

static inline int pem_tsdl_is_signed(uint32_t type)
{
	return type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64;
}

static inline void pem_tsdl_number(FILE *f, uint32_t type, uint32_t base)
{
	unsigned bits = pem_layout_type_bytes(type) * 8;

	if (type == PEM_TYPE_FLOAT32 || type == PEM_TYPE_FLOAT64)
		fprintf(f, "floating_point { exp_dig = %u; mant_dig = %u; align = %u; }",
			type == PEM_TYPE_FLOAT32 ? 8u : 11u, type == PEM_TYPE_FLOAT32 ? 24u : 53u,
			bits);
	else
		fprintf(f, "integer { size = %u; align = %u; signed = %s; base = %u; }", bits, bits,
			pem_tsdl_is_signed(type) ? "true" : "false", base);
}

/* Return a member's own name, without the structures that it lies in. */
static inline const char *pem_tsdl_leaf(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

/*
 * Print an enumeration's labels. Readers that know bit flags show these too (babeltrace2 from 2.1
 * on).
 */
static inline void pem_tsdl_labels(FILE *f, const struct pem_field *field)
{
	unsigned i;

	fprintf(f, "enum : ");
	pem_tsdl_number(f, field->type, field->base);
	fprintf(f, " { ");
	for (i = 0; i < field->label_count; i++) {
		fprintf(f, "%s\"%s\" = ", i ? ", " : "", field->labels[i].name);
		if (pem_tsdl_is_signed(field->type))
			fprintf(f, "%lld", (long long)field->labels[i].value);
		else
			fprintf(f, "%llu", (unsigned long long)field->labels[i].value);
	}
	fprintf(f, " }");
}

static inline void pem_tsdl_fixed(FILE *f, const struct pem_field *field)
{
	if (field->type == PEM_TYPE_STRING)
		return;
	fprintf(f, "        ");
	if (field->type == PEM_TYPE_LIST) {
		pem_tsdl_number(f, PEM_TYPE_UINT32, 10);
		fprintf(f, " _%s_length;\n", pem_tsdl_leaf(field->name));
	} else if (field->type == PEM_TYPE_ARRAY) {
		pem_tsdl_number(f, field->element_type, field->base);
		fprintf(f, " _%s[%u];\n", pem_tsdl_leaf(field->name), field->max_count);
	} else {
		if (field->label_kind == PEM_LABELS_ENUM)
			pem_tsdl_labels(f, field);
		else
			pem_tsdl_number(f, field->type, field->base);
		fprintf(f, " _%s;\n", pem_tsdl_leaf(field->name));
	}
}

/* Return how many structures both names lie in. Given one name twice: how many it lies in. */
static inline unsigned pem_tsdl_depth(const char *a, const char *b)
{
	unsigned depth = 0;
	size_t i;

	for (i = 0; a[i] && a[i] == b[i]; i++)
		depth += a[i] == '.';
	return depth;
}

/* Close the structures that go deeper than depth. name is that of the last field within. */
static inline void pem_tsdl_close(FILE *f, const char *name, unsigned depth)
{
	const char *end = strrchr(name, '.'), *begin;
	unsigned open = pem_tsdl_depth(name, name);

	for (; open > depth; open--, end = begin - 1) {
		for (begin = end; begin > name && begin[-1] != '.'; begin--)
			;
		fprintf(f, "        } _%.*s;\n", (int)(end - begin), begin);
	}
}

static inline void pem_tsdl_all_fixed(FILE *f, const struct pem_event *event)
{
	const char *name, *before = "";
	unsigned common, open;
	size_t i;

	for (i = 0; i < event->field_count; i++, before = name) {
		name = event->fields[i].name;
		common = pem_tsdl_depth(before, name);
		pem_tsdl_close(f, before, common);
		for (open = pem_tsdl_depth(name, name); open > common; open--)
			fprintf(f, "        struct {\n");
		pem_tsdl_fixed(f, &event->fields[i]);
	}
	pem_tsdl_close(f, before, 0);
}

static inline void pem_tsdl_tail(FILE *f, const struct pem_field *field)
{
	if (field->type == PEM_TYPE_STRING) {
		fprintf(f, "        string { encoding = UTF8; } _%s;\n", field->name);
	} else if (field->type == PEM_TYPE_LIST) {
		fprintf(f, "        ");
		pem_tsdl_number(f, field->element_type, field->base);
		fprintf(f, " _%s[_%s_length];\n", field->name, field->name);
	}
}

/* Print an event's declaration; its own tsdl is not read. */
static inline void pem_tsdl_put(FILE *f, const struct pem_event *event)
{
	/*
	 * LTTng's numbers for levels, by enum pem_level. CTF readers show names for them: error,
	 * warning, info, system-wide and finest debugging.
	 */
	static const uint8_t loglevels[PEM_LEVEL_COUNT] = {0, 3, 4, 6, 7, 14, 14};
	size_t i;

	fprintf(f, "event {\n    name = \"%s\";\n    id = %u;\n    loglevel = %u;\n", event->name,
		event->id, loglevels[event->level]);
	if (event->field_count) {
		fprintf(f, "    fields := struct {\n");
		pem_tsdl_all_fixed(f, event);
		for (i = 0; i < event->field_count; i++)
			pem_tsdl_tail(f, &event->fields[i]);
		fprintf(f, "    } align(64);\n");
	}
	fprintf(f, "};\n");
}

#endif
