// SPDX-License-Identifier: MIT
/*
 * session_changes.c - what is wanted of an event changes again and again, its predicate and its
 * detail, while threads raise it
 *
 * Made for ThreadSanitizer, as session_threads.c, which has handles of all kinds come and go, and
 * no predicates.
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "delivery/delivery.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"

#include <pthread.h>

#define TICK "APP::Probe::Tick"
#define RAISERS 4u
#define ROUNDS 60u

static struct pem_session *session;
static struct pem_context self;
static pthread_t raiser[RAISERS];
static uint32_t stop;
static uint64_t seen, strangers;

/* Raiser 0 and 3 pass none of them, and nobody's 7 does. */
static const char *const predicates[] = {
	"who == 1 && number != 7",
	"who == 2 && number > 7",
	"who >= 1 && who <= 2 && number != 7",
	"(who == 1 || who == 2) && number < 7",
};

static bool passes_some(uint64_t who, uint64_t number)
{
	return (who == 1 || who == 2) && number != 7;
}

/* A thread in the middle of an event may have tested it by the predicate before, and no other. */
static void look(const struct pem_record *record, void *arg)
{
	(void)arg;
	__atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
	if (!passes_some(pem_record__u64(record, 0), pem_record__u64(record, 1)))
		__atomic_fetch_add(&strangers, 1, __ATOMIC_RELAXED);
}

static void *raise_ticks(void *arg)
{
	uint64_t n = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pem_notify_probe_tick((uintptr_t)arg, n++ % 16);
		if (n % 500 == 0)
			usleep(200);
	}
	return NULL;
}

static void start_raisers(void)
{
	uintptr_t i;

	for (i = 0; i < RAISERS; i++)
		assert_int_equal(pthread_create(&raiser[i], NULL, raise_ticks, (void *)i), 0);
}

static void end_raisers(void)
{
	unsigned i;

	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < RAISERS; i++)
		pthread_join(raiser[i], NULL);
}

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	self = (struct pem_context){.pid = (uint32_t)getpid()};
	session = session_open(NULL);
	stop = 0;
	seen = strangers = 0;
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

static struct pem_callback *call_back(const struct pem_event_set *set, bool async)
{
	struct pem_error error = {""};
	struct pem_callback *cb =
		async ? pem_session__register_async_callback(session, set, &self, look, NULL, NULL,
							     &error)
		      : pem_session__register_callback(session, set, &self, look, NULL, &error);

	if (!cb)
		fail_msg("%s", error.text);
	pem_callback__enable(cb);
	return cb;
}

static struct pem_statistics *count(const struct pem_event_set *set)
{
	struct pem_error error = {""};
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, &self, "number", &error);

	if (!st)
		fail_msg("%s", error.text);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

/* Callbacks of both kinds and a statistic, all by one predicate, and then by the next. */
static void observe_where(const char *predicate)
{
	struct pem_event_set *set = ticks_where(predicate);
	struct pem_callback *async = call_back(set, true), *sync = call_back(set, false);
	struct pem_statistics *st = count(set);
	struct pem_statistic value = {.size = sizeof(value)};

	pem_event_set__free(set);
	pem_session__lock(session);
	session->async->limit = SIZE_MAX; /* nothing is lost to a slow machine */
	pem_session__unlock(session);
	usleep(500);
	pem_callback__unregister(sync);
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	pem_statistics__unregister(st);
	pem_callback__unregister(async);
}

/* Every record that a thread counted as produced was read, or counted as discarded. */
static void assert_all_read(void)
{
	uint64_t produced = 0, discarded = 0, read;
	const struct pem_event_entry *entry;
	struct pem_producer *p = session->processes->producers;
	struct pem_cell *session_index;
	uint32_t lane;

	assert_non_null(p);
	assert_null(p->next);
	entry = pem_producer__event(p, pem_model__by_name(session->model, TICK)->id);
	assert_non_null(entry);
	for (lane = 0; lane < p->ring.lane_count; lane = pem_producer__next_lane(p, lane)) {
		session_index = &p->ring.cells[(uint64_t)lane * p->ring.event_capacity +
					       entry->event_index];
		produced += session_index->produced;
		discarded += session_index->discarded;
	}
	read = p->async->read[entry->event_index];
	assert_true(read > 0);
	assert_int_equal(produced, read + discarded);
}

