// SPDX-License-Identifier: MIT
/*
 * sized_structs.c - structs that callers allocate: older, newer and unset sizes (pem/sized.h),
 * contexts of zeroes
 */
#include "session_fixture.h"

#include "programs/probe.h"
#include "programs/types.h"

#include <pem/export.h>

#include <errno.h>
#include <sched.h>

static struct pem_session *session;

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

/* --- the rules --- */

struct small {
	size_t size;
	uint32_t a, b;
};

struct large {
	struct small small;
	uint64_t more[2];
};

/*
 * The same address, of which the compiler does not know how much is there: sizes say so at run
 * time.
 */
static void *hide(const void *address)
{
	__asm__("" : "+r"(address));
	return (void *)(uintptr_t)address;
}

static void a_shorter_struct_has_defaults(void **state)
{
	const struct large given = {{offsetof(struct small, b), 1, 2}, {3, 4}};
	struct small small = {9, 9, 9};

	(void)state;
	assert_int_equal(pem_sized__read(&small, sizeof(small), hide(&given), sizeof(small)), 0);
	assert_int_equal(small.a, 1);
	assert_int_equal(small.b, 0);
	assert_int_equal(small.size, sizeof(small));
}

static void a_longer_struct_ends_in_zeroes(void **state)
{
	struct large given = {{sizeof(given), 1, 2}, {0}};
	struct small small = {9, 9, 9};
	uint8_t *last = (uint8_t *)&given + sizeof(given) - 1;

	(void)state;
	assert_int_equal(pem_sized__read(&small, sizeof(small), hide(&given), sizeof(small)), 0);
	assert_int_equal(small.b, 2);
	assert_int_equal(small.size, sizeof(small));
	small.b = 9;
	*last = 1;
	assert_int_equal(pem_sized__read(&small, sizeof(small), hide(&given), sizeof(small)),
			 -E2BIG);
	assert_int_equal(small.b, 9);
	*last = 0;
	given.more[0] = 1;
	assert_int_equal(pem_sized__read(&small, sizeof(small), hide(&given), sizeof(small)),
			 -E2BIG);
}

static void no_size_is_the_first_version_s(void **state)
{
	const struct large given = {{0, 1, 2}, {3, 4}};
	struct large copy = {{0}, {0}};

	(void)state;
	assert_int_equal(pem_sized__read(&copy, sizeof(copy), hide(&given), sizeof(given.small)),
			 0);
	assert_int_equal(copy.small.size, sizeof(copy));
	assert_int_equal(copy.small.b, 2);
	assert_int_equal(copy.more[0], 0);
}

static void impossible_sizes_are_refused(void **state)
{
	struct large given = {{sizeof(size_t) - 1, 1, 2}, {0}};
	struct small small;

	(void)state;
	assert_int_equal(pem_sized__read(&small, sizeof(small), hide(&given), sizeof(small)),
			 -EINVAL);
	given.small.size = PEM_SIZED_MAX + 1;
	assert_int_equal(pem_sized__read(&small, sizeof(small), hide(&given), sizeof(small)),
			 -E2BIG);
	assert_int_equal(pem_sized__check(hide(&given)), -EINVAL);
	given.small.size = PEM_SIZED_MAX;
	assert_int_equal(pem_sized__check(hide(&given)), 0);
	given.small.size = 0;
	assert_int_equal(pem_sized__check(hide(&given)), -EINVAL);
	given.small.size = sizeof(size_t) - 1;
	assert_int_equal(pem_sized__check(hide(&given)), -EINVAL);
	given.small.size = sizeof(size_t) + 1;
	assert_int_equal(pem_sized__check(hide(&given)), -EINVAL);
	given.small.size = sizeof(size_t);
	assert_int_equal(pem_sized__check(hide(&given)), 0);
}

static void elements_are_as_far_apart_as_the_first_says(void **state)
{
	struct large room[2] = {{.small.size = sizeof(room[0])}, {.more = {7, 7}}};
	struct small shorter[2] = {{.size = sizeof(shorter[0])}};
	const struct small one = {0, 5, 6};
	const struct large more = {{0, 1, 2}, {3, 4}};

	(void)state;
	pem_sized__write(hide(room), 1, &one, sizeof(one));
	assert_int_equal(room[1].small.size, sizeof(room[1]));
	assert_int_equal(room[1].small.b, 6);
	assert_int_equal(room[1].more[0], 0);
	assert_int_equal(room[1].more[1], 0);
	assert_int_equal(room[0].small.a, 0);
	pem_sized__write(hide(shorter), 0, &more, sizeof(more));
	assert_int_equal(shorter[0].b, 2);
	assert_int_equal(shorter[0].size, sizeof(shorter[0]));
	assert_int_equal(shorter[1].size, 0);
}

