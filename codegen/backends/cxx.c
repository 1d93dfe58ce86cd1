/* SPDX-License-Identifier: MIT */
/*
 * cxx.c - PROVIDER.hpp, C++17: typed functions over PROVIDER.h, which is written beside it
 *
 *	pem::notify_X(fields)		pem_notify_X with string_view, std::array, lists and enum
 *					classes
 *	pem::enabled_X()		is the event wanted?
 *	pem::PROVIDER::E		the enum class of <enum> or <flags> E
 *	pem::X_scope guard(fields)	begin now, end when guard goes out of scope
 *
 * A string_view has no NUL, so texts are copied. pem::detail::on_X does that out of line, so that
 * only enabled events pay for it. Namespaces and types are named from the root, because a provider
 * may be called std.
 */
#include "c_text.h"
#include "language.h"

#include <stdlib.h>

#define WIDTH 100

/* A suffix for a name that has a meaning in C++ or is a macro. Fields have no such names. */
static const char *mark(const char *name)
{
	return pem_keyword_language(name, 0) ? "_" : "";
}

/* Print a type, with "::std::" before fixed-width integers but not before float and double. */
static void put_type(FILE *f, unsigned type)
{
	fprintf(f, "%s%s", pem_type__is_float(type) ? "" : "::std::", pem_type__c(type));
}

/* --- labels --- */

static void put_label(FILE *f, const struct pem_spec_label *label, int is_flags)
{
	char *name = pem_snake_case(label->name);

	pem_put_wrapped(f, "\t/// ", WIDTH, label->description);
	fprintf(f, "\t%s%s = ", name, mark(name));
	if (label->is_negative && label->value == 1ull << 63)
		fprintf(f, "-0x7fffffffffffffffLL - 1");
	else if (label->is_negative)
		fprintf(f, "%lld", (long long)label->value);
	else
		fprintf(f, is_flags ? "0x%llxu" : "%lluu", (unsigned long long)label->value);
	fprintf(f, ",\n");
	free(name);
}

static void put_operator(FILE *f, const char *type, const char *sign, unsigned base)
{
	fprintf(f, "constexpr %1$s operator%2$s(%1$s pem_a, %1$s pem_b) noexcept\n{\n\treturn ",
		type, sign);
	fprintf(f, "static_cast<%s>(static_cast<", type);
	put_type(f, base);
	fprintf(f, ">(pem_a) %s static_cast<", sign);
	put_type(f, base);
	fprintf(f, ">(pem_b));\n}\n");
}

static void put_labels(FILE *f, const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	char *type = pem_xprintf("%s%s", labels->name, mark(labels->name));
	unsigned base = pem_labels__type(spec, labels);
	int is_flags = labels->kind == PEM_LABELS_FLAGS;
	size_t i;

	pem_put_wrapped(f, "/// ", WIDTH, labels->description);
	fprintf(f, "enum class %s : ", type);
	put_type(f, base);
	fprintf(f, " {\n");
	for (i = 0; i < labels->count; i++)
		put_label(f, &labels->labels[i], is_flags);
	fprintf(f, "};\n");
	if (is_flags) {
		put_operator(f, type, "|", base);
		put_operator(f, type, "&", base);
		put_operator(f, type, "^", base);
		fprintf(f,
			"constexpr %1$s operator~(%1$s pem_a) noexcept\n{\n\treturn "
			"static_cast<%1$s>(~static_cast<",
			type);
		put_type(f, base);
		fprintf(f, ">(pem_a));\n}\n");
		fprintf(f,
			"constexpr %1$s &operator|=(%1$s &pem_a, %1$s pem_b) noexcept\n{\n\treturn "
			"pem_a = pem_a | pem_b;\n}\n"
			"constexpr %1$s &operator&=(%1$s &pem_a, %1$s pem_b) noexcept\n{\n\treturn "
			"pem_a = pem_a & pem_b;\n}\n",
			type);
	}
	fprintf(f, "\n");
	free(type);
}

/* --- fields --- */

