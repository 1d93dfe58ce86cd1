// SPDX-License-Identifier: MIT
/*
 * session_several_records.c - a log and callbacks of both kinds on one event in one session, each
 * with a predicate and a context of its own
 *
 * Not here: statistics (session_several.c).
 */
#include "delivery/delivery.h"
#include "several_fixture.h"

/* In this process, as an agent would. */
static void each_handle_has_what_it_asks_for(void **state)
{
	struct pem_statistics *all = statistics(&here, NULL, NULL),
			      *large = statistics(&here, "number", "number >= 5"),
			      *who = statistics(NULL, "who", "number < 8");
	static struct seen odd = {0}, small = {0};
	struct pem_balance balance;
	struct pem_callback *later;
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_log *log;
	uint64_t ticks;

	(void)state;
	call_back(NULL, "who == 1", &odd);
	later = call_later(&here, "number < 3", &small);
	log = log_where(&here, "number > 6 || number == 2");
	raise_ticks(TICKS);
	assert_int_equal(value_of(all).count, 10);
	value = value_of(large);
	assert_int_equal(value.count, 5);
	assert_int_equal(value.sum, 5 + 6 + 7 + 8 + 9);
	assert_int_equal(value.min, 5);
	value = value_of(who);
	assert_int_equal(value.count, 8);
	assert_int_equal(value.sum, 4);
	assert_int_equal(odd.count, 5);
	assert_int_equal(odd.sum, 1 + 3 + 5 + 7 + 9);
	wait_for(later, 3);
	assert_int_equal(small.sum, 3);
	assert_int_equal(pem_log__finish(log, NULL), 0);
	assert_int_equal(read_trace(TICK, &ticks, &balance), 4);
	assert_int_equal(balance.produced, 4);
	assert_int_equal(balance.delivered, 4);
}

/* Each taker of records has those of its own process, in both orders. */
static void records_of_two_processes_are_told_apart(void **state)
{
	static struct seen theirs = {0};
	struct pem_balance balance;
	struct pem_context there = anywhere;
	struct pem_callback *later;
	struct pem_log *log;
	uint64_t ticks;

	(void)state;
	start_other();
	there.pid = (uint32_t)other;
	log = log_where(&here, NULL);
	later = call_later(&there, "number >= 4", &theirs);
	tell_other();
	raise_ticks(7);
	wait_for(later, 6);
	assert_int_equal(theirs.sum, 4 + 5 + 6 + 7 + 8 + 9);
	end_other();
	assert_int_equal(pem_log__finish(log, NULL), 0);
	assert_int_equal(read_trace(TICK, &ticks, &balance), 7);
	assert_int_equal(balance.produced, 7);
	assert_int_equal(balance.delivered, 7);
}

static void records_of_two_threads_are_told_apart(void **state)
{
	struct pem_context mine = here;
	static struct seen all = {0};
	struct pem_balance balance;
	struct pem_callback *later;
	struct pem_log *log;
	uint64_t ticks;

	(void)state;
	mine.tid = (uint32_t)gettid();
	log = log_where(&mine, NULL);
	later = call_later(&here, "number < 4", &all);
	run_thread();
	raise_ticks(5);
	wait_for(later, 8);
	assert_int_equal(pem_log__finish(log, NULL), 0);
	assert_int_equal(read_trace(TICK, &ticks, &balance), 5);
	assert_int_equal(balance.produced, 5);
	assert_int_equal(balance.delivered, 5);
}

static void synchronous_callbacks_have_threads_and_predicates_of_their_own(void **state)
{
	struct pem_context mine = anywhere;
	struct seen all = {0}, of_mine = {0}, of_both = {0};
	struct pem_statistics *st;
	struct pem_callback *cb;

	(void)state;
	mine.tid = (uint32_t)gettid();
	call_back(NULL, NULL, &all);
	call_back(&mine, NULL, &of_mine);
	/* It shares the further demand. */
	st = statistics(&mine, "number", "number == 3");
	cb = call_back(&mine, "number == 3", &of_both);
	run_thread();
	raise_ticks(TICKS);
	assert_int_equal(all.count, 20);
	assert_int_equal(of_mine.count, 10);
	assert_int_equal(of_both.sum, 3);
	assert_int_equal(value_of(st).sum, 3);
	assert_ptr_equal(cb->entry[0].demand, st->demands[0]);
	pem_callback__unregister(cb);
	raise_ticks(TICKS);
	assert_int_equal(all.count, 30);
	assert_int_equal(of_both.count, 1);
}

static void records_of_two_cpus_are_refused_with_a_sentence(void **state)
{
	struct pem_context one = here, two = here;
	struct pem_event_set *set = ticks_where(NULL);
	struct pem_error error = {""};
	static struct seen seen = {0};

	(void)state;
	one.one_cpu = two.one_cpu = 1;
	two.cpu = 1;
	call_later(&one, NULL, &seen);
	assert_null(
		pem_session__register_async_callback(session, set, &two, see, &seen, NULL, &error));
	assert_int_equal(errno, EBUSY);
	assert_non_null(strstr(error.text, "on another CPU"));
	/* Statistics and synchronous callbacks are told apart where the event happens. */
	statistics(&two, NULL, NULL);
	call_back(&two, NULL, &seen);
	pem_event_set__free(set);
}

static bool is_asleep(void)
{
	bool asleep;

	pem_session__lock(session);
	asleep = session->async->asleep;
	pem_session__unlock(session);
	return asleep;
}

/*
 * Raise a tick when the thread of callbacks sleeps. Returns whether the word by which producers
 * wake it has changed: the thread reads by the clock, too, so that it says nothing that it came.
 */
static bool tick_wakes(uint64_t number)
{
	uint32_t word;
	bool woken;

	do {
		while (!is_asleep())
			sched_yield();
		pem_session__lock(session);
		word = __atomic_load_n(&session->page->wake, __ATOMIC_SEQ_CST);
		if (word & 1)
			pem_notify_probe_tick(0, number);
		woken = __atomic_load_n(&session->page->wake, __ATOMIC_SEQ_CST) == word + 1;
		pem_session__unlock(session);
	} while (!(word & 1));
	return woken;
}

/* Statistics beside a callback make the event one of several parts. */
static void a_callback_beside_statistics_is_woken(void **state)
{
	struct pem_statistics *all = statistics(&here, "number", NULL),
			      *large = statistics(&here, "number", "number >= 5");
	static struct seen seen = {0};
	struct pem_callback *later = call_later(&here, "number == 7", &seen);

	(void)state;
	assert_true(tick_wakes(7));
	wait_for(later, 1);
	assert_false(tick_wakes(6));
	assert_true(tick_wakes(7));
	wait_for(later, 2);
	assert_int_equal(value_of(all).count, 3);
	assert_int_equal(value_of(large).sum, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_handle_has_what_it_asks_for, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(records_of_two_processes_are_told_apart, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(records_of_two_threads_are_told_apart, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			synchronous_callbacks_have_threads_and_predicates_of_their_own, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_callback_beside_statistics_is_woken, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(records_of_two_cpus_are_refused_with_a_sentence,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
