/* SPDX-License-Identifier: MIT */
/*
 * shared_text.c - what is UTF-8, what a terminal obeys, and how far a word is from another
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shared/text.h"

/* The sequence of a code point, as RFC 3629 has it. */
static unsigned encode(uint32_t point, uint8_t *to)
{
	unsigned n = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4, i;
	static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (i = n - 1; i > 0; i--, point >>= 6)
		to[i] = (uint8_t)(0x80 | (point & 0x3f));
	to[0] = (uint8_t)(first[n] | point);
	return n;
}

static void code_points_are_read(void **state)
{
	uint8_t text[4];
	uint32_t point;
	unsigned n;

	(void)state;
	for (point = 0; point <= 0x10ffff; point++) {
		n = encode(point, text);
		if (pem_utf8_bytes(text, n) != (point >= 0xd800 && point < 0xe000 ? 0 : n))
			fail_msg("U+%04X is read as %u bytes", point, pem_utf8_bytes(text, n));
		if (n > 1 && pem_utf8_bytes(text, n - 1) != 0)
			fail_msg("U+%04X is read beyond what is left", point);
		if (pem_utf8_point(text, n) != point)
			fail_msg("U+%04X is taken for another", point);
	}
}

static void controls_are_known(void **state)
{
	static const uint32_t ends[] = {0, 0x1f, 0x7f, 0x80, 0x9f, 0x2028, 0x202e, 0x2066, 0x2069};
	uint32_t point, count = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		assert_true(pem_is_control(ends[i]));
	for (point = 0; point <= 0x10ffff; point++)
		count += (uint32_t)pem_is_control(point);
	assert_int_equal(count, 0x20 + 1 + 0x20 + 7 + 4);
}

/* Of all texts of two bytes and two continuations, as many are UTF-8 as there are code points. */
static void nothing_else_is_read(void **state)
{
	unsigned counts[5] = {0}, first, second;
	uint8_t text[4] = {0, 0, 0x80, 0x80};

	(void)state;
	for (first = 0; first < 256; first++) {
		for (second = 0; second < 256; second++) {
			text[0] = (uint8_t)first;
			text[1] = (uint8_t)second;
			counts[pem_utf8_bytes(text, 4)]++;
		}
	}
	assert_int_equal(counts[1], 0x80 * 256);
	assert_int_equal(counts[2], 0x780);
	assert_int_equal(counts[3], (0x10000 - 0x800 - 0x800) / 64);
	assert_int_equal(counts[4], 0x100000 / 64 / 64);
}

static void sequences_that_end_are_none(void **state)
{
	static const char *const cut[] = {"\xc3",         "\xc3x",         "\xe2\x82",
					  "\xe2\x82x",    "\xf0\x9f\x98",  "\xf0\x9f\x98x",
					  "\xe2\0\x82\0", "\xf0\x9f\0\x80"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
		assert_int_equal(pem_utf8_bytes(cut[i], PEM_UTF8_BYTES_MAX), 0);
	assert_int_equal(pem_utf8_bytes("", PEM_UTF8_BYTES_MAX), 1);
}

static void distances(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned edits;
	} pairs[] = {
		{"", "", 0},
		{"record", "record", 0},
		{"Record", "rECORD", 0},
		{"recrod", "record", 1}, /* exchanged, */
		{"ba", "ab", 1},
		{"rcord", "record", 1}, /* left out, */
		{"reecord", "record", 1}, /* put in, */
		{"recard", "record", 1}, /* replaced */
		{"", "abc", 3},
		{"kitten", "sitting", 3},
		{"ca", "abc", 3}, /* nothing is put between what was exchanged */
		{"a_b", "a?b", 1}, /* no letters, which differ as cases do */
		{"a@b", "a`b", 1},
		{"a[b", "a{b", 1},
		{"\xc3\xa4", "\xc3\x84", 1},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		assert_int_equal(pem_edit_distance(pairs[i].a, pairs[i].b), pairs[i].edits);
		assert_int_equal(pem_edit_distance(pairs[i].b, pairs[i].a), pairs[i].edits);
	}
	assert_int_equal(pem_edit_distance_of("counts", 5, "count2", 5), 0);
}

static void long_words_are_far(void **state)
{
	char a[PEM_EDIT_DISTANCE_MAX + 2], b[PEM_EDIT_DISTANCE_MAX + 2];

	(void)state;
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	assert_int_equal(pem_edit_distance_of(a, 128, a, 128), 0);
	assert_int_equal(pem_edit_distance_of(a, 128, b, 128), 128);
	assert_int_equal(pem_edit_distance_of(a, 129, a, 128), 128);
	assert_int_equal(pem_edit_distance_of(a, 128, a, 129), 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_points_are_read),
		cmocka_unit_test(nothing_else_is_read),
		cmocka_unit_test(controls_are_known),
		cmocka_unit_test(sequences_that_end_are_none),
		cmocka_unit_test(distances),
		cmocka_unit_test(long_words_are_far),
	};

	return cmocka_run_group_tests_name("shared_text", tests, NULL, NULL);
}
