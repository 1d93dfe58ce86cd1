/* SPDX-License-Identifier: MIT */
/*
 * agent.c - an offline agent: PROVIDER_trace.h reads the provider's events out of a trace, typed
 * and with their context; PROVIDER_agent.c is a program on it, to be edited
 *
 * The header is made again with each run. The program is written once: what a person has changed
 * stays. Not here: agents in the loop (pem/agent.h).
 */
#include "backend.h"
#include "c_text.h"

#include <stdlib.h>
#include <string.h>

static const char read_contract[] =
	"/*\n"
	" * Read a trace from its start and call a handler for each record of these events, and "
	"for\n"
	" * each interval that has ended. Handlers that are NULL are left out. Events that the "
	"trace\n"
	" * lacks have no records. Damaged parts of the trace are skipped and counted in "
	"*damaged.\n"
	" *\n"
	" * Returns 0, or -errno with error: EINVAL: the trace has an event of another version of "
	"the\n"
	" * spec; ENOMEM; or an error of the reader. Pointers that a handler gets are valid until "
	"it\n"
	" * returns, processes and threads until this function does. Blocks on files.\n"
	" */\n";

static int is_begin(const struct pem_spec_event *event)
{
	return event->meaning == PEM_MEANS_INTERVAL_BEGIN;
}

/* X_done, with a '_' behind it as long as an event has that name. The caller frees it. */
static char *done_name(const struct pem_spec_event *begin)
{
	const struct pem_spec *spec = begin->spec;
	char *name = pem_xprintf("%s_done", begin->c_name), *longer;
	size_t i;

	for (i = 0; i < spec->event_count; i++) {
		if (strcmp(spec->events[i].c_name, name) != 0)
			continue;
		longer = pem_xprintf("%s_", name);
		free(name);
		name = longer;
		i = (size_t)-1; /* begin again */
	}
	return name;
}

/* --- PROVIDER_trace.h --- */

static void put_struct(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f, "\n/* %s: ", event->name);
	pem_c_put_comment(f, event->description);
	fprintf(f, " */\nstruct trace_%s {\n", event->c_name);
	if (event->field_count)
		pem_c_put_members(f, event, 0);
	else
		fprintf(f, "\tchar has_no_fields;\n");
	fprintf(f, "};\n");
}

static void put_handlers(FILE *f, const struct pem_spec *spec)
{
	char *done;
	size_t i;

	fprintf(f,
		"\n/*\n * What is called: for each record its event's, with what is around it; for "
		"each "
		"interval that is\n * over ..._done, with the values of its begin. Its time is "
		"ended->end_ns -\n * ended->interval->begin.time_ns. If outcome is not "
		"PEM_INTERVAL_ENDED, read pem_ended.\n */\n"
		"struct %s_handlers {\n",
		spec->provider);
	for (i = 0; i < spec->event_count; i++) {
		const struct pem_spec_event *event = &spec->events[i];

		fprintf(f,
			"\tvoid (*%s)(void *user, const struct trace_%s *event,\n"
			"\t\tconst struct pem_record *record, const struct pem_around *around);\n",
			event->c_name, event->c_name);
		if (!is_begin(event))
			continue;
		done = done_name(event);
		fprintf(f,
			"\tvoid (*%s)(void *user, const struct trace_%s *begin,\n"
			"\t\tconst struct pem_ended *ended, const struct pem_around *around);\n",
			done, event->c_name);
		free(done);
	}
	fprintf(f, "};\n");
}

