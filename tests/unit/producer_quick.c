// SPDX-License-Identifier: MIT
/*
 * producer_quick.c - what stubs serve by themselves, and what they leave to the library
 *
 * The library's entry is replaced by one that counts the events that come there.
 */
#include "core/core.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"

#include <errno.h>
#include <pthread.h>

#define TICK "APP::Probe::Tick"

static struct pem_session *session;
static unsigned passed_on;

static void notify(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes)
{
	passed_on++;
	pem_notify(provider, index, record, bytes);
}

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	pem_provider_probe.notify = notify;
	session = session_open(NULL);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	pem_provider_probe.notify = pem_notify;
	return folder_remove(state);
}

static struct pem_log *log_ticks(void)
{
	const struct pem_context context = {.pid = (uint32_t)getpid()};
	struct pem_log *log = log_to_trace(session, TICK, &context);

	pem_notify_probe_tick(0, 0); /* the first one has no chunk yet */
	passed_on = 0;
	return log;
}

/* Of an event: did the library see it? */
static bool is_passed_on(void)
{
	passed_on = 0;
	pem_notify_probe_tick(0, 1);
	return passed_on != 0;
}

/* The log has so many, in order, and lacks none. */
static void expect(struct pem_log *log, uint64_t count)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t found;

	if (pem_log__finish(log, &error))
		fail_msg("%s", error.text);
	read_trace(TICK, &found, &balance);
	assert_int_equal(found, count);
	assert_int_equal(balance.produced, count);
	assert_int_equal(balance.delivered, count);
}

static void a_logged_event_does_not_come_to_the_library(void **state)
{
	struct pem_log *log = log_ticks();
	const struct pem_writer *w = &pem_thread_current->writer[0];
	uint64_t before = pem_clock();
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_false(is_passed_on());
	assert_in_range(w->last_clock, before, pem_clock());
	assert_int_equal(w->record_count, 101);
	assert_int_equal(pem_thread_current->depth, PEM_DEPTH_IDLE);
	expect(log, 101);
}

static void where_there_is_no_room_it_does(void **state)
{
	struct pem_log *log = log_ticks();
	struct pem_writer *w = &pem_thread_current->writer[0];

	(void)state;
	w->end = w->cursor + 24;
	assert_false(is_passed_on());
	w->end = w->cursor + 23;
	assert_true(is_passed_on());
	assert_int_equal(pem_thread_current->depth, PEM_DEPTH_IDLE);
	assert_false(is_passed_on());
	expect(log, 4);
}

/* 32 bits of the clock can't tell times that lie further apart. */
static void after_a_long_pause_it_does(void **state)
{
	struct pem_log *log = log_ticks();
	struct pem_writer *w = &pem_thread_current->writer[0];

	(void)state;
	w->last_clock = pem_clock() - (1ull << 32);
	assert_true(is_passed_on());
	assert_false(is_passed_on());
	expect(log, 3);
}

/* Where the upper half of the clock changes, the general path looks at all of it. */
static void a_new_upper_half_of_the_clock_is_no_pause(void **state)
{
	struct pem_log *log = log_ticks();
	struct pem_writer *w = &pem_thread_current->writer[0];
	struct pem_packet *packet = w->packet;

	(void)state;
	w->last_clock = (pem_clock() | UINT32_MAX) - (1ull << 32);
	assert_false(is_passed_on());
	assert_true(pem_clock() - w->last_clock < 1ull << 32);
	assert_ptr_equal(w->packet, packet);
	expect(log, 2);
}

static void a_clock_that_goes_back_begins_a_chunk(void **state)
{
	struct pem_log *log = log_ticks();
	struct pem_writer *w = &pem_thread_current->writer[0];
	uint64_t now, future;

	(void)state;
	/* The last moment with this upper half, which is no close one. */
	do {
		now = pem_clock();
		future = now | UINT32_MAX;
	} while (future - now < 1u << 30);
	w->last_clock = future;
	assert_true(is_passed_on());
	assert_int_equal(w->record_count, 1); /* of the new chunk */
	expect(log, 2);
}

static void inside_of_an_event_it_does(void **state)
{
	struct pem_log *log = log_ticks();

	(void)state;
	((struct pem_thread_full *)pem_thread_current)->begun[1] =
		(uintptr_t)__builtin_frame_address(0);
	pem_thread_current->depth = PEM_DEPTH_IDLE + 1;
	assert_true(is_passed_on());
	pem_thread_current->depth = PEM_DEPTH_IDLE;
	assert_false(is_passed_on());
	expect(log, 3);
}

static struct pem_statistics *count(struct pem_session *of, const char *attribute,
				    const char *predicate)
{
	const struct pem_context context = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = events(of, TICK);
	struct pem_error error = {""};
	struct pem_statistics *statistics;

	assert_int_equal(pem_event_set__where(set, predicate, &error), 0);
	statistics = pem_session__register_statistics(of, set, &context, attribute, &error);
	assert_non_null(statistics);
	assert_int_equal(pem_statistics__enable(statistics), 0);
	pem_event_set__free(set);
	return statistics;
}

static struct pem_statistic value_of(struct pem_statistics *statistics)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(statistics, &value, 1), 1);
	return value;
}

