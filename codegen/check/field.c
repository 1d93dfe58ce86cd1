/* SPDX-License-Identifier: MIT */
/*
 * field.c - checks what pem.xsd can't about fields: attributes that fit the type, roles, labels,
 * names, units
 *
 * If the schema found a part wrong, that part is NULL or none here. It is skipped, because its
 * error is already reported.
 */
#include "check.h"

#include <string.h>
#include <strings.h>

static int is_integer(unsigned type)
{
	return type >= PEM_TYPE_UINT8 && type <= PEM_TYPE_INT64;
}

static int is_number(unsigned type)
{
	return is_integer(type) || pem_type__is_float(type);
}

static int is_unsigned(unsigned type)
{
	return is_integer(type) && !pem_type__is_signed(type);
}

/* What a field with this role must be. NULL: it is correct. */
static const char *expected_of_role(const struct pem_spec_field *field)
{
	switch (field->role) {
	case PEM_ROLE_NONE:
		return NULL;
	case PEM_ROLE_NAME:
		return field->type == PEM_TYPE_STRING ? NULL : "'string'";
	case PEM_ROLE_VALUE:
		return is_number(field->type) ? NULL : "a number type";
	case PEM_ROLE_ADDRESS:
	case PEM_ROLE_CODE:
	case PEM_ROLE_OLD_ADDRESS:
		return field->type == PEM_TYPE_ADDRESS || field->type == PEM_TYPE_UINT64
			       ? NULL
			       : "'address' or 'uint64'";
	case PEM_ROLE_SYSTEM_CALL:
	case PEM_ROLE_DESCRIPTOR:
		return is_integer(field->type) ? NULL : "an integer type";
	case PEM_ROLE_SIZE:
	case PEM_ROLE_CPU:
	case PEM_ROLE_INTERRUPT:
	case PEM_ROLE_FILE_KIND:
		return is_unsigned(field->type) ? NULL : "an unsigned type";
	case PEM_ROLE_STACK:
	case PEM_ROLE_OUTER_STACK:
		return field->type == PEM_TYPE_UINT64 ? NULL : "'uint64'";
	case PEM_ROLE_KEY:
		return is_integer(field->type) || field->type == PEM_TYPE_ADDRESS ||
				       field->type == PEM_TYPE_STRING
			       ? NULL
			       : "an integer, an address or a string";
	default:
		return field->type == PEM_TYPE_UINT32 ? NULL : "'uint32'";
	}
}

static void check_role(const struct check *c, const struct pem_spec_field *field)
{
	const char *expected = expected_of_role(field);

	if (expected)
		ERROR(c, field->at, "a field of role '%s' has type '%s': expected %s",
		      pem_word__role(field->role), pem_word__type(field->type), expected);
}

/*
 * Are brackets paired? The expression then stays one expression when the generator puts it into
 * parentheses.
 */
int pem_is_balanced(const char *text)
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

static int is_word(const char *text)
{
	return *text && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789_") == strlen(text);
}

