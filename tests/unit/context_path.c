/* SPDX-License-Identifier: MIT */
/*
 * context_path.c - critical paths of small schedules that are known
 *
 * Not here: paths of random schedules, compared with a search backwards (context_truth.c).
 */
#include "context_fixture.h"

#include <stdbool.h>

static const struct pem_path_part *last_part;

/* The next part of a path, from its end on. */
static void expect_part(uint32_t tid, enum pem_thread_state state, int begin, int end)
{
	assert_non_null(last_part);
	if (last_part->thread->tid != tid || last_part->state != state ||
	    last_part->begin_ns != (uint64_t)begin || last_part->end_ns != (uint64_t)end)
		fail_msg("thread %u, state %d, %d to %d", last_part->thread->tid,
			 (int)last_part->state, (int)last_part->begin_ns, (int)last_part->end_ns);
	last_part = last_part->before;
}

/* The command, process 50, has ended. */
static int set_up_path(void **state)
{
	set_up(state);
	context_model_of(&fixture, "exit_status=0\n");
	return 0;
}

/* Read the whole trace of one CPU. */
static void read_all(const struct pem_pass_options *options)
{
	struct pem_error error = {""};
	int rc;

	packet_write(&packet, &fixture, "k_0");
	trace = open_trace();
	pass = pem_pass__new(trace, options, &error);
	assert_non_null(pass);
	do {
		rc = pem_pass__next(pass, &record, &around, &error);
	} while (rc == 1);
	assert_int_equal(rc, 0);
	last_part = pem_pass__command_path(pass);
}

static const struct pem_pass_options with_paths = {.size = sizeof(with_paths), .has_paths = 1};

/* 50 starts 51, sleeps, and is woken by it. */
static void a_path_goes_through_who_woke_and_who_started(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_start(T(15), 50, 51, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(40), EVENT_WAKING_HOW, 50, 0);
	packet_pair(T(41), EVENT_RUNNABLE, 50, 0);
	packet_leave(T(45), 51, 1, 50, 50);
	packet_pair(T(60), EVENT_EXIT, 50, 0);
	read_all(&with_paths);
	expect_part(50, PEM_THREAD_RUNNING, 45, 60);
	expect_part(50, PEM_THREAD_RUNNABLE, 40, 45);
	expect_part(51, PEM_THREAD_RUNNING, 20, 40);
	expect_part(51, PEM_THREAD_RUNNABLE, 15, 20);
	expect_part(50, PEM_THREAD_RUNNING, 10, 15);
	assert_null(last_part);
	end_pass();
}

static void a_wait_that_an_interrupt_ended_is_a_part(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(40), EVENT_WAKING_HOW, 50, 1);
	packet_pair(T(41), EVENT_RUNNABLE, 50, 0);
	packet_leave(T(45), 51, 0, 50, 50);
	packet_pair(T(60), EVENT_EXIT, 50, 0);
	read_all(&with_paths);
	expect_part(50, PEM_THREAD_RUNNING, 45, 60);
	expect_part(50, PEM_THREAD_RUNNABLE, 41, 45);
	assert_int_equal(last_part->woken_by, PEM_WOKEN_INTERRUPT);
	expect_part(50, PEM_THREAD_BLOCKED, 20, 41);
	expect_part(50, PEM_THREAD_RUNNING, 10, 20);
	assert_null(last_part);
	end_pass();
}

/* It frees its memory after the record of its end, and loses its CPU meanwhile. */
static void a_thread_that_has_ended_runs_on_to_wake_its_parent(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_start(T(15), 50, 51, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(25), EVENT_EXIT, 51, 0);
	packet_leave(T(30), 51, 0, 0, 0);
	packet_leave(T(35), 0, 0, 50, 51);
	packet_pair(T(40), EVENT_WAKING_HOW, 50, 0);
	packet_pair(T(41), EVENT_RUNNABLE, 50, 0);
	packet_leave(T(45), 51, 64, 50, 50);
	packet_pair(T(60), EVENT_EXIT, 50, 0);
	read_all(&with_paths);
	expect_part(50, PEM_THREAD_RUNNING, 45, 60);
	expect_part(50, PEM_THREAD_RUNNABLE, 40, 45);
	expect_part(51, PEM_THREAD_RUNNING, 35, 40);
	expect_part(51, PEM_THREAD_RUNNABLE, 30, 35);
	expect_part(51, PEM_THREAD_RUNNING, 20, 30);
	expect_part(51, PEM_THREAD_RUNNABLE, 15, 20);
	expect_part(50, PEM_THREAD_RUNNING, 10, 15);
	assert_null(last_part);
	end_pass();
}

