// SPDX-License-Identifier: MIT
/*
 * coarse_clock.c - events that are stamped with a session's coarse clock
 *
 * The thread that advances the clock is stopped, and the test advances it.
 */
#include "core/core.h"
#include "processes/processes.h"
#include "producer/producer.h"
#include "programs/probe.h"
#include "session_fixture.h"

#include <pthread.h>

#define TICK "APP::Probe::Tick"
#define EVENTS 3000u

static struct pem_session *coarse_session(void)
{
	struct pem_session_options options = {.size = sizeof(options), .coarse_clock = 1};
	struct pem_session *session = session_open(&options);

	pem_coarse_clock__stop(&session->coarse);
	return session;
}

static const struct pem_context *here(void)
{
	static struct pem_context context;

	context.pid = (uint32_t)getpid();
	return &context;
}

static void finish(struct pem_log *log)
{
	struct pem_error error = {""};

	if (pem_log__finish(log, &error))
		fail_msg("%s", error.text);
}

/* Check that the trace has count events, each with the clock that its number says. */
static void check_clocks(uint32_t count, uint64_t first, uint64_t step)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(trace_path, &error);
	struct pem_record record = {.size = sizeof(record)};
	uint32_t found = 0;

	if (!trace)
		fail_msg("%s", error.text);
	while (pem_trace__next(trace, &record, &error) == 1) {
		if (strcmp(record.event->name, TICK) != 0)
			continue;
		assert_int_equal(record.clock, first + step * (found / 2));
		found++;
	}
	assert_int_equal(found, count);
	assert_true(pem_trace__info(trace)->coarse_late_ns > 0);
	assert_true(pem_trace__info(trace)->clock_error_ns >= PEM_COARSE_STEP_NS);
	pem_trace__close(trace);
}

/* Two events at each step: they fill several chunks. */
static void raise_events(struct pem_session *session, uint64_t first, uint64_t step)
{
	uint32_t i;

	for (i = 0; i < EVENTS; i++) {
		__atomic_store_n(&session->page->coarse_clock, first + step * (i / 2),
				 __ATOMIC_RELAXED);
		pem_notify_probe_tick(1, i);
	}
}

static void events_have_the_clock_of_memory(void **state)
{
	struct pem_session *session = coarse_session();
	struct pem_log *log = log_to_trace(session, TICK, here());
	uint64_t first = pem_clock();

	(void)state;
	raise_events(session, first, 3);
	finish(log);
	check_clocks(EVENTS, first, 3);
	pem_session__close(session);
}

/* The clock stands still: no chunk begins with the last record of the one before. */
static void each_chunk_begins_later_than_the_last_one_ends(void **state)
{
	struct pem_session *session = coarse_session();
	struct pem_log *log = log_to_trace(session, TICK, here());
	uint64_t first = pem_clock(), last = 0, lower = 0, i;
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_trace *trace;

	(void)state;
	__atomic_store_n(&session->page->coarse_clock, first, __ATOMIC_RELAXED);
	for (i = 0; i < EVENTS; i++)
		pem_notify_probe_tick(1, i);
	finish(log);
	trace = pem_trace__open(trace_path, &error);
	assert_non_null(trace);
	for (i = 0; pem_trace__next(trace, &record, &error) == 1; i++) {
		assert_true(record.clock >= last);
		lower += i && record.clock > last;
		last = record.clock;
	}
	assert_int_equal(i, EVENTS);
	/* A tick for each chunk but the first; the first has half of its memory. */
	assert_in_range(lower, EVENTS * 24 / 8192, 1 + EVENTS * 24 / (8192 - 256));
	assert_int_equal(last, first + lower);
	pem_trace__close(trace);
	pem_session__close(session);
}

/* Those of the second session in a process take the library's way. */
static void events_of_a_second_session_have_it(void **state)
{
	struct pem_session *other = session_open(NULL), *session;
	struct pem_log *log;
	uint64_t first = pem_clock();

	(void)state;
	assert_int_equal(pem_session__join_self(other, NULL), 0);
	session = coarse_session();
	log = log_to_trace(session, TICK, here());
	raise_events(session, first, 3);
	assert_int_equal(session->self_index, 1);
	finish(log);
	check_clocks(EVENTS, first, 3);
	pem_session__close(session);
	pem_session__close(other);
}

static void *raise_one(void *arg)
{
	(void)arg;
	pem_notify_probe_tick(2, 2);
	return NULL;
}

