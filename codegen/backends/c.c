/* SPDX-License-Identifier: MIT */
/*
 * c.c - C and C++ stubs: DIR/<provider>.h
 *
 * For each event the header has a record struct and an id. For each event of source 'stub' it also
 * has pem_notify_X. spec/abi/pem/stub.h holds what the stub does at run time. Here is only the text
 * around it. Names that the header itself needs start with pem_, because no field's name may.
 *
 *	pem_notify_X        enable byte, test, branch
 *	pem_on_X            what follows where somebody wants the event (c_paths.c)
 *
 * X is "class_specifier". The part of the name that distinguishes these functions is before it. If
 * it were after it, the slow path of Query and the stub of an event QuerySlow would have one name.
 */
#include "c_text.h"

#include <pem/stub.h>

#include <stdlib.h>

#define HEAD                                                                                       \
	"#include <pem/abi.h>\n#include <pem/stub.h>\n\n"                                          \
	"#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"

static const char head[] = HEAD;
static const char head_of_stubs[] = HEAD "#include <dlfcn.h>\n";

/* Helpers. They are equal in each generated header, so they have a guard of their own. */
static const char text_helper[] =
	"#ifndef PEM_STUB_TEXT\n"
	"#define PEM_STUB_TEXT\n"
	"/* Bytes to copy of a string, its NUL not counted: at most max, and no part of a UTF-8 "
	"character. The empty asm\n"
	"   keeps compilers from warning that a literal is shorter than max: memchr stops at its "
	"NUL. */\n"
	"static inline uint32_t pem_text_length(const char *pem_text, uint32_t pem_max)\n"
	"{\n"
	"\tconst char *pem_end;\n"
	"\tuint32_t pem_length = pem_max;\n"
	"\n"
	"\t__asm__(\"\" : \"+r\"(pem_text));\n"
	"\tpem_end = (const char *)memchr(pem_text, 0, pem_max);\n"
	"\tif (pem_end)\n"
	"\t\treturn (uint32_t)(pem_end - pem_text);\n"
	"\twhile (pem_length && pem_max - pem_length < 3 && ((uint8_t)pem_text[pem_length] & 0xc0) "
	"== 0x80)\n"
	"\t\tpem_length--;\n"
	"\treturn pem_length;\n"
	"}\n"
	"#endif\n\n";

static const char constructor[] =
	"#ifndef PEM_REGISTERS_ITSELF\n"
	"/* Registers once per program or library, however many files include this. Without "
	"libpem: does nothing. */\n"
	"__attribute__((weak, visibility(\"hidden\"), constructor)) void "
	"pem_attach_%1$s(void);\n"
	"void pem_attach_%1$s(void)\n"
	"{\n"
	"\tint (*pem_register)(struct pem_provider *) = 0;\n"
	"\tvoid *pem_symbol;\n"
	"\n"
	"\tif (pem_provider_%1$s.registered)\n"
	"\t\treturn;\n"
	"\tpem_symbol = dlsym((void *)0, \"pem_provider_register\"); /* 0: RTLD_DEFAULT, hidden by "
	"strict C */\n"
	"\tif (!pem_symbol)\n"
	"\t\treturn;\n"
	"\tmemcpy(&pem_register, &pem_symbol, sizeof(pem_register));\n"
	"\tpem_register(&pem_provider_%1$s);\n"
	"}\n\n"
	"__attribute__((weak, visibility(\"hidden\"), destructor)) void pem_detach_%1$s(void);\n"
	"void pem_detach_%1$s(void)\n"
	"{\n"
	"\tvoid (*pem_unregister)(struct pem_provider *) = 0;\n"
	"\tvoid *pem_symbol;\n"
	"\n"
	"\tif (!pem_provider_%1$s.registered)\n"
	"\t\treturn;\n"
	"\tpem_symbol = dlsym((void *)0, \"pem_provider_unregister\");\n"
	"\tif (!pem_symbol)\n"
	"\t\treturn;\n"
	"\tmemcpy(&pem_unregister, &pem_symbol, sizeof(pem_unregister));\n"
	"\tpem_unregister(&pem_provider_%1$s);\n"
	"}\n"
	"#endif\n\n";