static void each_record_passes_a_predicate_that_held(void **state)
{
	struct pem_event_set *set;
	struct pem_callback *last;
	struct pem_callback_counts counts = {.size = sizeof(counts)};
	unsigned i;

	(void)state;
	start_raisers();
	for (i = 0; i < ROUNDS; i++)
		observe_where(predicates[i % (sizeof(predicates) / sizeof(predicates[0]))]);
	end_raisers();
	set = ticks_where(predicates[0]);
	last = call_back(set, true);
	pem_event_set__free(set);
	do
		pem_callback__counts(last, &counts);
	while (counts.waiting);
	pem_session__lock(session);
	assert_all_read();
	pem_session__unlock(session);
	assert_true(__atomic_load_n(&seen, __ATOMIC_RELAXED) > 0);
	assert_int_equal(__atomic_load_n(&strangers, __ATOMIC_RELAXED), 0);
}

/* As the overhead budget does. */
static void set_detail(uint8_t detail)
{
	pem_session__lock(session);
	pem_session__demand(session, pem_model__by_name(session->model, TICK))->detail = detail;
	pem_session__publish(session);
	pem_session__unlock(session);
}

static void change_detail(struct pem_log *log, struct pem_statistics *st, unsigned round)
{
	set_detail((uint8_t)(round % 3));
	if (round % 4 == 3)
		pem_log__disable(log);
	if (round % 5 == 4)
		pem_statistics__disable(st);
	usleep(300);
	pem_log__enable(log);
	pem_statistics__enable(st);
	set_detail(PEM_DETAIL_LOG);
	usleep(200);
}

static void check_trace(void)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(trace_path, &error);
	struct pem_balance balance;
	struct pem_record record = {.size = sizeof(record)};
	uint64_t records = 0;
	int result;

	if (!trace)
		fail_msg("%s", error.text);
	while ((result = pem_trace__next(trace, &record, &error)) == 1) {
		assert_true(pem_record__u64(&record, 0) == 2);
		assert_true(pem_record__u64(&record, 1) > 7);
		records++;
	}
	if (result)
		fail_msg("%s", error.text);
	balance = pem_trace__total_balance(trace);
	assert_true(records > 0);
	assert_int_equal(balance.delivered, records);
	assert_int_equal(balance.produced, balance.delivered + balance.discarded);
	assert_int_equal(balance.overwritten, 0);
	pem_trace__close(trace);
}

/* Go on until the log has a record: a busy machine may not have let the thread raise one yet. */
static void wait_for_a_record(struct pem_statistics *st)
{
	struct pem_statistic before = {.size = sizeof(before)}, now = {.size = sizeof(now)};

	assert_int_equal(pem_statistics__read(st, &before, 1), 1);
	do {
		usleep(200);
		pem_session__poll(session, 0, &(int){0});
		assert_int_equal(pem_statistics__read(st, &now, 1), 1);
	} while (now.count == before.count);
}

static void a_log_balances_whose_detail_changes(void **state)
{
	struct pem_event_set *set = ticks_where("who == 2 && number > 7");
	struct pem_error error = {""};
	struct pem_statistics *st;
	struct pem_log *log;
	unsigned i;

	(void)state;
	log = pem_session__register_log(session, set, &self, trace_path, &error);
	if (!log)
		fail_msg("%s", error.text);
	assert_int_equal(pem_log__enable(log), 0);
	st = count(set);
	start_raisers();
	for (i = 0; i < ROUNDS; i++) {
		change_detail(log, st, i);
		pem_session__poll(session, 0, &(int){0});
	}
	wait_for_a_record(st);
	end_raisers();
	if (pem_log__finish(log, &error))
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	check_trace();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(each_record_passes_a_predicate_that_held),
		TEST(a_log_balances_whose_detail_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
