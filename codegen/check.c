/* SPDX-License-Identifier: MIT */
/*
 * check.c - what pem.xsd can't say: names that must agree or differ, roles that must fit, limits of the ABI
 *
 * A part that the schema found wrong is NULL or none here and passed over: it has its error already.
 */
#include "model.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Not names in C11 or C++20, or macros of common headers and compilers. */
static const char *const reserved_words[] = {
	"NULL",     "alignas",      "alignof",       "and",         "and_eq",
	"asm",      "assert",       "atomic_cancel", "auto",        "bitand",
	"bitor",    "bool",         "break",         "case",        "catch",
	"char",     "char16_t",     "char32_t",      "char8_t",     "class",
	"co_await", "co_return",    "co_yield",      "compl",       "concept",
	"const",    "const_cast",   "consteval",     "constexpr",   "constinit",
	"continue", "decltype",     "default",       "delete",      "do",
	"double",   "dynamic_cast", "else",          "enum",        "errno",
	"explicit", "export",       "extern",        "false",       "float",
	"for",      "friend",       "goto",          "header",      "i386",
	"if",       "inline",       "int",           "linux",       "long",
	"mutable",  "namespace",    "new",           "noexcept",    "not",
	"not_eq",   "nullptr",      "operator",      "or",          "or_eq",
	"private",  "protected",    "public",        "register",    "reinterpret_cast",
	"requires", "restrict",     "return",        "short",       "signed",
	"sizeof",   "static",       "static_assert", "static_cast", "stderr",
	"stdin",    "stdout",       "struct",        "switch",      "template",
	"this",     "thread_local", "throw",         "true",        "try",
	"typedef",  "typeid",       "typename",      "typeof",      "union",
	"unix",     "unsigned",     "using",         "virtual",     "void",
	"volatile", "wchar_t",      "while",         "xor",         "xor_eq",
};

/* What a stub, whose parameters the fields are, calls by its name itself. */
static const char *const stub_words[] = {"memchr",  "memcpy",   "memset",   "uintptr_t",
					 "uint8_t", "uint16_t", "uint32_t", "uint64_t",
					 "int8_t",  "int16_t",  "int32_t",  "int64_t"};

/* Roles that an event's meaning can't do without. */
static const struct {
	uint8_t meaning;
	uint8_t roles[3];
} needed_roles[] = {
	{PEM_MEANS_SETS_THREAD, {PEM_ROLE_PROCESS, PEM_ROLE_THREAD}},
	{PEM_MEANS_THREAD_START, {PEM_ROLE_PROCESS, PEM_ROLE_THREAD, PEM_ROLE_PARENT}},
	{PEM_MEANS_THREAD_END, {PEM_ROLE_THREAD}},
	{PEM_MEANS_PROCESS_NAME, {PEM_ROLE_NAME}},
	{PEM_MEANS_COUNTER, {PEM_ROLE_VALUE}},
	{PEM_MEANS_GAUGE, {PEM_ROLE_VALUE}},
	{PEM_MEANS_ALLOCATION, {PEM_ROLE_ADDRESS, PEM_ROLE_SIZE}},
	{PEM_MEANS_RELEASE, {PEM_ROLE_ADDRESS}},
};

/* What the checks of one event and its fields share. */
struct check {
	struct pem_spec_set *set;
	const struct pem_spec *spec;
	const struct pem_spec_event *event;
};

#define ERROR(check, line, ...)                                                                    \
	pem_spec_set__error((check)->set, (check)->spec->path, line, __VA_ARGS__)

static int is_reserved(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT(reserved_words); i++) {
		if (!strcmp(reserved_words[i], name))
			return 1;
	}
	for (i = 0; i < COUNT(stub_words); i++) {
		if (!strcmp(stub_words[i], name))
			return 1;
	}
	return name[0] == '_' || !strncmp(name, "pem_", 4);
}

static int is_integer(unsigned type)
{
	return type >= PEM_TYPE_UINT8 && type <= PEM_TYPE_INT64;
}

