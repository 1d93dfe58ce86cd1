// SPDX-License-Identifier: MIT
/*
 * statistics_each.c - the parts of a statistic: whose they are, also when threads and processes
 * come and go
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "programs/types.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static struct pem_session *session;
static int pauses;

/* libpem's pauses come here, too. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	__atomic_fetch_add(&pauses, 1, __ATOMIC_RELAXED);
	return (int)syscall(SYS_nanosleep, time, left);
}

static int pauses_since_asked(void)
{
	return __atomic_exchange_n(&pauses, 0, __ATOMIC_RELAXED);
}

struct seen {
	struct pem_statistic part;
	struct pem_statistic_owner owner;
};

struct list {
	struct seen seen[64];
	int count;
};

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

static struct pem_statistics *enabled(const char *pattern, const char *attribute, bool here)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_statistics *st;

	st = pem_session__register_statistics(session, set, here ? &self : NULL, attribute, &error);
	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

static void note(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
		 void *arg)
{
	struct list *list = arg;

	assert_true(list->count < 64);
	list->seen[list->count].part = *part;
	list->seen[list->count++].owner = *owner;
}

static struct list parts_of(struct pem_statistics *st)
{
	struct list list = {.count = 0};
	int count = pem_statistics__each(st, 0, note, &list);

	assert_int_equal(count, list.count);
	return list;
}

/* The part of a thread; its count is 0 if there is none. */
static struct seen part_of(struct pem_statistics *st, uint32_t pid, uint32_t tid)
{
	struct list list = parts_of(st);
	struct seen found = {.part = {.count = 0}};
	int i;

	for (i = 0; i < list.count; i++) {
		if (list.seen[i].owner.pid != pid || list.seen[i].owner.tid != tid)
			continue;
		assert_int_equal(found.part.count, 0); /* one call for each thread */
		found = list.seen[i];
	}
	return found;
}

static uint64_t count_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	return value.count;
}

/* A thread that raises ticks of a number, and ends. */
struct ticker {
	uint32_t tid;
	uint64_t ticks, number;
	double f64;
};

static void *tick(void *arg)
{
	struct ticker *ticker = arg;
	uint64_t i;

	ticker->tid = (uint32_t)gettid();
	for (i = 0; i < ticker->ticks; i++) {
		pem_notify_probe_tick(0, ticker->number);
		pem_notify_types_floats(0, ticker->f64);
	}
	return NULL;
}

static void run(struct ticker *ticker)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, tick, ticker), 0);
	pthread_join(thread, NULL);
}

static void threads_have_parts_of_their_own(void **state)
{
	struct pem_statistics *st = enabled("APP::Probe::Tick", "number", true);
	struct ticker other = {.ticks = 3, .number = 7}, self = {.ticks = 2, .number = 1};
	struct seen part;

	(void)state;
	assert_int_equal(parts_of(st).count, 0);
	tick(&self);
	run(&other);
	assert_int_equal(parts_of(st).count, 2);
	part = part_of(st, (uint32_t)getpid(), other.tid);
	assert_int_equal(part.part.count, 3);
	assert_int_equal(part.part.sum, 21);
	assert_true(part.part.mean == 7.0);
	assert_string_equal(part.part.event->name, "APP::Probe::Tick");
	assert_int_equal(part.owner.cpu, PEM_NO_CPU);
	assert_string_equal(part.owner.program, "statistics_each");
	part = part_of(st, (uint32_t)getpid(), self.tid);
	assert_int_equal(part.part.count, 2);
	assert_int_equal(part.part.max, 1);
	assert_int_equal(pem_statistics__each(st, 1, note, NULL), -EINVAL);
}

