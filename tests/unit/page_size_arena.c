// SPDX-License-Identifier: MIT
/*
 * Arenas of agents/page-size/apply: random requests against a list of what was asked for
 *
 * Not here: which requests come to an arena, threads and fork (tests/e2e/page_size_apply.py).
 */
#include "agents/page-size/apply/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t released_bytes;

static void released(void *data, uintptr_t start, uintptr_t end)
{
	assert_null(data);
	assert_true(start < end && start % ARENA_PAGE == 0 && end % ARENA_PAGE == 0);
	released_bytes += end - start;
	errno = ENOSYS;
}

static void open_arena(struct arena *arena, uint64_t limit)
{
	struct arena_pages hooks = {.released = released, .colour = 5};
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
	unsigned char *moved;

	if (!arena__resize(arena, block->at, size)) {
		moved = arena__move(arena, block->at, size);
		if (moved) {
			assert_int_equal(arena__usable(arena, block->at), 0);
			block->at = moved;
			check_marks(block, block->size);
			block->size = arena__usable(arena, block->at);
			assert_true(block->size >= size);
			mark(block);
			return;
		}
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
	struct block *blocks = calloc(BLOCKS, sizeof(*blocks)), *block;
	uint64_t random = 0x2545f4914f6cdd1dull;
	struct arena arena;
	uint32_t i;

	(void)state;
	assert_non_null(blocks);
	open_arena(&arena, 1ull << 30);
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
	struct arena arena;
	char *small, *large;

	(void)state;
	open_arena(&arena, 1ull << 28);
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
	struct arena arena;
	char *buffer, *other;
	size_t size;

	(void)state;
	open_arena(&arena, 1ull << 30);
	buffer = arena__alloc(&arena, 131072, 16, false);
	for (size = 262144; size <= 64u << 20; size *= 2)
		assert_true(arena__resize(&arena, buffer, size));
	assert_true(arena__resize(&arena, buffer, 1 << 20));
	other = arena__alloc(&arena, 1 << 20, 16, false);
	assert_true(other > buffer && other < buffer + (64 << 20));
	assert_false(arena__resize(&arena, buffer, 64u << 20));
	assert_false(arena__resize(&arena, buffer, 2ull << 30));
	close_arena(&arena);
}

static uint64_t resident_pages(const struct arena *arena)
{
	static uint64_t entries[ARENA_CHUNK_PAGES];
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t page = arena->base / ARENA_PAGE, found = 0;
	uint32_t i, j;

	assert_true(fd >= 0);
	for (i = 0; i < arena->mapped; i += ARENA_CHUNK_PAGES) {
		assert_int_equal(pread(fd, entries, sizeof(entries), (off_t)((page + i) * 8)),
				 sizeof(entries));
		for (j = 0; j < ARENA_CHUNK_PAGES; j++)
			found += entries[j] >> 62 != 0; /* in memory or swapped */
	}
	close(fd);
	return found;
}

/* Memory that is free goes back, addresses included; it comes back as zeros. */
static void gives_back(void **state)
{
	struct arena arena;
	unsigned char *block;
	uint64_t was;

	(void)state;
	open_arena(&arena, 1ull << 30);
	block = arena__alloc(&arena, 64u << 20, 16, false);
	memset(block, 1, 64u << 20);
	was = released_bytes;
	arena__free(&arena, block);
	assert_true(released_bytes - was >= 64u << 20);
	assert_int_equal(resident_pages(&arena), 0);
	assert_int_equal(msync(block, ARENA_PAGE, MS_ASYNC), -1); /* nothing is mapped there */
	block = arena__alloc(&arena, 64u << 20, 16, true);
	assert_int_equal(block[20u << 20], 0);
	close_arena(&arena);
}

/*
 * After blocks were freed, in any order, an arena has the pages of those that are left, and at most
 * 1 MiB, a 32nd and 512 KiB of empty spans more.
 */
static void has_what_its_blocks_need(void **state)
{
	enum { COUNT = 1024, BYTES = 100000, LEFT = (BYTES + ARENA_PAGE - 1) / ARENA_PAGE };
	static unsigned char *blocks[COUNT];
	uint64_t random = 77, swap, most;
	struct arena arena;
	uint32_t order, i, left;
	unsigned char *block;

	(void)state;
	open_arena(&arena, 1ull << 30);
	for (order = 0; order < 3; order++) {
		for (i = 0; i < COUNT; i++) {
			blocks[i] = arena__alloc(&arena, BYTES, 16, false);
			memset(blocks[i], 1, BYTES);
		}
		for (i = 0; order == 2 && i < COUNT; i++) {
			swap = random_next(&random) % COUNT;
			block = blocks[i];
			blocks[i] = blocks[swap];
			blocks[swap] = block;
		}
		for (i = 0; i < COUNT; i++) {
			arena__free(&arena, blocks[order == 1 ? COUNT - 1 - i : i]);
			left = (COUNT - 1 - i) * LEFT;
			most = left + left / 32 + 256 + 128 + COUNT;
			if (i % 128 == 127)
				assert_in_range(resident_pages(&arena), left, most);
		}
	}
	close_arena(&arena);
}

/* A large block that can't grow where it is takes its memory along. */
static void moves_with_its_memory(void **state)
{
	struct arena arena;
	unsigned char *block, *moved;

	(void)state;
	open_arena(&arena, 1ull << 30);
	block = arena__alloc(&arena, 30u << 20, 16, false);
	memset(block, 7, 30u << 20);
	assert_non_null(arena__alloc(&arena, 1u << 20, 16, false));
	assert_false(arena__resize(&arena, block, 50u << 20));
	moved = arena__move(&arena, block, 50u << 20);
	assert_non_null(moved);
	assert_int_equal((uintptr_t)moved % ARENA_CHUNK, (uintptr_t)block % ARENA_CHUNK);
	assert_int_equal(moved[(30u << 20) - 1], 7);
	assert_int_equal(moved[30u << 20], 0);
	assert_in_range(resident_pages(&arena), 30u << 8, (30u << 8) + 8);
	close_arena(&arena);
}

static uint32_t count_mappings(const struct arena *arena)
{
	FILE *file = fopen("/proc/self/maps", "r");
	uint64_t start;
	uint32_t count = 0;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		start = strtoull(line, NULL, 16);
		if (start >= arena->base && start < arena->base + arena->limit)
			count++;
	}
	fclose(file);
	return count;
}

