/* SPDX-License-Identifier: MIT */
/*
 * fortran.c - PROVIDER.f90, Fortran 2008: module pem_PROVIDER over PROVIDER_symbols.c, written
 * beside it
 *
 *	call pem_notify_X(fields)	enable byte, test, branch; an enabled event goes to
 *					pem_raise_X
 *	pem_enabled_X()			is the event wanted?
 *	E_L				the value of label L of <enum> or <flags> E
 *
 * The enable bytes are read as a variable, so that a disabled event makes no call. Fortran has no
 * unsigned integers. They become signed integers of the same width, and a label in the upper half
 * becomes the negative number with its bits. All names that the module itself needs begin with
 * pem_, also those of intrinsic functions, because no field's name does: a field called 'size'
 * would hide the intrinsic function size.
 */
#include "c_text.h"
#include "language.h"

#include <pem/stub.h>

#include <stdlib.h>
#include <string.h>

#define WIDTH 100

/* Kinds, indexed by their letter in use(), in the order of the declarations. */
struct kind {
	const char *name; /* the module's name of it */
	const char *c; /* the name in iso_c_binding */
	const char *word; /* integer or real */
};

enum { INT8, INT16, INT32, INT64, FLOAT, DOUBLE, CHAR, KINDS };

static const struct kind kinds[KINDS] = {
	{"pem_int8", "c_int8_t", "integer"},   {"pem_int16", "c_int16_t", "integer"},
	{"pem_int32", "c_int32_t", "integer"}, {"pem_int64", "c_int64_t", "integer"},
	{"pem_float", "c_float", "real"},      {"pem_double", "c_double", "real"},
	{"pem_char", "c_char", "character"},
};

/* What a module uses. Unused imports or definitions would cause compiler warnings. */
struct uses {
	int kind[KINDS];
	int widen[KINDS]; /* pem_distribution_KIND: converts to 32 bits */
	int count[KINDS]; /* pem_count_KIND: computes the length of a list */
	int string;
};

static unsigned kind_of(unsigned type)
{
	switch (pem_type__size(type)) {
	case 1:
		return INT8;
	case 2:
		return INT16;
	case 4:
		return pem_type__is_float(type) ? FLOAT : INT32;
	default:
		return pem_type__is_float(type) ? DOUBLE : INT64;
	}
}

static void put_type(FILE *f, unsigned type)
{
	const struct kind *kind = &kinds[kind_of(type)];

	fprintf(f, "%s(%s)", kind->word, kind->name);
}

static struct uses find_uses(const struct pem_spec *spec)
{
	const struct pem_spec_field *field;
	struct uses uses = {0};
	size_t i, k;
	unsigned kind;

	for (i = 0; i < spec->labels_count; i++)
		uses.kind[kind_of(pem_labels__type(spec, &spec->labels[i]))] = 1;
	if (spec->stub_count)
		uses.kind[INT8] = uses.kind[INT32] = uses.widen[INT8] = 1;
	for (i = 0; i < spec->event_count; i++) {
		for (k = 0; pem_is_stub(&spec->events[i]) && k < spec->events[i].field_count; k++) {
			field = &spec->events[i].fields[k];
			if (field->type == PEM_TYPE_STRING) {
				uses.string = uses.kind[CHAR] = uses.kind[INT64] = 1;
				continue;
			}
			kind = kind_of(pem_type__size(field->type) ? field->type
								   : field->element_type);
			uses.kind[kind] = 1;
			if (field->type == PEM_TYPE_LIST)
				uses.count[kind] = uses.kind[INT64] = 1;
			else if (field->type != PEM_TYPE_ARRAY && (kind == INT8 || kind == INT16))
				uses.widen[kind] = 1;
		}
	}
	return uses;
}

/* --- labels --- */

/*
 * The bits of value as a number of the kind. Fortran has no literal for the least number, because
 * its positive does not exist.
 */
