/* SPDX-License-Identifier: MIT */
/*
 * usdt.c - C stubs that are static probes: DIR/<provider>.h, over sys/sdt.h of systemtap
 *
 *	pem_notify_X        the probe's semaphore, test, branch; tracers increment the semaphore
 *			    while they are attached
 *	pem_on_X            the probe PROVIDER:X with the parameters as its arguments
 *
 * A probe has at most 12 arguments. If an event has more parameters, at most the first 11 are
 * arguments, by whole fields. The last argument then points to the rest, a struct pem_X_rest.
 * Tracers know only integers and pointers. So a floating-point argument is passed as its bits. In
 * the rest it is a floating-point number.
 */
#include "c_text.h"

#include <stdlib.h>

#define ARGUMENTS_MAX 12u

static const char includes[] =
	"#include <stddef.h>\n"
	"#include <stdint.h>\n"
	"#include <string.h>\n"
	"\n"
	"/* Each probe has a semaphore: then all probes of a file must have one. */\n"
	"#ifndef _SDT_HAS_SEMAPHORES\n"
	"#ifdef _SYS_SDT_H\n"
	"#error \"sys/sdt.h was included before this, and without _SDT_HAS_SEMAPHORES: include "
	"this "
	"first\"\n"
	"#endif\n"
	"#define _SDT_HAS_SEMAPHORES 1\n"
	"#endif\n"
	"#include <sys/sdt.h>\n";

/* The macros of sys/sdt.h use extensions that strict C warns about. */
static const char quiet[] =
	"#ifdef __clang__\n"
	"#pragma clang diagnostic push\n"
	"#pragma clang diagnostic ignored \"-Wgnu-zero-variadic-macro-arguments\"\n"
	"#endif\n\n";
static const char loud[] = "#ifdef __clang__\n#pragma clang diagnostic pop\n#endif\n\n";

/* How many fields are arguments of their own. The others are in the rest. */
static size_t direct_fields(const struct pem_spec_event *event)
{
	size_t i, used = 0;

	if (pem_c_parameter_count(event) <= ARGUMENTS_MAX)
		return event->field_count;
	for (i = 0; i < event->field_count; i++) {
		used += event->fields[i].type == PEM_TYPE_LIST ? 2 : 1;
		if (used >= ARGUMENTS_MAX)
			break;
	}
	return i;
}

static void put_rest_struct(FILE *f, const struct pem_spec_event *event, size_t direct)
{
	fprintf(f, "/* What the probe's last argument points to: it has only %u. */\n",
		ARGUMENTS_MAX);
	fprintf(f, "struct pem_%s_rest {\n", event->c_name);
	pem_c_put_members(f, event, direct);
	fprintf(f, "};\n\n");
}

static void put_bits(FILE *f, const struct pem_spec_event *event, size_t direct)
{
	size_t i;

	for (i = 0; i < direct; i++) {
		if (pem_type__is_float(event->fields[i].type))
			fprintf(f, "\tuint%u_t pem_bits%zu;\n",
				pem_type__size(event->fields[i].type) * 8, i);
	}
}

static void fill_bits(FILE *f, const struct pem_spec_event *event, size_t direct)
{
	size_t i;

	for (i = 0; i < direct; i++) {
		if (pem_type__is_float(event->fields[i].type))
			fprintf(f, "\tmemcpy(&pem_bits%zu, &%s, sizeof(pem_bits%zu));\n", i,
				event->fields[i].c_name, i);
	}
}

static void fill_rest(FILE *f, const struct pem_spec_event *event, size_t direct)
{
	const char *name;
	size_t i;

	for (i = direct; i < event->field_count; i++) {
		name = event->fields[i].c_name;
		if (event->fields[i].type == PEM_TYPE_LIST)
			fprintf(f, "\tpem_rest.%s_count = %s_count;\n", name, name);
		fprintf(f, "\tpem_rest.%s = %s;\n", name, name);
	}
}

/*
 * A tracer reads only memory that is present, and can't load a page. So the stub touches the memory
 * that an argument points to.
 */
static void touch(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_LIST)
			fprintf(f, "\tif (%s_count)\n\t", field->c_name);
		if (field->type == PEM_TYPE_LIST || field->type == PEM_TYPE_STRING ||
		    field->type == PEM_TYPE_ARRAY)
			fprintf(f, "\t(void)*(const volatile char *)%s;\n", field->c_name);
	}
}

static void put_probe(FILE *f, const struct pem_spec_event *event, size_t direct)
{
	size_t i, count = 0;

	for (i = 0; i < direct; i++)
		count += event->fields[i].type == PEM_TYPE_LIST ? 2 : 1;
	count += direct < event->field_count;
	fprintf(f, "\tSTAP_PROBE");
	if (count)
		fprintf(f, "%zu", count);
	fprintf(f, "(%s, %s", event->spec->provider, event->c_name);
	for (i = 0; i < direct; i++) {
		if (event->fields[i].type == PEM_TYPE_LIST)
			fprintf(f, ", %s_count", event->fields[i].c_name);
		if (pem_type__is_float(event->fields[i].type))
			fprintf(f, ", pem_bits%zu", i);
		else
			fprintf(f, ", %s", event->fields[i].c_name);
	}
	fprintf(f, "%s);\n", direct < event->field_count ? ", &pem_rest" : "");
}

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	size_t direct = direct_fields(event);
	char *semaphore = pem_xprintf("%s_%s_semaphore", event->spec->provider, event->c_name);
	char *enabled = pem_xprintf("__atomic_load_n(&%s, __ATOMIC_RELAXED)", semaphore);

	if (direct < event->field_count)
		put_rest_struct(f, event, direct);
	fprintf(f,
		"extern __attribute__((weak, visibility(\"hidden\"), section(\".probes\"))) "
		"unsigned short %1$s;\n"
		"unsigned short %1$s = 0;\n\n"
		"static __attribute__((noinline, cold, unused)) void pem_on_%2$s(",
		semaphore, event->c_name);
	pem_c_put_parameters(f, event, "");
	fprintf(f, ")\n{\n");
	put_bits(f, event, direct);
	if (direct < event->field_count)
		fprintf(f, "\tstruct pem_%s_rest pem_rest;\n", event->c_name);
	fprintf(f, "\n");
	pem_c_put_tidy(f, event);
	touch(f, event);
	fill_bits(f, event, direct);
	fill_rest(f, event, direct);
	put_probe(f, event, direct);
	fprintf(f, "}\n\n");
	pem_c_put_enabled(f, event, enabled);
	pem_c_begin_notify(f, event);
	fprintf(f, "\tif (__builtin_expect(%s != 0, 0))\n\t\tpem_on_%s(", enabled, event->c_name);
	pem_c_put_arguments(f, event, "");
	fprintf(f, ");\n}\n\n");
	free(enabled);
	free(semaphore);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	const struct pem_spec *spec;
	char *name;
	size_t i, k;
	FILE *f;

	for (i = 0; i < set->count; i++) {
		spec = &set->specs[i];
		name = pem_xprintf("%s.h", spec->provider);
		f = pem_output__file(out, name);
		pem_c_begin_header(f, set, spec, includes);
		fputs(quiet, f);
		for (k = 0; k < spec->event_count; k++) {
			if (spec->events[k].source_kind == PEM_SOURCE_STUB)
				put_notify(f, &spec->events[k]);
		}
		fputs(loud, f);
		pem_c_end_header(f);
		free(name);
	}
}

const struct pem_backend pem_backend_usdt = {
	.name = "usdt",
	.description =
		"PROVIDER.h with the stubs of backend c as static probes, for bpftrace and perf",
	.emit = emit,
};
