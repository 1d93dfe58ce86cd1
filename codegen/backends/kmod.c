/* SPDX-License-Identifier: MIT */
/*
 * kmod.c - tracepoint events as probes of the kernel module
 *
 *	pem_kmod_headers.h      the kernel's headers that declare the tracepoints
 *	pem_kmod_events.h       a probe for each event that this kernel has by its version, the
 *				compiler's check of its parameters, and the table of all. Included
 *				by kmod/probes.c. A probe calls kmod/pem_kmod.h.
 *	pem_kmod_emit.h         a function that raises each event that the module samples itself,
 *				and its index in that table. Included by kmod/counters.c, accessed.c
 *				and supply.c
 *
 * A BPF program finds out at run time what a kernel has. A module is compiled for one kernel. So
 * only the alternatives whose kernel='' fits this kernel are compiled. Of these the compiler takes
 * the first whose parameters are the tracepoint's. An event of which none is costs no more than
 * the event: kmod/declared lists it.
 */
#include "backend.h"
#include "tracepoint.h"

#include <stdlib.h>
#include <string.h>

/* Print "pem_probe_sched_switch"; from the second alternative on "pem_probe2_sched_switch". */
static void put_probe_name(FILE *f, const struct pem_spec_event *event, size_t source)
{
	fprintf(f, "pem_probe");
	if (source)
		fprintf(f, "%zu", source + 1);
	fprintf(f, "_%s", event->c_name);
}

/*
 * Print "5.18-6.7" as a condition of the preprocessor. A probe that this kernel's headers do not
 * let compile is named by a macro of kmod/declared.
 */
static void put_condition(FILE *f, const struct pem_spec_event *event, size_t at)
{
	const struct pem_spec_source *source = &event->sources[at];
	unsigned major, minor;
	const char *to = source->kernel ? strchr(source->kernel, '-') : NULL;

	if (to && to != source->kernel && sscanf(source->kernel, "%u.%u", &major, &minor) == 2)
		fprintf(f, " PEM_KERNEL_FROM(%u, %u) &&", major, minor);
	if (to && sscanf(to + 1, "%u.%u", &major, &minor) == 2)
		fprintf(f, " PEM_KERNEL_UNTIL(%u, %u) &&", major, minor);
	if (source->when) /* only BPF programs can tell */
		fprintf(f, " 0\n");
	else {
		fprintf(f, " PEM_KMOD_CAN(%s) && !defined(PEM_KMOD_BROKEN_",
			pem_tracepoint__name(source));
		put_probe_name(f, event, at);
		fprintf(f, ")\n");
	}
}

/* For sched_switch(preempt, prev, next, ...): print the third argument's name, or the second's. */
static void put_switch_argument(FILE *f, const char *prototype, unsigned wanted)
{
	struct pem_argument argument;
	unsigned position;

	for (position = 0; pem_prototype__next(&prototype, &argument); position++) {
		if (position == wanted)
			fprintf(f, "%.*s", (int)argument.name_bytes,
				argument.text + argument.name_at);
	}
}

static int is_switch(const struct pem_spec_event *event, size_t source)
{
	return event->meaning == PEM_MEANS_SETS_THREAD &&
	       !strcmp(pem_tracepoint__name(&event->sources[source]), "sched_switch");
}

/* Print code that writes a list after the record's present tail. Bytes of alignment are zero. */
static void put_list(FILE *f, const struct pem_spec_field *field)
{
	unsigned bytes = pem_type__size(field->element_type);

	if (bytes > 1)
		fprintf(f,
			"\t\tmemset(pem_record + pem_bytes, 0, -pem_bytes & %u);\n"
			"\t\tpem_bytes += -pem_bytes & %u;\n",
			bytes - 1, bytes - 1);
	fprintf(f,
		"\t\tmemcpy(pem_record + pem_bytes, %s, %s_count * %u);\n"
		"\t\tpem_bytes += %s_count * %u;\n",
		field->name, field->name, bytes, field->name, bytes);
}

