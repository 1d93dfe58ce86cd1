/* SPDX-License-Identifier: MIT */
/*
 * context_pairs.c - a pass tells what belongs together: begins and ends, sends and receives, blocks
 * and their releases; and claims no pair that a loss makes doubtful
 */
#include "context_fixture.h"

#define USER(tid) packet_new(&packet, PEM_PACKET_USER, 50, tid, PEM_NO_CPU, T(0))

static void intervals_of_a_thread_nest(void **state)
{
	(void)state;
	USER(50);
	packet_phase(T(1), EVENT_STAGE, "load");
	packet_pair(T(2), EVENT_LOCK, 0, 0x10);
	packet_pair(T(3), EVENT_LOCK, 0, 0x20);
	packet_simple(&packet, T(4), 1);
	packet_pair(T(5), EVENT_UNLOCK, 0, 0x10); /* not the innermost */
	packet_simple(&packet, T(6), 1);
	packet_pair(T(7), EVENT_UNLOCK, 0, 0x20);
	packet_pair(T(8), EVENT_UNLOCK, 0, 0x20); /* nothing is held */
	packet_pair(T(9), EVENT_LOCK, 0, 0x30);
	packet_write(&packet, &fixture, "u_50_0");
	start_pass();
	go_to(4);
	assert_int_equal(around.interval->begin.time_ns, 3);
	assert_int_equal(around.interval->depth, 2);
	assert_int_equal(around.interval->outer->begin.time_ns, 2);
	assert_string_equal(pem_interval__title(around.phase), "load");
	go_to(5);
	expect_end(0, PEM_INTERVAL_ENDED, 2, 5);
	go_to(6);
	assert_int_equal(around.interval->begin.time_ns, 3);
	assert_ptr_equal(around.interval->outer, around.phase);
	go_to(7);
	expect_end(0, PEM_INTERVAL_ENDED, 3, 7);
	go_to(8);
	assert_int_equal(around.is_unmatched, 1);
	assert_int_equal(around.ended_count, 0);
	go_to(9);
	assert_int_equal(pem_pass__next(pass, &record, &around, NULL), 0);
	assert_int_equal(around.ended_count, 2);
	expect_end(0, PEM_INTERVAL_OPEN, 9, 9);
	expect_end(1, PEM_INTERVAL_OPEN, 1, 9);
	end_pass();
}

static void an_end_with_its_thread(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 51);
	packet_pair(T(20), EVENT_CALL, 0, 0);
	packet_pair(T(30), EVENT_EXIT, 51, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(30);
	expect_end(0, PEM_INTERVAL_WITH_THREAD, 20, 30);
	end_pass();
}

static void no_pair_across_a_loss_of_the_thread(void **state)
{
	struct pem_pass_unknown unknown = {.size = sizeof(unknown)};

	(void)state;
	USER(50);
	packet_pair(T(1), EVENT_LOCK, 0, 0x10);
	packet_pair(T(2), EVENT_LOCK, 0, 0x20);
	packet_pair(T(3), EVENT_UNLOCK, 0, 0x20);
	packet_write(&packet, &fixture, "u_50_0");
	packet_next(&packet, T(20));
	packet.header.events_discarded = 2; /* Unlock and Lock of 0x10 may be among them */
	packet_pair(T(20), EVENT_UNLOCK, 0, 0x10);
	packet_pair(T(21), EVENT_LOCK, 0, 0x10);
	packet_pair(T(22), EVENT_UNLOCK, 0, 0x10);
	packet_write(&packet, &fixture, "u_50_0");
	USER(51);
	packet_pair(T(2), EVENT_LOCK, 0, 0x30);
	packet_pair(T(30), EVENT_UNLOCK, 0, 0x30); /* that thread lost nothing */
	packet_write(&packet, &fixture, "u_50_1");
	start_pass();
	go_to(20);
	expect_end(0, PEM_INTERVAL_LOST, 1, 3);
	assert_int_equal(around.is_unmatched, 1);
	go_to(22);
	expect_end(0, PEM_INTERVAL_ENDED, 21, 22);
	go_to(30);
	expect_end(0, PEM_INTERVAL_ENDED, 2, 30);
	pem_pass__unknown(pass, &unknown);
	assert_int_equal(unknown.intervals, 1);
	assert_int_equal(unknown.ends, 1);
	end_pass();
}