static void put_load(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	fprintf(f,
		"\nstatic inline void trace_%1$s__load(struct trace_%1$s *event,\n"
		"\t\t\t\t\tconst struct pem_record *record)\n{\n"
		"\t(void)record;\n\tmemset(event, 0, sizeof(*event));\n",
		event->c_name);
	for (i = 0; i < event->field_count; i++) {
		const struct pem_spec_field *field = &event->fields[i];
		const char *name = field->c_name;

		if (field->type == PEM_TYPE_STRING)
			fprintf(f, "\tevent->%s = pem_record__string(record, %zu);\n", name, i);
		else if (field->type == PEM_TYPE_LIST)
			fprintf(f,
				"\t{\n\t\tconst void *elements = NULL;\n\n"
				"\t\tevent->%1$s_count = pem_record__list(record, %2$zu, "
				"&elements);\n"
				"\t\tevent->%1$s = (const %3$s *)elements;\n\t}\n",
				name, i, pem_type__c(field->element_type));
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, "\tevent->%s = (const %s *)(const void *)(record->data + %u);\n",
				name, pem_type__c(field->element_type), field->offset);
		else
			fprintf(f,
				"\tmemcpy(&event->%1$s, record->data + %2$u, "
				"sizeof(event->%1$s));\n",
				name, field->offset);
	}
	fprintf(f, "}\n");
}

static void put_layout(FILE *f, const struct pem_spec *spec)
{
	size_t i, k;

	fprintf(f,
		"\n/* A field as this file reads it. */\n"
		"struct %1$s_field {\n\tconst char *event;\n\tuint32_t index;\n\tconst char "
		"*name;\n"
		"\tuint32_t type, element_type, offset, max_count;\n};\n"
		"static const struct %1$s_field %1$s_fields[] = {\n",
		spec->provider);
	for (i = 0; i < spec->event_count; i++) {
		for (k = 0; k < spec->events[i].field_count; k++) {
			const struct pem_spec_field *field = &spec->events[i].fields[k];

			fprintf(f, "\t{\"%s\", %zu, \"%s\", %u, %u, %u, %u},\n",
				spec->events[i].name, k, field->name, field->type,
				field->element_type, field->offset,
				field->type == PEM_TYPE_ARRAY ? field->max_count : 0);
		}
	}
	fprintf(f, "\t{NULL, 0, NULL, 0, 0, 0, 0},\n};\n");
}

static void put_check(FILE *f, const struct pem_spec *spec)
{
	size_t i;

	fprintf(f,
		"\n/* Is an event of the trace as this file reads it? Of another provider: yes. "
		"*/\n"
		"static inline int %1$s_check(const struct pem_event *event, struct pem_error "
		"*error)\n"
		"{\n\tconst struct %1$s_field *f;\n\tconst struct pem_field *is;\n\n"
		"\tfor (f = %1$s_fields; f->event; f++) {\n"
		"\t\tif (strcmp(f->event, event->name) != 0)\n\t\t\tcontinue;\n"
		"\t\tis = f->index < event->field_count ? &event->fields[f->index] : NULL;\n"
		"\t\tif (is && strcmp(is->name, f->name) == 0 && is->type == f->type &&\n"
		"\t\t    is->element_type == f->element_type &&\n"
		"\t\t    (is->type == PEM_TYPE_STRING || is->offset == f->offset) &&\n"
		"\t\t    (!f->max_count || is->max_count == f->max_count))\n\t\t\tcontinue;\n"
		"\t\tsnprintf(error->text, sizeof(error->text),\n"
		"\t\t\t \"the trace's %%s is of another version: its field %%u is not '%%s' as in "
		"\"\n"
		"\t\t\t \"%2$s; run pem gen --agent with the spec that it was recorded with\",\n"
		"\t\t\t event->name, f->index, f->name);\n"
		"\t\treturn -EINVAL;\n\t}\n\treturn 0;\n}\n",
		spec->provider, spec->file);
	fprintf(f,
		"\n/* The number of an event of the trace; -1: it is another provider's. */\n"
		"static inline int %s_number(const struct pem_event *event)\n{\n"
		"\tstatic const char *const names[] = {\n",
		spec->provider);
	for (i = 0; i < spec->event_count; i++)
		fprintf(f, "\t\t\"%s\",\n", spec->events[i].name);
	fprintf(f,
		"\t};\n\tint i;\n\n\tfor (i = 0; i < %zu; i++)\n"
		"\t\tif (strcmp(names[i], event->name) == 0)\n\t\t\treturn i;\n\treturn -1;\n}\n",
		spec->event_count);
}