/* The second gets the first one's lane, and not its events. */
static void a_thread_does_not_inherit_a_part(void **state)
{
	struct pem_statistics *st = enabled("APP::Probe::Tick", "number", true);
	struct ticker first = {.ticks = 5, .number = 100}, second = {.ticks = 2, .number = 9};
	struct seen part;

	(void)state;
	run(&first);
	assert_int_equal(part_of(st, (uint32_t)getpid(), first.tid).part.count, 5);
	run(&second);
	assert_int_equal(pem_process.joined[session->self_index].ring.lanes[2].tid, 0);
	part = part_of(st, (uint32_t)getpid(), second.tid);
	assert_int_equal(part.part.count, 2);
	assert_int_equal(part.part.min, 9);
	assert_int_equal(part.part.max, 9);
	part = part_of(st, (uint32_t)getpid(), 0);
	assert_int_equal(part.part.count, 5);
	assert_int_equal(part.part.sum, 500);
	assert_int_equal(part.part.min, 100);
	run(&first);
	assert_int_equal(part_of(st, (uint32_t)getpid(), 0).part.count, 7);
	assert_int_equal(count_of(st), 12);
}

static void floating_parts_add_up(void **state)
{
	struct pem_statistics *st = enabled("APP::Types::Floats", "f64", true);
	struct ticker first = {.ticks = 4, .f64 = 0.25}, second = {.ticks = 1, .f64 = -3};
	struct seen part;

	(void)state;
	run(&first);
	run(&second);
	run(&first);
	part = part_of(st, (uint32_t)getpid(), 0);
	assert_int_equal(part.part.count, 5);
	assert_true(part.part.sum_f == -2.0 && part.part.min_f == -3 && part.part.max_f == 0.25);
	part = part_of(st, (uint32_t)getpid(), first.tid);
	assert_true(part.part.sum_f == 1.0 && part.part.mean == 0.25);
}

/* What was forgotten before a thread took over a lane does not come back. */
static void a_reset_holds_for_threads_gone(void **state)
{
	struct pem_statistics *st = enabled("APP::Probe::Tick", "number", true);
	struct ticker ticker = {.ticks = 3, .number = 5};

	(void)state;
	run(&ticker);
	run(&ticker);
	pem_statistics__reset(st);
	assert_int_equal(parts_of(st).count, 0);
	run(&ticker);
	assert_int_equal(count_of(st), 3);
	run(&ticker);
	assert_int_equal(count_of(st), 6);
	assert_int_equal(part_of(st, (uint32_t)getpid(), 0).part.count, 3);
}

/* A process killed while a thread took over a lane leaves the word odd: reading goes on. */
static void a_take_over_that_never_ends_stalls_nobody(void **state)
{
	struct pem_statistics *st = enabled("APP::Probe::Tick", "number", true);
	struct ticker ticker = {.ticks = 3, .number = 5};

	(void)state;
	run(&ticker);
	pem_process.joined[session->self_index].ring.header->fold = 1;
	assert_int_equal(count_of(st), 3);
	assert_int_equal(parts_of(st).count, 1);
	run(&ticker);
	assert_int_equal(pem_process.joined[session->self_index].ring.header->fold, 2);
}

/* Who goes from odd to odd is waited for once, and again only after a move that came to its end. */
static void a_word_that_goes_on_being_odd_is_waited_for_once(void **state)
{
	struct pem_statistics *st = enabled("APP::Probe::Tick", "number", true);
	struct ticker ticker = {.ticks = 3, .number = 5};
	uint32_t *fold, odd;

	(void)state;
	run(&ticker);
	fold = &pem_process.joined[session->self_index].ring.header->fold;
	__atomic_store_n(fold, 1, __ATOMIC_SEQ_CST);
	pauses_since_asked();
	assert_int_equal(count_of(st), 3);
	assert_int_not_equal(pauses_since_asked(), 0);
	for (odd = 1; odd < 9; odd += 2) {
		__atomic_store_n(fold, odd, __ATOMIC_SEQ_CST);
		assert_int_equal(count_of(st), 3);
		assert_int_equal(parts_of(st).count, 1);
		assert_int_equal(pauses_since_asked(), 0);
	}
	__atomic_store_n(fold, 10, __ATOMIC_SEQ_CST);
	assert_int_equal(count_of(st), 3);
	assert_int_equal(pauses_since_asked(), 0);
	__atomic_store_n(fold, 11, __ATOMIC_SEQ_CST);
	assert_int_equal(count_of(st), 3);
	assert_int_not_equal(pauses_since_asked(), 0);
}

