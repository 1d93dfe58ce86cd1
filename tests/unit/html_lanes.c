/* SPDX-License-Identifier: MIT */
/*
 * html_lanes.c - which of very many threads have lanes on the page
 *
 * Not here: what a lane shows (tests/e2e/export_page.py).
 */
#include "viz-export/html_lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 1000000u
#define BUSY_EVERY 20000u /* one thread of so many is busier than the others */
#define SPAN_NS 1000u

static struct pem_html_lanes lanes;
static struct pem_pass_thread *threads;

static int set_up(void **state)
{
	uint32_t i;

	(void)state;
	pem_html_lanes__init(&lanes, 100, (uint64_t)THREADS * SPAN_NS / 100);
	threads = calloc(THREADS, sizeof(*threads));
	for (i = 0; threads && i < THREADS; i++)
		threads[i].number = i;
	return threads ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	pem_html_lanes__free(&lanes);
	free(threads);
	return 0;
}

/* A thread runs for a time. */
static void run(uint32_t number, uint64_t ran_ns)
{
	struct pem_span span = {.thread = &threads[number],
				.state = PEM_THREAD_RUNNING,
				.begin_ns = (uint64_t)number * SPAN_NS,
				.end_ns = (uint64_t)number * SPAN_NS + ran_ns};

	assert_int_equal(pem_html_lanes__span(&lanes, &span), 0);
}

static int has_lane(uint32_t number)
{
	uint32_t i;

	for (i = 0; i < lanes.chosen_count; i++)
		if (lanes.chosen[i]->thread == &threads[number])
			return 1;
	return 0;
}

/* If each room for lanes were found by a walk over all threads, this would take some 20 s. */
static void the_busiest_of_a_million(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < THREADS; i++) {
		run(i, i % BUSY_EVERY == 7 ? 500 + i / BUSY_EVERY : 10);
		assert_in_range(lanes.held_count, 1, PEM_HTML_LANES_HELD_MAX);
	}
	assert_int_equal(pem_html_lanes__finish(&lanes), 0);
	assert_int_equal(lanes.chosen_count, PEM_HTML_LANES_MAX);
	assert_int_equal(lanes.left_out, THREADS - PEM_HTML_LANES_MAX);
	for (i = 7; i < THREADS; i += BUSY_EVERY)
		assert_true(has_lane(i));
}

/* Threads that come when many others were busy for long get their time, too. */
static void new_threads_have_time(void **state)
{
	const uint32_t first = PEM_HTML_LANES_HELD_MAX, count = first + 4000, later = 200;
	uint32_t i;

	(void)state;
	for (i = 0; i < count; i++) {
		run(i, i < first ? 1000 + i : 1);
		if (i >= first + later && i % 100 == 0)
			run(i - later, 5000);
	}
	assert_int_equal(pem_html_lanes__finish(&lanes), 0);
	for (i = first + later; i < count; i++)
		assert_true(i % 100 != 0 || has_lane(i - later));
	assert_int_equal(lanes.left_out, count - PEM_HTML_LANES_MAX);
}

/* What a thread does whose lane was dropped makes no lane again, and none of another thread's. */
static void dropped_lanes_stay_so(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < 2 * PEM_HTML_LANES_HELD_MAX; i++)
		run(i, 100 + i);
	assert_ptr_equal(lanes.lane[0], &lanes.dropped);
	run(0, SPAN_NS);
	assert_ptr_equal(lanes.lane[0], &lanes.dropped);
	assert_int_equal(lanes.dropped.busy_ns, 0);
	assert_int_equal(pem_html_lanes__finish(&lanes), 0);
	assert_int_equal(lanes.left_out, 2 * PEM_HTML_LANES_HELD_MAX - PEM_HTML_LANES_MAX);
	assert_false(has_lane(0));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_busiest_of_a_million),
		TEST(new_threads_have_time),
		TEST(dropped_lanes_stay_so),
	};

	return cmocka_run_group_tests_name("html_lanes", tests, NULL, NULL);
}