static void put_record_struct(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "/* %s: ", event->name);
	pem_c_put_comment(f, event->description);
	fprintf(f, " */\n");
	fprintf(f, "#define PEM_EVENT_%s_ID 0x%08xu\n", event->c_upper, event->id);
	fprintf(f, "struct pem_%s_record {\n\tstruct pem_record_header header;\n", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->padding)
			fprintf(f, "\tuint8_t pem_padding%zu[%u];\n", i, field->padding);
		if (field->type == PEM_TYPE_LIST)
			fprintf(f, "\tuint32_t %s_count;", field->c_name);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, "\t%s %s[%u];", pem_type__c(field->element_type), field->c_name,
				field->max_count);
		else if (field->type != PEM_TYPE_STRING)
			fprintf(f, "\t%s %s;", pem_type__c(field->type), field->c_name);
		else
			fprintf(f, "\t/* then the string %s */", field->c_name);
		if (field->type != PEM_TYPE_STRING)
			pem_c_put_field_comment(f, field);
		fprintf(f, "\n");
	}
	fprintf(f, "};\n");
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type != PEM_TYPE_STRING)
			fprintf(f,
				"PEM_STATIC_ASSERT(offsetof(struct pem_%s_record, %s%s) == %u, "
				"\"%s\");\n",
				event->c_name, field->c_name,
				field->type == PEM_TYPE_LIST ? "_count" : "", field->offset,
				field->c_name);
	}
	fprintf(f, "\n");
}

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	const char *provider = event->spec->provider;
	unsigned index = event->stub_index;
	char *enabled;

	pem_c_put_paths(f, event);
	enabled = pem_xprintf("pem_is_enabled(&pem_page_%s.enable[%u])", provider, index);
	pem_c_put_enabled(f, event, enabled);
	pem_c_begin_notify(f, event);
	fprintf(f, "\tif (__builtin_expect(%s, 0))\n\t\tpem_on_%s(", enabled, event->c_name);
	free(enabled);
	pem_c_put_arguments(f, event, "");
	fprintf(f, ");\n}\n\n");
}

static void put_page(FILE *f, const struct pem_spec *spec)
{
	unsigned capacity = PEM_EVENT_CAPACITY(spec->stub_count);

	fprintf(f,
		"/* The control page: libpem maps the shared one over it, so that a stub follows "
		"no pointer. */\n"
		"struct pem_page_%s {\n\tstruct pem_control_header header;\n\tuint8_t enable[%u];\n"
		"\tuint64_t action[%u][PEM_SESSIONS_MAX];\n"
		"} __attribute__((aligned(PEM_PAGE_ALIGN)));\n\n",
		spec->provider, capacity, capacity);
	fprintf(f,
		"extern __attribute__((PEM_PAGE_LINKAGE visibility(\"hidden\"))) struct "
		"pem_page_%1$s "
		"pem_page_%1$s;\n"
		"struct pem_page_%1$s pem_page_%1$s = {\n"
		"\t{ PEM_ABI_VERSION, %2$u, %3$u, 0, \"%1$s\", { 0 } }, { 0 }, { { 0 } }\n};\n\n",
		spec->provider, spec->stub_count, capacity);
}

/* Print what a process would else have to find out from the model's text. */
static void put_facts(FILE *f, const struct pem_spec *spec)
{
	size_t i;
	int first = 1;

	fprintf(f, "#define PEM_FACTS_%s 0x%08xu, {", spec->provider, pem_model_text_hash(spec));
	for (i = 0; i < spec->event_count; i++) {
		if (spec->events[i].source_kind == PEM_SOURCE_STUB)
			fprintf(f, "%s%u", first ? " " : ", ", spec->events[i].level);
		first = first && spec->events[i].source_kind != PEM_SOURCE_STUB;
	}
	fprintf(f, " }\n\n");
}

