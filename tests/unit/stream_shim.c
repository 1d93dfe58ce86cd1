/* SPDX-License-Identifier: MIT */
/*
 * stream_shim.c - queues of other libraries as an observer sees them: counts, and what is a wait
 *
 * One thread plays both ends. Times are moved back instead of waited for.
 *
 * Not here: real libraries (e2e/rates_gstreamer, e2e/rates_tbb).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pem/stream_shim.h>
#include <pem/streams.h>

#include <pthread.h>
#include <unistd.h>

#define MS 1000000u

static struct pem_stream *stream;
static struct pem_streams *streams;

static int set_up(void **state)
{
	(void)state;
	stream = pem_stream_adopt("jobs", 0);
	streams = pem_streams__open((uint32_t)getpid(), NULL);
	return stream && streams ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	pem_streams__close(streams);
	pem_stream_release(stream);
	return 0;
}

static struct pem_streams_queue read_it(void)
{
	assert_int_equal(pem_streams__read(streams, NULL), 1);
	return *pem_streams__queue(streams, 0);
}

static void push(uint64_t items)
{
	pem_stream_wake(stream, PEM_STREAM_PUSHES);
	pem_stream_pass(stream, PEM_STREAM_PUSHES, items);
}

/* The consumer began to wait a while ago. */
static void wait_since(uint64_t ago_ns)
{
	pem_stream_wait(stream, PEM_STREAM_POPS);
	stream->side[PEM_STREAM_POPS].own.since_ns -= ago_ns;
}

static void counts_and_drops(void **state)
{
	struct pem_streams_queue seen;

	(void)state;
	push(5);
	pem_stream_pass(stream, PEM_STREAM_POPS, 2);
	seen = read_it();
	assert_string_equal(seen.name, "jobs");
	assert_int_equal(seen.item_bytes, 0);
	assert_int_equal(seen.capacity, 0);
	assert_int_equal(seen.queued, 3);
	assert_int_equal(seen.push.tid, gettid());
	assert_int_equal(pem_streams__limit(streams, &seen, 1, NULL), -ENOTSUP);
	pem_stream_drop(stream, 3, 1);
	assert_int_equal(read_it().queued, 1);
	pem_stream_drop(stream, 1, 2); /* items that are not counted yet */
	assert_int_equal(read_it().queued, 1);
	pem_stream_drop(stream, 1, 0);
	push(1);
	seen = read_it();
	assert_int_equal(seen.queued, 1);
	assert_int_equal(seen.push.items, 6);
	assert_int_equal(seen.pop.items, 2);
	pem_stream_leave(stream, PEM_STREAM_PUSHES);
	seen = read_it();
	assert_int_equal(seen.push.tid, 0);
	assert_int_equal(seen.pop.tid, gettid());
}

/* The producer counts an item after the library was asked how many there are. */
static void a_late_item_is_not_dropped(void **state)
{
	uint64_t counted;

	(void)state;
	push(2);
	counted = pem_stream_queued(stream);
	push(1);
	pem_stream_drop(stream, counted, 2);
	assert_int_equal(read_it().queued, 3);
}

static void an_end_that_is_shared(void **state)
{
	(void)state;
	push(1);
	assert_int_equal(read_it().push.tid, gettid());
	pem_stream_share(stream, PEM_STREAM_PUSHES);
	push(2); /* No thread is shown again, whichever pushes. */
	assert_int_equal(read_it().push.tid, 0);
	assert_int_equal(read_it().push.threads, 0);
	assert_int_equal(read_it().push.items, 3);
}

static void *push_three(void *unused)
{
	push(3);
	return unused;
}

