/* SPDX-License-Identifier: MIT */
/*
 * codegen_resolve.c - structures, labels, groups, versions and alternatives once they are resolved,
 * and what is refused or warned of
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "event_id.h"
#include "catalogue.h"
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define NAMED(layer, specifier, more)                                                              \
	"<event name='" layer "::A::" specifier "' description='d' " more                          \
	"><layerId value='" layer "'/><classId value='A'/><specifier value='" specifier "'/>"
#define EVENT(body) NAMED("APP", "B", "") body "</event>"
#define FIELDS(body) "<fields>" body "</fields>"
#define FIELD(name, type, more) "<field name='" name "' type='" type "' description='d' " more "/>"

/* A spec of this body, after all stages. The caller frees it. */
static struct pem_spec_set of(const char *body)
{
	struct pem_spec_set set = {0};
	char *xml = pem_xprintf("<spec provider='a' description='d'>%s</spec>", body);

	pem_spec_set__load_bytes(&set, "test.xml", xml, strlen(xml));
	pem_spec_set__resolve(&set);
	pem_spec_set__check(&set);
	pem_spec_set__layout(&set);
	free(xml);
	return set;
}

static struct pem_spec_set sound(const char *body)
{
	struct pem_spec_set set = of(body);

	if (set.error_count != set.warning_count)
		fail_msg("%s", set.errors[0].text);
	return set;
}

/* The first error, or if there is none the first warning, says this. */
static void says(const char *body, int is_warning, const char *expected)
{
	struct pem_spec_set set = of(body);
	size_t i = 0;

	while (i < set.error_count && set.errors[i].is_warning != is_warning)
		i++;
	if (i == set.error_count)
		fail_msg("nothing says '%s'", expected);
	if (!strstr(set.errors[i].text, expected))
		fail_msg("'%s' does not say '%s'", set.errors[i].text, expected);
	pem_spec_set__free(&set);
}

static const struct pem_spec_event *event_of(const struct pem_spec_set *set, size_t i)
{
	return &set->specs[0].events[i];
}

static void structures_become_their_members_at_their_alignment(void **state)
{
	struct pem_spec_set set =
		sound("<struct name='P'>" FIELD("x", "float64", "unit='m'") FIELD(
			"y", "uint8",
			"unit='m'") "</struct>"
				    "<struct name='Q'>" FIELD("c", "uint8", "unit='m'")
					    FIELD("p", "struct", "of='P'") "</struct>" EVENT(FIELDS(
						    FIELD("first", "uint8",
							  "unit='m'") FIELD("q", "struct", "of='Q'")
							    FIELD("last", "uint8", "unit='m'"))));
	static const struct {
		const char *name;
		const char *c_name;
		uint32_t offset;
	} wanted[] = {{"first", "first", 8},
		      {"q.c", "q_c", 16},
		      {"q.p.x", "q_p_x", 24},
		      {"q.p.y", "q_p_y", 32},
		      {"last", "last", 33}};
	const struct pem_spec_event *event = event_of(&set, 0);
	size_t i;

	(void)state;
	assert_int_equal(event->field_count, 5);
	for (i = 0; i < 5; i++) {
		assert_string_equal(event->fields[i].name, wanted[i].name);
		assert_string_equal(event->fields[i].c_name, wanted[i].c_name);
		assert_int_equal(event->fields[i].offset, wanted[i].offset);
	}
	assert_int_equal(event->fixed_bytes, 34);
	pem_spec_set__free(&set);
}

static void an_array_lies_in_the_fixed_part(void **state)
{
	struct pem_spec_set set = sound(EVENT(FIELDS(FIELD("a", "uint8", "unit='m'") FIELD(
		"w", "array", "eltType='uint16' count='3' unit='g'")
							     FIELD("b", "uint32", "unit='m'"))));
	const struct pem_spec_event *event = event_of(&set, 0);

	(void)state;
	assert_int_equal(event->fields[1].offset, 10);
	assert_int_equal(event->fields[1].max_count, 3);
	assert_int_equal(event->fields[2].offset, 16);
	assert_false(event->has_tail);
	pem_spec_set__free(&set);
}