/* What 51 did before 20 is not known, so its path cannot take the place of the wait from 12 on. */
static void a_waker_of_unknown_past_leaves_the_wait(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(12), 50, 1, 0, 0);
	packet_leave(T(20), 0, 0, 50, 51);
	packet_pair(T(40), EVENT_WAKING_HOW, 50, 0);
	packet_pair(T(41), EVENT_RUNNABLE, 50, 0);
	packet_leave(T(45), 51, 1, 50, 50);
	packet_pair(T(60), EVENT_EXIT, 50, 0);
	read_all(&with_paths);
	expect_part(50, PEM_THREAD_RUNNING, 45, 60);
	expect_part(50, PEM_THREAD_RUNNABLE, 41, 45);
	assert_int_equal(last_part->woken_by, PEM_WOKEN_THREAD);
	expect_part(50, PEM_THREAD_BLOCKED, 12, 41);
	expect_part(50, PEM_THREAD_RUNNING, 10, 12);
	assert_null(last_part);
	end_pass();
}

static void a_path_of_too_many_parts_is_unknown_at_its_begin(void **state)
{
	const struct pem_pass_options few = {.size = sizeof(few), .has_paths = 1, .open_max = 4};
	struct pem_pass_unknown unknown = {.size = sizeof(unknown)};
	unsigned i;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	for (i = 1; i <= 5; i++) {
		packet_leave(T(10 * i + 5), 50, 1, 0, 0);
		packet_pair(T(10 * i + 7), EVENT_WAKING_HOW, 50, 1);
		packet_pair(T(10 * i + 8), EVENT_RUNNABLE, 50, 0);
		packet_leave(T(10 * i + 10), 0, 0, 50, 50);
	}
	packet_pair(T(65), EVENT_EXIT, 50, 0);
	read_all(&few);
	pem_pass__unknown(pass, &unknown);
	assert_int_not_equal(unknown.left_out, 0);
	assert_int_equal(last_part->end_ns, 65);
	while (last_part->before) {
		assert_int_equal(last_part->is_forgotten, 0);
		last_part = last_part->before;
	}
	assert_int_equal(last_part->state, PEM_THREAD_UNKNOWN);
	assert_int_equal(last_part->is_forgotten, 1);
	assert_int_equal(last_part->begin_ns, 10);
	end_pass();
}

/* 51 ends. Then so does 50, or the trace is over. */
static void read_two_threads(bool both_end)
{
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_start(T(15), 50, 51, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(60), EVENT_EXIT, 51, 0);
	if (both_end)
		packet_pair(T(70), EVENT_EXIT, 50, 0);
	read_all(&with_paths);
}

/* Nothing tells whether its end waits for 50 or for 51. */
static void a_program_that_goes_on_has_none(void **state)
{
	(void)state;
	context_model_of(&fixture, "");
	read_two_threads(false);
	assert_null(last_part);
	assert_non_null(pem_pass__path(pass, pem_pass__thread(pass, 0)));
	end_pass();
}

static void a_program_whose_threads_ended_has_one(void **state)
{
	(void)state;
	context_model_of(&fixture, "");
	read_two_threads(true);
	assert_non_null(last_part);
	assert_int_equal(last_part->thread->tid, 50);
	end_pass();
}

/* 51, which 50 started, calls exec: 50 ends, and 51 goes on by its number. */
static void a_path_goes_on_through_an_exec_by_another_thread(void **state)
{
	static const uint8_t body[] = {50, 0, 0, 0, 51, 0, 0, 0, 't', 0};
	const struct pem_pass_thread *first;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_start(T(12), 50, 51, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_add(&packet, T(50), EVENT_EXEC_BY, body, sizeof(body));
	packet_pair(T(60), EVENT_EXIT, 50, 0);
	read_all(&with_paths);
	expect_part(50, PEM_THREAD_RUNNING, 50, 60);
	expect_part(51, PEM_THREAD_RUNNING, 20, 50);
	expect_part(51, PEM_THREAD_RUNNABLE, 12, 20);
	expect_part(50, PEM_THREAD_RUNNING, 10, 12);
	assert_null(last_part);
	first = pem_pass__thread(pass, 0);
	assert_int_equal(first->tid, 50);
	assert_int_equal(first->state, PEM_THREAD_ENDED);
	assert_int_equal(first->end_ns, 50);
	end_pass();
}

static void without_the_option_there_are_no_paths(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_pair(T(60), EVENT_EXIT, 50, 0);
	read_all(NULL);
	assert_null(last_part);
	assert_null(pem_pass__path(pass, pem_pass__thread(pass, 0)));
	assert_null(pem_pass__path(pass, NULL));
	assert_null(pem_pass__command_path(NULL));
	end_pass();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_path, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_path_goes_through_who_woke_and_who_started),
		TEST(a_wait_that_an_interrupt_ended_is_a_part),
		TEST(a_thread_that_has_ended_runs_on_to_wake_its_parent),
		TEST(a_waker_of_unknown_past_leaves_the_wait),
		TEST(a_path_of_too_many_parts_is_unknown_at_its_begin),
		TEST(a_program_that_goes_on_has_none),
		TEST(a_program_whose_threads_ended_has_one),
		TEST(a_path_goes_on_through_an_exec_by_another_thread),
		TEST(without_the_option_there_are_no_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
