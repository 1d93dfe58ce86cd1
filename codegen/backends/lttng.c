/* SPDX-License-Identifier: MIT */
/*
 * lttng.c - C stubs that are LTTng-UST tracepoints, of lttng-ust 2.13 or newer
 *
 *	PROVIDER.h          the stubs: pem_notify_X calls pem_on_X if a session wants the event
 *	PROVIDER_lttng.h    the tracepoints PROVIDER:X; LTTng's headers include it several times
 *	PROVIDER_lttng.c    LTTng's probes, to be compiled once, as C, into the program
 *
 * A tracepoint has at most ten arguments. So the stub passes one: a structure of all fields. LTTng
 * can't express units, descriptions, meanings, roles and versions, so these are lost. Elements of
 * lists and arrays are integers in LTTng. Floating-point elements are passed as their bits, in
 * hexadecimal.
 */
#include "c_text.h"

#include <ctype.h>
#include <stdlib.h>

struct unit {
	const struct pem_spec *spec;
	const struct pem_spec_set *set;
	FILE *f;
	char *upper; /* the provider in capitals */
};

/*
 * The type in which LTTng gets a number. For floating-point elements it is the type of their bits.
 */
static const char *element_c(unsigned type)
{
	if (type == PEM_TYPE_FLOAT32)
		return "uint32_t";
	return type == PEM_TYPE_FLOAT64 ? "uint64_t" : pem_type__c(type);
}

static int is_hexadecimal(const struct pem_spec_field *field)
{
	return field->base == 16 || field->type == PEM_TYPE_ADDRESS ||
	       field->element_type == PEM_TYPE_ADDRESS || pem_type__is_float(field->element_type) ||
	       field->labels_kind == PEM_LABELS_FLAGS;
}

static void put_enum(FILE *f, const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	size_t i;

	fprintf(f, "LTTNG_UST_TRACEPOINT_ENUM(%s, %s,\n\tLTTNG_UST_TP_ENUM_VALUES(\n",
		spec->provider, labels->name);
	for (i = 0; i < labels->count; i++) {
		fprintf(f, "\t\tlttng_ust_field_enum_value(\"%s\", ", labels->labels[i].name);
		if (labels->labels[i].is_negative)
			fprintf(f, "INT64_C(%lld))\n", (long long)labels->labels[i].value);
		else
			fprintf(f, "UINT64_C(%llu))\n",
				(unsigned long long)labels->labels[i].value);
	}
	fprintf(f, "\t)\n)\n\n");
}

static void put_field(FILE *f, const struct pem_spec *spec, const struct pem_spec_field *field)
{
	const char *name = field->c_name, *hex = is_hexadecimal(field) ? "_hex" : "";
	const char *element = element_c(field->element_type);

	if (field->type == PEM_TYPE_STRING)
		fprintf(f, "\t\tlttng_ust_field_string(%s, pem_a->%s)\n", name, name);
	else if (field->type == PEM_TYPE_ARRAY)
		fprintf(f, "\t\tlttng_ust_field_array%s(%s, %s, (const %s *)pem_a->%s, %u)\n", hex,
			element, name, element, name, field->max_count);
	else if (field->type == PEM_TYPE_LIST)
		fprintf(f,
			"\t\tlttng_ust_field_sequence%s(%s, %s, (const %s *)pem_a->%s, uint32_t, "
			"pem_a->%s_count)\n",
			hex, element, name, element, name, name);
	else if (pem_type__is_float(field->type))
		fprintf(f, "\t\tlttng_ust_field_float(%s, %s, pem_a->%s)\n",
			pem_type__c(field->type), name, name);
	else if (field->labels && field->labels->kind == PEM_LABELS_ENUM)
		fprintf(f, "\t\tlttng_ust_field_enum(%s, %s, %s, %s, pem_a->%s)\n", spec->provider,
			field->labels->name, pem_type__c(field->type), name, name);
	else
		fprintf(f, "\t\tlttng_ust_field_integer%s(%s, %s, pem_a->%s)\n", hex,
			pem_type__c(field->type), name, name);
}

static const char *loglevel(unsigned level)
{
	static const char *const words[] = {
		[PEM_LEVEL_ERROR] = "ERR",   [PEM_LEVEL_WARNING] = "WARNING",
		[PEM_LEVEL_INFO] = "INFO",   [PEM_LEVEL_DETAIL] = "DEBUG_PROGRAM",
		[PEM_LEVEL_DEBUG] = "DEBUG", [PEM_LEVEL_NAMED] = "DEBUG"};

	return level < sizeof(words) / sizeof(words[0]) && words[level] ? words[level] : "INFO";
}

static void put_tracepoint(FILE *f, const struct pem_spec_event *event)
{
	const char *provider = event->spec->provider;
	size_t i;

	fprintf(f, "LTTNG_UST_TRACEPOINT_EVENT(%s, %s,\n\tLTTNG_UST_TP_ARGS(", provider,
		event->c_name);
	if (event->field_count)
		fprintf(f, "const struct pem_%s_arguments *, pem_a", event->c_name);
	fprintf(f, "),\n\tLTTNG_UST_TP_FIELDS(\n");
	for (i = 0; i < event->field_count; i++)
		put_field(f, event->spec, &event->fields[i]);
	fprintf(f,
		"\t)\n)\nLTTNG_UST_TRACEPOINT_LOGLEVEL(%s, %s, "
		"LTTNG_UST_TRACEPOINT_LOGLEVEL_%s)\n\n",
		provider, event->c_name, loglevel(event->level));
}