/* One switch for each record, on the event's number in the spec. */
static void put_dispatch(FILE *f, const struct pem_spec *spec)
{
	char *done;
	size_t i;

	fprintf(f,
		"\nstatic inline void %1$s_record(const struct %1$s_handlers *handlers, void "
		"*user,\n"
		"\t\tint number, const struct pem_record *record, const struct pem_around "
		"*around)\n"
		"{\n\tswitch (number) {\n",
		spec->provider);
	for (i = 0; i < spec->event_count; i++)
		fprintf(f,
			"\tcase %1$zu:\n\t\tif (handlers->%2$s) {\n\t\t\tstruct trace_%2$s "
			"event;\n\n"
			"\t\t\ttrace_%2$s__load(&event, record);\n"
			"\t\t\thandlers->%2$s(user, &event, record, around);\n\t\t}\n\t\tbreak;\n",
			i, spec->events[i].c_name);
	fprintf(f,
		"\tdefault:\n\t\tbreak;\n\t}\n}\n"
		"\nstatic inline void %1$s_over(const struct %1$s_handlers *handlers, void *user,\n"
		"\t\tint number, const struct pem_ended *ended, const struct pem_around *around)\n"
		"{\n\t(void)handlers;\n\t(void)user;\n\t(void)ended;\n\t(void)around;\n"
		"\tswitch (number) {\n",
		spec->provider);
	for (i = 0; i < spec->event_count; i++) {
		if (!is_begin(&spec->events[i]))
			continue;
		done = done_name(&spec->events[i]);
		fprintf(f,
			"\tcase %1$zu:\n\t\tif (handlers->%3$s) {\n\t\t\tstruct trace_%2$s "
			"begin;\n\n"
			"\t\t\ttrace_%2$s__load(&begin, &ended->interval->begin);\n"
			"\t\t\thandlers->%3$s(user, &begin, ended, around);\n\t\t}\n\t\tbreak;\n",
			i, spec->events[i].c_name, done);
		free(done);
	}
	fprintf(f, "\tdefault:\n\t\tbreak;\n\t}\n}\n");
}

static void put_read(FILE *f, const struct pem_spec *spec)
{
	fprintf(f,
		"\n/* An event of the trace: the table is sorted by address. */\n"
		"struct %1$s_known {\n\tconst struct pem_event *event;\n\tint number;\n};\n"
		"\nstatic inline int %1$s_compare(const void *a, const void *b)\n{\n"
		"\tuintptr_t x = (uintptr_t)((const struct %1$s_known *)a)->event;\n"
		"\tuintptr_t y = (uintptr_t)((const struct %1$s_known *)b)->event;\n\n"
		"\treturn (x > y) - (x < y);\n}\n"
		"\nstatic inline int %1$s_find(const struct %1$s_known *known, size_t count,\n"
		"\t\t\t      const struct pem_event *event)\n{\n"
		"\tsize_t low = 0, middle;\n\n"
		"\twhile (count > 1) {\n\t\tmiddle = low + count / 2;\n"
		"\t\tif ((uintptr_t)known[middle].event <= (uintptr_t)event)\n\t\t\tlow = middle;\n"
		"\t\tcount -= count / 2;\n\t}\n"
		"\treturn known[low].event == event ? known[low].number : -1;\n}\n\n",
		spec->provider);
	fputs(read_contract, f);
	fprintf(f,
		"static inline int %1$s_read(struct pem_trace *trace, const struct %1$s_handlers "
		"*handlers,\n\t\tvoid *user, uint64_t *damaged, struct pem_error *error)\n{\n"
		"\tconst struct pem_model *model = pem_trace__model(trace);\n"
		"\tsize_t i, count = pem_model__count(model);\n"
		"\tstruct %1$s_known *known = (struct %1$s_known *)calloc(count + 1, "
		"sizeof(*known));\n"
		"\tstruct pem_pass *pass = pem_pass__new(trace, NULL, error);\n"
		"\tconst struct pem_event *last = NULL;\n\tint number = -1;\n"
		"\tstruct pem_record record;\n\tstruct pem_around around;\n\tint rc = 0;\n\n"
		"\tmemset(&record, 0, sizeof(record));\n\tmemset(&around, 0, sizeof(around));\n"
		"\trecord.size = sizeof(record);\n\taround.size = sizeof(around);\n\t*damaged = "
		"0;\n"
		"\tif (!known || !pass)\n\t\trc = -ENOMEM;\n"
		"\tfor (i = 0; !rc && i < count; i++) {\n"
		"\t\tknown[i].event = pem_model__event(model, i);\n"
		"\t\tknown[i].number = %1$s_number(known[i].event);\n"
		"\t\trc = %1$s_check(known[i].event, error);\n\t}\n"
		"\tif (!rc)\n\t\tqsort(known, count, sizeof(*known), %1$s_compare);\n"
		"\twhile (!rc) {\n\t\trc = pem_pass__next(pass, &record, &around, error);\n"
		"\t\tfor (i = 0; (rc == 1 || !rc) && i < around.ended_count; i++)\n"
		"\t\t\t%1$s_over(handlers, user,\n"
		"\t\t\t\t%1$s_find(known, count, around.ended[i].interval->begin.event),\n"
		"\t\t\t\t&around.ended[i], &around);\n"
		"\t\tif (!rc)\n\t\t\tbreak;\n"
		"\t\tif (rc == 1 && record.event != last) {\n\t\t\tlast = record.event;\n"
		"\t\t\tnumber = %1$s_find(known, count, last);\n\t\t}\n"
		"\t\tif (rc == 1)\n"
		"\t\t\t%1$s_record(handlers, user, number, &record, &around);\n"
		"\t\telse if (rc == -EINVAL) /* only the records of a damaged packet are lost */\n"
		"\t\t\t++*damaged;\n"
		"\t\telse\n\t\t\tbreak;\n\t\trc = 0;\n\t}\n"
		"\tpem_pass__free(pass);\n\tfree(known);\n\treturn rc;\n}\n",
		spec->provider);
}