static int is_number(unsigned type)
{
	return is_integer(type) || pem_type__is_float(type);
}

static void check_role(const struct check *c, const struct pem_spec_field *field)
{
	const char *expected = NULL;

	switch (field->role) {
	case PEM_ROLE_NONE:
		return;
	case PEM_ROLE_NAME:
		expected = field->type == PEM_TYPE_STRING ? NULL : "'string'";
		break;
	case PEM_ROLE_VALUE:
		expected = is_number(field->type) ? NULL : "a number type";
		break;
	case PEM_ROLE_ADDRESS:
		expected = field->type == PEM_TYPE_UINT64 ? NULL : "'uint64'";
		break;
	case PEM_ROLE_SIZE:
		expected = is_integer(field->type) && !pem_type__is_signed(field->type)
				   ? NULL
				   : "an unsigned type";
		break;
	default:
		expected = field->type == PEM_TYPE_UINT32 ? NULL : "'uint32'";
	}
	if (expected)
		ERROR(c, field->line, "a field of role '%s' has type '%s': expected %s",
		      pem_word__role(field->role), pem_word__type(field->type), expected);
}

/* Brackets in pairs: the expression stays one when the generator puts it into parentheses. */
static int is_balanced(const char *text)
{
	char open[256];
	size_t depth = 0;

	for (; *text; text++) {
		if (*text == '(' || *text == '[') {
			if (depth == sizeof(open))
				return 0;
			open[depth++] = *text;
		} else if (*text == ')' || *text == ']') {
			if (!depth || open[--depth] != (*text == ')' ? '(' : '['))
				return 0;
		}
	}
	return depth == 0;
}

static void check_from(const struct check *c, const struct pem_spec_field *field)
{
	if (c->event->source_kind != PEM_SOURCE_TRACEPOINT) {
		if (field->from)
			ERROR(c, field->line,
			      "from='' in an event of source '%s': expected it only with a "
			      "tracepoint",
			      pem_word__source(c->event->source_kind));
		return;
	}
	if (field->type == PEM_TYPE_LIST || pem_type__is_float(field->type))
		ERROR(c, field->line,
		      "a tracepoint event has a field of type '%s': expected an integer or a "
		      "string",
		      pem_word__type(field->type));
	else if (!field->from)
		ERROR(c, field->line,
		      "a tracepoint event's field lacks from='': expected a C expression over the "
		      "source's arguments");
	else if (!is_balanced(field->from))
		ERROR(c, field->line,
		      "from='%s' has brackets that do not pair: expected a C expression",
		      field->from);
}

static void check_attributes(const struct check *c, const struct pem_spec_field *field)
{
	int list = field->type == PEM_TYPE_LIST, string = field->type == PEM_TYPE_STRING;

	if (list && !field->has_element_type)
		ERROR(c, field->line,
		      "a list lacks eltType='': expected the number type of its elements");
	if (!list && field->has_element_type)
		ERROR(c, field->line, "eltType='' on type '%s': expected it only with type='list'",
		      pem_word__type(field->type));
	if (!list && !string && field->has_max)
		ERROR(c, field->line,
		      "max='' on type '%s': expected it only with type='list' or type='string'",
		      pem_word__type(field->type));
	if (string && field->max_count < 2)
		ERROR(c, field->line,
		      "max='1' leaves a string no room beside its end: expected 2 or more");
	if (field->has_base && field->base == 16 && !is_integer(field->type) &&
	    !(list && is_integer(field->element_type)))
		ERROR(c, field->line, "base='16' on type '%s': expected it only with integers",
		      pem_word__type(field->type));
}

/* Is name that of a list's length, which the generator makes up? */
static const struct pem_spec_field *list_behind(const struct pem_spec_event *event,
						const char *name)
{
	const struct pem_spec_field *field;
	size_t i, n;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type != PEM_TYPE_LIST || !field->name)
			continue;
		n = strlen(field->name);
		if (!strncmp(name, field->name, n) &&
		    (!strcmp(name + n, "_count") || !strcmp(name + n, "_length")))
			return field;
	}
	return NULL;
}

