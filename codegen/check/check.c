/* SPDX-License-Identifier: MIT */
/*
 * check.c - checks what pem.xsd can't: names that must agree or differ, meanings, sources, limits
 * of the ABI
 *
 * If the schema found a part wrong, that part is NULL or none here. It is skipped, because its
 * error is already reported.
 */
#include "check.h"
#include "tracepoint.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Roles that an event with this meaning must have. */
static const struct {
	uint8_t meaning;
	uint8_t roles[3];
} needed_roles[] = {
	{PEM_MEANS_SETS_THREAD, {PEM_ROLE_PROCESS, PEM_ROLE_THREAD}},
	{PEM_MEANS_THREAD_START, {PEM_ROLE_PROCESS, PEM_ROLE_THREAD, PEM_ROLE_PARENT}},
	{PEM_MEANS_THREAD_END, {PEM_ROLE_THREAD}},
	{PEM_MEANS_PROCESS_NAME, {PEM_ROLE_NAME}},
	{PEM_MEANS_THREAD_NAME, {PEM_ROLE_THREAD, PEM_ROLE_NAME}},
	{PEM_MEANS_THREAD_WAKING, {PEM_ROLE_THREAD}},
	{PEM_MEANS_THREAD_RUNNABLE, {PEM_ROLE_THREAD}},
	{PEM_MEANS_PROCESS_ARGUMENTS, {PEM_ROLE_PROCESS, PEM_ROLE_NAME}},
	{PEM_MEANS_DESCRIPTOR_NAME, {PEM_ROLE_DESCRIPTOR, PEM_ROLE_NAME}},
	{PEM_MEANS_CALL_PATH, {PEM_ROLE_SYSTEM_CALL, PEM_ROLE_NAME}},
	{PEM_MEANS_THREAD_STATE, {PEM_ROLE_STATE}},
	{PEM_MEANS_FRAME, {PEM_ROLE_CODE, PEM_ROLE_STACK, PEM_ROLE_OUTER_STACK}},
	{PEM_MEANS_COUNTER, {PEM_ROLE_VALUE}},
	{PEM_MEANS_GAUGE, {PEM_ROLE_VALUE}},
	{PEM_MEANS_ALLOCATION, {PEM_ROLE_ADDRESS, PEM_ROLE_SIZE}},
	{PEM_MEANS_RELEASE, {PEM_ROLE_ADDRESS}},
	{PEM_MEANS_ACCESS, {PEM_ROLE_ADDRESS}},
	{PEM_MEANS_OBJECT, {PEM_ROLE_ADDRESS, PEM_ROLE_SIZE, PEM_ROLE_NAME}},
};

static const struct pem_spec_field *by_role(const struct pem_spec_event *event, unsigned role)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].role == role)
			return &event->fields[i];
	}
	return NULL;
}

static void check_meaning(const struct check *c)
{
	size_t i, k;

	for (i = 0; i < COUNT(needed_roles) && !c->event->is_damaged; i++) {
		if (needed_roles[i].meaning != c->event->meaning)
			continue;
		for (k = 0; k < COUNT(needed_roles[i].roles); k++) {
			if (needed_roles[i].roles[k] &&
			    !by_role(c->event, needed_roles[i].roles[k]))
				ERROR(c, c->event->at,
				      "an event of meaning '%s' has no field of role '%s': "
				      "expected one",
				      pem_word__meaning(c->event->meaning),
				      pem_word__role(needed_roles[i].roles[k]));
		}
	}
}

/* Is the name SYSTEM:NAME? */
static int is_two_words(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon && colon != name && colon[1] && !strchr(colon + 1, ':') &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") ==
		       strlen(name);
}

static int is_address(const char *name)
{
	size_t digits = strspn(name + 2, "0123456789abcdefABCDEF");

	return digits >= 1 && digits <= 16 && !name[2 + digits];
}

/* Is the name that of a function, such as "f" or "f.part.0", or an address? */
static int is_function(const char *name)
{
	return *name && !strpbrk(name, ":=-") && (strncmp(name, "0x", 2) || is_address(name));
}

