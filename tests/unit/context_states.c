/* SPDX-License-Identifier: MIT */
/*
 * context_states.c - a pass tells what threads did, as far as the kernel's records prove it
 */
#include "context_fixture.h"

#include <stdbool.h>

static void a_thread_runs_waits_and_sleeps(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51); /* 50 sleeps */
	packet_pair(T(25), EVENT_WAKING, 50, 0);
	packet_pair(T(26), EVENT_RUNNABLE, 50, 0);
	packet_leave(T(40), 51, 0, 50, 50); /* 51 was pushed aside */
	packet_leave(T(50), 50, 1, 50, 51);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(20);
	expect_span(0, 50, PEM_THREAD_RUNNING, 10, 20);
	assert_int_equal(around.thread->tid, 50);
	assert_int_equal(around.thread->state, PEM_THREAD_BLOCKED);
	go_to(26);
	expect_span(0, 50, PEM_THREAD_BLOCKED, 20, 26);
	assert_int_equal(around.spans[0].waker->tid, 51);
	go_to(40);
	assert_int_equal(around.span_count, 2);
	expect_span(0, 51, PEM_THREAD_RUNNING, 20, 40);
	expect_span(1, 50, PEM_THREAD_RUNNABLE, 26, 40);
	go_to(50);
	expect_span(1, 51, PEM_THREAD_RUNNABLE, 40, 50);
	end_pass();
}

/* 50 sleeps on CPU 0 beside a thread, and something wakes it: what its span says. */
static const struct pem_span *woken(uint32_t beside, uint64_t how)
{
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, beside, beside);
	packet_pair(T(21), EVENT_SYSTEM_CALL, 1, 3);
	packet_pair(T(25), EVENT_WAKING_HOW, 50, how);
	packet_pair(T(26), EVENT_RUNNABLE, 50, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(26);
	expect_span(0, 50, PEM_THREAD_BLOCKED, 20, 26);
	return &around.spans[0];
}

static void a_thread_wakes_another(void **state)
{
	const struct pem_span *span = woken(51, 0);

	(void)state;
	assert_int_equal(span->woken_by, PEM_WOKEN_THREAD);
	assert_int_equal(span->waker->tid, 51);
	end_pass();
}

static void an_interrupt_in_a_system_call_is_not_its_threads(void **state)
{
	const struct pem_span *span = woken(51, 1);

	(void)state;
	assert_int_equal(span->woken_by, PEM_WOKEN_INTERRUPT);
	assert_null(span->waker);
	end_pass();
}

static void what_may_be_a_fault_is_not_called_an_interrupt(void **state)
{
	const struct pem_span *span = woken(51, PEM_INTERRUPT_UNKNOWN);

	(void)state;
	assert_int_equal(span->woken_by, PEM_WOKEN_INTERRUPT_OR_FAULT);
	assert_null(span->waker);
	end_pass();
}

static void a_thread_that_is_not_observed_wakes_from_outside(void **state)
{
	const struct pem_span *span = woken(0, 0);

	(void)state;
	assert_int_equal(span->woken_by, PEM_WOKEN_OUTSIDE);
	assert_null(span->waker);
	end_pass();
}

/* An interrupt came while it ran, and woke somebody. */
static void a_thread_that_is_in_no_system_call_wakes_nobody(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(21), EVENT_SYSTEM_CALL, 1, 3);
	packet_pair(T(22), EVENT_WAKING, 50, 0); /* its call does */
	packet_pair(T(23), EVENT_RUNNABLE, 50, 0);
	packet_pair(T(24), EVENT_RESULT, 0, 1);
	packet_leave(T(30), 51, 0, 50, 50);
	packet_leave(T(40), 50, 1, 50, 51);
	packet_pair(T(45), EVENT_WAKING, 50, 0); /* it is in its own code */
	packet_pair(T(46), EVENT_RUNNABLE, 50, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(23);
	expect_span(0, 50, PEM_THREAD_BLOCKED, 20, 23);
	assert_int_equal(around.spans[0].waker->tid, 51);
	go_to(46);
	expect_span(0, 50, PEM_THREAD_BLOCKED, 40, 46);
	assert_null(around.spans[0].waker);
	end_pass();
}