/* A part counts twice while it moves: in its lane, which is the first thread's, and in lane 0. */
static void *move_slowly(void *arg)
{
	const struct pem_ring *ring = arg;
	const size_t bytes = ring->event_capacity * sizeof(*ring->cells);

	__atomic_store_n(&ring->header->fold, 1, __ATOMIC_SEQ_CST);
	memcpy(ring->cells, ring->cells + ring->event_capacity, bytes);
	usleep(30000);
	memset(ring->cells, 0, bytes);
	__atomic_store_n(&ring->header->fold, 2, __ATOMIC_SEQ_CST);
	return NULL;
}

static void a_take_over_that_takes_its_time_is_waited_for(void **state)
{
	struct pem_statistics *st = enabled("APP::Probe::Tick", "number", true);
	struct ticker ticker = {.ticks = 3, .number = 5};
	const struct pem_ring *ring;
	uint64_t counted;
	pthread_t thread;

	(void)state;
	run(&ticker);
	ring = &pem_process.joined[session->self_index].ring;
	assert_int_equal(pthread_create(&thread, NULL, move_slowly, (void *)ring), 0);
	while (!__atomic_load_n(&ring->header->fold, __ATOMIC_SEQ_CST))
		sched_yield();
	counted = count_of(st);
	pthread_join(thread, NULL);
	assert_int_equal(counted, 3);
	assert_int_equal(count_of(st), 3);
}

struct churn {
	int stop;
	uint64_t ticks;
};

static void *make_threads(void *arg)
{
	struct churn *churn = arg;
	struct ticker ticker = {.ticks = 10, .number = 1};

	while (!__atomic_load_n(&churn->stop, __ATOMIC_RELAXED)) {
		run(&ticker);
		__atomic_fetch_add(&churn->ticks, ticker.ticks, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* A statistic never falls, and holds all that is over, while lanes change hands. */
static void sums_hold_while_lanes_change_hands(void **state)
{
	struct pem_statistics *st = enabled("APP::Probe::Tick", "number", true);
	uint64_t least = 0, most = 0, count;
	struct churn churn = {.stop = 0};
	pthread_t thread;
	int i;

	(void)state;
	pthread_create(&thread, NULL, make_threads, &churn);
	for (i = 0; i < 2000; i++) {
		least = __atomic_load_n(&churn.ticks, __ATOMIC_ACQUIRE);
		count = count_of(st);
		if (count < least || count < most)
			break;
		most = count;
	}
	__atomic_store_n(&churn.stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(i, 2000);
	assert_int_equal(count_of(st), churn.ticks);
}

static void processes_that_ended_are_one_part(void **state)
{
	struct pem_statistics *st = enabled("APP::Probe::Tick", "number", false);
	struct ticker ticker = {.ticks = 4, .number = 2};
	struct seen part;
	int in[2];
	pid_t child;
	char c;

	(void)state;
	assert_int_equal(pipe(in), 0);
	child = fork();
	if (!child) {
		close(in[1]);
		if (pem_process__join(session->directory) < 0)
			_exit(1);
		run(&ticker);
		tick(&ticker);
		_exit(read(in[0], &c, 1) != 0);
	}
	while (count_of(st) < 8)
		usleep(1000);
	assert_int_equal(part_of(st, (uint32_t)child, (uint32_t)child).part.count, 4);
	close(in[1]);
	close(in[0]);
	waitpid(child, NULL, 0);
	pem_session__release_gone(session);
	assert_int_equal(parts_of(st).count, 1);
	part = part_of(st, 0, 0);
	assert_int_equal(part.part.count, 8);
	assert_int_equal(part.owner.cpu, PEM_NO_CPU);
	assert_string_equal(part.owner.program, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(threads_have_parts_of_their_own),
		TEST(a_thread_does_not_inherit_a_part),
		TEST(floating_parts_add_up),
		TEST(a_reset_holds_for_threads_gone),
		TEST(a_take_over_that_never_ends_stalls_nobody),
		TEST(a_word_that_goes_on_being_odd_is_waited_for_once),
		TEST(a_take_over_that_takes_its_time_is_waited_for),
		TEST(sums_hold_while_lanes_change_hands),
		TEST(processes_that_ended_are_one_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