/* Does the argument have a name? In "int" and "unsigned long" the last word belongs to the type. */
static int is_named(const struct pem_argument *argument)
{
	static const char *const types[] = {"int",      "long", "short", "char",
					    "unsigned", "bool", "signed"};
	size_t i;

	if (!argument->type_bytes || !argument->name_bytes)
		return 0;
	for (i = 0; i < COUNT(types); i++) {
		if (strlen(types[i]) == argument->name_bytes &&
		    !strncmp(types[i], argument->text + argument->name_at, argument->name_bytes))
			return 0;
	}
	return 1;
}

static void check_parameters(const struct check *c, const struct pem_spec_source *source)
{
	const char *rest = source->arguments;
	struct pem_argument argument;

	while (pem_prototype__next(&rest, &argument)) {
		if (!is_named(&argument))
			ERROR(c, source->at,
			      "parameter '%.*s' of a tracepoint: expected a type and a name, such "
			      "as 'int cpu'",
			      (int)argument.bytes, argument.text);
	}
}

static void check_range(const struct check *c, const struct pem_spec_source *source)
{
	unsigned from[2], to[2];

	if (sscanf(source->kernel, "%u.%u-%u.%u", &from[0], &from[1], &to[0], &to[1]) == 4 &&
	    (from[0] > to[0] || (from[0] == to[0] && from[1] > to[1])))
		ERROR(c, source->at,
		      "kernel='%s' ends before it begins: expected the older kernel first",
		      source->kernel);
}

static void check_tracepoint(const struct check *c, const struct pem_spec_source *source)
{
	if (source->arguments)
		check_parameters(c, source);
	if (source->kernel)
		check_range(c, source);
	if (!is_two_words(source->name))
		ERROR(c, source->at, "tracepoint name '%s': expected name='system:event'",
		      source->name);
	if (!source->arguments)
		ERROR(c, source->at,
		      "a tracepoint lacks arguments='': expected its parameters as in C, such as "
		      "'struct task_struct *task'");
}

static void check_counter(const struct check *c)
{
	const struct pem_spec_field *value = by_role(c->event, PEM_ROLE_VALUE);

	if (c->event->is_damaged)
		return;
	if (c->event->meaning != PEM_MEANS_COUNTER || c->event->field_count != 1 || !value ||
	    value->type != PEM_TYPE_UINT64)
		ERROR(c, c->event->at,
		      "an event of source '%s' is not a plain counter: expected meaning "
		      "'counter' and "
		      "one field, of type 'uint64' and role 'value'",
		      pem_word__source(c->event->source_kind));
}

static int has_field(const struct pem_spec_event *event, const char *name)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].name && !strcmp(event->fields[i].name, name))
			return 1;
	}
	return 0;
}

/* Is the name that of an argument that points to a thread? */
static int is_thread(const char *arguments, const char *name)
{
	static const char type[] = "struct task_struct *";
	struct pem_argument argument;

	while (pem_prototype__next(&arguments, &argument))
		if (argument.name_bytes == strlen(name) &&
		    !strncmp(argument.text + argument.name_at, name, argument.name_bytes))
			return argument.type_bytes == sizeof(type) - 1 &&
			       !strncmp(argument.text, type, argument.type_bytes);
	return 0;
}

/* Check attributes that only one kind of source may have. */
static void check_source_attributes(const struct check *c, const struct pem_spec_source *source)
{
	const char *kind = pem_word__source(source->kind);
	size_t i, k;

	if (source->kind != PEM_SOURCE_TRACEPOINT && source->arguments)
		ERROR(c, source->at,
		      "source '%s' has arguments: expected them only with a tracepoint", kind);
	if (source->kind != PEM_SOURCE_TRACEPOINT && source->kernel)
		ERROR(c, source->at,
		      "source '%s' has kernel='': expected it only with a tracepoint", kind);
	if (source->kind != PEM_SOURCE_TRACEPOINT && source->when)
		ERROR(c, source->at, "source '%s' has when='': expected it only with a tracepoint",
		      kind);
	if (source->when && !pem_is_balanced(source->when))
		ERROR(c, source->at,
		      "when='%s' has brackets that do not pair: expected a C expression",
		      source->when);
	if (source->of && !(source->kind == PEM_SOURCE_TRACEPOINT && source->arguments &&
			    is_thread(source->arguments, source->of)))
		ERROR(c, source->at,
		      "of='%s' is not a thread: expected the name of an argument of type "
		      "'struct task_struct *'",
		      source->of);
	if (source->kind != PEM_SOURCE_USDT && source->kind != PEM_SOURCE_UPROBE && source->binary)
		ERROR(c, source->at,
		      "source '%s' has binary='': expected it only with a usdt or uprobe", kind);
	for (i = 0; i < source->from_count && !c->event->is_damaged; i++) {
		if (source->froms[i].field && !has_field(c->event, source->froms[i].field))
			ERROR(c, source->froms[i].at,
			      "<from> names field '%s', which the event has not: expected one of "
			      "its fields",
			      source->froms[i].field);
		for (k = 0; k < i && source->froms[i].field && source->froms[k].field; k++)
			if (!strcmp(source->froms[i].field, source->froms[k].field))
				ERROR(c, source->froms[i].at,
				      "a second <from> for field '%s': expected one",
				      source->froms[i].field);
	}
}

