/* SPDX-License-Identifier: MIT */
/*
 * codegen_layout.c - offsets, sizes and names that codegen computes from specs, and what its checks
 * refuse
 *
 * Specs are given as text; what the files made from them do is tests/e2e/codegen_stubs.py's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "event_id.h"
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define EVENT "<layerId value='APP'/><classId value='A'/><specifier value='B'/>"

/*
 * A set holding one event APP::A::B with these fields (XML), after all stages. The caller frees it.
 */
static struct pem_spec_set with_fields(const char *fields)
{
	struct pem_spec_set set = {0};
	char *xml = pem_xprintf("<spec provider='a' description='d'>"
				"<event name='APP::A::B' description='d'>" EVENT
				"<fields>%s</fields></event></spec>",
				fields);

	pem_spec_set__load_bytes(&set, "test.xml", xml, strlen(xml));
	pem_spec_set__resolve(&set);
	pem_spec_set__check(&set);
	pem_spec_set__layout(&set);
	free(xml);
	return set;
}

static void number_types_lie_at_multiples_of_their_size(void **state)
{
	struct pem_spec_set set = with_fields("<field name='a' type='uint8' description='d'/>"
					      "<field name='b' type='uint64' description='d'/>"
					      "<field name='c' type='int16' description='d'/>"
					      "<field name='d' type='float32' description='d'/>"
					      "<field name='e' type='uint8' description='d'/>");
	static const uint32_t offsets[] = {8, 16, 24, 28, 32}, padding[] = {0, 7, 0, 2, 0};
	const struct pem_spec_event *event = &set.specs[0].events[0];
	size_t i;

	(void)state;
	assert_int_equal(set.error_count - set.warning_count, 0);
	for (i = 0; i < 5; i++) {
		assert_int_equal(event->fields[i].offset, offsets[i]);
		assert_int_equal(event->fields[i].padding, padding[i]);
		assert_int_equal(event->fields[i].max_count, 1);
	}
	assert_int_equal(event->fixed_bytes, 33);
	assert_int_equal(event->max_bytes, 40);
	assert_false(event->has_tail);
	pem_spec_set__free(&set);
}

static void list_has_its_length_in_front_and_elements_in_the_tail(void **state)
{
	struct pem_spec_set set =
		with_fields("<field name='l' type='list' eltType='uint64' max='3' description='d'/>"
			    "<field name='n' type='uint16' description='d'/>");
	const struct pem_spec_event *event = &set.specs[0].events[0];

	(void)state;
	assert_int_equal(set.error_count - set.warning_count, 0);
	assert_int_equal(event->fields[0].offset, 8);
	assert_int_equal(event->fields[0].max_count, 3);
	assert_int_equal(event->fields[1].offset, 12);
	assert_int_equal(event->fixed_bytes, 14);
	assert_int_equal(event->max_bytes, 16 + 3 * 8);
	assert_true(event->has_tail);
	pem_spec_set__free(&set);
}

static void string_has_no_offset_and_counts_its_end(void **state)
{
	struct pem_spec_set set = with_fields(
		"<field name='s' type='string' max='5' description='d'/>"
		"<field name='n' type='uint32' description='d'/>"
		"<field name='l' type='list' eltType='uint32' max='2' description='d'/>");
	const struct pem_spec_event *event = &set.specs[0].events[0];

	(void)state;
	assert_int_equal(set.error_count - set.warning_count, 0);
	assert_int_equal(event->fields[0].offset, 0);
	assert_int_equal(event->fields[1].offset, 8);
	assert_int_equal(event->fields[2].offset, 12);
	assert_int_equal(event->fixed_bytes, 16);
	/* 16 + "abcd\0" = 21, aligned to 24, two elements: 32 */
	assert_int_equal(event->max_bytes, 32);
	pem_spec_set__free(&set);
}

static void lists_and_strings_have_default_limits(void **state)
{
	struct pem_spec_set set =
		with_fields("<field name='s' type='string' description='d'/>"
			    "<field name='l' type='list' eltType='uint8' description='d'/>");

	(void)state;
	assert_int_equal(set.specs[0].events[0].fields[0].max_count, PEM_SPEC_STRING_DEFAULT);
	assert_int_equal(set.specs[0].events[0].fields[1].max_count, PEM_SPEC_LIST_DEFAULT);
	pem_spec_set__free(&set);
}

