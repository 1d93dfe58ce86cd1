/* SPDX-License-Identifier: MIT */
/* suggest.c - finds the known word that a misspelt word most likely means */
#include "suggest.h"
#include "model.h"
#include "text.h"

#include <string.h>

#define WORD_MAX 48u
#define DISTANCE_MAX 2u

void pem_suggestion__try(struct pem_suggestion *s, const char *word, size_t bytes)
{
	size_t length = strlen(s->meant);
	unsigned far;

	if (length > WORD_MAX || bytes > WORD_MAX || !bytes)
		return;
	far = pem_edit_distance_of(s->meant, length, word, bytes);
	if (far > DISTANCE_MAX || far >= length || far >= bytes || (s->bytes && far >= s->far))
		return;
	s->word = word;
	s->bytes = (int)bytes;
	s->far = far;
}

/* Parse "'a', 'b' or 'c'". A sentence of any other form is ignored. */
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