/* A thread whose first session had a coarse clock reads the counter in the next one. */
static void a_session_without_one_reads_the_counter(void **state)
{
	struct pem_session *session = coarse_session();
	struct pem_log *log = log_to_trace(session, TICK, here());
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_trace *trace;
	pthread_t thread;
	uint64_t before;
	uint32_t found = 0;

	(void)state;
	__atomic_store_n(&session->page->coarse_clock, 7, __ATOMIC_RELAXED);
	pem_notify_probe_tick(1, 1);
	pem_log__unregister(log);
	pem_session__close(session);
	assert_int_equal(folder_remove(state) | folder_make(state), 0);
	session = session_open(NULL);
	log = log_to_trace(session, TICK, here());
	before = pem_clock();
	pem_notify_probe_tick(1, 1);
	pem_notify_probe_tick(1, 1);
	assert_int_equal(pthread_create(&thread, NULL, raise_one, NULL), 0);
	pthread_join(thread, NULL);
	finish(log);
	trace = pem_trace__open(trace_path, &error);
	assert_non_null(trace);
	while (pem_trace__next(trace, &record, &error) == 1) {
		assert_in_range(record.clock, before, pem_clock());
		found++;
	}
	assert_int_equal(found, 3);
	assert_int_equal(pem_trace__info(trace)->coarse_late_ns, 0);
	pem_trace__close(trace);
	pem_session__close(session);
}

/* A stub may find the event enabled, and its action gone. */
static void an_event_without_an_action_is_not_logged(void **state)
{
	struct pem_session *session = session_open(NULL);
	struct pem_log *log = log_to_trace(session, TICK, here());
	uint64_t *action = &pem_page_probe.action[0][0], before, found;
	struct pem_balance balance;

	(void)state;
	pem_notify_probe_tick(1, 1);
	before = *action;
	*action = 0;
	pem_notify_probe_tick(1, 2);
	*action = ~0ULL;
	pem_notify_probe_tick(1, 3);
	*action = before;
	pem_notify_probe_tick(1, 4);
	finish(log);
	assert_int_equal(read_trace(TICK, &found, &balance), 2);
	pem_session__close(session);
}

static void the_clock_goes_on(void **state)
{
	struct pem_session_options options = {.size = sizeof(options), .coarse_clock = 1};
	struct pem_session *session = session_open(&options);
	uint64_t first = __atomic_load_n(&session->page->coarse_clock, __ATOMIC_RELAXED);
	uint64_t now = first;
	int i;

	(void)state;
	assert_in_range(first, 1, pem_clock() + PEM_CLOCK_SLACK);
	for (i = 0; i < 10000 && now == first; i++) {
		usleep(1000);
		now = __atomic_load_n(&session->page->coarse_clock, __ATOMIC_RELAXED);
	}
	assert_in_range(now, first + 1, pem_clock() + PEM_CLOCK_SLACK);
	pem_session__close(session);
}

static void a_page_that_is_cut_does_not_end_the_recorder(void **state)
{
	struct pem_session_options options = {.size = sizeof(options), .coarse_clock = 1};
	struct pem_session *session = session_open(&options);
	char path[PATH_MAX];
	int i;

	(void)state;
	snprintf(path, sizeof(path), "%s/config", session->directory);
	assert_int_equal(truncate(path, 0), 0);
	for (i = 0; i < 10000 && !__atomic_load_n(&session->page_cut, __ATOMIC_RELAXED); i++)
		usleep(1000);
	assert_true(session->page_cut);
	pem_session__close(session);
}

static void other_values_are_refused(void **state)
{
	struct pem_session_options options = {.size = sizeof(options), .coarse_clock = 2};
	struct pem_error error = {""};

	(void)state;
	assert_null(pem_session__open(&options, &error));
	assert_non_null(strstr(error.text, "coarse_clock"));
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* The first one: cmocka takes SIGBUS before each, and pem once. */
		IN_FOLDER(a_page_that_is_cut_does_not_end_the_recorder),
		IN_FOLDER(events_have_the_clock_of_memory),
		IN_FOLDER(each_chunk_begins_later_than_the_last_one_ends),
		IN_FOLDER(events_of_a_second_session_have_it),
		IN_FOLDER(a_session_without_one_reads_the_counter),
		IN_FOLDER(an_event_without_an_action_is_not_logged),
		IN_FOLDER(the_clock_goes_on),
		IN_FOLDER(other_values_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
