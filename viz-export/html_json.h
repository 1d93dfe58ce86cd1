/* SPDX-License-Identifier: MIT */
/*
 * html_json.h - writing JSON that may stand inside an HTML script element
 *
 * Not a JSON library: it writes values one after another, and the caller sets commas and brackets.
 */
#ifndef PEM_HTML_JSON_H
#define PEM_HTML_JSON_H

#include <stdint.h>
#include <stdio.h>

/*
 * A quoted string of at most bytes_max bytes of text. Bytes that are not UTF-8 become U+FFFD;
 * control characters and those that mean something to HTML are written as \u escapes, so no text
 * can end the element.
 */
void pem_json__string(FILE *out, const char *text, size_t bytes_max);
/* A number, or null when it is not finite. The decimal point is that of the current locale. */
void pem_json__number(FILE *out, double value);
/* "key":, then the value. */
void pem_json__key_string(FILE *out, const char *key, const char *text, size_t bytes_max);
void pem_json__key_u64(FILE *out, const char *key, uint64_t value);
void pem_json__key_number(FILE *out, const char *key, double value);

#endif