/* Whose are the items? Those that passed before the thread came are not its own. */
static void an_end_that_moves(void **state)
{
	struct pem_streams_end end;
	pthread_t thread;

	(void)state;
	assert_int_equal(read_it().push.threads, 0);
	push(2);
	push(2);
	end = read_it().push;
	assert_int_equal(end.threads, 1);
	assert_int_equal(end.before, 0);
	pem_stream_leave(stream, PEM_STREAM_PUSHES);
	end = read_it().push;
	assert_int_equal(end.threads, 1);
	assert_int_equal(end.before, 0);
	assert_int_equal(pthread_create(&thread, NULL, push_three, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	push(1);
	end = read_it().push;
	assert_int_equal(end.threads, 3);
	assert_int_equal(end.before, 7);
	assert_int_equal(end.items, 8);
	assert_int_equal(end.tid, gettid());
}

/* An observer that saw a queue sees its last numbers once, unless its entry is another queue's. */
static void the_last_numbers_of_a_queue(void **state)
{
	struct pem_streams *late = pem_streams__open((uint32_t)getpid(), NULL);
	struct pem_streams_queue seen;

	(void)state;
	push(1);
	assert_false(read_it().is_gone);
	push(5);
	pem_stream_pass(stream, PEM_STREAM_POPS, 2);
	pem_stream_release(stream);
	seen = read_it();
	assert_true(seen.is_gone);
	assert_int_equal(seen.push.items, 6);
	assert_int_equal(seen.pop.items, 2);
	assert_int_equal(seen.push.threads, 1);
	assert_int_equal(seen.push.tid, 0);
	assert_int_equal(pem_streams__read(streams, NULL), 0);
	assert_int_equal(pem_streams__read(late, NULL), 0);
	pem_streams__close(late);
	stream = pem_stream_adopt("freed", 0);
	assert_string_equal(read_it().name, "freed");
	pem_stream_release(stream);
	stream = pem_stream_adopt("in its entry", 0);
	assert_string_equal(read_it().name, "in its entry");
	assert_false(read_it().is_gone);
}

static void a_capacity_without_bounds(void **state)
{
	struct pem_stream *endless = pem_stream_adopt("endless", UINT64_MAX / 2);
	size_t skipped;

	(void)state;
	assert_non_null(endless);
	assert_int_equal(pem_streams__read(streams, &skipped), 2);
	assert_int_equal(skipped, 0);
	assert_int_equal(pem_streams__queue(streams, 1)->capacity, 0);
	pem_stream_release(endless);
}

static void waits(void **state)
{
	struct pem_streams_end end;

	(void)state;
	wait_since(MS);
	end = read_it().pop;
	assert_true(end.since_ns != 0);
	assert_true(pem_stream_go_on(stream, PEM_STREAM_POPS, 1));
	end = read_it().pop;
	assert_int_equal(end.blocks, 1);
	assert_true(end.blocked_ns >= MS);
	assert_int_equal(end.since_ns, 0);
	assert_int_equal(end.late_ns, 0);
	assert_false(pem_stream_go_on(stream, PEM_STREAM_POPS, 1));
}

static void woken_and_late(void **state)
{
	struct pem_streams_end end;

	(void)state;
	wait_since(3 * MS);
	push(1);
	stream->side[PEM_STREAM_POPS].woken_ns -= MS;
	assert_true(pem_stream_go_on(stream, PEM_STREAM_POPS, 0));
	end = read_it().pop;
	assert_true(end.blocked_ns >= 3 * MS);
	assert_true(end.late_ns >= MS);
	assert_true(end.late_ns <= end.blocked_ns - 2 * MS + MS / 10);
}

/* A thread that had no CPU in the middle of an operation did not wait for its queue. */
static void no_wait(void **state)
{
	(void)state;
	wait_since(3 * MS);
	assert_false(pem_stream_go_on(stream, PEM_STREAM_POPS, 0));
	wait_since(3 * MS);
	push(1);
	stream->side[PEM_STREAM_POPS].woken_ns -= 3 * MS - 1;
	stream->side[PEM_STREAM_POPS].own.since_ns = stream->side[PEM_STREAM_POPS].woken_ns - 1;
	assert_false(pem_stream_go_on(stream, PEM_STREAM_POPS, 0));
	assert_int_equal(read_it().pop.blocks, 0);
	assert_int_equal(read_it().pop.blocked_ns, 0);
}

/* The consumer runs before the producer has counted its item, and waits again. */
static void a_late_count_wakes_nobody(void **state)
{
	struct pem_streams_end end;

	(void)state;
	wait_since(3 * MS);
	pem_stream_wake(stream, PEM_STREAM_PUSHES);
	assert_true(pem_stream_go_on(stream, PEM_STREAM_POPS, 0));
	end = read_it().pop;
	assert_int_equal(end.late_ns, 0);
	wait_since(0);
	pem_stream_count(stream, PEM_STREAM_PUSHES, 1);
	stream->side[PEM_STREAM_POPS].own.since_ns -= 3 * MS;
	stream->side[PEM_STREAM_POPS].woken_ns -= MS;
	assert_true(pem_stream_go_on(stream, PEM_STREAM_POPS, 1));
	end = read_it().pop;
	assert_int_equal(end.blocks, 2);
	assert_int_equal(end.late_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_and_drops, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_late_item_is_not_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_end_that_is_shared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_end_that_moves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_last_numbers_of_a_queue, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_capacity_without_bounds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(woken_and_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_wait, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_late_count_wakes_nobody, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
