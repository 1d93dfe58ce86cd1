/* SPDX-License-Identifier: MIT */
/*
 * context_found.c - what a recorder found threads doing counts from then on, unless the kernel's
 * records tell more
 */
#include "context_fixture.h"

static uint64_t packets; /* of the recorder's stream */

static int set_up_packets(void **state)
{
	packets = 0;
	return context_set_up(state);
}

static void write_glimpse(void)
{
	packet.header.packet_seq_num = packets++;
	packet_write(&packet, &fixture, "k1_0");
}

static void found(uint64_t clock, uint32_t tid, uint32_t state, uint32_t holder, const char *object)
{
	uint8_t body[64] = {0};

	memcpy(body, &state, sizeof(state));
	memcpy(body + 4, &holder, sizeof(holder));
	memcpy(body + 8, object, strlen(object) + 1);
	packet_new(&packet, PEM_PACKET_KERNEL_THREAD, 50, tid, 0, clock);
	packet_add(&packet, clock, EVENT_FOUND, body, 8 + strlen(object) + 1);
	write_glimpse();
}

static void ongoing(uint64_t clock, uint32_t tid, uint32_t number)
{
	packet_new(&packet, PEM_PACKET_KERNEL_THREAD, 50, tid, 0, clock);
	packet_pair(clock, EVENT_ONGOING, number, 0);
	write_glimpse();
}

/* Go on to the end. Returns how many spans are told there. */
static size_t at_end(void)
{
	struct pem_error error = {""};
	int rc;

	do {
		rc = pem_pass__next(pass, &record, &around, &error);
	} while (rc == 1);
	assert_int_equal(rc, 0);
	return around.span_count;
}

static void a_thread_that_sleeps_all_the_time(void **state)
{
	(void)state;
	found(T(10), 51, 1, 52, "lock");
	found(T(90), 51, 1, 52, "lock");
	start_pass();
	assert_int_equal(at_end(), 1);
	expect_span(0, 51, PEM_THREAD_BLOCKED, 10, 90);
	assert_string_equal(around.spans[0].waits_on, "lock");
	assert_int_equal(around.spans[0].holder->tid, 52);
	end_pass();
}

static void a_sleeper_that_is_woken(void **state)
{
	(void)state;
	found(T(10), 51, 1, 0, "");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(10));
	packet_pair(T(30), EVENT_RUNNABLE, 51, 0);
	packet_leave(T(40), 0, 0, 50, 51);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(30);
	expect_span(0, 51, PEM_THREAD_BLOCKED, 10, 30);
	assert_null(around.spans[0].waits_on);
	go_to(40);
	expect_span(0, 51, PEM_THREAD_RUNNABLE, 30, 40);
	end_pass();
}

/* 51 leaves a CPU first, 52 gets one first. */
static void the_next_switch_tells_who_ran(void **state)
{
	(void)state;
	found(T(10), 51, 0, 0, "");
	found(T(11), 52, 0, 0, "");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 1, T(10));
	packet_leave(T(40), 51, 0, 50, 52);
	packet_write(&packet, &fixture, "k_1");
	start_pass();
	go_to(40);
	expect_span(0, 51, PEM_THREAD_RUNNING, 10, 40);
	expect_span(1, 52, PEM_THREAD_RUNNABLE, 11, 40);
	end_pass();
}

static void nothing_is_said_of_a_thread_without_a_switch(void **state)
{
	(void)state;
	found(T(10), 51, 0, 0, "");
	found(T(90), 51, 0, 0, "");
	start_pass();
	assert_int_equal(at_end(), 0);
	end_pass();
}

static void records_of_the_kernel_tell_more(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(5), 0, 0, 50, 51);
	packet_leave(T(8), 51, 1, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	found(T(10), 51, 1, 52, "lock");
	found(T(20), 51, 1, 52, "lock");
	start_pass();
	assert_int_equal(at_end(), 1);
	expect_span(0, 51, PEM_THREAD_BLOCKED, 8, 20);
	assert_int_equal(around.spans[0].holder->tid, 52);
	end_pass();
}

static void a_call_that_began_before(void **state)
{
	(void)state;
	ongoing(T(10), 51, 1);
	found(T(11), 51, 1, 0, "");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(10));
	packet_leave(T(40), 0, 0, 50, 51);
	packet_pair(T(45), EVENT_RESULT, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(40);
	expect_span(0, 51, PEM_THREAD_BLOCKED, 11, 40);
	assert_string_equal(pem_interval__title(around.spans[0].interval), "write");
	go_to(45);
	expect_end(0, PEM_INTERVAL_ENDED, 10, 45);
	end_pass();
}

static void a_call_whose_begin_is_recorded_too(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(5), 0, 0, 50, 51);
	packet_pair(T(6), EVENT_SYSTEM_CALL, 1, 0);
	packet_leave(T(8), 51, 1, 0, 0);
	packet_leave(T(40), 0, 0, 50, 51);
	packet_pair(T(45), EVENT_RESULT, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	ongoing(T(10), 51, 1);
	start_pass();
	go_to(45);
	assert_int_equal(around.ended_count, 1);
	expect_end(0, PEM_INTERVAL_ENDED, 6, 45);
	assert_null(around.interval);
	end_pass();
}

/* The kernel lost records on a CPU: the sleeper may have run there, and left its call. */
static void a_loss_ends_what_was_found(void **state)
{
	(void)state;
	ongoing(T(10), 51, 1);
	found(T(11), 51, 1, 52, "lock");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(12));
	packet_leave(T(12), 0, 0, 50, 53);
	packet_write(&packet, &fixture, "k_0");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(30));
	packet.header.events_discarded = 5;
	packet.header.packet_seq_num = 1;
	packet_leave(T(40), 0, 0, 50, 51);
	packet_pair(T(45), EVENT_RESULT, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(40);
	assert_true(around.span_count >= 1);
	expect_span(around.span_count - 1, 51, PEM_THREAD_BLOCKED, 11, 12);
	assert_null(around.interval);
	end_pass();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_packets, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_thread_that_sleeps_all_the_time),
		TEST(a_sleeper_that_is_woken),
		TEST(the_next_switch_tells_who_ran),
		TEST(nothing_is_said_of_a_thread_without_a_switch),
		TEST(records_of_the_kernel_tell_more),
		TEST(a_call_that_began_before),
		TEST(a_call_whose_begin_is_recorded_too),
		TEST(a_loss_ends_what_was_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