/* The end is told before the kernel wakes who waits for it, and the call of it is over by then. */
static void a_thread_that_has_ended_wakes_who_waits_for_it(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(21), EVENT_SYSTEM_CALL, 1, 3);
	packet_pair(T(22), EVENT_EXIT, 51, 0);
	packet_pair(T(25), EVENT_WAKING, 50, 0);
	packet_pair(T(26), EVENT_RUNNABLE, 50, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(26);
	expect_span(0, 50, PEM_THREAD_BLOCKED, 20, 26);
	assert_non_null(around.spans[0].waker);
	assert_int_equal(around.spans[0].waker->tid, 51);
	end_pass();
}

/* It takes a while to end, and a timer may go off meanwhile. */
static void a_thread_that_has_ended_wakes_no_stranger(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_start(T(11), 60, 60, 50);
	packet_leave(T(12), 50, 0, 60, 60);
	packet_leave(T(20), 60, 1, 50, 50);
	packet_start(T(21), 70, 70, 50);
	packet_leave(T(22), 50, 1, 70, 70);
	packet_pair(T(23), EVENT_EXIT, 70, 0);
	packet_pair(T(25), EVENT_WAKING, 60, 0);
	packet_pair(T(26), EVENT_RUNNABLE, 60, 0);
	packet_pair(T(27), EVENT_WAKING, 50, 0); /* which started it */
	packet_pair(T(28), EVENT_RUNNABLE, 50, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(26);
	expect_span(0, 60, PEM_THREAD_BLOCKED, 20, 26);
	assert_null(around.spans[0].waker);
	go_to(28);
	expect_span(0, 50, PEM_THREAD_BLOCKED, 22, 28);
	assert_non_null(around.spans[0].waker);
	assert_int_equal(around.spans[0].waker->tid, 70);
	end_pass();
}

/* The recording has switches of its own threads only. */
static void nothing_is_said_of_threads_that_are_not_observed(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 7, 70); /* 70 leaves for 80, and 80 for 90, unseen */
	packet_leave(T(60), 90, 1, 50, 50);
	packet_leave(T(70), 50, 0, 7, 70);
	packet_fault(&packet, T(75)); /* now 70's process proves to be observed */
	packet_leave(T(80), 70, 1, 50, 50);
	packet_leave(T(90), 50, 0, 7, 70);
	packet_leave(T(95), 70, 0, 50, 50);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(60);
	assert_int_equal(around.span_count, 1);
	expect_span(0, 50, PEM_THREAD_BLOCKED, 20, 60);
	go_to(80);
	assert_int_equal(around.span_count, 1); /* of 50; 70 ran before it was known */
	go_to(95);
	expect_span(0, 70, PEM_THREAD_RUNNING, 90, 95);
	end_pass();
}

/* 51 of the observed process 50 leaves its CPU unseen: what else is missing of that process? */
static void a_process_of_which_a_switch_is_missing_is_unknown_from_there(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_leave(T(30), 0, 0, 60, 60); /* no switch, but a thread that was found on the CPU */
	packet_pair(T(35), EVENT_RUNNABLE, 50, 0);
	packet_leave(T(40), 60, 0, 50, 51);
	packet_leave(T(50), 51, 1, 60, 60);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(20);
	expect_span(0, 50, PEM_THREAD_RUNNING, 10, 20);
	go_to(30);
	assert_int_equal(around.span_count, 0);
	go_to(35);
	assert_int_equal(around.span_count, 0);
	go_to(50);
	assert_int_equal(around.span_count, 0);
	end_pass();
}

static void a_loss_ends_what_is_known(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_fault(&packet, T(21));
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(40));
	packet.header.events_discarded = 3;
	packet_fault(&packet, T(40));
	packet_leave(T(50), 52, 1, 50, 50);
	packet_leave(T(60), 50, 1, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 1, T(0));
	packet_leave(T(15), 0, 0, 50, 53);
	packet_leave(T(55), 53, 1, 0, 0);
	packet_write(&packet, &fixture, "k_1");
	start_pass();
	go_to(40);
	/* 51 ran until the loss, and not surely longer */
	expect_span(0, 51, PEM_THREAD_RUNNING, 20, 21);
	go_to(50);
	/* 50 slept until the loss: it may have run in it */
	expect_span(0, 50, PEM_THREAD_BLOCKED, 20, 21);
	go_to(55);
	/* the other CPU lost nothing, so its thread ran there all the time */
	expect_span(0, 53, PEM_THREAD_RUNNING, 15, 55);
	end_pass();
}

