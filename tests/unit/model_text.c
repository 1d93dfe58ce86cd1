/* SPDX-License-Identifier: MIT */
/*
 * model_text.c - the model: its text form is parsed strictly, written back the same, and looked up
 */
#include "trace_fixture.h"

#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>

static struct pem_model *new_model(const char *text)
{
	struct pem_model *model = pem_model__new();
	struct pem_error error = {""};
	int rc;

	assert_non_null(model);
	rc = pem_model__add_text(model, text, strlen(text), "test", &error);
	if (rc < 0)
		fail_msg("%s", error.text);
	return model;
}

static void reads_every_cell(void **state)
{
	struct pem_model *model = new_model(fixture_model);
	const struct pem_event *e = pem_model__by_name(model, "APP::Test::Mixed");

	(void)state;
	assert_int_equal(pem_model__count(model), 10);
	assert_non_null(e);
	assert_ptr_equal(e, pem_model__by_id(model, EVENT_MIXED));
	assert_ptr_equal(e, pem_model__event(model, 5));
	assert_string_equal(e->layer, "APP");
	assert_string_equal(e->class_name, "Test");
	assert_string_equal(e->specifier, "Mixed");
	assert_string_equal(e->description, "of each kind");
	assert_int_equal(e->fixed_bytes, 24);
	assert_int_equal(e->max_bytes, 88);
	assert_int_equal(e->field_count, 4);
	assert_int_equal(e->fields[2].type, PEM_TYPE_LIST);
	assert_int_equal(e->fields[2].element_type, PEM_TYPE_UINT64);
	assert_int_equal(e->fields[2].base, 16);
	assert_int_equal(e->fields[2].offset, 12);
	assert_int_equal(e->fields[2].max_count, 4);
	assert_int_equal(pem_event__field(e, "real"), 3);
	assert_int_equal(pem_event__field(e, "none"), -ENOENT);
	e = pem_model__by_id(model, EVENT_SWITCH);
	assert_int_equal(e->meaning, PEM_MEANS_SETS_THREAD);
	assert_int_equal(e->source_kind, PEM_SOURCE_TRACEPOINT);
	assert_string_equal(e->source_name, "sched:sched_switch");
	assert_string_equal(e->tsdl, "event { name = \"OS::Sched::Switch\";\n\tid = 256; };");
	assert_int_equal(pem_event__field_by_role(e, PEM_ROLE_THREAD), 2);
	assert_int_equal(pem_event__field_by_role(e, PEM_ROLE_SIZE), -ENOENT);
	assert_null(pem_model__by_id(model, 0xdead));
	assert_null(pem_model__by_name(model, "No::Such::Event"));
	assert_null(pem_model__event(model, 10));
	pem_model__free(model);
}

static void writes_back_the_same_text(void **state)
{
	struct pem_model *model = new_model(fixture_model);
	char *text = pem_model__to_text(model);

	(void)state;
	assert_non_null(text);
	assert_string_equal(text, fixture_model);
	free(text);
	pem_model__free(model);
}

static void keeps_events_where_they_are_when_others_come(void **state)
{
	static const char more[] = "pem-model\t2\n"
				   "event\t00000200\tAPP::More::One\tAPP\tMore\tOne\t1\tinfo\t-"
				   "\t\t-\tstub\t\t8\t8\t0\t0\t\t\t\n";
	struct pem_model *model = new_model(fixture_model);
	const struct pem_event *e = pem_model__by_id(model, EVENT_SIMPLE);

	(void)state;
	assert_int_equal(pem_model__add_text(model, more, strlen(more), "more", NULL), 1);
	assert_ptr_equal(e, pem_model__by_id(model, EVENT_SIMPLE));
	assert_string_equal(e->name, "APP::Test::Simple");
	assert_string_equal(pem_model__event(model, 10)->name, "APP::More::One");
	pem_model__free(model);
}

