/* SPDX-License-Identifier: MIT */
/*
 * c.c - C and C++ stubs: DIR/<provider>.h
 *
 * For each event the header has a record struct and an id. For each event of source 'stub' it also
 * has pem_notify_X. spec/abi/pem/stub.h holds what the stub does at run time. Here is only the text
 * around it. Names that the header itself needs start with pem_, because no field's name may.
 *
 *	pem_notify_X        enable byte, test, branch
 *	pem_on_X            the fast paths: tests a predicate; logs into this thread's chunk, or
 *			    updates a statistic
 *	pem_slow_X          makes the record on the stack, and passes it to libpem
 *	pem_put_X           stores the fields of one record, for both paths
 *
 * X is "class_specifier". The part of the name that distinguishes these functions is before it. If
 * it were after it, the slow path of Query and the stub of an event QuerySlow would have one name.
 */
#include "c_text.h"

#include <pem/stub.h>

#include <stdlib.h>

#define HEAD                                                                                       \
	"#include <pem/abi.h>\n#include <pem/stub.h>\n\n"                                          \
	"#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"

static const char head[] = HEAD;
static const char head_of_stubs[] = HEAD "#include <dlfcn.h>\n";

/* Helpers. They are equal in each generated header, so they have a guard of their own. */
static const char text_helper[] =
	"#ifndef PEM_STUB_TEXT\n"
	"#define PEM_STUB_TEXT\n"
	"/* Bytes to copy of a string, its NUL not counted: at most max, and no part of a UTF-8 "
	"character. The empty asm\n"
	"   keeps compilers from warning that a literal is shorter than max: memchr stops at its "
	"NUL. */\n"
	"static inline uint32_t pem_text_length(const char *pem_text, uint32_t pem_max)\n"
	"{\n"
	"\tconst char *pem_end;\n"
	"\tuint32_t pem_length = pem_max;\n"
	"\n"
	"\t__asm__(\"\" : \"+r\"(pem_text));\n"
	"\tpem_end = (const char *)memchr(pem_text, 0, pem_max);\n"
	"\tif (pem_end)\n"
	"\t\treturn (uint32_t)(pem_end - pem_text);\n"
	"\twhile (pem_length && pem_max - pem_length < 3 && ((uint8_t)pem_text[pem_length] & 0xc0) "
	"== 0x80)\n"
	"\t\tpem_length--;\n"
	"\treturn pem_length;\n"
	"}\n"
	"#endif\n\n";

static const char constructor[] =
	"#ifndef PEM_REGISTERS_ITSELF\n"
	"/* Registers once per program or library, however many files include this. Without "
	"libpem: does nothing. */\n"
	"__attribute__((weak, visibility(\"hidden\"), constructor)) void "
	"pem_attach_%1$s(void);\n"
	"void pem_attach_%1$s(void)\n"
	"{\n"
	"\tint (*pem_register)(struct pem_provider *) = 0;\n"
	"\tvoid *pem_symbol;\n"
	"\n"
	"\tif (pem_provider_%1$s.registered)\n"
	"\t\treturn;\n"
	"\tpem_symbol = dlsym((void *)0, \"pem_provider_register\"); /* 0: RTLD_DEFAULT, hidden by "
	"strict C */\n"
	"\tif (!pem_symbol)\n"
	"\t\treturn;\n"
	"\tmemcpy(&pem_register, &pem_symbol, sizeof(pem_register));\n"
	"\tpem_register(&pem_provider_%1$s);\n"
	"}\n\n"
	"__attribute__((weak, visibility(\"hidden\"), destructor)) void pem_detach_%1$s(void);\n"
	"void pem_detach_%1$s(void)\n"
	"{\n"
	"\tvoid (*pem_unregister)(struct pem_provider *) = 0;\n"
	"\tvoid *pem_symbol;\n"
	"\n"
	"\tif (!pem_provider_%1$s.registered)\n"
	"\t\treturn;\n"
	"\tpem_symbol = dlsym((void *)0, \"pem_provider_unregister\");\n"
	"\tif (!pem_symbol)\n"
	"\t\treturn;\n"
	"\tmemcpy(&pem_unregister, &pem_symbol, sizeof(pem_unregister));\n"
	"\tpem_unregister(&pem_provider_%1$s);\n"
	"}\n"
	"#endif\n\n";

