/* SPDX-License-Identifier: MIT */
/*
 * html_json.c - JSON text that is safe inside an HTML script element
 *
 * Text comes from traces and is hostile. What is numbers only goes straight to the file.
 */
#include "html_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/*
 * Bytes of the UTF-8 sequence at text, of which left bytes may be read; 0 if it is not one (RFC 3629: no overlong
 * forms, no surrogates, nothing above U+10FFFF).
 */
static size_t utf8_bytes(const unsigned char *text, size_t left)
{
	unsigned char low = 0x80, high = 0xbf;
	size_t bytes, i;

	if (text[0] < 0x80)
		return 1;
	if (text[0] >= 0xc2 && text[0] <= 0xdf)
		bytes = 2;
	else if ((text[0] & 0xf0) == 0xe0)
		bytes = 3;
	else if (text[0] >= 0xf0 && text[0] <= 0xf4)
		bytes = 4;
	else
		return 0;
	if (bytes > left)
		return 0;
	if (text[0] == 0xe0)
		low = 0xa0;
	else if (text[0] == 0xed)
		high = 0x9f;
	else if (text[0] == 0xf0)
		low = 0x90;
	else if (text[0] == 0xf4)
		high = 0x8f;
	if (text[1] < low || text[1] > high)
		return 0;
	for (i = 2; i < bytes; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	return bytes;
}

static int needs_escape(unsigned char c)
{
	return c < 0x20 || c == 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' ||
	       c == '\'';
}

void pem_json__string(FILE *out, const char *text, size_t bytes_max)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = strnlen(text, bytes_max);

	fputc('"', out);
	while (left) {
		size_t bytes = utf8_bytes(at, left);

		if (bytes == 0) {
			fputs("\\ufffd", out);
			bytes = 1;
		} else if (bytes == 1 && needs_escape(at[0])) {
			fprintf(out, "\\u%04x", at[0]);
		} else {
			fwrite(at, 1, bytes, out);
		}
		at += bytes;
		left -= bytes;
	}
	fputc('"', out);
}

void pem_json__number(FILE *out, double value)
{
	if (!isfinite(value))
		fputs("null", out);
	else if (value == 0)
		fputc('0', out);
	else
		fprintf(out, "%.6g", value);
}

void pem_json__key_string(FILE *out, const char *key, const char *text, size_t bytes_max)
{
	fprintf(out, "\"%s\":", key);
	pem_json__string(out, text, bytes_max);
}

void pem_json__key_u64(FILE *out, const char *key, uint64_t value)
{
	fprintf(out, "\"%s\":%" PRIu64, key, value);
}

void pem_json__key_number(FILE *out, const char *key, double value)
{
	fprintf(out, "\"%s\":", key);
	pem_json__number(out, value);
}
