/* SPDX-License-Identifier: MIT */
/*
 * html_json.c - JSON text that is safe inside an HTML script element, and on a terminal
 *
 * Text comes from traces and is hostile. An escape is the same text to who reads the JSON. Plain
 * numbers are written directly to the file.
 */
#include "html_json.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int needs_escape(uint32_t c)
{
	return pem_is_control(c) || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' ||
	       c == '\'';
}

void pem_json__string(FILE *out, const char *text, size_t bytes_max)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t left = strnlen(text, bytes_max);

	fputc('"', out);
	while (left) {
		unsigned bytes = pem_utf8_bytes(at, left);
		uint32_t point = bytes ? pem_utf8_point(at, bytes) : 0;

		if (bytes == 0) {
			fputs("\\ufffd", out);
			bytes = 1;
		} else if (needs_escape(point)) {
			fprintf(out, "\\u%04x", point); /* such characters have no more digits */
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
