// SPDX-License-Identifier: MIT
/*
 * Arenas of agents/page-size/apply: random requests against a list of what was asked for
 *
 * Not here: which requests come to an arena, threads and fork (tests/e2e/page_size_apply.py).
 */
#include "agents/page-size/apply/arena.h"
#include "agents/page-size/apply/middle.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCKS 600u
#define STEPS 60000u

struct block {
	unsigned char *at;
	size_t size;
	unsigned char mark;
};

struct pages {
	uint64_t granted, most;
	uint64_t random;
	uint64_t refused;
};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Any part of what is asked for, up to what is left. */
static uint64_t grant(void *data, uint64_t bytes)
{
	struct pages *pages = data;
	uint64_t part = random_next(&pages->random) % (bytes / ARENA_CHUNK + 1) * ARENA_CHUNK;

	if (part > pages->most - pages->granted)
		part = pages->most - pages->granted;
	pages->granted += part;
	errno = ENOSYS;
	return part;
}

static uint64_t grant_all(void *data, uint64_t bytes)
{
	struct pages *pages = data;

	pages->granted += bytes;
	return bytes;
}

static void before_release(void *data)
{
	struct pages *pages = data;

	assert_true(pages->granted > 0);
}

static void give_back(void *data, uint64_t bytes)
{
	struct pages *pages = data;

	assert_true(bytes <= pages->granted);
	pages->granted -= bytes;
}

static void refuse(void *data, uint64_t bytes, const char *reason)
{
	struct pages *pages = data;

	assert_non_null(reason);
	pages->refused += bytes;
	give_back(data, bytes);
}

static void open_arena(struct arena *arena, struct pages *pages, uint64_t limit)
{
	struct arena_pages hooks = {.grant = grant,
				    .before_release = before_release,
				    .give_back = give_back,
				    .refuse = refuse,
				    .data = pages};
	/* Addresses that nobody uses. */
	char *room = mmap(NULL, limit + ARENA_CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(room, MAP_FAILED);
	munmap(room, limit + ARENA_CHUNK);
	arena__init(arena, ((uintptr_t)room + ARENA_CHUNK - 1) / ARENA_CHUNK * ARENA_CHUNK, limit,
		    &hooks);
}

static void close_arena(struct arena *arena)
{
	assert_true(arena__check(arena));
	munmap((void *)arena->base, arena__bytes(arena));
	munmap(arena->spans.at, arena->spans.bytes);
	munmap(arena->map.at, arena->map.bytes);
	munmap(arena->chunks.at, arena->chunks.bytes);
}

/* Of the bytes of a block those that are written and compared, whatever its size. */
static size_t step(size_t at)
{
	return at < 64 ? 1 : at < 20000 ? 61 : 1021;
}

static void mark(const struct block *block)
{
	size_t i;

	for (i = 0; i < block->size; i += step(i))
		block->at[i] = block->mark;
}

static void check_marks(const struct block *block, size_t size)
{
	size_t i;

	for (i = 0; i < size; i += step(i))
		assert_int_equal(block->at[i], block->mark);
}

static size_t random_size(uint64_t *random)
{
	uint64_t kind = random_next(random) % 16, r = random_next(random);

	if (kind < 8)
		return r % 600;
	if (kind < 12)
		return r % 20000;
	if (kind < 15)
		return r % 300000;
	return r % (9u << 20);
}

static uint64_t in_use(const struct block *blocks)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < BLOCKS; i++)
		sum += blocks[i].at ? blocks[i].size : 0;
	return sum;
}

static void take(struct arena *arena, struct block *block, uint64_t *random)
{
	size_t size = random_size(random), alignment = 16, i;
	bool zero = random_next(random) % 2;

	if (random_next(random) % 8 == 0)
		alignment = (size_t)16 << random_next(random) % 19; /* up to 4 MiB */
	errno = 0;
	block->at = arena__alloc(arena, size, alignment, zero);
	assert_int_equal(errno, 0);
	if (!block->at)
		return;
	assert_int_equal((uintptr_t)block->at % alignment, 0);
	assert_true(arena__usable(arena, block->at) >= size);
	block->size = arena__usable(arena, block->at);
	for (i = 0; zero && i < size; i += i < 64 || i + 64 > size ? 1 : 61)
		assert_int_equal(block->at[i], 0);
	block->mark = (unsigned char)random_next(random);
	mark(block);
}