static char *value_of(unsigned kind, uint64_t value)
{
	unsigned bits = 8u << kind; /* INT8 to INT64 */
	int64_t number = (int64_t)(value << (64 - bits)) >> (64 - bits);

	if (number == INT64_MIN >> (64 - bits))
		return pem_xprintf("ibset(0_%s, %u)", kinds[kind].name, bits - 1);
	return pem_xprintf("%lld_%s", (long long)number, kinds[kind].name);
}

/*
 * Print a declaration with its comment after it, or before it if the line would be too long. Frees
 * both.
 */
static void put_declaration(FILE *f, const char *indent, char *declaration, char *text)
{
	char *prefix = pem_xprintf("%s! ", indent);
	const char *name;

	if (strlen(indent) + strlen(declaration) + strlen(text) + 3 <= WIDTH) {
		fprintf(f, "%s%s%s%s\n", indent, declaration, text[0] ? " ! " : "", text);
	} else {
		pem_put_wrapped(f, prefix, WIDTH, text);
		name = strstr(declaration, ":: ") + 3;
		fprintf(f, "%s%.*s", indent, (int)(name - declaration), declaration);
		if (strlen(indent) + strlen(declaration) > WIDTH)
			fprintf(f, "&\n%s  ", indent);
		fprintf(f, "%s\n", name);
	}
	free(prefix);
	free(declaration);
	free(text);
}

static void put_labels(FILE *f, const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	unsigned kind = kind_of(pem_labels__type(spec, labels));
	char *type = pem_snake_case(labels->name), *name, *value;
	size_t i;

	pem_put_wrapped(f, "  ! ", WIDTH, labels->description);
	for (i = 0; i < labels->count; i++) {
		name = pem_snake_case(labels->labels[i].name);
		value = value_of(kind, labels->labels[i].value);
		put_declaration(f, "  ",
				pem_xprintf("integer(%s), parameter, public :: %s_%s = %s",
					    kinds[kind].name, type, name, value),
				pem_xstrdup(labels->labels[i].description));
		free(value);
		free(name);
	}
	fprintf(f, "\n");
	free(type);
}

/* --- the C side --- */

/* Print a dummy argument of pem_raise_X. */
static void put_raise_dummy(FILE *f, const struct pem_spec_field *field, size_t i)
{
	fprintf(f, "      ");
	switch (field->type) {
	case PEM_TYPE_STRING:
		fprintf(f,
			"character(kind=pem_char), intent(in) :: %1$s(*)\n"
			"      integer(pem_int64), value :: pem_bytes%2$zu\n",
			field->c_name, i);
		break;
	case PEM_TYPE_LIST:
		fprintf(f, "integer(pem_int32), value :: pem_count%zu\n      ", i);
		put_type(f, field->element_type);
		fprintf(f, ", intent(in) :: %s(*)\n", field->c_name);
		break;
	case PEM_TYPE_ARRAY:
		put_type(f, field->element_type);
		fprintf(f, ", intent(in) :: %s(*)\n", field->c_name);
		break;
	default:
		put_type(f, pem_type__size(field->type) < 4 ? PEM_TYPE_INT32 : field->type);
		fprintf(f, ", value :: %s\n", field->c_name);
	}
}

static void put_interface(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "    subroutine pem_raise_%s(pem_enable", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		fprintf(f, ", &\n      ");
		if (field->type == PEM_TYPE_LIST)
			fprintf(f, "pem_count%zu, ", i);
		fprintf(f, "%s", field->c_name);
		if (field->type == PEM_TYPE_STRING)
			fprintf(f, ", pem_bytes%zu", i);
	}
	fprintf(f,
		") &\n      bind(C, name=\"pem_raise_%s\")\n      import\n"
		"      integer(pem_int32), value :: pem_enable\n",
		event->c_name);
	for (i = 0; i < event->field_count; i++)
		put_raise_dummy(f, &event->fields[i], i);
	fprintf(f, "    end subroutine\n");
}

/* --- helpers --- */

