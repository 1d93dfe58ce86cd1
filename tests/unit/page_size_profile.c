// SPDX-License-Identifier: MIT
/* page_size_profile.c - the reader of profiles (agents/page-size/profile) on right ones */
#include "page_size_profile.h"

static void references_have_sites_and_flags(void **state)
{
	struct page_profile_reference got[8];
	struct page_profile *profile;

	(void)state;
	put_sites();
	BURST(10, 3, BASE, (BASE + 2 * MIB - 1) | PROFILE_STORE, (BASE + 2 * MIB) | PROFILE_CHAINED,
	      BASE - 1, BASE + 4 * MIB);
	put_end(20);
	profile = open_sound();
	assert_int_equal(page_profile__read(profile, got, 8, &error), 5);
	assert_true(got[0].address == BASE && got[1].address == BASE + 2 * MIB - 1);
	assert_true(got[0].site == 0 && got[1].site == 0 && got[2].site == 1);
	assert_true(got[3].site == UINT32_MAX && got[4].site == UINT32_MAX);
	assert_true(got[0].flags == 0 && got[1].flags == 1 && got[2].flags == 2);
	assert_true(got[0].thread == 3 && got[0].starts == 1 && got[1].starts == 0);
	assert_int_equal(page_profile__read(profile, got, 8, &error), 0);
	page_profile__close(profile);
}

static void the_summary_is_of_the_end(void **state)
{
	const struct page_profile_summary *summary;
	struct page_profile *profile;

	(void)state;
	put_sites();
	BURST(10, 1, BASE, BASE);
	put_end(20);
	profile = open_sound();
	summary = page_profile__summary(profile);
	assert_int_equal(summary->source, PROFILE_VALGRIND);
	assert_true(summary->references == 20 && summary->kept == 2);
	assert_true(summary->instructions == 99 && summary->lost == 3 && summary->stopped_at == 5 &&
		    summary->forks == 7);
	assert_false(summary->cut);
	page_profile__close(profile);
}

static void sites_have_totals_and_objects_paths(void **state)
{
	const struct page_profile_site *sites;
	struct page_profile *profile;
	uint32_t count;

	(void)state;
	put_sites();
	BURST(0, 1, BASE, BASE | PROFILE_CHAINED, (BASE + 2 * MIB) | PROFILE_STORE);
	put_end(3);
	profile = open_sound();
	sites = page_profile__sites(profile, &count);
	assert_int_equal(count, 2);
	assert_true(sites[0].references == 2 && sites[0].chained == 1);
	assert_true(sites[1].references == 1 && sites[1].chained == 0);
	assert_true(sites[0].bytes == 2 * MIB && sites[1].requested == 200);
	assert_int_equal(sites[1].site.frames[0].offset, 0x20);
	assert_string_equal(page_profile__path(profile, 7), "/bin/app");
	assert_null(page_profile__path(profile, 8));
	page_profile__close(profile);
}

static void ranges_hold_from_where_they_stand(void **state)
{
	struct page_profile_reference got[8];
	struct page_profile *profile;

	(void)state;
	put_sites();
	BURST(0, 1, BASE);
	put_range(BASE, BASE + MIB, 1, 0);
	put_range(BASE + MIB, BASE + MIB + 4096, UINT32_MAX, 0);
	BURST(1, 1, BASE, BASE + MIB, BASE + MIB + 4096, BASE + MIB + 4095);
	put_end(5);
	profile = open_sound();
	assert_int_equal(page_profile__read(profile, got, 8, &error), 5);
	assert_true(got[0].site == 0 && got[1].site == 1);
	assert_true(got[2].site == UINT32_MAX && got[3].site == 0 && got[4].site == UINT32_MAX);
	page_profile__close(profile);
}

