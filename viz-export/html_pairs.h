/* SPDX-License-Identifier: MIT */
/* html_pairs.h - how many records there are of each event in each process: a hash table */
#ifndef PEM_HTML_PAIRS_H
#define PEM_HTML_PAIRS_H

#include "html_data.h"

struct pem_html_pair {
	const struct pem_event *event; /* NULL: the entry is free */
	uint32_t pid;
	uint32_t series;
	uint64_t count;
};

struct pem_html_pairs {
	uint32_t count;
	uint32_t capacity; /* a power of two */
	struct pem_html_pair *entry;
	/* The pair found last, because records of one pair often follow each other. */
	struct pem_html_pair *last;
};

struct pem_html_pairs *pem_html_pairs__new(void);
void pem_html_pairs__free(struct pem_html_pairs *pairs);
/*
 * Count a record. Returns 0, -ENOMEM, or -E2BIG if there are more pairs than a page can hold.
 */
int pem_html_pairs__count(struct pem_html_pairs *pairs, const struct pem_record *record);
/* Find the pair of a record; where there are too many, that of its event in PEM_HTML_OTHERS. */
struct pem_html_pair *pem_html_pairs__find(struct pem_html_pairs *pairs,
					   const struct pem_record *record);

#endif
