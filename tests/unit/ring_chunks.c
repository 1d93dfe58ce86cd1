// SPDX-License-Identifier: MIT
/*
 * ring_chunks.c - what ring.h promises of one chunk, one lane and one pool at a time;
 * ring_stress.c: of many at once
 */
#include "ring_fixture.h"

#define ID 0x1234u

static const uint8_t body[CHUNK];

static void content_ends_at_last_byte(void **state)
{
	struct pool pool = pool_make(0, 4);
	struct pem_writer w = writer_make(&pool.ring, 1);
	struct pem_packet *packet;

	(void)state;
	writer_claim(&pool.ring, &w, 100);
	packet = chunk_at(&pool.ring, w.chunk_index);
	assert_int_equal(packet->content_size, PEM_PACKET_HEADER_BYTES * 8);
	assert_true(writer_put(&w, 100, ID, 0, body, 21));
	assert_int_equal(packet->content_size, (PEM_PACKET_HEADER_BYTES + 21) * 8);
	assert_int_equal((uintptr_t)w.cursor % 8, 0);
	assert_true(writer_put(&w, 101, ID, 0, body, 9));
	assert_int_equal(packet->content_size, (PEM_PACKET_HEADER_BYTES + 24 + 9) * 8);
	assert_int_equal(w.cells[0].produced, 2);
	pool_free(&pool);
}

static void no_room_no_record(void **state)
{
	struct pool pool = pool_make(0, 4);
	struct pem_writer w = writer_make(&pool.ring, 1), none = {0};

	(void)state;
	assert_null(pem_ring_reserve(&none, 5, 8));
	writer_claim(&pool.ring, &w, 100);
	assert_null(pem_ring_reserve(&w, 100, CHUNK - PEM_PACKET_HEADER_BYTES + 1));
	assert_non_null(pem_ring_reserve(&w, 100, CHUNK - PEM_PACKET_HEADER_BYTES));
	assert_true(writer_put(&w, 100, ID, 0, body, CHUNK - PEM_PACKET_HEADER_BYTES));
	assert_null(pem_ring_reserve(&w, 100, 8));
	assert_int_equal(chunk_at(&pool.ring, 0)->content_size, CHUNK * 8);
	pool_free(&pool);
}

static void long_gap_closes_chunk(void **state)
{
	struct pool pool = pool_make(0, 4);
	struct pem_writer w = writer_make(&pool.ring, 1);

	(void)state;
	writer_claim(&pool.ring, &w, 1000);
	assert_non_null(pem_ring_reserve(&w, 1000ull + UINT32_MAX, 16));
	assert_null(pem_ring_reserve(&w, 1000 + (1ull << 32), 16));
	assert_true(writer_put(&w, 1000ull + UINT32_MAX, ID, 0, body, 16));
	/* The distance is that of neighbours, not from the chunk's beginning. */
	assert_non_null(pem_ring_reserve(&w, 1000 + 2ull * UINT32_MAX, 16));
	assert_null(pem_ring_reserve(&w, 1001 + 2ull * UINT32_MAX, 16));
	pool_free(&pool);
}

static void retire_says_all(void **state)
{
	struct pool pool = pool_make(0, 4);
	struct pem_writer w = writer_make(&pool.ring, 3);
	const struct pem_packet *packet;

	(void)state;
	writer_claim(&pool.ring, &w, 50);
	packet = chunk_at(&pool.ring, 0);
	assert_int_equal(pool.ring.chunk_state[0], PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 3));
	writer_put(&w, 60, ID, 0, body, 16);
	writer_put(&w, 70, ID, 0, body, 16);
	pem_ring_retire(&pool.ring, &w);
	assert_int_equal(pool.ring.chunk_state[0], PEM_CHUNK_WORD(PEM_CHUNK_FULL, 3));
	assert_int_equal(packet->magic, PEM_CTF_MAGIC);
	assert_int_equal(packet->timestamp_begin, 50);
	assert_int_equal(packet->timestamp_end, 70);
	assert_int_equal(packet->record_count, 2);
	assert_int_equal(packet->pid, 77);
	assert_int_equal(packet->tid, 1003);
	assert_null(pem_ring_reserve(&w, 71, 16));
	pool.ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0);
	pem_ring_retire(&pool.ring, &w); /* holds none: nothing happens */
	assert_int_equal(pool.ring.chunk_state[0], PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0));
	pool_free(&pool);
}

