// SPDX-License-Identifier: MIT
/*
 * session_snapshot.c - a flight recorder writes out what it holds, again and again, while the
 * program goes on
 *
 * Not here: what it keeps of processes that ended and of the kernel (flight_memory.c).
 */
#include "core/core.h"
#include "writer/log.h"
#include "session_fixture.h"

#include "programs/probe.h"

#include <errno.h>
#include <pthread.h>

#define TICK "APP::Probe::Tick"
#define CHUNKS 16u
#define THREADS 3
#define SNAPSHOTS 12

static struct pem_session *session;
static struct pem_log *trace_log;

static int set_up_chunks(void **state, uint32_t count)
{
	const struct pem_session_options options = {
		.size = sizeof(options), .chunk_bytes = 4096, .chunk_count = count, .overwrite = 1};
	const struct pem_context self = {.pid = (uint32_t)getpid()};

	if (folder_make(state))
		return -1;
	session = session_open(&options);
	trace_log = log_to_trace(session, TICK, &self);
	return 0;
}

static int set_up(void **state)
{
	return set_up_chunks(state, CHUNKS);
}

/* More than threads fill while a snapshot is taken. */
static int set_up_many(void **state)
{
	return set_up_chunks(state, 8192);
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

/* Write a snapshot and read it back; its balance must hold. Returns the records in it. */
static uint64_t snapshot(unsigned number, struct pem_balance *balance)
{
	struct pem_error error = {""};
	char recording[sizeof(trace_path)];
	uint64_t ticks, count;

	memcpy(recording, trace_path, sizeof(recording));
	snprintf(trace_path, sizeof(trace_path), "%s/snapshot-%u", folder, number);
	if (pem_session__snapshot(session, trace_path, NULL, &error))
		fail_msg("%s", error.text);
	count = read_trace(TICK, &ticks, balance);
	memcpy(trace_path, recording, sizeof(recording));
	assert_int_equal(balance->delivered, count);
	assert_int_equal(balance->produced,
			 balance->delivered + balance->discarded + balance->overwritten);
	return ticks;
}

/*
 * Nothing is taken by it: a second one has the same, and what came since, and so has the
 * recording's end.
 */
static void leaves_everything_where_it_is(void **state)
{
	struct pem_balance b;
	unsigned i;

	(void)state;
	for (i = 1; i <= 300; i++)
		pem_notify_probe_tick(1, i);
	assert_int_equal(snapshot(1, &b), 300);
	assert_int_equal(b.produced, 300);
	for (; i <= 400; i++)
		pem_notify_probe_tick(1, i);
	assert_int_equal(snapshot(2, &b), 400);
	assert_int_equal(b.overwritten, 0);
	assert_int_equal(pem_log__finish(trace_log, NULL), 0);
	assert_int_equal(read_trace(TICK, &b.produced, &b), 400);
}

static volatile int stop;

static void *raise_ticks(void *arg)
{
	uint64_t who = (uint64_t)(uintptr_t)arg, number = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		pem_notify_probe_tick(who, ++number);
	return NULL;
}

/* Does the reader know of a loss directly before this record of a thread? */
static bool follows_loss(const struct pem_trace *trace, const struct pem_record *record)
{
	struct pem_trace_loss loss = {.size = sizeof(loss)};
	size_t i;

	for (i = 0; i < pem_trace__loss_count(trace); i++) {
		assert_int_equal(pem_trace__loss(trace, i, &loss), 0);
		if (loss.tid == record->tid && loss.end_ns == record->time_ns)
			return true;
	}
	return false;
}

/*
 * The same numbers, one after the other, of each raiser: no record is torn, doubled or out of
 * order, and a hole is a loss. Returns the sum of the last numbers.
 */
static uint64_t check_order(unsigned number)
{
	uint64_t last[THREADS + 1] = {0}, who, next, sum = 0;
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_trace *trace;
	char path[128];

	snprintf(path, sizeof(path), "%s/snapshot-%u", folder, number);
	trace = pem_trace__open(path, &error);
	assert_non_null(trace);
	while (pem_trace__next(trace, &record, &error) == 1) {
		who = pem_record__u64(&record, 0);
		assert_in_range(who, 1, THREADS);
		next = pem_record__u64(&record, 1);
		assert_true(next > last[who]);
		assert_true(!last[who] || next == last[who] + 1 || follows_loss(trace, &record));
		last[who] = next;
	}
	pem_trace__close(trace);
	for (who = 1; who <= THREADS; who++)
		sum += last[who];
	return sum;
}

/* The pool is written round and round meanwhile. */
static void balances_under_fire(void **state)
{
	uint64_t overwritten = 0;
	pthread_t threads[THREADS];
	struct pem_balance b;
	unsigned i, n;

	(void)state;
	stop = 0;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, raise_ticks, (void *)(uintptr_t)(i + 1)),
			0);
	for (n = 0; n < SNAPSHOTS || !overwritten; n++) {
		/* Nothing only before any thread got to run. */
		assert_true(snapshot(n, &b) > 0 || !b.produced);
		check_order(n);
		assert_true(b.overwritten >= overwritten);
		overwritten = b.overwritten;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	snapshot(n, &b);
	assert_int_equal(pem_log__finish(trace_log, NULL), 0);
}