static void ranges_may_share_a_page(void **state)
{
	struct page_profile_reference got[4];
	struct page_profile *profile;

	(void)state;
	put_sites();
	put_range(BASE + 16, BASE + 32, 1, 0);
	BURST(0, 1, BASE + 15, BASE + 16, BASE + 31, BASE + 32);
	put_end(4);
	profile = open_sound();
	assert_int_equal(page_profile__read(profile, got, 4, &error), 4);
	assert_true(got[0].site == 0 && got[1].site == 1);
	assert_true(got[2].site == 1 && got[3].site == 0);
	page_profile__close(profile);
}

static void bytes_are_the_most_at_one_time(void **state)
{
	const struct page_profile_site *sites;
	struct page_profile *profile;
	uint32_t count;

	(void)state;
	put_head();
	put_site(1);
	put_range(BASE, BASE + 4 * MIB, 0, 3 * MIB);
	put_range(BASE, BASE + 2 * MIB, UINT32_MAX, 0);
	put_range(BASE + 8 * MIB, BASE + 9 * MIB, 0, MIB);
	put_range(BASE + 8 * MIB, BASE + 9 * MIB, 0, MIB / 2);
	put_end(0);
	profile = open_sound();
	sites = page_profile__sites(profile, &count);
	assert_true(sites[0].bytes == 4 * MIB);
	assert_true(sites[0].requested == 3 * MIB);
	page_profile__close(profile);
}

static void a_gap_or_another_thread_starts_a_burst(void **state)
{
	struct page_profile_reference got[4];
	struct page_profile *profile;

	(void)state;
	put_sites();
	BURST(0, 1, BASE);
	BURST(1, 1, BASE); /* goes on */
	BURST(2, 2, BASE);
	BURST(9, 2, BASE);
	put_end(10);
	profile = open_sound();
	assert_int_equal(page_profile__read(profile, got, 4, &error), 4);
	assert_true(got[0].starts && !got[1].starts && got[2].starts && got[3].starts);
	page_profile__close(profile);
}

static void rewind_reads_the_same_again(void **state)
{
	struct page_profile_reference first[4], again[4];
	struct page_profile *profile;

	(void)state;
	put_sites();
	BURST(0, 1, BASE, BASE + 2 * MIB);
	put_range(BASE, BASE + MIB, 1, 0);
	BURST(2, 1, BASE, BASE + MIB);
	put_end(4);
	profile = open_sound();
	assert_int_equal(page_profile__read(profile, first, 1, &error), 1);
	assert_int_equal(page_profile__read(profile, first + 1, 3, &error), 3);
	page_profile__rewind(profile);
	assert_int_equal(page_profile__read(profile, again, 4, &error), 4);
	assert_memory_equal(first, again, sizeof(first));
	page_profile__close(profile);
}

static void more_references_than_a_block_are_read(void **state)
{
	enum { COUNT = 100000 };
	struct {
		struct profile_burst burst;
		uint64_t references[COUNT];
	} *chunk = calloc(1, sizeof(*chunk));
	struct page_profile_reference *got = calloc(COUNT, sizeof(*got));
	struct page_profile *profile;
	uint64_t i;

	(void)state;
	put_sites();
	for (i = 0; i < COUNT; i++)
		chunk->references[i] = BASE + i * 32;
	put_chunk(PROFILE_BURST, chunk, sizeof(*chunk));
	put_end(COUNT);
	profile = open_sound();
	assert_int_equal(page_profile__read(profile, got, COUNT, &error), COUNT);
	for (i = 0; i < COUNT; i++) {
		assert_true(got[i].address == BASE + i * 32);
		assert_int_equal(got[i].site, i * 32 < 2 * MIB ? 0 : 1);
	}
	page_profile__close(profile);
	free(chunk);
	free(got);
}

