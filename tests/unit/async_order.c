// SPDX-License-Identifier: MIT
/*
 * async_order.c - the order in which what was read, turn by turn, is handed on to asynchronous
 * callbacks
 *
 * Not here: reading it (async_callback.c). Clocks are made up, so that one may stand still, as slow
 * ones do between two events.
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "delivery/delivery.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "producer/producer.h"

static struct pem_async a;
static struct pem_async_callback callback;
static const struct pem_event event;
static uint64_t clocks[16], numbers[16], handed_on;

static void take(const struct pem_record *record, void *arg)
{
	(void)arg;
	clocks[handed_on] = record->clock;
	memcpy(&numbers[handed_on++], record->data, sizeof(numbers[0]));
}

static int set_up(void **state)
{
	(void)state;
	memset(&a, 0, sizeof(a));
	memset(&callback, 0, sizeof(callback));
	callback.function = take;
	callback.enabled = true;
	a.callbacks[0] = &callback;
	a.pid = (pid_t)pem_process.pid;
	handed_on = 0;
	return pthread_mutex_init(&a.lock, NULL) | pthread_cond_init(&a.changed, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	pem_async_batch__free(&a.batch);
	pem_async_batch__free(&a.incoming);
	return 0;
}

static void read_record(uint64_t clock, uint64_t number)
{
	const struct pem_async_item item = {
		.event = &event, .bytes = sizeof(number), .callbacks = 1};

	assert_true(pem_async_batch__add(&a.incoming, SIZE_MAX, clock, &item,
					 (const uint8_t *)&number));
}

static size_t turn(uint64_t horizon)
{
	pem_async__swap(&a);
	return pem_async__call(&a, horizon);
}

static void records_wait_for_the_horizon(void **state)
{
	(void)state;
	read_record(30, 3);
	read_record(10, 1);
	assert_int_equal(turn(20), 1);
	read_record(20, 2);
	assert_int_equal(turn(40), 2);
	assert_int_equal(handed_on, 3);
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[1], 2);
	assert_int_equal(numbers[2], 3);
	assert_int_equal(callback.called, 3);
	assert_int_equal(callback.late, 0);
}

/* A thread raises 1 to 6 while its clock says 50, and is read after every other one. */
static void one_clock_keeps_a_threads_order(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 1; i <= 6; i += 2) {
		read_record(50, i);
		read_record(50, i + 1);
		assert_int_equal(turn(40), 0);
	}
	assert_int_equal(turn(50), 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(numbers[i], i + 1);
	assert_int_equal(callback.late, 0);
}

/* Each that comes after one of a later time, though they are in order among themselves. */
static void late_ones_in_a_row_are_all_late(void **state)
{
	(void)state;
	read_record(50, 4);
	turn(60);
	read_record(10, 1);
	read_record(20, 2);
	read_record(55, 5);
	turn(60);
	assert_int_equal(handed_on, 4);
	assert_int_equal(clocks[1], 10);
	assert_int_equal(clocks[2], 20);
	assert_int_equal(clocks[3], 55);
	assert_int_equal(callback.late, 2);
}

/*
 * A CPU may have several streams, each with its own count of what was lost: only a change of one is
 * a loss.
 */
static void losses_are_of_a_stream(void **state)
{
	static struct pem_session session = {.async = &a};
	struct pem_packet packet = {.source = PEM_PACKET_KERNEL, .cpu = 3};
	static const struct {
		const char *stream;
		uint64_t discarded;
		size_t losses;
	} steps[] = {{"k_3", 0, 0}, {"k_3_1", 5, 1}, {"k_3", 0, 1}, {"k_3_1", 5, 1},
		     {"k_3", 2, 2}, {"k_3_1", 5, 2}, {"k_3", 2, 2}, {"k_3_1", 6, 3}};
	size_t i;

	(void)state;
	a.active = a.follows_sources = true;
	a.limit = SIZE_MAX;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		packet.events_discarded = steps[i].discarded;
		pem_async__take_packet(&session, steps[i].stream, 0, &packet, sizeof(packet));
		assert_int_equal(a.incoming.count, steps[i].losses);
	}
	free(a.streams);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(records_wait_for_the_horizon),
		TEST(one_clock_keeps_a_threads_order),
		TEST(late_ones_in_a_row_are_all_late),
		TEST(losses_are_of_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
