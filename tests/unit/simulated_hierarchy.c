// SPDX-License-Identifier: MIT
/* simulated_hierarchy.c - what references find in caches and TLBs, by sequences worked out by hand
 */
#include "sources/simulated/tool/hierarchy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BOTH (PEM_HARDWARE_CODE | PEM_HARDWARE_DATA)

static struct hierarchy h;
static void *memory;

static struct pem_hardware machine(void)
{
	return (struct pem_hardware){.magic = PEM_HARDWARE_MAGIC,
				     .version = PEM_HARDWARE_VERSION,
				     .cache_count = 1,
				     .page_shift = 12,
				     .memory_cycles = 100,
				     .walk_cycles = 30};
}

static struct pem_hardware_part part(uint32_t level, uint32_t serves, uint32_t sets, uint32_t ways,
				     uint32_t shift)
{
	return (struct pem_hardware_part){.level = level,
					  .serves = serves,
					  .sets = sets,
					  .ways = ways,
					  .shift = shift,
					  .cycles = 10};
}

static void begin(const struct pem_hardware *hardware)
{
	assert_true(pem_hardware__check(hardware));
	free(memory);
	memory = calloc(1, hierarchy__bytes(hardware));
	assert_non_null(memory);
	hierarchy__init(&h, hardware, memory);
}

/* Load from lines of 64 bytes, and compare misses, as "m" and "-", with what was worked out. */
static void loads(const char *lines, const char *expected)
{
	uint64_t before;
	size_t i;

	assert_int_equal(strlen(lines), strlen(expected));
	for (i = 0; lines[i]; i++) {
		before = h.counts[PEM_SIMULATED_L1_DATA_MISSES];
		hierarchy__load(&h, (uint64_t)(lines[i] - 'a') * 64, 8);
		if ((h.counts[PEM_SIMULATED_L1_DATA_MISSES] != before) != (expected[i] == 'm'))
			fail_msg("load %zu of %s", i, lines);
	}
}

static void the_one_used_longest_ago_goes(void **state)
{
	struct pem_hardware hardware = machine();

	(void)state;
	hardware.caches[0] = part(1, BOTH, 1, 4, 6);
	begin(&hardware);
	/* a is used again before e comes: b goes, then c. */
	loads("abcdaebacd", "mmmm-mm-mm");
}

static void a_tree_is_only_near_that(void **state)
{
	struct pem_hardware hardware = machine();

	(void)state;
	hardware.caches[0] = part(1, BOTH, 1, 4, 6);
	hardware.caches[0].replacement = PEM_HARDWARE_PLRU;
	begin(&hardware);
	/* After abcd and a: the root points to c and d, there d was last: c goes, and b stays. */
	loads("abcdaebc", "mmmm-m-m");
}

static void sets_are_apart(void **state)
{
	struct pem_hardware hardware = machine();

	(void)state;
	hardware.caches[0] = part(1, BOTH, 2, 1, 6);
	begin(&hardware);
	/* a and c are of set 0, b of set 1. */
	loads("abcba", "mmm-m");
}

static void a_level_asks_the_next(void **state)
{
	struct pem_hardware hardware = machine();

	(void)state;
	hardware.cache_count = 2;
	hardware.caches[0] = part(1, BOTH, 1, 1, 6);
	hardware.caches[1] = part(2, BOTH, 1, 2, 6);
	begin(&hardware);
	loads("abaacb", "mmm-mm");
	/* The second level: a, b miss; a hits; c misses and b goes; b misses. */
	assert_int_equal(h.counts[PEM_SIMULATED_L2_ACCESSES], 5);
	assert_int_equal(h.counts[PEM_SIMULATED_L2_MISSES], 4);
	assert_int_equal(h.counts[PEM_SIMULATED_LAST_LEVEL_MISSES], 4);
	assert_int_equal(h.counts[PEM_SIMULATED_CYCLES], 4 * 100 + 10);
	assert_int_equal(h.counts[PEM_SIMULATED_LOADS], 6);
}

static void nothing_is_taken_out_of_a_level(void **state)
{
	struct pem_hardware hardware = machine();

	(void)state;
	hardware.cache_count = 2;
	hardware.caches[0] = part(1, BOTH, 1, 2, 6);
	hardware.caches[1] = part(2, BOTH, 1, 1, 6);
	begin(&hardware);
	/* The second level lost a to b, and the first still has it. */
	loads("aba", "mm-");
}

