/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * printable.c - making texts of programs and traces fit to be shown to a person
 *
 * A program chooses its name, and a terminal takes control characters for commands. The second set
 * of control characters, C1, is U+0080 to U+009F in UTF-8. A terminal that does not use UTF-8 takes
 * a single byte: 0x9b begins the same sequences as ESC [.
 */
#include "util.h"

#include <pem/trace.h>

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
		n = pem_utf8_bytes(s, PEM_UTF8_BYTES_MAX);
		if (n && !pem_is_control(s, n)) {
			s += n;
			continue;
		}
		for (n += !n; n; n--)
			*s++ = '?';
	}
	return text;
}
