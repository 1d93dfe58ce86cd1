// SPDX-License-Identifier: MIT
/*
 * session_statistics.c - statistics of this process's own events: what the handles promise
 * (pem/pem.h)
 */
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "programs/types.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>

static struct pem_session *session;

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static struct pem_statistics *statistics(const char *pattern, uint32_t tid, const char *attribute)
{
	const struct pem_context context = {.pid = (uint32_t)getpid(), .tid = tid};
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_statistics *st;

	st = pem_session__register_statistics(session, set, &context, attribute, &error);
	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	return st;
}

static struct pem_statistic value_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.unavailable, 0);
	return value;
}

static void integers(int32_t i32, uint64_t u64)
{
	pem_notify_types_integers(0, 0, 0, 0, 0, 0, i32, u64);
}

static void counts_only_while_enabled(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", PEM_ANY, NULL);

	(void)state;
	pem_notify_probe_tick(0, 1);
	assert_int_equal(value_of(st).count, 0);
	pem_statistics__enable(st);
	pem_notify_probe_tick(0, 2);
	pem_notify_probe_tick(0, 3);
	assert_int_equal(value_of(st).count, 2);
	pem_statistics__disable(st);
	pem_notify_probe_tick(0, 4);
	assert_int_equal(value_of(st).count, 2);
	pem_statistics__enable(st);
	pem_notify_probe_tick(0, 5);
	assert_int_equal(value_of(st).count, 3);
	pem_statistics__unregister(st);
	pem_notify_probe_tick(0, 6);
}

static void reset_forgets(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", PEM_ANY, "number");
	struct pem_statistic value = {.size = sizeof(value)};

	(void)state;
	pem_statistics__enable(st);
	pem_notify_probe_tick(0, 100);
	pem_statistics__reset(st);
	assert_int_equal(value_of(st).count, 0);
	pem_notify_probe_tick(0, 7);
	value = value_of(st);
	assert_int_equal(value.count, 1);
	assert_int_equal(value.min, 7);
	assert_int_equal(value.max, 7);
	pem_statistics__disable(st);
	pem_statistics__reset(st);
	assert_int_equal(value_of(st).count, 0);
}

static void unsigned_and_signed_attributes(void **state)
{
	struct pem_statistics *st = statistics("APP::Types::Integers", PEM_ANY, "i32");
	struct pem_statistic value = {.size = sizeof(value)};

	(void)state;
	pem_statistics__enable(st);
	integers(-5, 1);
	integers(INT32_MAX, 2);
	integers(INT32_MIN, 3);
	value = value_of(st);
	assert_int_equal(value.count, 3);
	assert_true(value.is_signed);
	assert_true((int64_t)value.min == INT32_MIN);
	assert_true((int64_t)value.max == INT32_MAX);
	assert_true((int64_t)value.sum == -6);
	assert_true(value.mean == -2.0);
	pem_statistics__unregister(st);
	st = statistics("APP::Types::Integers", PEM_ANY, "u64");
	pem_statistics__enable(st);
	integers(0, UINT64_MAX);
	integers(0, 2);
	value = value_of(st);
	assert_int_equal(value.count, 2);
	assert_false(value.is_signed);
	assert_true(value.min == 2 && value.max == UINT64_MAX && value.sum == 1);
}

static void keep_part(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
		      void *arg)
{
	(void)owner;
	*(struct pem_statistic *)arg = *part;
}

static void check_overflow(struct pem_statistics *st, bool expected)
{
	struct pem_statistic value = value_of(st), part = {0};

	assert_int_equal(value.may_have_overflowed, expected);
	assert_int_equal(isnan(value.mean) != 0, expected);
	assert_int_equal(pem_statistics__each(st, 0, keep_part, &part), 1);
	assert_int_equal(part.may_have_overflowed, expected);
	assert_int_equal(isnan(part.mean) != 0, expected);
}

static void unsigned_sums_that_wrap_are_flagged(void **state)
{
	struct pem_statistics *st = statistics("APP::Types::Integers", PEM_ANY, "u64");

	(void)state;
	pem_statistics__enable(st);
	integers(0, UINT64_MAX);
	check_overflow(st, false);
	integers(0, UINT64_MAX);
	check_overflow(st, true);
	pem_statistics__reset(st);
	integers(0, UINT64_MAX / 2);
	integers(0, UINT64_MAX / 2);
	check_overflow(st, false);
	assert_true(value_of(st).mean == (double)(UINT64_MAX / 2));
}