static void check_field_name(const struct check *c, size_t index)
{
	const struct pem_spec_field *field = &c->event->fields[index], *other;
	size_t i;

	if (!field->name)
		return;
	if (is_reserved(field->name))
		ERROR(c, field->line,
		      "field name '%s' is a word of C or C++, or pem's own: expected another name",
		      field->name);
	other = list_behind(c->event, field->name);
	if (other)
		ERROR(c, field->line,
		      "field name '%s' is taken by the length of list '%s': expected another name",
		      field->name, other->name);
	for (i = 0; i < index; i++) {
		other = &c->event->fields[i];
		if (other->name && !strcmp(other->name, field->name)) {
			ERROR(c, field->line,
			      "a second field '%s', the first is in line %d: expected another name",
			      field->name, other->line);
			return;
		}
	}
}

static void check_fields(const struct check *c)
{
	const struct pem_spec_field *field;
	size_t i, k;

	for (i = 0; i < c->event->field_count; i++) {
		field = &c->event->fields[i];
		check_field_name(c, i);
		if (field->type == PEM_TYPE_NONE)
			continue;
		check_attributes(c, field);
		check_role(c, field);
		check_from(c, field);
		for (k = 0; k < i && field->role; k++) {
			if (c->event->fields[k].role == field->role)
				ERROR(c, field->line,
				      "a second field of role '%s', the first is in line %d: "
				      "expected one at most",
				      pem_word__role(field->role), c->event->fields[k].line);
		}
	}
}

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

	for (i = 0; i < COUNT(needed_roles); i++) {
		if (needed_roles[i].meaning != c->event->meaning)
			continue;
		for (k = 0; k < COUNT(needed_roles[i].roles); k++) {
			if (needed_roles[i].roles[k] &&
			    !by_role(c->event, needed_roles[i].roles[k]))
				ERROR(c, c->event->line,
				      "an event of meaning '%s' has no field of role '%s': "
				      "expected one",
				      pem_word__meaning(c->event->meaning),
				      pem_word__role(needed_roles[i].roles[k]));
		}
	}
}

static void check_tracepoint(const struct check *c)
{
	const char *name = c->event->source_name, *colon = strchr(name, ':');

	if (!colon || colon == name || !colon[1] || strchr(colon + 1, ':') ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") !=
		    strlen(name))
		ERROR(c, c->event->line, "tracepoint name '%s': expected name='system:event'",
		      name);
	if (!c->event->source_arguments)
		ERROR(c, c->event->line,
		      "a tracepoint lacks arguments='': expected its parameters as in C, such as "
		      "'struct task_struct *task'");
}

static void check_counter(const struct check *c)
{
	const struct pem_spec_field *value = by_role(c->event, PEM_ROLE_VALUE);

	if (c->event->meaning != PEM_MEANS_COUNTER || c->event->field_count != 1 || !value ||
	    value->type != PEM_TYPE_UINT64)
		ERROR(c, c->event->line,
		      "an event of source 'perf' is not a plain counter: expected meaning "
		      "'counter' and "
		      "one field, of type 'uint64' and role 'value'");
}

