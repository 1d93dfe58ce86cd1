/* SPDX-License-Identifier: MIT */
/*
 * bpf.c - tracepoint events as BPF programs, and the table by which user space loads and decodes
 * them
 *
 *	pem_events.bpf.h        a program for each alternative of each event, included by
 *				kmod/bpf/pem.bpf.c, whose inlines it calls; and one for all events
 *				of a tracepoint that has several. All programs are in one section,
 *				because libbpf is slow to open an object with hundreds.
 *	pem_kernel_events.h     struct pem_kernel_event (libpem/sources/kernel/base/base.h) for each
 *				event, and a hash table by id; struct pem_kernel_joint for each
 *				program of several events; struct pem_kernel_static for each event
 *				of a static probe
 *
 * A field's `from` is an expression over the tracepoint's arguments. clang checks that it compiles,
 * and the verifier checks that it may run. Not here: the ring, targets and filters, which are
 * written by hand.
 */
#include "backend.h"
#include "tracepoint.h"

#include <stdlib.h>
#include <string.h>

/*
 * Tracepoints whose programs always track which thread runs on each CPU. pem.bpf.c has a
 * pem_begin_X for each.
 */
static const char *const hooks[] = {"sched_switch", "sched_process_fork"};
#define HOOK_COUNT (sizeof(hooks) / sizeof(hooks[0]))
#define NO_HOOK HOOK_COUNT

/* An event whose program may be part of one for all events of its tracepoint. */
struct member {
	const struct pem_spec_event *event;
	unsigned index;
	int is_put;
};

struct emitter {
	FILE *programs;
	FILE *table;
	unsigned index; /* the index of the next event in the table */
	int hooked[HOOK_COUNT]; /* an event's program is the hook's */
	struct member *members;
	size_t member_count;
};

/* Find the hook of the event's tracepoint if no event has it yet, or NO_HOOK. */
static size_t take_hook(struct emitter *out, const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < HOOK_COUNT; i++) {
		if (!strcmp(hooks[i], pem_tracepoint__name(&event->sources[0])) &&
		    !out->hooked[i]) {
			out->hooked[i] = 1;
			return i;
		}
	}
	return NO_HOOK;
}

static int is_type(const struct pem_argument *argument, const char *type)
{
	return argument->type_bytes == strlen(type) &&
	       !memcmp(argument->text, type, argument->type_bytes);
}

/*
 * Does the argument's type point to a function? The kernel names such types like smp_call_func_t.
 */
static int is_function(const struct pem_argument *argument)
{
	static const char end[] = "_func_t";
	size_t bytes = sizeof(end) - 1;

	return argument->type_bytes > bytes &&
	       !memcmp(argument->text + argument->type_bytes - bytes, end, bytes);
}

static void put_arguments(FILE *f, const char *prototype)
{
	struct pem_argument argument;
	unsigned position;

	for (position = 0; pem_prototype__next(&prototype, &argument); position++) {
		fprintf(f, "\t%.*s __attribute__((unused)) = (%.*s)", (int)argument.bytes,
			argument.text, (int)argument.type_bytes, argument.text);
		/* Some kernels do not let a program load these. */
		if (is_type(&argument, "const void *"))
			fprintf(f, "pem_void_argument(pem_ctx, %u);\n", position);
		else if (is_function(&argument)) /* no kernel lets a program load these */
			fprintf(f, "pem_function_argument(pem_ctx, %u);\n", position);
		else if (is_type(&argument, "bool")) /* other values make clang add a jump */
			fprintf(f, "(pem_ctx[%u] & 1);\n", position);
		else
			fprintf(f, "pem_ctx[%u];\n", position);
	}
}

static void put_log(FILE *f, const struct pem_spec_event *event, size_t source)
{
	const struct pem_spec_field *field;
	uint32_t tail = event->fixed_bytes;
	size_t i;

	fprintf(f,
		"\tif (pem_e.flags & PEM_ACTION_LOG) {\n"
		"\t\tpem_record = pem_reserve(&pem_e, %u);\n"
		"\t\tif (!pem_record)\n"
		"\t\t\treturn 0;\n",
		event->max_bytes);
	pem_tracepoint__put_fixed(f, event, source, 0);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type != PEM_TYPE_STRING)
			continue;
		fprintf(f, "\t\tpem_string(pem_record + %u, %u, ", tail, field->max_count);
		pem_tracepoint__put_from(f, event, source, field, NULL);
		fprintf(f, ");\n");
		tail += field->max_count;
	}
	fprintf(f, "\t\tpem_commit(&pem_e, pem_record, 0x%08xu);\n\t}\n", event->id);
}