/* A thread that moves to a CPU may have run in the loss of the CPU before. */
static void no_call_across_a_loss_of_the_kernel(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_leave(T(10), 0, 0, 50, 50);
	packet_pair(T(11), EVENT_CALL, 0, 0);
	packet_leave(T(12), 50, 1, 50, 51);
	packet_write(&packet, &fixture, "k_0");
	packet_next(&packet, T(40));
	packet.header.events_discarded = 4;
	packet_fault(&packet, T(40));
	packet_write(&packet, &fixture, "k_0");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 1, T(0));
	packet_leave(T(5), 0, 0, 50, 52);
	packet_pair(T(6), EVENT_CALL, 0, 0);
	packet_pair(T(28), EVENT_RETURN, 0, 0); /* 52 was to be seen all the time */
	packet_leave(T(29), 52, 1, 50, 50);
	packet_pair(T(30), EVENT_RETURN, 0, 0); /* while CPU 0 loses records */
	packet_write(&packet, &fixture, "k_1");
	start_pass();
	go_to(28);
	expect_end(0, PEM_INTERVAL_ENDED, 6, 28);
	go_to(30);
	expect_end(0, PEM_INTERVAL_LOST, 11, 12);
	assert_int_equal(around.is_unmatched, 1);
	end_pass();
}

static void intervals_of_the_system_match_by_key(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_pair(T(1), EVENT_REQUEST, 7, 0);
	packet_pair(T(2), EVENT_REQUEST, 8, 0);
	packet_write(&packet, &fixture, "k_0");
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 1, T(0));
	packet_pair(T(3), EVENT_ANSWER, 7, 0);
	packet_pair(T(4), EVENT_ANSWER, 9, 0);
	packet_write(&packet, &fixture, "k_1");
	start_pass();
	go_to(3);
	expect_end(0, PEM_INTERVAL_ENDED, 1, 3);
	go_to(4);
	assert_int_equal(around.is_unmatched, 1);
	assert_int_equal(pem_pass__next(pass, &record, &around, NULL), 0);
	expect_end(0, PEM_INTERVAL_OPEN, 2, 4);
	end_pass();
}

static void an_end_takes_the_last_begin_of_its_name_or_of_none(void **state)
{
	static const struct {
		uint32_t end;
		uint64_t name;
		unsigned begin;
	} ends[] = {
		{EVENT_JOB_END, 2, 3}, /* the last one that agrees has no name */
		{EVENT_JOB_END, 2, 2},     {EVENT_JOB_END, 1, 4},
		{EVENT_ANY_JOB_END, 0, 5}, {EVENT_ANY_JOB_END, 0, 1},
	};
	unsigned i;

	(void)state;
	USER(50);
	packet_pair(T(1), EVENT_JOB, 0, 1);
	packet_pair(T(2), EVENT_JOB, 0, 2);
	packet_pair(T(3), EVENT_ANY_JOB, 0, 0);
	packet_pair(T(4), EVENT_JOB, 0, 1);
	packet_pair(T(5), EVENT_JOB, 0, 3);
	for (i = 0; i < 5; i++)
		packet_pair(T(6 + i), ends[i].end, 0, ends[i].name);
	packet_pair(T(11), EVENT_JOB_END, 0, 1);
	packet_write(&packet, &fixture, "u_50_0");
	start_pass();
	for (i = 0; i < 5; i++) {
		go_to(6 + i);
		expect_end(0, PEM_INTERVAL_ENDED, ends[i].begin, 6 + i);
	}
	go_to(11);
	assert_int_equal(around.is_unmatched, 1);
	end_pass();
}

/* Of 1030 that are open on one CPU the 6 oldest are given up, one after the other. */
static void a_cpu_has_1024_open_ones_at_a_time(void **state)
{
	struct pem_pass_unknown unknown = {.size = sizeof(unknown)};
	unsigned i;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	for (i = 1; i <= 1030; i++)
		packet_pair(T(i), EVENT_INTERRUPT, 0, 0);
	packet_pair(T(1031), EVENT_INTERRUPT_END, 0, 0);
	packet_write(&packet, &fixture, "k_0");
	start_pass();
	go_to(1024);
	assert_int_equal(around.ended_count, 0);
	go_to(1025);
	expect_end(0, PEM_INTERVAL_LOST, 1, 1);
	go_to(1030);
	expect_end(0, PEM_INTERVAL_LOST, 6, 6);
	go_to(1031);
	expect_end(0, PEM_INTERVAL_ENDED, 1030, 1031);
	pem_pass__unknown(pass, &unknown);
	assert_int_equal(unknown.left_out, 6);
	assert_int_equal(pem_pass__next(pass, &record, &around, NULL), 0);
	assert_int_equal(around.ended_count, 1023);
	end_pass();
}