static void put_record_struct(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	fprintf(f, "/* %s: ", event->name);
	pem_c_put_comment(f, event->description);
	fprintf(f, " */\n");
	fprintf(f, "#define PEM_EVENT_%s_ID 0x%08xu\n", event->c_upper, event->id);
	fprintf(f, "struct pem_%s_record {\n\tstruct pem_record_header header;\n", event->c_name);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->padding)
			fprintf(f, "\tuint8_t pem_padding%zu[%u];\n", i, field->padding);
		if (field->type == PEM_TYPE_LIST)
			fprintf(f, "\tuint32_t %s_count;", field->c_name);
		else if (field->type == PEM_TYPE_ARRAY)
			fprintf(f, "\t%s %s[%u];", pem_type__c(field->element_type), field->c_name,
				field->max_count);
		else if (field->type != PEM_TYPE_STRING)
			fprintf(f, "\t%s %s;", pem_type__c(field->type), field->c_name);
		else
			fprintf(f, "\t/* then the string %s */", field->c_name);
		if (field->type != PEM_TYPE_STRING)
			pem_c_put_field_comment(f, field);
		fprintf(f, "\n");
	}
	fprintf(f, "};\n");
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type != PEM_TYPE_STRING)
			fprintf(f,
				"PEM_STATIC_ASSERT(offsetof(struct pem_%s_record, %s%s) == %u, "
				"\"%s\");\n",
				event->c_name, field->c_name,
				field->type == PEM_TYPE_LIST ? "_count" : "", field->offset,
				field->c_name);
	}
	fprintf(f, "\n");
}

/*
 * Print the fields as parameters, or as arguments if typed is 0. lengths: also the lengths that
 * put_measure computed.
 */
static void put_list(FILE *f, const struct pem_spec_event *event, int typed, int lengths,
		     const char *before)
{
	size_t i;

	if (typed)
		pem_c_put_parameters(f, event, before);
	else
		pem_c_put_arguments(f, event, before);
	for (i = 0; i < event->field_count && lengths; i++) {
		if (event->fields[i].type == PEM_TYPE_STRING)
			fprintf(f, ", %spem_length%zu", typed ? "uint32_t " : "", i);
	}
}

/* Print code that cuts strings and lists to their limits and computes pem_bytes. */
static void put_measure(FILE *f, const struct pem_spec_event *event, const char *tabs)
{
	const struct pem_spec_field *field;
	uint32_t size;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING) {
			fprintf(f, "%sif (!%s)\n%s\t%s = \"\";\n", tabs, field->c_name, tabs,
				field->c_name);
			fprintf(f, "%spem_length%zu = pem_text_length(%s, %uu);\n", tabs, i,
				field->c_name, field->max_count - 1);
			fprintf(f, "%spem_bytes += pem_length%zu + 1;\n", tabs, i);
		} else if (field->type == PEM_TYPE_LIST) {
			size = pem_type__size(field->element_type);
			fprintf(f, "%sif (!%s)\n%s\t%s_count = 0;\n", tabs, field->c_name, tabs,
				field->c_name);
			fprintf(f, "%sif (%s_count > %uu)\n%s\t%s_count = %uu;\n", tabs,
				field->c_name, field->max_count, tabs, field->c_name,
				field->max_count);
			fprintf(f, "%spem_bytes = ((pem_bytes + %uu) & ~%uu) + %s_count * %uu;\n",
				tabs, size - 1, size - 1, field->c_name, size);
		}
	}
}

static void declare_lengths(FILE *f, const struct pem_spec_event *event, const char *tabs)
{
	size_t i;

	if (!event->has_tail)
		return;
	fprintf(f, "%suint32_t pem_bytes = %uu", tabs, event->fixed_bytes);
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].type == PEM_TYPE_STRING)
			fprintf(f, ", pem_length%zu", i);
	}
	fprintf(f, ";\n");
}

static void put_tail_stores(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	uint32_t size, known_align = event->fixed_bytes % 8 ? event->fixed_bytes % 4 ? 1 : 4 : 8;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (field->type == PEM_TYPE_STRING) {
			fprintf(f, "\tmemcpy(pem_at, %s, pem_length%zu);\n", field->c_name, i);
			fprintf(f, "\tpem_at[pem_length%zu] = 0;\n", i);
			fprintf(f, "\tpem_at += pem_length%zu + 1;\n", i);
			known_align = 1;
		} else if (field->type == PEM_TYPE_LIST) {
			size = pem_type__size(field->element_type);
			if (size > known_align)
				fprintf(f,
					"\twhile ((uintptr_t)pem_at & %uu)\n\t\t*pem_at++ = 0;\n",
					size - 1);
			fprintf(f, "\tif (%s_count)\n", field->c_name);
			fprintf(f, "\t\tmemcpy(pem_at, %s, %s_count * %uu);\n", field->c_name,
				field->c_name, size);
			fprintf(f, "\tpem_at += %s_count * %uu;\n", field->c_name, size);
			known_align = size;
		}
	}
	fprintf(f, "\t(void)pem_at;\n");
}

