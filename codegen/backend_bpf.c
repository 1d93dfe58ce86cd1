/* SPDX-License-Identifier: MIT */
/*
 * backend_bpf.c - tracepoint events as BPF programs, and the table that user space loads and decodes them by
 *
 *	pem_events.bpf.h        one program per event, included by kmod/bpf/pem.bpf.c, whose inlines it calls
 *	pem_kernel_events.h     struct pem_kernel_event (libpem/sources/kernel/kernel.h) for each, in the same order
 *
 * A field's `from` is an expression over the tracepoint's arguments; that it compiles, and that the kernel lets it
 * run, is for clang and the verifier to say. Not here: the ring, targets and filters, which are written by hand.
 */
#include "backend.h"

#include <stdlib.h>
#include <string.h>

/* Tracepoints whose programs keep track of what runs where, wanted or not; pem.bpf.c has pem_begin_X for each. */
static const char *const hooks[] = {"sched_switch", "sched_process_fork", "sched_process_exit"};
#define HOOK_COUNT (sizeof(hooks) / sizeof(hooks[0]))

struct emitter {
	FILE *programs;
	FILE *table;
	unsigned index; /* of the next event in the table */
	int hooked[HOOK_COUNT]; /* an event's program has it */
};

static const char *tracepoint_of(const struct pem_spec_event *event)
{
	const char *name = event->sources[0].name, *colon = strchr(name, ':');

	return colon ? colon + 1 : name;
}

/* Index of the tracepoint's hook that no program has yet, or -1. */
static int take_hook(struct emitter *out, const char *tracepoint)
{
	size_t i;

	for (i = 0; i < HOOK_COUNT; i++) {
		if (!strcmp(hooks[i], tracepoint) && !out->hooked[i]) {
			out->hooked[i] = 1;
			return (int)i;
		}
	}
	return -1;
}

static int is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* One argument, such as "struct task_struct *prev": everything but the last word is its type. */
static void put_argument(FILE *f, const char *text, size_t bytes, unsigned position)
{
	size_t name, type;

	while (bytes && (*text == ' ' || *text == '\t' || *text == '\n')) {
		text++;
		bytes--;
	}
	while (bytes && !is_word(text[bytes - 1]))
		bytes--;
	for (name = bytes; name && is_word(text[name - 1]);)
		name--;
	for (type = name; type && text[type - 1] == ' ';)
		type--;
	if (!type || name == bytes)
		return;
	fprintf(f, "\t%.*s __attribute__((unused)) = (%.*s)ctx[%u];\n", (int)bytes, text, (int)type,
		text, position);
}

static void put_arguments(FILE *f, const char *arguments)
{
	unsigned position = 0;
	size_t bytes;

	while (arguments && *arguments) {
		bytes = strcspn(arguments, ",");
		put_argument(f, arguments, bytes, position++);
		arguments += bytes;
		arguments += *arguments == ',';
	}
}

static const char *from_of(const struct pem_spec_field *field)
{
	return field->from ? field->from : "0";
}

/* The statistic's value and its order-preserving key, for whichever field the action names. */
static void put_statistic(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "\tif (e.flags & PEM_ACTION_STAT) {\n"
		   "\t\tswitch (PEM_ACTION_FIELD(e.action)) {\n");
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (!pem_type__size(field->type) || pem_type__is_float(field->type))
			continue;
		fprintf(f, "\t\tcase %zu:\n", i);
		if (pem_type__is_signed(field->type))
			fprintf(f,
				"\t\t\tvalue = (uint64_t)(int64_t)(%s)(%s);\n"
				"\t\t\tkey = value ^ (1ULL << 63);\n",
				pem_type__c(field->type), from_of(field));
		else
			fprintf(f, "\t\t\tvalue = key = (%s)(%s);\n", pem_type__c(field->type),
				from_of(field));
		fprintf(f, "\t\t\tbreak;\n");
	}
	fprintf(f, "\t\t}\n"
		   "\t\tpem_stat(&e, value, key);\n"
		   "\t}\n");
}

static void put_log(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	uint32_t tail = event->fixed_bytes;
	size_t i;

	fprintf(f,
		"\tif (e.flags & PEM_ACTION_LOG) {\n"
		"\t\trecord = pem_reserve(&e, %u);\n"
		"\t\tif (!record)\n"
		"\t\t\treturn 0;\n",
		event->max_bytes);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING) {
			fprintf(f, "\t\tpem_string(record + %u, %u, %s);\n", tail, field->max_count,
				from_of(field));
			tail += field->max_count;
		} else if (pem_type__size(field->type) && !pem_type__is_float(field->type)) {
			fprintf(f, "\t\t*(%s *)(record + %u) = (%s)(%s);\n",
				pem_type__c(field->type), field->offset, pem_type__c(field->type),
				from_of(field));
		} else {
			fprintf(f,
				"#error \"%s, field %s: a tracepoint event has integers and "
				"strings only\"\n",
				event->name, field->name);
		}
	}
	fprintf(f, "\t\tpem_commit(&e, record, 0x%08xu);\n\t}\n", event->id);
}

static void put_program(struct emitter *out, const struct pem_spec_event *event)
{
	const char *tracepoint = tracepoint_of(event);
	int hook = take_hook(out, tracepoint);
	FILE *f = out->programs;

	fprintf(f,
		"\n/* %s */\n"
		"SEC(\"tp_btf/%s\")\n"
		"int pem_%s(unsigned long long *ctx)\n{\n",
		event->name, tracepoint, event->c_name);
	put_arguments(f, event->sources[0].arguments);
	fprintf(f, "\tuint64_t value = 0, key = 0;\n"
		   "\tstruct pem_kevent e;\n"
		   "\tuint8_t *record;\n\n");
	fprintf(f, "\tif (!pem_begin%s%s(&e, %u%s))\n\t\treturn 0;\n", hook < 0 ? "" : "_",
		hook < 0 ? "" : tracepoint, out->index, hook < 0 ? "" : ", ctx");
	put_statistic(f, event);
	put_log(f, event);
	fprintf(f, "\treturn 0;\n}\n");
}