static void put_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec)
{
	char *guard = pem_xstrdup(spec->provider), *p;
	size_t i;

	for (p = guard; *p; p++)
		*p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
	pem_banner(f, set, spec);
	fprintf(f,
		"#ifndef PEM_TRACE_OF_%1$s_H\n#define PEM_TRACE_OF_%1$s_H\n\n"
		"#include <pem/context.h>\n\n#include <errno.h>\n#include <stdint.h>\n"
		"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n",
		guard);
	free(guard);
	pem_c_put_labels(f, spec);
	for (i = 0; i < spec->event_count; i++)
		put_struct(f, &spec->events[i]);
	put_handlers(f, spec);
	for (i = 0; i < spec->event_count; i++)
		put_load(f, &spec->events[i]);
	put_layout(f, spec);
	put_check(f, spec);
	put_dispatch(f, spec);
	put_read(f, spec);
	fprintf(f, "\n#endif\n");
}

/* --- PROVIDER_agent.c --- */

/* The number of the event that the program sums, or whose last value it keeps; or NULL. */
static const struct pem_spec_field *amount(const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		const struct pem_spec_field *field = &event->fields[i];

		if ((field->role == PEM_ROLE_VALUE || field->role == PEM_ROLE_SIZE) &&
		    field->type != PEM_TYPE_STRING && field->type != PEM_TYPE_LIST &&
		    field->type != PEM_TYPE_ARRAY)
			return field;
	}
	return NULL;
}

/* The number describes a state, so that a sum of its values tells nothing. */
static int is_state(const struct pem_spec_event *event)
{
	return event->meaning == PEM_MEANS_COUNTER || event->meaning == PEM_MEANS_GAUGE ||
	       event->meaning == PEM_MEANS_SAMPLE;
}

