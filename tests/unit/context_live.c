/* SPDX-License-Identifier: MIT */
/*
 * context_live.c - a live pass, whose records the caller hands over, tells what a pass over a trace
 * of the same records does
 */
#include "context_fixture.h"

#include <pem/pem.h>

#include <errno.h>

static struct pem_pass *live;
static struct pem_around beside = {.size = sizeof(beside)};
static uint64_t offset; /* the live pass's times begin at its first record */

static void start_both(void)
{
	struct pem_pass_options options = {.size = sizeof(options), .command_pid = 50};
	struct pem_error error = {""};

	start_pass();
	offset = PEM_TIME_UNKNOWN;
	live = pem_pass__new_live(pem_trace__model(trace), &options, &error);
	if (!live)
		fail_msg("%s", error.text);
}

/* A time of the trace as the live pass has it. The trace's clock ticks once a nanosecond. */
static uint64_t of_live(uint64_t ns)
{
	return (ns - offset) * 1000000000u / pem_clock__hz();
}

static void same_thread(const struct pem_pass_thread *a, const struct pem_pass_thread *b)
{
	assert_int_equal(a ? a->tid : 0, b ? b->tid : 0);
	assert_int_equal(a ? a->state : 0, b ? b->state : 0);
}

static void same_spans(void)
{
	size_t i;

	assert_int_equal(around.span_count, beside.span_count);
	for (i = 0; i < around.span_count; i++) {
		const struct pem_span *a = &around.spans[i], *b = &beside.spans[i];

		same_thread(a->thread, b->thread);
		same_thread(a->waker, b->waker);
		assert_int_equal(a->state, b->state);
		assert_int_equal(a->woken_by, b->woken_by);
		assert_int_equal(of_live(a->begin_ns), b->begin_ns);
		assert_int_equal(of_live(a->end_ns), b->end_ns);
		assert_int_equal(!a->interval, !b->interval);
	}
}

static void same_ends(void)
{
	size_t i;

	assert_int_equal(around.ended_count, beside.ended_count);
	for (i = 0; i < around.ended_count; i++) {
		const struct pem_interval *a = around.ended[i].interval;
		const struct pem_interval *b = beside.ended[i].interval;

		assert_int_equal(around.ended[i].outcome, beside.ended[i].outcome);
		assert_int_equal(of_live(around.ended[i].end_ns), beside.ended[i].end_ns);
		assert_int_equal(of_live(a->begin.time_ns), b->begin.time_ns);
		assert_string_equal(a->file ? a->file->path : "", b->file ? b->file->path : "");
	}
}

/* Hand the trace's records to the live pass, up to the one at T(n). */
static void go_both(int n)
{
	struct pem_record handed;
	struct pem_error error = {"the end"};

	do {
		if (pem_pass__next(pass, &record, &around, &error) != 1)
			fail_msg("at %d: %s", n, error.text);
		if (offset == PEM_TIME_UNKNOWN)
			offset = record.time_ns;
		handed = record;
		handed.time_ns = handed.stream = 0; /* as a callback has it */
		if (pem_pass__take(live, &handed, &beside, &error))
			fail_msg("at %d: %s", n, error.text);
		same_thread(around.thread, beside.thread);
		same_spans();
		same_ends();
	} while (record.clock < T(n));
}

static void end_both(void)
{
	struct pem_error error = {""};

	assert_int_equal(pem_pass__next(pass, &record, &around, &error), 0);
	assert_int_equal(pem_pass__end(live, &beside, &error), 0);
	same_spans();
	same_ends();
	pem_pass__free(live);
	end_pass();
}

static void it_tells_the_same_as_a_pass_over_a_trace(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_text(T(11), EVENT_FILE, 4, "pipe:[77]");
	packet_pair(T(12), EVENT_SYSTEM_CALL, 0, 4);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(25), EVENT_WAKING, 50, 0);
	packet_pair(T(26), EVENT_RUNNABLE, 50, 0);
	packet_leave(T(40), 51, 0, 50, 50);
	packet_pair(T(42), EVENT_RESULT, 0, 100);
	packet_start(T(45), 60, 60, 50);
	packet_leave(T(50), 50, 1, 60, 60);
	packet_pair(T(52), EVENT_SYSTEM_CALL, 0, 4);
	packet_write(&packet, &fixture, "k_0");
	start_both();
	go_both(42);
	assert_int_equal(beside.ended_count, 1);
	assert_string_equal(beside.ended[0].interval->file->path, "pipe:[77]");
	go_both(52);
	end_both();
}

/* A thread sleeps in a call, records are lost, and then it runs: when it woke is unknown. */
static void after_a_loss_nothing_doubtful_is_claimed(void **state)
{
	struct pem_pass_unknown unknown = {.size = sizeof(unknown)};
	size_t i;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_pair(T(12), EVENT_SYSTEM_CALL, 0, 4);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_leave(T(40), 51, 0, 50, 50);
	packet_pair(T(42), EVENT_RESULT, 0, 100);
	packet_write(&packet, &fixture, "k_0");
	start_both();
	go_both(20);
	assert_int_equal(pem_pass__lose(live), 0);
	go_to(40);
	assert_int_equal(pem_pass__take(live, &record, &beside, NULL), 0);
	for (i = 0; i < beside.span_count; i++)
		assert_true(beside.spans[i].end_ns <= of_live(20));
	go_to(42);
	assert_int_equal(pem_pass__take(live, &record, &beside, NULL), 0);
	for (i = 0; i < beside.ended_count; i++)
		assert_int_equal(beside.ended[i].outcome, PEM_INTERVAL_LOST);
	pem_pass__unknown(live, &unknown);
	assert_int_equal(unknown.losses, 1);
	pem_pass__free(live);
	end_pass();
}

static void names_are_told_by_the_caller_and_by_records(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_pair(T(15), EVENT_SYSTEM_CALL, 0, 4);
	packet_text(T(20), EVENT_PROGRAM, 50, "/bin/sort");
	packet_write(&packet, &fixture, "k_0");
	start_both();
	assert_int_equal(pem_pass__call(live, 50, 0, "/usr/bin/bash"), 0);
	go_both(15);
	assert_string_equal(beside.thread->process->name, "bash");
	go_both(20);
	assert_string_equal(beside.thread->process->name, "sort");
	end_both();
}

static void it_refuses_what_a_callback_never_hands_over(void **state)
{
	struct pem_error error = {""};
	struct pem_record none = {.size = sizeof(none)};
	struct pem_event stranger = {.id = 0x7777, .name = "APP::No::Such"};

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_write(&packet, &fixture, "k_0");
	start_both();
	go_both(10);
	assert_int_equal(pem_pass__take(live, &none, &beside, &error), -EINVAL);
	record.event = &stranger;
	assert_int_equal(pem_pass__take(live, &record, &beside, &error), -EINVAL);
	assert_non_null(strstr(error.text, "APP::No::Such"));
	assert_int_equal(pem_pass__take(pass, &record, &beside, &error), -EINVAL);
	assert_int_equal(pem_pass__lose(pass), -EINVAL);
	assert_int_equal(pem_pass__call(pass, 50, 0, "sh"), -EINVAL);
	assert_null(pem_pass__new_live(NULL, NULL, &error));
	end_both();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(it_tells_the_same_as_a_pass_over_a_trace),
		TEST(after_a_loss_nothing_doubtful_is_claimed),
		TEST(names_are_told_by_the_caller_and_by_records),
		TEST(it_refuses_what_a_callback_never_hands_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
