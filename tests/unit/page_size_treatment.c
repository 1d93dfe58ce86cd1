// SPDX-License-Identifier: MIT
/* page_size_treatment.c - what a run with directives reported
 * (agents/page-size/program/treatment.c) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "program/program.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct page_treatment treatment;
static struct pem_error error;

/* What a run had of so many planned bytes. */
static bool is_short(uint64_t planned, uint64_t large, uint64_t refused)
{
	const struct page_treatment t = {.planned_bytes = planned};
	const struct page_outcome outcome = {.large_bytes = large, .short_bytes = refused};

	return page_treatment__is_short(&t, &outcome);
}

static void less_than_half_of_what_was_asked_for_is_short(void **state)
{
	(void)state;
	assert_true(is_short(100, 0, 100));
	assert_true(is_short(100, 49, 51));
	assert_false(is_short(100, 50, 50));
	/* An input that needs little, and a site that asks again and again. */
	assert_false(is_short(1000, 10, 0));
	assert_true(is_short(1000, 10, 90));
	assert_false(is_short(100, 60, 100000));
	/* A run that asks for nothing. */
	assert_false(is_short(100, 0, 0));
}

static struct page_outcome outcome_of(const char *report)
{
	struct page_outcome outcome;
	FILE *file;

	assert_int_equal(page_treatment__begin(&treatment, &error), 0);
	file = fopen(treatment.report, "a");
	assert_non_null(file);
	fputs(report, file);
	fclose(file);
	page_treatment__outcome(&treatment, &outcome);
	page_treatment__end(&treatment);
	return outcome;
}

#define LINE(pid, site, large, refused, reason)                                                    \
	"{\"pid\": " #pid ", \"site\": \"" site "\", \"large_bytes\": " #large                     \
	", \"refused_bytes\": " #refused ", \"reason\": \"" reason "\"}\n"

static void processes_and_sites_are_added_up(void **state)
{
	const struct page_outcome outcome = outcome_of(LINE(1, "stack", 10, 0, "") LINE(
		2, "stack", 20, 5, "budget") LINE(1, "data 1", 40, 3, "supply"));

	(void)state;
	assert_int_equal(outcome.large_bytes, 70);
	assert_int_equal(outcome.refused_bytes, 8);
	assert_string_equal(outcome.error, "budget");
}

static void of_a_process_and_a_site_the_last_line_counts(void **state)
{
	const struct page_outcome outcome = outcome_of(LINE(1, "stack", 10, 6, "budget") LINE(
		2, "stack", 20, 0, "") LINE(1, "stack", 11, 4, "budget"));

	(void)state;
	assert_int_equal(outcome.large_bytes, 31);
	assert_int_equal(outcome.refused_bytes, 4);
}

static void only_reasons_that_pass_make_a_run_short(void **state)
{
	const struct page_outcome outcome = outcome_of(
		LINE(1, "stack", 0, 1, "budget") LINE(1, "data 1", 0, 20, "supply")
			LINE(1, "data 2", 0, 300, "limit of the control group")
				LINE(1, "data 3", 0, 4000, "kernel")
					LINE(1, "data 4", 0, 50000, "account")
						LINE(1, "data 5", 0, 600000, "seccomp")
							LINE(1, "data 6", 0, 600000, "signal"));

	(void)state;
	assert_int_equal(outcome.short_bytes, 54321);
	assert_int_equal(
		outcome_of(LINE(1, "stack", 0, 9, "supply") LINE(1, "stack", 0, 4, "supply"))
			.short_bytes,
		4);
}

#define KILLED(pid, granted, large)                                                                \
	"{\"pid\": " #pid ", \"site\": \"stack\", \"granted_bytes\": " #granted                    \
	", \"large_bytes\": " #large ", \"ended\": false}\n"

static void of_a_killed_process_what_was_granted_counts(void **state)
{
	struct page_outcome outcome =
		outcome_of(KILLED(1, 100, 30) KILLED(2, 8, 1) LINE(2, "stack", 5, 0, ""));

	(void)state;
	assert_int_equal(outcome.large_bytes, 105);
	assert_true(outcome.killed);
	outcome = outcome_of(KILLED(2, 8, 1) LINE(2, "stack", 5, 0, ""));
	assert_int_equal(outcome.large_bytes, 5);
	assert_false(outcome.killed);
	/* It has given back what it had. */
	assert_int_equal(outcome_of(KILLED(1, 0, 30)).large_bytes, 30);
}

