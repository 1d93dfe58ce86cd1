// SPDX-License-Identifier: MIT
/*
 * session_remote.c - what a session changes in a process that has long joined it
 *
 * Not here: statistics of this process's own events (session_statistics.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "programs/types.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#define TICKS 10u

static struct pem_session *session;
static pid_t other;
static int go, done;

/*
 * The other process makes its pool by an event that is wanted, and then raises ticks, each time it
 * is told to.
 */
static void run_other(int in, int out)
{
	unsigned i;
	char c = 0;

	if (pem_process__join(session->directory) < 0)
		_exit(1);
	pem_notify_types_floats(1, 2);
	while (write(out, &c, 1) == 1 && read(in, &c, 1) == 1) {
		for (i = 0; i < TICKS; i++)
			pem_notify_probe_tick(1, i);
	}
	_exit(0);
}

static struct pem_statistics *statistics(const char *pattern, const struct pem_context *context)
{
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_statistics *st;

	st = pem_session__register_statistics(session, set, context, NULL, &error);
	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

static uint64_t count_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	return value.count;
}

static void tick(void)
{
	char c = 0;

	assert_int_equal(write(go, &c, 1), 1);
	assert_int_equal(read(done, &c, 1), 1);
}

static int set_up(void **state)
{
	int in[2], out[2];
	char c;

	if (folder_make(state) || pipe(in) || pipe(out))
		return -1;
	session = session_open(NULL);
	statistics("APP::Types::Floats", NULL);
	other = fork();
	if (!other) {
		close(in[1]);
		run_other(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	go = in[1];
	done = out[0];
	return read(done, &c, 1) == 1 ? 0 : -1;
}

static int tear_down(void **state)
{
	close(go);
	close(done);
	waitpid(other, NULL, 0);
	pem_session__close(session);
	return folder_remove(state);
}

static void events_are_switched_in_it(void **state)
{
	struct pem_statistics *st;

	(void)state;
	pem_session__scan_producers(session);
	assert_non_null(session->processes->producers);
	tick();
	st = statistics("APP::Probe::Tick", NULL);
	assert_int_equal(count_of(st), 0);
	tick();
	assert_int_equal(count_of(st), TICKS);
	pem_statistics__disable(st);
	tick();
	assert_int_equal(count_of(st), TICKS);
}

static void contexts_reach_it(void **state)
{
	struct pem_context context = {.tid = (uint32_t)other};
	struct pem_statistics *st;
	cpu_set_t cpus, one;
	int cpu;

	(void)state;
	pem_session__scan_producers(session);
	st = statistics("APP::Probe::Tick", &context);
	/* On each CPU: a filter that never arrived would look like one of CPU 0. */
	assert_int_equal(sched_getaffinity(other, sizeof(cpus), &cpus), 0);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &cpus))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		assert_int_equal(sched_setaffinity(other, sizeof(one), &one), 0);
		tick();
	}
	assert_int_equal(count_of(st), TICKS * (unsigned)CPU_COUNT(&cpus));
	pem_statistics__unregister(st);
	context.tid = (uint32_t)getpid();
	st = statistics("APP::Probe::Tick", &context);
	tick();
	assert_int_equal(count_of(st), 0);
}

static struct pem_statistics *ticks_where(const char *predicate)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_error error = {""};
	struct pem_statistics *st;

	if (pem_event_set__where(set, predicate, &error))
		fail_msg("%s", error.text);
	st = pem_session__register_statistics(session, set, NULL, NULL, &error);
	assert_non_null(st);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

/* The stub has tested by one predicate, and goes by the next from the next event on. */
static void a_predicate_that_replaces_another_reaches_it(void **state)
{
	struct pem_statistics *st;

	(void)state;
	pem_session__scan_producers(session);
	st = ticks_where("number < 3");
	tick();
	tick();
	assert_int_equal(count_of(st), 6);
	pem_statistics__unregister(st);
	st = ticks_where("number >= 3");
	tick();
	assert_int_equal(count_of(st), TICKS - 3);
	pem_statistics__unregister(st);
	st = ticks_where(NULL);
	tick();
	assert_int_equal(count_of(st), TICKS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(events_are_switched_in_it),
		TEST(contexts_reach_it),
		TEST(a_predicate_that_replaces_another_reaches_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
