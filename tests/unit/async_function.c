// SPDX-License-Identifier: MIT
/*
 * async_function.c - what the function of an asynchronous callback may do, and others while it runs
 *
 * Not here: which events it is called for (async_callback.c).
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "async_fixture.h"

#include <stdbool.h>

/*
 * Not before all were raised: what is raised later is not for it, and so neither called nor lost.
 */
static void disable_at_leave(struct seen *s)
{
	stay(s);
	pem_callback__disable(s->self);
}

static void disable_self(struct seen *s)
{
	if (s->count == 4)
		disable_at_leave(s);
}

static void may_disable_itself(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 100);
	struct raiser r = raiser_start(1);

	(void)state;
	put(&leave, 0);
	also_do(disable_self);
	raise_ticks(&r, 100);
	put(&leave, 1);
	wait_for(5);
	also_do(NULL);
	while (counts_of(cb).called + counts_of(cb).lost < 100)
		usleep(100);
	assert_int_equal(seen_count(), 5);
	pem_callback__enable(cb);
	raise_ticks(&r, 1);
	wait_for(6);
	assert_int_equal(seen.next_number[1], 101);
	assert_int_equal(counts_of(cb).lost, 95);
	raiser_end(&r);
}

/* One is being called, the others wait to be collected: nobody calls for them any more. */
static void what_waits_when_it_is_disabled_is_lost(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 100);
	struct raiser r = raiser_start(1);

	(void)state;
	put(&inside, 0);
	put(&leave, 0);
	also_do(disable_at_leave);
	raise_ticks(&r, 1);
	wait_until(&inside, 1);
	raise_ticks(&r, 99);
	put(&leave, 1);
	while (counts_of(cb).called + counts_of(cb).lost < 100)
		usleep(100);
	assert_int_equal(counts_of(cb).lost, 99);
	assert_int_equal(counts_of(cb).waiting, 0);
	also_do(NULL);
	raiser_end(&r);
}

/* Its function still runs: the others are lost at once, and leave their room to the next callback.
 */
static void what_waits_leaves_at_once(void **state)
{
	struct pem_callback *cb = enabled_on("APP::Probe::Tick", 100);
	struct raiser r = raiser_start(1);

	(void)state;
	put(&inside, 0);
	put(&leave, 0);
	also_do(stay);
	raise_ticks(&r, 1);
	wait_until(&inside, 1);
	raise_ticks(&r, 99);
	assert_int_equal(counts_of(cb).waiting, 100);
	pem_callback__disable(cb);
	assert_int_equal(counts_of(cb).waiting, 1);
	assert_int_equal(counts_of(cb).lost, 99);
	put(&leave, 1);
	while (counts_of(cb).waiting)
		usleep(100);
	assert_int_equal(counts_of(cb).called, 1);
	also_do(NULL);
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
	also_do(unregister_self);
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 100);
	wait_for(1);
	also_do(NULL);
	other = enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 1);
	wait_for(2);
	assert_int_equal(counts_of(other).called, 1);
	raiser_end(&r);
}

static struct pem_statistics *statistic;
static struct pem_callback *others[2];
static struct pem_log *trace_log;

static void replace_self(struct seen *s)
{
	if (s->count == 0)
		stay(s);
	if (s->count != 1)
		return;
	pem_callback__unregister(s->self);
	others[0] = callback_on("APP::Probe::Tick", NULL, 100);
}

/* What is to be called back still was never the other's. */
static void what_takes_its_dir_loses_nothing(void **state)
{
	struct raiser r = raiser_start(1);

	(void)state;
	put(&inside, 0);
	put(&leave, 0);
	also_do(replace_self);
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 1);
	wait_until(&inside, 1);
	raise_ticks(&r, 100);
	put(&leave, 1);
	wait_for(2);
	while (counts_of(others[0]).waiting)
		usleep(100);
	assert_int_equal(counts_of(others[0]).lost, 0);
	raiser_end(&r);
}

static void unregister_others(struct seen *s)
{
	if (s->count)
		return;
	pem_callback__unregister(others[0]);
	pem_callback__unregister(others[1]);
	pem_statistics__unregister(statistic);
	pem_log__unregister(trace_log);
}