/* by_value: print the type in which a guard keeps the field. */
static void put_field_type(FILE *f, const struct pem_spec_event *event,
			   const struct pem_spec_field *field, int by_value)
{
	switch (field->type) {
	case PEM_TYPE_STRING:
		if (by_value)
			fprintf(f, "::pem::detail::text<%u> ", field->max_count);
		else
			fprintf(f, "::std::string_view ");
		break;
	case PEM_TYPE_LIST:
		fprintf(f, "::pem::detail::list<");
		put_type(f, field->element_type);
		fprintf(f, "> ");
		break;
	case PEM_TYPE_ARRAY:
		fprintf(f, "%s::std::array<", by_value ? "" : "const ");
		put_type(f, field->element_type);
		fprintf(f, ", %u> %s", field->max_count, by_value ? "" : "&");
		break;
	default:
		if (field->labels) {
			fprintf(f, "::pem::%s%s::%s%s", event->spec->provider,
				mark(event->spec->provider), field->labels->name,
				mark(field->labels->name));
		} else {
			put_type(f, field->type);
		}
		fprintf(f, " ");
	}
}

static void put_parameters(FILE *f, const struct pem_spec_event *event, const char *before)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		fprintf(f, "%s", i ? ", " : before);
		put_field_type(f, event, &event->fields[i], 0);
		fprintf(f, "%s", event->fields[i].c_name);
	}
}

/*
 * Print a field as the C function takes it. prefix: printed before the variable's name. is_text: a
 * string is in a detail::text.
 */
static void put_c_argument(FILE *f, const struct pem_spec_field *field, const char *prefix,
			   int is_text)
{
	switch (field->type) {
	case PEM_TYPE_STRING:
		if (is_text)
			fprintf(f, "%s%s.bytes", prefix, field->c_name);
		else
			fprintf(f, "::pem::detail::text<%u>(%s).bytes", field->max_count,
				field->c_name);
		break;
	case PEM_TYPE_LIST:
		fprintf(f, "%1$s.count(), %1$s.data()", field->c_name);
		break;
	case PEM_TYPE_ARRAY:
		fprintf(f, "%s%s.data()", prefix, field->c_name);
		break;
	default:
		if (field->labels) {
			fprintf(f, "static_cast<");
			put_type(f, field->type);
			fprintf(f, ">(%s%s)", prefix, field->c_name);
		} else {
			fprintf(f, "%s%s", prefix, field->c_name);
		}
	}
}

/* --- events --- */

/*
 * Print code that raises the event if it is enabled. kept: its fields are a guard's members, else
 * parameters.
 */
static void put_raise(FILE *f, const struct pem_spec_event *event, const char *tabs, int kept)
{
	int copies = pem_c_has_type(event, PEM_TYPE_STRING) && !kept;
	size_t i;

	fprintf(f,
		"%1$sif (__builtin_expect(::pem_is_enabled(&::pem_page_%2$s.enable[%3$u]), 0))\n"
		"%1$s\t%4$s_%5$s(",
		tabs, event->spec->provider, event->stub_index,
		copies ? "::pem::detail::on" : "::pem_on", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		fprintf(f, "%s", i ? ", " : "");
		if (copies)
			fprintf(f, "%s", event->fields[i].c_name);
		else
			put_c_argument(f, &event->fields[i], kept ? "pem_" : "", kept);
	}
	fprintf(f, ");\n");
}

static void put_on(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	fprintf(f, "namespace detail {\n[[gnu::noinline]] inline void on_%s(", event->c_name);
	put_parameters(f, event, "");
	fprintf(f, ") noexcept\n{\n\t::pem_on_%s(", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		fprintf(f, "%s", i ? ", " : "");
		put_c_argument(f, &event->fields[i], "", 0);
	}
	fprintf(f, ");\n}\n} // namespace detail\n\n");
}

static void put_event_comment(FILE *f, const struct pem_spec_event *event)
{
	char *text = pem_event__text(event), *more;
	size_t i;

	pem_put_wrapped(f, "/// ", WIDTH, text);
	free(text);
	for (i = 0; i < event->field_count; i++) {
		more = pem_field__text(&event->fields[i]);
		text = pem_xprintf("@param %s %s", event->fields[i].c_name, more);
		pem_put_wrapped(f, "/// ", WIDTH, text);
		free(text);
		free(more);
	}
}

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	if (pem_c_has_type(event, PEM_TYPE_STRING))
		put_on(f, event);
	put_event_comment(f, event);
	if (event->deprecated[0]) {
		fprintf(f, "[[deprecated(\"");
		pem_put_c_escaped(f, event->deprecated);
		fprintf(f, "\")]] ");
	}
	fprintf(f, "inline void notify_%s(", event->c_name);
	put_parameters(f, event, "");
	fprintf(f, ") noexcept\n{\n");
	put_raise(f, event, "\t", 0);
	fprintf(f,
		"}\n\n/// Does anybody want %1$s? For work that only the event needs.\n"
		"inline bool enabled_%2$s() noexcept\n{\n"
		"\treturn ::pem_is_enabled(&::pem_page_%3$s.enable[%4$u]) != 0;\n"
		"}\n\n",
		event->name, event->c_name, event->spec->provider, event->stub_index);
}

