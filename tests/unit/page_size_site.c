// SPDX-License-Identifier: MIT
/* page_size_site.c - the text of an allocation site (agents/page-size/sites/site.h) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "agents/page-size/sites/site.h"

#include <string.h>

static void expect_text(const struct page_site *site, const char *text)
{
	struct page_site back;
	char written[PAGE_SITE_TEXT];

	memset(&back, 0xff, sizeof(back));
	assert_int_equal(page_site__write(site, written), strlen(text));
	assert_string_equal(written, text);
	assert_int_equal(page_site__read(written, &back), strlen(text));
	assert_memory_equal(&back, site, sizeof(back));
}

static void texts_are_read_back(void **state)
{
	const struct page_site sites[] = {
		{.kind = PAGE_SITE_HEAP,
		 .frame_count = 1,
		 .frames = {{0x1b4ae9f0c2d35578, 0x1a2b}}},
		{.kind = PAGE_SITE_MAP, .frame_count = 2, .frames = {{1, 0}, {2, 0xffffffff}}},
		{.kind = PAGE_SITE_DATA, .frame_count = 1, .frames = {{UINT64_MAX, 0}}},
		{.kind = PAGE_SITE_STACK},
		{.kind = PAGE_SITE_RESERVED, .frame_count = 1, .frames = {{3, 4}}},
	};

	(void)state;
	expect_text(&sites[0], "heap 1b4ae9f0c2d35578+1a2b");
	expect_text(&sites[1], "map 0000000000000001+0 0000000000000002+ffffffff");
	expect_text(&sites[2], "data ffffffffffffffff");
	expect_text(&sites[3], "stack");
	expect_text(&sites[4], "reserved 0000000000000003+4");
}

static void the_longest_text_fits(void **state)
{
	struct page_site site = {.kind = PAGE_SITE_RESERVED, .frame_count = PAGE_FRAMES_MAX};
	char text[PAGE_SITE_TEXT];
	unsigned i;

	(void)state;
	for (i = 0; i < PAGE_FRAMES_MAX; i++)
		site.frames[i] = (struct page_frame){UINT64_MAX, UINT32_MAX};
	assert_true(page_site__write(&site, text) < sizeof(text));
	assert_int_equal(page_site__read(text, &site), strlen(text));
}

static void reading_ends_at_a_tab_or_a_newline(void **state)
{
	struct page_site site;

	(void)state;
	assert_int_equal(page_site__read("stack\tx", &site), 5);
	assert_int_equal(page_site__read("data 0000000000000007\nheap", &site), 21);
	assert_int_equal(site.frames[0].object, 7);
}

static void texts_that_are_none_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"heap",
		"heap ",
		"heap 1b4ae9f0c2d35578",
		"heap 1b4ae9f0c2d35578+",
		"heap 1b4ae9f0c2d3557+1",
		"heap 1b4ae9f0c2d355781+1",
		"heap 1B4AE9F0C2D35578+1",
		"heap 1b4ae9f0c2d35578+123456789",
		"heap 1b4ae9f0c2d35578+1 ",
		"heap  1b4ae9f0c2d35578+1",
		"heaps 1b4ae9f0c2d35578+1",
		"data 1b4ae9f0c2d35578+1",
		"data 1b4ae9f0c2d35578 1b4ae9f0c2d35578",
		"data",
		"stack 1b4ae9f0c2d35578",
		("heap 0000000000000001+1 0000000000000001+1 0000000000000001+1 "
		 "0000000000000001+1 0000000000000001+1"),
	};
	struct page_site site = {.kind = 77};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(page_site__read(texts[i], &site), 0);
		assert_int_equal(site.kind, 77);
	}
}

static void objects_are_numbered_by_build_id_or_headers(void **state)
{
	static const unsigned char id[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

	(void)state;
	assert_int_equal(page_object__of_build_id(id, 9), 0x0102030405060708);
	assert_int_equal(page_object__of_build_id(id, 2), 0x0102000000000000);
	/* The test vector of FNV-1a's authors: "foobar". */
	assert_int_equal(page_object__of_headers("foo", 3, "bar", 3), 0x85944171f73967e8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_read_back),
		cmocka_unit_test(the_longest_text_fits),
		cmocka_unit_test(reading_ends_at_a_tab_or_a_newline),
		cmocka_unit_test(texts_that_are_none_are_refused),
		cmocka_unit_test(objects_are_numbered_by_build_id_or_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
