// SPDX-License-Identifier: MIT
/* page_size_hits.c - which timer samples were at chosen data (agents/page-size/program/hits.c) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "program/program.h"

#include <stdlib.h>
#include <string.h>

#define PLACE(pid, start, end)                                                                     \
	"{\"pid\": " #pid ", \"place\": \"stack\", \"start\": " #start ", \"end\": " #end "}\n"
#define COUNT(text, ...)                                                                           \
	count(text, (struct timer_address[]){__VA_ARGS__},                                         \
	      sizeof((struct timer_address[]){__VA_ARGS__}) / sizeof(struct timer_address))

static struct page_hits count(const char *text, struct timer_address *addresses, size_t n)
{
	const struct timer_result samples = {.addresses = addresses, .count = n, .samples = n};
	struct page_hits hits;
	FILE *report = tmpfile();

	assert_non_null(report);
	fputs(text, report);
	page_hits__count(report, &samples, &hits);
	fclose(report);
	return hits;
}

static void samples_between_start_and_end_are_hits(void **state)
{
	struct page_hits hits =
		COUNT(PLACE(1, 100, 200), {1, 99}, {1, 100}, {1, 199}, {1, 200}, {1, 5000});

	(void)state;
	assert_int_equal(hits.samples, 5);
	assert_int_equal(hits.hits, 2);
}

static void a_sample_in_two_places_is_one_hit(void **state)
{
	struct page_hits hits = COUNT(PLACE(1, 100, 200) PLACE(1, 150, 300), {1, 160}, {1, 250});

	(void)state;
	assert_int_equal(hits.samples, 2);
	assert_int_equal(hits.hits, 2);
}

static void each_process_has_places_of_its_own(void **state)
{
	struct page_hits hits = COUNT(PLACE(1, 100, 200) PLACE(2, 300, 400), {1, 150}, {1, 350},
				      {2, 350}, {2, 150});

	(void)state;
	assert_int_equal(hits.samples, 4);
	assert_int_equal(hits.hits, 2);
}

static void of_a_process_that_reported_nothing_nothing_is_known(void **state)
{
	struct page_hits hits = COUNT(PLACE(1, 100, 200), {2, 150}, {2, 5000});

	(void)state;
	assert_int_equal(hits.samples, 0);
	hits = COUNT("", {1, 1});
	assert_int_equal(hits.samples, 0);
}

static void a_process_that_reached_no_site_is_elsewhere(void **state)
{
	struct page_hits hits = COUNT("{\"pid\": 7, \"unused\": true}\n", {7, 0}, {7, 150});

	(void)state;
	assert_int_equal(hits.samples, 2);
	assert_int_equal(hits.hits, 0);
}

static void lines_that_are_none_count_for_nothing(void **state)
{
	struct page_hits hits = COUNT(
		"no line\n[]\n{}\n{\"pid\": \"x\", \"start\": 1, \"end\": 200}\n"
		"{\"pid\": 1, \"start\": -5, \"end\": 200}\n{\"pid\": 1, \"start\": 5}\n"
		"{\"pid\": 1, \"site\": \"stack\", \"large_bytes\": 4096}\n" PLACE(1, 300, 200)
			PLACE(1, 400, 500) "{\"pid\": 1, \"start\": 1, \"end\": 9",
		{1, 100}, {1, 250}, {1, 450});

	(void)state;
	assert_int_equal(hits.samples, 3);
	assert_int_equal(hits.hits, 1);
}

static void there_may_be_no_report_and_no_samples(void **state)
{
	struct timer_address one = {1, 1};
	struct timer_result samples = {.addresses = &one, .count = 1};
	struct page_hits hits;

	(void)state;
	page_hits__count(NULL, &samples, &hits);
	assert_int_equal(hits.samples, 0);
	memset(&samples, 0, sizeof(samples));
	page_hits__count(NULL, &samples, &hits);
	assert_int_equal(hits.samples, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_between_start_and_end_are_hits),
		cmocka_unit_test(a_sample_in_two_places_is_one_hit),
		cmocka_unit_test(each_process_has_places_of_its_own),
		cmocka_unit_test(of_a_process_that_reported_nothing_nothing_is_known),
		cmocka_unit_test(a_process_that_reached_no_site_is_elsewhere),
		cmocka_unit_test(lines_that_are_none_count_for_nothing),
		cmocka_unit_test(there_may_be_no_report_and_no_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