static void put_row(struct emitter *out, const struct pem_spec_event *event)
{
	const char *tracepoint = tracepoint_of(event);
	unsigned strings = 0, hook = 0;
	FILE *f = out->table;
	size_t i;

	for (i = 0; i < HOOK_COUNT; i++)
		hook |= !strcmp(hooks[i], tracepoint);
	fprintf(f,
		"\t{ .id = 0x%08xu,\n"
		"\t  .name = \"%s\",\n"
		"\t  .program = \"pem_%s\",\n"
		"\t  .tracepoint = \"%s\",\n"
		"\t  .context = %u,\n"
		"\t  .sets_thread = %u,\n"
		"\t  .fixed_bytes = %u,\n"
		"\t  .ring_bytes = %u,\n",
		event->id, event->name, event->c_name, tracepoint, hook,
		event->meaning == PEM_MEANS_SETS_THREAD, event->fixed_bytes, event->max_bytes);
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].type != PEM_TYPE_STRING)
			continue;
		fprintf(f, "%s%u", strings++ ? ", " : "\t  .string_max = (const uint16_t[]){ ",
			event->fields[i].max_count);
	}
	fprintf(f, "%s\t  .string_count = %u },\n", strings ? " },\n" : "", strings);
}

/* The event that sets a CPU's thread, as pem.bpf.c writes one itself where the kernel reported no switch. */
static void put_switch(FILE *f, const struct pem_spec_event *event, unsigned index)
{
	const struct pem_spec_field *field;
	const char *value;
	size_t i;

	fprintf(f,
		"\nPEM_INLINE uint32_t pem_switch_index(void)\n{\n\treturn %u;\n}\n"
		"\nPEM_INLINE uint32_t pem_switch_bytes(void)\n{\n\treturn %u;\n}\n"
		"\nPEM_INLINE void pem_switch_fill(struct pem_kevent *e, uint8_t *record, "
		"uint32_t previous_tid,\n\t\t\t\tuint32_t pid, uint32_t tid)\n{\n",
		index, event ? event->max_bytes : 0);
	for (i = 0; event && i < event->field_count; i++) {
		field = &event->fields[i];
		value = field->role == PEM_ROLE_PREVIOUS_THREAD ? "previous_tid"
			: field->role == PEM_ROLE_PROCESS       ? "pid"
			: field->role == PEM_ROLE_THREAD        ? "tid"
								: NULL;
		if (value)
			fprintf(f, "\t*(%s *)(record + %u) = (%s)%s;\n", pem_type__c(field->type),
				field->offset, pem_type__c(field->type), value);
	}
	if (event)
		fprintf(f, "\tpem_commit(e, record, 0x%08xu);\n", event->id);
	fprintf(f, "}\n");
}

/* Hooks that no event has get programs of their own: without them nobody knows what runs where. */
static void put_bare_hooks(struct emitter *out)
{
	size_t i;

	for (i = 0; i < HOOK_COUNT; i++) {
		if (out->hooked[i])
			continue;
		fprintf(out->programs,
			"\nSEC(\"tp_btf/%s\")\n"
			"int pem_context_%s(unsigned long long *ctx)\n{\n"
			"\tstruct pem_kevent e;\n\n"
			"\tpem_begin_%s(&e, %u, ctx);\n"
			"\treturn 0;\n}\n",
			hooks[i], hooks[i], hooks[i], out->index);
		fprintf(out->table,
			"\t{ .program = \"pem_context_%s\",\n"
			"\t  .tracepoint = \"%s\",\n"
			"\t  .context = 1 },\n",
			hooks[i], hooks[i]);
		out->index++;
	}
}

static void emit(const struct pem_spec_set *set, struct pem_output *output)
{
	struct emitter out = {
		.programs = pem_output__file(output, "pem_events.bpf.h"),
		.table = pem_output__file(output, "pem_kernel_events.h"),
	};
	const struct pem_spec_event *event, *sets_thread = NULL;
	unsigned sets_thread_index = 0;
	size_t i, j;

	pem_banner(out.programs, set, NULL);
	pem_banner(out.table, set, NULL);
	fprintf(out.table, "static const struct pem_kernel_event pem_kernel_events[] = {\n");
	for (i = 0; i < set->count; i++) {
		for (j = 0; j < set->specs[i].event_count; j++) {
			event = &set->specs[i].events[j];
			if (event->source_kind != PEM_SOURCE_TRACEPOINT)
				continue;
			if (event->meaning == PEM_MEANS_SETS_THREAD && !sets_thread) {
				sets_thread = event;
				sets_thread_index = out.index;
			}
			put_program(&out, event);
			put_row(&out, event);
			out.index++;
		}
	}
	put_switch(out.programs, sets_thread, sets_thread_index);
	put_bare_hooks(&out);
	fprintf(out.table, "};\n#define PEM_KERNEL_EVENT_COUNT %uu\n", out.index);
	fprintf(out.programs,
		"\n_Static_assert(%u <= PEM_KRING_EVENTS_MAX, \"a slot for each kernel event\");\n",
		out.index);
}

const struct pem_backend pem_backend_bpf = {
	.name = "bpf",
	.description = "BPF programs of tracepoint events, and their table",
	.emit = emit,
};