static void put_helpers(FILE *f, const struct uses *uses)
{
	unsigned i;

	for (i = 0; i < KINDS; i++) {
		if (uses->widen[i])
			fprintf(f,
				"  pure integer(pem_int32) function "
				"pem_distribution_%1$s(pem_value)\n"
				"    integer(pem_%1$s), intent(in) :: pem_value\n\n"
				"    pem_distribution_%1$s = int(pem_value, pem_int32)\n"
				"  end function\n\n",
				kinds[i].name + 4);
		if (uses->count[i])
			fprintf(f,
				"  pure integer(pem_int32) function pem_count_%1$s(pem_list, "
				"pem_max)\n"
				"    %2$s(pem_%1$s), intent(in) :: pem_list(:)\n"
				"    integer(pem_int64), intent(in) :: pem_max\n\n"
				"    pem_count_%1$s = int(min(size(pem_list, kind=pem_int64), "
				"pem_max), "
				"pem_int32)\n"
				"  end function\n\n",
				kinds[i].name + 4, kinds[i].word);
	}
	if (uses->string)
		fprintf(f,
			"  pure integer(pem_int64) function pem_len(pem_text)\n"
			"    character(len=*), intent(in) :: pem_text\n\n"
			"    pem_len = len(pem_text, pem_int64)\n"
			"  end function\n\n"
			"  pure integer(pem_int32) function pem_padded(pem_enable)\n"
			"    integer(pem_int8), intent(in) :: pem_enable\n\n"
			"    pem_padded = ior(int(pem_enable, pem_int32), %u_pem_int32)\n"
			"  end function\n\n",
			PEM_RAISE_BLANKS);
}

/* --- stubs --- */

static void put_dummy(FILE *f, const struct pem_spec_field *field)
{
	unsigned element = field->type == PEM_TYPE_LIST || field->type == PEM_TYPE_ARRAY
				   ? field->element_type
				   : field->type;
	const struct kind *kind = &kinds[kind_of(element)];
	char *type = pem_xprintf("%s(%s)", kind->word, kind->name), *declaration;

	switch (field->type) {
	case PEM_TYPE_STRING:
		declaration = pem_xprintf("character(len=*), intent(in) :: %s", field->c_name);
		break;
	case PEM_TYPE_LIST:
		declaration =
			pem_xprintf("%s, intent(in), contiguous :: %s(:)", type, field->c_name);
		break;
	case PEM_TYPE_ARRAY:
		declaration = pem_xprintf("%s, intent(in) :: %s(%u)", type, field->c_name,
					  field->max_count);
		break;
	default:
		declaration = pem_xprintf("%s, value :: %s", type, field->c_name);
	}
	put_declaration(f, "    ", declaration, pem_field__text(field));
	free(type);
}

static void put_argument(FILE *f, const struct pem_spec_field *field)
{
	const char *kind;

	switch (field->type) {
	case PEM_TYPE_STRING:
		fprintf(f, "%1$s, &\n      pem_len(%1$s)", field->c_name);
		break;
	case PEM_TYPE_LIST:
		kind = kinds[kind_of(field->element_type)].name + 4;
		fprintf(f, "pem_count_%1$s(%2$s, %3$u_pem_int64), &\n      %2$s", kind,
			field->c_name, field->max_count);
		break;
	default:
		if (pem_type__size(field->type) && pem_type__size(field->type) < 4)
			fprintf(f, "pem_distribution_%s(%s)", kinds[kind_of(field->type)].name + 4,
				field->c_name);
		else
			fprintf(f, "%s", field->c_name);
	}
}

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	char *text = pem_event__text(event);
	size_t i;

	pem_put_wrapped(f, "  ! ", WIDTH, text);
	free(text);
	fprintf(f, "  subroutine pem_notify_%s(", event->c_name);
	for (i = 0; i < event->field_count; i++)
		fprintf(f, "%s&\n    %s", i ? ", " : "", event->fields[i].c_name);
	fprintf(f, ")\n");
	for (i = 0; i < event->field_count; i++)
		put_dummy(f, &event->fields[i]);
	fprintf(f,
		"    integer(pem_int8) :: pem_enable\n\n"
		"    pem_enable = pem_page(%zu)\n"
		"    if (pem_enable /= 0_pem_int8) call pem_raise_%s(&\n"
		"      %s(pem_enable)",
		sizeof(struct pem_control_header) + event->stub_index + 1, event->c_name,
		pem_c_has_type(event, PEM_TYPE_STRING) ? "pem_padded" : "pem_distribution_int8");
	for (i = 0; i < event->field_count; i++) {
		fprintf(f, ", &\n      ");
		put_argument(f, &event->fields[i]);
	}
	fprintf(f,
		")\n  end subroutine\n\n"
		"  ! Does anybody want it? For work that only the event needs.\n"
		"  logical function pem_enabled_%1$s()\n"
		"    pem_enabled_%1$s = pem_page(%2$zu) /= 0_pem_int8\n"
		"  end function\n\n",
		event->c_name, sizeof(struct pem_control_header) + event->stub_index + 1);
}

