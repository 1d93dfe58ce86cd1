/* SPDX-License-Identifier: MIT */
/*
 * text.h - functions on texts that several programs use: is a text UTF-8, how similar are two words
 */
#ifndef PEM_SHARED_TEXT_H
#define PEM_SHARED_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Maximum bytes of a UTF-8 sequence. */
#define PEM_UTF8_BYTES_MAX 4u

/*
 * Returns the length of the UTF-8 sequence at the beginning of text, or 0 if there is none (RFC
 * 3629: no overlong forms, no surrogates, nothing above U+10FFFF). Reads at most left bytes, which
 * must be 1 or more. A NUL byte is a sequence of 1 byte and part of no other sequence. So for a
 * terminated text the caller may pass PEM_UTF8_BYTES_MAX. Async-signal-safe.
 */
static inline unsigned pem_utf8_bytes(const void *text, size_t left)
{
	const uint8_t *s = (const uint8_t *)text;
	unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4, i;

	if (s[0] > 0xf4 || n > left)
		return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

#define PEM_EDIT_DISTANCE_MAX 128u

static inline unsigned pem_lower_case(char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A' + 'a') : (uint8_t)c;
}

/*
 * The number of letters that must be inserted, deleted, replaced or exchanged with their neighbour
 * to turn one word into the other, ignoring case (optimal string alignment: Boytsov, Indexing
 * methods for approximate dictionary searching, ACM JEA 16, 2011, section 2.1).
 * PEM_EDIT_DISTANCE_MAX if one of the words has more bytes than that.
 */
static inline unsigned pem_edit_distance_of(const char *a, size_t a_bytes, const char *b,
					    size_t b_bytes)
{
	unsigned rows[3][PEM_EDIT_DISTANCE_MAX + 1], best, x, y;
	unsigned *last = rows[0], *before = rows[1], *row = rows[2], *spare;
	size_t i, k;

	if (a_bytes > PEM_EDIT_DISTANCE_MAX || b_bytes > PEM_EDIT_DISTANCE_MAX)
		return PEM_EDIT_DISTANCE_MAX;
	for (k = 0; k <= b_bytes; k++)
		before[k] = (unsigned)k;
	for (i = 1; i <= a_bytes; i++) {
		row[0] = (unsigned)i;
		for (k = 1; k <= b_bytes; k++) {
			x = pem_lower_case(a[i - 1]);
			y = pem_lower_case(b[k - 1]);
			best = before[k - 1] + (x != y);
			if (before[k] + 1 < best)
				best = before[k] + 1;
			if (row[k - 1] + 1 < best)
				best = row[k - 1] + 1;
			if (i > 1 && k > 1 && x == pem_lower_case(b[k - 2]) &&
			    y == pem_lower_case(a[i - 2]) && last[k - 2] + 1 < best)
				best = last[k - 2] + 1;
			row[k] = best;
		}
		spare = last;
		last = before;
		before = row;
		row = spare;
	}
	return before[b_bytes];
}

/* As pem_edit_distance_of, for two terminated words. */
static inline unsigned pem_edit_distance(const char *a, const char *b)
{
	return pem_edit_distance_of(a, strlen(a), b, strlen(b));
}

#endif