static void check_source(const struct check *c, const struct pem_spec_source *source)
{
	if (source->is_damaged || c->event->sources->is_damaged)
		return;
	check_source_attributes(c, source);
	if (source->kind != c->event->source_kind) {
		ERROR(c, source->at,
		      "sources '%s' and '%s' of one event: expected alternatives of one type",
		      pem_word__source(c->event->source_kind), pem_word__source(source->kind));
		return;
	}
	switch (source->kind) {
	case PEM_SOURCE_STUB:
		if (source != c->event->sources)
			ERROR(c, source->at, "several sources of type 'stub': expected one");
		break;
	case PEM_SOURCE_TRACEPOINT:
		check_tracepoint(c, source);
		break;
	case PEM_SOURCE_USDT:
		if (!is_two_words(source->name))
			ERROR(c, source->at, "usdt probe '%s': expected name='provider:probe'",
			      source->name);
		if (!source->binary)
			ERROR(c, source->at,
			      "a usdt probe lacks binary='': expected the file that has it, such "
			      "as "
			      "'libc.so.6'");
		break;
	case PEM_SOURCE_UPROBE:
		if (!is_function(source->name))
			ERROR(c, source->at,
			      "uprobe '%s': expected name='FUNCTION' or name='0xADDRESS'",
			      source->name);
		if (!source->binary)
			ERROR(c, source->at,
			      "a uprobe lacks binary='': expected the file that has the function");
		break;
	case PEM_SOURCE_MODULE:
		pem_check_module(c, source);
		break;
	default:
		if (!source->name[0])
			ERROR(c, source->at,
			      "source '%s' has no name: expected a libpfm4 event, such as "
			      "'perf::TASK-CLOCK'",
			      pem_word__source(source->kind));
	}
}

static void check_sources(const struct check *c)
{
	const struct pem_spec_event *event = c->event;
	size_t i;

	for (i = 0; i < event->source_count; i++)
		check_source(c, &event->sources[i]);
	if (event->source_kind == PEM_SOURCE_PERF || event->source_kind == PEM_SOURCE_SIMULATED)
		check_counter(c);
	if (event->source_kind == PEM_SOURCE_SAMPLE && !event->is_damaged &&
	    event->meaning != PEM_MEANS_SAMPLE && event->meaning != PEM_MEANS_OBJECT &&
	    event->meaning != PEM_MEANS_ACCESS && event->meaning != PEM_MEANS_NOTHING)
		ERROR(c, event->at,
		      "an event of source 'perf-sample' has meaning '%s': expected 'sample', "
		      "'access', 'object' or none",
		      pem_word__meaning(event->meaning));
}

static void check_name(const struct check *c)
{
	const struct pem_spec_event *event = c->event;
	char *expected;

	if (!event->name || !event->layer || !event->class_name || !event->specifier)
		return;
	expected = pem_xprintf("%s::%s::%s", event->layer, event->class_name, event->specifier);
	if (strcmp(expected, event->name))
		ERROR(c, event->at,
		      "event name '%s' differs from its layerId, classId and specifier: expected "
		      "'%s'",
		      event->name, expected);
	free(expected);
	if (event->c_name && strlen(event->c_name) > PEM_SPEC_C_NAME_MAX)
		ERROR(c, event->at,
		      "event '%s' is called 'pem_enabled_%s' in programs, and Fortran allows 63 "
		      "characters: expected a shorter class or specifier",
		      event->name, event->c_name);
	if (event->id < PEM_SPEC_ID_RESERVED)
		ERROR(c, event->at,
		      "the id of event '%s' is %u, and ids below %u are reserved: expected another "
		      "name",
		      event->name, event->id, PEM_SPEC_ID_RESERVED);
}