static void check_source(const struct check *c)
{
	const struct pem_spec_event *event = c->event;

	if (event->source_kind == PEM_SOURCE_STUB) {
		if (event->source_name[0] || event->source_arguments)
			ERROR(c, event->line,
			      "source 'stub' has a name or arguments: expected type='stub' alone");
		return;
	}
	if (event->source_kind != PEM_SOURCE_TRACEPOINT && event->source_arguments)
		ERROR(c, event->line,
		      "source '%s' has arguments: expected them only with a tracepoint",
		      pem_word__source(event->source_kind));
	if (event->source_kind == PEM_SOURCE_TRACEPOINT)
		check_tracepoint(c);
	else if (!event->source_name[0])
		ERROR(c, event->line,
		      "source '%s' has no name: expected a libpfm4 event, such as "
		      "'perf::TASK-CLOCK'",
		      pem_word__source(event->source_kind));
	if (event->source_kind == PEM_SOURCE_PERF)
		check_counter(c);
	if (event->source_kind == PEM_SOURCE_SAMPLE && event->meaning != PEM_MEANS_SAMPLE)
		ERROR(c, event->line,
		      "an event of source 'perf-sample' has meaning '%s': expected 'sample'",
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
		ERROR(c, event->line,
		      "event name '%s' differs from its layerId, classId and specifier: expected "
		      "'%s'",
		      event->name, expected);
	free(expected);
	if (event->id < PEM_SPEC_ID_RESERVED)
		ERROR(c, event->line,
		      "the id of event '%s' is %u, and ids below %u are reserved: expected another "
		      "name",
		      event->name, event->id, PEM_SPEC_ID_RESERVED);
}

/* Two events may share neither name nor id nor what C calls them. 1: they do. */
static int check_pair(const struct check *c, const struct pem_spec_event *earlier)
{
	const struct pem_spec_event *event = c->event;

	if (!event->name || !earlier->name)
		return 0;
	if (!strcmp(event->name, earlier->name)) {
		ERROR(c, event->line,
		      "a second event '%s', the first is %s:%d: expected another name", event->name,
		      earlier->spec->path, earlier->line);
		return 1;
	}
	if (event->id == earlier->id) {
		ERROR(c, event->line,
		      "event '%s' has the same id, 0x%08x, as '%s' (%s:%d): expected another name",
		      event->name, event->id, earlier->name, earlier->spec->path, earlier->line);
		return 1;
	}
	if (event->c_name && earlier->c_name && !strcmp(event->c_name, earlier->c_name)) {
		ERROR(c, event->line,
		      "event '%s' is called '%s' in C, like '%s' (%s:%d): expected another class "
		      "or "
		      "specifier",
		      event->name, event->c_name, earlier->name, earlier->spec->path,
		      earlier->line);
		return 1;
	}
	return 0;
}

/* Names and numbers that follow from others. */
static void derive(struct pem_spec *spec, struct pem_spec_event *event)
{
	char *class_name, *specifier, *p;

	event->spec = spec;
	if (event->source_kind == PEM_SOURCE_STUB)
		event->stub_index = spec->stub_count++;
	if (event->name)
		event->id = pem_hash32(event->name);
	if (!event->class_name || !event->specifier)
		return;
	class_name = pem_snake_case(event->class_name);
	specifier = pem_snake_case(event->specifier);
	event->c_name = pem_xprintf("%s_%s", class_name, specifier);
	event->c_upper = pem_xstrdup(event->c_name);
	for (p = event->c_upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	free(class_name);
	free(specifier);
}

static void check_event(const struct check *c)
{
	check_name(c);
	if (c->event->field_count > PEM_SPEC_FIELDS_MAX) {
		ERROR(c, c->event->line, "the event has %zu fields: expected at most %u",
		      c->event->field_count, PEM_SPEC_FIELDS_MAX);
		return;
	}
	check_source(c);
	check_meaning(c);
	check_fields(c);
}

/* Each event against all before it, in its file and in earlier ones; one conflict of each is enough. */
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
				set, spec->path, spec->line,
				"the provider has %u events with stubs: expected at most %u",
				spec->stub_count, PEM_EVENTS_PER_PROVIDER_MAX);
		for (k = 0; k < i; k++) {
			if (!spec->provider || !set->specs[k].provider ||
			    strcmp(spec->provider, set->specs[k].provider))
				continue;
			pem_spec_set__error(
				set, spec->path, spec->line,
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
		for (k = 0; k < set->specs[i].event_count; k++)
			derive(&set->specs[i], &set->specs[i].events[k]);
		for (k = 0; k < set->specs[i].event_count; k++) {
			c.event = &set->specs[i].events[k];
			check_event(&c);
		}
	}
	check_providers(set);
	check_pairs(set);
}
