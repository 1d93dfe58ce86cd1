// SPDX-License-Identifier: MIT
/*
 * session_threads.c - everything at once: threads raise events while others enable, disable, read,
 * reset and unregister statistics, callbacks and logs, open and close sessions, and poll
 *
 * Made for ThreadSanitizer (make check-threads); without it, for what crashes or does not balance.
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "session_fixture.h"
#include "util.h"

#include "programs/probe.h"

#include <fcntl.h>
#include <pthread.h>

#define TICK "APP::Probe::Tick"
#define RAISERS 3u
#define ROUNDS 40u

static struct pem_session *session;
static struct pem_log *trace_log;
static struct pem_context self;
static uint32_t stop;

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	self = (struct pem_context){.pid = (uint32_t)getpid()};
	session = session_open(NULL);
	trace_log = log_to_trace(session, TICK, &self);
	stop = 0;
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static void *raise_ticks(void *arg)
{
	uint64_t n = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pem_notify_probe_tick((uintptr_t)arg, ++n);
		if (n % 1000 == 0)
			usleep(100);
	}
	return NULL;
}

static void *poll_session(void *arg)
{
	int status;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		pem_session__poll(session, 1, &status);
	return arg;
}

static void *use_statistics(void *arg)
{
	struct pem_event_set *set = events(session, TICK);
	struct pem_error error = {""};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_statistics *s;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		s = pem_session__register_statistics(session, set, &self, "number", &error);
		assert_non_null(s);
		assert_int_equal(pem_statistics__enable(s), 0);
		pem_statistics__reset(s);
		usleep(500);
		assert_int_equal(pem_statistics__read(s, &value, 1), 1);
		assert_true(value.min <= value.max);
		pem_statistics__disable(s);
		pem_statistics__unregister(s);
	}
	pem_event_set__free(set);
	return arg;
}

static void called(const struct pem_record *record, void *arg)
{
	assert_true(pem_record__u64(record, 0) < RAISERS);
	__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED);
}

static void *use_callbacks(void *arg)
{
	struct pem_event_set *set = events(session, TICK);
	struct pem_error error = {""};
	struct pem_callback *callback;
	uint64_t calls = 0;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		callback =
			pem_session__register_callback(session, set, &self, called, &calls, &error);
		assert_non_null(callback);
		pem_callback__enable(callback);
		usleep(500);
		pem_callback__disable(callback);
		pem_callback__unregister(callback);
	}
	pem_event_set__free(set);
	return arg;
}

static void *use_log(void *arg)
{
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		pem_log__disable(trace_log);
		usleep(300);
		assert_int_equal(pem_log__enable(trace_log), 0);
		usleep(300);
	}
	return arg;
}

/* Sessions come and go beside the one that stays; the cells of the process are used again. */
static void *use_sessions(void *arg)
{
	struct pem_error error = {""};
	struct pem_session *other;
	struct pem_statistics *s;
	struct pem_event_set *set;
	struct pem_statistic value = {.size = sizeof(value)};
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		other = session_open(NULL);
		set = events(other, TICK);
		s = pem_session__register_statistics(other, set, &self, NULL, &error);
		assert_non_null(s);
		assert_int_equal(pem_statistics__enable(s), 0);
		usleep(300);
		assert_int_equal(pem_statistics__read(s, &value, 1), 1);
		pem_event_set__free(set);
		pem_session__close(other);
	}
	return arg;
}

static void all_at_once(void **state)
{
	static void *(*const users[])(void *) = {use_statistics, use_callbacks, use_log,
						 use_sessions};
	pthread_t raiser[RAISERS], user[PEM_ARRAY_SIZE(users)], poller[2];
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t ticks;
	uintptr_t i;

	(void)state;
	for (i = 0; i < RAISERS; i++)
		assert_int_equal(pthread_create(&raiser[i], NULL, raise_ticks, (void *)i), 0);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&poller[i], NULL, poll_session, NULL), 0);
	for (i = 0; i < PEM_ARRAY_SIZE(users); i++)
		assert_int_equal(pthread_create(&user[i], NULL, users[i], NULL), 0);
	for (i = 0; i < PEM_ARRAY_SIZE(users); i++)
		pthread_join(user[i], NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(poller[i], NULL);
	for (i = 0; i < RAISERS; i++)
		pthread_join(raiser[i], NULL);
	if (pem_log__finish(trace_log, &error))
		fail_msg("%s", error.text);
	read_trace(TICK, &ticks, &balance);
	assert_true(ticks > 0);
	assert_int_equal(balance.delivered, ticks);
	assert_int_equal(balance.produced,
			 balance.delivered + balance.discarded + balance.overwritten);
}

static void *make_files(void *directory)
{
	char path[sizeof(session->directory) + 32];
	unsigned i;
	int fd;

	for (i = 0; i < 100000; i++) {
		snprintf(path, sizeof(path), "%s/pool-1-%u", (const char *)directory, i);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			break;
		close(fd);
		if (i % 4 == 3)
			usleep(200);
	}
	return NULL;
}

/* As processes do that are on their way into a session when it is closed. */
static void a_folder_in_use_goes_away(void **state)
{
	char directory[sizeof(session->directory)];
	struct pem_session *other;
	pthread_t maker;
	unsigned i;

	(void)state;
	for (i = 0; i < ROUNDS; i++) {
		other = session_open(NULL);
		strcpy(directory, other->directory);
		assert_int_equal(pthread_create(&maker, NULL, make_files, directory), 0);
		usleep(500);
		pem_session__close(other);
		pthread_join(maker, NULL);
		assert_int_equal(access(directory, F_OK), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_in_use_goes_away, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