static void ignore(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
}

static void may_unregister_others(void **state)
{
	struct raiser r = raiser_start(1);
	struct pem_event_set *floats, *ticks;
	struct pem_callback *cb;

	(void)state;
	also_do(unregister_others);
	floats = events(session, "APP::Types::Floats");
	others[0] = callback_on("APP::Probe::Tick", NULL, 1000);
	others[1] = pem_session__register_callback(session, floats, NULL, ignore, NULL, NULL);
	ticks = events(session, "APP::Probe::Tick");
	statistic = pem_session__register_statistics(session, ticks, NULL, NULL, NULL);
	pem_event_set__free(ticks);
	trace_log = log_to_trace(session, "APP::Types::Floats", NULL);
	pem_event_set__free(floats);
	assert_true(others[1] && statistic);
	cb = enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 100);
	wait_for(100);
	assert_int_equal(counts_of(cb).called, 100);
	assert_null(session->log);
	raiser_end(&r);
}

static void close_session(struct seen *s)
{
	(void)s;
	pem_session__close(session);
}

/* In the middle of a batch, beside others. The thread ends once the function returns. */
static void may_close_its_session(void **state)
{
	struct raiser r;
	unsigned i;

	(void)state;
	for (i = 1; i <= 6; i++) {
		r = raiser_start(1);
		log_to_trace(session, "APP::Types::Floats", NULL);
		also_do(close_session);
		callback_on("APP::Probe::Tick", NULL, 1000);
		enabled_on("APP::Probe::Tick", 100);
		while (i % 2 && !is_asleep())
			usleep(100);
		raise_ticks(&r, 100);
		wait_for(i);
		session = NULL;
		raiser_end(&r);
		assert_int_equal(seen_count(), i);
		assert_int_equal(begin_session(NULL), 0);
		snprintf(trace_path, sizeof(trace_path), "%s/trace%u", folder, i);
	}
}

static void close_in_sync(const struct pem_record *record, void *arg)
{
	(void)record;
	close_session(arg);
}

static void raise_floats(struct seen *s)
{
	(void)s;
	pem_notify_types_floats(1, 2);
}

/* On the thread of one kind, in a function of the other. */
static void may_close_it_in_both_kinds_at_once(void **state)
{
	struct pem_event_set *floats = events(session, "APP::Types::Floats");
	struct raiser r = raiser_start(1);
	struct pem_callback *sync;

	(void)state;
	sync = pem_session__register_callback(session, floats, NULL, close_in_sync, &seen, NULL);
	pem_event_set__free(floats);
	pem_callback__enable(sync);
	also_do(raise_floats);
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 100);
	wait_for(1);
	session = NULL;
	raiser_end(&r);
}

static void *unregister(void *arg)
{
	pem_callback__unregister(seen.self);
	put(arg, 1);
	return NULL;
}

static bool has_callbacks(void)
{
	bool any;

	pem_session__lock(session);
	any = session->callbacks != NULL;
	pem_session__unlock(session);
	return any;
}

static void unregister_waits_for_the_function(void **state)
{
	struct raiser r = raiser_start(1);
	pthread_t thread;
	int done = 0;

	(void)state;
	put(&inside, 0);
	put(&leave, 0);
	also_do(stay);
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 10);
	wait_until(&inside, 1);
	pthread_create(&thread, NULL, unregister, &done);
	while (has_callbacks())
		usleep(100);
	usleep(5000);
	assert_int_equal(__atomic_load_n(&done, __ATOMIC_ACQUIRE), 0);
	put(&leave, 1);
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
	put(&inside, 0);
	put(&leave, 0);
	also_do(stay);
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 10);
	wait_until(&inside, 1);
	set = pem_event_set__new(session, &(const char *){"APP::Probe::Tick"}, 1, &error);
	assert_non_null(set);
	pem_event_set__free(set);
	assert_int_equal(counts_of(seen.self).called, 1);
	pem_callback__disable(seen.self);
	put(&leave, 1);
	raiser_end(&r);
}

static void raise_another(struct seen *s)
{
	(void)s;
	pem_notify_probe_tick(7, 1);
}

/*
 * What the function raises itself is not called back: else one event were followed by another for
 * ever.
 */