/* Does the record have anything before its tail? */
static int has_fixed(const struct pem_spec_event *event)
{
	return event->fixed_bytes > sizeof(struct pem_record_header);
}

static void put_store(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	const char *count;
	size_t i;

	fprintf(f, "static inline void pem_put_%s(uint8_t *pem_record", event->c_name);
	put_list(f, event, 1, 1, ", ");
	fprintf(f, ")\n{\n");
	if (has_fixed(event))
		fprintf(f,
			"\tstruct pem_%1$s_record *pem_to = (struct pem_%1$s_record *)(void "
			"*)pem_record;\n",
			event->c_name);
	if (event->has_tail)
		fprintf(f, "\tuint8_t *pem_at = pem_record + %u;\n", event->fixed_bytes);
	fprintf(f, "%s", event->field_count ? "\n" : "\t(void)pem_record;\n");
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		count = field->type == PEM_TYPE_LIST ? "_count" : "";
		if (field->padding)
			fprintf(f, "\tmemset(pem_to->pem_padding%zu, 0, %u);\n", i, field->padding);
		if (field->type == PEM_TYPE_ARRAY)
			fprintf(f,
				"\tif (%1$s)\n\t\tmemcpy(pem_to->%1$s, %1$s, %2$u);\n"
				"\telse\n\t\tmemset(pem_to->%1$s, 0, %2$u);\n",
				field->c_name,
				field->max_count * pem_type__size(field->element_type));
		else if (field->type != PEM_TYPE_STRING)
			fprintf(f, "\tpem_to->%s%s = %s%s;\n", field->c_name, count, field->c_name,
				count);
	}
	if (event->has_tail)
		put_tail_stores(f, event);
	fprintf(f, "}\n\n");
}

static void put_slow(FILE *f, const struct pem_spec_event *event)
{
	const char *provider = event->spec->provider;

	fprintf(f, "static __attribute__((noinline, unused)) void pem_slow_%s(", event->c_name);
	put_list(f, event, 1, 0, "");
	fprintf(f,
		")\n{\n\tunion {\n\t\tuint64_t pem_words[%u];\n\t\tstruct pem_%s_record "
		"pem_record;\n"
		"\t} pem_u;\n",
		event->max_bytes / 8, event->c_name);
	declare_lengths(f, event, "\t");
	fprintf(f, "\n\tif (!pem_provider_%s.notify)\n\t\treturn;\n", provider);
	put_measure(f, event, "\t");
	fprintf(f, "\tpem_u.pem_record.header.clock_low = 0;\n");
	fprintf(f, "\tpem_u.pem_record.header.event_id = PEM_EVENT_%s_ID;\n", event->c_upper);
	fprintf(f, "\tpem_put_%s((uint8_t *)&pem_u", event->c_name);
	put_list(f, event, 0, 1, ", ");
	fprintf(f, ");\n\tpem_provider_%1$s.notify(&pem_provider_%1$s, %2$u, &pem_u, ", provider,
		event->stub_index);
	if (event->has_tail)
		fprintf(f, "pem_bytes);\n}\n\n");
	else
		fprintf(f, "%uu);\n}\n\n", event->fixed_bytes);
}

static void put_slow_call(FILE *f, const struct pem_spec_event *event, const char *tabs)
{
	fprintf(f, "%spem_slow_%s(", tabs, event->c_name);
	put_list(f, event, 0, 0, "");
	fprintf(f, ");\n");
}

