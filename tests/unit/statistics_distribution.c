// SPDX-License-Identifier: MIT
/*
 * statistics_distribution.c - variance, histogram and most frequent values of this process's events
 */
#include "chunks/chunks.h"
#include "core/core.h"
#include "core/demand.h"
#include "dirs/dirs.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/probe.h"
#include "programs/types.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>

#define ALL (PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM | PEM_STATISTIC_TOP)

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

static struct pem_statistics *statistics(const char *pattern, const char *attribute, bool here)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_statistics *st;

	st = pem_session__register_statistics(session, set, here ? &self : NULL, attribute, &error);
	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	return st;
}

static struct pem_statistics *keeping(const char *pattern, const char *attribute, unsigned what)
{
	struct pem_statistics *st = statistics(pattern, attribute, true);

	assert_int_equal(pem_statistics__keep(st, what), 0);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

static struct pem_statistic value_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.unavailable, 0);
	return value;
}

static struct pem_histogram histogram_of(struct pem_statistics *st)
{
	struct pem_histogram histogram = {.size = sizeof(histogram)};

	assert_int_equal(pem_statistics__histogram(st, 0, &histogram), 0);
	return histogram;
}

static uint64_t total_of(struct pem_statistics *st)
{
	struct pem_histogram histogram = histogram_of(st);
	uint64_t total = 0;
	int i;

	for (i = 0; i < 65; i++)
		total += histogram.bucket[i];
	return total;
}

static void integers(int64_t i64, uint64_t u64)
{
	pem_notify_types_integers(0, 0, 0, 0, 0, i64, 0, u64);
}

static void tick(uint64_t number)
{
	pem_notify_probe_tick(0, number);
}

static void variance_of_great_numbers_is_exact(void **state)
{
	struct pem_statistics *st = keeping("APP::Types::Integers", "u64", PEM_STATISTIC_VARIANCE);
	uint64_t i;

	(void)state;
	assert_true(value_of(st).variance == 0);
	for (i = 0; i < 10; i++)
		integers(0, UINT64_MAX - 9 + i);
	assert_true(value_of(st).variance == 8.25);
	assert_int_equal(value_of(st).count, 10);
}

static void variance_of_signed_numbers(void **state)
{
	struct pem_statistics *st = keeping("APP::Types::Integers", "i64", PEM_STATISTIC_VARIANCE);

	(void)state;
	integers(-3, 0);
	integers(3, 0);
	assert_true(value_of(st).variance == 9);
	integers(INT64_MIN, 0);
	integers(INT64_MIN, 0);
	assert_true(fabs(value_of(st).variance / 0x1p124 - 1) < 1e-12);
}

static void variance_of_floating_numbers(void **state)
{
	struct pem_statistics *st = keeping("APP::Types::Floats", "f64", PEM_STATISTIC_VARIANCE);
	int i;

	(void)state;
	for (i = 0; i < 10; i++)
		pem_notify_types_floats(0, 1e9 + i);
	assert_true(fabs(value_of(st).variance - 8.25) < 1e-6);
}

static void buckets_are_powers_of_two(void **state)
{
	static const uint64_t values[] = {0, 1, 2, 3, 4, 1023, 1024, 1ull << 63, UINT64_MAX};
	struct pem_statistics *st = keeping("APP::Types::Integers", "u64", PEM_STATISTIC_HISTOGRAM);
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		integers(0, values[i]);
	histogram = histogram_of(st);
	assert_int_equal(histogram.bucket[0], 1);
	assert_int_equal(histogram.bucket[1], 1);
	assert_int_equal(histogram.bucket[2], 2);
	assert_int_equal(histogram.bucket[3], 1);
	assert_int_equal(histogram.bucket[10], 1);
	assert_int_equal(histogram.bucket[11], 1);
	assert_int_equal(histogram.bucket[64], 2);
	assert_int_equal(total_of(st), 9);
	assert_true(value_of(st).variance == 0); /* not asked for */
}

