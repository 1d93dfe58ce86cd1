// SPDX-License-Identifier: MIT
/*
 * session_several.c - several statistics of one event in one session, each with its own attribute,
 * predicate and context
 *
 * Not here: logs and callbacks (session_several_records.c), events of the kernel
 * (kernel_several.c).
 */
#include "several_fixture.h"

static void handles_that_ask_for_the_same_share_a_demand(void **state)
{
	struct pem_statistics *all = statistics(&here, NULL, NULL);
	static struct seen seen = {0};

	(void)state;
	call_back(&here, NULL, &seen);
	call_later(&here, NULL, &seen);
	log_where(&here, NULL);
	assert_null(all->demands[0]->next);
	assert_int_equal(all->demands[0]->bound, 4);
	raise_ticks(1);
	assert_int_equal(value_of(all).count, 1);
}

static void a_process_that_comes_later_learns_all_rules(void **state)
{
	struct pem_statistics *all = statistics(NULL, NULL, NULL),
			      *large = statistics(NULL, "number", "number >= 5");
	static struct seen small = {0};
	struct pem_callback *later = call_later(NULL, "number < 3", &small);
	struct pem_log *log = log_where(NULL, "number > 6");
	struct pem_balance balance;
	uint64_t ticks;

	(void)state;
	start_other();
	tell_other();
	assert_int_equal(value_of(all).count, 10);
	assert_int_equal(value_of(large).sum, 35);
	wait_for(later, 3);
	end_other();
	/* What it counted is kept when it is gone. */
	pem_session__lock(session);
	while (session->processes->producers)
		pem_session__update_processes(session, 0);
	pem_session__unlock(session);
	assert_int_equal(value_of(all).count, 10);
	assert_int_equal(value_of(large).sum, 35);
	assert_int_equal(pem_log__finish(log, NULL), 0);
	assert_int_equal(read_trace(TICK, &ticks, &balance), 3);
	assert_int_equal(balance.produced, 3);
	assert_int_equal(balance.delivered, 3);
}

static void a_process_that_is_there_learns_of_each_change(void **state)
{
	struct pem_statistics *all = statistics(NULL, NULL, NULL), *large, *none;

	(void)state;
	start_other();
	tell_other();
	large = statistics(NULL, "number", "number >= 5");
	tell_other();
	assert_int_equal(value_of(all).count, 20);
	assert_int_equal(value_of(large).sum, 35);
	/* One of another process does not matter there. */
	none = statistics(&here, NULL, "number == 1");
	tell_other();
	assert_int_equal(value_of(none).count, 0);
	assert_int_equal(value_of(large).sum, 70);
	pem_statistics__reset(large);
	tell_other();
	assert_int_equal(value_of(large).sum, 35);
	pem_statistics__unregister(all);
	tell_other();
	assert_int_equal(value_of(large).sum, 70);
	/* Of the same cell, but nothing of what was in it. */
	pem_statistics__unregister(large);
	large = statistics(NULL, "who", "number == 1");
	all = statistics(NULL, NULL, NULL);
	tell_other();
	assert_int_equal(value_of(large).sum, 1);
	assert_int_equal(value_of(all).count, 10);
	end_other();
}

/* --- threads --- */

/* By thread, of those that are gone together, and of another. */
static void note_part(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
		      void *arg)
{
	uint64_t *count = arg;

	count[owner->tid != 0] += part->count;
}

static void what_ended_threads_counted_stays(void **state)
{
	struct pem_statistics *all = statistics(&here, "number", NULL),
			      *large = statistics(&here, "number", "number >= 5"),
			      *small = statistics(&here, "number", "number < 2");
	uint64_t count[2] = {0, 0};
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++)
		run_thread(); /* in the lane of the one before */
	assert_int_equal(value_of(all).count, 50);
	assert_int_equal(value_of(large).count, 25);
	assert_int_equal(value_of(large).sum, 5 * 35);
	assert_int_equal(value_of(large).max, 9);
	assert_int_equal(value_of(small).sum, 5);
	/* The last one's lane is still its own. */
	assert_int_equal(pem_statistics__each(large, 0, note_part, count), 2);
	assert_int_equal(count[0], 4 * 5);
	assert_int_equal(count[1], 5);
}

