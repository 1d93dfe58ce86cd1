/* SPDX-License-Identifier: MIT */
/*
 * html_pairs.h - how many records each event has in each process
 *
 * Not here: which of them the page shows (html_data.c).
 */
#ifndef PEM_HTML_PAIRS_H
#define PEM_HTML_PAIRS_H

#include <pem/context.h>

struct pem_html_pair {
	const struct pem_event *event; /* NULL: the entry is free */
	uint32_t process; /* pem_html_number; PEM_HTML_OTHERS: all after too many others */
	uint32_t series; /* The caller's. */
	uint64_t count;
};

struct pem_html_pairs {
	uint32_t count;
	uint32_t capacity; /* a power of two */
	uint64_t multiplier; /* of hash.h */
	struct pem_html_pair *entry;
	/* The pair found last, because records of one pair often follow each other. */
	struct pem_html_pair *last;
};

/* Make an empty set. NULL: no memory. */
struct pem_html_pairs *pem_html_pairs__new(void);
void pem_html_pairs__free(struct pem_html_pairs *pairs);
/* Count a record of a process. Returns 0, -ENOMEM, or -E2BIG: there are more kinds than a page can
 * hold. */
int pem_html_pairs__count(struct pem_html_pairs *pairs, const struct pem_event *event,
			  uint32_t process);
/* Find the pair of what was counted. NULL: it was not. */
struct pem_html_pair *pem_html_pairs__find(struct pem_html_pairs *pairs,
					   const struct pem_event *event, uint32_t process);

#endif