static void buckets_of_signed_and_floating_numbers(void **state)
{
	struct pem_statistics *st = keeping("APP::Types::Integers", "i64", PEM_STATISTIC_HISTOGRAM);
	struct pem_statistics *f = keeping("APP::Types::Floats", "f64", PEM_STATISTIC_HISTOGRAM);

	(void)state;
	integers(INT64_MIN, 0);
	integers(-1, 0);
	integers(INT64_MAX, 0);
	assert_int_equal(histogram_of(st).bucket[0], 2);
	assert_int_equal(histogram_of(st).bucket[63], 1);
	pem_notify_types_floats(0, -7.5);
	pem_notify_types_floats(0, 0.9);
	pem_notify_types_floats(0, (double)NAN);
	pem_notify_types_floats(0, 3.99);
	pem_notify_types_floats(0, 1e300);
	assert_int_equal(histogram_of(f).bucket[0], 3);
	assert_int_equal(histogram_of(f).bucket[2], 1);
	assert_int_equal(histogram_of(f).bucket[64], 1);
}

static void few_values_are_counted_exactly(void **state)
{
	struct pem_statistics *st = keeping("APP::Probe::Tick", "number", PEM_STATISTIC_TOP);
	struct pem_top top[20] = {{.size = sizeof(top[0])}};
	uint64_t i, k;

	(void)state;
	for (i = 1; i <= 16; i++) {
		for (k = 0; k < i; k++)
			tick(1000 + i);
	}
	assert_int_equal(pem_statistics__top(st, 0, top, 20), 16);
	for (i = 0; i < 16; i++) {
		assert_int_equal(top[i].value, 1016 - i);
		assert_int_equal(top[i].count, 16 - i);
		assert_int_equal(top[i].error, 0);
	}
	assert_int_equal(pem_statistics__top(st, 0, top, 2), 2);
	assert_int_equal(top[1].value, 1015);
}

#define VALUES 200

struct stream {
	uint64_t seed;
	uint64_t times[VALUES];
};

/* Values of which a half are 7, and the others as often as the square of a random number says. */
static void *raise_stream(void *arg)
{
	struct stream *s = arg;
	uint64_t value;
	int i;

	for (i = 0; i < 20000; i++) {
		s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
		value = (s->seed >> 33) % VALUES;
		value = s->seed >> 62 & 1 ? 7 : value * value / VALUES;
		s->times[value]++;
		tick(value);
	}
	return NULL;
}

/* Four threads at once, and then four more, which take over their lanes. */
static void bounds_of_frequent_values_hold(void **state)
{
	struct pem_statistics *st = keeping("APP::Probe::Tick", "number", PEM_STATISTIC_TOP);
	struct stream streams[8] = {{.seed = 0}};
	uint64_t times[VALUES] = {0};
	struct pem_top top[64] = {{.size = sizeof(top[0])}};
	pthread_t threads[8];
	int i, k, count;

	(void)state;
	for (i = 0; i < 8; i++)
		streams[i].seed = (uint64_t)i + 1;
	for (k = 0; k < 8; k += 4) {
		for (i = k; i < k + 4; i++)
			pthread_create(&threads[i], NULL, raise_stream, &streams[i]);
		for (i = k; i < k + 4; i++)
			pthread_join(threads[i], NULL);
	}
	for (i = 0; i < 8; i++) {
		for (k = 0; k < VALUES; k++)
			times[k] += streams[i].times[k];
	}
	count = pem_statistics__top(st, 0, top, 64);
	assert_true(count >= 16);
	assert_int_equal(top[0].value, 7);
	for (i = 0; i < count; i++) {
		assert_true(top[i].value < VALUES);
		assert_true(times[top[i].value] <= top[i].count);
		assert_true(times[top[i].value] >= top[i].count - top[i].error);
		assert_true(!i || top[i].count <= top[i - 1].count);
	}
}

static void reset_forgets_all_of_it(void **state)
{
	struct pem_statistics *st = keeping("APP::Probe::Tick", "number", ALL);
	struct pem_top top = {.size = sizeof(top)};

	(void)state;
	tick(5);
	tick(7);
	assert_true(value_of(st).variance == 1);
	pem_statistics__reset(st);
	assert_true(value_of(st).variance == 0);
	assert_int_equal(total_of(st), 0);
	assert_int_equal(pem_statistics__top(st, 0, &top, 1), 0);
	tick(9);
	assert_int_equal(pem_statistics__top(st, 0, &top, 1), 1);
	assert_int_equal(top.value, 9);
	assert_int_equal(total_of(st), 1);
}

