// SPDX-License-Identifier: MIT
/* page_size_damage.c - the reader of profiles (agents/page-size/profile) on cut and hostile ones */
#include "page_size_profile.h"

/* --- profiles that were cut --- */

static void a_cut_profile_is_read_up_to_there(void **state)
{
	struct page_profile_reference got[8];
	struct page_profile *profile;
	size_t whole, bytes;
	int64_t n;

	(void)state;
	put_sites();
	BURST(0, 1, BASE, BASE, BASE);
	whole = used;
	BURST(3, 1, BASE, BASE);
	put_end(5);
	for (bytes = sizeof(struct profile_head); bytes < used; bytes++) {
		profile = open_bytes(bytes);
		assert_non_null(profile);
		assert_true(page_profile__summary(profile)->cut);
		n = page_profile__read(profile, got, 8, &error);
		assert_int_equal(n, page_profile__summary(profile)->kept);
		assert_int_equal(n, page_profile__summary(profile)->references);
		if (bytes >= whole && n != 3)
			assert_int_equal(n, 5);
		page_profile__close(profile);
	}
}

/* --- hostile ones --- */

static void other_files_are_no_profiles(void **state)
{
	(void)state;
	used = 0;
	expect_damaged("no profile");
	put_head();
	file[0] ^= 1;
	expect_damaged("no profile");
	put_head();
	used--;
	expect_damaged("no profile");
	put_head();
	file[8] = 9; /* source */
	expect_damaged("no profile");
	assert_null(page_profile__open("/nowhere/at all", &error));
	assert_int_equal(errno, ENOENT);
	assert_null(page_profile__open("/dev/null", NULL));
	assert_int_equal(errno, EBADMSG);
}

static void chunks_of_wrong_kind_or_length_are_refused(void **state)
{
	static const struct {
		uint32_t kind, bytes;
	} wrong[] = {
		{0, 8},
		{6, 8},
		{UINT32_MAX, 8},
		{PROFILE_OBJECT, sizeof(struct profile_object)},
		{PROFILE_OBJECT, sizeof(struct profile_object) + 4097},
		{PROFILE_SITE, sizeof(struct profile_site) - 8},
		{PROFILE_SITE, sizeof(struct profile_site) + 8},
		{PROFILE_RANGE, sizeof(struct profile_range) - 8},
		{PROFILE_BURST, sizeof(struct profile_burst) - 8},
		{PROFILE_BURST, UINT32_MAX},
		{PROFILE_BURST, sizeof(struct profile_burst) + 8 * PROFILE_BURST_MAX + 8},
		{PROFILE_END, sizeof(struct profile_end) - 1},
	};
	static const char zeros[8192];
	struct profile_chunk head;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		put_sites();
		head = (struct profile_chunk){wrong[i].kind, wrong[i].bytes};
		put(&head, sizeof(head));
		put(zeros, sizeof(zeros));
		expect_damaged("kind and length");
	}
	put_sites();
	put_chunk(PROFILE_BURST, zeros, sizeof(struct profile_burst) + 4);
	expect_damaged("length");
}

static void bad_contents_are_refused(void **state)
{
	struct profile_site site = {.site = {.kind = PAGE_SITE_HEAP, .frame_count = 5}};
	char object[sizeof(struct profile_object) + 4] = "";

	(void)state;
	put_head();
	put_chunk(PROFILE_SITE, &site, sizeof(site));
	expect_damaged("frames");
	site.site.frame_count = 0;
	put_head();
	put_chunk(PROFILE_SITE, &site, sizeof(site));
	expect_damaged("frames");
	site.site = (struct page_site){.kind = PAGE_SITE_STACK, .frame_count = 1};
	put_head();
	put_chunk(PROFILE_SITE, &site, sizeof(site));
	expect_damaged("frames");
	site.site = (struct page_site){.kind = 4};
	put_head();
	put_chunk(PROFILE_SITE, &site, sizeof(site));
	expect_damaged("kind");
	memset(object + sizeof(object) - 4, 'x', 4);
	put_head();
	put_chunk(PROFILE_OBJECT, object, sizeof(object));
	expect_damaged("path");
	object[sizeof(object) - 2] = '\0';
	object[sizeof(object) - 1] = '\0';
	put_head();
	put_chunk(PROFILE_OBJECT, object, sizeof(object));
	expect_damaged("path");
}

static void bad_ranges_are_refused(void **state)
{
	(void)state;
	put_sites();
	put_range(BASE, BASE, 0, 0);
	expect_damaged("range");
	put_sites();
	put_range(BASE + 1, BASE, 0, 0);
	expect_damaged("range");
	put_sites();
	put_range(BASE, PROFILE_ADDRESS + 1, 0, 0);
	expect_damaged("range");
	put_sites();
	put_range(BASE, BASE + 1, 2, 0);
	expect_damaged("site");
	/* On the second reading, too, a range comes behind its site. */
	put_head();
	put_range(BASE, BASE + 1, 0, 0);
	put_site(1);
	expect_damaged("site");
}

static void calls_of_no_site_are_damage(void **state)
{
	const struct profile_calls calls = {.site = 1, .calls = 77};

	(void)state;
	put_head();
	put_site(0x10);
	put_chunk(PROFILE_CALLS, &calls, sizeof(calls));
	put_end(0);
	expect_damaged("calls of a site that there is not");
}

static void bursts_come_in_order(void **state)
{
	(void)state;
	put_sites();
	BURST(0, 1, BASE, BASE);
	BURST(1, 1, BASE);
	put_end(9);
	expect_damaged("before");
	put_sites();
	BURST(UINT64_MAX, 1, BASE);
	expect_damaged("before");
	put_sites();
	BURST(0, 1, BASE, BASE);
	put_end(1);
	expect_damaged("fewer");
	put_sites();
	put_end(0);
	put_end(0);
	expect_damaged("behind");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_profile_is_read_up_to_there),
		cmocka_unit_test(other_files_are_no_profiles),
		cmocka_unit_test(chunks_of_wrong_kind_or_length_are_refused),
		cmocka_unit_test(bad_contents_are_refused),
		cmocka_unit_test(bad_ranges_are_refused),
		cmocka_unit_test(calls_of_no_site_are_damage),
		cmocka_unit_test(bursts_come_in_order),
	};

	return run_with_file(tests, sizeof(tests) / sizeof(tests[0]));
}