static void skips_what_is_there_and_refuses_what_differs(void **state)
{
	static const char better_worded[] =
		"pem-model\t2\n"
		"event\t00000104\tAPP::Test::Simple\tAPP\tTest\tSimple\t1\tinfo\t-"
		"\t\t-\tstub\t\t16\t16\t1\t0\t\t\tone\n"
		"field\tvalue\tuint64\t-\t10\t-\t8\t1\tbytes\t-\t0\tits number\n";
	static const char other[] =
		"pem-model\t2\n"
		"event\t00000104\tAPP::Test::Simple\tAPP\tTest\tSimple\t1\tinfo\t-"
		"\t\t-\tstub\t\t16\t16\t1\t0\t\t\tone number\n"
		"field\tvalue\tint64\t-\t10\t-\t8\t1\tbytes\t-\t0\ta number\n";
	struct pem_model *model = new_model(fixture_model);
	struct pem_error error = {""};

	(void)state;
	assert_int_equal(
		pem_model__add_text(model, fixture_model, strlen(fixture_model), "again", &error),
		0);
	assert_int_equal(
		pem_model__add_text(model, better_worded, strlen(better_worded), "words", &error),
		0);
	assert_int_equal(pem_model__add_text(model, other, strlen(other), "other", &error),
			 -EINVAL);
	assert_non_null(strstr(error.text, "APP::Test::Simple"));
	assert_int_equal(pem_model__count(model), 10);
	pem_model__free(model);
}

static void keeps_one_event_of_each_version_of_a_name(void **state)
{
#define VERSION_OF_ONE(id, version)                                                                \
	"pem-model\t2\nevent\t" id "\tAPP::More::One\tAPP\tMore\tOne\t" version                    \
	"\tinfo\t-\t\t-\tstub\t\t8\t8\t0\t0\t\t\t\n"
	static const char first[] = VERSION_OF_ONE("00000200", "1");
	static const char second[] = VERSION_OF_ONE("00000201", "2");
	static const char another_second[] = VERSION_OF_ONE("00000202", "2");
	struct pem_model *model = new_model(first);
	struct pem_error error = {""};

	(void)state;
	assert_int_equal(pem_model__add_text(model, second, strlen(second), "second", &error), 1);
	assert_int_equal(pem_model__by_name(model, "APP::More::One")->id, 0x200);
	assert_int_equal(pem_model__add_text(model, another_second, strlen(another_second),
					     "another", &error),
			 -EINVAL);
	assert_non_null(strstr(error.text, "(id 00000201)"));
	pem_model__free(model);
}

static void leaves_the_model_unchanged_on_failure(void **state)
{
	static const char text[] = "pem-model\t2\n"
				   "event\t00000200\tAPP::More::One\tAPP\tMore\tOne\t1\tinfo\t-"
				   "\t\t-\tstub\t\t8\t8\t0\t0\t\t\t\n"
				   "event\t00000104\tAPP::More::Two\tAPP\tMore\tTwo\t1\tinfo\t-"
				   "\t\t-\tstub\t\t8\t8\t0\t0\t\t\t\n";
	struct pem_model *model = new_model(fixture_model);
	struct pem_error error = {""};

	(void)state;
	assert_int_equal(pem_model__add_text(model, text, strlen(text), "clash", &error), -EINVAL);
	assert_non_null(strstr(error.text, "clash"));
	assert_non_null(strstr(error.text, "APP::More::Two"));
	assert_int_equal(pem_model__count(model), 10);
	assert_null(pem_model__by_name(model, "APP::More::One"));
	assert_null(pem_model__by_id(model, 0x200));
	assert_non_null(pem_model__by_id(model, EVENT_CYCLES));
	pem_model__free(model);
}

#define HEAD "pem-model\t2\n"
#define EVENT(fixed, max, fields)                                                                  \
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-\tstub\t\t" fixed "\t" max     \
	     "\t" fields "\t0\t\t\t\n"
#define FIELD(name, type, element, base, offset, count)                                            \
	"field\t" name "\t" type "\t" element "\t" base "\t-\t" offset "\t" count "\t\t-\t0\t\n"