static void costs_of_directives_are_added_up(void **state)
{
	struct pem_db_directive all[3] = {{.size = sizeof(all[0]), .cost_bytes = 2 << 20},
					  {.size = sizeof(all[0]), .cost_bytes = -5},
					  {.size = sizeof(all[0]), .cost_bytes = 4 << 20}};

	(void)state;
	assert_int_equal(page_treatment__planned(all, 3), 6 << 20);
	all[1].cost_bytes = INT64_MAX;
	assert_int_equal(page_treatment__planned(all, 3), 6 << 20);
}

static void what_is_no_line_counts_for_nothing(void **state)
{
	const struct page_outcome outcome = outcome_of(
		"no line\n[]\n7\n{}\n" LINE(1, "stack", -10, -1, "") LINE(3, "stack", 9e18, 0, "")
			LINE(2, "stack", 20, 0, "") "{\"pid\": 4, \"error\": \"a\\u001b[2Jb\"}\n"
						    "{\"pid\": 1, \"large_bytes\": 5");

	(void)state;
	assert_int_equal(outcome.large_bytes, 20);
	assert_int_equal(outcome.refused_bytes, 0);
	assert_null(strchr(outcome.error, 27));
	assert_int_equal(outcome.error[0], 'a');
}

static void a_report_that_the_command_replaces_is_not_followed(void **state)
{
	struct page_outcome outcome;

	(void)state;
	assert_int_equal(page_treatment__begin(&treatment, &error), 0);
	assert_int_equal(unlink(treatment.report), 0);
	/* A reader would wait for ever. */
	assert_int_equal(mkfifo(treatment.report, 0600), 0);
	page_treatment__outcome(&treatment, &outcome);
	assert_int_equal(outcome.large_bytes, 0);
	page_treatment__end(&treatment);
}

static void the_folder_goes_with_all_that_is_in_it(void **state)
{
	char folder[sizeof(treatment.folder)], path[PATH_MAX];
	FILE *file;

	(void)state;
	assert_int_equal(page_treatment__begin(&treatment, &error), 0);
	strcpy(folder, treatment.folder);
	snprintf(path, sizeof(path), "%s/directives.account", folder);
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	page_treatment__end(&treatment);
	assert_int_equal(access(folder, F_OK), -1);
	/* Once more is no harm. */
	page_treatment__end(&treatment);
}

static void directives_that_are_none_are_not_written(void **state)
{
	struct pem_db_directive d = {.size = sizeof(d), .subject = "data 00000000000000ab"};

	(void)state;
	assert_int_equal(page_treatment__begin(&treatment, &error), 0);
	assert_int_equal(page_treatment__add(&treatment, &d, 1), -EBADMSG);
	strcpy(d.text,
	       "page_size=2097152 bytes=1 most=0 share=0.1 chained=0 saved_ms=1 name=static data");
	assert_int_equal(page_treatment__add(&treatment, &d, 1), 0);
	assert_int_equal(treatment.sites, 1);
	strcpy(d.subject, "data 00000000000000ab+1");
	assert_int_equal(page_treatment__add(&treatment, &d, 1), -EBADMSG);
	/* A directive of its own would come behind it. */
	strcpy(d.subject, "stack\nreport /tmp/x");
	assert_int_equal(page_treatment__add(&treatment, &d, 1), -EBADMSG);
	assert_int_equal(treatment.sites, 1);
	page_treatment__end(&treatment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_and_sites_are_added_up),
		cmocka_unit_test(of_a_process_and_a_site_the_last_line_counts),
		cmocka_unit_test(less_than_half_of_what_was_asked_for_is_short),
		cmocka_unit_test(only_reasons_that_pass_make_a_run_short),
		cmocka_unit_test(of_a_killed_process_what_was_granted_counts),
		cmocka_unit_test(costs_of_directives_are_added_up),
		cmocka_unit_test(what_is_no_line_counts_for_nothing),
		cmocka_unit_test(a_report_that_the_command_replaces_is_not_followed),
		cmocka_unit_test(the_folder_goes_with_all_that_is_in_it),
		cmocka_unit_test(directives_that_are_none_are_not_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
