/* SPDX-License-Identifier: MIT */
/*
 * stream_queue.c - the queue of pem/stream.h keeps order, loses nothing, and ends
 *
 * Not here: the memory that it shows to observers (stream_observed.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pem/stream.h>

#include <pthread.h>
#include <stdbool.h>

#define CAPACITY 8

struct item {
	uint64_t number;
	uint32_t check;
};

static struct pem_stream *make(size_t capacity)
{
	struct pem_stream *stream = pem_stream__make("test", capacity, sizeof(struct item));

	assert_non_null(stream);
	return stream;
}

static struct item item_of(uint64_t number)
{
	struct item item = {number, (uint32_t)(number * 2654435761u)};

	return item;
}

static bool is_item(const struct item *item, uint64_t number)
{
	return item->number == number && item->check == item_of(number).check;
}

/* Let a queue that is empty go on as if this number of items had passed it. */
static void begin_at(struct pem_stream *stream, uint64_t count)
{
	for (int i = 0; i < 2; i++)
		stream->side[i].count = stream->side[i].until = count;
}

static void full_and_empty(void **state)
{
	struct pem_stream *stream = make(CAPACITY - 1);
	struct item item;

	(void)state;
	assert_int_equal(pem_stream__try_pop(stream, &item), -EAGAIN);
	for (uint64_t i = 0; i < CAPACITY; i++) {
		item = item_of(i);
		assert_int_equal(pem_stream__try_push(stream, &item), 0);
	}
	assert_int_equal(pem_stream__try_push(stream, &item), -EAGAIN);
	for (uint64_t i = 0; i < CAPACITY; i++) {
		assert_int_equal(pem_stream__try_pop(stream, &item), 0);
		assert_true(is_item(&item, i));
	}
	assert_int_equal(pem_stream__try_pop(stream, &item), -EAGAIN);
	pem_stream__free(stream);
}

static void wrong_arguments(void **state)
{
	struct pem_stream *stream = make(CAPACITY);
	uint64_t other = 0;

	(void)state;
	assert_int_equal(pem_stream__push(stream, &other), -EINVAL);
	assert_int_equal(pem_stream__try_pop(stream, &other), -EINVAL);
	assert_int_equal(pem_stream__push_many(stream, &other, 1), -EINVAL);
	assert_int_equal(pem_stream__try_pop_many(stream, &other, 1), -EINVAL);
	pem_stream__free(stream);
	pem_stream__free(NULL);
	errno = 0;
	assert_null(pem_stream__make("none", 0, 8));
	assert_int_equal(errno, EINVAL);
	assert_null(pem_stream__make("none", 8, 0));
	assert_null(pem_stream__make("none", SIZE_MAX, 8));
	assert_null(pem_stream__make("none", (size_t)1 << 40, SIZE_MAX));
}

/* Pass more items than fit, one by one and in batches that reach across the end of the ring. */
static void pass(struct pem_stream *stream, uint64_t count)
{
	struct item items[CAPACITY + 3], item;
	uint64_t in = 0, out = 0;
	ptrdiff_t moved;

	for (size_t batch = 0; out < count; batch = (batch + 3) % (CAPACITY + 3)) {
		for (size_t i = 0; i <= batch; i++)
			items[i] = item_of(in + i);
		moved = pem_stream__try_push_many(stream, items, batch);
		assert_int_equal(moved,
				 batch < CAPACITY - (in - out) ? batch : CAPACITY - (in - out));
		in += (uint64_t)moved;
		if (in > out) {
			assert_int_equal(pem_stream__try_pop(stream, &item), 0);
			assert_true(is_item(&item, out++));
		}
		moved = pem_stream__try_pop_many(stream, items, batch / 2);
		assert_int_equal(moved, batch / 2 < in - out ? batch / 2 : in - out);
		for (ptrdiff_t i = 0; i < moved; i++)
			assert_true(is_item(&items[i], out++));
	}
	while (out < in) {
		assert_int_equal(pem_stream__pop(stream, &item), 0);
		assert_true(is_item(&item, out++));
	}
}

static void batches_cross_the_end(void **state)
{
	struct pem_stream *stream = make(CAPACITY);

	(void)state;
	pass(stream, 1000);
	pem_stream__free(stream);
}

static void counts_wrap(void **state)
{
	static const uint64_t ends[] = {UINT64_C(1) << 32, 0, UINT64_C(1) << 63};
	struct pem_stream *stream = make(CAPACITY);

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		begin_at(stream, ends[i] - 3 * CAPACITY - 1);
		pass(stream, 100);
		assert_true(stream->side[0].count - ends[i] < 100);
	}
	pem_stream__free(stream);
}

static void closed_after_its_items(void **state)
{
	struct pem_stream *stream = make(CAPACITY);
	struct item item = item_of(1), items[CAPACITY];

	(void)state;
	assert_int_equal(pem_stream__push(stream, &item), 0);
	assert_int_equal(pem_stream__push(stream, &item), 0);
	pem_stream__close(stream);
	assert_int_equal(pem_stream__push(stream, &item), -EPIPE);
	assert_int_equal(pem_stream__try_push(stream, &item), -EPIPE);
	assert_int_equal(pem_stream__push_many(stream, items, 2), -EPIPE);
	assert_int_equal(pem_stream__pop(stream, &item), 0);
	assert_int_equal(pem_stream__pop_many(stream, items, CAPACITY), 1);
	assert_int_equal(pem_stream__pop(stream, &item), -EPIPE);
	assert_int_equal(pem_stream__try_pop(stream, &item), -EPIPE);
	assert_int_equal(pem_stream__pop_many(stream, items, 1), -EPIPE);
	pem_stream__close(stream);
	pem_stream__free(stream);
}