static void put_log(FILE *f, const struct pem_spec_event *event, size_t source)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "\tif (pem_e.flags & PEM_ACTION_LOG) {\n\t\tuint8_t *pem_record = ");
	if (is_switch(event, source)) {
		fprintf(f, "pem_reserve_switch(&pem_e, %u, ", event->max_bytes);
		put_switch_argument(f, event->sources[source].arguments, 2);
	} else {
		fprintf(f, "pem_reserve%s(&pem_e, %u", event->sources[source].of ? "_of" : "",
			event->max_bytes);
	}
	fprintf(f, ");\n\n\t\tif (pem_record) {\n");
	pem_tracepoint__put_fixed(f, event, source, 1);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING) {
			fprintf(f, "\t\tpem_bytes += pem_string(pem_record + pem_bytes, %u, ",
				field->max_count);
			pem_tracepoint__put_from(f, event, source, field, NULL);
			fprintf(f, ");\n");
		} else if (field->type == PEM_TYPE_LIST)
			put_list(f, field);
	}
	fprintf(f, "\t\tpem_commit(&pem_e, 0x%08xu, pem_bytes);\n\t\t}\n\t}\n", event->id);
}

static void put_predicate(FILE *f, const struct pem_spec_event *event, size_t source)
{
	fprintf(f, "\t\tif (pem_pass && pem_e.rule->test_count) {\n"
		   "\t\t\tuint32_t pem_at = 0;\n"
		   "\t\t\tstruct pem_test pem_test;\n"
		   "\t\t\tuint64_t pem_word;\n\n"
		   "\t\t\twhile (pem_at < pem_e.rule->test_count) {\n"
		   "\t\t\t\tpem_test = pem_e.rule->tests[pem_at];\n"
		   "\t\t\t\tpem_word = 0;\n");
	pem_tracepoint__put_word(f, event, source, "\t\t\t\t");
	fprintf(f, "\t\t\t\tpem_at = pem_test_next_integer(&pem_test, pem_word);\n"
		   "\t\t\t}\n"
		   "\t\t\tpem_pass = pem_at == PEM_TEST_PASS;\n"
		   "\t\t}\n");
}

/* Print the tests of target, context and predicate. */
static void put_asks(FILE *f, const struct pem_spec_event *event, size_t source)
{
	fprintf(f, "\tif (unlikely(pem_e.flags & PEM_KMOD_ASKS)) {\n\t\tbool pem_pass = ");
	if (is_switch(event, source)) {
		fprintf(f, "pem_here_switch(&pem_e, ");
		put_switch_argument(f, event->sources[source].arguments, 1);
		fprintf(f, ", ");
		put_switch_argument(f, event->sources[source].arguments, 2);
		fprintf(f, ");\n\n");
	} else if (event->sources[source].of) {
		fprintf(f, "pem_here_of(&pem_e, %s);\n\n", event->sources[source].of);
	} else {
		fprintf(f, "pem_here(&pem_e);\n\n");
	}
	if (pem_tracepoint__is_testable(event))
		put_predicate(f, event, source);
	fprintf(f, "\t\tif (!pem_pass) {\n"
		   "\t\t\tpem_reject(&pem_e);\n"
		   "\t\t\treturn;\n\t\t}\n\t}\n");
}

/* Print what a probe does with an event that is wanted. */
static void put_end(FILE *f, const struct pem_spec_event *event, size_t source, unsigned index)
{
	fprintf(f, "\tif (!pem_enter(&pem_e, %u))\n\t\treturn;\n", index);
	pem_tracepoint__put_statistic(f, event, source);
	put_log(f, event, source);
	fprintf(f, "\tpem_end(&pem_e);\n}\n");
}