static void put_log_path(FILE *f, const struct pem_spec_event *event)
{
	char bytes[24] = "pem_bytes";

	if (!event->has_tail)
		snprintf(bytes, sizeof(bytes), "%uu", event->fixed_bytes);
	fprintf(f,
		"\tif (__builtin_expect(PEM_ACTION_FLAGS(pem_choice) == PEM_ACTION_LOG, 1)) {\n");
	declare_lengths(f, event, "\t\t");
	if (event->has_tail)
		fprintf(f, "\n");
	put_measure(f, event, "\t\t");
	fprintf(f, "\t\tif (__builtin_expect(pem_log_begin(&pem_c, %s), 1)) {\n", bytes);
	fprintf(f, "\t\t\tpem_put_%s(pem_c.record", event->c_name);
	put_list(f, event, 0, 1, ", ");
	fprintf(f,
		");\n\t\t\tpem_log_commit(&pem_c, PEM_EVENT_%s_ID, %s);\n\t\t\treturn;\n\t\t}\n"
		"\t\tgoto pem_slow;\n\t}\n",
		event->c_upper, bytes);
}

static int is_integer(const struct pem_spec_field *field)
{
	return pem_type__size(field->type) && !pem_type__is_float(field->type);
}

/*
 * Print the path of a statistic: of one integer field, or of none, which only counts. The first
 * field is compared first.
 */
static void put_stat_path(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	size_t i;

	for (i = 0; i < event->field_count && !is_integer(&event->fields[i]); i++)
		;
	fprintf(f, "\tswitch (__builtin_expect(pem_choice, PEM_ACTION_STAT | %zuu << 8)) {\n",
		i < event->field_count ? i : PEM_NO_FIELD);
	for (i = 0; i < event->field_count; i++) {
		field = &event->fields[i];
		if (!is_integer(field))
			continue;
		fprintf(f, "\tcase PEM_ACTION_STAT | %zuu << 8: /* %s */\n", i, field->c_name);
		if (pem_type__is_signed(field->type))
			fprintf(f,
				"\t\tpem_value = (uint64_t)(int64_t)%s;\n"
				"\t\tpem_key = pem_stat_key_signed(%s);\n",
				field->c_name, field->c_name);
		else
			fprintf(f, "\t\tpem_value = pem_key = %s;\n", field->c_name);
		fprintf(f, "\t\tbreak;\n");
	}
	fprintf(f, "\tcase PEM_ACTION_STAT | PEM_NO_FIELD << 8:\n\t\tbreak;\n"
		   "\tdefault:\n\t\tgoto pem_slow;\n\t}\n"
		   "\tif (__builtin_expect(pem_stat_add(&pem_c, pem_value, pem_key), 1))\n"
		   "\t\treturn;\n");
}

/*
 * Print a switch that sets the highest bits of pem_word to a test's field. If the test has no
 * field, its bits do not matter, and pem_word becomes that of the last field.
 */
static void put_word(FILE *f, const struct pem_spec_event *event)
{
	const struct pem_spec_field *field;
	uint32_t size;
	size_t i, last;

	for (last = event->field_count; last && !pem_type__size(event->fields[last - 1].type);)
		last--;
	fprintf(f, "\t\tpem_word = 0;\n");
	if (!last)
		return;
	fprintf(f, "\t\tswitch (pem_test->end) {\n");
	for (i = 0; i < last; i++) {
		field = &event->fields[i];
		size = pem_type__size(field->type);
		if (!size)
			continue;
		if (i + 1 == last)
			fprintf(f, "\t\tdefault:\n\t\t\tpem_word = ");
		else
			fprintf(f, "\t\tcase %u:\n\t\t\tpem_word = ", field->offset + size);
		if (pem_type__is_float(field->type))
			fprintf(f, "pem_word_float%u(%s)", 8 * size, field->c_name);
		else
			fprintf(f, "(uint64_t)%s", field->c_name);
		if (size < 8 && !pem_type__is_float(field->type))
			fprintf(f, " << %u", 64 - 8 * size);
		fprintf(f, ";\n\t\t\tbreak;\n");
	}
	fprintf(f, "\t\t}\n");
}

static int has_floats(const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (pem_type__is_float(event->fields[i].type))
			return 1;
	}
	return 0;
}

