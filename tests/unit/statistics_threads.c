// SPDX-License-Identifier: MIT
/*
 * statistics_threads.c - statistics at once: threads raise events, come and go, while others read,
 * take apart, reset and switch one handle, others register and unregister their own, and callbacks
 * in the middle of events use all of it
 *
 * Made for ThreadSanitizer (make check SAN=thread); without it, for what crashes, blocks or
 * miscounts.
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "session_fixture.h"
#include "util.h"

#include "programs/probe.h"
#include "programs/types.h"

#include <pthread.h>

#define RAISERS 2u
#define GENERATIONS 12u /* of raising threads, one after the other in the same lane */
#define EVENTS 4000u /* of each */
#define ROUNDS 60u
#define ALL (PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM | PEM_STATISTIC_TOP)

static struct pem_session *session;
static struct pem_context self;
/* of Integers: on from before the first event, never reset */
static struct pem_statistics *counted;
static struct pem_statistics *shared; /* of Tick: everybody's */
static uint32_t stop;

static struct pem_statistics *statistics(const char *pattern, const char *attribute)
{
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_statistics *st;

	st = pem_session__register_statistics(session, set, &self, attribute, &error);
	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__keep(st, ALL), 0);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	self = (struct pem_context){.pid = (uint32_t)getpid()};
	session = session_open(NULL);
	counted = statistics("APP::Types::Integers", "u32");
	shared = statistics("APP::Probe::Tick", "number");
	stop = 0;
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *raise_one_generation(void *arg)
{
	uint32_t i;

	for (i = 0; i < EVENTS; i++) {
		pem_notify_types_integers(0, 0, 0, 0, i % 2 ? 3 : 1000, 0, 0, 0);
		pem_notify_probe_tick((uintptr_t)arg, i + 1);
		pem_notify_types_floats(1.5f, (double)i);
		if (i % 500 == 0)
			usleep(50);
	}
	return NULL;
}

static void *raise_events(void *arg)
{
	pthread_t thread;
	uint32_t i;

	for (i = 0; i < GENERATIONS; i++) {
		assert_int_equal(pthread_create(&thread, NULL, raise_one_generation, arg), 0);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static void check_part(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
		       void *arg)
{
	assert_true(part->count > 0 && part->min <= part->max);
	assert_true(owner->tid || !owner->program[0] || owner->pid);
	*(uint64_t *)arg += part->count;
}

static uint64_t values_in(struct pem_statistics *st)
{
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	uint64_t sum = 0;
	unsigned i;

	assert_int_equal(pem_statistics__histogram(st, 0, &histogram), 0);
	for (i = 0; i < 65; i++)
		sum += histogram.bucket[i];
	return sum;
}

/* Any thread may ask for anything, also within a callback. */
static void use_all(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_top top[4] = {{.size = sizeof(top[0])}};
	uint64_t parts = 0;

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_true(!value.count || (value.min <= value.max && value.variance >= 0));
	assert_true(pem_statistics__each(st, 0, check_part, &parts) >= 0);
	assert_true(pem_statistics__top(st, 0, top, 4) >= 0);
	values_in(st);
}

/* What nobody resets never falls, however its threads' parts move. */
static void *watch_counted(void *arg)
{
	uint64_t before = 0, values = 0, parts, now;
	struct pem_statistic value = {.size = sizeof(value)};

	while (!stopped()) {
		assert_int_equal(pem_statistics__read(counted, &value, 1), 1);
		assert_true(value.count >= before);
		before = value.count;
		parts = 0;
		assert_true(pem_statistics__each(counted, 0, check_part, &parts) >= 0);
		assert_true(parts >= before);
		now = values_in(counted);
		assert_true(now >= values);
		values = now;
		usleep(200);
	}
	return arg;
}

static void *switch_shared(void *arg)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		pem_statistics__disable(shared);
		use_all(shared);
		pem_statistics__reset(shared);
		usleep(200);
		assert_int_equal(pem_statistics__enable(shared), 0);
		usleep(300);
	}
	return arg;
}

static void *come_and_go(void *arg)
{
	struct pem_statistics *st;
	struct pem_statistic value = {.size = sizeof(value)};
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		st = statistics("APP::Types::Floats", "f64");
		usleep(300);
		pem_statistics__reset(st);
		usleep(300);
		assert_int_equal(pem_statistics__read(st, &value, 1), 1);
		assert_true(!value.count || value.min_f <= value.max_f);
		pem_statistics__unregister(st);
	}
	return arg;
}

static void called(const struct pem_record *record, void *arg)
{
	if (pem_record__u64(record, 1) % 400 == 0) {
		use_all(shared);
		use_all(counted);
		pem_statistics__reset(shared);
		pem_statistics__disable(shared);
		pem_statistics__enable(shared);
	}
	__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED);
}

static void *call_back(void *arg)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	struct pem_callback *callback;
	uint64_t calls = 0, before;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		callback =
			pem_session__register_callback(session, set, &self, called, &calls, &error);
		assert_non_null(callback);
		pem_callback__enable(callback);
		usleep(500);
		pem_callback__unregister(callback);
		before = __atomic_load_n(&calls, __ATOMIC_RELAXED);
		sched_yield();
		assert_int_equal(__atomic_load_n(&calls, __ATOMIC_RELAXED), before);
	}
	pem_event_set__free(set);
	return arg;
}

static void exact_though_everybody_asks(void **state)
{
	static void *(*const users[])(void *) = {switch_shared, come_and_go, call_back, call_back};
	pthread_t raiser[RAISERS], user[PEM_ARRAY_SIZE(users)], watcher;
	const uint64_t raised = (uint64_t)RAISERS * GENERATIONS * EVENTS;
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_top top[2] = {{.size = sizeof(top[0])}};
	uint64_t parts = 0;
	uintptr_t i;

	(void)state;
	for (i = 0; i < RAISERS; i++)
		assert_int_equal(pthread_create(&raiser[i], NULL, raise_events, (void *)i), 0);
	assert_int_equal(pthread_create(&watcher, NULL, watch_counted, NULL), 0);
	for (i = 0; i < PEM_ARRAY_SIZE(users); i++)
		assert_int_equal(pthread_create(&user[i], NULL, users[i], NULL), 0);
	for (i = 0; i < PEM_ARRAY_SIZE(users); i++)
		pthread_join(user[i], NULL);
	for (i = 0; i < RAISERS; i++)
		pthread_join(raiser[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(watcher, NULL);
	assert_int_equal(pem_statistics__read(counted, &value, 1), 1);
	assert_int_equal(value.count, raised);
	assert_int_equal(value.sum, raised / 2 * 1003);
	assert_true(value.variance == 248502.25); /* (997 / 2)^2 */
	assert_true(pem_statistics__each(counted, 0, check_part, &parts) > 0);
	assert_int_equal(parts, raised);
	assert_int_equal(values_in(counted), raised);
	assert_int_equal(pem_statistics__top(counted, 0, top, 2), 2);
	assert_int_equal(top[0].count, raised / 2);
	assert_int_equal(top[1].count, raised / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(exact_though_everybody_asks, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
