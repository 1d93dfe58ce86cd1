/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * prototype.c - parses the C parameters of a tracepoint, word by word (contract: prototype.h)
 *
 * A prototype consists of words, commas and stars (spec/pem.xsd). Qualifiers do not change a
 * value's size or offset, so they are ignored.
 */
#include "prototype.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What the words before a parameter's name say about an integer. */
struct integer {
	unsigned longs;
	bool is_char, is_short, is_bool, is_unsigned, is_any;
};

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool is(const char *word, size_t bytes, const char *text)
{
	return strlen(text) == bytes && !memcmp(word, text, bytes);
}

static bool is_qualifier(const char *word, size_t bytes)
{
	return is(word, bytes, "const") || is(word, bytes, "volatile") ||
	       is(word, bytes, "restrict") || is(word, bytes, "__percpu");
}

/* Is this a word of an integer's type? */
static bool take_integer(struct integer *integer, const char *word, size_t bytes)
{
	if (is(word, bytes, "unsigned"))
		integer->is_unsigned = true;
	else if (is(word, bytes, "long"))
		integer->longs++;
	else if (is(word, bytes, "char"))
		integer->is_char = true;
	else if (is(word, bytes, "short"))
		integer->is_short = true;
	else if (is(word, bytes, "bool") || is(word, bytes, "_Bool"))
		integer->is_bool = true;
	else if (!is(word, bytes, "int") && !is(word, bytes, "signed"))
		return false;
	return integer->is_any = true;
}

static void set_integer(struct pem_c_type *type, const struct integer *integer)
{
	type->kind = PEM_C_INTEGER;
	type->bytes = integer->is_char || integer->is_bool ? 1
		      : integer->is_short                  ? 2
		      : integer->longs                     ? 8
							   : 4;
	type->is_signed = !integer->is_unsigned && !integer->is_bool;
}

static int set_name(struct pem_c_type *type, enum pem_c_kind kind, const char *word, size_t bytes)
{
	if (!bytes || bytes >= sizeof(type->name))
		return -EINVAL;
	type->kind = kind;
	memcpy(type->name, word, bytes);
	type->name[bytes] = '\0';
	return 0;
}

/*
 * Skip blanks and stars, and count the stars. Returns the next word, which has *bytes (0: the
 * parameter ends).
 */
static const char *next_word(const char **text, size_t *bytes, unsigned *pointers)
{
	const char *word;

	while (**text == ' ' || **text == '*')
		*pointers += *(*text)++ == '*';
	word = *text;
	while (is_word(**text))
		(*text)++;
	*bytes = (size_t)(*text - word);
	return word;
}

static int read_type(const char **text, struct pem_c_type *type)
{
	static const struct {
		const char *word;
		enum pem_c_kind kind;
	} tags[] = {{"struct", PEM_C_STRUCT}, {"union", PEM_C_UNION}, {"enum", PEM_C_ENUM}};
	struct integer integer = {0};
	bool known = false, named = false;
	const char *word;
	size_t bytes, i;

	for (;;) {
		word = next_word(text, &bytes, &type->pointers);
		if (!bytes)
			break;
		if (is_qualifier(word, bytes))
			continue;
		if (!known && !type->pointers && take_integer(&integer, word, bytes))
			continue;
		if (known || integer.is_any) { /* this is the parameter's name */
			if (named)
				return -EINVAL;
			named = true;
			continue;
		}
		known = true;
		if (is(word, bytes, "void")) {
			type->kind = PEM_C_VOID;
			continue;
		}
		for (i = 0; i < COUNT(tags) && !is(word, bytes, tags[i].word); i++)
			;
		if (i < COUNT(tags))
			word = next_word(text, &bytes, &type->pointers);
		if (set_name(type, i < COUNT(tags) ? tags[i].kind : PEM_C_NAMED, word, bytes))
			return -EINVAL;
	}
	if (integer.is_any)
		set_integer(type, &integer);
	return known || integer.is_any ? 0 : -EINVAL;
}

int pem_prototype__next(const char **text, struct pem_c_type *type)
{
	while (**text == ' ')
		(*text)++;
	if (!**text)
		return 0;
	memset(type, 0, sizeof(*type));
	if (read_type(text, type) || (**text && **text != ','))
		return -EINVAL;
	*text += **text == ',';
	return 1;
}