/* Print the tests of a filter. The code does not jump as long as each test holds. */
static void put_passes(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	fprintf(f, "PEM_INLINE int pem_passes_%s(const struct pem_filter *pem_filter",
		event->c_name);
	put_list(f, event, 1, 0, ", ");
	fprintf(f, ")\n{\n\tconst struct pem_test *pem_test = pem_filter_tests(pem_filter);\n"
		   "\tuint64_t pem_word;\n\tuint32_t pem_at;\n\n");
	for (i = 0; i < event->field_count; i++) {
		if (!pem_type__size(event->fields[i].type)) /* a predicate can't test this field */
			fprintf(f, "\t(void)%s;\n", event->fields[i].c_name);
		if (event->fields[i].type == PEM_TYPE_LIST)
			fprintf(f, "\t(void)%s_count;\n", event->fields[i].c_name);
	}
	fprintf(f, "\tfor (;;) {\n");
	put_word(f, event);
	fprintf(f,
		"\t\tif (__builtin_expect(pem_test_holds%s(pem_test, pem_word), 1)) {\n"
		"\t\t\tpem_test++;\n"
		"\t\t\tif (__builtin_expect(pem_test[-1].is_followed, 1))\n"
		"\t\t\t\tcontinue;\n"
		"\t\t\tpem_at = pem_test[-1].on_true;\n"
		"\t\t} else {\n\t\t\tpem_at = pem_test->on_false;\n\t\t}\n"
		"\t\tif (pem_at >= PEM_TESTS_MAX)\n"
		"\t\t\treturn pem_at == PEM_TEST_PASS;\n"
		"\t\tpem_test = &pem_filter_tests(pem_filter)[pem_at];\n\t}\n}\n\n",
		has_floats(event) ? "" : "_integer");
}

static void put_on(FILE *f, const struct pem_spec_event *event)
{
	const char *provider = event->spec->provider;
	unsigned index = event->stub_index;

	fprintf(f,
		"static __attribute__((noinline, nothrow, unused)) void pem_on_%s("
		"uint32_t pem_enable",
		event->c_name);
	put_list(f, event, 1, 0, ", ");
	fprintf(f, ")\n{\n\tconst struct pem_filter *pem_filter;\n"
		   "\tuint64_t pem_value = 0, pem_key = 0;\n"
		   "\tstruct pem_cursor pem_c;\n\tuint32_t pem_choice;\n\n");
	fprintf(f,
		"\tpem_choice = pem_event_begin(&pem_c, &pem_provider_%1$s, pem_enable,\n"
		"\t\t\t\t     pem_page_%1$s.action[%2$u], %2$uu);\n"
		"\tif (__builtin_expect(pem_choice & PEM_ACTION_FILTER, 0)) {\n"
		"\t\tpem_filter = pem_filter_begin(&pem_c, pem_filters_%1$s[%2$u]);\n"
		"\t\tif (!pem_filter_fits(&pem_c, pem_page_%1$s.action[%2$u], pem_filter)) {\n"
		"\t\t\tif (pem_filter_rejects(&pem_c, pem_page_%1$s.action[%2$u],\n\t\t\t\t\t      "
		" pem_filter))\n\t\t\t\treturn;\n"
		"\t\t\tgoto pem_slow;\n\t\t}\n"
		"\t\tif (!__builtin_expect(pem_passes_%3$s(pem_filter",
		provider, index, event->c_name);
	put_list(f, event, 0, 0, ", ");
	fprintf(f, "), 1))\n\t\t\treturn;\n\t\tpem_choice &= ~PEM_ACTION_FILTER;\n\t}\n");
	put_log_path(f, event);
	put_stat_path(f, event);
	fprintf(f, "pem_slow:\n");
	put_slow_call(f, event, "\t");
	fprintf(f, "}\n\n");
}

static void put_notify(FILE *f, const struct pem_spec_event *event)
{
	const char *provider = event->spec->provider;
	unsigned index = event->stub_index;
	char *enabled;

	put_store(f, event);
	put_slow(f, event);
	put_passes(f, event);
	put_on(f, event);
	enabled = pem_xprintf("__atomic_load_n(&pem_page_%s.enable[%u], __ATOMIC_RELAXED)",
			      provider, index);
	pem_c_put_enabled(f, event, enabled);
	pem_c_begin_notify(f, event);
	fprintf(f,
		"\tuint32_t pem_enable = %s;\n\n\tif (__builtin_expect(pem_enable != 0, 0))\n"
		"\t\tpem_on_%s(pem_enable",
		enabled, event->c_name);
	free(enabled);
	put_list(f, event, 0, 0, ", ");
	fprintf(f, ");\n}\n\n");
}