static void put_provider(FILE *f, const struct pem_spec *spec)
{
	const char *name = spec->provider;
	size_t i;

	fprintf(f,
		"extern __attribute__((weak, visibility(\"hidden\"))) const uint32_t "
		"pem_ids_%1$s[];\n"
		"const uint32_t pem_ids_%1$s[] = {\n",
		name);
	for (i = 0; i < spec->event_count; i++) {
		if (spec->events[i].source_kind == PEM_SOURCE_STUB)
			fprintf(f, "\tPEM_EVENT_%s_ID,\n", spec->events[i].c_upper);
	}
	fprintf(f,
		"};\n\n"
		"#pragma GCC diagnostic push\n"
		"#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
		"extern __attribute__((weak, visibility(\"hidden\"))) const char "
		"pem_model_%1$s[];\n"
		/* pem_program__models() finds the models of a program file in this section. */
		"__attribute__((section(\"pem_model\"))) const char pem_model_%1$s[] =\n",
		name);
	pem_put_model_literal(f, &spec, 1, 1);
	fprintf(f, "\t\"\";\n#pragma GCC diagnostic pop\n\n");
	put_facts(f, spec);
	fprintf(f,
		"extern __attribute__((weak, visibility(\"hidden\"))) const struct pem_filter\n"
		"\t*pem_filters_%1$s[%2$u][PEM_SESSIONS_MAX];\n"
		"const struct pem_filter *pem_filters_%1$s[%2$u][PEM_SESSIONS_MAX] = { { 0 } "
		"};\n\n",
		name, spec->stub_count);
	fprintf(f,
		"extern __attribute__((weak, visibility(\"hidden\"))) struct pem_provider "
		"pem_provider_%1$s;\n"
		"struct pem_provider pem_provider_%1$s = {\n"
		"\tPEM_ABI_VERSION, %2$u, \"%1$s\", pem_ids_%1$s, pem_model_%1$s,\n"
		"\t&pem_page_%1$s, sizeof(struct pem_page_%1$s), 0, 0, 0, 0, 0, "
		"0,\n\t&pem_filters_%1$s[0][0]\n};\n\n",
		name, spec->stub_count);
	fprintf(f, constructor, name);
}

static void put_stubs(FILE *f, const struct pem_spec *spec)
{
	int text = 0;
	size_t i;

	if (spec->stub_count)
		fputs("/*\n * A program calls pem_notify_NAME() where the event happens, and may "
		      "ask "
		      "pem_enabled_NAME() first.\n * All other functions here are what these two "
		      "are made of.\n */\n\n",
		      f);
	put_page(f, spec);
	put_provider(f, spec);
	for (i = 0; i < spec->event_count; i++)
		text |= spec->events[i].source_kind == PEM_SOURCE_STUB &&
			pem_c_has_type(&spec->events[i], PEM_TYPE_STRING);
	if (text)
		fputs(text_helper, f);
	for (i = 0; i < spec->event_count; i++) {
		if (spec->events[i].source_kind == PEM_SOURCE_STUB)
			put_notify(f, &spec->events[i]);
	}
}

void pem_put_c_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec)
{
	size_t i;

	pem_c_begin_header(f, set, spec, spec->stub_count ? head_of_stubs : head);
	for (i = 0; i < spec->event_count; i++)
		put_record_struct(f, &spec->events[i]);
	if (spec->stub_count)
		put_stubs(f, spec);
	pem_c_end_header(f);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	char *name;
	size_t i;

	for (i = 0; i < set->count; i++) {
		name = pem_xprintf("%s.h", set->specs[i].provider);
		pem_put_c_header(pem_output__file(out, name), set, &set->specs[i]);
		free(name);
	}
}

const struct pem_backend pem_backend_c = {
	.name = "c",
	.description = "PROVIDER.h: record structs, and stubs that raise events, for C and C++",
	.emit = emit,
};
