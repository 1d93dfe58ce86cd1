/* SPDX-License-Identifier: MIT */
/*
 * suggest.c - which of some words was meant by one that is none of them
 */
#include "suggest.h"
#include "model.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define WORD_MAX 48u
#define DISTANCE_MAX 2u

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/*
 * Letters put in, left out, replaced, or two neighbours exchanged, capitals aside (optimal string alignment: Boytsov,
 * Indexing methods for approximate dictionary searching, ACM JEA 16, 2011, section 2.1).
 */
static unsigned distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned rows[3][WORD_MAX + 1], *last = rows[0], *before = rows[1], *row = rows[2], *spare;
	size_t i, k;

	for (k = 0; k <= b_length; k++)
		before[k] = (unsigned)k;
	for (i = 1; i <= a_length; i++) {
		row[0] = (unsigned)i;
		for (k = 1; k <= b_length; k++) {
			int x = tolower((unsigned char)a[i - 1]),
			    y = tolower((unsigned char)b[k - 1]);

			row[k] = least(before[k - 1] + (x != y), least(before[k], row[k - 1]) + 1);
			if (i > 1 && k > 1 && x == tolower((unsigned char)b[k - 2]) &&
			    y == tolower((unsigned char)a[i - 2]))
				row[k] = least(row[k], last[k - 2] + 1);
		}
		spare = last;
		last = before;
		before = row;
		row = spare;
	}
	return before[b_length];
}

void pem_suggestion__try(struct pem_suggestion *s, const char *word, size_t bytes)
{
	size_t length = strlen(s->meant);
	unsigned far;

	if (length > WORD_MAX || bytes > WORD_MAX || !bytes)
		return;
	far = distance(s->meant, length, word, bytes);
	if (far > DISTANCE_MAX || far >= length || far >= bytes || (s->bytes && far >= s->far))
		return;
	s->word = word;
	s->bytes = (int)bytes;
	s->far = far;
}

/* "'a', 'b' or 'c'", and nothing else. */
void pem_suggestion__try_list(struct pem_suggestion *s, const char *sentence)
{
	struct pem_suggestion found = *s;
	const char *end;

	for (;;) {
		end = *sentence == '\'' ? strchr(sentence + 1, '\'') : NULL;
		if (!end)
			return;
		pem_suggestion__try(&found, sentence + 1, (size_t)(end - sentence) - 1);
		sentence = end + 1;
		if (!*sentence)
			break;
		if (!strncmp(sentence, ", '", 3))
			sentence += 2;
		else if (!strncmp(sentence, " or '", 5))
			sentence += 4;
		else
			return;
	}
	*s = found;
}

char *pem_suggestion__text(const struct pem_suggestion *s, const char *before, const char *after)
{
	if (!s->bytes)
		return pem_xstrdup("");
	return pem_xprintf("; did you mean %s%.*s%s?", before, s->bytes, s->word, after);
}