static void put_page(FILE *f, const struct pem_spec *spec)
{
	unsigned capacity = PEM_EVENT_CAPACITY(spec->stub_count);

	fprintf(f,
		"/* The control page: libpem maps the shared one over it, so that a stub follows "
		"no pointer. */\n"
		"struct pem_page_%s {\n\tstruct pem_control_header header;\n\tuint8_t enable[%u];\n"
		"\tuint64_t action[%u][PEM_SESSIONS_MAX];\n"
		"} __attribute__((aligned(PEM_PAGE_ALIGN)));\n\n",
		spec->provider, capacity, capacity);
	fprintf(f,
		"extern __attribute__((PEM_PAGE_LINKAGE visibility(\"hidden\"))) struct "
		"pem_page_%1$s "
		"pem_page_%1$s;\n"
		"struct pem_page_%1$s pem_page_%1$s = {\n"
		"\t{ PEM_ABI_VERSION, %2$u, %3$u, 0, \"%1$s\", { 0 } }, { 0 }, { { 0 } }\n};\n\n",
		spec->provider, spec->stub_count, capacity);
}

static void put_provider(FILE *f, const struct pem_spec *spec)
{
	const char *name = spec->provider;
	size_t i;

	fprintf(f,
		"extern __attribute__((weak, visibility(\"hidden\"))) const uint32_t "
		"pem_ids_%1$s[];\n"
		"const uint32_t pem_ids_%1$s[] = {\n",
		name);
	for (i = 0; i < spec->event_count; i++) {
		if (spec->events[i].source_kind == PEM_SOURCE_STUB)
			fprintf(f, "\tPEM_EVENT_%s_ID,\n", spec->events[i].c_upper);
	}
	fprintf(f,
		"};\n\n"
		"#pragma GCC diagnostic push\n"
		"#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
		"extern __attribute__((weak, visibility(\"hidden\"))) const char "
		"pem_model_%1$s[];\n"
		/* pem_program__models() finds the models of a program file in this section. */
		"__attribute__((section(\"pem_model\"))) const char pem_model_%1$s[] =\n",
		name);
	pem_put_model_literal(f, &spec, 1, 1);
	fprintf(f, "\t\"\";\n#pragma GCC diagnostic pop\n\n");
	fprintf(f,
		"extern __attribute__((weak, visibility(\"hidden\"))) const struct pem_filter\n"
		"\t*pem_filters_%1$s[%2$u][PEM_SESSIONS_MAX];\n"
		"const struct pem_filter *pem_filters_%1$s[%2$u][PEM_SESSIONS_MAX] = { { 0 } "
		"};\n\n",
		name, spec->stub_count);
	fprintf(f,
		"extern __attribute__((weak, visibility(\"hidden\"))) struct pem_provider "
		"pem_provider_%1$s;\n"
		"struct pem_provider pem_provider_%1$s = {\n"
		"\tPEM_ABI_VERSION, %2$u, \"%1$s\", pem_ids_%1$s, pem_model_%1$s,\n"
		"\t&pem_page_%1$s, sizeof(struct pem_page_%1$s), 0, 0, 0, 0, 0, "
		"0,\n\t&pem_filters_%1$s[0][0]\n};\n\n",
		name, spec->stub_count);
	fprintf(f, constructor, name);
}

static void put_stubs(FILE *f, const struct pem_spec *spec)
{
	int text = 0;
	size_t i;

	put_page(f, spec);
	put_provider(f, spec);
	for (i = 0; i < spec->event_count; i++)
		text |= spec->events[i].source_kind == PEM_SOURCE_STUB &&
			pem_c_has_type(&spec->events[i], PEM_TYPE_STRING);
	if (text)
		fputs(text_helper, f);
	for (i = 0; i < spec->event_count; i++) {
		if (spec->events[i].source_kind == PEM_SOURCE_STUB)
			put_notify(f, &spec->events[i]);
	}
}

void pem_put_c_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec)
{
	size_t i;

	pem_c_begin_header(f, set, spec, spec->stub_count ? head_of_stubs : head);
	for (i = 0; i < spec->event_count; i++)
		put_record_struct(f, &spec->events[i]);
	if (spec->stub_count)
		put_stubs(f, spec);
	pem_c_end_header(f);
}

static void emit(const struct pem_spec_set *set, struct pem_output *out)
{
	char *name;
	size_t i;

	for (i = 0; i < set->count; i++) {
		name = pem_xprintf("%s.h", set->specs[i].provider);
		pem_put_c_header(pem_output__file(out, name), set, &set->specs[i]);
		free(name);
	}
}

const struct pem_backend pem_backend_c = {
	.name = "c",
	.description = "PROVIDER.h: record structs, and stubs that raise events, for C and C++",
	.emit = emit,
};