/* --- what each keeps --- */

static void each_statistic_keeps_its_own_distribution(void **state)
{
	struct pem_event_set *set = ticks_where(NULL);
	struct pem_statistics *all, *large;
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_error error = {""};

	(void)state;
	all = pem_session__register_statistics(session, set, &here, "number", &error);
	assert_non_null(all);
	assert_int_equal(pem_statistics__keep(all, PEM_STATISTIC_VARIANCE), 0);
	assert_int_equal(pem_statistics__enable(all), 0);
	pem_event_set__free(set);
	set = ticks_where("number >= 8");
	large = pem_session__register_statistics(session, set, &here, "number", &error);
	assert_non_null(large);
	assert_int_equal(
		pem_statistics__keep(large, PEM_STATISTIC_HISTOGRAM | PEM_STATISTIC_VARIANCE), 0);
	assert_int_equal(pem_statistics__enable(large), 0);
	pem_event_set__free(set);
	raise_ticks(TICKS);
	value = value_of(all);
	assert_true(value.variance > 8.24 && value.variance < 8.26);
	value = value_of(large);
	assert_true(value.variance > 0.24 && value.variance < 0.26);
	assert_int_equal(pem_statistics__histogram(large, 0, &histogram), 0);
	assert_int_equal(histogram.bucket[4], 2); /* 8 to 15 */
}

/* --- limits --- */

static void too_many_are_refused_with_a_sentence(void **state)
{
	struct pem_event_set *set = ticks_where(NULL);
	struct pem_statistics *st[1 + PEM_FURTHER_CELLS];
	struct pem_error error = {""};
	unsigned i;

	(void)state;
	for (i = 0; i <= PEM_FURTHER_CELLS; i++)
		st[i] = statistics(&here, "number", NULL);
	assert_null(pem_session__register_statistics(session, set, &here, "number", &error));
	assert_int_equal(errno, ENOSPC);
	assert_non_null(strstr(error.text, "open a second session for APP::Probe::Tick"));
	raise_ticks(TICKS);
	for (i = 0; i <= PEM_FURTHER_CELLS; i++)
		assert_int_equal(value_of(st[i]).sum, 45);
	pem_statistics__unregister(st[40]);
	st[40] = pem_session__register_statistics(session, set, &here, "who", &error);
	assert_non_null(st[40]);
	assert_int_equal(pem_statistics__enable(st[40]), 0);
	raise_ticks(TICKS);
	assert_int_equal(value_of(st[40]).sum, 5);
	assert_int_equal(value_of(st[41]).sum, 90);
	/* What an event gives back another may have. */
	for (i = 0; i <= PEM_FURTHER_CELLS; i++)
		pem_statistics__unregister(st[i]);
	pem_event_set__free(set);
	set = events(session, "APP::Types::Floats");
	for (i = 0; i <= PEM_FURTHER_CELLS; i++)
		assert_non_null(
			pem_session__register_statistics(session, set, &here, NULL, &error));
	pem_event_set__free(set);
}

/* --- any order --- */

#define HANDLES 12u
#define STEPS 600u

static const struct kind {
	const char *attribute, *predicate;
	unsigned from, step; /* of numbers 0 to 9, what passes: from, from + step, ... */
} kinds[] = {{"number", NULL, 0, 1},
	     {NULL, "number >= 5", 5, 1},
	     {"number", "who == 1", 1, 2},
	     {"who", "number == 7", 7, 10},
	     {"number", "who == 0", 0, 2}};

struct model {
	struct pem_statistics *st;
	const struct kind *kind;
	bool enabled;
	uint64_t count, sum;
};

