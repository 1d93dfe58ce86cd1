/* SPDX-License-Identifier: MIT */
/*
 * several_fixture.h - handles on one event of a session, another process and threads that raise it
 *
 * Included by the programs session_several*.c.
 */
#ifndef SEVERAL_FIXTURE_H
#define SEVERAL_FIXTURE_H

#include "callbacks/callbacks.h"
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "session_fixture.h"
#include "util.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "programs/types.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>

#define TICK "APP::Probe::Tick"
#define TICKS 10u
#define MAYBE_UNUSED __attribute__((unused))

static struct pem_session *session;
static const struct pem_context anywhere;
static struct pem_context here;

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	here = anywhere;
	here.pid = (uint32_t)getpid();
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static struct pem_event_set *ticks_where(const char *predicate)
{
	struct pem_event_set *set = events(session, TICK);
	struct pem_error error = {""};

	if (pem_event_set__where(set, predicate, &error))
		fail_msg("%s", error.text);
	return set;
}

MAYBE_UNUSED static struct pem_statistics *statistics(const struct pem_context *context,
						      const char *attribute, const char *predicate)
{
	struct pem_event_set *set = ticks_where(predicate);
	struct pem_error error = {""};
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, context, attribute, &error);

	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

MAYBE_UNUSED static struct pem_statistic value_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	return value;
}

MAYBE_UNUSED static struct pem_log *log_where(const struct pem_context *context,
					      const char *predicate)
{
	struct pem_event_set *set = ticks_where(predicate);
	struct pem_error error = {""};
	struct pem_log *log = pem_session__register_log(session, set, context, trace_path, &error);

	if (!log)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_log__enable(log), 0);
	return log;
}

/*
 * What a callback saw: how often, and the sum of number. Asynchronous callbacks go on until the
 * session is closed, after the test's function: theirs is static.
 */
struct seen {
	uint64_t count, sum;
};

static void see(const struct pem_record *record, void *arg)
{
	struct seen *seen = arg;

	__atomic_fetch_add(&seen->sum, pem_record__u64(record, 1), __ATOMIC_RELAXED);
	__atomic_fetch_add(&seen->count, 1, __ATOMIC_RELEASE);
}

MAYBE_UNUSED static struct pem_callback *call_back(const struct pem_context *context,
						   const char *predicate, struct seen *seen)
{
	struct pem_event_set *set = ticks_where(predicate);
	struct pem_error error = {""};
	struct pem_callback *cb =
		pem_session__register_callback(session, set, context, see, seen, &error);

	if (!cb)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	pem_callback__enable(cb);
	return cb;
}

MAYBE_UNUSED static struct pem_callback *call_later(const struct pem_context *context,
						    const char *predicate, struct seen *seen)
{
	struct pem_event_set *set = ticks_where(predicate);
	struct pem_error error = {""};
	struct pem_callback *cb = pem_session__register_async_callback(session, set, context, see,
								       seen, NULL, &error);

	if (!cb)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	pem_callback__enable(cb);
	return cb;
}

/* Wait until an asynchronous callback has been called so often, and for none that waits. */
MAYBE_UNUSED static void wait_for(struct pem_callback *cb, uint64_t calls)
{
	const struct timespec pause = {0, 1000000};
	struct pem_callback_counts counts = {.size = sizeof(counts)};
	unsigned i;

	for (i = 0; i < 10000; i++) {
		assert_int_equal(pem_callback__counts(cb, &counts), 0);
		if (counts.called >= calls && !counts.waiting)
			break;
		nanosleep(&pause, NULL);
	}
	assert_int_equal(counts.called, calls);
	assert_int_equal(counts.lost, 0);
}

MAYBE_UNUSED static void raise_ticks(unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		pem_notify_probe_tick(i % 2, i);
}

/* --- another process --- */

static pid_t other;
static int go, done;

/* It makes its pool by an event that is wanted, and then raises ticks each time it is told to. */
static void run_other(int in, int out)
{
	char c = 0;

	if (pem_process__join(session->directory) < 0)
		_exit(1);
	pem_notify_types_floats(1, 2);
	while (write(out, &c, 1) == 1 && read(in, &c, 1) == 1)
		raise_ticks(TICKS);
	_exit(0);
}

MAYBE_UNUSED static void start_other(void)
{
	struct pem_event_set *set = events(session, "APP::Types::Floats");
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, NULL, NULL, NULL);
	int in[2], out[2];
	char c;

	assert_int_equal(pem_statistics__enable(st), 0);
	pem_event_set__free(set);
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	other = fork();
	if (!other) {
		close(in[1]);
		run_other(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	go = in[1];
	done = out[0];
	assert_int_equal(read(done, &c, 1), 1);
	pem_session__lock(session);
	pem_session__scan_producers(session);
	pem_session__unlock(session);
}

/* It raises TICKS ticks. */
MAYBE_UNUSED static void tell_other(void)
{
	char c = 0;

	assert_int_equal(write(go, &c, 1), 1);
	assert_int_equal(read(done, &c, 1), 1);
}

MAYBE_UNUSED static void end_other(void)
{
	close(go);
	close(done);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

/* --- threads --- */

static void *raise_in_thread(void *arg)
{
	uint32_t *tid = arg;

	__atomic_store_n(tid, (uint32_t)gettid(), __ATOMIC_RELEASE);
	raise_ticks(TICKS);
	return NULL;
}

MAYBE_UNUSED static void run_thread(void)
{
	pthread_t thread;
	uint32_t tid;

	assert_int_equal(pthread_create(&thread, NULL, raise_in_thread, &tid), 0);
	pthread_join(thread, NULL);
}

#endif
