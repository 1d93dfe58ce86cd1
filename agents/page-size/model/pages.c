// SPDX-License-Identifier: MIT
/* pages.c - a hash table of keys with linear probing */
#include "pages.h"

#include <errno.h>
#include <stdlib.h>

#define BITS_FIRST 10u

int pages__init(struct pages *pages)
{
	pages->bits = BITS_FIRST;
	pages->used = 0;
	pages->keys = calloc((size_t)1 << pages->bits, sizeof(*pages->keys));
	return pages->keys ? 0 : -ENOMEM;
}

void pages__destroy(struct pages *pages)
{
	free(pages->keys);
}

/* The entry of a page, or the free one where it belongs. */
static uint64_t *find(struct pages *pages, uint64_t key)
{
	size_t mask = ((size_t)1 << pages->bits) - 1, i = pages__index(pages, key);

	while (pages->keys[i] && pages->keys[i] != key)
		i = (i + 1) & mask;
	return &pages->keys[i];
}

static int grow(struct pages *pages)
{
	struct pages larger = {NULL, pages->bits + 1, pages->used};
	size_t i;

	larger.keys = calloc((size_t)1 << larger.bits, sizeof(*larger.keys));
	if (!larger.keys)
		return -ENOMEM;
	for (i = 0; i < (size_t)1 << pages->bits; i++) {
		if (pages->keys[i])
			*find(&larger, pages->keys[i]) = pages->keys[i];
	}
	free(pages->keys);
	*pages = larger;
	return 0;
}

int pages__add(struct pages *pages, uint64_t key)
{
	uint64_t *entry = find(pages, key);

	if (*entry)
		return 0;
	if ((pages->used + 1) * 10 > ((size_t)7 << pages->bits)) {
		if (grow(pages) < 0)
			return -ENOMEM;
		entry = find(pages, key);
	}
	*entry = key;
	pages->used++;
	return 1;
}