static void a_version_makes_another_identity_and_the_first_none(void **state)
{
	struct pem_spec_set set = sound(NAMED("APP", "B", "") "</event>" NAMED(
		"APP", "C", "version='1'") "</event>" NAMED("APP", "D", "version='2'") "</event>");

	(void)state;
	assert_int_equal(event_of(&set, 0)->id, pem_hash32("APP::A::B"));
	assert_int_equal(event_of(&set, 1)->id, pem_hash32("APP::A::C"));
	assert_int_equal(event_of(&set, 2)->id, pem_hash32("APP::A::D@2"));
	pem_spec_set__free(&set);
}

static void groups_and_scopes_follow_from_the_meaning(void **state)
{
	struct pem_spec_set set =
		sound(NAMED("APP", "B", "") "<meaning value='interval-begin'/></event>" NAMED(
			"APP", "C",
			"") "<meaning value='interval-end' group='X' "
			    "scope='cpu'/></event>" NAMED(
				    "OS", "D", "") "<meaning "
						   "value='release'/"
						   ">" FIELDS(FIELD("at",
								    "addres"
								    "s",
								    "role='"
								    "address"
								    "'")) "<"
									  "/"
									  "e"
									  "v"
									  "e"
									  "n"
									  "t"
									  ">" NAMED("APP", "E",
										    "") "</event>");

	(void)state;
	assert_string_equal(event_of(&set, 0)->group, "APP::A");
	assert_int_equal(event_of(&set, 0)->scope, PEM_SCOPE_THREAD);
	assert_string_equal(event_of(&set, 1)->group, "X");
	assert_int_equal(event_of(&set, 1)->scope, PEM_SCOPE_CPU);
	assert_int_equal(event_of(&set, 2)->scope, PEM_SCOPE_SYSTEM);
	assert_string_equal(event_of(&set, 3)->group, "");
	assert_int_equal(event_of(&set, 3)->scope, PEM_SCOPE_NONE);
	pem_spec_set__free(&set);
}

static void alternatives_take_fields_from_where_they_say(void **state)
{
	struct pem_spec_set set = sound(
		EVENT("<source type='tracepoint' name='s:new' arguments='int a' kernel='6.8-'/>"
		      "<source type='tracepoint' name='s:old' arguments='int b' kernel='-6.7'>"
		      "<from field='x' value='b'/></source>" FIELDS(
			      FIELD("x", "int32", "unit='m' from='a'"))));
	const struct pem_spec_event *event = event_of(&set, 0);

	(void)state;
	assert_int_equal(event->source_count, 2);
	assert_string_equal(pem_spec_event__from(event, 0, &event->fields[0]), "a");
	assert_string_equal(pem_spec_event__from(event, 1, &event->fields[0]), "b");
	pem_spec_set__free(&set);
}

static void what_is_named_must_be_there(void **state)
{
	(void)state;
	says(EVENT(FIELDS(FIELD("a", "uint8", "enum='E'"))), 0, "there is no <enum name='E'>");
	says("<enum name='E'><label name='x' value='1'/></enum>" EVENT(
		     FIELDS(FIELD("a", "uint8", "flags='E'"))),
	     0, "there is no <flags name='E'>");
	says(EVENT(FIELDS(FIELD("a", "struct", "of='S'"))), 0, "there is no structure 'S'");
	says(EVENT("<source type='usdt' name='p:q' binary='b'><from field='n' "
		   "value='a'/></source>"),
	     0, "<from> names field 'n', which the event has not");
}