static const char *const bad_texts[] = {
	"",
	"pem-model\t2",
	"pem-model\t3\n",
	"pem-models\t1\n",
	"pem-model 1\n",
	HEAD "event\n",
	HEAD "thing\t00000200\tAPP::A::B\tAPP\tA\tB\t-\tstub\t\t8\t8\t0\t0\t\n",
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\t", /* no newline */
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\t\t\n", /* a cell more */
	HEAD "event\t0000000f\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\t\n", /* reserved id */
	HEAD "event\t200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-\tstub\t\t8\t8\t0\t0\t\t\t\n",
	HEAD "event\t0000020G\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\t\n",
	HEAD "event\t00000200\tAPP::A::C\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\t\n", /* name and parts */
	HEAD "event\t00000200\tAPP::A::\tAPP\tA\t\t1\tinfo\t-\t\t-\tstub\t\t8\t8\t0\t0\t\t\t\n",
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\twhat\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\t\n",
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tmagic\t\t8\t8\t0\t0\t\t\t\n",
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t1\t\t\t\n", /* no TSDL line */
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\tbell \a\n",
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\t\xc0\xaf\n",
	HEAD "event\t00000200\tAPP::A::B\tAPP\tA\tB\t1\tinfo\t-\t\t-"
	     "\tstub\t\t8\t8\t0\t0\t\t\t\xe2\x82\n",
	EVENT("7", "8", "0"), /* shorter than a header */
	EVENT("08", "8", "0"),
	EVENT("16", "8", "0"),
	EVENT("8", "12", "0"), /* not a multiple of 8 */
	EVENT("-8", "8", "0"),
	EVENT("8", "65536", "0"),
	EVENT("8", "8", "257"),
	EVENT("8", "8", "1"), /* no field line */
	EVENT("16", "16", "1") FIELD("x", "uint64", "-", "10", "16", "1"), /* past the fixed part */
	EVENT("16", "16", "1") FIELD("x", "uint64", "-", "10", "0", "1"), /* in the header */
	EVENT("24", "24", "1") FIELD("x", "uint64", "-", "10", "12", "1"), /* unaligned */
	EVENT("16", "16", "2") FIELD("x", "uint32", "-", "10", "8", "1")
		FIELD("y", "uint32", "-", "10", "8", "1"), /* overlapping */
	EVENT("16", "16", "2") FIELD("x", "uint32", "-", "10", "8", "1")
		FIELD("x", "uint32", "-", "10", "12", "1"), /* twice */
	EVENT("16", "16", "1") FIELD("x", "uint65", "-", "10", "8", "1"),
	EVENT("16", "16", "1") FIELD("x", "-", "-", "10", "8", "1"),
	EVENT("16", "16", "1") FIELD("x y", "uint64", "-", "10", "8", "1"),
	EVENT("16", "16", "1") FIELD("", "uint64", "-", "10", "8", "1"),
	EVENT("16", "16", "1") FIELD("x", "uint64", "-", "8", "8", "1"),
	EVENT("16", "16", "1") FIELD("x", "uint64", "-", "10", "8", "2"),
	EVENT("16", "16", "1") FIELD("x", "uint64", "uint8", "10", "8", "1"),
	EVENT("16", "32", "1") FIELD("x", "list", "-", "10", "8", "1"),
	EVENT("16", "32", "1") FIELD("x", "list", "string", "10", "8", "1"),
	EVENT("16", "32", "1") FIELD("x", "list", "uint64", "10", "8", "0"),
	EVENT("16", "24", "1") FIELD("x", "list", "uint64", "10", "8", "2"), /* too long for max */
	EVENT("8", "8", "1") FIELD("x", "string", "-", "10", "0", "9"),
	EVENT("16", "32", "1") FIELD("x", "string", "-", "10", "8", "9"),
};

static void refuses_bad_text_with_a_sentence(void **state)
{
	struct pem_model *model = pem_model__new();
	struct pem_error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad_texts) / sizeof(bad_texts[0]); i++) {
		error.text[0] = 0;
		if (pem_model__add_text(model, bad_texts[i], strlen(bad_texts[i]), "bad", &error) !=
		    -EINVAL)
			fail_msg("text %zu was not refused:\n%s", i, bad_texts[i]);
		assert_non_null(strstr(error.text, "bad"));
		assert_int_equal(pem_model__count(model), 0);
	}
	pem_model__free(model);
}

