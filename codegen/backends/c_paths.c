/* SPDX-License-Identifier: MIT */
/*
 * c_paths.c - what a C stub does with an event that somebody wants
 *
 *	pem_put_X	stores the fields of one record, for all paths
 *	pem_slow_X	makes the record on the stack, and passes it to libpem
 *	pem_passes_X	tests a predicate
 *	pem_general_X	one session of any number, no predicate: logs, or updates a statistic
 *	pem_further_X	the first session alone: tests a predicate; logs, or updates a statistic
 *	pem_coarse_X	the first session alone, with a coarse clock: logs
 *	pem_count_X	the first session alone: the statistic of the first field, or of none
 *	pem_on_X	the first session alone: logs
 *
 * Each of the last two calls one of those above it for all else.
 *
 * The paths of the first session take the fewest instructions: bench/stepped.c counts them. Not
 * here: the rest of the header (c.c), what these functions call (spec/abi/pem/stub.h).
 */
#include "c_text.h"

#include <pem/stub.h>

#include <stdlib.h>

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
		"\t\tgoto pem_else;\n\t}\n",
		event->c_upper, bytes);
}

static int is_integer(const struct pem_spec_field *field)
{
	return pem_type__size(field->type) && !pem_type__is_float(field->type);
}

/* Print the update of a statistic of one integer field, or of none. */
static void put_stat_add(FILE *f, const struct pem_spec_field *field)
{
	if (!field)
		fprintf(f, "pem_stat_count(&pem_c)");
	else if (pem_type__is_signed(field->type))
		fprintf(f,
			"pem_stat_add(&pem_c, (uint64_t)(int64_t)%1$s, pem_stat_key_signed(%1$s))",
			field->c_name);
	else
		fprintf(f, "pem_stat_add(&pem_c, %1$s, %1$s)", field->c_name);
}

static void put_stat_case(FILE *f, const struct pem_spec_field *field, size_t number, int likely)
{
	fprintf(f,
		"\tif (__builtin_expect(pem_choice == (PEM_ACTION_STAT | %zuu << 8), %d)) {"
		"%s%s%s\n\t\tif (__builtin_expect(",
		number, likely, field ? " /* " : "", field ? field->c_name : "",
		field ? " */" : "");
	put_stat_add(f, field);
	fprintf(f, ", 1))\n\t\t\treturn;\n\t\tgoto pem_else;\n\t}\n");
}

/* Print the paths of all statistics: of each integer field, and of none. */
static void put_stats(FILE *f, const struct pem_spec_event *event)
{
	int likely = 1;
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (!is_integer(&event->fields[i]))
			continue;
		put_stat_case(f, &event->fields[i], i, likely);
		likely = 0;
	}
	put_stat_case(f, NULL, PEM_NO_FIELD, likely);
}

/* Print the quick path of the statistic of a field, or of none. */
static void put_quick_stat(FILE *f, const struct pem_spec_event *event, size_t number, int likely)
{
	const struct pem_spec_field *field = number == PEM_NO_FIELD ? NULL : &event->fields[number];

	fprintf(f,
		"\tif (__builtin_expect(pem_quick_counts(&pem_c, &pem_provider_%s, %uu, %zuu), "
		"%d)) {"
		"%s%s%s\n\t\tif (__builtin_expect(",
		event->spec->provider, event->stub_index, number, likely, field ? " /* " : "",
		field ? field->c_name : "", field ? " */" : "");
	put_stat_add(f, field);
	fprintf(f, ", 1))\n\t\t\treturn;\n\t\tgoto pem_else;\n\t}\n");
}

/* Print the quick paths of statistics: of the first integer field, and of none. */
static void put_quick_stats(FILE *f, const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < event->field_count && !is_integer(&event->fields[i]);)
		i++;
	if (i < event->field_count)
		put_quick_stat(f, event, i, 1);
	put_quick_stat(f, event, PEM_NO_FIELD, i == event->field_count);
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

/* Print the test of the first session's filter. libpem tests those of other sessions. */
static void put_filter(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f,
		"\tif (__builtin_expect((pem_choice & PEM_ACTION_FILTER) != 0, 1)) {\n"
		"\t\tpem_filter = pem_filter_begin(&pem_c, pem_filters_%1$s[%2$u]);\n"
		"\t\tif (!pem_filter_fits(&pem_c, pem_page_%1$s.action[%2$u], pem_filter)) {\n"
		"\t\t\tif (pem_filter_rejects(&pem_c, pem_page_%1$s.action[%2$u],\n\t\t\t\t\t      "
		" pem_filter))\n\t\t\t\treturn;\n"
		"\t\t\tgoto pem_else;\n\t\t}\n"
		"\t\tif (!__builtin_expect(pem_passes_%3$s(pem_filter",
		event->spec->provider, event->stub_index, event->c_name);
	put_list(f, event, 0, 0, ", ");
	fprintf(f, "), 1))\n\t\t\treturn;\n\t\tpem_choice &= ~PEM_ACTION_FILTER;\n\t}\n");
}

static void put_general(FILE *f, const struct pem_spec_event *event)
{
	const char *provider = event->spec->provider;
	unsigned index = event->stub_index;

	fprintf(f, "static __attribute__((noinline, nothrow, unused)) void pem_general_%s(",
		event->c_name);
	put_list(f, event, 1, 0, "");
	fprintf(f, ")\n{\n"
		   "\tstruct pem_cursor pem_c;\n\tuint32_t pem_choice;\n\n");
	fprintf(f,
		"\tpem_choice = pem_event_begin(&pem_c, &pem_provider_%1$s, "
		"&pem_page_%1$s.enable[%2$u],\n"
		"\t\t\t\t     pem_page_%1$s.action[%2$u], %2$uu);\n",
		provider, index);
	put_log_path(f, event);
	put_stats(f, event);
	fprintf(f, "pem_else:\n");
	put_slow_call(f, event, "\t");
	fprintf(f, "}\n\n");
}