static void messages_meet_in_their_order(void **state)
{
	(void)state;
	USER(50);
	packet_pair(T(1), EVENT_SEND, 7, 0);
	packet_pair(T(2), EVENT_SEND, 7, 0);
	packet_pair(T(9), EVENT_SEND, 8, 0); /* its receive was raised before */
	packet_write(&packet, &fixture, "u_50_0");
	packet_new(&packet, PEM_PACKET_USER, 60, 60, PEM_NO_CPU, T(0));
	packet_pair(T(3), EVENT_RECEIVE, 7, 0);
	packet_pair(T(4), EVENT_RECEIVE, 7, 0);
	packet_pair(T(5), EVENT_RECEIVE, 8, 0);
	packet_write(&packet, &fixture, "u_60_0");
	start_pass();
	go_to(3);
	assert_int_equal(around.partner->time_ns, 1);
	assert_int_equal(around.partner->thread->tid, 50);
	go_to(4);
	assert_int_equal(around.partner->time_ns, 2);
	go_to(5);
	assert_null(around.partner);
	go_to(9);
	assert_int_equal(around.partner->time_ns, 5);
	assert_int_equal(around.partner->thread->tid, 60);
	end_pass();
}

static void no_message_after_a_loss(void **state)
{
	(void)state;
	USER(50);
	packet_pair(T(1), EVENT_SEND, 7, 0);
	packet_write(&packet, &fixture, "u_50_0");
	packet_next(&packet, T(20));
	packet.header.events_discarded = 1; /* a send, perhaps */
	packet_pair(T(20), EVENT_SEND, 7, 0);
	packet_write(&packet, &fixture, "u_50_0");
	packet_new(&packet, PEM_PACKET_USER, 60, 60, PEM_NO_CPU, T(0));
	packet_pair(T(30), EVENT_RECEIVE, 7, 0);
	packet_write(&packet, &fixture, "u_60_0");
	start_pass();
	go_to(30);
	assert_null(around.partner);
	assert_int_equal(around.is_unmatched, 1);
	end_pass();
}

static void packet_move(uint64_t clock, uint64_t old, uint64_t place)
{
	uint64_t body[3] = {64, old, place};

	packet_add(&packet, clock, EVENT_MOVE, body, sizeof(body));
}

static int count_block(void *arg, const struct pem_pass_process *process,
		       const struct pem_block *block)
{
	(void)block;
	assert_int_equal(process->pid, 50);
	++*(int *)arg;
	return 0;
}

static void blocks_are_followed(void **state)
{
	int live = 0;

	(void)state;
	USER(50);
	packet_pair(T(1), EVENT_ALLOC, 100, 0x1000);
	packet_pair(T(2), EVENT_ALLOC, 100, 0); /* failed */
	packet_pair(T(3), EVENT_TOUCH, 0, 0x1063);
	packet_pair(T(4), EVENT_TOUCH, 0, 0x1064); /* behind it */
	packet_move(T(5), 0x1000, 0x2000);
	packet_pair(T(6), EVENT_TOUCH, 0, 0x1000);
	packet_pair(T(7), EVENT_FREE, 0, 0x2000);
	packet_pair(T(8), EVENT_FREE, 0, 0x2000); /* twice */
	packet_pair(T(9), EVENT_ALLOC, 5000, 0x5ff0);
	packet_pair(T(10), EVENT_TOUCH, 0, 0x6500);
	packet_write(&packet, &fixture, "u_50_0");
	start_pass();
	go_to(2);
	assert_null(around.block);
	go_to(3);
	assert_int_equal(around.block->address, 0x1000);
	go_to(4);
	assert_null(around.block);
	go_to(5);
	assert_int_equal(around.old_block->begin_ns, 1);
	assert_int_equal(around.block->address, 0x2000);
	go_to(6);
	assert_null(around.block);
	go_to(7);
	assert_int_equal(around.block->size, 64);
	go_to(8);
	assert_null(around.block);
	assert_int_equal(around.is_unmatched, 1);
	go_to(10);
	assert_int_equal(around.block->size, 5000);
	pem_pass__blocks(pass, count_block, &live);
	assert_int_equal(live, 1);
	end_pass();
}

