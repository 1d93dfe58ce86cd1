/* SPDX-License-Identifier: MIT */
/* stream_service.c - what a thread did between readings of its queues (pem_streams__service) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pem/stream_page.h>

#include "streams/streams.h"

static struct pem_streams_queue reading(uint32_t id, uint64_t at_ns, uint64_t items,
					uint64_t blocked_ns, uint64_t late_ns, uint64_t wait_ns)
{
	struct pem_streams_queue queue = {.id = id, .capacity = 8, .at_ns = at_ns};

	queue.pop.tid = 5;
	queue.pop.items = items;
	queue.pop.blocked_ns = blocked_ns;
	queue.pop.late_ns = late_ns;
	queue.pop.wait_ns = wait_ns;
	queue.pop.has_times = 1;
	return queue;
}

/* Of a thread that had done nothing before. */
static struct pem_streams_service service_between(const struct pem_streams_reading *before,
						  const struct pem_streams_reading *after)
{
	struct pem_streams_service service = {.size = sizeof(service)};

	assert_int_equal(pem_streams__between(before, after, 0, 1, &service), 1);
	assert_int_equal(service.busy_ns + service.blocked_in_ns + service.blocked_out_ns +
				 service.for_cpu_ns,
			 service.wall_ns);
	return service;
}

static void service_of_a_thread(void **state)
{
	struct pem_streams_queue lists[2][2] = {
		{reading(1, 1000, 10, 100, 0, 50), reading(2, 1000, 0, 0, 0, 50)},
		{reading(1, 2000, 30, 300, 20, 150), reading(2, 2000, 0, 0, 0, 150)}};
	struct pem_streams_reading before = {lists[0], 2, 2}, after = {lists[1], 2, 2};
	struct pem_streams_end *now = &lists[1][0].pop;
	struct pem_streams_service service;

	(void)state;
	lists[0][1].push = lists[0][1].pop, lists[0][1].pop.tid = 0;
	lists[1][1].push = lists[1][1].pop, lists[1][1].pop.tid = 0;
	lists[1][1].push.blocked_ns = 100, lists[1][1].push.late_ns = 10;
	lists[1][1].push.items = 7;
	now->run_ns = 610, lists[0][0].pop.sleeps = now->sleeps = 7, now->switches = 1;
	/* 1000 ns, of which 200 and 100 blocked, and 100 without a CPU, 30 of it in blocks. */
	service = service_between(&before, &after);
	assert_int_equal(service.items, 20);
	assert_int_equal(service.popped, 20);
	assert_int_equal(service.pushed, 7);
	assert_int_equal(service.wall_ns, 1000);
	assert_int_equal(service.busy_ns, 630);
	assert_int_equal(service.low_ns, 610);
	assert_int_equal(service.high_ns, 630);
	assert_int_equal(service.blocked_in_ns, 180);
	assert_int_equal(service.blocked_out_ns, 90);
	assert_int_equal(service.for_cpu_ns, 100);
	assert_int_equal(service.run_ns, 610);
	assert_int_equal(service.open_ns, 0);
	/* Counts that wrap. */
	lists[0][0].pop.items = UINT64_MAX - 9, now->items = 10;
	assert_int_equal(service_between(&before, &after).items, 20);
	/* Nonsense in the memory: the times still add up. */
	now->blocked_ns = UINT64_MAX, lists[1][1].push.late_ns = UINT64_MAX;
	service_between(&before, &after);
}

static void a_wait_for_a_cpu_that_goes_on(void **state)
{
	struct pem_streams_queue lists[3][1] = {{reading(1, 1000, 0, 0, 0, 0)},
						{reading(1, 2000, 0, 0, 0, 0)},
						{reading(1, 3000, 9, 0, 0, 1500)}};
	struct pem_streams_reading readings[3] = {
		{lists[0], 1, 1}, {lists[1], 1, 1}, {lists[2], 1, 1}};
	struct pem_streams_service service;

	(void)state;
	/* It ran for 300 ns, and has been ready since: 700 ns are no service yet. */
	lists[1][0].pop.run_ns = 300, lists[1][0].pop.is_ready = 1;
	lists[1][0].pop.switches = 1, lists[2][0].pop.switches = 2;
	service = service_between(&readings[0], &readings[1]);
	assert_int_equal(service.busy_ns, 300);
	assert_int_equal(service.for_cpu_ns, 700);
	assert_int_equal(service.open_ns, 700);
	assert_int_equal(service.high_ns, 1000);
	/* All of it was the wait, which is over; then it ran for 100 ns more, and slept 100 ns. */
	lists[2][0].pop.run_ns = 400;
	assert_int_equal(pem_streams__between(&readings[1], &readings[2], 0, 1, &service), 1);
	assert_int_equal(service.busy_ns, 500);
	assert_int_equal(service.for_cpu_ns, 1500);
	assert_int_equal(service.open_ns, 0);
	assert_int_equal(service.high_ns, 500);
	/* It did not wait at the first reading: it slept, which is service. */
	lists[1][0].pop.is_ready = 0;
	assert_int_equal(service_between(&readings[0], &readings[1]).busy_ns, 1000);
}