static void *raise_with_pauses(void *arg)
{
	const struct timespec pause = {0, 100000};
	uint64_t who = (uint64_t)(uintptr_t)arg, number = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pem_notify_probe_tick(who, ++number);
		if (number % 20 == 0)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Threads go on while their chunks are copied, and pause again and again. */
static void counts_and_records_end_at_one_place(void **state)
{
	pthread_t threads[THREADS];
	struct pem_balance b;
	unsigned i, n;

	(void)state;
	stop = 0;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, raise_with_pauses,
						(void *)(uintptr_t)(i + 1)),
				 0);
	for (n = 0; n < SNAPSHOTS; n++) {
		snapshot(n, &b);
		assert_int_equal(check_order(n), b.produced);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(pem_log__finish(trace_log, NULL), 0);
}

/* What was overwritten is not part of the trace's time. */
static void begins_with_what_is_left(void **state)
{
	const struct pem_trace_info *info;
	struct pem_error error = {""};
	struct pem_record record = {.size = sizeof(record)};
	struct pem_balance b;
	struct pem_trace *trace;
	char path[128];
	unsigned i;

	(void)state;
	for (i = 1; i <= 100000; i++)
		pem_notify_probe_tick(1, i);
	snapshot(1, &b);
	assert_true(b.overwritten > 0);
	snprintf(path, sizeof(path), "%s/snapshot-1", folder);
	trace = pem_trace__open(path, &error);
	assert_non_null(trace);
	info = pem_trace__info(trace);
	assert_string_equal(info->snapshot, "asked for");
	assert_true(info->ran_ns > info->duration_ns);
	assert_int_equal(pem_trace__next(trace, &record, &error), 1);
	assert_int_equal(record.time_ns, 0);
	assert_int_equal(record.clock, info->start_clock);
	pem_trace__close(trace);
}

static void is_of_flight_recorders_only(void **state)
{
	struct pem_session *other = session_open(NULL);
	struct pem_error error = {""};
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/none", folder);
	assert_int_equal(pem_session__snapshot(other, path, NULL, &error), -EINVAL);
	assert_non_null(strstr(error.text, "overwrite"));
	pem_session__close(other);
	assert_int_equal(pem_log__finish(trace_log, NULL), 0);
	assert_int_equal(pem_session__snapshot(session, path, NULL, &error), -EINVAL);
	assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(leaves_everything_where_it_is),
		TEST(balances_under_fire),
		cmocka_unit_test_setup_teardown(counts_and_records_end_at_one_place, set_up_many,
						tear_down),
		TEST(begins_with_what_is_left),
		TEST(is_of_flight_recorders_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