/* --- intervals --- */

static void put_members(FILE *f, const struct pem_spec_event *end)
{
	size_t i;

	if (end->field_count)
		fprintf(f, "\nprivate:\n");
	for (i = 0; i < end->field_count; i++) {
		fprintf(f, "\tconst ");
		put_field_type(f, end, &end->fields[i], 1);
		fprintf(f, "pem_%s;\n", end->fields[i].c_name);
	}
}

static void put_guard(FILE *f, const struct pem_spec_event *begin, const struct pem_spec_event *end)
{
	char *name = pem_interval__name(begin);
	size_t i;

	fprintf(f,
		"/// %s now, and %s when it goes out of scope, by return or exception.\n"
		"/// Neither copied nor moved: an interval ends in the thread and scope it began "
		"in.\n"
		"class [[nodiscard]] %s_scope {\npublic:\n\texplicit %s_scope(",
		begin->name, end->name, name, name);
	put_parameters(f, begin, "");
	fprintf(f, ") noexcept\n");
	for (i = 0; i < end->field_count; i++)
		fprintf(f, "\t\t%s pem_%s(%s)%s", i ? " " : ":", end->fields[i].c_name,
			end->fields[i].c_name, i + 1 < end->field_count ? ",\n" : "\n");
	fprintf(f, "\t{\n");
	put_raise(f, begin, "\t\t", 0);
	fprintf(f, "\t}\n\t~%s_scope()\n\t{\n", name);
	put_raise(f, end, "\t\t", 1);
	fprintf(f,
		"\t}\n\t%1$s_scope(const %1$s_scope &) = delete;\n"
		"\t%1$s_scope &operator=(const %1$s_scope &) = delete;\n",
		name);
	put_members(f, end);
	fprintf(f, "};\n\n");
	free(name);
}

static void put_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec)
{
	const struct pem_spec_event *end;
	char *guard = pem_upper_snake(spec->provider);
	size_t i;

	pem_banner(f, set, spec);
	fprintf(f,
		"#ifndef PEM_STUBS_%1$s_HPP\n#define PEM_STUBS_%1$s_HPP\n\n#include \"%2$s.h\"\n\n"
		"#include <pem/stub.hpp>\n\n#include <array>\n#include <cstdint>\n"
		"#include <string_view>\n\nnamespace pem {\n\n",
		guard, spec->provider);
	if (spec->labels_count)
		fprintf(f, "namespace %s%s {\n\n", spec->provider, mark(spec->provider));
	for (i = 0; i < spec->labels_count; i++)
		put_labels(f, spec, &spec->labels[i]);
	if (spec->labels_count)
		fprintf(f, "} // namespace %s%s\n\n", spec->provider, mark(spec->provider));
	for (i = 0; i < spec->event_count; i++) {
		if (pem_is_stub(&spec->events[i]))
			put_notify(f, &spec->events[i]);
	}
	for (i = 0; i < spec->event_count; i++) {
		end = pem_interval__end(&spec->events[i]);
		if (end && pem_interval__is_covered(&spec->events[i], end))
			put_guard(f, &spec->events[i], end);
	}
	fprintf(f, "} // namespace pem\n\n#endif\n");
	free(guard);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	char *name;
	size_t i;

	for (i = 0; i < set->count; i++) {
		name = pem_xprintf("%s.h", set->specs[i].provider);
		pem_put_c_header(pem_output__file(out, name), set, &set->specs[i]);
		free(name);
		name = pem_xprintf("%s.hpp", set->specs[i].provider);
		put_header(pem_output__file(out, name), set, &set->specs[i]);
		free(name);
	}
}

const struct pem_backend pem_backend_cxx = {
	.name = "c++",
	.description = "PROVIDER.hpp: typed stubs and interval guards for C++17, over PROVIDER.h",
	.emit = emit,
};