static void packets_of_a_lane_are_numbered(void **state)
{
	struct pool pool = pool_make(0, 4);
	struct pem_writer w = writer_make(&pool.ring, 1), other = writer_make(&pool.ring, 2);

	(void)state;
	writer_claim(&pool.ring, &w, 1);
	writer_claim(&pool.ring, &other, 1);
	pem_ring_retire(&pool.ring, &w);
	pool.ring.lanes[1].discarded = 9;
	writer_claim(&pool.ring, &w, 2);
	assert_int_equal(chunk_at(&pool.ring, 0)->packet_seq_num, 0);
	assert_int_equal(chunk_at(&pool.ring, 1)->packet_seq_num, 0);
	assert_int_equal(chunk_at(&pool.ring, 2)->packet_seq_num, 1);
	assert_int_equal(chunk_at(&pool.ring, 0)->events_discarded, 0);
	assert_int_equal(chunk_at(&pool.ring, 2)->events_discarded, 9);
	pool_free(&pool);
}

static void lowest_free_first(void **state)
{
	struct pool pool = pool_make(0, 4);
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(pem_ring_find(&pool.ring), i);
	assert_int_equal(pem_ring_find(&pool.ring), -1);
	/* A consumer frees two, and sets the hint to the lower, as drain.c does. */
	pool.ring.chunk_state[3] = pool.ring.chunk_state[1] = PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0);
	pool.header->chunk_hint = 1;
	assert_int_equal(pem_ring_find(&pool.ring), 1);
	assert_int_equal(pem_ring_find(&pool.ring), 3);
	assert_int_equal(pem_ring_find(&pool.ring), -1);
	pem_ring_give_back(&pool.ring, 0);
	assert_int_equal(pem_ring_find(&pool.ring), 0);
	pool_free(&pool);
}

/* As a probe looks for one: few at a time, and after as many times as it takes, at all. */
static void a_search_of_some_goes_on_where_it_ended(void **state)
{
	uint32_t overwrite, i;

	(void)state;
	for (overwrite = 0; overwrite < 2; overwrite++) {
		struct pool pool = pool_make(overwrite ? PEM_POOL_OVERWRITE : 0, 8);

		for (i = 0; i < 8; i++)
			assert_int_equal(pem_ring_find_among(&pool.ring, 3), i);
		pool.ring.chunk_state[5] = PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0);
		pool.header->chunk_hint = 0;
		assert_int_equal(pem_ring_find_among(&pool.ring, 3), -1);
		assert_int_equal(pem_ring_find_among(&pool.ring, 2), -1);
		assert_int_equal(pem_ring_find_among(&pool.ring, 3), 5);
		/* Round the end. */
		pool.ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_FREE, 0);
		pool.header->chunk_hint = 6;
		assert_int_equal(pem_ring_find_among(&pool.ring, 2), -1);
		assert_int_equal(pem_ring_find_among(&pool.ring, 2), 0);
		/* More than there are is all of them. */
		pool.header->chunk_hint = 0;
		if (overwrite)
			for (i = 0; i < 8; i++)
				pool.ring.chunk_state[i] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 1);
		assert_int_equal(pem_ring_find_among(&pool.ring, 13), -1);
		assert_int_equal(pool.header->chunk_hint, overwrite ? 8 : 0);
		pool_free(&pool);
	}
}

static void hint_may_be_anything(void **state)
{
	struct pool pool = pool_make(0, 3);

	(void)state;
	pool.header->chunk_hint = 0xffffffffu;
	assert_in_range(pem_ring_find(&pool.ring), 0, 2);
	assert_in_range(pem_ring_find(&pool.ring), 0, 2);
	assert_in_range(pem_ring_find(&pool.ring), 0, 2);
	assert_int_equal(pem_ring_find(&pool.ring), -1);
	pool_free(&pool);
}

static void discard_pool_keeps_full_chunks(void **state)
{
	struct pool pool = pool_make(0, 2);
	struct pem_writer w = writer_make(&pool.ring, 1);

	(void)state;
	assert_int_equal(writer_claim(&pool.ring, &w, 1), 0);
	pem_ring_retire(&pool.ring, &w);
	assert_int_equal(writer_claim(&pool.ring, &w, 1), 1);
	pem_ring_retire(&pool.ring, &w);
	assert_int_equal(writer_claim(&pool.ring, &w, 1), -1);
	assert_int_equal(pool.ring.lanes[1].overwritten, 0);
	pool_free(&pool);
}

