// SPDX-License-Identifier: MIT
/*
 * ring_pool.c - a pool's header is believed only as far as it was checked
 */
#include "ring_fixture.h"

#include <errno.h>

/* Does open_ring refuse the header after this change of one member? */
#define REFUSES(member, value)                                                                     \
	do {                                                                                       \
		pool_format(pool.header, 0, 4);                                                    \
		pool.header->member = (value);                                                     \
		assert_int_equal(pem_pool__open_ring(pool.header, pool.bytes, &ring), -EINVAL);    \
	} while (0)

static void nonsense_is_refused(void **state)
{
	struct pool pool = pool_make(0, 4);
	struct pem_ring ring;

	(void)state;
	REFUSES(magic, 0);
	REFUSES(abi_version, PEM_ABI_VERSION + 1);
	REFUSES(flags, 8);
	REFUSES(chunk_bytes, 0);
	REFUSES(chunk_bytes, 4095);
	REFUSES(chunk_bytes, 6000);
	REFUSES(chunk_bytes, 1u << 31);
	REFUSES(chunk_bytes, 8192); /* more than the mapping has */
	REFUSES(chunk_count, 0);
	REFUSES(chunk_count, 5);
	REFUSES(chunk_count, 0xffffffffu);
	REFUSES(lane_count, 0);
	REFUSES(lane_count, 0xffffffffu);
	REFUSES(lane_count, LANES * 64);
	REFUSES(event_capacity, 0);
	REFUSES(event_capacity, 65);
	REFUSES(event_capacity, 0xffffffc0u);
	pool_free(&pool);
}

static void short_mapping_is_refused(void **state)
{
	struct pool pool = pool_make(0, 4);
	struct pem_ring ring;

	(void)state;
	assert_int_equal(pem_pool__open_ring(pool.header, pool.bytes - 1, &ring), -EINVAL);
	assert_int_equal(pem_pool__open_ring(pool.header, sizeof(struct pem_pool_header), &ring),
			 -EINVAL);
	assert_int_equal(pem_pool__open_ring(pool.header, 0, &ring), -EINVAL);
	pool_free(&pool);
}

static void offsets_in_the_file_are_not_followed(void **state)
{
	struct pool pool = pool_make(0, 4);
	struct pem_ring ring;

	(void)state;
	pool.header->chunk_state_offset = pool.header->lanes_offset = pool.header->cells_offset =
		pool.header->chunks_offset = pool.header->event_id_offset = ~0ull;
	pool.header->total_bytes = 0;
	assert_int_equal(pem_pool__open_ring(pool.header, pool.bytes, &ring), 0);
	assert_ptr_equal(ring.chunk_state, pool.ring.chunk_state);
	assert_ptr_equal(ring.lanes, pool.ring.lanes);
	assert_ptr_equal(ring.cells, pool.ring.cells);
	assert_ptr_equal(ring.chunks, pool.ring.chunks);
	pool_free(&pool);
}

static void parts_do_not_overlap(void **state)
{
	struct pool pool = pool_make(0, 4);
	const uint8_t *base = (const uint8_t *)pool.header;
	const struct pem_ring *r = &pool.ring;

	(void)state;
	assert_true((const uint8_t *)r->chunk_state >= base + sizeof(*pool.header));
	assert_true((const uint8_t *)pem_pool__event_ids(r) >=
		    (const uint8_t *)(r->chunk_state + r->chunk_count));
	assert_true((const uint8_t *)r->lanes >=
		    (const uint8_t *)(pem_pool__event_ids(r) + r->event_capacity));
	assert_true((const uint8_t *)r->cells >= (const uint8_t *)(r->lanes + r->lane_count));
	assert_true(r->chunks >=
		    (const uint8_t *)(r->cells + (uint64_t)r->lane_count * r->event_capacity));
	assert_true(r->chunks + (uint64_t)r->chunk_count * r->chunk_bytes <= base + pool.bytes);
	assert_int_equal((uintptr_t)r->lanes % 64, 0);
	assert_int_equal((uintptr_t)r->cells % 64, 0);
	assert_int_equal((uintptr_t)r->chunks % 4096, 0);
	pool_free(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(short_mapping_is_refused),
		cmocka_unit_test(offsets_in_the_file_are_not_followed),
		cmocka_unit_test(parts_do_not_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
