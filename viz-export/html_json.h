/* SPDX-License-Identifier: MIT */
/*
 * html_json.h - writes JSON that may stand inside an HTML script element
 *
 * This is not a JSON library. It writes values one after another, and the caller writes commas and
 * brackets.
 */
#ifndef PEM_HTML_JSON_H
#define PEM_HTML_JSON_H

#include <stdint.h>
#include <stdio.h>

/*
 * Write a quoted string with at most bytes_max bytes of text. Bytes that are not UTF-8 become
 * U+FFFD. Control characters and characters with a meaning in HTML are written as \u escapes, so no
 * text can end the element.
 */
void pem_json__string(FILE *out, const char *text, size_t bytes_max);
/* Write a number, or null if it is not finite. The decimal point is that of the current locale. */
void pem_json__number(FILE *out, double value);
/* Write "key": and the value. */
void pem_json__key_string(FILE *out, const char *key, const char *text, size_t bytes_max);
void pem_json__key_u64(FILE *out, const char *key, uint64_t value);
void pem_json__key_number(FILE *out, const char *key, double value);

#endif
