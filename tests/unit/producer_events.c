// SPDX-License-Identifier: MIT
/*
 * producer_events.c - what a stub does to the program around it: nothing; and what it does without
 * a session, with several, with records of every size, and in handlers
 */
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "programs/types.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#define TICK "APP::Probe::Tick"

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

static struct pem_log *log_own(const char *pattern)
{
	const struct pem_context context = {.pid = (uint32_t)getpid()};

	return log_to_trace(session, pattern, &context);
}

/* Finish, and read so many of an event, all that there were. */
static void expect(struct pem_log *log, const char *event, uint64_t count)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t found;

	if (pem_log__finish(log, &error))
		fail_msg("%s", error.text);
	read_trace(event, &found, &balance);
	assert_int_equal(found, count);
	assert_int_equal(balance.produced,
			 balance.delivered + balance.discarded + balance.overwritten);
	assert_int_equal(balance.discarded, 0);
}

static void errno_stays(void **state)
{
	struct pem_log *log;

	(void)state;
	errno = 4711;
	pem_notify_probe_tick(1, 1); /* nobody asks */
	assert_int_equal(errno, 4711);
	log = log_own(TICK);
	errno = 4711;
	pem_notify_probe_tick(1, 2); /* makes the pool and the thread */
	assert_int_equal(errno, 4711);
	pem_notify_probe_tick(1, 3);
	assert_int_equal(errno, 4711);
	expect(log, TICK, 2);
}

static void none_after_disable(void **state)
{
	struct pem_log *log = log_own(TICK);

	(void)state;
	pem_notify_probe_tick(1, 1);
	pem_log__disable(log);
	pem_notify_probe_tick(1, 2);
	pem_log__enable(log);
	pem_notify_probe_tick(1, 3);
	pem_log__disable(log);
	pem_notify_probe_tick(1, 4);
	expect(log, TICK, 2);
}

static void two_sessions_have_all(void **state)
{
	struct pem_session *first = session, *second;
	struct pem_event_set *set;
	struct pem_statistics *st;
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_log *log = log_own(TICK);
	uint64_t i;

	(void)state;
	second = session_open(NULL);
	set = events(second, TICK);
	st = pem_session__register_statistics(
		second, set, &(struct pem_context){.pid = (uint32_t)getpid()}, "number", NULL);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	for (i = 1; i <= 1000; i++)
		pem_notify_probe_tick(1, i);
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.count, 1000);
	assert_int_equal(value.sum, 500500);
	pem_session__close(second);
	for (; i <= 1500; i++)
		pem_notify_probe_tick(1, i);
	session = first;
	expect(log, TICK, 1500);
}

static void records_of_every_size(void **state)
{
	static const char text[] =
		"0123456789012345678901234567890123456789012345678901234567890123456789";
	struct pem_log *log = log_own("APP::Types::Strings");
	size_t i;

	(void)state;
	/*
	 * 5000 records of 23 to 86 bytes: the pool's first chunks are filled to their last byte in
	 * many ways.
	 */
	for (i = 0; i < 5000; i++)
		pem_notify_types_strings(text + i % 64, (uint32_t)i, "", "");
	expect(log, "APP::Types::Strings", 5000);
}

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
	(void)number;
	pem_notify_probe_tick(2, 1);
	handled++;
}

/* Events of all levels but the first are under way, which were begun there. */
static void begin_levels(const void *stack)
{
	struct pem_thread_full *thread = (struct pem_thread_full *)pem_thread_current;
	unsigned level;

	for (level = 1; level < PEM_DEPTHS; level++)
		thread->begun[level] = (uintptr_t)stack;
}