static void a_user_record_is_on_its_threads_cpu(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 3, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(30), 50, 1, 0, 0);
	packet_write(&packet, &fixture, "k_3");
	packet_new(&packet, PEM_PACKET_USER, 50, 50, PEM_NO_CPU, T(0));
	packet_simple(&packet, T(5), 1);
	packet_simple(&packet, T(20), 1);
	packet_write(&packet, &fixture, "u_50_0");
	start_pass();
	go_to(5);
	assert_int_equal(around.cpu, PEM_NO_CPU);
	go_to(20);
	assert_int_equal(around.cpu, 3);
	end_pass();
}

/* The kernel says that a thread ends before it leaves its CPU for the last time. */
static void a_thread_that_has_ended_runs_until_it_leaves_for_good(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 51);
	packet_pair(T(20), EVENT_EXIT, 51, 0);
	packet_leave(T(21), 51, 0, 50, 50); /* pushed aside */
	packet_leave(T(30), 50, 1, 50, 51);
	packet_leave(T(31), 51, 0x80, 50, 50); /* dead */
	packet_leave(T(90), 50, 1, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(20);
	expect_span(0, 51, PEM_THREAD_RUNNING, 10, 20);
	go_to(21);
	expect_span(0, 51, PEM_THREAD_RUNNING, 20, 21);
	go_to(30);
	assert_int_equal(around.span_count, 2);
	expect_span(1, 51, PEM_THREAD_RUNNABLE, 21, 30);
	go_to(31);
	assert_int_equal(around.span_count, 2);
	expect_span(0, 51, PEM_THREAD_RUNNING, 30, 31);
	assert_int_equal(around.spans[0].thread->end_ns, 20);
	expect_span(1, 50, PEM_THREAD_BLOCKED, 30, 31);
	go_to(90);
	assert_int_equal(pem_pass__next(pass, &record, &around, NULL), 0);
	assert_int_equal(around.span_count, 1);
	expect_span(0, 50, PEM_THREAD_BLOCKED, 90, 90);
	end_pass();
}

/* 50 sleeps twice, and gets a CPU without a record of its second waking. */
static void of_a_waking_that_was_not_recorded_the_time_is_unknown(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(26), EVENT_RUNNABLE, 50, 0);
	packet_leave(T(30), 51, 0, 50, 50);
	packet_leave(T(40), 50, 1, 50, 51);
	packet_leave(T(50), 51, 0, 50, 50);
	packet_leave(T(60), 50, 1, 50, 51);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(50);
	assert_int_equal(around.span_count, 1);
	expect_span(0, 51, PEM_THREAD_RUNNING, 40, 50);
	go_to(60);
	expect_span(0, 50, PEM_THREAD_RUNNING, 50, 60);
	end_pass();
}

static void a_number_used_again_is_another_process(void **state)
{
	const struct pem_pass_process *first, *second;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_fork(&packet, T(20), 50, 60, 60);
	packet_leave(T(30), 50, 1, 60, 60);
	packet_pair(T(40), EVENT_EXIT, 60, 0);
	packet_leave(T(41), 60, 0x80, 50, 50);
	packet_fork(&packet, T(50), 50, 60, 60);
	packet_leave(T(60), 50, 1, 60, 60);
	packet_fault(&packet, T(70));
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(40);
	first = around.process;
	assert_int_equal(first->pid, 60);
	assert_int_equal(first->start_ns, 20);
	assert_int_equal(first->parent->pid, 50);
	go_to(70);
	second = around.process;
	assert_int_equal(second->pid, 60);
	assert_ptr_not_equal(first, second);
	assert_int_equal(second->start_ns, 50);
	assert_int_equal(first->end_ns, 40);
	end_pass();
}

/*
 * Thread 51 of process 50 calls exec. The first thread ends, and 51 goes on by its number: a record
 * says so that names it as the one before, as in older traces, or names none. Another process has
 * the CPU in between, if is_interrupted.
 */
static void exec_by_another(uint32_t before, bool is_interrupted)
{
	static const uint8_t body[] = {50, 0, 0, 0, 51, 0, 0, 0, 't', 0};

	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(21), EVENT_SYSTEM_CALL, 3, 0);
	packet_leave(T(25), 51, 1, 50, 50);
	packet_pair(T(28), EVENT_EXIT, 50, 0);
	packet_pair(T(29), EVENT_RUNNABLE, 51, 0);
	packet_leave(T(30), 50, 0x80, 50, 51);
	packet_leave(T(40), before, 0, 50, 50); /* the new number */
	if (is_interrupted) {
		packet_leave(T(41), 50, 0, 60, 60);
		packet_leave(T(45), 60, 0, 50, 50);
	}
	packet_add(&packet, T(50), EVENT_EXEC_BY, body, sizeof(body));
	packet_pair(T(55), EVENT_RESULT, 0, 0);
	packet_leave(T(60), 50, 1, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
}

