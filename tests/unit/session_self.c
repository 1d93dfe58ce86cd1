// SPDX-License-Identifier: MIT
/*
 * session_self.c - when a session observes its own process: a context has to name it
 */
#include "session_fixture.h"

#include "programs/probe.h"

static struct pem_session *session;
static char said[512];

static void remember(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	snprintf(said, sizeof(said), "%s", text);
}

static int set_up(void **state)
{
	const struct pem_session_options options = {.size = sizeof(options), .log = remember};

	said[0] = 0;
	if (folder_make(state))
		return -1;
	session = session_open(&options);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static struct pem_statistics *ticks_counted(const struct pem_context *context)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, context, NULL, &error);

	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

static uint64_t count_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	return value.count;
}

static void statistics_of_a_thread_count_its_events(void **state)
{
	const struct pem_context thread = {.tid = (uint32_t)gettid()};
	struct pem_statistics *st = ticks_counted(&thread);

	(void)state;
	pem_notify_probe_tick(0, 1);
	assert_int_equal(count_of(st), 1);
}

static void a_log_of_a_thread_has_its_events(void **state)
{
	const struct pem_context thread = {.tid = (uint32_t)gettid()};
	struct pem_log *log = log_to_trace(session, "APP::Probe::Tick", &thread);
	struct pem_balance balance;
	uint64_t count;

	(void)state;
	pem_notify_probe_tick(0, 1);
	assert_int_equal(pem_log__finish(log, NULL), 0);
	assert_int_equal(read_trace("APP::Probe::Tick", &count, &balance), 1);
}

static void count_call(const struct pem_record *record, void *arg)
{
	(void)record;
	__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

static void an_async_callback_of_a_thread_has_its_events(void **state)
{
	const struct pem_context thread = {.tid = (uint32_t)gettid()};
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_callback_counts counts = {.size = sizeof(counts)};
	struct pem_callback *callback;
	int calls = 0;

	(void)state;
	callback = pem_session__register_async_callback(session, set, &thread, count_call, &calls,
							NULL, NULL);
	assert_non_null(callback);
	pem_callback__enable(callback);
	pem_notify_probe_tick(0, 1);
	do
		assert_int_equal(pem_callback__counts(callback, &counts), 0);
	while (counts.waiting);
	pem_callback__unregister(callback);
	pem_event_set__free(set);
	assert_int_equal(calls, 1);
}

static void everywhere_does_not_join_this_process(void **state)
{
	struct pem_statistics *st = ticks_counted(NULL);

	(void)state;
	pem_notify_probe_tick(0, 1);
	assert_int_equal(count_of(st), 0);
	assert_int_equal(session->self_index, -1);
}

static void everywhere_has_this_process_once_it_is_named(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_statistics *everywhere = ticks_counted(NULL);

	(void)state;
	ticks_counted(&self);
	pem_notify_probe_tick(0, 1);
	assert_int_equal(count_of(everywhere), 1);
}

static void a_session_that_observed_nothing_says_how_to(void **state)
{
	(void)state;
	ticks_counted(NULL);
	pem_session__close(session);
	session = NULL;
	assert_non_null(strstr(said, "observed no process"));
	assert_non_null(strstr(said, "in a handle's context"));
}

static void a_session_that_observed_this_process_says_nothing(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};

	(void)state;
	ticks_counted(&self);
	pem_session__close(session);
	session = NULL;
	assert_string_equal(said, "");
}

static void a_session_without_enabled_handles_says_nothing(void **state)
{
	(void)state;
	pem_session__close(session);
	session = NULL;
	assert_string_equal(said, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(statistics_of_a_thread_count_its_events),
		TEST(a_log_of_a_thread_has_its_events),
		TEST(an_async_callback_of_a_thread_has_its_events),
		TEST(everywhere_does_not_join_this_process),
		TEST(everywhere_has_this_process_once_it_is_named),
		TEST(a_session_that_observed_nothing_says_how_to),
		TEST(a_session_that_observed_this_process_says_nothing),
		TEST(a_session_without_enabled_handles_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