/* The depth that a stub leaves when a handler comes in its middle. */
static void handler_inside_an_event(void **state)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct pem_log *log = log_own(TICK);
	struct pem_thread *thread;

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	pem_notify_probe_tick(1, 1);
	thread = pem_thread_current;
	assert_ptr_not_equal(thread, &pem_thread_none);
	assert_int_equal(thread->depth, PEM_DEPTH_IDLE);
	thread->depth = PEM_DEPTH_IDLE + 1; /* as between pem_event_begin and commit */
	raise(SIGUSR1);
	assert_int_equal(thread->depth, PEM_DEPTH_IDLE + 1);
	thread->depth = PEM_DEPTH_IDLE + 2;
	begin_levels(__builtin_frame_address(0));
	raise(SIGUSR1);
	assert_int_equal(thread->depth, PEM_DEPTH_IDLE + 2);
	thread->depth = PEM_DEPTH_IDLE;
	raise(SIGUSR1);
	assert_int_equal(handled, 3);
	expect(log, TICK, 4);
}

static void deeper_than_that_is_counted(void **state)
{
	struct pem_log *log = log_own(TICK);
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t found;

	(void)state;
	pem_notify_probe_tick(1, 1);
	begin_levels(__builtin_frame_address(0));
	pem_thread_current->depth = PEM_DEPTH_IDLE + PEM_DEPTHS;
	pem_notify_probe_tick(1, 2);
	pem_thread_current->depth = PEM_DEPTH_IDLE;
	assert_int_equal(pem_log__finish(log, &error), 0);
	read_trace(TICK, &found, &balance);
	assert_int_equal(found, 1);
	assert_int_equal(balance.produced, 2);
	assert_int_equal(balance.discarded, 1);
}

/*
 * Handlers have left events of all levels by jumps: of the first nobody knows, the others are free
 * again.
 */
static void levels_left_by_jumps(void **state)
{
	char *alternate = malloc(65536);
	stack_t stack = {.ss_sp = alternate, .ss_size = 65536}, none = {.ss_flags = SS_DISABLE};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	struct pem_log *log = log_own(TICK);
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t found;

	(void)state;
	pem_notify_probe_tick(1, 1);
	/* A handler on a stack of its own can't tell. */
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR2, &action, NULL);
	begin_levels(NULL);
	pem_thread_current->depth = PEM_DEPTH_IDLE + PEM_DEPTHS;
	raise(SIGUSR2);
	assert_int_equal(pem_thread_current->depth, PEM_DEPTH_IDLE + PEM_DEPTHS);
	sigaltstack(&none, NULL);
	begin_levels((void *)((uintptr_t)__builtin_frame_address(0) - 65536));
	pem_notify_probe_tick(1, 2);
	assert_int_equal(pem_thread_current->depth, PEM_DEPTH_IDLE + 1);
	pem_notify_probe_tick(1, 3);
	assert_int_equal(pem_thread_current->depth, PEM_DEPTH_IDLE + 1);
	pem_thread_current->depth = PEM_DEPTH_IDLE;
	free(alternate);
	assert_int_equal(pem_log__finish(log, &error), 0);
	read_trace(TICK, &found, &balance);
	assert_int_equal(found, 3);
	assert_int_equal(balance.produced, 4);
	assert_int_equal(balance.discarded, 1);
}

static void *tick(void *arg)
{
	pem_notify_probe_tick(3, 1);
	return arg;
}

static void lanes_are_used_again(void **state)
{
	struct pem_log *log = log_own(TICK);
	const struct pem_ring *ring;
	pthread_t thread;
	uint32_t i, used = 0;

	(void)state;
	for (i = 0; i < 50; i++) {
		pthread_create(&thread, NULL, tick, NULL);
		pthread_join(thread, NULL);
	}
	ring = &pem_process.joined[session->self_index].ring;
	for (i = 1; i < ring->lane_count; i++)
		used += ring->lanes[i].tid != 0;
	assert_in_range(used, 1, 2);
	expect(log, TICK, 50);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(errno_stays),
		TEST(none_after_disable),
		TEST(two_sessions_have_all),
		TEST(records_of_every_size),
		TEST(handler_inside_an_event),
		TEST(deeper_than_that_is_counted),
		TEST(levels_left_by_jumps),
		TEST(lanes_are_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