static void many_sites_are_read(void **state)
{
	const struct page_profile_site *sites;
	struct page_profile *profile;
	uint32_t count, i;

	(void)state;
	put_head();
	for (i = 0; i < 1000; i++)
		put_site(i);
	put_end(0);
	profile = open_sound();
	sites = page_profile__sites(profile, &count);
	assert_int_equal(count, 1000);
	for (i = 0; i < 1000; i++)
		assert_int_equal(sites[i].site.frames[0].offset, i);
	page_profile__close(profile);
}

static void calls_are_of_their_site(void **state)
{
	const struct profile_calls calls = {.site = 1, .calls = 77};
	struct page_profile *profile;
	uint32_t count;

	(void)state;
	put_head();
	put_site(0x10);
	put_site(0x20);
	put_chunk(PROFILE_CALLS, &calls, sizeof(calls));
	put_end(0);
	profile = open_sound();
	assert_int_equal(page_profile__sites(profile, &count)[0].calls, 0);
	assert_int_equal(page_profile__sites(profile, &count)[1].calls, 77);
	page_profile__close(profile);
}

static void what_is_kept_in_memory_is_bounded(void **state)
{
	enum { RANGES = 131072 };
	uint32_t i;

	(void)state;
	put_head();
	for (i = 0; i <= PROFILE_SITES_MAX; i++)
		put_site(i);
	expect_damaged("too many sites");
	put_head();
	put_site(1);
	for (i = 0; i <= RANGES; i++)
		put_range(BASE + 2 * i, BASE + 2 * i + 1, 0, 0);
	expect_damaged("too many ranges");
}

/* --- the map of ranges, against an array --- */

static uint64_t removed;

static void count_removed(const struct profile_range *piece, void *arg)
{
	(void)arg;
	assert_true(piece->start < piece->end);
	removed += piece->end - piece->start;
}

static void ranges_are_as_an_array_of_sites(void **state)
{
	enum { SPACE = 40, STEPS = 20000 };
	struct profile_range entries[SPACE + RANGES_SPARE], range = {0};
	struct ranges ranges = {.entries = entries, .capacity = SPACE + RANGES_SPARE};
	uint32_t sites[SPACE], i, step, old;
	size_t at;

	(void)state;
	memset(sites, 0xff, sizeof(sites));
	srand(1);
	for (step = 0; step < STEPS; step++) {
		range.start = rand() % SPACE;
		range.end = range.start + rand() % (SPACE + 1 - range.start);
		range.site = rand() % 4 ? (uint32_t)rand() % 3 : RANGES_NO_SITE;
		removed = old = 0;
		ranges__set(&ranges, &range, count_removed, NULL);
		for (i = range.start; i < range.end; i++) {
			old += sites[i] != RANGES_NO_SITE;
			sites[i] = range.site;
		}
		assert_int_equal(removed, old);
		assert_true(ranges.count <= SPACE);
		for (i = 0; i < SPACE; i++) {
			at = ranges__above(&ranges, i);
			if (at < ranges.count && entries[at].start <= i)
				assert_int_equal(entries[at].site, sites[i]);
			else
				assert_int_equal(sites[i], RANGES_NO_SITE);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(references_have_sites_and_flags),
		cmocka_unit_test(the_summary_is_of_the_end),
		cmocka_unit_test(sites_have_totals_and_objects_paths),
		cmocka_unit_test(ranges_hold_from_where_they_stand),
		cmocka_unit_test(ranges_may_share_a_page),
		cmocka_unit_test(bytes_are_the_most_at_one_time),
		cmocka_unit_test(a_gap_or_another_thread_starts_a_burst),
		cmocka_unit_test(rewind_reads_the_same_again),
		cmocka_unit_test(more_references_than_a_block_are_read),
		cmocka_unit_test(many_sites_are_read),
		cmocka_unit_test(calls_are_of_their_site),
		cmocka_unit_test(what_is_kept_in_memory_is_bounded),
		cmocka_unit_test(ranges_are_as_an_array_of_sites),
	};

	return run_with_file(tests, sizeof(tests) / sizeof(tests[0]));
}
