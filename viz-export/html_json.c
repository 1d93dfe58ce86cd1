/* SPDX-License-Identifier: MIT */
/*
 * html_json.c - JSON text that is safe inside an HTML script element
 *
 * Text comes from traces and is hostile. Plain numbers are written directly to the file.
 */
#include "html_json.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

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
		size_t bytes = pem_utf8_bytes(at, left);

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