static void model_raise(struct model *m)
{
	unsigned n;

	for (n = m->kind->from; m->enabled && n < TICKS; n += m->kind->step) {
		m->count++;
		if (m->kind->attribute)
			m->sum += strcmp(m->kind->attribute, "who") ? n : n % 2;
	}
}

static void change(struct model *m, unsigned what)
{
	if (!m->st) {
		m->kind = &kinds[what % PEM_ARRAY_SIZE(kinds)];
		m->st = statistics(what & 8 ? &here : NULL, m->kind->attribute, m->kind->predicate);
		m->enabled = true;
		m->count = m->sum = 0;
	} else if (what % 4 == 0) {
		pem_statistics__unregister(m->st);
		m->st = NULL;
	} else if (what % 4 == 1) {
		pem_statistics__reset(m->st);
		m->count = m->sum = 0;
	} else if (what % 4 == 2) {
		pem_statistics__disable(m->st);
		m->enabled = false;
	} else {
		assert_int_equal(pem_statistics__enable(m->st), 0);
		m->enabled = true;
	}
}

static void handles_come_and_go_in_any_order(void **state)
{
	struct model model[HANDLES] = {{0}};
	struct pem_statistic value = {.size = sizeof(value)};
	unsigned seed = 1, step, i;
	struct seen seen = {0};
	uint64_t calls = 0;

	(void)state;
	call_back(NULL, "number == 2", &seen);
	for (step = 0; step < STEPS; step++) {
		change(&model[(unsigned)rand_r(&seed) % HANDLES], (unsigned)rand_r(&seed) >> 8);
		raise_ticks(TICKS);
		calls++;
		for (i = 0; i < HANDLES; i++) {
			if (!model[i].st)
				continue;
			model_raise(&model[i]);
			value = value_of(model[i].st);
			assert_int_equal(value.count, model[i].count);
			assert_int_equal(value.sum, model[i].sum);
		}
	}
	assert_int_equal(seen.count, calls);
}

/* --- while threads raise events --- */

static uint32_t stop;

static void *raise_until_stopped(void *arg)
{
	uint64_t *raised = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		pem_notify_probe_tick(1, *raised % 10);
		++*raised;
	}
	return NULL;
}

/* Others come and go: of those that stay no event is lost, and none is counted twice. */
static void those_that_stay_miss_nothing(void **state)
{
	struct pem_statistics *all, *large, *st[3];
	uint64_t raised[2] = {0, 0}, large_count = 0, i;
	struct pem_statistic value = {.size = sizeof(value)};
	pthread_t thread[2];
	unsigned round;

	(void)state;
	all = statistics(&here, NULL, NULL);
	large = statistics(&here, "number", "number >= 5");
	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, raise_until_stopped, &raised[i]),
				 0);
	for (round = 0; round < 60; round++) {
		st[0] = statistics(&here, "who", "number == 1");
		st[1] = statistics(NULL, "number", "number == 1");
		st[2] = statistics(&here, "number", NULL);
		sched_yield();
		value = value_of(st[1]);
		/* A thread may be in the middle of it: sum and count may be one apart. */
		assert_true(!value.count || (value.min == 1 && value.max == 1));
		pem_statistics__unregister(st[round % 3]);
		pem_statistics__unregister(st[(round + 1) % 3]);
		pem_statistics__unregister(st[(round + 2) % 3]);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < raised[0]; i++)
		large_count += i % 10 >= 5;
	for (i = 0; i < raised[1]; i++)
		large_count += i % 10 >= 5;
	assert_int_equal(value_of(all).count, raised[0] + raised[1]);
	assert_int_equal(value_of(large).count, large_count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(handles_that_ask_for_the_same_share_a_demand,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_process_that_comes_later_learns_all_rules, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_process_that_is_there_learns_of_each_change,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_ended_threads_counted_stays, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(each_statistic_keeps_its_own_distribution, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(too_many_are_refused_with_a_sentence, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(handles_come_and_go_in_any_order, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(those_that_stay_miss_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