/* Two events must differ in name, id and C name. Returns 1 if they do not. */
static int check_pair(const struct check *c, const struct pem_spec_event *earlier)
{
	const struct pem_spec_event *event = c->event;

	if (!event->name || !earlier->name)
		return 0;
	if (!strcmp(event->name, earlier->name)) {
		ERROR(c, event->at,
		      "a second event '%s', the first is %s:%d: expected another name", event->name,
		      earlier->spec->path, earlier->at.line);
		return 1;
	}
	if (event->id == earlier->id) {
		ERROR(c, event->at,
		      "event '%s' has the same id, 0x%08x, as '%s' (%s:%d): expected another name",
		      event->name, event->id, earlier->name, earlier->spec->path, earlier->at.line);
		return 1;
	}
	if (event->c_name && earlier->c_name && !strcmp(event->c_name, earlier->c_name)) {
		ERROR(c, event->at,
		      "event '%s' is called '%s' in C, like '%s' (%s:%d): expected another class "
		      "or "
		      "specifier",
		      event->name, event->c_name, earlier->name, earlier->spec->path,
		      earlier->at.line);
		return 1;
	}
	return 0;
}

static void check_event(const struct check *c)
{
	check_name(c);
	if (!c->event->description[0] && c->event->name)
		WARN(c, c->event->at, "event '%s' has no description: expected what happened",
		     c->event->name);
	if (c->event->field_count > PEM_SPEC_FIELDS_MAX) {
		ERROR(c, c->event->at, "the event has more than %u fields: expected at most %u",
		      PEM_SPEC_FIELDS_MAX, PEM_SPEC_FIELDS_MAX);
		return;
	}
	check_sources(c);
	check_meaning(c);
	pem_check_group(c);
	pem_check_fields(c);
}

/*
 * Compare each event with all events before it, in its file and in earlier files. One conflict is
 * reported for each.
 */
static void check_pairs(struct pem_spec_set *set)
{
	struct check c = {.set = set};
	size_t i, k, file, n, conflict;

	for (i = 0; i < set->count; i++) {
		c.spec = &set->specs[i];
		for (k = 0; k < c.spec->event_count; k++) {
			c.event = &c.spec->events[k];
			conflict = 0;
			for (file = 0; file <= i && !conflict; file++) {
				n = file < i ? set->specs[file].event_count : k;
				while (!conflict && n-- > 0)
					conflict = check_pair(&c, &set->specs[file].events[n]) != 0;
			}
		}
	}
}

static void check_providers(struct pem_spec_set *set)
{
	struct pem_spec *spec;
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		spec = &set->specs[i];
		if (spec->stub_count > PEM_EVENTS_PER_PROVIDER_MAX)
			pem_spec_set__error(
				set, spec->path, spec->at,
				"the provider has %u events with stubs: expected at most %u",
				spec->stub_count, PEM_EVENTS_PER_PROVIDER_MAX);
		for (k = 0; k < i; k++) {
			if (!spec->provider || !set->specs[k].provider ||
			    strcmp(spec->provider, set->specs[k].provider))
				continue;
			pem_spec_set__error(
				set, spec->path, spec->at,
				"a second provider '%s', the first is %s: expected another "
				"name",
				spec->provider, set->specs[k].path);
			break;
		}
	}
}

void pem_spec_set__check(struct pem_spec_set *set)
{
	struct check c = {.set = set};
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		c.spec = &set->specs[i];
		pem_spec_set__check_provider_name(set, c.spec);
		pem_check_labels(&c);
		pem_spec_set__check_label_names(set, c.spec);
		pem_check_structs(&c);
		pem_check_spec(&c);
		pem_check_metrics(&c);
		for (k = 0; k < set->specs[i].event_count; k++) {
			c.event = &set->specs[i].events[k];
			check_event(&c);
		}
	}
	check_providers(set);
	check_pairs(set);
	pem_check_partners(set);
}