static void uprobes_name_what_can_be_found(void **state)
{
	(void)state;
	says(EVENT("<source type='uprobe' name='f'/>"), 0, "a uprobe lacks binary=''");
	says(EVENT("<source type='uprobe' name='a:b' binary='b'/>"), 0, "uprobe 'a:b': expected");
	says(EVENT("<source type='uprobe' name='0x' binary='b'/>"), 0, "uprobe '0x': expected");
	says(EVENT("<source type='uprobe' name='f' binary='b'/>" FIELDS(
		     FIELD("a", "int32", "from='a + 1'"))),
	     0, "from='a + 1': expected a parameter's name, or arg0 to arg5");
}

static void structures_in_themselves_are_refused(void **state)
{
	(void)state;
	says("<struct name='S'>" FIELD("s", "struct", "of='S'") "</struct>" EVENT(
		     FIELDS(FIELD("a", "struct", "of='S'"))),
	     0, "holds structures more than 4 deep");
	/* Four deep, 63 wide: millions, if they were all made. */
	says("<struct name='S'>" FIELD("a", "struct", "of='S'") FIELD("b", "struct", "of='S'")
		     FIELD("c", "uint8",
			   "unit='m'") "</struct>" EVENT(FIELDS(FIELD("a", "struct", "of='S'"))),
	     0, "more than 4 deep");
}

static void structures_hold_what_has_a_fixed_size(void **state)
{
	(void)state;
	says("<struct name='S'>" FIELD("t", "string", "") "</struct>" EVENT(
		     FIELDS(FIELD("a", "struct", "of='S'"))),
	     0, "structure member 'a.t' is a string: expected members of fixed size only");
}

static void names_that_meet_once_flattened_are_refused(void **state)
{
	(void)state;
	says("<struct name='S'>" FIELD("x", "uint8", "unit='m'") "</struct>" EVENT(
		     FIELDS(FIELD("a", "struct", "of='S'") FIELD("a_x", "uint8", "unit='m'"))),
	     0, "a second field 'a_x', the first is 'a.x'");
	says(EVENT(FIELDS(FIELD("a", "uint8", "unit='m'") FIELD("A", "uint8", "unit='m'"))), 0,
	     "a name that differs by more than capitals");
}

static void labels_must_fit_their_field_and_differ(void **state)
{
	(void)state;
	says("<enum name='E'><label name='x' value='256'/></enum>" EVENT(
		     FIELDS(FIELD("a", "uint8", "enum='E'"))),
	     0, "label 'x' of 'E' does not fit type 'uint8'");
	says("<enum name='E'><label name='x' value='-129'/></enum>" EVENT(
		     FIELDS(FIELD("a", "int8", "enum='E'"))),
	     0, "does not fit type 'int8'");
	says("<enum name='E'><label name='x' value='99999999999999999999'/></enum>" EVENT(
		     FIELDS(FIELD("a", "uint64", "enum='E'"))),
	     0, "label 'x' needs more than 64 bits");
	says("<enum name='E'><label name='x' value='1'/><label name='y' value='0x1'/></enum>" EVENT(
		     ""),
	     0, "labels 'y' and 'x' have one value");
	says("<enum name='E'><label name='x' value='1'/><label name='X' value='2'/></enum>" EVENT(
		     ""),
	     0, "a second label 'X'");
	says("<flags name='E'><label name='x' value='1'/></flags>" EVENT(
		     FIELDS(FIELD("a", "int8", "flags='E'"))),
	     0, "expected an unsigned integer type");
	says("<enum name='E'><label name='x' value='1'/></enum>" EVENT(
		     FIELDS(FIELD("a", "float64", "enum='E'"))),
	     0, "expected an integer type");
}

#define LONG "a234567890123456789012345678901234567890"

static void labels_must_differ_in_programs(void **state)
{
	(void)state;
	says("<enum name='E'><label name='fooBar' value='1'/><label name='foo_bar' "
	     "value='2'/></enum>" EVENT(""),
	     0, "label 'foo_bar' of 'E' is called 'e_foo_bar' in programs, like label 'fooBar'");
	says("<enum name='a'><label name='b_c' value='1'/></enum>"
	     "<enum name='a_b'><label name='c' value='1'/></enum>" EVENT(""),
	     0, "label 'c' of 'a_b' is called 'a_b_c' in programs, like label 'b_c' of 'a'");
	says("<enum name='" LONG "'><label name='" LONG "' value='1'/></enum>" EVENT(""), 0,
	     "Fortran allows 63 characters");
}