static void accepts_the_good_twin_of_the_bad_texts(void **state)
{
	(void)state;
	pem_model__free(new_model(HEAD));
	pem_model__free(new_model(EVENT("8", "8", "0")));
	pem_model__free(
		new_model(EVENT("16", "32", "1") FIELD("x", "list", "uint64", "10", "8", "2")));
	pem_model__free(new_model(EVENT("8", "24", "1") FIELD("x", "string", "-", "10", "0", "9")));
}

static void refuses_a_nul_byte(void **state)
{
	struct pem_model *model = pem_model__new();
	char text[] = EVENT("8", "8", "0");

	(void)state;
	text[sizeof(text) - 20] = '\0';
	assert_int_equal(pem_model__add_text(model, text, sizeof(text) - 1, "nul", NULL), -EINVAL);
	pem_model__free(model);
}

static void survives_every_truncation(void **state)
{
	struct pem_model *model = pem_model__new();
	size_t bytes;
	char *copy;

	(void)state;
	for (bytes = 0; bytes < strlen(fixture_model); bytes += 3) {
		copy = malloc(bytes + 1); /* its own block, so that a sanitizer sees what is read */
		memcpy(copy, fixture_model, bytes);
		pem_model__add_text(model, copy, bytes, "cut", NULL);
		free(copy);
	}
	assert_true(pem_model__count(model) <= 9);
	pem_model__free(model);
}

static void counters_have_the_names_of_perf_and_vendors(void **state)
{
	static const char text[] =
		"pem-model\t2\n"
		"event\t00000301\tHW::HWPerf::DataTLBMisses\tHW\tHWPerf\tDataTLBMisses\t1\tinfo"
		"\tcounter\t\t-\tperf\tperf::PERF_COUNT_HW_CACHE_DTLB:READ:MISS|arm_n1::L1D_TLB_"
		"REFILL\t16\t16\t1\t0\t\t\ta counter\n"
		"field\tvalue\tuint64\t-\t10\tvalue\t8\t1\tmisses\t-\t0\tso far\n";
	static const char *const names[] = {
		"dtlb_misses",
		"dTLB-misses",
		"l1d-tlb-refill",
		"L1D_TLB_REFILL",
		"arm_n1::L1D_TLB_REFILL",
		"datatlbmisses",
		"perf::PERF_COUNT_HW_CACHE_DTLB:READ:MISS",
	};
	static const char *const others[] = {
		"dtlb",
		"dtlb-misse",
		"dtlb-missess",
		"n1::L1D_TLB_REFILL",
		"arm_n2::L1D_TLB_REFILL",
		"l1d",
		"-",
		"_",
		"",
		"::",
		"perf::",
	};
	struct pem_model *model = new_model(text);
	const struct pem_event *e = pem_model__by_id(model, 0x301);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!pem_event__matches(e, names[i]))
			fail_msg("%s", names[i]);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (pem_event__matches(e, others[i]))
			fail_msg("%s", others[i]);
	pem_model__free(model);
	model = new_model(fixture_model); /* an event of the kernel is no counter */
	assert_false(pem_event__matches(pem_model__by_id(model, EVENT_FAULT), "page-fault"));
	assert_false(pem_event__matches(pem_model__by_id(model, EVENT_FAULT), "pagefault"));
	pem_model__free(model);
}