static void put_agent_head(FILE *f, const struct pem_spec *spec)
{
	fprintf(f,
		"/*\n * %1$s_agent.c - reads a trace of %1$s's events and prints what was in it\n "
		"*\n"
		" * This file is yours: pem gen --agent makes %1$s_trace.h again, but not this "
		"one.\n *\n"
		" *\tcc -O2 %1$s_agent.c -o %1$s_agent $(pkg-config --cflags --libs libpem)\n"
		" *\t./%1$s_agent TRACE\n */\n"
		"#include \"%1$s_trace.h\"\n\n#include <inttypes.h>\n\n"
		"/* Records of one event. Of counters, gauges and samples, sum is the last. */\n"
		"struct tally {\n\tuint64_t count;\n\tdouble sum;\n};\n\n"
		"/* Intervals of one kind. */\nstruct durations {\n\tuint64_t count, unknown;\n"
		"\tuint64_t total_ns, longest_ns;\n};\n\n"
		"/* What the agent learns from the trace. */\nstruct agent {\n",
		spec->provider);
}

static void put_agent_state(FILE *f, const struct pem_spec *spec)
{
	char *done;
	size_t i;

	for (i = 0; i < spec->event_count; i++) {
		fprintf(f, "\tstruct tally %s;\n", spec->events[i].c_name);
		if (!is_begin(&spec->events[i]))
			continue;
		done = done_name(&spec->events[i]);
		fprintf(f, "\tstruct durations %s;\n", done);
		free(done);
	}
	fprintf(f,
		"};\n\nstatic inline void add_duration(struct durations *durations, const struct "
		"pem_ended *ended)\n{\n"
		"\tuint64_t ns = ended->end_ns - ended->interval->begin.time_ns;\n\n"
		"\tif (ended->outcome != PEM_INTERVAL_ENDED) {\n"
		"\t\tdurations->unknown++; /* its end is lost, or not in the trace */\n"
		"\t\treturn;\n\t}\n"
		"\tdurations->count++;\n\tdurations->total_ns += ns;\n"
		"\tif (ns > durations->longest_ns)\n\t\tdurations->longest_ns = ns;\n}\n");
}

static void put_handler(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field = amount(event);

	fprintf(f, "\n/* ");
	pem_c_put_comment(f, event->description[0] ? event->description : event->name);
	fprintf(f,
		" */\nstatic void on_%1$s(void *user, const struct trace_%1$s *event,\n"
		"\tconst struct pem_record *record, const struct pem_around *around)\n{\n"
		"\tstruct agent *agent = (struct agent *)user;\n\n",
		event->c_name);
	if (!field)
		fprintf(f, "\t(void)event;\n");
	fprintf(f,
		"\t(void)record; /* when: record->time_ns */\n"
		"\t(void)around; /* who: around->process, around->thread; in what: around->phase "
		"*/\n"
		"\tagent->%s.count++;\n",
		event->c_name);
	if (field)
		fprintf(f, "\tagent->%s.sum %s (double)event->%s;\n", event->c_name,
			is_state(event) ? "=" : "+=", field->c_name);
	fprintf(f, "}\n");
}

static void put_done_handler(FILE *f, const struct pem_spec_event *event)
{
	char *done = done_name(event);

	fprintf(f,
		"\n/* It is over: begin has the values that it began with. */\n"
		"static void on_%1$s(void *user, const struct trace_%2$s *begin,\n"
		"\tconst struct pem_ended *ended, const struct pem_around *around)\n{\n"
		"\tstruct agent *agent = (struct agent *)user;\n\n"
		"\t(void)begin;\n\t(void)around;\n"
		"\tadd_duration(&agent->%1$s, ended);\n}\n",
		done, event->c_name);
	free(done);
}