static void words_of_any_language_are_refused_where_there_are_stubs(void **state)
{
	struct pem_spec_set set =
		sound(EVENT("<source type='tracepoint' name='s:e' arguments='int a'/>" FIELDS(
			FIELD("type", "int32", "unit='m' from='a'"))));

	(void)state;
	pem_spec_set__free(&set);
	says(EVENT(FIELDS(FIELD("type", "uint8", "unit='m'"))), 0, "'type' is a word of Rust");
	says(EVENT(FIELDS(FIELD("final", "uint8", "unit='m'"))), 0, "'final' is a word of Java");
	says(EVENT(FIELDS(FIELD("lambda", "uint8", "unit='m'"))), 0,
	     "'lambda' is a word of Python");
	says(EVENT(FIELDS(FIELD("pem_x", "uint8", "unit='m'"))), 0, "start with 'pem_'");
}

static void alternatives_are_of_one_type(void **state)
{
	(void)state;
	says(EVENT("<source type='stub'/><source type='perf' name='perf::CYCLES'/>"), 0,
	     "expected alternatives of one type");
	says(EVENT("<source type='stub'/><source type='stub'/>"), 0, "several sources");
}

static void what_belongs_to_nothing_has_no_group(void **state)
{
	(void)state;
	says(EVENT("<meaning value='sample' scope='cpu'/>"), 0, "scope='' on meaning 'sample'");
	says(EVENT("<meaning value='sample' group='X'/>"), 0, "group='' on meaning 'sample'");
}

static void names_longer_than_fortran_s_are_refused(void **state)
{
	(void)state;
	says("<event name='APP::Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa::Bbbbbbbbbbbbbbbbbbbbbbbbbb' "
	     "description='d'><layerId value='APP'/><classId "
	     "value='Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'/><specifier "
	     "value='Bbbbbbbbbbbbbbbbbbbbbbbbbb'/></event>",
	     0, "Fortran allows 63 characters");
}

static void what_is_missing_but_may_be_draws_a_warning(void **state)
{
	(void)state;
	says("<event name='APP::A::B'><layerId value='APP'/><classId value='A'/><specifier "
	     "value='B'/></event>",
	     1, "event 'APP::A::B' has no description");
	says(EVENT(FIELDS("<field name='a' type='uint8' unit='m'/>")), 1,
	     "field 'a' has no description");
	says(EVENT(FIELDS(FIELD("a", "uint8", ""))), 1, "field 'a' has no unit");
	says(EVENT("<meaning value='interval-begin'/>"), 1,
	     "no event of meaning 'interval-end' has the group 'APP::A'");
}

/* A begin and an end of one group with these fields. */
#define PAIR(begin, end)                                                                           \
	NAMED("APP", "B", "")                                                                      \
	"<meaning value='interval-begin'/>" FIELDS(begin) "</event>" NAMED(                        \
		"APP", "E", "") "<meaning value='interval-end'/>" FIELDS(end) "</event>"
#define KEY(name, type) FIELD(name, type, "role='key'")

static void ends_that_can_never_meet_are_refused(void **state)
{
	(void)state;
	says(PAIR(KEY("k", "uint32"), ""), 0,
	     "APP::A::B has key 'k' and APP::A::E (test.xml:1) does not");
	says(PAIR(KEY("k", "uint32"), KEY("j", "uint32")), 0, "key 'j' (uint32) of 'APP::A::E'");
	says(PAIR(KEY("k", "uint32"), KEY("k", "int32")), 0, "key 'k' (int32) of 'APP::A::E'");
	says(PAIR(KEY("k", "uint32") KEY("j", "uint32"), KEY("j", "uint32") KEY("k", "uint32")), 0,
	     "key 'j' (uint32) of 'APP::A::E' and key 'k' (uint32)");
}