/* Print the test of the predicate. In a program without a predicate the verifier removes it. */
static void put_predicate(struct emitter *out, const struct pem_spec_event *event, size_t source,
			  size_t hook)
{
	FILE *f = out->programs;

	if (!pem_tracepoint__is_testable(event))
		return;
	fprintf(f,
		"\tif (pem_config.predicate[%1$u].count) {\n"
		"\t\tuint64_t pem_at = 0, pem_n, pem_word;\n"
		"\t\tstruct pem_test pem_test;\n\n"
		"\t\tfor (pem_n = 0; pem_n < PEM_TESTS_MAX && pem_at < PEM_TESTS_MAX; pem_n++) {\n"
		"\t\t\tpem_test_load(&pem_test, %1$u, pem_at);\n"
		"\t\t\tpem_word = 0;\n",
		out->index);
	pem_tracepoint__put_word(f, event, source, "\t\t\t");
	fprintf(f,
		"\t\t\tpem_at = pem_test_next_integer(&pem_test, pem_number_of(&pem_e, %u, "
		"pem_word));\n"
		"\t\t}\n"
		"\t\tif (pem_at != PEM_TEST_PASS) {\n",
		out->index);
	if (hook != NO_HOOK && !strcmp(hooks[hook], "sched_switch"))
		fprintf(f, "\t\t\tpem_reject_sched_switch(&pem_e);\n");
	fprintf(f, "\t\t\treturn 0;\n\t\t}\n\t}\n");
}

/*
 * Print the test of the predicate's gates. Hooks are of two threads, and other events of one that
 * does not run, so they have none.
 */
static void put_gates(struct emitter *out, const struct pem_spec_source *source, size_t hook)
{
	if (hook == NO_HOOK && !source->of)
		fprintf(out->programs,
			"\tif (pem_config.gates[%1$u] && !pem_gates_pass(&pem_e, %1$u))\n"
			"\t\treturn 0;\n",
			out->index);
}

/* Print "pem_sched_switch"; from the second alternative on "pem2_sched_switch". */
static void put_program_name(FILE *f, const struct pem_spec_event *event, size_t source)
{
	fprintf(f, "pem");
	if (source)
		fprintf(f, "%zu", source + 1);
	fprintf(f, "_%s", event->c_name);
}

static void put_program(struct emitter *out, const struct pem_spec_event *event, size_t source,
			size_t hook)
{
	const struct pem_spec_source *alternative = &event->sources[source];
	const char *tracepoint = pem_tracepoint__name(alternative);
	FILE *f = out->programs;

	/* Another tracepoint has other arguments than the hook's, so it gets no hook. */
	if (hook != NO_HOOK && strcmp(hooks[hook], tracepoint))
		hook = NO_HOOK;
	fprintf(f, "\n/* %s */\nPEM_INLINE int ", event->name);
	put_program_name(f, event, source);
	fprintf(f, "_body(unsigned long long *pem_ctx)\n{\n");
	fprintf(f, "\tuint64_t pem_value = 0, pem_key = 0;\n"
		   "\tstruct pem_kevent pem_e;\n"
		   "\tuint8_t *pem_record;\n\n");
	if (hook == NO_HOOK && alternative->of)
		fprintf(f,
			"\tif (!pem_begin_of(&pem_e, %u, (struct task_struct *)pem_ctx[%u]))\n"
			"\t\treturn 0;\n",
			out->index, pem_tracepoint__of(alternative));
	else if (hook == NO_HOOK)
		fprintf(f, "\tif (!%s(&pem_e, %u))\n\t\treturn 0;\n",
			pem_tracepoint__is_of_the_system(event) ? "pem_begin_system" : "pem_begin",
			out->index);
	else
		fprintf(f, "\tif (!pem_begin_%s(&pem_e, %u, pem_ctx))\n\t\treturn 0;\n", tracepoint,
			out->index);
	put_arguments(f, alternative->arguments);
	if (pem_tracepoint__is_of_a_call(alternative)) {
		fprintf(f, "\tif (");
		pem_tracepoint__put_internal(f, event);
		fprintf(f, ")\n\t\treturn 0;\n");
	}
	if (alternative->when)
		fprintf(f, "\tif (!(%s))\n\t\treturn 0;\n", alternative->when);
	put_predicate(out, event, source, hook);
	put_gates(out, alternative, hook);
	pem_tracepoint__put_statistic(f, event, source);
	put_log(f, event, source);
	fprintf(f, "\treturn 0;\n}\n\nSEC(\"tp_btf\")\nint ");
	put_program_name(f, event, source);
	fprintf(f, "(unsigned long long *pem_ctx)\n{\n\treturn ");
	put_program_name(f, event, source);
	fprintf(f, "_body(pem_ctx);\n}\n");
}