/* A kernel, USDT or uprobe needs an expression for each field, in each alternative. */
static void check_from(const struct check *c, const struct pem_spec_field *field)
{
	unsigned kind = c->event->source_kind;
	const char *from;
	size_t i;

	for (i = 0; i < c->event->source_count; i++) {
		if (c->event->sources[i].is_damaged)
			return;
	}
	if (kind != PEM_SOURCE_TRACEPOINT && kind != PEM_SOURCE_USDT && kind != PEM_SOURCE_UPROBE) {
		if (field->from)
			ERROR(c, field->at,
			      "from='' in an event of source '%s': expected it only with a "
			      "tracepoint, a usdt probe or a uprobe",
			      pem_word__source(kind));
		return;
	}
	if (field->type == PEM_TYPE_LIST || pem_type__is_float(field->type) ||
	    (field->type == PEM_TYPE_ARRAY && pem_type__is_float(field->element_type))) {
		ERROR(c, field->at,
		      "an event of source '%s' has a field of type '%s': expected an integer, an "
		      "address, a string or an array of these numbers",
		      pem_word__source(kind), pem_word__type(field->type));
		return;
	}
	for (i = 0; i < c->event->source_count; i++) {
		from = pem_spec_event__from(c->event, i, field);
		if (!from)
			ERROR(c, field->at,
			      "field '%s' lacks from='': expected a C expression over the source's "
			      "arguments",
			      field->name ? field->name : "");
		else if (!pem_is_balanced(from))
			ERROR(c, field->at,
			      "from='%s' has brackets that do not pair: expected a C expression",
			      from);
		else if (kind == PEM_SOURCE_UPROBE && !is_word(from))
			ERROR(c, field->at,
			      "from='%s': expected a parameter's name, or arg0 to arg5", from);
		/* the error is the same for all alternatives */
		if (!from || field->from == from)
			break;
	}
}

static void check_attributes(const struct check *c, const struct pem_spec_field *field)
{
	int list = field->type == PEM_TYPE_LIST, array = field->type == PEM_TYPE_ARRAY;
	int string = field->type == PEM_TYPE_STRING;
	const char *type = pem_word__type(field->type);

	if ((list || array) && !field->has_element_type)
		ERROR(c, field->at, "%s lacks eltType='': expected the number type of its elements",
		      list ? "a list" : "an array");
	if (!list && !array && field->has_element_type)
		ERROR(c, field->at,
		      "eltType='' on type '%s': expected it only with type='list' or type='array'",
		      type);
	if (array && !field->has_count)
		ERROR(c, field->at, "an array lacks count='': expected how many elements it has");
	if (!array && field->has_count)
		ERROR(c, field->at, "count='' on type '%s': expected it only with type='array'",
		      type);
	if (!list && !string && field->has_max)
		ERROR(c, field->at,
		      "max='' on type '%s': expected it only with type='list' or type='string'",
		      type);
	if (string && field->max_count < 2)
		ERROR(c, field->at,
		      "max='1' leaves a string no room beside its end: expected 2 or more");
	if (field->has_base && field->base == 16 && !is_integer(field->type) &&
	    field->type != PEM_TYPE_ADDRESS && !is_integer(field->element_type) &&
	    field->element_type != PEM_TYPE_ADDRESS)
		ERROR(c, field->at, "base='16' on type '%s': expected it only with integers", type);
	if (field->of)
		ERROR(c, field->at, "of='%s' on type '%s': expected it only with type='struct'",
		      field->of, type);
	if ((list || string) && strchr(field->name ? field->name : "", '.'))
		ERROR(c, field->at,
		      "structure member '%s' is a %s: expected members of fixed size only",
		      field->name, type);
}

/* Is the name that of a list's length, which the generator adds? Returns the list. */
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
	const char *language;
	size_t i;

	if (!field->name)
		return;
	language = pem_keyword_language(field->c_name, c->event->source_kind == PEM_SOURCE_STUB);
	if (language)
		ERROR(c, field->at, "field name '%s' is a word of %s: expected another name",
		      field->c_name, language);
	if (!strncmp(field->c_name, "pem_", 4))
		ERROR(c, field->at,
		      "field name '%s' is one of pem's own, which start with 'pem_': expected "
		      "another name",
		      field->c_name);
	if (strlen(field->c_name) > PEM_SPEC_FIELD_NAME_MAX)
		ERROR(c, field->at,
		      "field name '%s' has %zu characters, and Fortran allows %u: expected a "
		      "shorter "
		      "name",
		      field->c_name, strlen(field->c_name), PEM_SPEC_FIELD_NAME_MAX);
	other = list_behind(c->event, field->c_name);
	if (other)
		ERROR(c, field->at,
		      "field name '%s' is taken by the length of list '%s': expected another name",
		      field->name, other->name);
	for (i = 0; i < index; i++) {
		other = &c->event->fields[i];
		if (other->name && !strcasecmp(other->c_name, field->c_name)) {
			ERROR(c, field->at,
			      "a second field '%s', the first is '%s' in line %d: expected a name "
			      "that differs by more than capitals",
			      field->name, other->name, other->at.line);
			return;
		}
	}
}

