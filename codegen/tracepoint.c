/* SPDX-License-Identifier: MIT */
/*
 * tracepoint.c - tracepoint events as C, for the BPF backend and the module backend (contract:
 * tracepoint.h)
 */
#include "tracepoint.h"

#include <string.h>

static int is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

int pem_prototype__next(const char **prototype, struct pem_argument *argument)
{
	const char *text = *prototype;
	size_t bytes, name;

	while (text && (*text == ' ' || *text == ','))
		text++;
	if (!text || !*text)
		return 0;
	bytes = strcspn(text, ",");
	*prototype = text + bytes;
	while (bytes && text[bytes - 1] == ' ')
		bytes--;
	for (name = bytes; name && is_word(text[name - 1]);)
		name--;
	if (bytes == 4 && !strncmp(text, "void", bytes))
		return 0;
	*argument = (struct pem_argument){.text = text,
					  .bytes = bytes,
					  .type_bytes = name,
					  .name_at = name,
					  .name_bytes = bytes - name};
	while (argument->type_bytes && text[argument->type_bytes - 1] == ' ')
		argument->type_bytes--;
	return 1;
}

const char *pem_tracepoint__name(const struct pem_spec_source *source)
{
	const char *colon = strchr(source->name, ':');

	return colon ? colon + 1 : source->name;
}

void pem_tracepoint__put_system(FILE *f, const struct pem_spec_source *source)
{
	fprintf(f, "%.*s", (int)strcspn(source->name, ":"), source->name);
}

static const struct pem_spec_event *next_of(const struct pem_spec_set *set, size_t *index,
					    unsigned kind)
{
	size_t i, j, at = 0;

	for (i = 0; i < set->count; i++) {
		for (j = 0; j < set->specs[i].event_count; j++, at++) {
			if (at < *index || set->specs[i].events[j].source_kind != kind)
				continue;
			*index = at + 1;
			return &set->specs[i].events[j];
		}
	}
	return NULL;
}

int pem_tracepoint__is_of_the_system(const struct pem_spec_event *event)
{
	return event->scope == PEM_SCOPE_SYSTEM && (event->meaning == PEM_MEANS_INTERVAL_BEGIN ||
						    event->meaning == PEM_MEANS_INTERVAL_END);
}

int pem_tracepoint__is_of_a_call(const struct pem_spec_source *source)
{
	return !strcmp(source->name, "raw_syscalls:sys_enter") ||
	       !strcmp(source->name, "raw_syscalls:sys_exit");
}

void pem_tracepoint__put_internal(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f, "pem_is_internal(&pem_e, regs, %d)", event->meaning == PEM_MEANS_INTERVAL_BEGIN);
}

unsigned pem_tracepoint__of(const struct pem_spec_source *source)
{
	const char *arguments = source->arguments;
	struct pem_argument argument;
	unsigned at;

	for (at = 0; pem_prototype__next(&arguments, &argument); at++)
		if (argument.name_bytes == strlen(source->of) &&
		    !strncmp(argument.text + argument.name_at, source->of, argument.name_bytes))
			break;
	return at;
}

const struct pem_spec_event *pem_tracepoint__next(const struct pem_spec_set *set, size_t *index)
{
	return next_of(set, index, PEM_SOURCE_TRACEPOINT);
}

const struct pem_spec_event *pem_module__next(const struct pem_spec_set *set, size_t *index)
{
	return next_of(set, index, PEM_SOURCE_MODULE);
}

const char *pem_tracepoint__from(const struct pem_spec_event *event, size_t source,
				 const struct pem_spec_field *field)
{
	const char *from = event->source_kind == PEM_SOURCE_MODULE
				   ? field->name
				   : pem_spec_event__from(event, source, field);

	return from ? from : "0";
}

/* Does the expression follow this pointer, and nowhere ask whether it is NULL, by its bare name? */
static int follows(const char *from, const struct pem_argument *argument)
{
	const char *at, *name = argument->text + argument->name_at, *after;
	int is_followed = 0;

	if (!memchr(argument->text, '*', argument->bytes))
		return 0;
	for (at = from; *at; at++) {
		after = at + argument->name_bytes;
		if (strncmp(at, name, argument->name_bytes) || (at > from && is_word(at[-1])) ||
		    is_word(*after))
			continue;
		after += strspn(after, " ");
		if (strncmp(after, "->", 2))
			return 0;
		is_followed = 1;
	}
	return is_followed;
}