static void signed_sums_that_wrap_are_flagged(void **state)
{
	struct pem_statistics *st = statistics("APP::Types::Integers", PEM_ANY, "i64");

	(void)state;
	pem_statistics__enable(st);
	pem_notify_types_integers(0, 0, 0, 0, 0, INT64_MIN, 0, 0);
	check_overflow(st, false);
	pem_notify_types_integers(0, 0, 0, 0, 0, INT64_MIN, 0, 0);
	check_overflow(st, true);
	pem_statistics__reset(st);
	pem_notify_types_integers(0, 0, 0, 0, 0, -3, 0, 0);
	pem_notify_types_integers(0, 0, 0, 0, 0, -5, 0, 0);
	check_overflow(st, false);
	assert_true(value_of(st).mean == -4);
}

static void floating_attributes(void **state)
{
	struct pem_statistics *st = statistics("APP::Types::Floats", PEM_ANY, "f64");
	struct pem_statistic value = {.size = sizeof(value)};

	(void)state;
	pem_statistics__enable(st);
	pem_notify_types_floats(0, -2.5);
	pem_notify_types_floats(0, 10.0);
	pem_notify_types_floats(0, -0.5);
	value = value_of(st);
	assert_int_equal(value.count, 3);
	assert_true(value.is_float);
	assert_true(value.sum_f == 7.0 && value.min_f == -2.5 && value.max_f == 10.0);
	pem_statistics__unregister(st);
	st = statistics("APP::Types::Floats", PEM_ANY, "f32");
	pem_statistics__enable(st);
	pem_notify_types_floats(1.5f, 0);
	pem_notify_types_floats(-3.0f, 0);
	value = value_of(st);
	assert_true(value.sum_f == -1.5 && value.min_f == -3.0 && value.max_f == 1.5);
}

static void *tick_ten_times(void *arg)
{
	int i;

	for (i = 0; i < 10; i++)
		pem_notify_probe_tick(0, 50);
	return arg;
}

static void threads_add_up(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", PEM_ANY, "number");
	pthread_t thread[8];
	int i;

	(void)state;
	pem_statistics__enable(st);
	for (i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, tick_ten_times, NULL);
	for (i = 0; i < 8; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(value_of(st).count, 80);
	assert_int_equal(value_of(st).sum, 4000);
}

static void context_of_one_thread(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", (uint32_t)gettid(), NULL);
	pthread_t thread;

	(void)state;
	pem_statistics__enable(st);
	pthread_create(&thread, NULL, tick_ten_times, NULL);
	pthread_join(thread, NULL);
	assert_int_equal(value_of(st).count, 0);
	pem_notify_probe_tick(0, 1);
	assert_int_equal(value_of(st).count, 1);
}

static void sessions_do_not_mix(void **state)
{
	struct pem_statistics *mine = statistics("APP::Probe::Tick", PEM_ANY, NULL), *theirs;
	struct pem_session *first = session;

	(void)state;
	session = session_open(NULL);
	theirs = statistics("APP::Probe::Tick", PEM_ANY, "number");
	pem_statistics__enable(mine);
	pem_notify_probe_tick(0, 5);
	pem_statistics__enable(theirs);
	pem_notify_probe_tick(0, 6);
	assert_int_equal(value_of(mine).count, 2);
	assert_int_equal(value_of(theirs).count, 1);
	assert_int_equal(value_of(theirs).sum, 6);
	pem_session__close(session);
	session = first;
	pem_notify_probe_tick(0, 7);
	assert_int_equal(value_of(mine).count, 3);
}

static void sessions_one_after_another(void **state)
{
	struct pem_statistics *st;
	int i;

	(void)state;
	for (i = 0; i < 30; i++) {
		pem_session__close(session);
		session = session_open(NULL);
		st = statistics("APP::Probe::Tick", PEM_ANY, NULL);
		pem_statistics__enable(st);
		pem_notify_probe_tick(0, 1);
		assert_int_equal(value_of(st).count, 1);
	}
}

static void wrong_demands_are_refused(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", PEM_ANY, "number");
	const char *unknown = "APP::Probe::Tack";
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};

	(void)state;
	pem_statistics__unregister(st);
	assert_null(pem_session__register_statistics(session, set, NULL, "colour", &error));
	assert_int_equal(errno, EINVAL);
	assert_non_null(strstr(error.text, "colour"));
	pem_event_set__free(set);
	assert_null(pem_event_set__new(session, &unknown, 1, &error));
	assert_int_equal(errno, ENOENT);
	assert_non_null(strstr(error.text, "APP::Probe::Tick"));
}