/* --- module --- */

static void put_banner(FILE *f, const struct pem_spec *spec)
{
	pem_put_line_banner(f, "!", spec);
	pem_put_wrapped(f, "! ", WIDTH, spec->description);
	fprintf(f,
		"!\n"
		"! Link with %1$s_symbols.c, compiled by a C compiler. Unsigned fields are signed "
		"here, of the\n"
		"! same width: give the number with the same bits. Blanks that pad a character "
		"argument are no\n"
		"! part of the text. A list must lie in one piece, or the compiler copies it at "
		"each call. An\n"
		"! address x has is transfer(c_loc(x), 0_c_intptr_t).\n",
		spec->provider);
}

static void put_imports(FILE *f, const struct uses *uses)
{
	const char *before = "  use, intrinsic :: iso_c_binding, only: &\n    ";
	unsigned i;

	for (i = 0; i < KINDS; i++) {
		if (uses->kind[i]) {
			fprintf(f, "%s%s => %s", before, kinds[i].name, kinds[i].c);
			before = ", &\n    ";
		}
	}
	fprintf(f, "\n  implicit none\n  private\n\n");
}

static void put_stubs(FILE *f, const struct pem_spec *spec, const struct uses *uses)
{
	size_t i;

	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			fprintf(f, "  public :: pem_notify_%1$s, &\n    pem_enabled_%1$s\n",
				spec->events[i].c_name);
	}
	fprintf(f,
		"\n  ! The control page: the enable bytes behind its header.\n"
		"  integer(pem_int8), volatile, bind(C, name=\"pem_page_%s\") :: pem_page(%llu)\n\n"
		"  interface\n",
		spec->provider, (unsigned long long)pem_page_bytes(spec));
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			put_interface(f, &spec->events[i]);
	}
	fprintf(f, "  end interface\n\ncontains\n\n");
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			put_notify(f, &spec->events[i]);
	}
	put_helpers(f, uses);
}

static void put_module(FILE *f, const struct pem_spec *spec)
{
	struct uses uses = find_uses(spec);
	size_t i;

	put_banner(f, spec);
	fprintf(f, "module pem_%s\n", spec->provider);
	if (spec->stub_count || spec->labels_count)
		put_imports(f, &uses);
	for (i = 0; i < spec->labels_count; i++)
		put_labels(f, spec, &spec->labels[i]);
	if (spec->stub_count)
		put_stubs(f, spec, &uses);
	fprintf(f, "end module\n");
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	char *name;
	size_t i;

	for (i = 0; i < set->count; i++) {
		name = pem_xprintf("%s.f90", set->specs[i].provider);
		put_module(pem_output__file(out, name), &set->specs[i]);
		free(name);
		pem_emit_symbols(set, &set->specs[i], out, "");
	}
}

const struct pem_backend pem_backend_fortran = {
	.name = "fortran",
	.description =
		"PROVIDER.f90: module pem_PROVIDER for Fortran 2008, with PROVIDER_symbols.c",
	.emit = emit,
};