/* --- what the library is given --- */

/* A struct as a later version may have it. */
#define LATER(type)                                                                                \
	struct {                                                                                   \
		struct type now;                                                                   \
		uint64_t more;                                                                     \
	}

static void refused(const void *handle, const struct pem_error *error)
{
	assert_null(handle);
	assert_int_equal(errno, E2BIG);
	assert_non_null(strstr(error->text, "does not know"));
}

static void on_record(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
}

static void contexts_of_a_later_version(void **state)
{
	LATER(pem_context) context = {{.size = sizeof(context)}, 1};
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error;
	struct pem_log *log;

	(void)state;
	refused(pem_session__register_statistics(session, set, &context.now, NULL, &error), &error);
	refused(pem_session__register_callback(session, set, &context.now, on_record, NULL, &error),
		&error);
	refused(pem_session__register_async_callback(session, set, &context.now, on_record, NULL,
						     NULL, &error),
		&error);
	refused(pem_session__register_log(session, set, &context.now, trace_path, &error), &error);
	assert_int_equal(pem_session__attach(session, &context.now, &error), -E2BIG);
	context.more = 0;
	log = pem_session__register_log(session, set, &context.now, trace_path, &error);
	assert_non_null(log);
	pem_event_set__free(set);
}

static void a_size_that_was_never_set(void **state)
{
	struct pem_session_options options;
	struct pem_error error = {""};

	(void)state;
	memset(&options, 0xaa, sizeof(options));
	assert_null(pem_session__open(&options, &error));
	assert_int_equal(errno, E2BIG);
	assert_non_null(strstr(error.text, "more than any: it was not initialized"));
	assert_non_null(strstr(error.text, "sizeof(struct pem_session_options)"));
}

static void options_of_a_later_version(void **state)
{
	LATER(pem_session_options) open = {{.size = sizeof(open)}, 1};
	LATER(pem_async_options) async = {{.size = sizeof(async)}, 1};
	LATER(pem_run_options) run = {{.size = sizeof(run)}, 1};
	LATER(pem_recorder) recorder = {{.size = sizeof(recorder)}, 1};
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	char *const command[] = {"true", NULL};
	struct pem_error error;

	(void)state;
	refused(pem_session__open(&open.now, &error), &error);
	refused(pem_session__register_async_callback(session, set, NULL, on_record, NULL,
						     &async.now, &error),
		&error);
	assert_int_equal(pem_session__run(session, command, &run.now, &error), -E2BIG);
	assert_int_equal(pem_run__exec(command, &run.now, &error), -E2BIG);
	assert_int_equal(pem_recorder__snapshot(&recorder.now, trace_path, NULL, 0, &error),
			 -E2BIG);
	open.more = 0;
	pem_session__close(session_open(&open.now));
	pem_event_set__free(set);
}

static void a_runner_without_a_command_is_refused(void **state)
{
	struct pem_run_options run = {.size = sizeof(run), .runner_words = 2};
	char *const command[] = {"env", "-i", NULL}, *const whole[] = {"env", "-i", "true", NULL};
	struct pem_error error;
	int status;

	(void)state;
	assert_int_equal(pem_session__run(session, command, &run, &error), -EINVAL);
	assert_string_equal(error.text, "no command follows its runner's 2 words");
	assert_true(pem_session__run(session, whole, &run, &error) > 0);
	while (!pem_session__poll(session, 100, &status))
		;
	run.runner_words = UINT32_MAX;
	assert_int_equal(pem_session__run(session, whole, &run, &error), -EINVAL);
}

static void options_of_an_earlier_version(void **state)
{
	struct pem_session_options options = {.size = offsetof(struct pem_session_options, log),
					      .chunk_count = 2,
					      .log = (void *)1};
	struct pem_session *other = session_open(&options);

	(void)state;
	assert_int_equal(other->options.chunk_count, 2);
	assert_null(other->options.log);
	pem_session__close(other);
}

