// SPDX-License-Identifier: MIT
/*
 * session_several_level.c - a log that takes events by their level, and other handles on an event
 * that the log's set did not know
 *
 * Not here: logs that name the event (session_several_records.c).
 */
#include "several_fixture.h"

/* The session learns of the event after the log was registered, as of a library loaded later. */
static struct pem_log *log_by_level_in(const struct pem_context *context)
{
	struct pem_log *log;

	pem_detach_probe();
	log = log_to_trace(session, "APP", context);
	assert_null(pem_model__by_name(session->model, TICK));
	pem_attach_probe();
	return log;
}

static struct pem_log *log_by_level(void)
{
	return log_by_level_in(NULL);
}

static void check_log(struct pem_log *log, uint64_t ticks)
{
	struct pem_balance balance;
	uint64_t found;

	assert_int_equal(pem_log__finish(log, NULL), 0);
	read_trace(TICK, &found, &balance);
	assert_int_equal(found, ticks);
	assert_int_equal(balance.produced, balance.delivered);
	assert_int_equal(balance.discarded, 0);
}

/* This process is the session's, and raises ticks that nobody but the log asks for. */
static struct pem_log *log_first_ticks(void)
{
	struct pem_log *log = log_by_level();

	assert_int_equal(pem_session__join_self(session, NULL), 0);
	raise_ticks(TICKS);
	return log;
}

static void a_statistic_hides_nothing_from_the_log(void **state)
{
	struct pem_log *log = log_first_ticks();
	struct pem_statistics *large = statistics(&here, "number", "number >= 5"), *all;

	(void)state;
	raise_ticks(TICKS);
	assert_int_equal(value_of(large).count, 5);
	/* It may share the log's demand. */
	all = statistics(NULL, "number", NULL);
	raise_ticks(TICKS);
	assert_int_equal(value_of(all).count, 10);
	pem_statistics__unregister(all);
	pem_statistics__unregister(large);
	raise_ticks(TICKS);
	check_log(log, 4 * TICKS);
}

static void callbacks_hide_nothing_from_the_log(void **state)
{
	struct pem_log *log = log_first_ticks();
	static struct seen odd = {0}, small = {0};
	struct pem_callback *cb, *later;

	(void)state;
	cb = call_back(NULL, "who == 1", &odd);
	later = call_later(NULL, "number < 3", &small);
	raise_ticks(TICKS);
	wait_for(later, 3);
	assert_int_equal(odd.count, 5);
	assert_int_equal(small.sum, 3);
	pem_callback__unregister(later);
	pem_callback__unregister(cb);
	raise_ticks(TICKS);
	check_log(log, 3 * TICKS);
}

/* Records that came before the log are not the log's, and those of a pause are not, either. */
static void what_callbacks_alone_wanted_is_not_the_logs(void **state)
{
	static struct seen seen = {0};
	struct pem_callback *later;
	struct pem_log *log;

	(void)state;
	log = log_first_ticks();
	later = call_later(&here, NULL, &seen);
	raise_ticks(TICKS);
	pem_log__disable(log);
	raise_ticks(TICKS);
	wait_for(later, 2 * TICKS);
	assert_int_equal(pem_log__enable(log), 0);
	raise_ticks(TICKS);
	wait_for(later, 3 * TICKS);
	check_log(log, 3 * TICKS);
}

static void another_process_logs_what_it_did_before(void **state)
{
	struct pem_log *log = log_by_level();
	struct pem_statistics *large;

	(void)state;
	start_other();
	tell_other();
	large = statistics(NULL, "number", "number >= 5");
	tell_other();
	assert_int_equal(value_of(large).count, 5);
	end_other();
	check_log(log, 2 * TICKS);
}

/* A set that is older than the event. */
static void a_handle_that_was_first_hides_nothing_either(void **state)
{
	struct pem_event_set *set;
	struct pem_error error = {""};
	struct pem_statistics *large;
	struct pem_log *log;

	(void)state;
	pem_detach_probe();
	set = events(session, "APP");
	pem_attach_probe();
	large = statistics(&here, "number", "number >= 5");
	log = pem_session__register_log(session, set, NULL, trace_path, &error);
	if (!log)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_log__enable(log), 0);
	raise_ticks(TICKS);
	assert_int_equal(value_of(large).count, 5);
	check_log(log, TICKS);
}

/* A log of one thread, alone and beside a statistic. */
static void the_logs_context_holds_for_events_it_did_not_know(void **state)
{
	struct pem_context mine = {.tid = (uint32_t)gettid()};
	struct pem_log *log = log_by_level_in(&mine);
	struct pem_statistics *all;

	(void)state;
	assert_int_equal(pem_session__join_self(session, NULL), 0);
	run_thread();
	raise_ticks(3);
	all = statistics(&here, NULL, NULL);
	run_thread();
	raise_ticks(4);
	assert_int_equal(value_of(all).count, TICKS + 4);
	check_log(log, 7);
}

static void a_log_that_is_disabled_stays_so(void **state)
{
	struct pem_log *log = log_first_ticks();
	struct pem_statistics *one, *two;
	size_t count = log->count;

	(void)state;
	pem_log__disable(log);
	one = statistics(&here, "number", NULL);
	two = statistics(&here, "number", "number == 1");
	assert_int_equal(log->count, count + 1);
	raise_ticks(TICKS);
	assert_int_equal(value_of(one).count, TICKS);
	assert_int_equal(value_of(two).count, 1);
	assert_int_equal(pem_log__enable(log), 0);
	raise_ticks(TICKS);
	check_log(log, 2 * TICKS);
}