static void expect_exec_by_another(uint32_t before)
{
	const struct pem_pass_thread *caller;

	exec_by_another(before, false);
	go_to(30);
	caller = around.spans[around.span_count - 1].thread;
	assert_int_equal(caller->tid, 51);
	go_to(50);
	assert_int_equal(around.span_count, 1);
	expect_span(0, 51, PEM_THREAD_RUNNING, 40, 50);
	assert_int_equal(caller->state, PEM_THREAD_ENDED);
	assert_int_equal(caller->end_ns, 50);
	assert_int_equal(around.thread->tid, 50);
	assert_int_equal(around.thread->start_ns, 50);
	go_to(55);
	assert_int_equal(around.ended_count, 1);
	assert_int_equal(around.ended[0].outcome, PEM_INTERVAL_ENDED);
	assert_int_equal(around.ended[0].interval->begin.time_ns, 21);
	assert_ptr_equal(around.ended[0].interval->thread, caller);
	go_to(60);
	assert_int_equal(around.span_count, 1);
	expect_span(0, 50, PEM_THREAD_RUNNING, 50, 60);
	assert_ptr_equal(around.spans[0].thread, around.thread);
	end_pass();
}

static void exec_by_another_thread_goes_on_by_the_first_ones_number(void **state)
{
	(void)state;
	expect_exec_by_another(0);
}

static void so_it_does_in_older_traces(void **state)
{
	(void)state;
	expect_exec_by_another(51);
}

static void what_it_did_in_between_is_unknown_if_it_lost_the_cpu(void **state)
{
	(void)state;
	exec_by_another(0, true);
	go_to(50);
	assert_int_equal(around.span_count, 0);
	go_to(55);
	assert_int_equal(around.ended[0].outcome, PEM_INTERVAL_ENDED);
	go_to(60);
	expect_span(0, 50, PEM_THREAD_RUNNING, 50, 60);
	end_pass();
}

/* 51 began a call before the loss. Its end may be lost, and what ends later may be another one. */
static void what_a_loss_made_doubtful_is_so_after_an_exec_by_another(void **state)
{
	static const uint8_t body[] = {50, 0, 0, 0, 51, 0, 0, 0, 't', 0};

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_leave(T(20), 50, 1, 50, 51);
	packet_pair(T(21), EVENT_SYSTEM_CALL, 3, 0);
	packet_leave(T(25), 51, 1, 50, 50);
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(40));
	packet.header.events_discarded = 3;
	packet_leave(T(45), 0, 0, 50, 50);
	packet_add(&packet, T(50), EVENT_EXEC_BY, body, sizeof(body));
	packet_pair(T(55), EVENT_RESULT, 0, 0);
	packet_leave(T(60), 50, 1, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(55);
	assert_int_equal(around.is_unmatched, 1);
	end_pass();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, context_set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_runs_waits_and_sleeps),
		TEST(a_thread_wakes_another),
		TEST(an_interrupt_in_a_system_call_is_not_its_threads),
		TEST(what_may_be_a_fault_is_not_called_an_interrupt),
		TEST(a_thread_that_is_not_observed_wakes_from_outside),
		TEST(a_thread_that_is_in_no_system_call_wakes_nobody),
		TEST(a_thread_that_has_ended_wakes_who_waits_for_it),
		TEST(a_thread_that_has_ended_wakes_no_stranger),
		TEST(nothing_is_said_of_threads_that_are_not_observed),
		TEST(a_process_of_which_a_switch_is_missing_is_unknown_from_there),
		TEST(a_loss_ends_what_is_known),
		TEST(a_user_record_is_on_its_threads_cpu),
		TEST(a_thread_that_has_ended_runs_until_it_leaves_for_good),
		TEST(of_a_waking_that_was_not_recorded_the_time_is_unknown),
		TEST(a_number_used_again_is_another_process),
		TEST(exec_by_another_thread_goes_on_by_the_first_ones_number),
		TEST(so_it_does_in_older_traces),
		TEST(what_it_did_in_between_is_unknown_if_it_lost_the_cpu),
		TEST(what_a_loss_made_doubtful_is_so_after_an_exec_by_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
