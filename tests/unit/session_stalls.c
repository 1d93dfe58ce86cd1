/* SPDX-License-Identifier: MIT */
/*
 * session_stalls.c - users whose files keep the session waiting are left out, and nobody else is
 *
 * Waiting is made up here: the clock of what the session does for a directory is put back. Not
 * here: a user who does keep it waiting (tests/e2e/attack_stalls.py).
 */
#include "chunks/chunks.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/fault.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "dirs_fixture.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#define MS 1000000ull

enum spent { WAITING, RUNNING, WRITING };

/* The session does something for a directory that takes so long. */
static void spend(struct pem_dir *in, enum spent how, uint64_t ns)
{
	struct pem_stall_clock *clock = &session->dirs->stall_clock;
	uint64_t began_ns = pem_dir__begin(session, in);

	clock->began_ns -= ns;
	if (how == RUNNING)
		clock->ran_ns -= ns;
	else if (how == WRITING)
		clock->written_ns -= ns;
	pem_dir__charge(session, in, began_ns);
}

static bool is_left_out(const struct pem_dir *in)
{
	return in->usage.user && in->usage.user->is_left_out;
}

/* A thread that has not run for a nanosecond yet is not known to wait. */
static void run_a_while(void)
{
	uint64_t end = pem_monotonic_ns() + 20 * MS;

	while (pem_monotonic_ns() < end)
		;
}

static int set_up_and_run(void **state)
{
	if (set_up(state))
		return -1;
	run_a_while();
	return 0;
}

static void who_keeps_it_waiting_is_left_out(void **state)
{
	(void)state;
	spend(dir[1], WAITING, 600 * MS);
	assert_false(is_left_out(dir[1]));
	spend(dir[1], WAITING, 600 * MS);
	assert_true(is_left_out(dir[1]));
	assert_false(is_left_out(dir[2]));
}

static void the_others_are_recorded_whole(void **state)
{
	struct pool bad = describe_truly(dir[1], 1, model_text("One", "value", "uint32"));
	struct pool good = describe_truly(dir[2], 1, model_text("One", "value", "uint32"));
	struct pem_balance b;

	(void)state;
	put(&bad, 3, 77, 4);
	put(&good, 5, 77, 4);
	scan();
	spend(dir[1], WAITING, 600 * MS);
	spend(dir[1], WAITING, 600 * MS);
	assert_non_null(strstr(said, "1 processes of user"));
	put(&bad, 3, 77, 4);
	put(&good, 5, 77, 4);
	scan();
	pem_session__release_gone(session);
	assert_int_equal(producers_of(dir[1]), 0);
	assert_int_equal(producers_of(dir[2]), 1);
	assert_int_equal(in_trace("APP::Limits::One", 77, &b), 3 + 10);
	assert_int_equal(b.produced, b.delivered + b.discarded + b.overwritten);
	pool_free(&bad);
	pool_free(&good);
}

static void a_trace_says_who_was_left_out(void **state)
{
	struct pool bad = describe_truly(dir[1], 1, model_text("One", "value", "uint32"));

	(void)state;
	scan();
	spend(dir[1], WAITING, 600 * MS);
	spend(dir[1], WAITING, 600 * MS);
	assert_true(has_gap("1 processes of user"));
	assert_true(has_gap("kept the recorder waiting"));
	pool_free(&bad);
}

static void no_more_is_taken_in(void **state)
{
	struct pool bad;

	(void)state;
	spend(dir[1], WAITING, 600 * MS);
	spend(dir[1], WAITING, 600 * MS);
	bad = describe_truly(dir[1], 1, model_text("One", "value", "uint32"));
	scan();
	assert_int_equal(producers_of(dir[1]), 0);
	assert_int_equal(dir[1]->usage.excess[PEM_EXCESS_STALLS], 1);
	assert_int_equal(dir[1]->usage.excess[PEM_EXCESS_POOLS], 0);
	pool_free(&bad);
}

/* The session's page in the folder and control files are the user's as well. */
static void all_that_is_mapped_becomes_zeroes(void **state)
{
	struct pem_session_page *page;

	(void)state;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	page->id = 1;
	assert_int_equal(pem_fault__watch(page, sizeof(*page), &dir[1]->cut), 0);
	dir[1]->page = page;
	spend(dir[1], WAITING, 600 * MS);
	assert_int_equal(page->id, 1);
	spend(dir[1], WAITING, 600 * MS);
	assert_int_equal(page->id, 0);
	assert_int_equal(dir[1]->cut, 1);
}

