// SPDX-License-Identifier: MIT
/* places.c - ranges of addresses by directive */
#include "places.h"

#include "apply.h"

static struct places all[PAGE_APPLY_SITES_MAX];

static void widen(struct places *places, uint32_t i, uintptr_t start, uintptr_t end)
{
	if (places->list[i].start > start)
		places->list[i].start = start;
	if (places->list[i].end < end)
		places->list[i].end = end;
}

void places__add(uint32_t directive, uintptr_t start, uintptr_t end)
{
	struct places *places = &all[directive];
	uint32_t i = 0;

	while (i < places->count && (places->list[i].start > end || start > places->list[i].end))
		i++;
	if (i == PLACES_MAX)
		i--;
	if (i < places->count) {
		widen(places, i, start, end);
		return;
	}
	places->list[i].start = start;
	places->list[i].end = end;
	/* Pairs with report_places(). */
	__atomic_store_n(&places->count, i + 1, __ATOMIC_RELEASE);
}

const struct places *places__of(uint32_t directive)
{
	return &all[directive];
}