/* Can a number of this type hold the label's value? */
static int fits(const struct pem_spec_label *label, unsigned type)
{
	unsigned bits = pem_type__size(type) * 8;
	int64_t value = (int64_t)label->value;

	/* an error at the label tells this already */
	if (label->is_too_large || label->is_damaged)
		return 1;
	if (label->is_negative)
		return pem_type__is_signed(type) && value >= INT64_MIN >> (64 - bits);
	if (pem_type__is_signed(type))
		return label->value <= (uint64_t)(INT64_MAX >> (64 - bits));
	return label->value <= UINT64_MAX >> (64 - bits);
}

static void check_labels_use(const struct check *c, const struct pem_spec_field *field)
{
	size_t i;

	if (field->has_two_labels)
		ERROR(c, field->at, "a field has both enum='' and flags='': expected one of them");
	if (!field->labels)
		return;
	if (!is_integer(field->type) ||
	    (field->labels->kind == PEM_LABELS_FLAGS && pem_type__is_signed(field->type))) {
		ERROR(c, field->at, "%s='%s' on type '%s': expected an %sinteger type",
		      pem_word__label_kind(field->labels->kind), field->labels->name,
		      pem_word__type(field->type),
		      field->labels->kind == PEM_LABELS_FLAGS ? "unsigned " : "");
		return;
	}
	for (i = 0; i < field->labels->count; i++) {
		if (!fits(&field->labels->labels[i], field->type))
			ERROR(c, field->at,
			      "label '%s' of '%s' does not fit type '%s': expected a wider type",
			      field->labels->labels[i].name ? field->labels->labels[i].name : "",
			      field->labels->name, pem_word__type(field->type));
	}
}

/* A plain decimal number needs a unit, or unit='none'. */
static void check_unit(const struct check *c, const struct pem_spec_field *field)
{
	unsigned type = field->element_type ? field->element_type : field->type;

	if (!field->description[0])
		WARN(c, field->at, "field '%s' has no description: expected what it says",
		     field->name ? field->name : "");
	if (field->has_unit || field->labels_name || field->base == 16 || !is_number(type))
		return;
	switch (field->role) {
	case PEM_ROLE_PROCESS:
	case PEM_ROLE_THREAD:
	case PEM_ROLE_PREVIOUS_THREAD:
	case PEM_ROLE_PARENT:
	case PEM_ROLE_KEY:
	case PEM_ROLE_CPU:
	case PEM_ROLE_INTERRUPT:
	case PEM_ROLE_HOLDER:
		return;
	default:
		WARN(c, field->at,
		     "field '%s' has no unit: expected one, such as 'bytes', or 'none' for a plain "
		     "number",
		     field->name ? field->name : "");
	}
}

void pem_check_fields(const struct check *c)
{
	const struct pem_spec_field *field;
	size_t i, k;

	for (i = 0; i < c->event->field_count; i++) {
		field = &c->event->fields[i];
		check_field_name(c, i);
		if (field->type == PEM_TYPE_NONE || field->is_damaged)
			continue;
		check_attributes(c, field);
		check_role(c, field);
		check_from(c, field);
		check_labels_use(c, field);
		check_unit(c, field);
		for (k = 0; k < i && field->role && field->role != PEM_ROLE_KEY; k++) {
			if (c->event->fields[k].role == field->role)
				ERROR(c, field->at,
				      "a second field of role '%s', the first is in line %d: "
				      "expected one at most",
				      pem_word__role(field->role), c->event->fields[k].at.line);
		}
	}
}
