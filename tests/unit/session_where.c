// SPDX-License-Identifier: MIT
/*
 * session_where.c - handles with a predicate: what counts, is logged and called back, and who is
 * refused
 *
 * Not here: what predicates mean (predicate_text.c), changes in other processes (session_remote.c).
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "programs/types.h"

#include <errno.h>

static struct pem_session *session;
static const struct pem_context anywhere = {0};

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

static struct pem_event_set *ticks_where(const char *predicate)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};

	if (pem_event_set__where(set, predicate, &error))
		fail_msg("%s", error.text);
	return set;
}

static struct pem_statistics *statistics(const struct pem_event_set *set, struct pem_error *error)
{
	struct pem_context context = anywhere;

	context.pid = (uint32_t)getpid();
	return pem_session__register_statistics(session, set, &context, "number", error);
}

static void raise_ticks(unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		pem_notify_probe_tick(i % 2, i);
}

static struct pem_statistic value_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	return value;
}

static void a_refused_handle_holds_no_context(void **state)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_context one = anywhere, other = anywhere;
	struct pem_error error = {""};

	(void)state;
	one.pid = (uint32_t)getpid();
	other.pid = 1;
	assert_null(pem_session__register_statistics(session, set, &other, "nothing", &error));
	if (!pem_session__register_statistics(session, set, &one, "number", &error))
		fail_msg("%s", error.text);
	pem_event_set__free(set);
}

static void a_statistic_holds_what_passes_only(void **state)
{
	struct pem_event_set *set = ticks_where("number >= 10 && number < 20 && who == 1");
	struct pem_statistics *st = statistics(set, NULL);
	struct pem_statistic value = {.size = sizeof(value)};

	(void)state;
	pem_event_set__free(set); /* handles copy what they need */
	pem_statistics__enable(st);
	raise_ticks(30);
	value = value_of(st);
	assert_int_equal(value.count, 5);
	assert_int_equal(value.min, 11);
	assert_int_equal(value.max, 19);
	assert_int_equal(value.sum, 75);
}

static void a_log_holds_what_passes_only_and_balances(void **state)
{
	struct pem_event_set *set = ticks_where("number > 89");
	struct pem_error error = {""};
	struct pem_context context = anywhere;
	struct pem_balance balance;
	struct pem_log *log;
	uint64_t ticks;

	(void)state;
	context.pid = (uint32_t)getpid();
	log = pem_session__register_log(session, set, &context, trace_path, &error);
	if (!log)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_log__enable(log), 0);
	raise_ticks(100);
	assert_int_equal(pem_log__finish(log, NULL), 0);
	assert_int_equal(read_trace("APP::Probe::Tick", &ticks, &balance), 10);
	assert_int_equal(ticks, 10);
	assert_int_equal(balance.produced, 10);
	assert_int_equal(balance.delivered, 10);
}

static void count_call(const struct pem_record *record, void *arg)
{
	(void)record;
	++*(unsigned *)arg;
}

static void a_callback_is_called_for_what_passes_only(void **state)
{
	struct pem_event_set *set = ticks_where("number == 3 || number == 4");
	struct pem_callback *callback;
	unsigned calls = 0;

	(void)state;
	callback = pem_session__register_callback(session, set, NULL, count_call, &calls, NULL);
	assert_non_null(callback);
	pem_event_set__free(set);
	pem_callback__enable(callback);
	raise_ticks(10);
	assert_int_equal(calls, 2);
	pem_callback__unregister(callback);
}

static void assert_predicate(const char *path, const char *text)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(path, &error);
	const struct pem_trace_info *info;

	if (!trace)
		fail_msg("%s", error.text);
	info = pem_trace__info(trace);
	assert_int_equal(info->predicate_count, text != NULL);
	assert_int_equal(info->predicates_more, 0);
	if (text) {
		assert_string_equal(info->predicates[0].event, "APP::Probe::Tick");
		assert_string_equal(info->predicates[0].text, text);
	}
	pem_trace__close(trace);
}

static struct pem_log *log_of(const struct pem_event_set *set)
{
	struct pem_context context = anywhere;
	struct pem_error error = {""};
	struct pem_log *log;

	context.pid = (uint32_t)getpid();
	log = pem_session__register_log(session, set, &context, trace_path, &error);
	if (!log)
		fail_msg("%s", error.text);
	assert_int_equal(pem_log__enable(log), 0);
	return log;
}