static void two_lines_are_one_access(void **state)
{
	struct pem_hardware hardware = machine();

	(void)state;
	hardware.cache_count = 2;
	hardware.caches[0] = part(1, BOTH, 1, 4, 6);
	hardware.caches[1] = part(2, BOTH, 1, 8, 6);
	begin(&hardware);
	hierarchy__load(&h, 60, 8);
	assert_int_equal(h.counts[PEM_SIMULATED_L1_DATA_MISSES], 1);
	loads("ab", "--");
	hierarchy__store(&h, 124, 8); /* b is there, c is not */
	assert_int_equal(h.counts[PEM_SIMULATED_L1_DATA_MISSES], 2);
	assert_int_equal(h.counts[PEM_SIMULATED_STORES], 1);
	hierarchy__load(&h, 64 - 8, 8); /* ends with the line */
	assert_int_equal(h.counts[PEM_SIMULATED_L1_DATA_MISSES], 2);
}

static void code_and_data_are_apart(void **state)
{
	struct pem_hardware hardware = machine();

	(void)state;
	hardware.cache_count = 3;
	hardware.caches[0] = part(1, PEM_HARDWARE_CODE, 1, 1, 6);
	hardware.caches[1] = part(1, PEM_HARDWARE_DATA, 1, 1, 6);
	hardware.caches[2] = part(2, BOTH, 1, 4, 6);
	begin(&hardware);
	hierarchy__fetch(&h, 0, 4);
	loads("ab", "mm");
	hierarchy__fetch(&h, 4, 4);
	assert_int_equal(h.counts[PEM_SIMULATED_L1_CODE_MISSES], 1);
	assert_int_equal(h.counts[PEM_SIMULATED_L2_ACCESSES], 3);
	assert_int_equal(h.counts[PEM_SIMULATED_L2_MISSES], 2);
}

static void translations_are_looked_up(void **state)
{
	struct pem_hardware hardware = machine();
	uint64_t page;

	(void)state;
	hardware.caches[0] = part(1, BOTH, 1, 4, 6);
	hardware.tlb_count = 2;
	hardware.tlbs[0] = part(1, PEM_HARDWARE_DATA, 1, 2, 12);
	hardware.tlbs[1] = part(2, PEM_HARDWARE_DATA, 1, 4, 12);
	begin(&hardware);
	for (page = 0; page < 4; page++)
		hierarchy__load(&h, page << 12, 8);
	hierarchy__load(&h, 0, 8); /* the second TLB has it */
	hierarchy__load(&h, 8, 8); /* and now the first */
	assert_int_equal(h.counts[PEM_SIMULATED_DATA_TLB_MISSES], 5);
	assert_int_equal(h.counts[PEM_SIMULATED_L2_TLB_MISSES], 4);
	assert_int_equal(h.counts[PEM_SIMULATED_PAGE_WALKS], 4);
	assert_int_equal(h.counts[PEM_SIMULATED_PAGE_WALK_CYCLES], 4 * 30);
	hierarchy__fetch(&h, 1 << 20, 4); /* no TLB serves code */
	assert_int_equal(h.counts[PEM_SIMULATED_PAGE_WALKS], 4);
}

static void wrong_machines_are_refused(void **state)
{
	struct pem_hardware hardware = machine();

	(void)state;
	hardware.caches[0] = part(1, BOTH, 2, 4, 6);
	assert_true(pem_hardware__check(&hardware));
	hardware.caches[0].sets = 3;
	assert_false(pem_hardware__check(&hardware));
	hardware.caches[0].sets = 0;
	assert_false(pem_hardware__check(&hardware));
	hardware.caches[0] = part(1, BOTH, 1u << 22, 2, 6); /* too much memory */
	assert_false(pem_hardware__check(&hardware));
	hardware.caches[0] = part(4, BOTH, 2, 4, 6);
	assert_false(pem_hardware__check(&hardware));
	hardware.caches[0] = part(1, BOTH, 2, 3, 6);
	hardware.caches[0].replacement = PEM_HARDWARE_PLRU;
	assert_false(pem_hardware__check(&hardware));
	hardware.caches[0] = part(1, BOTH, 2, 4, 64);
	assert_false(pem_hardware__check(&hardware));
	hardware.caches[0] = part(1, BOTH, 2, 4, 6);
	hardware.cache_count = PEM_HARDWARE_CACHES_MAX + 1;
	assert_false(pem_hardware__check(&hardware));
	hardware.cache_count = 1;
	hardware.tlb_count = 1;
	hardware.tlbs[0] = part(1, BOTH, 1, 4, 21); /* of other pages than the program's */
	assert_false(pem_hardware__check(&hardware));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_one_used_longest_ago_goes),
		cmocka_unit_test(a_tree_is_only_near_that),
		cmocka_unit_test(sets_are_apart),
		cmocka_unit_test(a_level_asks_the_next),
		cmocka_unit_test(nothing_is_taken_out_of_a_level),
		cmocka_unit_test(two_lines_are_one_access),
		cmocka_unit_test(code_and_data_are_apart),
		cmocka_unit_test(translations_are_looked_up),
		cmocka_unit_test(wrong_machines_are_refused),
	};
	int result = cmocka_run_group_tests(tests, NULL, NULL);

	free(memory);
	return result;
}