static void put_tracepoints(const struct unit *u)
{
	const struct pem_spec *spec = u->spec;
	size_t i;

	pem_banner(u->f, u->set, spec);
	fprintf(u->f,
		"#undef LTTNG_UST_TRACEPOINT_PROVIDER\n"
		"#define LTTNG_UST_TRACEPOINT_PROVIDER %1$s\n"
		"#undef LTTNG_UST_TRACEPOINT_INCLUDE\n"
		"#define LTTNG_UST_TRACEPOINT_INCLUDE \"./%1$s_lttng.h\"\n\n"
		"#if !defined(PEM_LTTNG_%2$s_H) || "
		"defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)\n"
		"#define PEM_LTTNG_%2$s_H\n\n"
		"#include <lttng/tracepoint.h>\n#include <stdint.h>\n\n"
		"#ifndef PEM_LTTNG_%2$s_ARGUMENTS\n#define PEM_LTTNG_%2$s_ARGUMENTS\n",
		spec->provider, u->upper);
	for (i = 0; i < spec->event_count; i++) {
		if (spec->events[i].source_kind != PEM_SOURCE_STUB || !spec->events[i].field_count)
			continue;
		fprintf(u->f, "struct pem_%s_arguments {\n", spec->events[i].c_name);
		pem_c_put_members(u->f, &spec->events[i], 0);
		fprintf(u->f, "};\n\n");
	}
	fprintf(u->f, "#endif\n\n");
	for (i = 0; i < spec->labels_count; i++) {
		if (spec->labels[i].kind == PEM_LABELS_ENUM)
			put_enum(u->f, spec, &spec->labels[i]);
	}
	for (i = 0; i < spec->event_count; i++) {
		if (spec->events[i].source_kind == PEM_SOURCE_STUB)
			put_tracepoint(u->f, &spec->events[i]);
	}
	fprintf(u->f, "#endif\n\n#include <lttng/tracepoint-event.h>\n");
}

static void put_probes(const struct unit *u)
{
	pem_banner(u->f, u->set, u->spec);
	fprintf(u->f,
		"/* Compile this once into the program, as C, and link -llttng-ust -ldl. What "
		"LTTng's "
		"headers define has no prototypes. */\n"
		"#pragma GCC diagnostic ignored \"-Wmissing-prototypes\"\n"
		"#pragma GCC diagnostic ignored \"-Wstrict-prototypes\"\n"
		"#pragma GCC diagnostic ignored \"-Wshadow\"\n"
		"#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
		"#pragma GCC diagnostic ignored \"-Wpedantic\"\n"
		"#define LTTNG_UST_TRACEPOINT_CREATE_PROBES\n"
		"#define LTTNG_UST_TRACEPOINT_DEFINE\n"
		"#include \"%s_lttng.h\"\n",
		u->spec->provider);
}

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	char *enabled = pem_xprintf("lttng_ust_tracepoint_enabled(%s, %s)", event->spec->provider,
				    event->c_name);
	const char *name;
	size_t i;

	fprintf(f, "static __attribute__((noinline, cold, unused)) void pem_on_%s(", event->c_name);
	pem_c_put_parameters(f, event, "");
	fprintf(f, ")\n{\n");
	if (event->field_count)
		fprintf(f, "\tstruct pem_%s_arguments pem_a;\n\n", event->c_name);
	pem_c_put_tidy(f, event);
	for (i = 0; i < event->field_count; i++) {
		name = event->fields[i].c_name;
		if (event->fields[i].type == PEM_TYPE_LIST)
			fprintf(f, "\tpem_a.%s_count = %s_count;\n", name, name);
		fprintf(f, "\tpem_a.%s = %s;\n", name, name);
	}
	fprintf(f, "\tlttng_ust_do_tracepoint(%s, %s%s);\n}\n\n", event->spec->provider,
		event->c_name, event->field_count ? ", &pem_a" : "");
	pem_c_put_enabled(f, event, enabled);
	pem_c_begin_notify(f, event);
	fprintf(f, "\tif (__builtin_expect(%s != 0, 0))\n\t\tpem_on_%s(", enabled, event->c_name);
	pem_c_put_arguments(f, event, "");
	fprintf(f, ");\n}\n\n");
	free(enabled);
}

static const char head[] = "#include <stddef.h>\n#include <stdint.h>\n";

static void put_stubs(const struct unit *u)
{
	char *includes = u->spec->stub_count ? pem_xprintf("#include \"%s_lttng.h\"\n\n%s",
							   u->spec->provider, head)
					     : pem_xstrdup(head);
	size_t i;

	pem_c_begin_header(u->f, u->set, u->spec, includes);
	for (i = 0; i < u->spec->event_count; i++) {
		if (u->spec->events[i].source_kind == PEM_SOURCE_STUB)
			put_notify(u->f, &u->spec->events[i]);
	}
	pem_c_end_header(u->f);
	free(includes);
}

static void put_file(struct unit *u, struct pem_output *out, const char *suffix,
		     void (*put)(const struct unit *u))
{
	char *name = pem_xprintf("%s%s", u->spec->provider, suffix);

	u->f = pem_output__file(out, name);
	put(u);
	free(name);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	struct unit u = {.set = set};
	size_t i;
	char *p;

	for (i = 0; i < set->count; i++) {
		u.spec = &set->specs[i];
		u.upper = pem_xstrdup(u.spec->provider);
		for (p = u.upper; *p; p++)
			*p = (char)toupper((unsigned char)*p);
		put_file(&u, out, ".h", put_stubs);
		if (u.spec->stub_count) {
			put_file(&u, out, "_lttng.h", put_tracepoints);
			put_file(&u, out, "_lttng.c", put_probes);
		}
		free(u.upper);
	}
}

const struct pem_backend pem_backend_lttng = {
	.name = "lttng-ust",
	.description = "PROVIDER.h with the stubs of backend c as LTTng-UST tracepoints, and their "
		       "provider",
	.emit = emit,
};