static void a_trace_and_a_snapshot_say_what_passed(void **state)
{
	const struct pem_session_options options = {.size = sizeof(options), .overwrite = 1};
	struct pem_error error = {""};
	struct pem_event_set *set;
	struct pem_log *log;
	char path[128];

	(void)state;
	pem_session__close(session);
	session = session_open(&options);
	set = ticks_where("number >\t89"); /* no tab gets into a line of .pem/run */
	log = log_of(set);
	pem_event_set__free(set);
	assert_predicate(trace_path, "number > 89"); /* also of a recorder that is killed */
	raise_ticks(100);
	snprintf(path, sizeof(path), "%s/snapshot", folder);
	assert_int_equal(pem_session__snapshot(session, path, NULL, &error), 0);
	assert_predicate(path, "number > 89");
	assert_int_equal(pem_log__finish(log, NULL), 0);
	assert_predicate(trace_path, "number > 89");
}

static void a_long_predicate_is_cut_in_the_trace_and_says_so(void **state)
{
	char text[1000], cut[384];
	struct pem_event_set *set;

	(void)state;
	memset(text, ' ', sizeof(text));
	memcpy(text, "number > 89", 11);
	strcpy(text + 900, "&& who == 1");
	set = ticks_where(text);
	pem_log__finish(log_of(set), NULL);
	pem_event_set__free(set);
	memcpy(cut, text, sizeof(cut));
	strcpy(cut + sizeof(cut) - 4, "...");
	assert_predicate(trace_path, cut);
}

static void a_trace_without_predicates_says_nothing_of_any(void **state)
{
	struct pem_event_set *set = ticks_where(NULL);

	(void)state;
	pem_log__finish(log_of(set), NULL);
	pem_event_set__free(set);
	assert_predicate(trace_path, NULL);
}

static void predicates_that_test_the_same_are_one(void **state)
{
	struct pem_event_set *first = ticks_where("number > 3"), *same = ticks_where("number >= 4"),
			     *other = ticks_where("number > 4");
	struct pem_statistics *st = statistics(first, NULL), *second;
	struct pem_callback *callback;
	unsigned calls = 0;

	(void)state;
	callback = pem_session__register_callback(session, same, NULL, count_call, &calls, NULL);
	assert_non_null(callback);
	assert_ptr_equal(callback->entry[0].demand, st->demands[0]);
	pem_callback__unregister(callback);
	second = statistics(other, NULL);
	assert_non_null(second);
	assert_ptr_not_equal(second->demands[0], st->demands[0]);
	pem_statistics__unregister(st);
	pem_statistics__enable(second);
	raise_ticks(10);
	assert_int_equal(value_of(second).count, 5);
	pem_event_set__free(first);
	pem_event_set__free(same);
	pem_event_set__free(other);
}

static void two_sessions_test_an_event_each_by_its_own(void **state)
{
	struct pem_event_set *set = ticks_where("number < 3");
	struct pem_statistics *mine = statistics(set, NULL), *theirs;
	struct pem_session *first = session;
	struct pem_event_set *other_set;

	(void)state;
	pem_event_set__free(set);
	session = session_open(NULL);
	other_set = ticks_where("number & 1 == 1");
	theirs = statistics(other_set, NULL);
	pem_event_set__free(other_set);
	pem_statistics__enable(mine);
	pem_statistics__enable(theirs);
	raise_ticks(10);
	assert_int_equal(value_of(theirs).sum, 1 + 3 + 5 + 7 + 9);
	pem_session__close(session);
	session = first;
	assert_int_equal(value_of(mine).sum, 0 + 1 + 2);
}

static void a_set_names_its_event_that_lacks_the_field_and_stays(void **state)
{
	struct pem_event_set *set = events(session, "APP::Types::*");
	struct pem_error error = {""};

	(void)state;
	assert_int_equal(pem_event_set__where(set, "u64 > 1", &error), -EINVAL);
	assert_non_null(strstr(error.text, "APP::Types::"));
	assert_non_null(strstr(error.text, "has no field 'u64'"));
	pem_event_set__free(set);
	set = ticks_where("number > 5");
	assert_int_equal(pem_event_set__where(set, "number > ", &error), -EINVAL);
	pem_statistics__enable(statistics(set, NULL));
	pem_event_set__free(set);
	raise_ticks(10);
	assert_int_equal(value_of(session->statistics->handles).count, 4);
}

static void counters_have_nothing_to_test(void **state)
{
	struct pem_event_set *set = events(session, "HW::*");
	struct pem_error error = {""};

	(void)state;
	assert_int_equal(pem_event_set__where(set, "value > 1", &error), -ENOTSUP);
	assert_non_null(strstr(error.text, "without a predicate"));
	pem_event_set__free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_refused_handle_holds_no_context, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_statistic_holds_what_passes_only, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_log_holds_what_passes_only_and_balances, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_trace_and_a_snapshot_say_what_passed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_long_predicate_is_cut_in_the_trace_and_says_so,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_trace_without_predicates_says_nothing_of_any,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_callback_is_called_for_what_passes_only, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(predicates_that_test_the_same_are_one, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(two_sessions_test_an_event_each_by_its_own, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_set_names_its_event_that_lacks_the_field_and_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counters_have_nothing_to_test, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
