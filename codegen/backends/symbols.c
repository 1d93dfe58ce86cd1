/* SPDX-License-Identifier: MIT */
/*
 * symbols.c - PROVIDER_symbols.c: the stubs as real functions, for languages that can't inline C
 *
 *	pem_call_X(fields)		does what pem_notify_X does
 *	pem_raise_X(enable, fields)	for callers that have tested the enable byte themselves, and
 *					whose strings have a length and no NUL
 *	pem_enable_PROVIDER()		the address of the enable bytes, one per event in the spec's
 *					order; it does not change
 *	pem_page_PROVIDER		the control page, for languages that can name a variable of
 *					C. It is hidden, so it is visible only in the program or
 *					library that it is linked into.
 *
 * The page is a strong definition here. A Fortran module that names it has a common symbol, which
 * would win over the weak symbol of the header. pem_raise_X takes small integers as 32-bit
 * integers, because compilers do not agree whether the caller or the function extends them.
 */
#include "c_text.h"
#include "language.h"

#include <stdlib.h>

/* Bits of enable above the byte. They tell pem_raise_X about the caller's strings. */
static const char text_helper[] =
	"/* A string of so many bytes as one with a NUL: in place if nothing behind it will be "
	"read, else copied to room. */\n"
	"static const char *pem_bounded(char *pem_room, uint32_t pem_max, const char *pem_text, "
	"uint64_t pem_bytes,\n"
	"\t\t\t       uint32_t pem_enable)\n"
	"{\n"
	"\tif (!pem_text)\n"
	"\t\treturn \"\";\n"
	"\twhile ((pem_enable & PEM_RAISE_BLANKS) && pem_bytes && pem_text[pem_bytes - 1] == ' ')\n"
	"\t\tpem_bytes--;\n"
	"\tif (pem_bytes >= pem_max)\n"
	"\t\treturn pem_text;\n"
	"\tmemcpy(pem_room, pem_text, pem_bytes);\n"
	"\tpem_room[pem_bytes] = 0;\n"
	"\treturn pem_room;\n"
	"}\n\n";

/* The parameter type of pem_raise_X for this type: integers have at least 32 bits. */
static const char *largest_type(unsigned type)
{
	if (pem_type__is_float(type) || pem_type__size(type) >= 4)
		return pem_type__c(type);
	return pem_type__is_signed(type) ? "int32_t" : "uint32_t";
}

static void put_parameter(FILE *f, const struct pem_spec_field *field, int raise)
{
	switch (field->type) {
	case PEM_TYPE_STRING:
		fprintf(f, "const char *%s", field->c_name);
		if (raise)
			fprintf(f, ", uint64_t pem_bytes_%s", field->c_name);
		break;
	case PEM_TYPE_LIST:
		fprintf(f, "uint32_t %s_count, ", field->c_name);
		/* fall through */
	case PEM_TYPE_ARRAY:
		fprintf(f, "const %s *%s", pem_type__c(field->element_type), field->c_name);
		break;
	default:
		fprintf(f, "%s %s", raise ? largest_type(field->type) : pem_type__c(field->type),
			field->c_name);
	}
}

static void put_prototype(FILE *f, const struct pem_spec_event *event, int raise)
{
	size_t i;

	fprintf(f, "void pem_%s_%s(%s", raise ? "raise" : "call", event->c_name,
		raise                ? "uint32_t pem_enable"
		: event->field_count ? ""
				     : "void");
	for (i = 0; i < event->field_count; i++) {
		fprintf(f, "%s", raise || i ? ", " : "");
		put_parameter(f, &event->fields[i], raise);
	}
	fprintf(f, ")");
}

static void put_argument(FILE *f, const struct pem_spec_field *field, int raise)
{
	if (field->type == PEM_TYPE_STRING && raise)
		fprintf(f, "pem_bounded(pem_room_%1$s, %2$uu, %1$s, pem_bytes_%1$s, pem_enable)",
			field->c_name, field->max_count);
	else if (field->type == PEM_TYPE_LIST)
		fprintf(f, "%1$s_count, %1$s", field->c_name);
	else if (raise && pem_type__size(field->type) && pem_type__size(field->type) < 4)
		fprintf(f, "(%s)%s", pem_type__c(field->type), field->c_name);
	else
		fprintf(f, "%s", field->c_name);
}

static void put_on(FILE *f, const struct pem_spec_event *event, int raise)
{
	size_t i;

	fprintf(f, "pem_on_%s(", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		fprintf(f, "%s", i ? ", " : "");
		put_argument(f, &event->fields[i], raise);
	}
	fprintf(f, ");\n}\n\n");
}

static void put_call(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f, "PEM_SYMBOL ");
	put_prototype(f, event, 0);
	fprintf(f, ";\n");
	put_prototype(f, event, 0);
	fprintf(f, "\n{\n\tif (__builtin_expect(pem_is_enabled(&pem_page_%s.enable[%u]), 0))\n\t\t",
		event->spec->provider, event->stub_index);
	put_on(f, event, 0);
}

static int put_rooms(FILE *f, const struct pem_spec_event *event)
{
	int any = 0;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].type != PEM_TYPE_STRING)
			continue;
		fprintf(f, "\tchar pem_room_%s[%u];\n", event->fields[i].c_name,
			event->fields[i].max_count);
		any = 1;
	}
	return any;
}

static void put_raise(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f, "PEM_SYMBOL ");
	put_prototype(f, event, 1);
	fprintf(f, ";\n");
	put_prototype(f, event, 1);
	fprintf(f, "\n{\n");
	if (put_rooms(f, event))
		fprintf(f, "\n");
	else
		fprintf(f, "\t(void)pem_enable;\n");
	fprintf(f, "\t");
	put_on(f, event, 1);
}

static int has_strings(const struct pem_spec *spec)
{
	size_t i;

	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]) &&
		    pem_c_has_type(&spec->events[i], PEM_TYPE_STRING))
			return 1;
	}
	return 0;
}

static void put_symbols(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec)
{
	size_t i;

	pem_banner(f, set, spec);
	fprintf(f,
		"/* Compile this with -fPIC, and link it with what is to raise the events. */\n"
		"#define PEM_PAGE_LINKAGE /* defined here, whatever other files say */\n"
		"#include \"%1$s.h\"\n\n"
		"#define PEM_SYMBOL __attribute__((visibility(\"default\")))\n"
		"#define PEM_RAISE_BLANKS %2$uu /* beside an enable byte: strings are padded with "
		"blanks */\n\n"
		"PEM_SYMBOL const uint8_t *pem_enable_%1$s(void);\n"
		"const uint8_t *pem_enable_%1$s(void)\n{\n\treturn pem_page_%1$s.enable;\n}\n\n",
		spec->provider, PEM_RAISE_BLANKS);
	if (has_strings(spec))
		fputs(text_helper, f);
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i])) {
			put_call(f, &spec->events[i]);
			put_raise(f, &spec->events[i]);
		}
	}
}

void pem_emit_symbols(const struct pem_spec_set *set, const struct pem_spec *spec,
		      struct pem_output *out, const char *folder)
{
	char *name = pem_xprintf("%s%s.h", folder, spec->provider);

	pem_put_c_header(pem_output__file(out, name), set, spec);
	free(name);
	if (!spec->stub_count)
		return;
	name = pem_xprintf("%s%s_symbols.c", folder, spec->provider);
	put_symbols(pem_output__file(out, name), set, spec);
	free(name);
}