static void no_recursion(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_callback *cb = callback_on("APP::Probe::Tick", &self, 100);

	(void)state;
	also_do(raise_another);
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

static pid_t forked = -1;

/*
 * LeakSanitizer asks: of the child it would see the thread that forked, and not what other threads'
 * stacks hold.
 */
int __lsan_is_turned_off(void);
int __attribute__((visibility("default"))) __lsan_is_turned_off(void)
{
	return forked == 0;
}

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
	also_do(fork_once);
	enabled_on("APP::Probe::Tick", 100);
	raise_ticks(&r, 100);
	wait_for(100);
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
	assert_int_equal(seen.gaps, 0);
	raiser_end(&r);
}

/* --- any thread, at any time, in a callback too --- */

static int over;
static struct pem_callback *shared_handle;
static struct pem_statistics *shared_statistics;

static void use_all(void)
{
	struct pem_callback_counts counts = {.size = sizeof(counts)};
	struct pem_statistic value = {.size = sizeof(value)};

	pem_callback__disable(shared_handle);
	pem_callback__counts(shared_handle, &counts);
	pem_callback__enable(shared_handle);
	pem_statistics__disable(shared_statistics);
	pem_statistics__enable(shared_statistics);
	pem_statistics__read(shared_statistics, &value, 1);
	pem_statistics__reset(shared_statistics);
}

static void count_call(const struct pem_record *record, void *arg)
{
	(void)record;
	__atomic_fetch_add((uint64_t *)arg, 1, __ATOMIC_RELAXED);
}

static void use_in_callback(const struct pem_record *record, void *arg)
{
	count_call(record, arg);
	use_all();
}

/* Handles of its own, of both kinds, come and go. */
static void *use_in_thread(void *arg)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_event_set *ticks = events(session, "APP::Probe::Tick");
	struct pem_callback *cb;

	while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
		cb = pem_session__register_async_callback(session, ticks, &self, count_call, arg,
							  NULL, NULL);
		pem_callback__enable(cb);
		use_all();
		pem_callback__unregister(cb);
		cb = pem_session__register_callback(session, ticks, &self, count_call, arg, NULL);
		pem_callback__enable(cb);
		pem_notify_probe_tick(1, 1);
		pem_callback__unregister(cb);
	}
	pem_event_set__free(ticks);
	return NULL;
}

static void all_may_be_used_from_everywhere(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_event_set *ticks = events(session, "APP::Probe::Tick");
	uint64_t calls = 0, in_callback = 0;
	pthread_t thread[3];
	unsigned i;

	(void)state;
	put(&over, 0);
	shared_handle = pem_session__register_async_callback(session, ticks, &self, use_in_callback,
							     &in_callback, NULL, NULL);
	shared_statistics = pem_session__register_statistics(session, ticks, &self, "number", NULL);
	assert_true(shared_handle && shared_statistics);
	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, use_in_thread, &calls);
	for (i = 0; i < 500; i++) {
		pem_notify_probe_tick(2, i);
		usleep(200);
	}
	put(&over, 1);
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	pem_callback__enable(shared_handle);
	pem_notify_probe_tick(2, 1);
	while (!__atomic_load_n(&in_callback, __ATOMIC_RELAXED))
		usleep(100);
	assert_true(__atomic_load_n(&calls, __ATOMIC_RELAXED) > 0);
	pem_callback__unregister(shared_handle);
	pem_event_set__free(ticks);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, async_set_up, async_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(may_disable_itself),
		TEST(what_waits_when_it_is_disabled_is_lost),
		TEST(what_waits_leaves_at_once),
		TEST(may_unregister_itself),
		TEST(what_takes_its_dir_loses_nothing),
		TEST(may_unregister_others),
		TEST(may_close_its_session),
		TEST(may_close_it_in_both_kinds_at_once),
		TEST(unregister_waits_for_the_function),
		TEST(others_use_the_session_meanwhile),
		TEST(no_recursion),
		TEST(a_forked_child_has_no_part_in_it),
		TEST(the_function_may_fork),
		TEST(all_may_be_used_from_everywhere),
	};

	alarm(600); /* what is never called back is waited for */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