static void options_of_exporters(void **state)
{
	LATER(pem_export_options) options = {{.size = sizeof(options), .title = "t"}, 1};
	struct pem_export_options copy;
	struct pem_error error = {""};

	(void)state;
	assert_int_equal(pem_export__options(&copy, &options.now, &error), -E2BIG);
	assert_true(*error.text);
	assert_null(copy.title);
	options.more = 0;
	assert_int_equal(pem_export__options(&copy, &options.now, &error), 0);
	assert_string_equal(copy.title, "t");
	assert_int_equal(pem_export__options(&copy, NULL, &error), 0);
	assert_null(copy.title);
}

/* --- what the library fills in --- */

static void room_of_no_size(void **state)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error;
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, NULL, "number", &error);
	struct pem_callback *cb = pem_session__register_async_callback(
		session, set, NULL, on_record, NULL, NULL, &error);
	struct pem_statistic_owner owner = {0};
	struct pem_callback_counts counts = {0};
	struct pem_source_state state_of = {0};
	static struct pem_recorder recorder;
	struct pem_histogram histogram = {0};
	struct pem_event_cost cost = {0};
	struct pem_statistic value = {0};
	struct pem_top top = {0};

	(void)state;
	pem_event_set__free(set);
	assert_non_null(st);
	assert_non_null(cb);
	assert_int_equal(pem_statistics__read(st, &value, 1), -EINVAL);
	assert_int_equal(pem_statistics__read(st, NULL, 0), 0);
	assert_int_equal(pem_statistics__histogram(st, 0, &histogram), -EINVAL);
	assert_int_equal(pem_statistics__top(st, 0, &top, 1), -EINVAL);
	assert_int_equal(pem_session__processes(session, &owner, 1), -EINVAL);
	assert_int_equal(pem_session__processes(session, NULL, 0), 0);
	assert_int_equal(pem_session__sources(session, &state_of, 1), -EINVAL);
	assert_int_equal(pem_session__costs(session, &cost, 1), -EINVAL);
	assert_int_equal(pem_callback__counts(cb, &counts), -EINVAL);
	assert_int_equal(pem_recorders(&recorder, 1), -EINVAL);
	assert_int_equal(pem_recorders(NULL, 0), 0);
}

static void values_in_room_of_a_later_version(void **state)
{
	static const char *const patterns[] = {"APP::Probe::Tick", "APP::Types::Integers"};
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	LATER(pem_statistic) values[2] = {{{.size = sizeof(values[0])}, 5}, {{0}, 5}};
	struct pem_statistics *st;
	struct pem_event_set *set;
	struct pem_error error;

	(void)state;
	set = pem_event_set__new(session, patterns, 2, &error);
	assert_non_null(set);
	st = pem_session__register_statistics(session, set, &self, NULL, &error);
	assert_non_null(st);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	pem_notify_probe_tick(0, 1);
	assert_int_equal(pem_statistics__read(st, &values[0].now, 2), 2);
	assert_int_equal(values[0].now.count + values[1].now.count, 1);
	assert_non_null(values[1].now.event);
	assert_int_equal(values[1].now.size, sizeof(values[1]));
	assert_int_equal(values[0].more, 0);
	assert_int_equal(values[1].more, 0);
}

static void values_in_room_of_an_earlier_version(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_statistic value = {.size = offsetof(struct pem_statistic, is_signed),
				      .variance = 7};
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error;
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, &self, NULL, &error);

	(void)state;
	pem_event_set__free(set);
	assert_non_null(st);
	assert_int_equal(pem_statistics__enable(st), 0);
	pem_notify_probe_tick(0, 1);
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.count, 1);
	assert_int_equal(value.size, offsetof(struct pem_statistic, is_signed));
	assert_true(value.variance == 7);
}

static void records_in_room_of_other_versions(void **state)
{
	LATER(pem_record) later = {{.size = sizeof(later)}, 5};
	struct pem_record unset = {0},
			  earlier = {.size = offsetof(struct pem_record, tid), .tid = 77};
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_log *log = log_to_trace(session, "APP::Probe::Tick", &self);
	struct pem_error error;
	struct pem_trace *trace;

	(void)state;
	pem_notify_probe_tick(0, 1);
	pem_notify_probe_tick(0, 2);
	assert_int_equal(pem_log__finish(log, &error), 0);
	trace = pem_trace__open(trace_path, &error);
	assert_non_null(trace);
	assert_int_equal(pem_trace__next(trace, &unset, &error), -EINVAL);
	assert_int_equal(pem_trace__next(trace, &later.now, &error), 1);
	assert_int_equal(later.now.pid, getpid());
	assert_int_equal(later.more, 0);
	assert_int_equal(later.now.size, sizeof(later));
	assert_int_equal(pem_trace__next(trace, &earlier, &error), 1);
	assert_int_equal(earlier.pid, getpid());
	assert_int_equal(earlier.tid, 77);
	pem_trace__close(trace);
}