void pem_tracepoint__put_from(FILE *f, const struct pem_spec_event *event, size_t source,
			      const struct pem_spec_field *field, const char *type)
{
	const char *from = pem_tracepoint__from(event, source, field);
	const char *arguments = event->sources[source].arguments;
	struct pem_argument argument;
	unsigned followed = 0;

	while (pem_prototype__next(&arguments, &argument)) {
		if (follows(from, &argument))
			fprintf(f, "%sPEM_HAS(%.*s)", followed++ ? " && " : "(",
				(int)argument.name_bytes, argument.text + argument.name_at);
	}
	fprintf(f, "%s", followed ? " ? " : "");
	if (type)
		fprintf(f, "(__force %s)", type);
	fprintf(f, "(%s)%s", from, !followed ? "" : type ? " : 0)" : " : NULL)");
}

static int is_number(const struct pem_spec_field *field)
{
	return pem_type__size(field->type) && !pem_type__is_float(field->type);
}

void pem_tracepoint__put_statistic(FILE *f, const struct pem_spec_event *event, size_t source)
{
	const struct pem_spec_field *field;
	int is_signed;
	size_t i;

	fprintf(f, "\tif (pem_e.flags & PEM_ACTION_STAT) {\n");
	if (pem_tracepoint__is_testable(event))
		fprintf(f, "\t\tswitch (PEM_ACTION_FIELD(pem_e.action)) {\n");
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (!is_number(field))
			continue;
		fprintf(f, "\t\tcase %zu:\n", i);
		is_signed = pem_type__is_signed(field->type);
		fprintf(f, "\t\t\tpem_value = %s",
			is_signed ? "(uint64_t)(int64_t)" : "pem_key = ");
		pem_tracepoint__put_from(f, event, source, field, pem_type__c(field->type));
		fprintf(f, ";\n%s\t\t\tbreak;\n",
			is_signed ? "\t\t\tpem_key = pem_value ^ (1ULL << 63);\n" : "");
	}
	if (pem_tracepoint__is_testable(event))
		fprintf(f, "\t\t}\n");
	fprintf(f, "\t\tpem_stat(&pem_e, pem_value, pem_key);\n"
		   "\t}\n");
}

int pem_tracepoint__is_testable(const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (is_number(&event->fields[i]))
			return 1;
	}
	return 0;
}

void pem_tracepoint__put_word(FILE *f, const struct pem_spec_event *event, size_t source,
			      const char *tabs)
{
	const struct pem_spec_field *field;
	uint32_t bytes;
	size_t i;

	fprintf(f, "%sswitch (pem_test.end) {\n", tabs);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (!is_number(field))
			continue;
		bytes = pem_type__size(field->type);
		fprintf(f, "%scase %u: /* %s */\n%s\tpem_word = (uint64_t)", tabs,
			field->offset + bytes, field->name, tabs);
		pem_tracepoint__put_from(f, event, source, field, pem_type__c(field->type));
		if (bytes < 8)
			fprintf(f, " << %u", 64 - 8 * bytes);
		fprintf(f, ";\n%s\tbreak;\n", tabs);
	}
	fprintf(f, "%s}\n", tabs);
}

void pem_tracepoint__put_fixed(FILE *f, const struct pem_spec_event *event, size_t source,
			       int zero_gaps)
{
	const struct pem_spec_field *field;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (zero_gaps && field->padding)
			fprintf(f, "\t\tmemset(pem_record + %u, 0, %u);\n",
				field->offset - field->padding, field->padding);
		if (is_number(field)) {
			fprintf(f, "\t\t*(%s *)(pem_record + %u) = ", pem_type__c(field->type),
				field->offset);
			pem_tracepoint__put_from(f, event, source, field, pem_type__c(field->type));
			fprintf(f, ";\n");
		} else if (field->type == PEM_TYPE_ARRAY) {
			fprintf(f, "\t\tpem_array(pem_record + %u, %u, ", field->offset,
				field->max_count * pem_type__size(field->element_type));
			pem_tracepoint__put_from(f, event, source, field, NULL);
			fprintf(f, ");\n");
		} else if (field->type == PEM_TYPE_LIST && event->source_kind == PEM_SOURCE_MODULE)
			fprintf(f, "\t\t*(uint32_t *)(pem_record + %u) = %s_count;\n",
				field->offset, field->name);
		else if (field->type != PEM_TYPE_STRING)
			fprintf(f,
				"#error \"%s, field %s: a tracepoint event has no lists and "
				"no floating point\"\n",
				event->name, field->name);
	}
}

void pem_tracepoint__put_switch(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	const char *value;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		value = field->role == PEM_ROLE_PREVIOUS_THREAD ? "previous_tid"
			: field->role == PEM_ROLE_PROCESS       ? "pid"
			: field->role == PEM_ROLE_THREAD        ? "tid"
			: field->role == PEM_ROLE_STATE         ? "PEM_NO_SWITCH"
								: NULL;
		if (value)
			fprintf(f, "\t*(%s *)(record + %u) = (%s)%s;\n", pem_type__c(field->type),
				field->offset, pem_type__c(field->type), value);
	}
}
