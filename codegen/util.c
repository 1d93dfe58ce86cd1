/* SPDX-License-Identifier: MIT */
/* util.c - words, hashes, names and memory for all stages of codegen */
#include "model.h"
#include "model_words.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *word(const char *const *words, size_t count, unsigned value)
{
	return value < count ? words[value] : "-";
}

static int word_of(const char *const *words, size_t count, const char *text)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (!strcmp(words[i], text) && strcmp(text, "-"))
			return (int)i;
	}
	return -1;
}

const char *pem_word__type(unsigned type)
{
	return word(pem_type_words, PEM_TYPE_COUNT, type);
}

const char *pem_word__meaning(unsigned meaning)
{
	return word(pem_meaning_words, PEM_MEANING_COUNT, meaning);
}

const char *pem_word__role(unsigned role)
{
	return word(pem_role_words, PEM_ROLE_COUNT, role);
}

const char *pem_word__source(unsigned kind)
{
	return word(pem_source_words, PEM_SOURCE_COUNT, kind);
}

const char *pem_word__level(unsigned level)
{
	return word(pem_level_words, PEM_LEVEL_COUNT, level);
}

const char *pem_word__scope(unsigned scope)
{
	return word(pem_scope_words, PEM_SCOPE_COUNT, scope);
}

const char *pem_word__label_kind(unsigned kind)
{
	return word(pem_label_kind_words, PEM_LABELS_COUNT, kind);
}

int pem_word__type_of(const char *text)
{
	return word_of(pem_type_words, PEM_TYPE_COUNT, text);
}

int pem_word__meaning_of(const char *text)
{
	return word_of(pem_meaning_words, PEM_MEANING_COUNT, text);
}

int pem_word__role_of(const char *text)
{
	return word_of(pem_role_words, PEM_ROLE_COUNT, text);
}

int pem_word__source_of(const char *text)
{
	return word_of(pem_source_words, PEM_SOURCE_COUNT, text);
}

int pem_word__level_of(const char *text)
{
	return word_of(pem_level_words, PEM_LEVEL_COUNT, text);
}

int pem_word__scope_of(const char *text)
{
	return word_of(pem_scope_words, PEM_SCOPE_COUNT, text);
}

uint32_t pem_type__size(unsigned type)
{
	static const uint8_t sizes[PEM_TYPE_COUNT] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0, 0, 8, 0};

	return type < PEM_TYPE_COUNT ? sizes[type] : 0;
}

int pem_type__is_signed(unsigned type)
{
	return type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64;
}

int pem_type__is_float(unsigned type)
{
	return type == PEM_TYPE_FLOAT32 || type == PEM_TYPE_FLOAT64;
}

const char *pem_type__c(unsigned type)
{
	static const char *const names[PEM_TYPE_COUNT] = {
		NULL,     "uint8_t", "uint16_t", "uint32_t", "uint64_t",
		"int8_t", "int16_t", "int32_t",  "int64_t",  "float",
		"double", NULL,      NULL,       "uint64_t", NULL};

	return type < PEM_TYPE_COUNT ? names[type] : NULL;
}

uint64_t pem_hash64(const void *bytes, size_t count)
{
	const uint8_t *p = bytes;
	uint64_t hash = 0xcbf29ce484222325u;

	while (count--)
		hash = (hash ^ *p++) * 0x100000001b3u;
	return hash;
}

/* Does a word begin at name[i]? An 's' after capitals is their plural and not a word: HPMs, PCs. */
static int word_begins(const char *name, size_t i)
{
	char before, next;

	if (i == 0 || !isupper((unsigned char)name[i]))
		return 0;
	before = name[i - 1];
	next = name[i + 1];
	if (islower((unsigned char)before) || isdigit((unsigned char)before))
		return 1;
	if (!isupper((unsigned char)before) || !islower((unsigned char)next))
		return 0;
	return !(next == 's' && !islower((unsigned char)name[i + 2]));
}

char *pem_snake_case(const char *name)
{
	char *out = pem_xrealloc(NULL, 2 * strlen(name) + 1, 1);
	size_t i, n = 0;

	for (i = 0; name[i]; i++) {
		if (word_begins(name, i))
			out[n++] = '_';
		out[n++] = (char)tolower((unsigned char)name[i]);
	}
	out[n] = '\0';
	return out;
}

void pem_complain(FILE *out, const char *format, ...)
{
	char text[8192]; /* two paths: no memory may be left for more */
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	fprintf(out, "%s: error: %s\n", program_invocation_short_name, pem_make_printable(text));
}

void *pem_xrealloc(void *old, size_t count, size_t size)
{
	void *memory = reallocarray(old, count ? count : 1, size);

	if (!memory) {
		pem_complain(stderr, "out of memory");
		exit(1);
	}
	return memory;
}

void *pem_xgrow(void *old, size_t count, size_t size)
{
	if (count & (count - 1))
		return old;
	return pem_xrealloc(old, count ? 2 * count : 1, size);
}

char *pem_xstrdup(const char *text)
{
	size_t bytes = strlen(text) + 1;

	return memcpy(pem_xrealloc(NULL, bytes, 1), text, bytes);
}

char *pem_xprintf(const char *format, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	if (n < 0) {
		pem_complain(stderr, "out of memory");
		exit(1);
	}
	return text;
}