/* --- contexts of zeroes --- */

/* Run on the last CPU from now on, or on the first. */
static void run_on(bool last)
{
	cpu_set_t all, one;
	int i, chosen = -1;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2) {
		print_message("skipped: one CPU only\n");
		skip();
	}
	for (i = 0; i < CPU_SETSIZE; i++) {
		if (CPU_ISSET(i, &all) && (last || chosen < 0))
			chosen = i;
	}
	CPU_ZERO(&one);
	CPU_SET(chosen, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static uint64_t ticks_of(const struct pem_context *context)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_error error;
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, context, NULL, &error);

	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	pem_notify_probe_tick(0, 1);
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	pem_statistics__unregister(st);
	return value.count;
}

static void a_process_counts_on_every_cpu(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()},
				 thread = {.pid = (uint32_t)getpid(), .tid = (uint32_t)gettid()};
	cpu_set_t before;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	run_on(true);
	assert_int_equal(ticks_of(&self), 1);
	assert_int_equal(ticks_of(&thread), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void one_cpu_counts_alone(void **state)
{
	struct pem_context self = {.pid = (uint32_t)getpid(), .one_cpu = 1};
	cpu_set_t before;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	run_on(false);
	self.cpu = (uint32_t)sched_getcpu();
	assert_int_equal(ticks_of(&self), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	run_on(true);
	assert_int_equal(ticks_of(&self), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static void zeroes_and_null_are_one_context(void **state)
{
	const struct pem_context zero = {0};
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error;

	(void)state;
	assert_non_null(pem_session__register_statistics(session, set, NULL, NULL, &error));
	assert_non_null(pem_session__register_async_callback(session, set, &zero, on_record, NULL,
							     NULL, &error));
	pem_event_set__free(set);
}

static void contradictions_are_refused(void **state)
{
	static const struct {
		struct pem_context context;
		const char *says;
	} cases[] = {
		{{.cpu = 3}, "CPU 3"},
		{{.one_cpu = 2}, "one_cpu is 2"},
		{{.program = "sixteen-bytes-ab"}, "no end"},
	};
	struct pem_context copy;
	struct pem_error error;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(pem_context__copy(&copy, &cases[i].context, &error), -EINVAL);
		assert_non_null(strstr(error.text, cases[i].says));
	}
	assert_int_equal(pem_session__attach(session, &cases[0].context, &error), -EINVAL);
}

static void names_end_alike(void **state)
{
	const struct pem_context a = {.program = "sh"}, b = {.program = "sh\0rest"};
	struct pem_context one, other;

	(void)state;
	assert_int_equal(pem_context__copy(&one, &a, NULL), 0);
	assert_int_equal(pem_context__copy(&other, &b, NULL), 0);
	assert_memory_equal(&one, &other, sizeof(one));
	assert_int_equal(one.size, sizeof(one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shorter_struct_has_defaults),
		cmocka_unit_test(a_longer_struct_ends_in_zeroes),
		cmocka_unit_test(no_size_is_the_first_version_s),
		cmocka_unit_test(impossible_sizes_are_refused),
		cmocka_unit_test(a_size_that_was_never_set),
		cmocka_unit_test(elements_are_as_far_apart_as_the_first_says),
		cmocka_unit_test_setup_teardown(contexts_of_a_later_version, set_up, tear_down),
		cmocka_unit_test_setup_teardown(options_of_a_later_version, set_up, tear_down),
		cmocka_unit_test_setup_teardown(options_of_an_earlier_version, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_runner_without_a_command_is_refused, set_up,
						tear_down),
		cmocka_unit_test(options_of_exporters),
		cmocka_unit_test_setup_teardown(room_of_no_size, set_up, tear_down),
		cmocka_unit_test_setup_teardown(values_in_room_of_a_later_version, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(values_in_room_of_an_earlier_version, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(records_in_room_of_other_versions, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_process_counts_on_every_cpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_cpu_counts_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(zeroes_and_null_are_one_context, set_up, tear_down),
		cmocka_unit_test_setup_teardown(contradictions_are_refused, set_up, tear_down),
		cmocka_unit_test(names_end_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