/* --- one program for the events of a tracepoint --- */

static void add_member(struct emitter *out, const struct pem_spec_event *event, size_t hook)
{
	if (hook != NO_HOOK || event->source_count != 1)
		return;
	out->members = pem_xgrow(out->members, out->member_count, sizeof(*out->members));
	out->members[out->member_count++] = (struct member){.event = event, .index = out->index};
}

static int are_of_one(const struct member *a, const struct member *b)
{
	const char *x = a->event->sources[0].arguments, *y = b->event->sources[0].arguments;

	return !strcmp(a->event->sources[0].name, b->event->sources[0].name) &&
	       !strcmp(x ? x : "", y ? y : "");
}

/*
 * Print the program of all members from this one on that are of its tracepoint. An event that is
 * not joined is a constant of the program, so the verifier removes it.
 */
static void put_joint(struct emitter *out, size_t first)
{
	struct member *m = &out->members[first], *end = out->members + out->member_count, *next;
	FILE *f = out->programs;

	for (next = m + 1; next < end && !are_of_one(m, next);)
		next++;
	if (m->is_put || next == end)
		return;
	fprintf(f,
		"\n/* %s */\nSEC(\"tp_btf\")\nint pem_joint_%u(unsigned long long *pem_ctx)\n{\n",
		m->event->sources[0].name, m->index);
	fprintf(out->table, "\t{ .program = \"pem_joint_%u\", .events = (const uint16_t[]){ ",
		m->index);
	for (next = m; next < end; next++) {
		if (!are_of_one(m, next))
			continue;
		next->is_put = 1;
		fprintf(f, "\tif (pem_config.joined[%u])\n\t\t", next->index);
		put_program_name(f, next->event, 0);
		fprintf(f, "_body(pem_ctx);\n");
		fprintf(out->table, "%u, ", next->index);
	}
	fprintf(f, "\treturn 0;\n}\n");
	fprintf(out->table, "UINT16_MAX } },\n");
}

static void put_joints(struct emitter *out)
{
	size_t i;

	fprintf(out->table, "static const struct pem_kernel_joint pem_kernel_joints[] = {\n");
	for (i = 0; i < out->member_count; i++)
		put_joint(out, i);
	fprintf(out->table, "\t{ .program = NULL },\n};\n");
}

static void put_alternatives(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_source *source;
	size_t i;

	fprintf(f, "\t  .alternatives = (const struct pem_kernel_alternative[]){\n");
	for (i = 0; i < event->source_count; i++) {
		source = &event->sources[i];
		fprintf(f, "\t\t{ .program = \"");
		put_program_name(f, event, i);
		fprintf(f, "\", .tracepoint = \"%s\",\n\t\t  .arguments = \"%s\"", source->name,
			source->arguments && source->arguments[0] ? source->arguments : "void");
		if (source->kernel)
			fprintf(f, ", .kernel = \"%s\"", source->kernel);
		fprintf(f, " },\n");
	}
	fprintf(f, "\t  },\n\t  .alternative_count = %zu,\n", event->source_count);
}