/* Another event gets the memory of one that is not asked for any more, and sees nothing of it. */
static void memory_that_is_given_on_is_empty(void **state)
{
	struct pem_statistics *st = keeping("APP::Probe::Tick", "number", ALL);

	(void)state;
	tick(5);
	pem_statistics__unregister(st);
	st = keeping("APP::Types::Integers", "u64", ALL);
	assert_int_equal(total_of(st), 0);
	integers(0, 3);
	assert_int_equal(total_of(st), 1);
	pem_statistics__unregister(st);
	st = keeping("APP::Probe::Tick", "number", ALL);
	assert_int_equal(total_of(st), 0);
}

static void *three_ticks(void *arg)
{
	(void)arg;
	tick(1);
	tick(2);
	tick(3);
	return NULL;
}

static void note_variance(const struct pem_statistic *part, const struct pem_statistic_owner *owner,
			  void *arg)
{
	double *variance = arg;

	if (!owner->tid)
		*variance = part->variance;
}

/* What threads did whose lanes others took over stays, and is a part with a variance of its own. */
static void threads_gone_leave_it(void **state)
{
	struct pem_statistics *st = keeping("APP::Probe::Tick", "number", ALL);
	double variance = 0;
	struct pem_top top = {.size = sizeof(top)};
	pthread_t thread;
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		pthread_create(&thread, NULL, three_ticks, NULL);
		pthread_join(thread, NULL);
	}
	assert_int_equal(total_of(st), 15);
	assert_int_equal(histogram_of(st).bucket[2], 10);
	assert_true(fabs(value_of(st).variance - 2.0 / 3) < 1e-12);
	assert_int_equal(pem_statistics__top(st, 0, &top, 1), 1);
	assert_int_equal(top.count, 5);
	assert_int_equal(pem_statistics__each(st, 0, note_variance, &variance), 2);
	assert_true(fabs(variance - 2.0 / 3) < 1e-12);
}