/* It takes no event of the kernel by its level, and no event once it is finished. */
static void what_the_log_does_not_take_is_not_bound_to_it(void **state)
{
	struct pem_log *log = log_by_level();
	struct pem_event_set *faults = events(session, "OS::Mem::PageFault");
	size_t count = log->count;

	(void)state;
	assert_non_null(pem_session__register_statistics(session, faults, &here, NULL, NULL));
	pem_event_set__free(faults);
	assert_int_equal(log->count, count);
	check_log(log, 0);
	statistics(&here, NULL, "number == 1");
	assert_int_equal(log->count, count);
}

/* --- the account, in any order --- */

#define HANDLES 6u
#define STEPS 300u

static const struct kind {
	const char *predicate;
	bool is_later;
} kinds[] = {{NULL, true}, {"number < 3", true}, {"who == 1", false}, {NULL, false}};

struct handle {
	struct pem_statistics *st;
	struct pem_callback *later;
	struct seen seen;
};

static void change(struct handle *h, unsigned what)
{
	const struct kind *kind = &kinds[what % PEM_ARRAY_SIZE(kinds)];

	if (h->st || h->later) {
		pem_statistics__unregister(h->st);
		if (h->later)
			pem_callback__unregister(h->later);
		h->st = NULL;
		h->later = NULL;
	} else if (kind->is_later) {
		h->later = call_later(what & 8 ? &here : NULL, kind->predicate, &h->seen);
	} else {
		h->st = statistics(what & 8 ? &here : NULL, "number", kind->predicate);
	}
}

/* Each record in this process's pool is the log's, or it was for callbacks alone. */
static void check_producer(uint64_t delivered, uint64_t lost)
{
	const struct pem_event *event = pem_model__by_name(session->model, TICK);
	struct pem_producer *p = session->processes->producers;
	const struct pem_event_entry *entry;

	assert_null(p->next);
	entry = pem_producer__entry_of(p, event);
	assert_non_null(entry);
	assert_int_equal(p->delivered[entry->event_index], delivered);
	assert_int_equal(pem_producer__produced(p, entry->event_index),
			 delivered + lost + p->callback_only[entry->event_index]);
}

/* Whoever comes and goes beside it, the log has what was raised while it was enabled. */
static void handles_come_and_go_beside_the_log(void **state)
{
	struct pem_log *log = log_first_ticks();
	static struct handle handles[HANDLES];
	uint64_t logged = TICKS, raised = TICKS;
	unsigned seed = 1, step;
	bool enabled = true;

	(void)state;
	for (step = 0; step < STEPS; step++) {
		change(&handles[(unsigned)rand_r(&seed) % HANDLES], (unsigned)rand_r(&seed) >> 8);
		if (rand_r(&seed) % 8 == 0) {
			enabled = !enabled;
			if (enabled)
				assert_int_equal(pem_log__enable(log), 0);
			else
				pem_log__disable(log);
		}
		if (rand_r(&seed) % 8 == 0) {
			pem_session__lock(session);
			pem_session__drain_producer(session, session->processes->producers, false);
			pem_session__unlock(session);
		}
		raise_ticks(TICKS);
		logged += enabled ? TICKS : 0;
		raised += TICKS;
	}
	check_log(log, logged);
	check_producer(logged, 0);
	assert_true(logged < raised);
}

/* In a pool that overwrites, what is not in the trace was overwritten or for callbacks alone. */
static void what_was_overwritten_is_counted_beside_callbacks(void **state)
{
	struct pem_session_options options = {
		.size = sizeof(options), .overwrite = 1, .chunk_bytes = 4096, .chunk_count = 16};
	static struct seen small; /* callbacks go on until the session is closed */
	struct pem_balance balance;
	struct pem_log *log;
	uint64_t found;
	unsigned i;

	(void)state;
	pem_session__close(session);
	session = session_open(&options);
	log = log_first_ticks();
	call_later(&here, "number < 3", &small);
	for (i = 0; i < 1000; i++)
		raise_ticks(TICKS);
	pem_log__disable(log);
	for (i = 0; i < 10; i++)
		raise_ticks(TICKS);
	assert_int_equal(pem_log__finish(log, NULL), 0);
	read_trace(TICK, &found, &balance);
	assert_int_equal(balance.delivered, found);
	assert_int_equal(balance.produced, 1001 * TICKS);
	assert_int_equal(balance.produced, found + balance.overwritten);
	assert_int_equal(balance.discarded, 0);
	assert_true(balance.overwritten > 0);
	check_producer(found, balance.overwritten);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_statistic_hides_nothing_from_the_log),
		TEST(callbacks_hide_nothing_from_the_log),
		TEST(what_callbacks_alone_wanted_is_not_the_logs),
		TEST(another_process_logs_what_it_did_before),
		TEST(a_handle_that_was_first_hides_nothing_either),
		TEST(the_logs_context_holds_for_events_it_did_not_know),
		TEST(a_log_that_is_disabled_stays_so),
		TEST(what_the_log_does_not_take_is_not_bound_to_it),
		TEST(handles_come_and_go_beside_the_log),
		TEST(what_was_overwritten_is_counted_beside_callbacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