static void matches_patterns(void **state)
{
	struct pem_model *model = new_model(fixture_model);
	const struct pem_event *e = pem_model__by_id(model, EVENT_FAULT); /* OS::Mem::PageFault */

	(void)state;
	assert_true(pem_event__matches(e, "OS"));
	assert_true(pem_event__matches(e, "Mem"));
	assert_true(pem_event__matches(e, "Mem::PageFault"));
	assert_true(pem_event__matches(e, "OS::Mem::PageFault"));
	assert_true(pem_event__matches(e, "PageFault"));
	assert_true(pem_event__matches(e, "OS::*"));
	assert_true(pem_event__matches(e, "*Fault"));
	assert_true(pem_event__matches(e, "Mem::*"));
	assert_true(pem_event__matches(e, "OS::???::Page*t"));
	assert_true(pem_event__matches(e, "*"));
	assert_true(pem_event__matches(e, "Page*"));
	assert_true(pem_event__matches(e, "P?geF*"));
	assert_true(pem_event__matches(e, "Page*@1"));
	assert_true(pem_event__matches(e, "M*m"));
	assert_false(pem_event__matches(e, "Page*@2"));
	assert_false(pem_event__matches(e, "page*"));
	assert_false(pem_event__matches(e, "age*"));
	assert_false(pem_event__matches(e, "Page*::*"));
	assert_false(pem_event__matches(e, "OS::Page*"));
	assert_true(pem_event__matches(e, "os"));
	assert_true(pem_event__matches(e, "OS::Mem"));
	assert_true(pem_event__matches(e, "os::Mem"));
	assert_true(pem_event__matches(e, "os::Mem::Page*"));
	assert_true(pem_event__matches(e, "PageFault@1"));
	assert_true(pem_event__matches(e, "OS::Mem::*@1"));
	assert_false(pem_event__matches(e, "PageFault@2"));
	assert_false(pem_event__matches(e, "PageFault@"));
	assert_false(pem_event__matches(e, "PageFault@1x"));
	assert_false(pem_event__matches(e, "@1"));
	assert_false(pem_event__matches(e, "OS::"));
	assert_false(pem_event__matches(e, "OS::Me"));
	assert_false(pem_event__matches(e, "APP::Mem"));
	assert_false(pem_event__matches(e, "mem"));
	assert_false(pem_event__matches(e, "APP::*"));
	assert_false(pem_event__matches(e, "*Faul"));
	assert_false(pem_event__matches(e, "Fault"));
	assert_false(pem_event__matches(e, ""));
	assert_false(pem_event__matches(e, "OS::Mem::PageFault?"));
	assert_false(pem_event__matches(e, "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"));
	pem_model__free(model);
}

static void measures_records(void **state)
{
	struct pem_model *model = new_model(fixture_model);
	const struct pem_event *e = pem_model__by_id(model, EVENT_MIXED);
	uint8_t data[88] = {0};
	uint32_t count = 2;
	size_t i;

	(void)state;
	memcpy(data + 12, &count, sizeof(count));
	memcpy(data + 24, "abc", 4);
	/* 24 fixed, 4 of text, 4 to align, 2 * 8 of list */
	assert_int_equal(pem_event__record_bytes(e, data, sizeof(data)), 48);
	assert_int_equal(pem_event__record_bytes(e, data, 48), 48);
	for (i = 0; i < 48; i++)
		assert_int_equal(pem_event__record_bytes(e, data, i), -EINVAL);
	count = 0xffffffff;
	memcpy(data + 12, &count, sizeof(count));
	assert_int_equal(pem_event__record_bytes(e, data, sizeof(data)), -EINVAL);
	count = 0;
	memcpy(data + 12, &count, sizeof(count));
	memset(data + 24, 'x', sizeof(data) - 24);
	assert_int_equal(pem_event__record_bytes(e, data, sizeof(data)), -EINVAL);
	pem_model__free(model);
}

static void knows_its_catalogue(void **state)
{
	struct pem_model *model = pem_model__new();
	struct pem_error error = {""};
	char *text;
	int count;

	(void)state;
	count = pem_model__add_catalogue(model, &error);
	if (count < 0)
		fail_msg("%s", error.text);
	assert_true(count > 0);
	assert_int_equal(pem_model__count(model), count);
	text = pem_model__to_text(model);
	assert_int_equal(pem_model__add_text(model, text, strlen(text), "itself", &error), 0);
	free(text);
	pem_model__free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_cell),
		cmocka_unit_test(writes_back_the_same_text),
		cmocka_unit_test(keeps_events_where_they_are_when_others_come),
		cmocka_unit_test(skips_what_is_there_and_refuses_what_differs),
		cmocka_unit_test(keeps_one_event_of_each_version_of_a_name),
		cmocka_unit_test(leaves_the_model_unchanged_on_failure),
		cmocka_unit_test(refuses_bad_text_with_a_sentence),
		cmocka_unit_test(accepts_the_good_twin_of_the_bad_texts),
		cmocka_unit_test(refuses_a_nul_byte),
		cmocka_unit_test(survives_every_truncation),
		cmocka_unit_test(counters_have_the_names_of_perf_and_vendors),
		cmocka_unit_test(matches_patterns),
		cmocka_unit_test(measures_records),
		cmocka_unit_test(knows_its_catalogue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
