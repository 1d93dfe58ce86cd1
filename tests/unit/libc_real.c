// SPDX-License-Identifier: MIT
/*
 * libc_real.c - finding the functions behind libpem-libc, and the memory it has before they are found
 *
 * Only real.c is linked: this program's own malloc is not stood in front of.
 */
#include "libc/libc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void first_calls_find_the_real_functions(void **state)
{
	void *(*before)(size_t) = PEM_LIBC_REAL(malloc);
	void *block;

	(void)state;
	errno = 77;
	block = PEM_LIBC_REAL(malloc)(100);
	assert_non_null(block);
	assert_int_equal(errno, 77);
	assert_false(pem_libc_arena__has(block));
	assert_ptr_not_equal(PEM_LIBC_REAL(malloc), before);
	PEM_LIBC_REAL(free)(block);
}

static void arena_blocks_are_apart_aligned_and_zero(void **state)
{
	static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 1000};
	uint8_t *last_end = NULL, *block;
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block = pem_libc_arena__alloc(sizes[i]);
		assert_non_null(block);
		assert_true(pem_libc_arena__has(block));
		assert_int_equal((uintptr_t)block % 16, 0);
		assert_int_equal(pem_libc_arena__size(block), sizes[i]);
		assert_true(block >= last_end);
		for (k = 0; k < sizes[i]; k++)
			assert_int_equal(block[k], 0);
		memset(block, 0xff, sizes[i]);
		last_end = block + sizes[i];
	}
}

static void free_keeps_arena_blocks_away_from_the_real_one(void **state)
{
	void *block = pem_libc_arena__alloc(10);

	(void)state;
	PEM_LIBC_REAL(free)(block); /* the C library would abort */
	block = malloc(10);
	PEM_LIBC_REAL(free)(block);
}

static void realloc_moves_an_arena_block_out(void **state)
{
	char *block = pem_libc_arena__alloc(6), *moved;

	(void)state;
	memcpy(block, "hello", 6);
	moved = PEM_LIBC_REAL(realloc)(block, 1000);
	assert_non_null(moved);
	assert_false(pem_libc_arena__has(moved));
	assert_string_equal(moved, "hello");
	moved = PEM_LIBC_REAL(realloc)(moved, 2000);
	assert_string_equal(moved, "hello");
	PEM_LIBC_REAL(free)(moved);
	block = pem_libc_arena__alloc(6);
	memcpy(block, "hello", 6);
	moved = PEM_LIBC_REAL(realloc)(block, 2);
	assert_memory_equal(moved, "he", 2);
	PEM_LIBC_REAL(free)(moved);
}

static void a_used_up_arena_says_so(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; pem_libc_arena__alloc(1000); i++)
		assert_in_range(i, 0, 1000);
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(pem_libc_arena__alloc(SIZE_MAX));
	assert_int_equal(errno, ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_calls_find_the_real_functions),
		cmocka_unit_test(arena_blocks_are_apart_aligned_and_zero),
		cmocka_unit_test(free_keeps_arena_blocks_away_from_the_real_one),
		cmocka_unit_test(realloc_moves_an_arena_block_out),
		cmocka_unit_test(a_used_up_arena_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