static void event_without_fields_is_its_header(void **state)
{
	struct pem_spec_set set = with_fields("");

	(void)state;
	assert_int_equal(set.error_count - set.warning_count, 0);
	assert_int_equal(set.specs[0].events[0].fixed_bytes, 8);
	assert_int_equal(set.specs[0].events[0].max_bytes, 8);
	pem_spec_set__free(&set);
}

static void record_of_the_greatest_size_passes_and_one_byte_more_does_not(void **state)
{
	struct pem_spec_set fits =
		with_fields("<field name='s' type='string' max='4088' description='d'/>");
	struct pem_spec_set exceeds =
		with_fields("<field name='s' type='string' max='4089' description='d'/>");

	(void)state;
	assert_int_equal(fits.error_count, 0);
	assert_int_equal(fits.specs[0].events[0].max_bytes, 4096);
	assert_int_equal(exceeds.error_count, 1);
	assert_non_null(strstr(exceeds.errors[0].text, "4104 bytes: expected at most 4096"));
	pem_spec_set__free(&fits);
	pem_spec_set__free(&exceeds);
}

static void ids_are_fnv1a_of_names(void **state)
{
	struct pem_spec_set set = with_fields("");

	(void)state;
	assert_int_equal(pem_hash32(""), 0x811c9dc5u); /* published test vectors */
	assert_int_equal(pem_hash32("a"), 0xe40c292cu);
	assert_int_equal(pem_hash32("foobar"), 0xbf9cf968u);
	assert_true(pem_hash64("foobar", 6) == 0x85944171f73967e8u);
	assert_int_equal(set.specs[0].events[0].id, pem_hash32("APP::A::B"));
	assert_int_equal(pem_event_id("APP::A::B", 0), pem_hash32("APP::A::B"));
	assert_int_equal(pem_event_id("APP::A::B", 1), pem_hash32("APP::A::B"));
	assert_int_equal(pem_event_id("APP::A::B", 2), pem_hash32("APP::A::B@2"));
	assert_int_equal(pem_event_id("APP::A::B", 10), pem_hash32("APP::A::B@10"));
	assert_int_equal(pem_event_id("APP::A::B", 65535), pem_hash32("APP::A::B@65535"));
	pem_spec_set__free(&set);
}

static void names_become_snake_case(void **state)
{
	static const char *const pairs[][2] = {
		{"HWPerf", "hw_perf"},
		{"HPMsAndPC", "hpms_and_pc"},
		{"GC", "gc"},
		{"Malloc", "malloc"},
		{"DataTLBMisses", "data_tlb_misses"},
		{"PageFault", "page_fault"},
		{"PCs", "pcs"},
		{"ThreadStart", "thread_start"},
		{"L2Misses", "l2_misses"},
		{"x", "x"},
		{"IOWait", "io_wait"},
	};
	char *name;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		name = pem_snake_case(pairs[i][0]);
		assert_string_equal(name, pairs[i][1]);
		free(name);
	}
}

static void words_are_found_again(void **state)
{
	unsigned i;

	(void)state;
	for (i = 1; i < PEM_TYPE_COUNT; i++)
		assert_int_equal(pem_word__type_of(pem_word__type(i)), i);
	for (i = 1; i < PEM_MEANING_COUNT; i++)
		assert_int_equal(pem_word__meaning_of(pem_word__meaning(i)), i);
	for (i = 1; i < PEM_ROLE_COUNT; i++)
		assert_int_equal(pem_word__role_of(pem_word__role(i)), i);
	for (i = 0; i < PEM_SOURCE_COUNT; i++)
		assert_int_equal(pem_word__source_of(pem_word__source(i)), i);
	assert_int_equal(pem_word__type_of("-"), -1);
	assert_int_equal(pem_word__type_of("uint128"), -1);
	assert_string_equal(pem_word__type(PEM_TYPE_COUNT), "-");
}

/* The only error of these fields says all of it. */
static void refuses(const char *fields, const char *expected)
{
	struct pem_spec_set set = with_fields(fields);
	const struct pem_spec_error *error = set.errors;

	assert_int_equal(set.error_count - set.warning_count, 1);
	while (error->is_warning)
		error++;
	if (!strstr(error->text, expected))
		fail_msg("'%s' does not say '%s'", set.errors[0].text, expected);
	pem_spec_set__free(&set);
}

