/* SPDX-License-Identifier: MIT */
/* suggest.h - finds the known word that a misspelt word most likely means */
#ifndef PEM_CODEGEN_SUGGEST_H
#define PEM_CODEGEN_SUGGEST_H

#include <stddef.h>

/* Set meant, and zero the rest. Then try words, which must stay valid, and ask for the text. */
struct pem_suggestion {
	const char *meant;
	/* The nearest word so far, and its length in bytes. 0: none is near. */
	const char *word;
	int bytes;
	unsigned far;
};

void pem_suggestion__try(struct pem_suggestion *s, const char *word, size_t bytes);
/* Try all words of "'a', 'b' or 'c'". A sentence of any other form is ignored. */
void pem_suggestion__try_list(struct pem_suggestion *s, const char *sentence);
/* "; did you mean BEFOREwordAFTER?", or "" if none is near. The caller frees it. */
char *pem_suggestion__text(const struct pem_suggestion *s, const char *before, const char *after);

#endif
