/* SPDX-License-Identifier: MIT */
/*
 * suggest.h - which of some words was meant by one that is none of them
 */
#ifndef PEM_CODEGEN_SUGGEST_H
#define PEM_CODEGEN_SUGGEST_H

#include <stddef.h>

/* Start with meant alone; then try words, which must stay, and ask for the text. */
struct pem_suggestion {
	const char *meant;
	const char *word; /* the nearest so far, of so many bytes; 0: none is near */
	int bytes;
	unsigned far;
};

void pem_suggestion__try(struct pem_suggestion *s, const char *word, size_t bytes);
/* All words of "'a', 'b' or 'c'"; none if the sentence says anything else. */
void pem_suggestion__try_list(struct pem_suggestion *s, const char *sentence);
/* "; did you mean BEFOREwordAFTER?", or "" if none is near. The caller frees it. */
char *pem_suggestion__text(const struct pem_suggestion *s, const char *before, const char *after);

#endif