static void overwrite_takes_the_oldest_and_counts(void **state)
{
	struct pool pool = pool_make(PEM_POOL_OVERWRITE, 3);
	struct pem_writer a = writer_make(&pool.ring, 1), b = writer_make(&pool.ring, 2);
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(writer_claim(&pool.ring, &a, 10), i);
		while (a.record_count < (uint64_t)i + 5)
			assert_true(writer_put(&a, 10, ID, 0, body, 16));
		pem_ring_retire(&pool.ring, &a);
	}
	assert_int_equal(writer_claim(&pool.ring, &b, 20), 0);
	assert_int_equal(pool.ring.lanes[1].overwritten, 5);
	assert_int_equal(writer_claim(&pool.ring, &a, 20), 1);
	assert_int_equal(pool.ring.lanes[1].overwritten, 5 + 6);
	assert_int_equal(pool.ring.lanes[2].overwritten, 0);
	pool_free(&pool);
}

static void overwrite_leaves_what_is_in_use(void **state)
{
	struct pool pool = pool_make(PEM_POOL_OVERWRITE, 3);
	struct pem_writer w = writer_make(&pool.ring, 1);

	(void)state;
	pool.ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 2);
	pool.ring.chunk_state[1] = PEM_CHUNK_WORD(PEM_CHUNK_READING, 2);
	assert_int_equal(writer_claim(&pool.ring, &w, 1), 2);
	assert_int_equal(pem_ring_find(&pool.ring), -1);
	assert_int_equal(pool.ring.chunk_state[0], PEM_CHUNK_WORD(PEM_CHUNK_OWNED, 2));
	assert_int_equal(pool.ring.chunk_state[1], PEM_CHUNK_WORD(PEM_CHUNK_READING, 2));
	pool_free(&pool);
}

static void overwrite_of_a_lane_out_of_range(void **state)
{
	struct pool pool = pool_make(PEM_POOL_OVERWRITE, 2);
	uint32_t i;

	(void)state;
	pool.ring.chunk_state[0] = PEM_CHUNK_WORD(PEM_CHUNK_FULL, LANES);
	chunk_at(&pool.ring, 0)->record_count = 5;
	assert_int_equal(pem_ring_find(&pool.ring), 0);
	for (i = 0; i < LANES; i++)
		assert_int_equal(pool.ring.lanes[i].overwritten, 0);
	pool_free(&pool);
}

static void cell_keeps_sum_min_and_max(void **state)
{
	static const int64_t values[] = {5, -3, 0, INT64_MAX, INT64_MIN, 12};
	struct pem_cell cell = {.tag = 7};
	int64_t sum = 0;
	size_t i;

	(void)state;
	for (i = 0; i < 6; i++) {
		pem_cell_add(&cell, 8, (uint64_t)values[i], pem_stat_key_signed(values[i]));
		sum = (int64_t)((uint64_t)sum + (uint64_t)values[i]);
	}
	assert_int_equal(cell.tag, 8);
	assert_int_equal(cell.stat_begin, 6);
	assert_int_equal(cell.stat_end, 6);
	assert_true((int64_t)cell.sum == sum);
	assert_true(cell.min == pem_stat_key_signed(INT64_MIN));
	assert_true(cell.max == pem_stat_key_signed(INT64_MAX));
}

static void new_epoch_starts_anew(void **state)
{
	struct pem_cell cell = {0};

	(void)state;
	pem_cell_add(&cell, 1, 100, 100);
	pem_cell_add(&cell, 2, 7, 7);
	assert_int_equal(cell.stat_end, 1);
	assert_int_equal(cell.stat_begin, 1);
	assert_int_equal(cell.sum, 7);
	assert_int_equal(cell.min, 7);
	assert_int_equal(cell.max, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_ends_at_last_byte),
		cmocka_unit_test(no_room_no_record),
		cmocka_unit_test(long_gap_closes_chunk),
		cmocka_unit_test(retire_says_all),
		cmocka_unit_test(packets_of_a_lane_are_numbered),
		cmocka_unit_test(lowest_free_first),
		cmocka_unit_test(a_search_of_some_goes_on_where_it_ended),
		cmocka_unit_test(hint_may_be_anything),
		cmocka_unit_test(discard_pool_keeps_full_chunks),
		cmocka_unit_test(overwrite_takes_the_oldest_and_counts),
		cmocka_unit_test(overwrite_leaves_what_is_in_use),
		cmocka_unit_test(overwrite_of_a_lane_out_of_range),
		cmocka_unit_test(cell_keeps_sum_min_and_max),
		cmocka_unit_test(new_epoch_starts_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
