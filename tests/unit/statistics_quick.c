// SPDX-License-Identifier: MIT
/*
 * statistics_quick.c - events with distributions whose place a thread keeps
 * (producer/notify_quick.h)
 */
#include "core/core.h"
#include "producer/producer.h"
#include "programs/alike.h"
#include "session_fixture.h"

#include <math.h>
#include <pthread.h>

#define ALL (PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM | PEM_STATISTIC_TOP)
#define EVENTS 10u
#define ROUNDS 20u

static const struct {
	void (*raise)(int32_t number);
} alike[EVENTS] = {
	{pem_notify_alike_number0}, {pem_notify_alike_number1}, {pem_notify_alike_number2},
	{pem_notify_alike_number3}, {pem_notify_alike_number4}, {pem_notify_alike_number5},
	{pem_notify_alike_number6}, {pem_notify_alike_number7}, {pem_notify_alike_number8},
	{pem_notify_alike_number9},
};

static struct pem_statistics *counted(struct pem_session *session, const char *pattern)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, &self, "number", &error);

	assert_non_null(st);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__keep(st, ALL), 0);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

static uint64_t total(struct pem_statistics *st, size_t i)
{
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	uint64_t sum = 0;
	size_t k;

	assert_int_equal(pem_statistics__histogram(st, i, &histogram), 0);
	for (k = 0; k < sizeof(histogram.bucket) / sizeof(histogram.bucket[0]); k++)
		sum += histogram.bucket[k];
	return sum;
}

/* Their actions are equal, and two share an entry of the thread's. */
static void events_of_one_layout_are_counted_apart(void **state)
{
	struct pem_session *session = session_open(NULL);
	struct pem_statistics *st = counted(session, "APP::Alike::*");
	struct pem_statistic value[EVENTS] = {{.size = sizeof(value[0])}};
	uint32_t round, i;

	(void)state;
	assert_true(EVENTS > PEM_QUICK_DISTRIBUTIONS);
	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < EVENTS; i++) {
			/* Twice: the second time it may be kept. */
			alike[i].raise((int32_t)i - 5);
			alike[i].raise((int32_t)i - 5);
		}
	assert_int_equal(pem_statistics__read(st, value, EVENTS), EVENTS);
	for (i = 0; i < EVENTS; i++) {
		assert_int_equal(value[i].count, 2 * ROUNDS);
		assert_int_equal((int64_t)value[i].sum, 2 * (int64_t)ROUNDS * ((int64_t)i - 5));
		assert_int_equal((int64_t)value[i].min, (int64_t)i - 5);
		assert_int_equal((int64_t)value[i].max, (int64_t)i - 5);
		assert_true(value[i].variance == 0);
		assert_int_equal(total(st, i), 2 * ROUNDS);
	}
	pem_session__close(session);
}

static void values_below_zero_are_the_least(void **state)
{
	struct pem_session *session = session_open(NULL);
	struct pem_statistics *st = counted(session, "APP::Alike::Number0");
	struct pem_statistic value = {.size = sizeof(value)};
	int32_t i;

	(void)state;
	for (i = -3; i <= 3; i++)
		pem_notify_alike_number0(i);
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_true((int64_t)value.min == -3 && (int64_t)value.max == 3 && !value.sum);
	assert_true(fabs(value.variance - 4) < 1e-12);
	pem_session__close(session);
}

/* A consumer may store any action. No field of it is read that a record does not have. */
static void fields_behind_the_record_are_not_read(void **state)
{
	struct pem_session *session = session_open(NULL);
	struct pem_statistics *st = counted(session, "APP::Alike::Number0");
	struct pem_statistic value = {.size = sizeof(value)};
	uint64_t *action = (uint64_t *)&pem_page_alike.action[0][0], word;
	const uint32_t offsets[] = {400, 8, 5};
	size_t i;

	(void)state;
	pem_notify_alike_number0(0);
	word = *action;
	assert_int_equal(PEM_ACTION_FLAGS(word), PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION);
	for (i = 0; i < 3; i++) {
		word = PEM_ACTION(PEM_ACTION_FLAGS(word), 0, PEM_TYPE_UINT64, offsets[i], 0) |
		       (word & ~0xffffffffULL);
		*action = word;
		pem_notify_alike_number0(-1);
		pem_notify_alike_number0(-1);
		assert_int_equal(pem_statistics__read(st, &value, 1), 1);
		assert_int_equal(value.count, 1 + 2 * (i + 1));
		assert_int_equal(value.sum, 0);
	}
	pem_session__close(session);
}

static void *raise_two_events(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; i < 2; i++) {
		pem_notify_alike_number0(1);
		pem_notify_alike_number1(1);
	}
	return NULL;
}

/* The second thread gets the first one's memory, and a lane that begins anew. */
static void a_thread_does_not_use_what_another_kept(void **state)
{
	struct pem_session *session = session_open(NULL);
	struct pem_statistics *st = counted(session, "APP::Alike::*");
	struct pem_statistic value[EVENTS] = {{.size = sizeof(value[0])}};
	pthread_t thread;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, raise_two_events, NULL), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(pem_statistics__read(st, value, EVENTS), EVENTS);
	for (i = 0; i < 2; i++) {
		assert_int_equal(value[i].count, 6);
		assert_int_equal(total(st, i), 6);
	}
	pem_session__close(session);
}

static void a_reset_begins_anew(void **state)
{
	struct pem_session *session = session_open(NULL);
	struct pem_statistics *st = counted(session, "APP::Alike::Number0");
	struct pem_statistic value = {.size = sizeof(value)};
	int i, k;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 4; k++)
			pem_notify_alike_number0(2);
		assert_int_equal(pem_statistics__read(st, &value, 1), 1);
		assert_int_equal(value.count, 4);
		assert_int_equal(total(st, 0), 4);
		pem_statistics__reset(st);
	}
	pem_session__close(session);
}

/* An incarnation comes again after 255 sessions. What was kept of the first is the first's. */
static void each_of_many_sessions_gets_its_events(void **state)
{
	struct pem_statistic value[EVENTS] = {{.size = sizeof(value[0])}};
	struct pem_session *session;
	struct pem_statistics *st;
	int i;

	(void)state;
	for (i = 0; i < 257; i++) {
		session = session_open(NULL);
		st = counted(session, "APP::Alike::*");
		if (!i || i > 254) {
			raise_two_events(NULL);
			assert_int_equal(pem_statistics__read(st, value, EVENTS), EVENTS);
			assert_int_equal(value[0].count, 2);
			assert_int_equal(value[1].count, 2);
			assert_int_equal(total(st, 0), 2);
			assert_int_equal(total(st, 1), 2);
		}
		pem_session__close(session);
	}
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(events_of_one_layout_are_counted_apart),
		IN_FOLDER(values_below_zero_are_the_least),
		IN_FOLDER(fields_behind_the_record_are_not_read),
		IN_FOLDER(a_thread_does_not_use_what_another_kept),
		IN_FOLDER(a_reset_begins_anew),
		IN_FOLDER(each_of_many_sessions_gets_its_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