/* Of two sessions, each gets the event. */
static void for_two_sessions_it_does(void **state)
{
	struct pem_session *other = session_open(NULL);
	struct pem_log *log = log_ticks();
	struct pem_statistics *statistics = count(other, NULL, NULL);

	(void)state;
	assert_true(is_passed_on());
	assert_true(is_passed_on());
	assert_int_equal(value_of(statistics).count, 2);
	pem_statistics__unregister(statistics);
	assert_false(is_passed_on());
	expect(log, 4);
	pem_session__close(other);
}

/* The word of a session that is over would be another one's with the same incarnation. */
static void after_its_session_no_action_is_known(void **state)
{
	struct pem_session *own = session_open(NULL);
	const struct pem_context context = {.pid = (uint32_t)getpid()};
	struct pem_log *log = log_to_trace(own, TICK, &context);
	struct pem_error error = {""};

	(void)state;
	pem_notify_probe_tick(1, 1);
	assert_int_not_equal(pem_thread_current->logged_action, 0);
	assert_int_equal(pem_log__finish(log, &error), 0);
	pem_session__close(own);
	assert_int_equal(pem_thread_current->logged_action, 0);
}

/* Leave an action in a structure; then, in another thread that got it, expect none. */
static void *one_event(void *arg)
{
	const struct pem_thread **used = arg;
	bool is_second = *used != NULL;

	pem_notify_probe_tick(1, 1);
	if (is_second)
		return pem_thread_current == *used && !pem_thread_current->logged_action ? arg
											 : NULL;
	*used = pem_thread_current;
	((struct pem_thread *)pem_thread_current)->logged_action = 77;
	return arg;
}

static void a_thread_knows_no_action_of_the_one_before_it(void **state)
{
	struct pem_session *other = session_open(NULL);
	struct pem_log *log = log_ticks(); /* the first session: other's events set no action */
	struct pem_statistics *statistics = count(other, NULL, NULL);
	const struct pem_thread *used = NULL;
	pthread_t thread;
	void *good;
	int i;

	(void)state;
	expect(log, 1);
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&thread, NULL, one_event, &used), 0);
		assert_int_equal(pthread_join(thread, &good), 0);
		assert_non_null(good);
	}
	pem_statistics__unregister(statistics);
	pem_session__close(other);
}

static void counted_and_logged_it_does(void **state)
{
	struct pem_log *log = log_ticks();
	struct pem_statistics *statistics = count(session, NULL, NULL);

	(void)state;
	assert_true(is_passed_on());
	assert_int_equal(value_of(statistics).count, 1);
	pem_statistics__reset(statistics); /* its epoch is none of the log's */
	pem_statistics__unregister(statistics);
	assert_false(is_passed_on());
	assert_int_equal(pem_page_probe.action[0][0], pem_thread_current->logged_action);
	expect(log, 3);
}

/* Of each field, and of none. */
static void a_counted_event_does_not_come_to_the_library(void **state)
{
	static const char *const attributes[] = {NULL, "who", "number"};
	struct pem_statistics *statistics;
	struct pem_statistic value;
	uint64_t i, sum;
	int k;

	(void)state;
	for (k = 0; k < 3; k++) {
		statistics = count(session, attributes[k], NULL);
		pem_notify_probe_tick(1000, 1);
		passed_on = 0;
		for (sum = i = 0; i < 100; i++) {
			pem_notify_probe_tick(1000 + i, 2 * i);
			sum += k == 0 ? 0 : k == 1 ? 1000 + i : 2 * i;
		}
		assert_int_equal(passed_on, 0);
		value = value_of(statistics);
		assert_int_equal(value.count, 101);
		if (k) {
			assert_int_equal(value.sum, sum + (k == 1 ? 1000 : 1));
			assert_int_equal(value.min, k == 1 ? 1000 : 0);
			assert_int_equal(value.max, k == 1 ? 1099 : 198);
		}
		pem_statistics__unregister(statistics);
	}
	assert_int_equal(pem_thread_current->depth, PEM_DEPTH_IDLE);
}

static void neither_does_one_that_a_predicate_judges(void **state)
{
	struct pem_statistics *statistics = count(session, "number", "who > 10 && number < 50");
	uint64_t i;

	(void)state;
	pem_notify_probe_tick(11, 1);
	passed_on = 0;
	for (i = 0; i < 100; i++)
		pem_notify_probe_tick(10 + i % 2, i);
	assert_int_equal(passed_on, 0);
	assert_int_equal(value_of(statistics).count, 26);
	assert_int_equal(value_of(statistics).max, 49);
	pem_statistics__unregister(statistics);
}

#define HERE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HERE(a_logged_event_does_not_come_to_the_library),
		HERE(where_there_is_no_room_it_does),
		HERE(after_a_long_pause_it_does),
		HERE(a_new_upper_half_of_the_clock_is_no_pause),
		HERE(a_clock_that_goes_back_begins_a_chunk),
		HERE(inside_of_an_event_it_does),
		HERE(for_two_sessions_it_does),
		HERE(after_its_session_no_action_is_known),
		HERE(a_thread_knows_no_action_of_the_one_before_it),
		HERE(counted_and_logged_it_does),
		HERE(a_counted_event_does_not_come_to_the_library),
		HERE(neither_does_one_that_a_predicate_judges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