/* Holes between blocks part mappings, and a process may have few. Their memory goes all the same.
 */
static void has_few_mappings(void **state)
{
	enum { COUNT = 14000, PAGES = 17, BYTES = PAGES * ARENA_PAGE };
	static unsigned char *blocks[COUNT];
	struct arena arena;
	uint32_t turn, i;

	(void)state;
	open_arena(&arena, 1ull << 30);
	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < COUNT; i++) {
			if (turn && i % 2 == 0)
				continue;
			blocks[i] = arena__alloc(&arena, BYTES, 16, true);
			assert_non_null(blocks[i]);
			assert_int_equal(blocks[i][7], 0);
			blocks[i][7] = 1;
		}
		for (i = 1; i < COUNT; i += 2)
			arena__free(&arena, blocks[i]);
		assert_in_range(count_mappings(&arena), 1000, 4200);
		/* A page of each block that is left, and of idle memory. */
		assert_in_range(resident_pages(&arena), COUNT / 2,
				COUNT / 2 + (256 + COUNT / 2 * PAGES / 32) / PAGES + 1);
		assert_true(arena__check(&arena));
	}
	for (i = 0; i < COUNT; i += 2)
		arena__free(&arena, blocks[i]);
	assert_int_equal(arena.block_bytes, 0);
	close_arena(&arena);
}

/* Blocks of all classes fill what was filled before, and chunks that were used stay for a while. */
static void room_is_used_again(void **state)
{
	static void *blocks[20000];
	struct arena arena;
	uint64_t mapped = 0;
	uint32_t turn, i;

	(void)state;
	open_arena(&arena, 1ull << 30);
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
	close_arena(&arena);
}

static void has_a_limit(void **state)
{
	struct arena arena;
	void *block;

	(void)state;
	open_arena(&arena, 8u << 20);
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
		cmocka_unit_test(has_what_its_blocks_need),
		cmocka_unit_test(moves_with_its_memory),
		cmocka_unit_test(has_few_mappings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