static void put_row(struct emitter *out, const struct pem_spec_event *event, int is_hook)
{
	unsigned strings = 0;
	FILE *f = out->table;
	size_t i;

	fprintf(f, "\t{ .id = 0x%08xu,\n\t  .name = \"%s\",\n", event->id, event->name);
	put_alternatives(f, event);
	fprintf(f,
		"\t  .context = %d,\n"
		"\t  .sets_thread = %u,\n"
		"\t  .is_of_another = %u,\n"
		"\t  .fixed_bytes = %u,\n"
		"\t  .ring_bytes = %u,\n",
		is_hook, event->meaning == PEM_MEANS_SETS_THREAD, event->sources[0].of != NULL,
		event->fixed_bytes, event->max_bytes);
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].type != PEM_TYPE_STRING)
			continue;
		fprintf(f, "%s{ .max_count = %u }",
			strings++ ? ", " : "\t  .tail = (const struct pem_kernel_tail[]){ ",
			event->fields[i].max_count);
	}
	fprintf(f, "%s\t  .tail_count = %u },\n", strings ? " },\n" : "", strings);
}

static uint32_t offset_of(const struct pem_spec_event *event, enum pem_role role)
{
	size_t i;

	for (i = 0; event && i < event->field_count; i++) {
		if (event->fields[i].role == role)
			return event->fields[i].offset;
	}
	return 0;
}

/*
 * Print the event that sets a CPU's thread. pem.bpf.c writes one itself if the kernel reported no
 * switch.
 */
static void put_switch(FILE *f, const struct pem_spec_event *event, unsigned index)
{
	fprintf(f,
		"\nPEM_INLINE uint32_t pem_switch_index(void)\n{\n\treturn %u;\n}\n"
		"\nPEM_INLINE uint32_t pem_switch_bytes(void)\n{\n\treturn %u;\n}\n"
		"\nPEM_INLINE void pem_switch_fill(struct pem_kevent *e, uint8_t *record, "
		"uint32_t previous_tid,\n\t\t\t\tuint32_t pid, uint32_t tid)\n{\n",
		index, event ? event->max_bytes : 0);
	if (event) {
		pem_tracepoint__put_switch(f, event);
		fprintf(f, "\tpem_commit(e, record, 0x%08xu);\n", event->id);
	}
	fprintf(f, "}\n");
}

/*
 * Print programs for hooks that no event has. Without them the thread on each CPU would be unknown.
 */
static void put_bare_hooks(struct emitter *out)
{
	size_t i;

	for (i = 0; i < HOOK_COUNT; i++) {
		if (out->hooked[i])
			continue;
		fprintf(out->programs,
			"\nSEC(\"tp_btf\")\n"
			"int pem_context_%s(unsigned long long *pem_ctx)\n{\n"
			"\tstruct pem_kevent pem_e;\n\n"
			"\tpem_begin_%s(&pem_e, %u, pem_ctx);\n"
			"\treturn 0;\n}\n",
			hooks[i], hooks[i], out->index);
		fprintf(out->table,
			"\t{ .alternatives = (const struct pem_kernel_alternative[]){\n"
			"\t\t{ .program = \"pem_context_%s\", .tracepoint = \"sched:%s\" },\n"
			"\t  },\n"
			"\t  .alternative_count = 1,\n"
			"\t  .context = 1 },\n",
			hooks[i], hooks[i]);
		out->index++;
	}
}

/* Print a hash table from ids to indexes, with open addressing, at least half of it empty. */
static void put_index(struct emitter *out, const uint32_t *ids, unsigned count)
{
	unsigned size = 16, i, at;
	uint16_t *locations;

	while (size < 2 * count)
		size *= 2;
	locations = pem_xrealloc(NULL, size, sizeof(*locations));
	memset(locations, 0xff, size * sizeof(*locations));
	for (i = 0; i < count; i++) {
		for (at = ids[i] % size; locations[at] != 0xffff;)
			at = (at + 1) % size;
		locations[at] = (uint16_t)i;
	}
	fprintf(out->table,
		"#define PEM_KERNEL_BY_ID_SIZE %uu\n"
		"#define PEM_KERNEL_NO_EVENT 0xffffu\n"
		"static const uint16_t pem_kernel_by_id[PEM_KERNEL_BY_ID_SIZE] = {",
		size);
	for (i = 0; i < size; i++)
		fprintf(out->table, "%s%u,", i % 16 ? " " : "\n\t", locations[i]);
	fprintf(out->table, "\n};\n");
	free(locations);
}

