// SPDX-License-Identifier: MIT
/* extents.c - ranges of addresses by directive */
#include "extents.h"

#include "apply.h"

static struct extents all[PAGE_APPLY_SITES_MAX];

static void widen(struct extents *extents, uint32_t i, uintptr_t start, uintptr_t end)
{
	if (extents->list[i].start > start)
		extents->list[i].start = start;
	if (extents->list[i].end < end)
		extents->list[i].end = end;
}

void extents__add(uint32_t directive, uintptr_t start, uintptr_t end)
{
	struct extents *extents = &all[directive];
	uint32_t i = 0;

	while (i < extents->count && (extents->list[i].start > end || start > extents->list[i].end))
		i++;
	if (i == EXTENTS_MAX)
		i--;
	if (i < extents->count) {
		widen(extents, i, start, end);
		return;
	}
	extents->list[i].start = start;
	extents->list[i].end = end;
	/* Pairs with report_extents(). */
	__atomic_store_n(&extents->count, i + 1, __ATOMIC_RELEASE);
}

const struct extents *extents__of(uint32_t directive)
{
	return &all[directive];
}
