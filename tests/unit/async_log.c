// SPDX-License-Identifier: MIT
/*
 * async_log.c - asynchronous callbacks beside a log, and what they lose: nothing in silence,
 * nothing of the log's
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "session/session.h"
#include "writer/log.h"
#include "async_fixture.h"

#define TICKS "APP::Probe::Tick"
#define FLOATS "APP::Types::Floats"

static uint64_t in_trace(const char *event, struct pem_balance *balance)
{
	uint64_t count;

	read_trace(event, &count, balance);
	return count;
}

static void finish(void)
{
	struct pem_error error = {""};

	if (pem_log__finish(session->log, &error))
		fail_msg("%s", error.text);
}

static void raise_floats(struct raiser *r, unsigned count)
{
	for (; count; count--) {
		assert_int_equal(write(r->to, "", 1), 1);
		assert_int_equal(read(r->from, &(char){0}, 1), 1);
	}
}

static void a_callbacks_events_are_not_in_the_log(void **state)
{
	struct pem_callback *cb = enabled_on(TICKS, 100);
	struct pem_balance balance;
	struct raiser r;

	(void)state;
	log_to_trace(session, FLOATS, NULL);
	r = raiser_start(1);
	raise_ticks(&r, 1000);
	raise_floats(&r, 10);
	raise_ticks(&r, 3000);
	wait_for(4000);
	assert_int_equal(seen.gaps, 0);
	finish();
	raise_ticks(&r, 1000);
	wait_for(5000);
	assert_int_equal(counts_of(cb).lost, 0);
	raiser_end(&r);
	assert_int_equal(in_trace(FLOATS, &balance), 11); /* one as it begins */
	assert_int_equal(balance.produced, 11);
	assert_int_equal(balance.delivered, 11);
}

static void both_get_an_event_that_both_want(void **state)
{
	struct raiser r = raiser_start(1);
	struct pem_balance balance;

	(void)state;
	enabled_on(TICKS, 100);
	log_to_trace(session, TICKS, NULL);
	raise_ticks(&r, 20000);
	wait_for(20000);
	while (session->log->delivered < 10000)
		pem_session__poll(session, 1, &(int){0});
	finish();
	raiser_end(&r);
	assert_int_equal(in_trace(TICKS, &balance), 20000);
	assert_int_equal(balance.produced, 20000);
	assert_int_equal(balance.delivered, 20000);
}

static void the_log_holds_what_was_raised_while_it_was_enabled(void **state)
{
	struct raiser r = raiser_start(1);
	struct pem_balance balance;
	struct pem_log *log;

	(void)state;
	enabled_on(TICKS, 100);
	raise_ticks(&r, 1000);
	log = log_to_trace(session, TICKS, NULL);
	pem_log__disable(log);
	raise_ticks(&r, 1000);
	pem_log__enable(log);
	raise_ticks(&r, 100);
	pem_log__disable(log);
	raise_ticks(&r, 1000);
	wait_for(3100);
	assert_int_equal(seen.gaps, 0);
	finish();
	raiser_end(&r);
	assert_int_equal(in_trace(TICKS, &balance), 100);
	assert_int_equal(balance.produced, 100);
	assert_int_equal(balance.delivered, 100);
}

static int hold;

static void stay_while_held(struct seen *s)
{
	(void)s;
	wait_until(&hold, 0);
}

/*
 * Two chunks of pool, and as much waits in memory: the rest is lost, and each is one or the other.
 */
static int small_pools(void **state)
{
	struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = 4096, .chunk_count = 4};

	return open_session(state, &options);
}

static void what_a_slow_function_has_no_room_for_is_counted(void **state)
{
	struct pem_callback *cb = enabled_on(TICKS, 100);
	struct raiser r = raiser_start(1);

	(void)state;
	put(&hold, 1);
	also_do(stay_while_held);
	raise_ticks(&r, 1);
	while (!counts_of(cb).called)
		usleep(200);
	raise_ticks(&r, 20000);
	assert_true(counts_of(cb).lost > 0);
	put(&hold, 0);
	while (counts_of(cb).called + counts_of(cb).lost < 20001)
		usleep(200);
	raise_ticks(&r, 1);
	while (counts_of(cb).called + counts_of(cb).lost < 20002)
		usleep(200);
	assert_int_equal(counts_of(cb).called + counts_of(cb).lost, 20002);
	assert_int_equal(seen.disorder, 0);
	raiser_end(&r);
}