static void put_probe(FILE *f, const struct pem_spec_event *event, size_t source, unsigned index)
{
	const char *arguments = event->sources[source].arguments;
	int any = arguments && arguments[0] && strcmp(arguments, "void") != 0;

	fprintf(f, "static void __maybe_unused ");
	put_probe_name(f, event, source);
	fprintf(f,
		"(void *pem_data%s%s)\n{\n"
		"\tuint32_t pem_bytes __maybe_unused = %u;\n"
		"\tuint64_t pem_value = 0, pem_key = 0;\n"
		"\tstruct pem_kevent pem_e;\n\n"
		"\tif (!%s(&pem_e, pem_data, %u))\n\t\treturn;\n",
		any ? ", " : "", any ? arguments : "", event->fixed_bytes,
		pem_tracepoint__is_of_the_system(event) ? "pem_begin_system" : "pem_begin", index);
	if (pem_tracepoint__is_of_a_call(&event->sources[source])) {
		fprintf(f, "\tif (unlikely(");
		pem_tracepoint__put_internal(f, event);
		fprintf(f, ")) {\n\t\tpem_reject(&pem_e);\n\t\treturn;\n\t}\n");
	}
	put_asks(f, event, source);
	fprintf(f,
		"\tif (unlikely(pem_e.flags & PEM_KACTION_COUNTERS))\n"
		"\t\tpem_counters_read(pem_e.data, 0x%08xu);\n",
		event->id);
	put_end(f, event, source, index);
}

/*
 * Print an alternative as PEM_1_event(WHAT, other): WHAT of its tracepoint and probe if these fit,
 * else other.
 */
static void put_alternative(FILE *f, const struct pem_spec_event *event, size_t source,
			    unsigned index)
{
	const char *tracepoint = pem_tracepoint__name(&event->sources[source]);

	fprintf(f, "#if");
	put_condition(f, event, source);
	put_probe(f, event, source, index);
	fprintf(f,
		"#define PEM_%zu_%s(what, other) "
		"__builtin_choose_expr(PEM_KMOD_FITS(%s, ",
		source + 1, event->c_name, tracepoint);
	put_probe_name(f, event, source);
	fprintf(f, "), PEM_KMOD_##what(");
	pem_tracepoint__put_system(f, &event->sources[source]);
	fprintf(f, ", %s, ", tracepoint);
	put_probe_name(f, event, source);
	fprintf(f, "), other)\n#else\n#define PEM_%zu_%s(what, other) other\n#endif\n", source + 1,
		event->c_name);
}

/* Print a choice: the first alternative that fits, else `none`. */
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
 * Print a check that only kmod/declared compiles: it fails if the kernel has one of the event's
 * tracepoints, and none of the event's probes fits. Only BPF programs know a source with `when`.
 */
static void put_check(FILE *f, const struct pem_spec_event *event)
{
	const char *first = NULL;
	size_t i;

	for (i = 0; i < event->source_count; i++) {
		if (event->sources[i].when)
			continue;
		if (!first)
			fprintf(f, "#if defined(PEM_KMOD_TRIED) && (0");
		first = first ? first : pem_tracepoint__name(&event->sources[i]);
		fprintf(f, " || PEM_KMOD_CAN(%s)", pem_tracepoint__name(&event->sources[i]));
	}
	if (!first)
		return;
	fprintf(f, ")\nPEM_KMOD_TRY(%s, ", first);
	put_choice(f, event, "YES", "0");
	fprintf(f, ");\n#endif\n");
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
	fprintf(f, "\t{ 0x%08xu, %u, ", event->id, event->fixed_bytes);
	put_choice(f, event, "NAME", "NULL");
	fprintf(f, ",\n\t  ");
	put_choice(f, event, "PROBE", "NULL");
	fprintf(f, ",\n\t  false },\n");
}

/* --- events of the module's samplers --- */

static void put_parameters(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, ", const char *%s", field->name);
		else if (field->type == PEM_TYPE_LIST)
			fprintf(f, ", const %s *%s, uint32_t %s_count",
				pem_type__c(field->element_type), field->name, field->name);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, ", const %s *%s", pem_type__c(field->element_type), field->name);
		else
			fprintf(f, ", %s %s", pem_type__c(field->type), field->name);
	}
}