static void resize(struct arena *arena, struct block *block, uint64_t *random)
{
	size_t size = random_size(random);

	if (!arena__resize(arena, block->at, size)) {
		assert_int_equal(arena__usable(arena, block->at), block->size);
		check_marks(block, block->size);
		return;
	}
	assert_true(arena__usable(arena, block->at) >= size);
	if (size < block->size)
		block->size = size;
	check_marks(block, block->size);
	block->size = arena__usable(arena, block->at);
	mark(block);
}

static void random_requests(void **state)
{
	struct pages pages = {.most = 40ull * ARENA_CHUNK, .random = 88172645463325252ull};
	struct block *blocks = calloc(BLOCKS, sizeof(*blocks)), *block;
	uint64_t random = 0x2545f4914f6cdd1dull;
	struct arena arena;
	uint32_t i;

	(void)state;
	assert_non_null(blocks);
	open_arena(&arena, &pages, 1ull << 30);
	for (i = 0; i < STEPS; i++) {
		block = &blocks[random_next(&random) % BLOCKS];
		if (!block->at) {
			take(&arena, block, &random);
		} else if (random_next(&random) % 4 == 0) {
			resize(&arena, block, &random);
		} else {
			check_marks(block, block->size);
			arena__free(&arena, block->at);
			assert_int_equal(arena__usable(&arena, block->at), 0);
			block->at = NULL;
		}
		assert_int_equal(arena.large_bytes, pages.granted);
		if (i % 128 == 0) {
			assert_true(arena__check(&arena));
			assert_int_equal(arena.block_bytes, in_use(blocks));
		}
	}
	for (i = 0; i < BLOCKS; i++) {
		if (blocks[i].at) {
			check_marks(&blocks[i], blocks[i].size);
			arena__free(&arena, blocks[i].at);
		}
	}
	close_arena(&arena);
	free(blocks);
}

static void what_is_no_block_stays(void **state)
{
	struct pages pages = {.random = 1};
	struct arena arena;
	char *small, *large;

	(void)state;
	open_arena(&arena, &pages, 1ull << 28);
	small = arena__alloc(&arena, 100, 16, false);
	large = arena__alloc(&arena, 1 << 20, 16, false);
	assert_int_equal(arena__usable(&arena, small + 16), 0);
	assert_int_equal(arena__usable(&arena, large + ARENA_PAGE), 0);
	assert_int_equal(arena__usable(&arena, (char *)arena.base - 1), 0);
	assert_int_equal(arena__usable(&arena, (char *)arena.base + arena__bytes(&arena)), 0);
	arena__free(&arena, small + 16);
	arena__free(&arena, large + ARENA_PAGE);
	assert_int_equal(arena__usable(&arena, small), 112);
	arena__free(&arena, large);
	arena__free(&arena, large);
	arena__free(&arena, small);
	arena__free(&arena, small);
	close_arena(&arena);
}

/* A buffer that grows alone does not move, and one that shrinks leaves room for others. */
static void grows_in_place(void **state)
{
	struct pages pages = {.random = 1};
	struct arena arena;
	char *buffer, *other;
	size_t size;

	(void)state;
	open_arena(&arena, &pages, 1ull << 30);
	buffer = arena__alloc(&arena, 32768, 16, false);
	for (size = 65536; size <= 64u << 20; size *= 2)
		assert_true(arena__resize(&arena, buffer, size));
	assert_true(arena__resize(&arena, buffer, 1 << 20));
	other = arena__alloc(&arena, 1 << 20, 16, false);
	assert_true(other > buffer && other < buffer + (64 << 20));
	assert_false(arena__resize(&arena, buffer, 64u << 20));
	assert_false(arena__resize(&arena, buffer, 2ull << 30));
	close_arena(&arena);
}

