/* SPDX-License-Identifier: MIT */
/*
 * backend_kmod.c - tracepoint events as probes of the kernel module
 *
 *	pem_kmod_headers.h      the kernel's headers that declare the tracepoints
 *	pem_kmod_events.h       a probe for each event that this kernel has by its version, the compiler's check of its
 *	                        parameters, and the table of all. Included by kmod/probes.c; what a probe calls is
 *	                        kmod/pem_kmod.h
 *
 * BPF finds out what a kernel has when it runs; a module is compiled for one kernel. Here the alternatives that say
 * kernel='' for this one are compiled, and of these the compiler takes the first whose parameters are the tracepoint's.
 */
#include "backend.h"
#include "tracepoint.h"

#include <stdlib.h>
#include <string.h>

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
		"\tif (pem_e.flags & PEM_ACTION_LOG)\n"
		"\t\tpem_record = pem_reserve(&pem_e, %u);\n"
		"\tif (pem_record) {\n",
		event->max_bytes);
	pem_tracepoint__put_fixed(f, event, source, 1);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "\t\tpem_bytes += pem_string(pem_record + pem_bytes, %u, %s);\n",
				field->max_count, pem_tracepoint__from(event, source, field));
	}
	fprintf(f, "\t\tpem_commit(&pem_e, 0x%08xu, pem_bytes);\n\t}\n", event->id);
}

static void put_predicate(FILE *f, const struct pem_spec_event *event, size_t source,
			  unsigned index)
{
	if (!pem_tracepoint__is_testable(event))
		return;
	fprintf(f,
		"\tif (pem_e.flags & PEM_ACTION_FILTER) {\n"
		"\t\tconst struct pem_filter *pem_filter = pem_e.session->filters[%u];\n"
		"\t\tuint32_t pem_at = pem_filter->test_count ? 0 : PEM_TEST_PASS;\n"
		"\t\tstruct pem_test pem_test;\n"
		"\t\tuint64_t pem_word;\n\n"
		"\t\twhile (pem_at < pem_filter->test_count) {\n"
		"\t\t\tpem_test = pem_filter_tests(pem_filter)[pem_at];\n"
		"\t\t\tpem_word = 0;\n",
		index);
	pem_tracepoint__put_word(f, event, source, "\t\t\t");
	fprintf(f, "\t\t\tpem_at = pem_test_next_integer(&pem_test, pem_word);\n"
		   "\t\t}\n"
		   "\t\tif (pem_at != PEM_TEST_PASS) {\n"
		   "\t\t\tpem_end(&pem_e);\n"
		   "\t\t\treturn;\n\t\t}\n\t}\n");
}

/* "pem_probe_sched_switch"; from the second alternative on "pem_probe2_sched_switch". */
static void put_probe_name(FILE *f, const struct pem_spec_event *event, size_t source)
{
	fprintf(f, "pem_probe");
	if (source)
		fprintf(f, "%zu", source + 1);
	fprintf(f, "_%s", event->c_name);
}

static void put_probe(FILE *f, const struct pem_spec_event *event, size_t source, unsigned index)
{
	const char *arguments = event->sources[source].arguments;
	int any = arguments && arguments[0] && strcmp(arguments, "void") != 0;

	fprintf(f, "static void __maybe_unused ");
	put_probe_name(f, event, source);
	fprintf(f,
		"(void *pem_session%s%s)\n{\n"
		"\tuint32_t pem_bytes __maybe_unused = %u;\n"
		"\tuint64_t pem_value = 0, pem_key = 0;\n"
		"\tuint8_t *pem_record = NULL;\n"
		"\tstruct pem_kevent pem_e;\n\n"
		"\tif (!pem_begin(&pem_e, pem_session, %u))\n\t\treturn;\n",
		any ? ", " : "", any ? arguments : "", event->fixed_bytes, index);
	put_predicate(f, event, source, index);
	pem_tracepoint__put_statistic(f, event, source);
	put_log(f, event, source);
	fprintf(f, "\tpem_end(&pem_e);\n}\n");
}

/* An alternative as PEM_1_event(WHAT, other): WHAT of its tracepoint and probe, if these fit, or else the other. */
static void put_alternative(FILE *f, const struct pem_spec_event *event, size_t source,
			    unsigned index)
{
	const char *tracepoint = pem_tracepoint__name(&event->sources[source]);

	fprintf(f, "#if");
	put_condition(f, &event->sources[source]);
	put_probe(f, event, source, index);
	fprintf(f,
		"#define PEM_%zu_%s(what, other) "
		"__builtin_choose_expr(PEM_KMOD_FITS(%s, ",
		source + 1, event->c_name, tracepoint);
	put_probe_name(f, event, source);
	fprintf(f, "), PEM_KMOD_##what(%s, ", tracepoint);
	put_probe_name(f, event, source);
	fprintf(f,
		"), other)\n#define PEM_HAS_%zu_%s 1\n"
		"#else\n"
		"#define PEM_%zu_%s(what, other) other\n#define PEM_HAS_%zu_%s 0\n#endif\n",
		source + 1, event->c_name, source + 1, event->c_name, source + 1, event->c_name);
}

/* The first alternative that fits, or else `none`. */
static void put_choice(FILE *f, const struct pem_spec_event *event, const char *what,
		       const char *none)
{
	size_t i;

	for (i = 0; i < event->source_count; i++)
		fprintf(f, "PEM_%zu_%s(%s, ", i + 1, event->c_name, what);
	fprintf(f, "%s", none);
	for (i = 0; i < event->source_count; i++)
		fprintf(f, ")");
}

/*
 * That an event's tracepoint is declared, and none of its alternatives fits, is an error: the compiler says it of a
 * single one, with both lists of parameters.
 */
static void put_check(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	if (event->source_count == 1) {
		fprintf(f,
			"#if PEM_HAS_1_%s\nstatic inline void pem_check_%s(void)\n{\n"
			"\tPEM_KMOD_CHECK(%s, pem_probe_%s);\n}\n#endif\n",
			event->c_name, event->c_name, pem_tracepoint__name(&event->sources[0]),
			event->c_name);
		return;
	}
	fprintf(f, "#if 0");
	for (i = 0; i < event->source_count; i++)
		fprintf(f, " || PEM_KMOD_CAN(%s)", pem_tracepoint__name(&event->sources[i]));
	fprintf(f, "\nstatic_assert(");
	put_choice(f, event, "YES", "0");
	fprintf(f,
		", \"%s: no alternative has the parameters of this kernel's "
		"tracepoint\");\n#endif\n",
		event->name);
}

static void put_event(FILE *f, const struct pem_spec_event *event, unsigned index)
{
	size_t i;

	fprintf(f, "\n/* %s */\n", event->name);
	for (i = 0; i < event->source_count; i++)
		put_alternative(f, event, i, index);
	put_check(f, event);
}

static void put_row(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f, "\t{ 0x%08xu, ", event->id);
	put_choice(f, event, "NAME", "NULL");
	fprintf(f, ",\n\t  ");
	put_choice(f, event, "PROBE", "NULL");
	fprintf(f, " },\n");
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
		put_row(events, event);
	fprintf(events, "};\nconst unsigned int pem_kmod_probe_count = %u;\n", index);
}

const struct pem_backend pem_backend_kmod = {
	.name = "kmod",
	.description = "probes of tracepoint events for the kernel module",
	.emit = emit,
};