/* Print a probe that the module calls itself. The process that runs then has no meaning. */
static void put_emitter(FILE *f, const struct pem_spec_event *event, unsigned index)
{
	fprintf(f,
		"\n/* %s: preemption is off; a list has at most as many elements as its spec says. "
		"*/\nstatic inline void pem_emit_%s(struct pem_kmod_probe_data *pem_data",
		event->name, event->c_name);
	put_parameters(f, event);
	fprintf(f,
		")\n{\n"
		"\tuint32_t pem_bytes = %u;\n"
		"\tuint64_t pem_value = 0, pem_key = 0;\n"
		"\tstruct pem_kevent pem_e;\n\n"
		"\tif (!pem_begin_system(&pem_e, pem_data, %u))\n\t\treturn;\n",
		event->fixed_bytes, index);
	put_asks(f, event, 0);
	put_end(f, event, 0, index);
}

/* Print the emitters. Their indexes follow those of the tracepoints, of which there are index. */
static void put_emitters(FILE *emit, FILE *events, const struct pem_spec_set *set, unsigned index)
{
	const struct pem_spec_event *event;
	size_t at;

	for (at = 0; (event = pem_module__next(set, &at)); index++) {
		put_emitter(emit, event, index);
		fprintf(events, "\t{ 0x%08xu, %u, NULL, NULL, PEM_KMOD_HAS_%s },\n", event->id,
			event->fixed_bytes, event->sources[0].name);
	}
	fprintf(events, "};\nconst unsigned int pem_kmod_probe_count = %u;\n", index);
}

/* --- files --- */

/*
 * Print the event that sets a CPU's thread. record.c writes one itself if the kernel reported no
 * switch.
 */
static void put_switch(FILE *f, const struct pem_spec_event *event, unsigned index)
{
	fprintf(f,
		"\nconst unsigned int pem_switch_index = %s%u;\n"
		"const unsigned int pem_switch_bytes = %u;\n"
		"const uint32_t pem_switch_id = 0x%08xu;\n"
		"void pem_switch_fill(uint8_t *record, uint32_t previous_tid, uint32_t pid, "
		"uint32_t tid)\n{\n",
		event ? "" : "PEM_KMOD_NO_EVENT + ", event ? index : 0,
		event ? event->max_bytes : 0, event ? event->id : 0);
	if (event) {
		fprintf(f, "\tmemset(record + 8, 0, %u);\n", event->max_bytes - 8);
		pem_tracepoint__put_switch(f, event);
	}
	fprintf(f, "}\n");
}

static int compare_systems(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/*
 * Print the headers. Most systems have a header of their name. The other headers are in
 * kmod/tracepoints.h.
 */
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
	FILE *emit = pem_output__file(output, "pem_kmod_emit.h");
	const struct pem_spec_event *event, *sets_thread = NULL;
	unsigned index = 0, sets_thread_index = 0;
	size_t at = 0;

	pem_banner(headers, set, NULL);
	put_headers(headers, set);
	pem_banner(events, set, NULL);
	while ((event = pem_tracepoint__next(set, &at))) {
		if (event->meaning == PEM_MEANS_SETS_THREAD && !sets_thread) {
			sets_thread = event;
			sets_thread_index = index;
		}
		put_event(events, event, index++);
	}
	put_switch(events, sets_thread, sets_thread_index);
	fprintf(events, "\nconst struct pem_kmod_probe pem_kmod_probes[] = {\n");
	for (at = 0; (event = pem_tracepoint__next(set, &at));)
		put_row(events, event);
	pem_banner(emit, set, NULL);
	put_emitters(emit, events, set, index);
}

const struct pem_backend pem_backend_kmod = {
	.name = "kmod",
	.description = "probes of tracepoint events for the kernel module",
	.emit = emit,
};