/* One begin may be followed by several charges, as for each chunk of a pool. */
static void a_wait_is_charged_once(void **state)
{
	(void)state;
	spend(dir[1], WAITING, 600 * MS);
	pem_dir__charge(session, dir[1], pem_monotonic_ns());
	assert_int_equal(dir[1]->usage.user->stalls, 1);
}

/* A recorder that somebody stops for a minute waits as well. */
static void a_single_wait_is_forgiven(void **state)
{
	(void)state;
	spend(dir[1], WAITING, 60000 * MS);
	assert_false(is_left_out(dir[1]));
}

static void a_twentieth_of_the_time_is_the_users(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		spend(dir[1], WAITING, 600 * MS);
		dir[1]->usage.user->stalled_at_ns -= 20 * 610 * MS; /* so long ago */
	}
	assert_false(is_left_out(dir[1]));
}

static void short_waits_do_not_count(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 200; i++)
		spend(dir[1], WAITING, 15 * MS);
	assert_false(is_left_out(dir[1]));
}

static void running_is_no_waiting(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		spend(dir[1], RUNNING, 600 * MS);
	assert_false(is_left_out(dir[1]));
}

static void writing_the_trace_is_no_waiting(void **state)
{
	int i;

	(void)state;
	session->dirs->written_ns = 10000 * MS;
	for (i = 0; i < 4; i++)
		spend(dir[1], WRITING, 600 * MS);
	assert_false(is_left_out(dir[1]));
}

static void *empty_late(void *arg)
{
	const struct timespec late = {0, 300 * MS};
	char bytes[4096];
	int *ends = arg;

	nanosleep(&late, NULL);
	while (read(ends[0], bytes, sizeof(bytes)) > 0)
		;
	return NULL;
}

/* Two full chunks of different lanes: the first one is written while the second one waits. */
static void put_in_two_lanes(struct pool *pool)
{
	struct pem_writer w;
	uint64_t value = 1;
	uint32_t lane;

	for (lane = 1; lane <= 2; lane++) {
		w = writer_make(&pool->ring, lane);
		assert_true(writer_claim(&pool->ring, &w, pem_clock()) >= 0);
		assert_true(writer_put(&w, pem_clock(), pem_pool__event_ids(&pool->ring)[0], 0,
				       &value, 12));
		pem_ring_retire(&pool->ring, &w);
	}
}

/* The disk may be slow. What was written of a pool is known when the user's time is next looked at.
 */
static void a_slow_disk_is_no_waiting(void **state)
{
	struct pool pool = describe_truly(dir[1], 1, model_text("One", "value", "uint32"));
	struct pem_trace_writer *w = trace_log->writer;
	static const char full[4096];
	pthread_t reader;
	int ends[2];
	size_t i;

	(void)state;
	put_in_two_lanes(&pool);
	scan();
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(ends[1], full, sizeof(full)) > 0)
		;
	fcntl(ends[0], F_SETFL, 0);
	fcntl(ends[1], F_SETFL, 0);
	for (i = 0; i < w->stream_count; i++)
		assert_true(dup2(ends[1], w->streams[i]->fd) >= 0);
	put_in_two_lanes(&pool);
	assert_int_equal(pthread_create(&reader, NULL, empty_late, ends), 0);
	scan();
	assert_true(session->dirs->written_ns > 200 * MS);
	assert_int_equal(dir[1]->usage.user->stalls, 0);
	/* The reader sees the end when no stream has the pipe any more. */
	for (i = 0; i < w->stream_count; i++) {
		close(w->streams[i]->fd);
		w->streams[i]->fd = -1;
	}
	w->open_count = 0;
	close(ends[1]);
	pthread_join(reader, NULL);
	close(ends[0]);
	pool_free(&pool);
}

static void the_sessions_own_user_stays(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		spend(dir[0], WAITING, 600 * MS);
	assert_null(dir[0]->usage.user);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_and_run, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(who_keeps_it_waiting_is_left_out),  TEST(the_others_are_recorded_whole),
		TEST(a_trace_says_who_was_left_out),     TEST(no_more_is_taken_in),
		TEST(all_that_is_mapped_becomes_zeroes), TEST(a_wait_is_charged_once),
		TEST(a_single_wait_is_forgiven),         TEST(a_twentieth_of_the_time_is_the_users),
		TEST(short_waits_do_not_count),          TEST(running_is_no_waiting),
		TEST(writing_the_trace_is_no_waiting),   TEST(the_sessions_own_user_stays),
		TEST(a_slow_disk_is_no_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
