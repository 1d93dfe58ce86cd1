// SPDX-License-Identifier: MIT
/*
 * async_callback.c - asynchronous callbacks: all events, in order, on a thread of their own, for as long as they are enabled
 *
 * Not here: what is lost, and logs beside them (async_log.c).
 */
#include "async_fixture.h"

#include <errno.h>

static void every_event_of_another_process_in_order(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 200);
	struct raiser r = raiser_start(1);

	(void)state;
	raise_ticks(&r, 10000);
	wait_for(10000);
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(seen.disorder, counts_of(cb).late);
	assert_int_equal(seen.pid, r.pid);
	assert_int_equal(seen.tid, r.pid);
	assert_int_not_equal(seen.thread, getpid());
	assert_int_equal(counts_of(cb).called, 10000);
	assert_int_equal(counts_of(cb).lost, 0);
	raiser_end(&r);
}

static void processes_are_merged_by_time(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 1000);
	struct raiser r[3];
	unsigned i, round;

	(void)state;
	for (i = 0; i < 3; i++)
		r[i] = raiser_start(i);
	for (round = 0; round < 100; round++) {
		for (i = 0; i < 3; i++)
			raise_ticks(&r[i], 1 + round % 7);
	}
	for (i = 0; i < 3; i++)
		raiser_end(&r[i]);
	wait_for(3 * (98 / 7 * 28 + 1 + 2));
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(seen.disorder, counts_of(cb).late);
}

#define THREADS 4
#define EACH 5000

static void *raise_in_thread(void *arg)
{
	uint64_t who = (uint64_t)(uintptr_t)arg, i;

	for (i = 1; i <= EACH; i++)
		pem_notify_probe_tick(who, i);
	return NULL;
}

/* In this process too. */
static void threads_are_merged_by_time(void **state)
{
	const struct pem_context self = {.cpu = PEM_NO_CPU, .pid = (uint32_t)getpid()};
	struct pem_callback *cb = callback_on("APP::Probe::Tick", &self, 100);
	pthread_t thread[THREADS];
	uintptr_t i;

	(void)state;
	pem_callback__enable(cb);
	for (i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, raise_in_thread, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	wait_for(THREADS * EACH);
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(seen.disorder, counts_of(cb).late);
	assert_int_equal(counts_of(cb).lost, 0);
}

static void sleeps_and_is_woken(void **state)
{
	struct raiser r = raiser_start(1);
	unsigned i;

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	for (i = 1; i <= 20; i++) {
		while (!is_asleep())
			usleep(100);
		raise_ticks(&r, 1);
		wait_for(i);
	}
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

static void only_while_enabled(void **state)
{
	struct pem_callback *cb = callback_on("APP::Probe::Tick", NULL, 100);
	struct raiser r = raiser_start(1);

	(void)state;
	raise_ticks(&r, 10);
	pem_callback__enable(cb);
	raise_ticks(&r, 10);
	wait_for(10);
	assert_int_equal(seen.next_number[1], 20);
	pem_callback__disable(cb);
	raise_ticks(&r, 10);
	pem_callback__enable(cb);
	raise_ticks(&r, 5);
	wait_for(15);
	assert_int_equal(seen.next_number[1], 35);
	assert_int_equal(counts_of(cb).called, 15);
	assert_int_equal(counts_of(cb).lost, 0);
	raiser_end(&r);
}

static void only_its_events(void **state)
{
	struct raiser r = raiser_start(1);

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 1);
	assert_int_equal(write(r.to, "", 1), 1);
	assert_int_equal(read(r.from, &(char){0}, 1), 1);
	raise_ticks(&r, 1);
	wait_for(2);
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

static void only_in_its_context(void **state)
{
	struct raiser one = raiser_start(1), two = raiser_start(2);
	const struct pem_context context = {.cpu = PEM_NO_CPU, .pid = (uint32_t)two.pid};
	struct pem_callback *cb = callback_on("APP::Probe::Tick", &context, 100);

	(void)state;
	pem_callback__enable(cb);
	raise_ticks(&one, 50);
	raise_ticks(&two, 50);
	wait_for(50);
	raise_ticks(&one, 50);
	raise_ticks(&two, 1);
	wait_for(51);
	assert_int_equal(seen.next_number[1], 0);
	raiser_end(&one);
	raiser_end(&two);
}

static void disable_self(struct seen *s)
{
	if (s->count == 4)
		pem_callback__disable(s->self);
}

static void may_disable_itself(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 100);
	struct raiser r = raiser_start(1);

	(void)state;
	seen.also = disable_self;
	raise_ticks(&r, 100);
	wait_for(5);
	seen.also = NULL;
	pem_callback__enable(cb);
	raise_ticks(&r, 1);
	wait_for(6);
	assert_int_equal(seen.next_number[1], 101);
	raiser_end(&r);
}

static void unregister_self(struct seen *s)
{
	pem_callback__unregister(s->self);
}

static void may_unregister_itself(void **state)
{
	struct raiser r = raiser_start(1);
	struct pem_callback *other;

	(void)state;
	seen.also = unregister_self;
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 100);
	wait_for(1);
	seen.also = NULL;
	other = enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 1);
	wait_for(2);
	assert_int_equal(counts_of(other).called, 1);
	raiser_end(&r);
}

