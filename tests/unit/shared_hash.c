/* SPDX-License-Identifier: MIT */
/*
 * shared_hash.c - keys that were chosen to share an entry of a table do not
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shared/hash.h"

#define KEYS 1024u
#define ENTRIES 2048u

/* How many of the keys share the entry that most share. */
static unsigned most_in_an_entry(const uint64_t *keys, uint64_t multiplier)
{
	unsigned counts[ENTRIES] = {0}, most = 0, i;

	for (i = 0; i < KEYS; i++) {
		size_t at = pem_hash__index(keys[i], multiplier, ENTRIES);

		assert_true(at < ENTRIES);
		counts[at]++;
		most = counts[at] > most ? counts[at] : most;
	}
	return most;
}

/*
 * The least of four tables: one may be unlucky with a probability of 1 in 1,000, all four in 10^12.
 */
static unsigned most_in_a_table(const uint64_t *keys)
{
	unsigned least = KEYS, most, i;

	for (i = 0; i < 4; i++) {
		most = most_in_an_entry(keys, pem_hash__multiplier());
		least = most < least ? most : least;
	}
	return least;
}

static void keys_that_differ_in_high_bits_are_spread(void **state)
{
	uint64_t keys[KEYS];
	unsigned shift, i;

	(void)state;
	for (shift = 0; shift <= 54; shift++) {
		for (i = 0; i < KEYS; i++)
			keys[i] = (uint64_t)i << shift;
		assert_true(most_in_a_table(keys) <= 64);
	}
}

static void keys_that_a_known_multiplier_puts_together_are_spread(void **state)
{
	uint64_t known = pem_hash__multiplier(), inverse = known, keys[KEYS];
	unsigned i;

	(void)state;
	for (i = 0; i < 5; i++) /* Newton's iteration: each step doubles the bits that are right */
		inverse *= 2 - known * inverse;
	for (i = 0; i < KEYS; i++)
		keys[i] = inverse * i;
	assert_int_equal(most_in_an_entry(keys, known), KEYS);
	assert_true(most_in_a_table(keys) <= 64);
}

static void joined_numbers_depend_on_their_order(void **state)
{
	uint64_t multiplier = pem_hash__multiplier(), a, b;

	(void)state;
	a = pem_hash__join(pem_hash__join(0, multiplier, 1), multiplier, 2);
	b = pem_hash__join(pem_hash__join(0, multiplier, 2), multiplier, 1);
	assert_int_not_equal(a, b);
}

static void texts_have_hashes_of_their_own(void **state)
{
	static const char *const texts[] = {
		"",
		"a",
		"b",
		"ab",
		"abcdefg",
		"abcdefgh",
		"abcdefghi",
		"bbcdefgh",
		"abcdefgi",
		"abcdefghabcdefgh",
		"abcdefghabcdefgi",
		"/usr/include/linux/a.h",
		"/usr/include/linux/b.h",
	};
	size_t i, k, n = sizeof(texts) / sizeof(texts[0]);

	(void)state;
	for (i = 0; i < n; i++)
		for (k = 0; k < i; k++)
			assert_int_not_equal(pem_hash__text(PEM_HASH_START, texts[i]),
					     pem_hash__text(PEM_HASH_START, texts[k]));
	assert_int_not_equal(pem_hash__text(pem_hash__text(PEM_HASH_START, "ab"), "c"),
			     pem_hash__text(pem_hash__text(PEM_HASH_START, "a"), "bc"));
	assert_int_not_equal(pem_hash__text(pem_hash__text(PEM_HASH_START, "a"), ""),
			     pem_hash__text(PEM_HASH_START, "a"));
}

#define COLLIDING_PAIRS 8u

/* The text whose i-th pair of words differs from "aaaaaaaabbbbbbbb" if bit i is set. */
static void write_colliding(char *text, unsigned bits)
{
	unsigned i;

	for (i = 0; i < COLLIDING_PAIRS; i++, text += 16) {
		memcpy(text, "aaaaaaaabbbbbbbb", 16);
		if (bits >> i & 1) {
			text[7] = (char)(text[7] ^ 0x80); /* the highest bit stays, whatever the */
			text[11] = (char)(text[11] ^ 0x80); /* multiplier is, and one moves down */
			text[15] = (char)(text[15] ^ 0x80);
		}
	}
	*text = '\0';
}

static void texts_that_were_chosen_to_have_one_hash_do_not(void **state)
{
	uint64_t multiplier = pem_hash__multiplier(), hashes[1u << COLLIDING_PAIRS];
	char text[16 * COLLIDING_PAIRS + 1];
	uint64_t open_hash = 0;
	unsigned i, k;

	(void)state;
	for (i = 0; i < 1u << COLLIDING_PAIRS; i++) {
		write_colliding(text, i);
		if (!i)
			open_hash = pem_hash__text(PEM_HASH_START, text);
		assert_int_equal(pem_hash__text(PEM_HASH_START, text), open_hash);
		hashes[i] = pem_hash__secret_text(0, multiplier, text);
		for (k = 0; k < i; k++)
			assert_int_not_equal(hashes[i], hashes[k]);
	}
	assert_int_not_equal(
		pem_hash__secret_text(pem_hash__secret_text(0, multiplier, "ab"), multiplier, "c"),
		pem_hash__secret_text(pem_hash__secret_text(0, multiplier, "a"), multiplier, "bc"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_that_differ_in_high_bits_are_spread),
		cmocka_unit_test(keys_that_a_known_multiplier_puts_together_are_spread),
		cmocka_unit_test(joined_numbers_depend_on_their_order),
		cmocka_unit_test(texts_have_hashes_of_their_own),
		cmocka_unit_test(texts_that_were_chosen_to_have_one_hash_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