static void an_end_may_have_several_begins(void **state)
{
	struct pem_spec_set set = sound(PAIR(KEY("k", "uint32"), KEY("k", "uint32")) NAMED(
		"APP", "C",
		"") "<meaning value='interval-begin'/>" FIELDS(KEY("k", "uint32")) "</event>");

	(void)state;
	pem_spec_set__free(&set);
	says(PAIR(KEY("k", "uint32"), KEY("k", "uint32"))
		     NAMED("APP", "C", "") "<meaning value='interval-begin'/>" FIELDS(
			     KEY("j", "uint32")) "</event>",
	     0, "key 'j' (uint32) of 'APP::A::C' and key 'k' (uint32) of 'APP::A::E'");
}

#define METRIC(of) "<metric name='APP::A::M' form='rate' of='" of "' description='d'/>"

static void a_metric_needs_events_that_exist(void **state)
{
	struct pem_spec_set set = sound(EVENT("") METRIC("APP::Libc::Malloc.size"));

	(void)state;
	pem_spec_set__free(&set);
	says(EVENT("") METRIC("APP::Libc::Mallco"), 0, "did you mean 'APP::Libc::Malloc'?");
	says(EVENT("") METRIC("APP::Nowhere::Atall"), 0, "have an event 'APP::Nowhere::Atall'");
	says(EVENT("") METRIC("APP::Libc::Malloc.bites"), 0, "has no field of this name");
}

static void a_number_that_needs_no_unit_draws_none(void **state)
{
	struct pem_spec_set set = of(
		"<enum name='E' description='d'><label name='x' value='1' "
		"description='d'/></enum>" EVENT(FIELDS(
			FIELD("a", "uint8", "unit='none'") FIELD("b", "uint8", "enum='E'")
				FIELD("c", "uint32", "role='key'") FIELD("d", "uint8", "base='16'")
					FIELD("e", "address", "") FIELD("f", "string", ""))));

	(void)state;
	if (set.error_count)
		fail_msg("%s", set.errors[0].text);
	assert_string_equal(event_of(&set, 0)->fields[0].unit, "");
	pem_spec_set__free(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structures_become_their_members_at_their_alignment),
		cmocka_unit_test(an_array_lies_in_the_fixed_part),
		cmocka_unit_test(a_version_makes_another_identity_and_the_first_none),
		cmocka_unit_test(groups_and_scopes_follow_from_the_meaning),
		cmocka_unit_test(alternatives_take_fields_from_where_they_say),
		cmocka_unit_test(what_is_named_must_be_there),
		cmocka_unit_test(uprobes_name_what_can_be_found),
		cmocka_unit_test(structures_in_themselves_are_refused),
		cmocka_unit_test(structures_hold_what_has_a_fixed_size),
		cmocka_unit_test(names_that_meet_once_flattened_are_refused),
		cmocka_unit_test(labels_must_fit_their_field_and_differ),
		cmocka_unit_test(labels_must_differ_in_programs),
		cmocka_unit_test(words_of_any_language_are_refused_where_there_are_stubs),
		cmocka_unit_test(alternatives_are_of_one_type),
		cmocka_unit_test(what_belongs_to_nothing_has_no_group),
		cmocka_unit_test(names_longer_than_fortran_s_are_refused),
		cmocka_unit_test(what_is_missing_but_may_be_draws_a_warning),
		cmocka_unit_test(ends_that_can_never_meet_are_refused),
		cmocka_unit_test(an_end_may_have_several_begins),
		cmocka_unit_test(a_metric_needs_events_that_exist),
		cmocka_unit_test(a_number_that_needs_no_unit_draws_none),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	pem_spec_set__cleanup();
	pem_catalogue__cleanup();
	return failed;
}
