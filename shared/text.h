/* SPDX-License-Identifier: MIT */
/*
 * text.h - functions on texts that several programs use: is a text UTF-8, may a terminal be shown
 * it, how similar are two words
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

/* Returns the code point of a UTF-8 sequence of this many bytes. Async-signal-safe. */
static inline uint32_t pem_utf8_point(const void *text, unsigned bytes)
{
	const uint8_t *s = (const uint8_t *)text;
	uint32_t point = bytes == 1 ? s[0] : s[0] & (0x7fu >> bytes);
	unsigned i;

	for (i = 1; i < bytes; i++)
		point = point << 6 | (s[i] & 0x3fu);
	return point;
}

/*
 * Returns whether a code point is a control character (C0, DEL, C1), ends a line, or changes the
 * direction of text. A terminal takes control characters for commands. Async-signal-safe.
 */
static inline int pem_is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
	       (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

/*
 * Makes a text fit to be shown to a person, in place: each byte of a control character, and each
 * byte that is no UTF-8, becomes '?'. A terminal that does not use UTF-8 takes a single byte for a
 * command: 0x9b begins the same sequences as ESC [. Returns text. Async-signal-safe.
 */
static inline char *pem_make_printable(char *text)
{
	char *s = text;
	unsigned n;

	while (*s) {
		n = pem_utf8_bytes(s, PEM_UTF8_BYTES_MAX);
		if (n && !pem_is_control(pem_utf8_point(s, n))) {
			s += n;
			continue;
		}
		for (n += !n; n; n--)
			*s++ = '?';
	}
	return text;
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
