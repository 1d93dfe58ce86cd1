/* SPDX-License-Identifier: MIT */
/* html_pairs.c - a hash table of events and processes (contract: html_pairs.h) */
#include "html_data.h"
#include "html_pairs.h"
#include "hash.h"

#include <errno.h>
#include <stdlib.h>

#define PAIRS_MAX (1u << 20)
/* Above this number of pairs, records of new processes count as PEM_HTML_OTHERS. */
#define PAIRS_CROWDED (PAIRS_MAX / 2)

struct pem_html_pairs *pem_html_pairs__new(void)
{
	struct pem_html_pairs *pairs = calloc(1, sizeof(*pairs));

	if (!pairs)
		return NULL;
	pairs->capacity = 1024;
	pairs->multiplier = pem_hash__multiplier();
	pairs->entry = calloc(pairs->capacity, sizeof(*pairs->entry));
	if (!pairs->entry) {
		free(pairs);
		return NULL;
	}
	return pairs;
}

void pem_html_pairs__free(struct pem_html_pairs *pairs)
{
	if (!pairs)
		return;
	free(pairs->entry);
	free(pairs);
}

/* Find the pair's entry, or the free entry where it belongs. */
static struct pem_html_pair *probe(const struct pem_html_pairs *pairs,
				   const struct pem_event *event, uint32_t process)
{
	uint32_t i = (uint32_t)pem_hash__index((uint64_t)event->id << 32 | process,
					       pairs->multiplier, pairs->capacity);
	struct pem_html_pair *entry = pairs->entry;

	while (entry[i].event && (entry[i].event != event || entry[i].process != process))
		i = (i + 1) & (pairs->capacity - 1);
	return &entry[i];
}

static int pairs_grow(struct pem_html_pairs *pairs)
{
	struct pem_html_pairs larger = {.count = pairs->count,
					.capacity = pairs->capacity * 2,
					.multiplier = pairs->multiplier};
	uint32_t i;

	larger.entry = calloc(larger.capacity, sizeof(*larger.entry));
	if (!larger.entry)
		return -ENOMEM;
	for (i = 0; i < pairs->capacity; i++)
		if (pairs->entry[i].event)
			*probe(&larger, pairs->entry[i].event, pairs->entry[i].process) =
				pairs->entry[i];
	free(pairs->entry);
	*pairs = larger;
	return 0;
}

int pem_html_pairs__count(struct pem_html_pairs *pairs, const struct pem_event *event,
			  uint32_t process)
{
	struct pem_html_pair *pair;
	int err;

	if (pairs->last && pairs->last->event == event && pairs->last->process == process) {
		pairs->last->count++;
		return 0;
	}
	if (pairs->count * 2 >= pairs->capacity) {
		err = pairs_grow(pairs);
		if (err)
			return err;
	}
	pair = probe(pairs, event, process);
	if (!pair->event && pairs->count >= PAIRS_CROWDED) {
		process = PEM_HTML_OTHERS;
		pair = probe(pairs, event, process);
	}
	if (!pair->event) {
		if (pairs->count == PAIRS_MAX)
			return -E2BIG;
		pairs->count++;
		pair->event = event;
		pair->process = process;
	}
	pair->count++;
	pairs->last = pair;
	return 0;
}

struct pem_html_pair *pem_html_pairs__find(struct pem_html_pairs *pairs,
					   const struct pem_event *event, uint32_t process)
{
	struct pem_html_pair *pair = pairs->last;

	if (pair && pair->event == event && pair->process == process)
		return pair;
	pair = probe(pairs, event, process);
	if (!pair->event)
		pair = probe(pairs, event, PEM_HTML_OTHERS);
	pairs->last = pair;
	return pair->event ? pair : NULL;
}