/* Which argument of a static probe a field is. 255: from='' is not "arg0", "arg1", ... */
static unsigned argument_of(const char *from)
{
	char *end;
	unsigned long n;

	if (!from || strncmp(from, "arg", 3) != 0 || from[3] < '0' || from[3] > '9')
		return 255;
	n = strtoul(from + 3, &end, 10);
	return *end || n > 254 ? 255 : (unsigned)n;
}

static void put_static(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_source *source;
	size_t i, k;

	fprintf(f,
		"\t{ .id = 0x%08xu, .source_count = %zu,\n"
		"\t  .sources = (const struct pem_kernel_static_source[]){\n",
		event->id, event->source_count);
	for (i = 0; i < event->source_count; i++) {
		source = &event->sources[i];
		fprintf(f,
			"\t\t{ .probe = \"%s\", .binary = \"%s\", .arguments = (const uint8_t[]){ ",
			source->name, source->binary ? source->binary : "");
		for (k = 0; k < event->field_count; k++)
			fprintf(f, "%u, ",
				argument_of(pem_spec_event__from(event, i, &event->fields[k])));
		fprintf(f, "0 } },\n");
	}
	fprintf(f, "\t  } },\n");
}

/*
 * Print the static probes of binaries, whose programs are made at run time: which argument becomes
 * which field.
 */
static void put_statics(FILE *f, const struct pem_spec_set *set)
{
	const struct pem_spec_event *event;
	size_t i, k;

	fprintf(f, "static const struct pem_kernel_static pem_kernel_statics[] = {\n");
	for (i = 0; i < set->count; i++) {
		for (k = 0; k < set->specs[i].event_count; k++) {
			event = &set->specs[i].events[k];
			if (event->source_kind == PEM_SOURCE_USDT)
				put_static(f, event);
		}
	}
	fprintf(f, "\t{ .id = 0 },\n};\n");
}

static void emit(const struct pem_spec_set *set, struct pem_output *output)
{
	struct emitter out = {
		.programs = pem_output__file(output, "pem_events.bpf.h"),
		.table = pem_output__file(output, "pem_kernel_events.h"),
	};
	const struct pem_spec_event *event, *sets_thread = NULL;
	unsigned sets_thread_index = 0, count;
	size_t at = 0, i, hook;
	uint32_t *ids = NULL;

	pem_banner(out.programs, set, NULL);
	pem_banner(out.table, set, NULL);
	fprintf(out.table, "static const struct pem_kernel_event pem_kernel_events[] = {\n");
	while ((event = pem_tracepoint__next(set, &at))) {
		if (event->meaning == PEM_MEANS_SETS_THREAD && !sets_thread) {
			sets_thread = event;
			sets_thread_index = out.index;
		}
		hook = take_hook(&out, event);
		for (i = 0; i < event->source_count; i++)
			put_program(&out, event, i, hook);
		put_row(&out, event, hook != NO_HOOK);
		add_member(&out, event, hook);
		ids = pem_xgrow(ids, out.index, sizeof(*ids));
		ids[out.index++] = event->id;
	}
	count = out.index;
	put_switch(out.programs, sets_thread, sets_thread_index);
	put_bare_hooks(&out);
	fprintf(out.table,
		"};\n#define PEM_KERNEL_EVENT_COUNT %uu\n"
		"#define PEM_KERNEL_SWITCH_PROCESS_OFFSET %uu\n"
		"#define PEM_KERNEL_SWITCH_THREAD_OFFSET %uu\n",
		out.index, offset_of(sets_thread, PEM_ROLE_PROCESS),
		offset_of(sets_thread, PEM_ROLE_THREAD));
	put_joints(&out);
	put_index(&out, ids, count);
	put_statics(out.table, set);
	fprintf(out.programs,
		"\n_Static_assert(%u <= PEM_KRING_EVENTS_MAX, \"a slot for each kernel event\");\n",
		out.index);
	free(ids);
	free(out.members);
}

const struct pem_backend pem_backend_bpf = {
	.name = "bpf",
	.description = "BPF programs of tracepoint events, and their table",
	.emit = emit,
};