/* Memory that is free for good goes back, and its grant with it; it comes back as zeros. */
static void gives_back(void **state)
{
	struct pages pages = {.random = 1};
	struct arena arena;
	unsigned char resident, *block;

	(void)state;
	open_arena(&arena, &pages, 1ull << 30);
	arena.pages.grant = grant_all;
	block = arena__alloc(&arena, 256u << 20, 16, false);
	assert_int_equal(pages.granted, 256u << 20);
	block[200u << 20] = 1;
	arena__free(&arena, block);
	assert_in_range(pages.granted, 0, 72u << 20);
	assert_int_equal(mincore(block + (200u << 20), 4096, &resident), 0);
	assert_int_equal(resident & 1, 0);
	block = arena__alloc(&arena, 256u << 20, 16, true);
	assert_int_equal(block[200u << 20], 0);
	assert_int_equal(pages.granted, 256u << 20);
	arena__disown(&arena);
	assert_int_equal(arena.large_bytes, 0);
	close_arena(&arena);
}

/*
 * Of pages of 64 KiB there are no more than the process may have mappings for, or none if the
 * kernel gives none; what is freed counts no more. Each grant is used or given back.
 */
static void middle_pages_have_a_limit(void **state)
{
	struct pages pages = {.random = 1};
	struct arena arena;
	unsigned char *block;
	uint64_t most = 2 * ARENA_CHUNK;
	uint32_t turn;

	(void)state;
	open_arena(&arena, &pages, 1ull << 30);
	arena.pages.grant = grant_all;
	arena.pages.are_middle = true;
	middle__init(16);
	for (turn = 0; turn < 3; turn++) {
		block = arena__alloc(&arena, 256u << 20, 16, true);
		assert_non_null(block);
		memset(block, 1, 256u << 20);
		assert_int_equal(pages.granted, arena.large_bytes);
		assert_true(!pages.granted || pages.granted == most);
		assert_true(pages.refused > 0);
		arena__free(&arena, block);
		/* More than the slack: the chunks of the block's end are empty. */
		assert_true(arena__check(&arena));
	}
	arena__disown(&arena);
	assert_int_equal(arena.large_bytes, 0);
	middle__release(pages.granted);
	close_arena(&arena);
	/* The next arena finds the same room. */
	pages = (struct pages){.random = 1};
	open_arena(&arena, &pages, 1ull << 30);
	arena.pages.grant = grant_all;
	arena.pages.are_middle = true;
	middle__init(0);
	block = arena__alloc(&arena, 8u << 20, 16, false);
	assert_non_null(block);
	assert_int_equal(pages.granted, 0);
	assert_int_equal(pages.refused, 8u << 20);
	close_arena(&arena);
}

/* Blocks of all classes fill what was filled before, and chunks that were used stay for a while. */
static void room_is_used_again(void **state)
{
	static void *blocks[20000];
	struct pages pages = {.random = 1};
	struct arena arena;
	uint64_t mapped = 0;
	uint32_t turn, i;

	(void)state;
	open_arena(&arena, &pages, 1ull << 30);
	arena.pages.grant = grant_all;
	for (turn = 0; turn < 3; turn++) {
		for (i = 0; i < 20000; i++)
			blocks[i] = arena__alloc(&arena, 1 + i % 1000, 16, false);
		assert_non_null(blocks[19999]);
		if (!turn)
			mapped = arena__bytes(&arena);
		for (i = 0; i < 20000; i++)
			arena__free(&arena, blocks[i * 7919ull % 20000]);
	}
	assert_int_equal(arena__bytes(&arena), mapped);
	assert_int_equal(arena.block_bytes, 0);
	assert_true(pages.granted >= 4 * ARENA_CHUNK);
	close_arena(&arena);
}

static void has_a_limit(void **state)
{
	struct pages pages = {.random = 1};
	struct arena arena;
	void *block;

	(void)state;
	open_arena(&arena, &pages, 8u << 20);
	assert_null(arena__alloc(&arena, (8u << 20) + 1, 16, false));
	assert_null(arena__alloc(&arena, SIZE_MAX, 16, false));
	assert_null(arena__alloc(&arena, 16, 16u << 20, false));
	block = arena__alloc(&arena, 8u << 20, 16, false);
	assert_non_null(block);
	assert_null(arena__alloc(&arena, 1, 16, false));
	arena__free(&arena, block);
	assert_non_null(arena__alloc(&arena, 1, 16, false));
	close_arena(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_requests),
		cmocka_unit_test(what_is_no_block_stays),
		cmocka_unit_test(grows_in_place),
		cmocka_unit_test(gives_back),
		cmocka_unit_test(room_is_used_again),
		cmocka_unit_test(has_a_limit),
		cmocka_unit_test(middle_pages_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