/* The ring of this process, whose only provider's first event is looked at. */
static const struct pem_ring *own_ring(void)
{
	return &pem_process.joined[session->self_index].ring;
}

static void *tick_twice(void *arg)
{
	pem_notify_probe_tick(0, 10);
	pem_notify_probe_tick(0, 20);
	return arg;
}

/*
 * A thread that is stopped between the first store of an update and the last takes none of the
 * others' with it.
 */
static void half_done_update_hides_nothing(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", PEM_ANY, "number");
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_cell *cell;

	(void)state;
	pem_statistics__enable(st);
	tick_twice(NULL);
	cell = &own_ring()->cells[own_ring()->event_capacity + pem_provider_probe.event_base];
	assert_int_equal(cell->stat_end, 2);
	cell->stat_begin = 3;
	value = value_of(st);
	assert_int_equal(value.count, 2);
	assert_int_equal(value.sum, 30);
	cell->stat_begin = ~0ull; /* begins anew: of another epoch */
	assert_int_equal(value_of(st).count, 0);
	cell->stat_begin = 2;
	assert_int_equal(value_of(st).count, 2);
}

/* Lanes behind one that is being taken, or that found no memory, are not overlooked. */
static void lane_without_thread_hides_no_other(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", PEM_ANY, NULL);
	struct pem_lane *lane;
	pthread_t thread;

	(void)state;
	pem_statistics__enable(st);
	tick_twice(NULL);
	pthread_create(&thread, NULL, tick_twice, NULL);
	pthread_join(thread, NULL);
	assert_int_equal(value_of(st).count, 4);
	lane = &own_ring()->lanes[1];
	assert_int_equal(lane->state, PEM_LANE_OWNED);
	lane->tid = 0;
	assert_int_equal(value_of(st).count, 2);
	lane->state = PEM_LANE_FREE;
	lane->tid = PEM_LANE_NO_MEMORY;
	assert_int_equal(value_of(st).count, 2);
	lane->tid = 0;
	assert_int_equal(value_of(st).count, 0);
}

static void remember(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	snprintf(arg, 256, "%s", text);
}

/*
 * An event that finds no lane is lacking in its statistic, is no loss of a log, and somebody is
 * told.
 */
static void lacking_events_are_said(void **state)
{
	char said[256] = "";
	struct pem_session_options options = {
		.size = sizeof(options), .log = remember, .log_arg = said};
	struct pem_statistics *st;

	(void)state;
	pem_session__close(session);
	session = session_open(&options);
	st = statistics("APP::Probe::Tick", PEM_ANY, NULL);
	pem_statistics__enable(st);
	pem_process.joined[session->self_index].state = PEM_JOINED_FAILED;
	tick_twice(NULL);
	assert_int_equal(value_of(st).count, 0);
	assert_non_null(strstr(said, "lack 2 events"));
	assert_int_equal(session->page->lost, 0);
	said[0] = 0;
	value_of(st);
	assert_string_equal(said, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(counts_only_while_enabled),
		TEST(reset_forgets),
		TEST(unsigned_and_signed_attributes),
		TEST(unsigned_sums_that_wrap_are_flagged),
		TEST(signed_sums_that_wrap_are_flagged),
		TEST(floating_attributes),
		TEST(threads_add_up),
		TEST(context_of_one_thread),
		TEST(sessions_do_not_mix),
		TEST(sessions_one_after_another),
		TEST(wrong_demands_are_refused),
		TEST(half_done_update_hides_nothing),
		TEST(lane_without_thread_hides_no_other),
		TEST(lacking_events_are_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
