/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * printable.c - texts of programs and traces, made fit to be shown to a person
 *
 * A terminal takes control characters for commands, and a program chooses its name. The second set of them, C1, is U+0080 to
 * U+009F in UTF-8, and a single byte for terminals that do not use UTF-8: 0x9b begins the same sequences as ESC [.
 */
#include "util.h"

#include <pem/trace.h>

unsigned pem_utf8_bytes(const char *text)
{
	const uint8_t *s = (const uint8_t *)text;
	unsigned n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4, i;

	if (s[0] > 0xf4 || (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

bool pem_is_control(const char *text, unsigned n)
{
	const uint8_t *s = (const uint8_t *)text;

	switch (n) {
	case 1:
		return s[0] < 0x20 || s[0] == 0x7f;
	case 2:
		return s[0] == 0xc2 && s[1] < 0xa0;
	case 3: /* U+2028 to U+202E, U+2066 to U+2069 */
		return s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
					(s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9));
	default:
		return false;
	}
}

char *pem_printable(char *text)
{
	char *s = text;
	unsigned n;

	while (*s) {
		n = pem_utf8_bytes(s);
		if (n && !pem_is_control(s, n)) {
			s += n;
			continue;
		}
		for (n += !n; n; n--)
			*s++ = '?';
	}
	return text;
}