static void processes_gone_leave_it(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", "number", false);
	int i, status;
	pid_t child;

	(void)state;
	assert_int_equal(pem_statistics__keep(st, ALL), 0);
	assert_int_equal(pem_statistics__enable(st), 0);
	for (i = 0; i < 2; i++) {
		child = fork();
		if (!child) {
			if (pem_process__join(session->directory) < 0)
				_exit(1);
			three_ticks(NULL);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(value_of(st).count, 3 * (i + 1));
		pem_session__release_gone(session);
		assert_null(session->processes->producers);
	}
	assert_int_equal(total_of(st), 6);
	assert_true(fabs(value_of(st).variance - 2.0 / 3) < 1e-12);
	pem_statistics__reset(st);
	assert_int_equal(total_of(st), 0);
}

static void only_what_is_asked_for_is_kept(void **state)
{
	struct pem_statistics *plain = statistics("APP::Types::Integers", "u64", true);
	struct pem_statistics *st = keeping("APP::Probe::Tick", "number", PEM_STATISTIC_VARIANCE);
	const struct pem_ring *ring = &pem_process.joined[session->self_index].ring;
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	struct pem_top top = {.size = sizeof(top)};

	(void)state;
	pem_statistics__enable(plain);
	integers(0, 1);
	assert_int_equal(ring->lanes[1].distributions, 0);
	assert_int_equal(pem_statistics__histogram(plain, 0, &histogram), -ENODATA);
	tick(4);
	assert_int_equal(ring->lanes[1].distributions, 1);
	assert_int_equal(pem_statistics__histogram(st, 0, &histogram), -ENODATA);
	assert_int_equal(pem_statistics__top(st, 0, &top, 1), -ENODATA);
	assert_int_equal(ring->distributions[1].bucket[3], 0);
	assert_int_equal(ring->distributions[1].top[0].count, 0);
}

static void wrong_demands_are_refused(void **state)
{
	struct pem_statistics *st = statistics("APP::Probe::Tick", NULL, true);

	(void)state;
	assert_int_equal(pem_statistics__keep(st, ALL), -EINVAL);
	pem_statistics__unregister(st);
	st = statistics("HW::Software::ContextSwitches", "value", true);
	assert_int_equal(pem_statistics__keep(st, ALL), -ENOTSUP);
	pem_statistics__unregister(st);
	st = statistics("APP::Probe::Tick", "number", true);
	assert_int_equal(pem_statistics__keep(st, 8), -EINVAL);
	assert_int_equal(pem_statistics__keep(st, 0), -EINVAL);
	session->statistics->distributions_used = 0xffff;
	assert_int_equal(pem_statistics__keep(st, ALL), -ENOSPC);
	session->statistics->distributions_used = 0x7fff;
	assert_int_equal(pem_statistics__keep(st, ALL), 0);
	pem_statistics__enable(st);
	pem_statistics__disable(st);
	assert_int_equal(pem_statistics__keep(st, ALL), -EBUSY);
	tick(1);
	assert_int_equal(total_of(st), 0);
	pem_statistics__unregister(st);
	assert_int_equal(session->statistics->distributions_used, 0x7fff);
}

/* A thread that is stopped in the middle, and a process that lies about its memory. */
static void what_makes_no_sense_is_left_out(void **state)
{
	struct pem_statistics *st = keeping("APP::Probe::Tick", "number", ALL);
	const struct pem_ring *ring = &pem_process.joined[session->self_index].ring;
	struct pem_distribution *distribution;
	struct pem_top top[4] = {{.size = sizeof(top[0])}};

	(void)state;
	tick(1);
	tick(3);
	distribution = pem_pool__distribution(ring, 0, 1);
	ring->lanes[0].distributions = ring->lanes[1].distributions = ~0u;
	distribution->top[0].sequence |= 1;
	assert_int_equal(pem_statistics__top(st, 0, top, 4), 1);
	assert_int_equal(top[0].value, 3);
	distribution->begin++;
	assert_true(value_of(st).variance == 1);
	distribution->end = 0;
	assert_true(value_of(st).variance == 0);
	distribution->begin = ~0ull;
	assert_int_equal(total_of(st), 0);
}

/* --- beginning anew while somebody reads --- */

#define BEGINNINGS 200000

struct beginner {
	struct pem_distribution distribution;
	uint64_t whole; /* the last tag under which all values are there */
};

static void *begin_again_and_again(void *arg)
{
	struct beginner *b = arg;
	uint64_t tag;
	unsigned i;

	for (tag = 1; tag <= BEGINNINGS; tag++) {
		pem_distribution_reset(&b->distribution, tag);
		for (i = 0; i < PEM_DISTRIBUTION_TOP; i++)
			pem_distribution_add_top(&b->distribution, i + 1);
		__atomic_store_n(&b->whole, tag, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void nobody_reads_half_of_what_begins_anew(void **state)
{
	struct beginner b = {.whole = 0};
	struct pem_distribution copy;
	pthread_t thread;
	unsigned read = 0, i;
	uint64_t tag;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, begin_again_and_again, &b), 0);
	do {
		tag = __atomic_load_n(&b.whole, __ATOMIC_ACQUIRE);
		if (!tag || !pem_distribution_read(&b.distribution, &copy, tag, 1000))
			continue;
		for (i = 0; i < PEM_DISTRIBUTION_TOP; i++)
			assert_int_equal(copy.top[i].count, 1);
		read++;
	} while (tag < BEGINNINGS);
	pthread_join(thread, NULL);
	assert_true(read > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(variance_of_great_numbers_is_exact),
		TEST(variance_of_signed_numbers),
		TEST(variance_of_floating_numbers),
		TEST(buckets_are_powers_of_two),
		TEST(buckets_of_signed_and_floating_numbers),
		TEST(few_values_are_counted_exactly),
		TEST(bounds_of_frequent_values_hold),
		TEST(reset_forgets_all_of_it),
		TEST(nobody_reads_half_of_what_begins_anew),
		TEST(memory_that_is_given_on_is_empty),
		TEST(threads_gone_leave_it),
		TEST(processes_gone_leave_it),
		TEST(only_what_is_asked_for_is_kept),
		TEST(wrong_demands_are_refused),
		TEST(what_makes_no_sense_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