static void *pop_one(void *stream)
{
	struct item item;

	return (void *)(intptr_t)pem_stream__pop((struct pem_stream *)stream, &item);
}

static void *push_many(void *stream)
{
	struct item items[2 * CAPACITY] = {{0, 0}};

	return (void *)(intptr_t)pem_stream__push_many((struct pem_stream *)stream, items,
						       2 * CAPACITY);
}

/* Run a thread that sleeps in a queue, close the queue, and return what the thread returned. */
static intptr_t closed_under(void *(*run)(void *), int which)
{
	struct pem_stream *stream = make(CAPACITY);
	pthread_t thread;
	void *returned;

	assert_int_equal(pthread_create(&thread, NULL, run, stream), 0);
	while (!__atomic_load_n(&stream->side[which].waits, __ATOMIC_ACQUIRE))
		sched_yield();
	pem_stream__close(stream);
	assert_int_equal(pthread_join(thread, &returned), 0);
	pem_stream__free(stream);
	return (intptr_t)returned;
}

static void close_ends_waiting(void **state)
{
	(void)state;
	assert_int_equal(closed_under(pop_one, PEM_STREAM_POPS), -EPIPE);
	assert_int_equal(closed_under(push_many, PEM_STREAM_PUSHES), CAPACITY);
}

/* A thread that comes to an end may have moved items before it finds none, and shows itself. */
static void an_end_that_moves(void **state)
{
	struct pem_stream *stream = make(CAPACITY);
	const struct pem_stream_end *end = &stream->entry->consumer;
	pthread_t thread;
	struct item item;

	(void)state;
	assert_int_equal(pem_stream__try_pop(stream, &item), -EAGAIN);
	assert_int_equal(end->threads, 1);
	assert_int_equal(end->before, 0);
	pem_stream__close(stream);
	assert_int_equal(pthread_create(&thread, NULL, pop_one, stream), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(end->threads, 2);
	assert_true(end->before == PEM_STREAM_BEFORE_UNKNOWN);
	pem_stream__free(stream);
}

/* --- two threads --- */

#define ITEMS 40000u

struct load {
	struct pem_stream *stream;
	unsigned batch; /* 0: one item at a time; else batches of 1 to this */
	bool polls;
};

static void *produce(void *arg)
{
	const struct load *load = (const struct load *)arg;
	struct item items[32];
	uint64_t next = 0;
	ptrdiff_t moved;
	size_t count;

	while (next < ITEMS) {
		count = load->batch ? 1 + next % load->batch : 1;
		for (size_t i = 0; i < count; i++)
			items[i] = item_of(next + i);
		if (load->polls)
			moved = pem_stream__try_push_many(load->stream, items, count);
		else if (load->batch)
			moved = pem_stream__push_many(load->stream, items, count);
		else
			moved = !pem_stream__push(load->stream, items);
		if (moved < 0 || (!moved && !load->polls))
			break;
		if (!moved)
			sched_yield();
		next += (uint64_t)moved;
	}
	pem_stream__close(load->stream);
	return (void *)(uintptr_t)next;
}

/* Returns the number of items that came, each in its place. */
static uint64_t consume(const struct load *load)
{
	struct item items[32];
	uint64_t next = 0;
	ptrdiff_t moved;

	for (;;) {
		if (load->polls)
			moved = pem_stream__try_pop_many(load->stream, items, 7);
		else if (load->batch)
			moved = pem_stream__pop_many(load->stream, items, 1 + next % load->batch);
		else
			moved = pem_stream__pop(load->stream, items) ? -EPIPE : 1;
		if (moved < 0)
			return next;
		if (!moved)
			sched_yield();
		for (ptrdiff_t i = 0; i < moved; i++)
			if (!is_item(&items[i], next++))
				return UINT64_MAX;
	}
}

static void nothing_is_lost(size_t capacity, unsigned batch, bool polls)
{
	struct load load = {make(capacity), batch, polls};
	pthread_t thread;
	void *pushed;
	uint64_t came;

	begin_at(load.stream, UINT64_MAX - ITEMS / 2);
	assert_int_equal(pthread_create(&thread, NULL, produce, &load), 0);
	came = consume(&load);
	assert_int_equal(pthread_join(thread, &pushed), 0);
	assert_int_equal((uintptr_t)pushed, came);
	assert_true(came >= ITEMS && came < ITEMS + 32);
	pem_stream__free(load.stream);
}

static void one_by_one(void **state)
{
	(void)state;
	nothing_is_lost(1, 0, false);
	nothing_is_lost(4, 0, false);
	nothing_is_lost(1024, 0, false);
}

static void in_batches(void **state)
{
	(void)state;
	nothing_is_lost(1, 32, false);
	nothing_is_lost(16, 32, false);
	nothing_is_lost(1024, 5, false);
}

static void without_waiting(void **state)
{
	(void)state;
	nothing_is_lost(2, 3, true);
	nothing_is_lost(64, 32, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_and_empty),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(batches_cross_the_end),
		cmocka_unit_test(counts_wrap),
		cmocka_unit_test(closed_after_its_items),
		cmocka_unit_test(close_ends_waiting),
		cmocka_unit_test(an_end_that_moves),
		cmocka_unit_test(one_by_one),
		cmocka_unit_test(in_batches),
		cmocka_unit_test(without_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
