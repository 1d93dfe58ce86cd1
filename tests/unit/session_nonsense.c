// SPDX-License-Identifier: MIT
/*
 * session_nonsense.c - each function of sessions and their handles, given NULL and nonsense: it
 * fails with a sentence about what is wrong, or does nothing
 *
 * tests/e2e/abi.py checks that no function is forgotten here.
 */
#include <pem/pem.h>

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct pem_session *session, *other;
static struct pem_event_set *set, *others_set;
static struct pem_statistics *statistics;
static struct pem_error why;
static int calls;

static int set_up(void **state)
{
	const char *malloc_event = "APP::Libc::Malloc";

	(void)state;
	session = pem_session__open(NULL, &why);
	other = pem_session__open(NULL, &why);
	set = pem_event_set__new(session, &malloc_event, 1, &why);
	others_set = pem_event_set__new(other, &malloc_event, 1, &why);
	statistics = pem_session__register_statistics(session, set, NULL, NULL, &why);
	return !session || !other || !set || !others_set || !statistics;
}

static int tear_down(void **state)
{
	(void)state;
	pem_event_set__free(set);
	pem_event_set__free(others_set);
	pem_session__close(other);
	pem_session__close(session);
	return 0;
}

static void begin(void)
{
	memset(&why, 0, sizeof(why));
	errno = 0;
}

/* A call failed, with a sentence for somebody who has never seen the command's options. */
static void refused(const char *call, int code)
{
	calls++;
	if (code >= 0)
		fail_msg("%s is accepted", call);
	if (!*why.text || strstr(why.text, "(null)") || strstr(why.text, " -o") ||
	    strstr(why.text, "'pem ") || strstr(why.text, "PEM_SPEC_PATH"))
		fail_msg("%s says '%s'", call, why.text);
}

/* A call returned NULL. */
static void nothing(const char *call, const void *made)
{
	if (made)
		fail_msg("%s makes something", call);
	refused(call, -errno);
}