static void waits_that_are_too_short(void **state)
{
	struct pem_streams_queue lists[2][1] = {{reading(1, 0, 0, 0, 0, 0)},
						{reading(1, 200000, 9, 50000, 0, 100)}};
	struct pem_streams_reading before = {lists[0], 1, 1}, after = {lists[1], 1, 1};
	struct pem_streams_end *now = &lists[1][0].pop;
	struct pem_streams_service service;

	(void)state;
	/* The program did not notice the wait at the end of its sleep, if it was there. */
	now->run_ns = 149900, now->sleeps = now->blocks = 1, now->switches = 2;
	service = service_between(&before, &after);
	assert_int_equal(service.busy_ns, 149900);
	assert_int_equal(service.doubt_ns, 100);
	assert_int_equal(service.high_ns, 150000);
	/* Nor did it those of 20 us, or of 70 us if a timer ended the sleep. */
	now->wait_ns = 120000, now->run_ns = 60000;
	assert_int_equal(service_between(&before, &after).doubt_ns, 20000);
	now->expired = 1;
	assert_int_equal(service_between(&before, &after).doubt_ns, 70000);
}

static void a_thread_that_sleeps_in_its_queues_alone(void **state)
{
	struct pem_streams_queue lists[2][1] = {{reading(1, 0, 0, 0, 0, 0)},
						{reading(1, 200000, 9, 50000, 0, 60000)}};
	struct pem_streams_reading before = {lists[0], 1, 1}, after = {lists[1], 1, 1};
	struct pem_streams_end *now = &lists[1][0].pop;
	struct pem_streams_service service;

	(void)state;
	/* 90000 ns are not known to be service: it may have spun, and slept elsewhere. */
	now->run_ns = 90000, now->sleeps = now->blocks = 9, now->switches = 10;
	now->is_ready = 1;
	service = service_between(&before, &after);
	assert_int_equal(service.other_sleeps, 1);
	assert_int_equal(service.busy_ns, 0);
	assert_int_equal(service.high_ns, 150000);
	/* The tenth sleep is in a block that goes on. So it can't be more than it ran for. */
	now->since_ns = 199999;
	assert_int_equal(service_between(&before, &after).high_ns, 90000);
	now->since_ns = 0, now->switches = 9;
	assert_int_equal(service_between(&before, &after).high_ns, 90000);
	now->is_ready = 0;
	assert_int_equal(service_between(&before, &after).busy_ns, 90000);
	now->switches = 10;
	assert_int_equal(service_between(&before, &after).busy_ns, 90000);
	now->wait_ns = 50000;
	assert_int_equal(service_between(&before, &after).busy_ns, 100000);
	/* Counts that wrap. */
	lists[0][0].pop.switches = UINT32_MAX - 4, now->switches = 4;
	assert_int_equal(service_between(&before, &after).busy_ns, 90000);
}

static void service_that_is_unknown(void **state)
{
	struct pem_streams_queue lists[2][2] = {
		{reading(1, 1000, 10, 100, 0, 50), reading(2, 1000, 0, 0, 0, 50)},
		{reading(1, 2000, 30, 300, 20, 150), reading(2, 2000, 0, 0, 0, 150)}};
	struct pem_streams_reading before = {lists[0], 2, 2}, after = {lists[1], 2, 2};
	struct pem_streams_service service = {.size = sizeof(service)};

	(void)state;
	/* Another end of the thread goes to another thread; its queue is gone; it comes. */
	lists[1][1].pop.tid = 6;
	assert_int_equal(pem_streams__between(&before, &after, 0, 1, &service), 0);
	after.count = 1;
	assert_int_equal(pem_streams__between(&before, &after, 0, 1, &service), 0);
	after.count = 2;
	lists[1][1].pop.tid = 5, lists[0][1].pop.tid = 6;
	assert_int_equal(pem_streams__between(&before, &after, 0, 1, &service), 0);
	lists[0][1].pop.tid = 0; /* nobody used it before */
	assert_int_equal(pem_streams__between(&before, &after, 0, 1, &service), 1);
	/* Another thread; the same one again; times unknown; another queue; no time has passed. */
	lists[1][0].pop.tid = 6;
	assert_int_equal(pem_streams__between(&before, &after, 0, 1, &service), 0);
	lists[1][0].pop.tid = 5, lists[1][0].pop.threads++;
	assert_int_equal(pem_streams__between(&before, &after, 0, 1, &service), 0);
	lists[1][0].pop.threads--, lists[1][0].pop.has_times = 0;
	assert_int_equal(pem_streams__between(&before, &after, 0, 1, &service), 0);
	lists[1][0].pop.has_times = 1, lists[1][0].id = 3;
	assert_int_equal(pem_streams__between(&before, &after, 0, 1, &service), 0);
	assert_int_equal(pem_streams__between(&before, &before, 0, 1, &service), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(service_of_a_thread),
		cmocka_unit_test(a_wait_for_a_cpu_that_goes_on),
		cmocka_unit_test(waits_that_are_too_short),
		cmocka_unit_test(a_thread_that_sleeps_in_its_queues_alone),
		cmocka_unit_test(service_that_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