static void put_print(FILE *f, const struct pem_spec *spec)
{
	char *done;
	size_t i;

	fprintf(f, "\nstatic void print(const struct agent *agent)\n{\n");
	for (i = 0; i < spec->event_count; i++) {
		const struct pem_spec_event *event = &spec->events[i];
		const struct pem_spec_field *field = amount(event);

		fprintf(f, "\tprintf(\"%%-40s %%12\" PRIu64 \"");
		if (field)
			fprintf(f, "   %s%%s %%.0f %%s", is_state(event) ? "last " : "");
		fprintf(f, "\\n\", \"%s\", agent->%s.count", event->name, event->c_name);
		if (field) {
			fprintf(f, ", \"%s\", agent->%s.sum, \"", field->name, event->c_name);
			pem_put_c_escaped(f, field->unit);
			fputc('"', f);
		}
		fprintf(f, ");\n");
		if (!is_begin(event))
			continue;
		done = done_name(event);
		fprintf(f,
			"\tprintf(\"%%-40s %%12\" PRIu64 \"   %%.6f s in all, longest %%.6f s, "
			"%%\" PRIu64 "
			"\" of unknown length\\n\",\n"
			"\t       \"  over\", agent->%1$s.count, (double)agent->%1$s.total_ns / "
			"1e9,\n"
			"\t       (double)agent->%1$s.longest_ns / 1e9, agent->%1$s.unknown);\n",
			done);
		free(done);
	}
	fprintf(f, "}\n");
}

static void put_main(FILE *f, const struct pem_spec *spec)
{
	char *done;
	size_t i;

	fprintf(f,
		"\nint main(int argc, char **argv)\n{\n"
		"\tstatic struct agent agent;\n\tstruct %1$s_handlers handlers;\n"
		"\tstruct pem_error error = {\"\"};\n\tstruct pem_balance balance;\n"
		"\tstruct pem_trace *trace;\n\tuint64_t damaged = 0;\n\tint rc = 0;\n\n"
		"\tif (argc != 2) {\n\t\tfprintf(stderr, \"use: %%s TRACE\\n\", argv[0]);\n"
		"\t\treturn 1;\n\t}\n"
		"\tmemset(&handlers, 0, sizeof(handlers));\n",
		spec->provider);
	for (i = 0; i < spec->event_count; i++) {
		fprintf(f, "\thandlers.%1$s = on_%1$s;\n", spec->events[i].c_name);
		if (!is_begin(&spec->events[i]))
			continue;
		done = done_name(&spec->events[i]);
		fprintf(f, "\thandlers.%1$s = on_%1$s;\n", done);
		free(done);
	}
	fprintf(f,
		"\ttrace = pem_trace__open(argv[1], &error);\n"
		"\tif (trace)\n"
		"\t\trc = %s_read(trace, &handlers, &agent, &damaged, &error);\n"
		"\tif (!trace || rc) {\n\t\tfprintf(stderr, \"%%s: %%s\\n\", argv[1], "
		"error.text);\n"
		"\t\tpem_trace__close(trace);\n\t\treturn 1;\n\t}\n"
		"\tprint(&agent);\n"
		"\tbalance = pem_trace__total_balance(trace);\n"
		"\tif (balance.discarded || balance.overwritten || damaged)\n"
		"\t\tprintf(\"missing: %%\" PRIu64 \" records discarded, %%\" PRIu64 \" "
		"overwritten, "
		"%%\" PRIu64\n\t\t       \" places damaged\\n\", balance.discarded, "
		"balance.overwritten, "
		"damaged);\n"
		"\tpem_trace__close(trace);\n\treturn 0;\n}\n",
		spec->provider);
}

static void put_agent(FILE *f, const struct pem_spec *spec)
{
	size_t i;

	put_agent_head(f, spec);
	put_agent_state(f, spec);
	for (i = 0; i < spec->event_count; i++) {
		put_handler(f, &spec->events[i]);
		if (is_begin(&spec->events[i]))
			put_done_handler(f, &spec->events[i]);
	}
	put_print(f, spec);
	put_main(f, spec);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	char *name;
	size_t i;

	for (i = 0; i < set->count; i++) {
		name = pem_xprintf("%s_trace.h", set->specs[i].provider);
		put_header(pem_output__file(out, name), set, &set->specs[i]);
		free(name);
		name = pem_xprintf("%s_agent.c", set->specs[i].provider);
		put_agent(pem_output__starter(out, name), &set->specs[i]);
		free(name);
	}
}

const struct pem_backend pem_backend_agent = {
	.name = "agent",
	.description =
		"a program that reads a trace: PROVIDER_trace.h, and PROVIDER_agent.c to edit",
	.emit = emit,
};
