/* SPDX-License-Identifier: MIT */
/*
 * backend_kmod.c - tracepoint events as probes of the kernel module
 *
 *	pem_kmod_headers.h      the kernel's headers that declare the tracepoints
 *	pem_kmod_events.h       a probe for each event that this kernel has by its version, the compiler's check of its
 *	                        parameters, and the table of all. Included by kmod/probes.c; what a probe calls is
 *	                        kmod/pem_kmod.h
 *
 * BPF finds out what a kernel has when it runs; a module is compiled for one kernel, so here alternatives are chosen
 * by their kernel=''.
 */
#include "backend.h"
#include "tracepoint.h"

#include <stdlib.h>
#include <string.h>

static const char *word_of(size_t source)
{
	return source ? "#elif" : "#if";
}

/* "5.18-6.7" as the preprocessor's condition. */
static void put_condition(FILE *f, const struct pem_spec_source *source)
{
	unsigned major, minor;
	const char *to = source->kernel ? strchr(source->kernel, '-') : NULL;

	if (to && to != source->kernel && sscanf(source->kernel, "%u.%u", &major, &minor) == 2)
		fprintf(f, " PEM_KERNEL_FROM(%u, %u) &&", major, minor);
	if (to && sscanf(to + 1, "%u.%u", &major, &minor) == 2)
		fprintf(f, " PEM_KERNEL_UNTIL(%u, %u) &&", major, minor);
	fprintf(f, " PEM_KMOD_CAN(%s)\n", pem_tracepoint__name(source));
}

static void put_log(FILE *f, const struct pem_spec_event *event, size_t source)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f,
		"\tif (e.flags & PEM_ACTION_LOG)\n"
		"\t\trecord = pem_reserve(&e, %u);\n"
		"\tif (record) {\n",
		event->max_bytes);
	pem_tracepoint__put_fixed(f, event, source, 1);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "\t\tbytes += pem_string(record + bytes, %u, %s);\n",
				field->max_count, pem_tracepoint__from(event, source, field));
	}
	fprintf(f, "\t\tpem_commit(&e, 0x%08xu, bytes);\n\t}\n", event->id);
}

static void put_probe(FILE *f, const struct pem_spec_event *event, size_t source, unsigned index)
{
	const char *arguments = event->sources[source].arguments;
	int any = arguments && arguments[0] && strcmp(arguments, "void") != 0;

	fprintf(f,
		"static void pem_probe_%s(void *session%s%s)\n{\n"
		"\tuint32_t bytes __maybe_unused = %u;\n"
		"\tuint64_t value = 0, key = 0;\n"
		"\tuint8_t *record = NULL;\n"
		"\tstruct pem_kevent e;\n\n"
		"\tif (!pem_begin(&e, session, %u))\n\t\treturn;\n",
		event->c_name, any ? ", " : "", any ? arguments : "", event->fixed_bytes, index);
	pem_tracepoint__put_statistic(f, event, source);
	put_log(f, event, source);
	fprintf(f, "\tpem_end(&e);\n}\n");
}

static void put_event(FILE *f, const struct pem_spec_event *event, unsigned index)
{
	const char *tracepoint;
	size_t i;

	fprintf(f, "\n/* %s */\n", event->name);
	for (i = 0; i < event->source_count; i++) {
		tracepoint = pem_tracepoint__name(&event->sources[i]);
		fprintf(f, "%s", word_of(i));
		put_condition(f, &event->sources[i]);
		put_probe(f, event, i, index);
		fprintf(f,
			"static inline void pem_check_%s(void)\n{\n"
			"\tPEM_KMOD_CHECK(%s, pem_probe_%s);\n}\n"
			"#define PEM_ROW_%s { 0x%08xu, \"%s\", pem_probe_%s },\n",
			event->c_name, tracepoint, event->c_name, event->c_name, event->id,
			tracepoint, event->c_name);
	}
	fprintf(f, "#else\n#define PEM_ROW_%s { 0x%08xu, NULL, NULL },\n#endif\n", event->c_name,
		event->id);
}

static int compare_systems(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Systems are mostly called as their header is; the others' headers are in kmod/compat.h. */
static void put_headers(FILE *f, const struct pem_spec_set *set)
{
	const struct pem_spec_event *event;
	size_t at = 0, i, count = 0;
	char **systems = NULL;

	while ((event = pem_tracepoint__next(set, &at))) {
		for (i = 0; i < event->source_count; i++) {
			systems = pem_xgrow(systems, count, sizeof(*systems));
			systems[count++] =
				pem_xprintf("%.*s", (int)strcspn(event->sources[i].name, ":"),
					    event->sources[i].name);
		}
	}
	if (count)
		qsort(systems, count, sizeof(*systems), compare_systems);
	for (i = 0; i < count; i++) {
		if (!i || strcmp(systems[i], systems[i - 1]) != 0)
			fprintf(f,
				"#if __has_include(<trace/events/%s.h>)\n"
				"#include <trace/events/%s.h>\n"
				"#endif\n",
				systems[i], systems[i]);
	}
	for (i = 0; i < count; i++)
		free(systems[i]);
	free(systems);
}

static void emit(const struct pem_spec_set *set, struct pem_output *output)
{
	FILE *events = pem_output__file(output, "pem_kmod_events.h");
	FILE *headers = pem_output__file(output, "pem_kmod_headers.h");
	const struct pem_spec_event *event;
	unsigned index = 0;
	size_t at = 0;

	pem_banner(headers, set, NULL);
	put_headers(headers, set);
	pem_banner(events, set, NULL);
	while ((event = pem_tracepoint__next(set, &at)))
		put_event(events, event, index++);
	fprintf(events, "\nconst struct pem_kmod_probe pem_kmod_probes[] = {\n");
	for (at = 0; (event = pem_tracepoint__next(set, &at));)
		fprintf(events, "\tPEM_ROW_%s\n", event->c_name);
	fprintf(events, "};\nconst unsigned int pem_kmod_probe_count = %u;\n", index);
}

const struct pem_backend pem_backend_kmod = {
	.name = "kmod",
	.description = "probes of tracepoint events for the kernel module",
	.emit = emit,
};