/* These have to remember the call's text, and to clear error before it. */
#define FAILS(call)                                                                                \
	do {                                                                                       \
		begin();                                                                           \
		refused(#call, (int)(call));                                                       \
	} while (0)
#define MAKES_NOTHING(call)                                                                        \
	do {                                                                                       \
		begin();                                                                           \
		nothing(#call, call);                                                              \
	} while (0)
/* Of a function that takes no struct pem_error. */
#define IS_EINVAL(call) assert_int_equal((call), -EINVAL)

static void ignore(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
}

static void ignore_part(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
			void *arg)
{
	(void)part;
	(void)owner;
	(void)arg;
}

static void of_sessions(void **state)
{
	const struct pem_session_options small = {.size = 4}, huge = {.size = 1u << 20},
					 pool = {.size = sizeof(pool), .chunk_bytes = 3},
					 threads = {.size = sizeof(threads), .drain_threads = 1000},
					 stacks = {.size = sizeof(stacks), .sample_stacks = 77};

	(void)state;
	MAKES_NOTHING(pem_session__open(&small, &why));
	MAKES_NOTHING(pem_session__open(&huge, &why));
	MAKES_NOTHING(pem_session__open(&pool, &why));
	MAKES_NOTHING(pem_session__open(&threads, &why));
	MAKES_NOTHING(pem_session__open(&stacks, &why));
	pem_session__close(NULL);
	assert_null(pem_session__model(NULL));
	IS_EINVAL(pem_session__poll(NULL, 0, NULL));
	assert_int_equal(pem_session__poll(session, 0, NULL), 0);
	assert_int_equal(pem_session__elapsed_ns(NULL), 0);
	pem_session__interrupt(NULL);
}

/* Each option that is out of its range is refused by its own name. */
static void of_options(void **state)
{
	const struct {
		const char *name;
		struct pem_session_options options;
	} cases[] = {
		{"overwrite is 2", {.overwrite = 2}},
		{"overwrite is -1", {.overwrite = -1}},
		{"progress is 3", {.progress = 3}},
		{"by_process is 7", {.by_process = 7}},
		{"sample_stacks is 77", {.sample_stacks = 77}},
		{"coarse_clock is 2", {.coarse_clock = 2}},
		{"drain_threads is 65", {.drain_threads = 65}},
		{"compress is 2", {.compress = 2}},
		{"hardware is '/nonexistent.xml'", {.hardware = "/nonexistent.xml"}},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pem_session_options options = cases[i].options;

		options.size = sizeof(options);
		MAKES_NOTHING(pem_session__open(&options, &why));
		if (!strstr(why.text, cases[i].name))
			fail_msg("'%s' is not in '%s'", cases[i].name, why.text);
	}
}

/* A source that does not know a place says why, and another one finds it. */
static void of_probes_that_are_found(void **state)
{
	static const char *const found[] = {"uprobe:libc.so.6:malloc", "sched:sched_switch"};
	size_t i, count = 0;

	(void)state;
	for (i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
		begin();
		if (pem_session__add_probes(session, found[i], &why) < 0)
			continue;
		count++;
		assert_string_equal(why.text, "");
	}
	if (!count) {
		print_message("no source of pem's finds probes for this user here\n");
		skip();
	}
}

static void of_events(void **state)
{
	static const char text[] = "garbage\n";

	(void)state;
	FAILS(pem_session__add_model(NULL, text, sizeof(text), "x", &why));
	FAILS(pem_session__add_model(session, NULL, 0, "x", &why));
	FAILS(pem_session__add_model(session, text, sizeof(text) - 1, NULL, &why));
	FAILS(pem_session__add_specs(NULL, "x", &why));
	FAILS(pem_session__add_specs(session, NULL, &why));
	FAILS(pem_session__add_specs(session, "", &why));
	FAILS(pem_session__add_specs(session, "/nowhere", &why));
	assert_non_null(strstr(why.text, "check its path"));
	FAILS(pem_session__describe(NULL, 1, NULL, &why));
	FAILS(pem_session__describe(session, PEM_ANY, NULL, &why));
	FAILS(pem_session__describe(session, 1, "x", &why));
	FAILS(pem_session__describe(session, 4000000000u, NULL, &why));
	FAILS(pem_session__add_probes(NULL, "uprobe:x:y", &why));
	FAILS(pem_session__add_probes(session, NULL, &why));
	FAILS(pem_session__add_probes(session, "", &why));
	FAILS(pem_session__add_probes(session, "uprobe:/nowhere:f", &why));
}

static void of_deliveries(void **state)
{
	const struct pem_event *event = pem_event_set__event(set, 0);
	struct pem_counted_as counted = {.size = sizeof(counted)};
	struct pem_source_state source = {.size = 3};
	struct pem_event_cost cost = {.size = 3};
	uint32_t turns;

	(void)state;
	begin();
	assert_int_equal(pem_session__can_deliver(session, NULL, &why), 0);
	assert_non_null(strstr(why.text, "no event was given"));
	assert_int_equal(pem_session__can_deliver(NULL, event, NULL), 0);
	assert_null(pem_session__source_of(session, NULL, NULL));
	IS_EINVAL(pem_session__counted_as(NULL, event, &counted));
	IS_EINVAL(pem_session__counted_as(session, NULL, &counted));
	IS_EINVAL(pem_session__counted_as(session, event, NULL));
	IS_EINVAL(pem_session__counter_turns(NULL, NULL, 0, NULL));
	IS_EINVAL(pem_session__counter_turns(session, NULL, 1, &turns));
	IS_EINVAL(pem_session__counter_turns(session, &event, 1, NULL));
	IS_EINVAL(pem_session__sources(NULL, NULL, 0));
	IS_EINVAL(pem_session__sources(session, NULL, 5));
	IS_EINVAL(pem_session__sources(session, &source, 1));
	IS_EINVAL(pem_session__costs(NULL, NULL, 0));
	IS_EINVAL(pem_session__costs(session, NULL, 5));
	IS_EINVAL(pem_session__costs(session, &cost, 1));
}

static void of_sets(void **state)
{
	const char *name = "APP::Libc::Malloc", *none = "APP::Nope", *null = NULL, *empty = "",
		   *long_name;
	char *bytes = malloc(100001);

	(void)state;
	memset(bytes, 'a', 100000);
	bytes[100000] = '\0';
	long_name = bytes;
	MAKES_NOTHING(pem_event_set__new(NULL, &name, 1, &why));
	MAKES_NOTHING(pem_event_set__new(session, NULL, 3, &why));
	MAKES_NOTHING(pem_event_set__new(session, NULL, 0, &why));
	MAKES_NOTHING(pem_event_set__new(session, &name, 0, &why));
	assert_non_null(strstr(why.text, "no pattern of events was given"));
	MAKES_NOTHING(pem_event_set__new(session, &null, 1, &why));
	MAKES_NOTHING(pem_event_set__new(session, &empty, 1, &why));
	MAKES_NOTHING(pem_event_set__new(session, &none, 1, &why));
	MAKES_NOTHING(pem_event_set__new(session, &long_name, 1, &why));
	FAILS(pem_event_set__where(NULL, "size > 1", &why));
	FAILS(pem_event_set__where(set, "", &why));
	FAILS(pem_event_set__where(set, "size >", &why));
	FAILS(pem_event_set__where(set, bytes, &why));
	FAILS(pem_event_set__where_of(NULL, NULL, NULL, &why));
	FAILS(pem_event_set__where_of(set, "Free", "size > 1", &why));
	FAILS(pem_event_set__where_of(set, NULL, "size > 1", &why));
	assert_non_null(strstr(why.text, "pem_event_set__where()"));
	pem_event_set__free(NULL);
	assert_int_equal(pem_event_set__count(NULL), 0);
	assert_null(pem_event_set__event(NULL, 0));
	assert_null(pem_event_set__event(set, 999));
	assert_null(pem_event_set__predicate(NULL, 0));
	assert_null(pem_event_set__predicate(set, 999));
	free(bytes);
}

static void of_contexts(void **state)
{
	struct pem_context cpu = {.cpu = 3}, one_cpu = {.one_cpu = 5}, follow = {.follow = 1},
			   follows = {.pid = 1, .follow = 7}, small = {.size = 3}, endless,
			   gone = {.pid = 4000000000u}, no_cpu = {.one_cpu = 1, .cpu = 9999},
			   no_pid = {.pid = 99999999}, no_tid = {.tid = 99999999},
			   no_thread = {.pid = (uint32_t)getpid(), .tid = 1};
	const struct pem_context *const wrong[] = {&cpu,     &one_cpu, &follow, &follows, &small,
						   &endless, &no_cpu,  &no_pid, &no_tid};
	struct pem_statistics *later;
	uint64_t id;
	size_t i;

	(void)state;
	memset(&endless, 'x', sizeof(endless));
	endless = (struct pem_context){.size = sizeof(endless)};
	memset(endless.program, 'x', sizeof(endless.program));
	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		MAKES_NOTHING(pem_session__register_statistics(session, set, wrong[i], NULL, &why));
		FAILS(pem_session__attach(session, wrong[i], &why));
	}
	FAILS(pem_session__attach(NULL, &gone, &why));
	FAILS(pem_session__attach(session, &gone, &why));
	FAILS(pem_session__attach(session, &no_thread, &why));
	assert_non_null(strstr(why.text, "has no thread 1"));
	begin();
	assert_int_equal(pem_session__attach(session, &no_tid, &why), -ESRCH);
	/* A thread that does not exist yet may start later. */
	begin();
	later = pem_session__register_statistics(session, set, &no_thread, NULL, &why);
	assert_non_null(later);
	pem_statistics__unregister(later);
	IS_EINVAL(pem_session__processes(NULL, NULL, 0));
	IS_EINVAL(pem_session__processes(session, NULL, 3));
	IS_EINVAL(pem_cgroup_id(NULL, &id));
	IS_EINVAL(pem_cgroup_id("/", NULL));
	IS_EINVAL(pem_runtime_dir(NULL, 100));
	IS_EINVAL(pem_runtime_dir((char *)&id, 0));
}

static void of_statistics(void **state)
{
	struct pem_statistic unset = {0}, odd = {.size = 7}, huge = {.size = 1u << 20},
			     good = {.size = sizeof(good)};
	struct pem_histogram histogram = {.size = sizeof(histogram)};

	(void)state;
	MAKES_NOTHING(pem_session__register_statistics(NULL, set, NULL, NULL, &why));
	MAKES_NOTHING(pem_session__register_statistics(session, NULL, NULL, NULL, &why));
	MAKES_NOTHING(pem_session__register_statistics(session, others_set, NULL, NULL, &why));
	MAKES_NOTHING(pem_session__register_statistics(session, set, NULL, "nope", &why));
	assert_non_null(strstr(why.text, "its numbers are size, address"));
	MAKES_NOTHING(pem_session__register_statistics(session, set, NULL, "", &why));
	IS_EINVAL(pem_statistics__enable(NULL));
	pem_statistics__disable(NULL);
	pem_statistics__reset(NULL);
	IS_EINVAL(pem_statistics__read(NULL, &good, 1));
	IS_EINVAL(pem_statistics__read(statistics, NULL, 1));
	IS_EINVAL(pem_statistics__read(statistics, &unset, 1));
	IS_EINVAL(pem_statistics__read(statistics, &odd, 1));
	IS_EINVAL(pem_statistics__read(statistics, &huge, 1));
	IS_EINVAL(pem_statistics__keep(NULL, PEM_STATISTIC_TOP));
	IS_EINVAL(pem_statistics__keep(statistics, 0));
	IS_EINVAL(pem_statistics__histogram(NULL, 0, &histogram));
	IS_EINVAL(pem_statistics__histogram(statistics, 9, &histogram));
	IS_EINVAL(pem_statistics__histogram(statistics, 0, NULL));
	IS_EINVAL(pem_statistics__top(NULL, 0, NULL, 0));
	IS_EINVAL(pem_statistics__top(statistics, 0, NULL, 1));
	IS_EINVAL(pem_statistics__each(NULL, 0, ignore_part, NULL));
	IS_EINVAL(pem_statistics__each(statistics, 0, NULL, NULL));
	pem_statistics__unregister(NULL);
}

static void of_callbacks(void **state)
{
	const struct pem_async_options small = {.size = 3};
	struct pem_callback_counts counts = {.size = sizeof(counts)};

	(void)state;
	MAKES_NOTHING(pem_session__register_callback(NULL, set, NULL, ignore, NULL, &why));
	MAKES_NOTHING(pem_session__register_callback(session, NULL, NULL, ignore, NULL, &why));
	MAKES_NOTHING(pem_session__register_callback(session, set, NULL, NULL, NULL, &why));
	MAKES_NOTHING(
		pem_session__register_async_callback(NULL, set, NULL, ignore, NULL, NULL, &why));
	MAKES_NOTHING(pem_session__register_async_callback(session, NULL, NULL, ignore, NULL, NULL,
							   &why));
	MAKES_NOTHING(
		pem_session__register_async_callback(session, set, NULL, NULL, NULL, NULL, &why));
	MAKES_NOTHING(pem_session__register_async_callback(session, set, NULL, ignore, NULL, &small,
							   &why));
	pem_callback__enable(NULL);
	pem_callback__disable(NULL);
	IS_EINVAL(pem_callback__counts(NULL, &counts));
	IS_EINVAL(pem_callback__settle(NULL));
	pem_callback__unregister(NULL);
}

static void of_logs_and_recorders(void **state)
{
	struct pem_recorder recorder = {.size = 3};

	(void)state;
	MAKES_NOTHING(pem_session__register_log(NULL, set, NULL, "/tmp/x", &why));
	MAKES_NOTHING(pem_session__register_log(session, NULL, NULL, "/tmp/x", &why));
	MAKES_NOTHING(pem_session__register_log(session, set, NULL, NULL, &why));
	MAKES_NOTHING(pem_session__register_log(session, set, NULL, "", &why));
	MAKES_NOTHING(pem_session__register_log(session, set, NULL, "/proc/x", &why));
	MAKES_NOTHING(pem_session__register_log(session, set, NULL, "/etc", &why));
	IS_EINVAL(pem_log__enable(NULL));
	pem_log__disable(NULL);
	FAILS(pem_log__finish(NULL, &why));
	pem_log__unregister(NULL);
	FAILS(pem_session__snapshot(NULL, "x", NULL, &why));
	FAILS(pem_session__snapshot(session, NULL, NULL, &why));
	FAILS(pem_session__snapshot(session, "x", NULL, &why));
	IS_EINVAL(pem_recorders(NULL, 3));
	FAILS(pem_recorder__snapshot(NULL, "x", NULL, 10, &why));
	FAILS(pem_recorder__snapshot(&recorder, NULL, NULL, 10, &why));
	FAILS(pem_recorder__snapshot(&recorder, "x", NULL, 10, &why));
	MAKES_NOTHING(pem_trace__open(NULL, &why));
	MAKES_NOTHING(pem_trace__open("", &why));
	FAILS(pem_trace__unpack("/nowhere", NULL, &why));
	FAILS(pem_trace__unpack(NULL, "x", &why));
	FAILS(pem_trace__recover(NULL, &why));
}

static void of_demands(void **state)
{
	char empty[] = "", *no_words[] = {NULL}, *empty_word[] = {empty, NULL},
	     *nowhere[] = {(char *)"/nowhere/x", NULL}, *folder[] = {(char *)"/tmp", NULL};

	(void)state;
	FAILS(pem_session__set_counters(NULL, "cycles", &why));
	FAILS(pem_session__set_counters(session, NULL, &why));
	FAILS(pem_session__set_counters(session, "", &why));
	FAILS(pem_session__count_at(NULL, set, &why));
	FAILS(pem_session__count_at(session, NULL, &why));
	FAILS(pem_session__count_at(session, set, &why));
	IS_EINVAL(pem_session__set_page_sampling(NULL, 100000, 4096));
	IS_EINVAL(pem_session__set_page_sampling(session, 1, 3));
	IS_EINVAL(pem_session__set_budget(NULL, 0.5));
	IS_EINVAL(pem_session__set_budget(session, -1));
	IS_EINVAL(pem_session__set_budget(session, (double)NAN));
	FAILS(pem_session__run(NULL, nowhere, NULL, &why));
	FAILS(pem_session__run(session, NULL, NULL, &why));
	FAILS(pem_session__run(session, no_words, NULL, &why));
	FAILS(pem_session__run(session, empty_word, NULL, &why));
	FAILS(pem_session__run(session, nowhere, NULL, &why));
	FAILS(pem_session__run(other, folder, NULL, &why));
	assert_non_null(strstr(why.text, "; name a file that this user may execute"));
	FAILS(pem_run__exec(NULL, NULL, &why));
	FAILS(pem_run__exec(no_words, NULL, &why));
}

/* Attaching to a process that no command starts gives no advice to start one. */
static void of_processes_without_a_program(void **state)
{
	struct pem_context ended = {0};
	siginfo_t info;
	pid_t child = fork();

	(void)state;
	if (!child)
		_exit(0);
	assert_true(child > 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	ended.pid = (uint32_t)child;
	begin();
	assert_int_equal(pem_session__attach(session, &ended, &why), 0);
	assert_non_null(strstr(why.text, "has ended"));
	assert_null(strstr(why.text, "pem run"));
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Settings that sources read when they open, and a log that is finished. */
static void of_late_calls(void **state)
{
	struct pem_session *s = pem_session__open(NULL, &why);
	const char *name = "APP::Libc::Malloc";
	struct pem_event_set *events = pem_event_set__new(s, &name, 1, &why);
	struct pem_statistics *st = pem_session__register_statistics(s, events, NULL, NULL, &why);
	char folder[] = "/tmp/pem-nonsense-XXXXXX", path[64], command[96];
	struct pem_log *log;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/trace", folder);
	log = pem_session__register_log(s, events, NULL, path, &why);
	assert_int_equal(pem_session__set_page_sampling(s, 100000, 4096), 0);
	assert_int_equal(pem_statistics__enable(st), 0);
	pem_statistics__disable(st);
	FAILS(pem_session__set_counters(s, "Cycles", &why));
	assert_non_null(strstr(why.text, "before anything is enabled"));
	FAILS(pem_session__count_at(s, events, &why));
	assert_non_null(strstr(why.text, "before anything is enabled"));
	assert_int_equal(pem_session__set_page_sampling(s, 100000, 4096), -EBUSY);
	assert_int_equal(pem_log__enable(log), 0);
	assert_int_equal(pem_log__finish(log, &why), 0);
	IS_EINVAL(pem_log__enable(log));
	pem_event_set__free(events);
	pem_session__close(s);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_sessions),
		cmocka_unit_test(of_events),
		cmocka_unit_test(of_deliveries),
		cmocka_unit_test(of_sets),
		cmocka_unit_test(of_contexts),
		cmocka_unit_test(of_statistics),
		cmocka_unit_test(of_callbacks),
		cmocka_unit_test(of_logs_and_recorders),
		cmocka_unit_test(of_demands),
		cmocka_unit_test(of_late_calls),
		cmocka_unit_test(of_processes_without_a_program),
		cmocka_unit_test(of_options),
		cmocka_unit_test(of_probes_that_are_found),
	};

	char sources[512];

	/* Sources lie beside libpem.so, and this program has a libpem of its own. */
	snprintf(sources, sizeof(sources), "%s/lib", getenv("B") ? getenv("B") : "build");
	setenv("PEM_LIBRARY_PATH", sources, 0);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
