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

#define COMMAND(pid) "{\"pid\": " #pid ", \"command\": true, \"maps\": false}\n"
#define MAPPER(pid) "{\"pid\": " #pid ", \"command\": true, \"maps\": true}\n"
#define COMPLETE(pid) "{\"pid\": " #pid ", \"complete\": true}\n"
#define EXTENT(pid, start, end)                                                                    \
	"{\"pid\": " #pid ", \"extent\": 0, \"start\": " #start ", \"end\": " #end "}\n"
#define COUNT(text, ...)                                                                           \
	count(text, (struct timer_address[]){__VA_ARGS__},                                         \
	      sizeof((struct timer_address[]){__VA_ARGS__}) / sizeof(struct timer_address))

static struct page_hits count(const char *text, struct timer_address *addresses, size_t n)
{
	const struct timer_result samples = {
		.addresses = addresses, .count = n, .seconds_each = 0.5};
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
	struct page_hits hits = COUNT(COMMAND(1) EXTENT(1, 100, 200), {1, 99}, {1, 100}, {1, 199},
				      {1, 200}, {1, 5000});

	(void)state;
	assert_int_equal(hits.samples, 5);
	assert_int_equal(hits.hits, 2);
	assert_true(hits.seconds == 2.5);
}

static void a_sample_in_two_extents_is_one_hit(void **state)
{
	struct page_hits hits =
		COUNT(COMMAND(1) EXTENT(1, 100, 200) EXTENT(1, 150, 300), {1, 160}, {1, 250});

	(void)state;
	assert_int_equal(hits.samples, 2);
	assert_int_equal(hits.hits, 2);
}

static void only_the_command_counts_and_none_of_its_children(void **state)
{
	struct page_hits hits = COUNT(COMMAND(1) EXTENT(1, 100, 200) EXTENT(2, 300, 400), {1, 150},
				      {1, 350}, {2, 350}, {2, 150});

	(void)state;
	assert_int_equal(hits.samples, 2);
	assert_int_equal(hits.hits, 1);
	assert_true(hits.seconds == 1);
}

static void samples_without_an_address_stand_for_time(void **state)
{
	struct page_hits hits = COUNT(COMMAND(1) EXTENT(1, 100, 200), {1, 0}, {1, 0}, {1, 150});

	(void)state;
	assert_int_equal(hits.samples, 1);
	assert_true(hits.seconds == 1.5);
}

static void what_it_executes_begins_anew(void **state)
{
	struct page_hits hits = COUNT(COMMAND(1) EXTENT(1, 100, 200) COMMAND(1) EXTENT(1, 300, 400),
				      {1, 150}, {1, 350}, {1, 360});

	(void)state;
	assert_int_equal(hits.samples, 3);
	assert_int_equal(hits.hits, 2);
}

static void without_the_command_s_report_nothing_is_known(void **state)
{
	(void)state;
	assert_true(COUNT(EXTENT(1, 100, 200), {1, 150}).seconds == 0);
	assert_true(COUNT("", {1, 1}).seconds == 0);
}

static void mappings_are_known_when_all_were_told(void **state)
{
	struct page_hits hits = COUNT(MAPPER(1) EXTENT(1, 100, 200), {1, 150});

	(void)state;
	assert_true(hits.seconds == 0);
	hits = COUNT(MAPPER(1) EXTENT(1, 100, 200) COMPLETE(2), {1, 150});
	assert_true(hits.seconds == 0);
	hits = COUNT(MAPPER(1) EXTENT(1, 100, 200) COMPLETE(1), {1, 150});
	assert_int_equal(hits.hits, 1);
	/* Then it executed another program, which was killed. */
	hits = COUNT(MAPPER(1) EXTENT(1, 100, 200) COMPLETE(1) MAPPER(1), {1, 150});
	assert_true(hits.seconds == 0);
}

static void lines_that_are_none_count_for_nothing(void **state)
{
	struct page_hits hits = COUNT(
		"no line\n[]\n{}\n{\"command\": true}\n" COMMAND(
			1) "{\"pid\": \"x\", \"start\": 1, \"end\": 200}\n"
			   "{\"pid\": 1, \"start\": -5, \"end\": 200}\n{\"pid\": 1, \"start\": 5}\n"
			   "{\"pid\": 1, \"site\": \"stack\", \"large_bytes\": 4096}\n" EXTENT(
				   1, 300, 200)
				   EXTENT(1, 400, 500) "{\"pid\": 1, \"start\": 1, \"end\": 9",
		{1, 100}, {1, 250}, {1, 450});

	(void)state;
	assert_int_equal(hits.samples, 3);
	assert_int_equal(hits.hits, 1);
}

/* A report of so many extents of no sample. */
static struct page_hits count_extents(unsigned extents)
{
	static const char line[] = EXTENT(1, 300, 400);
	char *text = malloc(sizeof(COMMAND(1)) + extents * sizeof(line)), *end = text;
	struct page_hits hits;
	unsigned i;

	assert_non_null(text);
	end = stpcpy(end, COMMAND(1));
	for (i = 0; i < extents; i++)
		end = stpcpy(end, line);
	hits = COUNT(text, {1, 150});
	free(text);
	return hits;
}

static void of_a_report_that_is_too_long_nothing_is_known(void **state)
{
	(void)state;
	assert_int_equal(count_extents(4096).samples, 1);
	assert_true(count_extents(4097).seconds == 0);
}

/* Lines of nobody, 64 bytes each, and what the command said behind them. */
static void what_is_behind_16_mib_is_not_known(void **state)
{
	size_t bytes = (16u << 20) + 4096, i;
	char *text = malloc(bytes + 256);
	struct page_hits hits;

	(void)state;
	assert_non_null(text);
	memset(text, ' ', bytes);
	for (i = 63; i < bytes; i += 64)
		text[i] = '\n';
	strcpy(text + bytes, COMMAND(1) EXTENT(1, 100, 200));
	hits = COUNT(text, {1, 150});
	assert_true(hits.seconds == 0);
	hits = COUNT(text + bytes / 2, {1, 150});
	assert_int_equal(hits.hits, 1);
	free(text);
}

static void there_may_be_no_report_and_no_samples(void **state)
{
	struct timer_address one = {1, 1};
	struct timer_result samples = {.addresses = &one, .count = 1, .seconds_each = 1};
	struct page_hits hits;

	(void)state;
	page_hits__count(NULL, &samples, &hits);
	assert_true(hits.seconds == 0);
	memset(&samples, 0, sizeof(samples));
	page_hits__count(NULL, &samples, &hits);
	assert_true(hits.seconds == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_between_start_and_end_are_hits),
		cmocka_unit_test(a_sample_in_two_extents_is_one_hit),
		cmocka_unit_test(only_the_command_counts_and_none_of_its_children),
		cmocka_unit_test(samples_without_an_address_stand_for_time),
		cmocka_unit_test(what_it_executes_begins_anew),
		cmocka_unit_test(without_the_command_s_report_nothing_is_known),
		cmocka_unit_test(mappings_are_known_when_all_were_told),
		cmocka_unit_test(lines_that_are_none_count_for_nothing),
		cmocka_unit_test(of_a_report_that_is_too_long_nothing_is_known),
		cmocka_unit_test(what_is_behind_16_mib_is_not_known),
		cmocka_unit_test(there_may_be_no_report_and_no_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