static void fields_that_contradict_themselves_are_refused(void **state)
{
	(void)state;
	refuses("<field name='a' type='list' description='d'/>", "a list lacks eltType=''");
	refuses("<field name='a' type='uint8' eltType='uint8' description='d'/>",
		"expected it only with type='list'");
	refuses("<field name='a' type='uint8' max='3' description='d'/>",
		"expected it only with type='list' or type='string'");
	refuses("<field name='a' type='string' max='1' description='d'/>", "expected 2 or more");
	refuses("<field name='a' type='float64' base='16' description='d'/>",
		"expected it only with integers");
	refuses("<field name='a' type='uint8' from='x' description='d'/>",
		"expected it only with a tracepoint");
	refuses("<field name='a' type='uint8' role='address' description='d'/>",
		"a field of role 'address' has type 'uint8': expected 'address' or 'uint64'");
	refuses("<field name='a' type='uint8' role='name' description='d'/>", "expected 'string'");
	refuses("<field name='a' type='int64' role='size' description='d'/>",
		"expected an unsigned type");
	refuses("<field name='a' type='uint64' role='thread' description='d'/>",
		"expected 'uint32'");
}

static void names_that_can_not_be_c_names_are_refused(void **state)
{
	(void)state;
	refuses("<field name='int' type='uint8' description='d'/>", "a word of C or C++");
	refuses("<field name='template' type='uint8' description='d'/>", "a word of C or C++");
	refuses("<field name='linux' type='uint8' description='d'/>", "a word of C or C++");
	refuses("<field name='memcpy' type='uint8' description='d'/>", "a word of C or C++");
	refuses("<field name='uint32_t' type='uint8' description='d'/>", "a word of C or C++");
	refuses("<field name='pem_c' type='uint8' description='d'/>", "pem's own");
	refuses("<field name='a' type='uint8' description='d'/>"
		"<field name='a' type='uint16' description='d'/>",
		"a second field 'a'");
	refuses("<field name='a' type='list' eltType='uint8' description='d'/>"
		"<field name='a_count' type='uint16' description='d'/>",
		"taken by the length of list 'a'");
}

static void colliding_ids_are_refused(void **state)
{
	/* FNV-1a of these two is the same. */
	static const char *const names[] = {"costarring", "liquid"};
	struct pem_spec_set set = {0};
	const char *xml = "<spec provider='a' description='d'>"
			  "<event name='APP::A::B' description='d'>" EVENT "</event>"
			  "<event name='APP::A::B' description='d'>" EVENT "</event></spec>";

	(void)state;
	assert_int_equal(pem_hash32(names[0]), pem_hash32(names[1]));
	pem_spec_set__load_bytes(&set, "test.xml", xml, strlen(xml));
	assert_int_equal(set.error_count - set.warning_count, 0);
	free(set.specs[0].events[0].name);
	free(set.specs[0].events[1].name);
	set.specs[0].events[0].name = pem_xstrdup(names[0]);
	set.specs[0].events[1].name = pem_xstrdup(names[1]);
	pem_spec_set__resolve(&set);
	pem_spec_set__check(&set);
	assert_non_null(strstr(set.errors[set.error_count - 1].text, "has the same id"));
	pem_spec_set__free(&set);
}

static void locations_are_those_where_tags_start(void **state)
{
	struct pem_spec_set set =
		with_fields("\n\n \303\244<!-- --> <field\n name='int'\n type='uint8'\n"
			    " unit='none' description='d'/>");

	(void)state;
	assert_int_equal(set.error_count, 2);
	assert_int_equal(set.errors[1].at.line, 3);
	assert_int_equal(set.errors[1].at.column, 12);
	pem_spec_set__free(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_types_lie_at_multiples_of_their_size),
		cmocka_unit_test(list_has_its_length_in_front_and_elements_in_the_tail),
		cmocka_unit_test(string_has_no_offset_and_counts_its_end),
		cmocka_unit_test(lists_and_strings_have_default_limits),
		cmocka_unit_test(event_without_fields_is_its_header),
		cmocka_unit_test(record_of_the_greatest_size_passes_and_one_byte_more_does_not),
		cmocka_unit_test(ids_are_fnv1a_of_names),
		cmocka_unit_test(names_become_snake_case),
		cmocka_unit_test(words_are_found_again),
		cmocka_unit_test(fields_that_contradict_themselves_are_refused),
		cmocka_unit_test(names_that_can_not_be_c_names_are_refused),
		cmocka_unit_test(colliding_ids_are_refused),
		cmocka_unit_test(locations_are_those_where_tags_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
