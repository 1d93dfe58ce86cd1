// SPDX-License-Identifier: MIT
/*
 * session_callback.c - synchronous callbacks: in the producing thread, with the record, and no
 * longer than registered
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "session_fixture.h"

#include "programs/probe.h"
#include "programs/types.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static struct pem_session *session;

/* What the callback saw. */
static struct {
	unsigned calls;
	uint64_t who, number;
	uint32_t pid, tid;
	/*
	 * 0: look; 1: raise the event again; 2: fork; 3: unregister itself; 4: wait; 6: close the
	 * session
	 */
	int mode;
	struct pem_callback *callback;
	int inside, leave;
} seen;

static void on_tick(const struct pem_record *record, void *arg)
{
	int status;
	pid_t child;

	assert_ptr_equal(arg, &seen);
	seen.calls++;
	seen.who = pem_record__u64(record, 0);
	seen.number = pem_record__u64(record, 1);
	seen.pid = record->pid;
	seen.tid = record->tid;
	assert_string_equal(record->event->name, "APP::Probe::Tick");
	if (seen.mode == 1) {
		pem_notify_probe_tick(9, 9);
	} else if (seen.mode == 2) {
		child = fork();
		if (child) {
			assert_int_equal(waitpid(child, &status, 0), child);
			assert_int_equal(status, 0);
		}
	} else if (seen.mode == 3) {
		pem_callback__unregister(seen.callback);
	} else if (seen.mode == 6) {
		pem_session__close(session);
		session = NULL;
	} else if (seen.mode == 4) {
		__atomic_store_n(&seen.inside, 1, __ATOMIC_RELEASE);
		while (!__atomic_load_n(&seen.leave, __ATOMIC_ACQUIRE))
			usleep(100);
	}
}

static int set_up(void **state)
{
	memset(&seen, 0, sizeof(seen));
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

static struct pem_callback *call_back(const char *pattern, uint32_t tid)
{
	const struct pem_context context = {.pid = (uint32_t)getpid(), .tid = tid};
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_callback *cb;

	cb = pem_session__register_callback(session, set, &context, on_tick, &seen, &error);
	if (!cb)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	seen.callback = cb;
	return cb;
}

static void called_while_enabled_with_the_record(void **state)
{
	struct pem_callback *cb = call_back("APP::Probe::Tick", PEM_ANY);

	(void)state;
	pem_notify_probe_tick(1, 2);
	assert_int_equal(seen.calls, 0);
	pem_callback__enable(cb);
	pem_notify_probe_tick(3, 4);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.who, 3);
	assert_int_equal(seen.number, 4);
	assert_int_equal(seen.pid, getpid());
	assert_int_equal(seen.tid, gettid());
	pem_notify_types_floats(1, 2); /* not of the set */
	pem_callback__disable(cb);
	pem_notify_probe_tick(5, 6);
	assert_int_equal(seen.calls, 1);
	pem_callback__enable(cb);
	pem_notify_probe_tick(7, 8);
	assert_int_equal(seen.calls, 2);
	pem_callback__unregister(cb);
	pem_notify_probe_tick(9, 10);
	assert_int_equal(seen.calls, 2);
}

static void no_recursion(void **state)
{
	(void)state;
	seen.mode = 1;
	pem_callback__enable(call_back("APP::Probe::Tick", PEM_ANY));
	pem_notify_probe_tick(1, 1);
	pem_notify_probe_tick(1, 2);
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.number, 2);
}

static void may_unregister_itself(void **state)
{
	(void)state;
	seen.mode = 3;
	pem_callback__enable(call_back("APP::Probe::Tick", PEM_ANY));
	pem_notify_probe_tick(1, 1);
	pem_notify_probe_tick(1, 2);
	assert_int_equal(seen.calls, 1);
}

static void may_close_its_session(void **state)
{
	struct pem_callback *cb;
	unsigned i;

	(void)state;
	for (i = 1; i <= 3; i++) {
		seen.mode = 6;
		pem_callback__enable(call_back("APP::Types::Floats", PEM_ANY));
		cb = call_back("APP::Probe::Tick", PEM_ANY);
		pem_callback__enable(cb);
		log_to_trace(session, "APP::Types::Floats", NULL);
		pem_notify_probe_tick(1, 1);
		assert_null(session);
		pem_notify_probe_tick(1, 2);
		assert_int_equal(seen.calls, i);
		session = session_open(NULL);
		snprintf(trace_path, sizeof(trace_path), "%s/trace%u", folder, i);
	}
}

/*
 * As malloc does there, where it is observed: a function that used pem would find its data half
 * changed, or wait for ever.
 */
static void not_called_inside_of_pem(void **state)
{
	struct pem_callback *cb = call_back("APP::Probe::Tick", PEM_ANY);
	struct pem_callback_counts counts = {.size = sizeof(counts)};

	(void)state;
	pem_callback__enable(cb);
	pem_session__lock(session);
	pem_notify_probe_tick(1, 1);
	pem_session__unlock(session);
	assert_int_equal(seen.calls, 0);
	pem_callback__counts(cb, &counts);
	assert_int_equal(counts.lost, 1);
	pem_notify_probe_tick(1, 2);
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.number, 2);
	pem_callback__counts(cb, &counts);
	assert_int_equal(counts.lost, 1);
}