/* Of four blocks, the newest, one between others and, after a look, the oldest are released. */
static void what_was_released_before_a_look_is_not_touched(void **state)
{
	(void)state;
	USER(50);
	packet_pair(T(1), EVENT_ALLOC, 100, 0x1000);
	packet_pair(T(2), EVENT_ALLOC, 200, 0x2000);
	packet_pair(T(3), EVENT_ALLOC, 300, 0x3000);
	packet_pair(T(4), EVENT_ALLOC, 400, 0x4000);
	packet_pair(T(5), EVENT_FREE, 0, 0x4000);
	packet_pair(T(6), EVENT_FREE, 0, 0x2000);
	packet_pair(T(7), EVENT_TOUCH, 0, 0x1001);
	packet_pair(T(8), EVENT_TOUCH, 0, 0x2001);
	packet_pair(T(9), EVENT_TOUCH, 0, 0x3001);
	packet_pair(T(10), EVENT_TOUCH, 0, 0x4001);
	packet_pair(T(11), EVENT_FREE, 0, 0x1000);
	packet_pair(T(12), EVENT_ALLOC, 500, 0x5000);
	packet_pair(T(13), EVENT_TOUCH, 0, 0x1001);
	packet_pair(T(14), EVENT_TOUCH, 0, 0x5001);
	packet_pair(T(15), EVENT_TOUCH, 0, 0x3001);
	packet_write(&packet, &fixture, "u_50_0");
	start_pass();
	go_to(7);
	assert_int_equal(around.block->size, 100);
	go_to(8);
	assert_null(around.block);
	go_to(9);
	assert_int_equal(around.block->size, 300);
	go_to(10);
	assert_null(around.block);
	go_to(13);
	assert_null(around.block);
	go_to(14);
	assert_int_equal(around.block->size, 500);
	go_to(15);
	assert_int_equal(around.block->size, 300);
	end_pass();
}

/* realloc frees its old block before its record is raised: another thread may have got the place */
static void a_place_that_realloc_left_may_be_taken_before_it_says_so(void **state)
{
	(void)state;
	USER(50);
	packet_pair(T(1), EVENT_ALLOC, 10, 0x1000);
	packet_move(T(3), 0x1000, 0x2000);
	packet_write(&packet, &fixture, "u_50_0");
	USER(51);
	packet_pair(T(2), EVENT_ALLOC, 20, 0x1000);
	packet_pair(T(4), EVENT_FREE, 0, 0x1000);
	packet_write(&packet, &fixture, "u_50_1");
	start_pass();
	go_to(3);
	assert_int_equal(around.old_block->size, 10);
	go_to(4);
	assert_int_equal(around.block->size, 20);
	end_pass();
}

static void no_block_is_released_across_a_loss_of_the_process(void **state)
{
	(void)state;
	USER(50);
	packet_pair(T(1), EVENT_ALLOC, 10, 0x1000);
	packet_pair(T(30), EVENT_FREE, 0, 0x1000);
	packet_write(&packet, &fixture, "u_50_0");
	USER(51);
	packet_simple(&packet, T(2), 1);
	packet_write(&packet, &fixture, "u_50_1");
	packet_next(&packet, T(40));
	packet.header.events_discarded = 2; /* a Free and an Alloc, perhaps */
	packet_simple(&packet, T(40), 1);
	packet_write(&packet, &fixture, "u_50_1");
	start_pass();
	go_to(30);
	assert_null(around.block);
	assert_int_equal(around.is_unmatched, 1);
	end_pass();
}

static void a_phase_is_of_its_thread_then_of_its_process(void **state)
{
	(void)state;
	USER(50);
	packet_phase(T(1), EVENT_STAGE, "outer");
	packet_simple(&packet, T(5), 1);
	packet_phase(T(8), EVENT_STAGE_END, "outer");
	packet_simple(&packet, T(9), 1);
	packet_write(&packet, &fixture, "u_50_0");
	USER(51);
	packet_simple(&packet, T(2), 1);
	packet_phase(T(3), EVENT_STAGE, "inner");
	packet_simple(&packet, T(4), 1);
	packet_write(&packet, &fixture, "u_50_1");
	start_pass();
	go_to(2);
	assert_string_equal(pem_interval__title(around.phase), "outer");
	go_to(4);
	assert_string_equal(pem_interval__title(around.phase), "inner");
	go_to(5);
	assert_string_equal(pem_interval__title(around.phase), "outer");
	go_to(9);
	assert_string_equal(pem_interval__title(around.phase), "inner"); /* of the other thread */
	end_pass();
}

/* `pem mark begin` and `pem mark end` are processes of their own. */
static void another_process_may_end_a_phase(void **state)
{
	(void)state;
	packet_new(&packet, PEM_PACKET_USER, 60, 60, PEM_NO_CPU, T(0));
	packet_phase(T(1), EVENT_STAGE, "load");
	packet_write(&packet, &fixture, "u_60_0");
	packet_new(&packet, PEM_PACKET_USER, 61, 61, PEM_NO_CPU, T(0));
	packet_phase(T(9), EVENT_STAGE_END, "load");
	packet_write(&packet, &fixture, "u_61_0");
	USER(50);
	packet_simple(&packet, T(5), 1);
	packet_simple(&packet, T(10), 1);
	packet_write(&packet, &fixture, "u_50_0");
	start_pass();
	go_to(5);
	assert_string_equal(pem_interval__title(around.phase), "load");
	go_to(9);
	expect_end(0, PEM_INTERVAL_ENDED, 1, 9);
	go_to(10);
	assert_null(around.phase);
	end_pass();
}