static void *unregister(void *arg)
{
	pem_callback__unregister(seen.self);
	__atomic_store_n((int *)arg, 1, __ATOMIC_RELEASE);
	return NULL;
}

static volatile int inside, leave;

static void stay(struct seen *s)
{
	(void)s;
	inside = 1;
	while (!leave)
		usleep(100);
}

static void unregister_waits_for_the_function(void **state)
{
	struct raiser r = raiser_start(1);
	pthread_t thread;
	int done = 0;

	(void)state;
	inside = leave = 0;
	seen.also = stay;
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 10);
	while (!inside)
		usleep(100);
	pthread_create(&thread, NULL, unregister, &done);
	usleep(5000);
	assert_int_equal(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	leave = 1;
	pthread_join(thread, NULL);
	assert_int_equal(seen_count(), 1);
	raise_ticks(&r, 10);
	assert_int_equal(seen_count(), 1);
	raiser_end(&r);
}

/* A function that takes its time holds nobody else up. */
static void others_use_the_session_meanwhile(void **state)
{
	struct raiser r = raiser_start(1);
	struct pem_event_set *set;
	struct pem_error error;

	(void)state;
	inside = leave = 0;
	seen.also = stay;
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 10);
	while (!inside)
		usleep(100);
	set = pem_event_set__new(session, &(const char *){"APP::Probe::Tick"}, 1, &error);
	assert_non_null(set);
	pem_event_set__free(set);
	assert_int_equal(counts_of(seen.self).called, 1);
	pem_callback__disable(seen.self);
	leave = 1;
	raiser_end(&r);
}

static void a_dead_process_is_read_to_its_end(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 100);
	struct raiser r = raiser_start(1);

	(void)state;
	raise_ticks(&r, 3000);
	kill(r.pid, SIGKILL);
	waitpid(r.pid, NULL, 0);
	wait_for(3000);
	while (session->producers)
		pem_session__poll(session, 1, &(int){0});
	assert_int_equal(seen.gaps, 0);
	assert_int_equal(counts_of(cb).called, 3000);
	assert_int_equal(counts_of(cb).lost, 0);
	raiser_end(&r);
}

static void raise_another(struct seen *s)
{
	(void)s;
	pem_notify_probe_tick(7, 1);
}

/* What the function raises itself is not called back: else one event were followed by another for ever. */
static void no_recursion(void **state)
{
	const struct pem_context self = {.cpu = PEM_NO_CPU, .pid = (uint32_t)getpid()};
	struct pem_callback *cb = callback_on("APP::Probe::Tick", &self, 100);

	(void)state;
	seen.also = raise_another;
	pem_callback__enable(cb);
	pem_notify_probe_tick(1, 1);
	wait_for(1);
	while (!is_asleep())
		usleep(100);
	assert_int_equal(seen_count(), 1);
	assert_int_equal(counts_of(cb).lost, 0);
}

static void a_forked_child_has_no_part_in_it(void **state)
{
	struct raiser r = raiser_start(1);
	int status;
	pid_t child;

	(void)state;
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 100);
	child = fork();
	if (!child) {
		pem_notify_probe_tick(2, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	raise_ticks(&r, 100);
	wait_for(200);
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

static pid_t forked;

static void fork_once(struct seen *s)
{
	if (s->count == 0)
		forked = fork();
}

static void the_function_may_fork(void **state)
{
	struct raiser r = raiser_start(1);
	int status;

	(void)state;
	forked = 0;
	seen.also = fork_once;
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 100);
	wait_for(100);
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

static void several_callbacks_on_one_event(void **state)
{
	struct pem_callback *one = enabled_on("APP::Probe::Tick", 100),
			    *two = enabled_on("APP::Probe::Tick", 1000);
	struct raiser r = raiser_start(1);

	(void)state;
	raise_ticks(&r, 100);
	wait_for(200);
	pem_callback__unregister(one);
	raise_ticks(&r, 100);
	wait_for(300);
	assert_int_equal(counts_of(two).called, 200);
	raiser_end(&r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, async_set_up, async_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_event_of_another_process_in_order),
		TEST(processes_are_merged_by_time),
		TEST(threads_are_merged_by_time),
		TEST(sleeps_and_is_woken),
		TEST(only_while_enabled),
		TEST(only_its_events),
		TEST(only_in_its_context),
		TEST(may_disable_itself),
		TEST(may_unregister_itself),
		TEST(unregister_waits_for_the_function),
		TEST(others_use_the_session_meanwhile),
		TEST(a_dead_process_is_read_to_its_end),
		TEST(no_recursion),
		TEST(a_forked_child_has_no_part_in_it),
		TEST(the_function_may_fork),
		TEST(several_callbacks_on_one_event),
	};

	alarm(100); /* what is never called back is waited for */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
