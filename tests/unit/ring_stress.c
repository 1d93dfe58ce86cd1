// SPDX-License-Identifier: MIT
/*
 * ring_stress.c - several producers and a consumer on one pool: every record is found once, or
 * counted as lost
 */
#include "ring_fixture.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 4u
#define RECORDS 200000u
#define CHUNKS 24u
#define ID 0x77u
#define RECORD_BYTES 20u

struct body {
	uint32_t thread;
	uint32_t number; /* from 0 */
	uint32_t check;
};

static struct pool pool;
static uint8_t found[THREADS][RECORDS]; /* how often */
static uint64_t found_count;
static uint32_t producers_left;

static uint32_t check_of(uint32_t thread, uint32_t number)
{
	return (thread << 24 ^ number) * 2654435761u;
}

static void *produce(void *arg)
{
	uint32_t thread = (uint32_t)(uintptr_t)arg, n;
	struct pem_writer w = writer_make(&pool.ring, thread + 1);

	for (n = 0; n < RECORDS; n++) {
		struct body body = {thread, n, check_of(thread, n)};

		if (writer_put(&w, n, ID, 0, &body, RECORD_BYTES))
			continue;
		pem_ring_retire(&pool.ring, &w);
		if (writer_claim(&pool.ring, &w, n) >= 0 &&
		    writer_put(&w, n, ID, 0, &body, RECORD_BYTES))
			continue;
		w.cells[0].produced++;
		w.cells[0].discarded++;
		pool.ring.lanes[w.lane_index].discarded++;
		/* two cores may serve four producers and a consumer */
		if (n % 64 == 0)
			sched_yield();
	}
	pem_ring_retire(&pool.ring, &w);
	__atomic_fetch_sub(&producers_left, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Records of a private copy of a chunk. */
static void read_records(const uint8_t *copy, uint32_t lane)
{
	const struct pem_packet *packet = (const struct pem_packet *)copy;
	size_t at, end = packet->content_size / 8;
	struct body body;

	assert_true(end <= CHUNK && packet->content_size % 8 == 0);
	for (at = PEM_PACKET_HEADER_BYTES; at < end; at += (RECORD_BYTES + 7) & ~7u) {
		assert_true(at + RECORD_BYTES <= end);
		assert_int_equal(((const struct pem_record_header *)(copy + at))->event_id, ID);
		memcpy(&body, copy + at + sizeof(struct pem_record_header), sizeof(body));
		assert_int_equal(body.thread + 1, lane);
		assert_true(body.number < RECORDS);
		assert_int_equal(body.check, check_of(body.thread, body.number));
		found[body.thread][body.number]++;
		found_count++;
	}
}

/* Take every full chunk once. */
static unsigned consume(void)
{
	uint8_t copy[CHUNK];
	uint32_t i, word, lane;
	unsigned taken = 0;

	for (i = 0; i < CHUNKS; i++) {
		word = __atomic_load_n(&pool.ring.chunk_state[i], __ATOMIC_ACQUIRE); /* D */
		lane = PEM_CHUNK_LANE(word);
		if (PEM_CHUNK_STATE(word) != PEM_CHUNK_FULL ||
		    !__atomic_compare_exchange_n(&pool.ring.chunk_state[i], &word,
						 PEM_CHUNK_WORD(PEM_CHUNK_READING, lane), 0,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		memcpy(copy, chunk_at(&pool.ring, i), CHUNK);
		__atomic_store_n(&pool.ring.chunk_state[i], PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0),
				 __ATOMIC_RELEASE); /* E */
		read_records(copy, lane);
		taken++;
	}
	return taken;
}

/* Returns records lost, as the lanes and cells count them. */
static uint64_t run(uint32_t flags)
{
	uint64_t produced = 0, discarded = 0, lane_discarded = 0, overwritten = 0;
	pthread_t thread[THREADS];
	uintptr_t i;
	uint32_t n;

	memset(found, 0, sizeof(found));
	found_count = 0;
	pool = pool_make(flags, CHUNKS);
	producers_left = THREADS;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, produce, (void *)i), 0);
	while (__atomic_load_n(&producers_left, __ATOMIC_ACQUIRE)) {
		if (!consume())
			sched_yield();
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	consume();
	for (i = 0; i < THREADS; i++) {
		for (n = 0; n < RECORDS; n++)
			assert_true(found[i][n] <= 1);
		produced += pool.ring.cells[(i + 1) * EVENTS].produced;
		discarded += pool.ring.cells[(i + 1) * EVENTS].discarded;
		lane_discarded += pool.ring.lanes[i + 1].discarded;
		overwritten += pool.ring.lanes[i + 1].overwritten;
	}
	for (n = 0; n < CHUNKS; n++)
		assert_int_equal(pool.ring.chunk_state[n], PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0));
	assert_int_equal(produced, THREADS * RECORDS);
	assert_int_equal(discarded, lane_discarded);
	assert_int_equal(found_count + discarded + overwritten, produced);
	assert_true(found_count > 0);
	if (!(flags & PEM_POOL_OVERWRITE))
		assert_int_equal(overwritten, 0);
	pool_free(&pool);
	return discarded + overwritten;
}

static void discarding(void **state)
{
	(void)state;
	run(0);
}

static void overwriting(void **state)
{
	(void)state;
	run(PEM_POOL_OVERWRITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(discarding),
		cmocka_unit_test(overwriting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