/* Threads begin phases of one name; one that began before the recording ends in it. */
static void another_thread_of_the_process_does_not_end_a_phase(void **state)
{
	(void)state;
	USER(50);
	packet_phase(T(1), EVENT_STAGE, "load");
	packet_phase(T(9), EVENT_STAGE_END, "load");
	packet_write(&packet, &fixture, "u_50_0");
	USER(51);
	packet_phase(T(5), EVENT_STAGE_END, "load");
	packet_write(&packet, &fixture, "u_50_1");
	start_pass();
	go_to(5);
	assert_int_equal(around.is_unmatched, 1);
	go_to(9);
	expect_end(0, PEM_INTERVAL_ENDED, 1, 9);
	end_pass();
}

/* Process 70, of 60, of 50, begin phases, which process 80 ends after the first two have ended. */
static void a_process_leaves_its_phases_to_its_parent(void **state)
{
	static const struct {
		int clock;
		const char *phase;
	} wanted[] = {{35, "b"}, {45, "a"}, {55, "a"}, {65, "top"}, {67, "top"}, {75, NULL}};
	size_t i;

	(void)state;
	packet_new(&packet, PEM_PACKET_KERNEL, 0, 0, 0, T(0));
	packet_start(T(2), 60, 60, 50);
	packet_start(T(3), 70, 70, 60);
	packet_leave(T(19), 50, 1, 70, 70);
	packet_pair(T(20), EVENT_EXIT, 70, 0);
	packet_leave(T(29), 70, 0x80, 60, 60);
	packet_pair(T(30), EVENT_EXIT, 60, 0);
	packet_write(&packet, &fixture, "k_0");
	USER(50);
	packet_phase(T(4), EVENT_STAGE, "top");
	packet_phase(T(70), EVENT_STAGE_END, "top");
	packet_write(&packet, &fixture, "u_50_0");
	packet_new(&packet, PEM_PACKET_USER, 60, 60, PEM_NO_CPU, T(0));
	packet_phase(T(7), EVENT_STAGE, "mid");
	packet_write(&packet, &fixture, "u_60_0");
	packet_new(&packet, PEM_PACKET_USER, 70, 70, PEM_NO_CPU, T(0));
	packet_phase(T(5), EVENT_STAGE, "a");
	packet_phase(T(6), EVENT_STAGE, "b");
	packet_phase(T(66), EVENT_STAGE, "late"); /* of a thread that was not known */
	packet_write(&packet, &fixture, "u_70_0");
	packet_new(&packet, PEM_PACKET_USER, 80, 80, PEM_NO_CPU, T(0));
	packet_phase(T(41), EVENT_STAGE_END, "b");
	packet_phase(T(51), EVENT_STAGE_END, "mid");
	packet_phase(T(61), EVENT_STAGE_END, "a");
	packet_write(&packet, &fixture, "u_80_0");
	USER(51);
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		packet_simple(&packet, T((uint64_t)wanted[i].clock), 1);
	packet_write(&packet, &fixture, "u_50_1");
	start_pass();
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		go_to(wanted[i].clock);
		if (wanted[i].phase)
			assert_string_equal(pem_interval__title(around.phase), wanted[i].phase);
		else
			assert_null(around.phase);
	}
	end_pass();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, context_set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(intervals_of_a_thread_nest),
		TEST(an_end_with_its_thread),
		TEST(no_pair_across_a_loss_of_the_thread),
		TEST(no_call_across_a_loss_of_the_kernel),
		TEST(intervals_of_the_system_match_by_key),
		TEST(an_end_takes_the_last_begin_of_its_name_or_of_none),
		TEST(a_cpu_has_1024_open_ones_at_a_time),
		TEST(messages_meet_in_their_order),
		TEST(no_message_after_a_loss),
		TEST(blocks_are_followed),
		TEST(what_was_released_before_a_look_is_not_touched),
		TEST(a_place_that_realloc_left_may_be_taken_before_it_says_so),
		TEST(no_block_is_released_across_a_loss_of_the_process),
		TEST(a_phase_is_of_its_thread_then_of_its_process),
		TEST(another_process_may_end_a_phase),
		TEST(a_process_leaves_its_phases_to_its_parent),
		TEST(another_thread_of_the_process_does_not_end_a_phase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