/* The log does not lose what a slow function has no room for. */
static void a_slow_function_costs_the_log_nothing(void **state)
{
	struct pem_callback *cb = enabled_on(TICKS, 100);
	struct pem_balance balance;
	struct raiser r;
	unsigned i;

	(void)state;
	log_to_trace(session, TICKS, NULL);
	r = raiser_start(1);
	put(&hold, 1);
	also_do(stay_while_held);
	for (i = 1; i <= 200; i++) {
		raise_ticks(&r, 100);
		/* Two chunks have 672 of them. A drain may take less where the machine is busy. */
		do {
			session->turn->next_drain_ns = 0;
			pem_session__poll(session, 0, &(int){0});
		} while (100 * i - session->log->delivered > 500);
	}
	assert_true(counts_of(cb).lost > 0);
	put(&hold, 0);
	while (counts_of(cb).called + counts_of(cb).lost < 20000)
		usleep(200);
	finish();
	raiser_end(&r);
	assert_int_equal(in_trace(TICKS, &balance), 20000);
	assert_int_equal(balance.discarded, 0);
}

static int flight_recorder(void **state)
{
	struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = 4096, .chunk_count = 8, .overwrite = 1};

	return open_session(state, &options);
}

static void a_flight_recorder_is_read_without_taking(void **state)
{
	struct pem_callback *cb = enabled_on(TICKS, 100);
	struct pem_balance balance;
	struct raiser r;
	unsigned i;

	(void)state;
	log_to_trace(session, TICKS, NULL);
	r = raiser_start(1);
	for (i = 1; i <= 50; i++) {
		raise_ticks(&r, 100);
		while (counts_of(cb).called + counts_of(cb).lost < i * 100)
			usleep(100);
	}
	assert_int_equal(counts_of(cb).called + counts_of(cb).lost, 5000);
	assert_int_equal(seen.disorder, 0);
	pem_callback__unregister(cb);
	finish();
	raiser_end(&r);
	assert_true(in_trace(TICKS, &balance) > 100);
	assert_true(balance.overwritten > 0);
	assert_int_equal(balance.produced,
			 balance.delivered + balance.discarded + balance.overwritten);
}

static void what_was_overwritten_unread_is_counted(void **state)
{
	struct pem_callback *cb = enabled_on(TICKS, 10000);
	struct raiser r = raiser_start(1);
	uint64_t raised = 0;

	(void)state;
	while (!counts_of(cb).lost) {
		raise_ticks(&r, 20000);
		raised += 20000;
	}
	while (counts_of(cb).called + counts_of(cb).lost < raised)
		usleep(200);
	assert_int_equal(counts_of(cb).called + counts_of(cb).lost, raised);
	assert_int_equal(seen.disorder, 0);
	raiser_end(&r);
}

static void a_killed_process_balances(void **state)
{
	struct pem_callback *cb;
	struct raiser r;
	unsigned i;

	(void)state;
	for (i = 0; i < 20; i++) {
		r = raiser_start(1);
		memset(seen.next_number, 0, sizeof(seen.next_number));
		seen.gaps = 0;
		cb = enabled_on(TICKS, 100);
		assert_int_equal(write(r.to, "\xff\xff\xff\xff\xff\xff\xff\xff", 8), 8);
		usleep(i * 20);
		kill(r.pid, SIGKILL);
		waitpid(r.pid, NULL, 0);
		while (has_producers())
			pem_session__poll(session, 1, &(int){0});
		assert_int_equal(counts_of(cb).lost, 0);
		pem_callback__unregister(cb);
		assert_int_equal(seen.gaps, 0);
		raiser_end(&r);
	}
}

int main(void)
{
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, async_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_callbacks_events_are_not_in_the_log, async_set_up),
		TEST(both_get_an_event_that_both_want, async_set_up),
		TEST(the_log_holds_what_was_raised_while_it_was_enabled, async_set_up),
		TEST(what_a_slow_function_has_no_room_for_is_counted, small_pools),
		TEST(a_slow_function_costs_the_log_nothing, small_pools),
		TEST(a_flight_recorder_is_read_without_taking, flight_recorder),
		TEST(what_was_overwritten_unread_is_counted, flight_recorder),
		TEST(a_killed_process_balances, async_set_up),
	};

	alarm(600); /* what is never called back is waited for */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