static void *tick_once(void *arg)
{
	pem_notify_probe_tick(1, 1);
	return arg;
}

static void only_in_its_thread(void **state)
{
	pthread_t thread;

	(void)state;
	pem_callback__enable(call_back("APP::Probe::Tick", (uint32_t)gettid()));
	pthread_create(&thread, NULL, tick_once, NULL);
	pthread_join(thread, NULL);
	assert_int_equal(seen.calls, 0);
	tick_once(NULL);
	assert_int_equal(seen.calls, 1);
}

static void *unregister(void *arg)
{
	pem_callback__unregister(arg);
	__atomic_store_n(&seen.mode, 5, __ATOMIC_RELEASE);
	return NULL;
}

static void unregister_waits_for_who_is_inside(void **state)
{
	struct pem_callback *cb = call_back("APP::Probe::Tick", PEM_ANY);
	pthread_t ticker, remover;

	(void)state;
	seen.mode = 4;
	pem_callback__enable(cb);
	pthread_create(&ticker, NULL, tick_once, NULL);
	while (!__atomic_load_n(&seen.inside, __ATOMIC_ACQUIRE))
		usleep(100);
	pthread_create(&remover, NULL, unregister, cb);
	usleep(5000);
	assert_int_equal(__atomic_load_n(&seen.mode, __ATOMIC_ACQUIRE), 4);
	__atomic_store_n(&seen.leave, 1, __ATOMIC_RELEASE);
	pthread_join(remover, NULL);
	pthread_join(ticker, NULL);
	assert_int_equal(seen.mode, 5);
	tick_once(NULL);
	assert_int_equal(seen.calls, 1);
}

static struct {
	int inside, left;
} slow;

static void stay_a_while(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
	__atomic_store_n(&slow.inside, 1, __ATOMIC_RELEASE);
	usleep(20000);
	__atomic_store_n(&slow.left, 1, __ATOMIC_RELEASE);
}

static void unregister_other(const struct pem_record *record, void *arg)
{
	(void)record;
	pem_callback__unregister(arg);
	seen.calls++;
	assert_true(__atomic_load_n(&slow.left, __ATOMIC_ACQUIRE));
}

static void *floats_once(void *arg)
{
	pem_notify_types_floats(1, 2);
	return arg;
}

/* In a callback, only the one it is inside of is not waited for. */
static void unregister_in_a_callback_waits_for_others(void **state)
{
	struct pem_event_set *ticks = events(session, "APP::Probe::Tick"),
			     *floats = events(session, "APP::Types::Floats");
	struct pem_error error = {""};
	struct pem_callback *other, *cb;
	pthread_t thread;

	(void)state;
	memset(&slow, 0, sizeof(slow));
	other = pem_session__register_callback(session, floats, NULL, stay_a_while, NULL, &error);
	assert_non_null(other);
	cb = pem_session__register_callback(session, ticks, NULL, unregister_other, other, &error);
	assert_non_null(cb);
	pem_event_set__free(ticks);
	pem_event_set__free(floats);
	pem_callback__enable(other);
	pem_callback__enable(cb);
	pthread_create(&thread, NULL, floats_once, NULL);
	while (!__atomic_load_n(&slow.inside, __ATOMIC_ACQUIRE))
		usleep(100);
	pem_notify_probe_tick(1, 1);
	assert_int_equal(seen.calls, 1);
	pthread_join(thread, NULL);
}

/*
 * The child returns from the callback into the event; it has no callbacks, and no part in the
 * session.
 */
static void may_fork(void **state)
{
	pid_t self = getpid();

	(void)state;
	seen.mode = 2;
	pem_callback__enable(call_back("APP::Probe::Tick", PEM_ANY));
	pem_notify_probe_tick(1, 1);
	if (getpid() != self) {
		pem_notify_probe_tick(1, 2);
		_exit(seen.calls == 1 ? 0 : 1);
	}
	assert_int_equal(seen.calls, 1);
	seen.mode = 0;
	pem_notify_probe_tick(1, 3);
	assert_int_equal(seen.calls, 2);
}

static void children_are_not_called_back(void **state)
{
	int status;
	pid_t child;

	(void)state;
	pem_callback__enable(call_back("APP::Probe::Tick", PEM_ANY));
	pem_notify_probe_tick(1, 1);
	child = fork();
	if (!child) {
		pem_notify_probe_tick(1, 2);
		_exit(seen.calls == 1 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void kernel_events_cannot_call_back(void **state)
{
	const struct pem_context context = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = events(session, "OS::Mem::PageFault");
	struct pem_error error = {""};

	(void)state;
	assert_null(pem_session__register_callback(session, set, &context, on_tick, &seen, &error));
	assert_int_equal(errno, ENOTSUP);
	assert_non_null(strstr(error.text, "OS::Mem::PageFault"));
	pem_event_set__free(set);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(called_while_enabled_with_the_record),
		TEST(no_recursion),
		TEST(may_unregister_itself),
		TEST(may_close_its_session),
		TEST(not_called_inside_of_pem),
		TEST(only_in_its_thread),
		TEST(unregister_waits_for_who_is_inside),
		TEST(unregister_in_a_callback_waits_for_others),
		TEST(may_fork),
		TEST(children_are_not_called_back),
		TEST(kernel_events_cannot_call_back),
	};

	alarm(600); /* a callback that nobody leaves would wait for ever */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