/* Print the quick path of a log. */
static void put_quick_log(FILE *f, const struct pem_spec_event *event, int is_coarse)
{
	char bytes[24] = "pem_bytes";

	if (!event->has_tail)
		snprintf(bytes, sizeof(bytes), "%uu", event->fixed_bytes);
	fprintf(f, "\tif (__builtin_expect(pem_quick_logs%s(&pem_c), 1)) {\n",
		is_coarse ? "_coarse" : "");
	declare_lengths(f, event, "\t\t");
	if (event->has_tail)
		fprintf(f, "\n");
	put_measure(f, event, "\t\t");
	fprintf(f,
		"\t\tif (__builtin_expect(pem_quick_reserve(&pem_c, %s, %d), 1)) {\n"
		"\t\t\tpem_put_%s(pem_c.record",
		bytes, is_coarse, event->c_name);
	put_list(f, event, 0, 1, ", ");
	fprintf(f,
		");\n\t\t\tpem_quick_commit(&pem_c, &pem_provider_%s, %uu,\n"
		"\t\t\t\t\t PEM_EVENT_%s_ID, %s);\n\t\t\treturn;\n\t\t}\n"
		"\t\tgoto pem_else;\n\t}\n",
		event->spec->provider, event->stub_index, event->c_upper, bytes);
}

/* Print the head of a function that goes on after pem_quick_begin. */
static void put_resumed(FILE *f, const struct pem_spec_event *event, const char *name,
			const char *variables)
{
	fprintf(f, "static __attribute__((noinline, nothrow, unused)) void pem_%s_%s(", name,
		event->c_name);
	if (event->field_count)
		put_list(f, event, 1, 0, "");
	fprintf(f,
		"%sstruct pem_thread *pem_thread, uint64_t pem_action)\n{\n%s"
		"\tstruct pem_cursor pem_c;\n\n"
		"\tpem_quick_resume(&pem_c, pem_thread, pem_action);\n",
		event->field_count ? ", " : "", variables);
}

/* Print a call of such a function. */
static void put_resume(FILE *f, const struct pem_spec_event *event, const char *name)
{
	fprintf(f, "\tpem_%s_%s(", name, event->c_name);
	put_list(f, event, 0, 0, "");
	fprintf(f, "%spem_c.thread, pem_c.action);\n\treturn;\n", event->field_count ? ", " : "");
}

static void put_else(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f, "pem_else:\n\tpem_general_%s(", event->c_name);
	put_list(f, event, 0, 0, "");
	fprintf(f, ");\n}\n\n");
}

/* Print the quick path of what is wanted through a filter, and of further fields' statistics. */
static void put_further(FILE *f, const struct pem_spec_event *event)
{
	put_resumed(f, event, "further",
		    "\tuint32_t pem_choice = PEM_ACTION_CHOICE(pem_action);\n"
		    "\tconst struct pem_filter *pem_filter;\n");
	fprintf(f, "\tpem_c.cell = pem_quick_cell(&pem_c, &pem_provider_%s, %uu);\n",
		event->spec->provider, event->stub_index);
	put_filter(f, event);
	put_log_path(f, event);
	put_stats(f, event);
	put_else(f, event);
}

/* Print the quick path of a log with a coarse clock. */
static void put_coarse(FILE *f, const struct pem_spec_event *event)
{
	put_resumed(f, event, "coarse", "");
	put_quick_log(f, event, 1);
	put_else(f, event);
}

/*
 * Print the quick path of the statistic of the first field, and of none, and the short way of what
 * the library alone does.
 */
static void put_count(FILE *f, const struct pem_spec_event *event)
{
	put_resumed(f, event, "count", "");
	put_quick_stats(f, event);
	fprintf(f, "\tif (pem_quick_logs_coarse(&pem_c)) {\n");
	put_resume(f, event, "coarse");
	fprintf(f, "\t}\n\tif (pem_quick_is_library_s(&pem_c)) {\n");
	put_slow_call(f, event, "\t\t");
	fprintf(f, "\t\treturn;\n\t}\n");
	put_resume(f, event, "further");
	put_else(f, event);
}

/* Print what serves the common cases in the fewest instructions, and passes on all others. */
static void put_on(FILE *f, const struct pem_spec_event *event)
{
	fprintf(f, "static __attribute__((noinline, nothrow, unused)) void pem_on_%s(",
		event->c_name);
	put_list(f, event, 1, 0, "");
	fprintf(f,
		")\n{\n\tstruct pem_cursor pem_c;\n\n"
		"\tif (__builtin_expect(!pem_quick_begin(&pem_c, &pem_provider_%1$s,\n"
		"\t\t\t\t\t      &pem_page_%1$s.enable[%2$u],\n"
		"\t\t\t\t\t      pem_page_%1$s.action[%2$u]), 0))\n\t\tgoto pem_else;\n",
		event->spec->provider, event->stub_index);
	put_quick_log(f, event, 0);
	put_resume(f, event, "count");
	put_else(f, event);
}

void pem_c_put_paths(FILE *f, const struct pem_spec_event *event)
{
	put_store(f, event);
	put_slow(f, event);
	put_passes(f, event);
	put_general(f, event);
	put_further(f, event);
	put_coarse(f, event);
	put_count(f, event);
	put_on(f, event);
}
